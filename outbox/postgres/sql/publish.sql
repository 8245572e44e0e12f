Times go over as microseconds, so that no type codec of the caller's connection has a say; `greatest` ignores nulls, and
keeps an eta in the past from overtaking what is due already.

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
from unnest(
    cast({routing_key} as text[]),
    cast({body} as bytea[]),
    cast({content_type} as text[]),
    cast({tracking_ids} as text[]),
    cast({headers} as text[]),
    cast({expiration} as bigint[]),
    cast({send_at} as bigint[]),
    cast({delay} as bigint[])
) as message (routing_key, body, content_type, tracking_ids, headers, expiration, send_at, delay)
