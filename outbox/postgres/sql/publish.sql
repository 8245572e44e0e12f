Arrays are unnested in the select list: a function in the from clause would store all of its rows before the first is inserted. A null
array, for a value that no message has, yields nulls.
Times are microseconds, so that type codecs of the caller's connection do not matter. `greatest` ignores nulls, and keeps a message with
a due time in the past from overtaking rows that are due already.

-- name: insert
insert into {table} (routing_key, body, content_type, tracking_ids, headers, expiration, send_after)
select
    routing_key,
    body,
    content_type,
    cast(tracking_ids as jsonb),
    cast(headers as jsonb),
    expiration * interval '1 microsecond',
    greatest(
        now(),
        timestamptz 'epoch' + send_at * interval '1 microsecond',
        clock_timestamp() + delay * interval '1 microsecond'
    )
from (
    select
        unnest(cast({routing_key} as text[])) as routing_key,
        unnest(cast({body} as bytea[])) as body,
        unnest(cast({content_type} as text[])) as content_type,
        unnest(cast({tracking_ids} as text[])) as tracking_ids,
        unnest(cast({headers} as text[])) as headers,
        unnest(cast({expiration} as bigint[])) as expiration,
        unnest(cast({send_at} as bigint[])) as send_at,
        unnest(cast({delay} as bigint[])) as delay
) as message
