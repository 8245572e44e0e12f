Statements for batches with a key, a priority or a clock stamp in any message. Batches without use publish.sql, which costs less.

-- name: messages
-- The rows of a batch, from arrays as in publish.sql. A row with a clock stamp is not due before the time of its stamp, so that claims,
-- which go by due time, follow the stamps.
select
    position,
    routing_key,
    body,
    content_type,
    cast(tracking_ids as jsonb) as tracking_ids,
    cast(headers as jsonb) as headers,
    expiration * interval '1 microsecond' as expiration,
    greatest(
        now(),
        timestamptz 'epoch' + send_at * interval '1 microsecond',
        clock_timestamp() + delay * interval '1 microsecond',
        timestamptz 'epoch' + hlc * interval '1 microsecond'
    ) as send_after,
    ordering_key,
    dedup_key,
    priority,
    hlc,
    replaces
from (
    select
        generate_subscripts(cast({routing_key} as text[]), 1) as position,
        unnest(cast({routing_key} as text[])) as routing_key,
        unnest(cast({body} as bytea[])) as body,
        unnest(cast({content_type} as text[])) as content_type,
        unnest(cast({tracking_ids} as text[])) as tracking_ids,
        unnest(cast({headers} as text[])) as headers,
        unnest(cast({expiration} as bigint[])) as expiration,
        unnest(cast({send_at} as bigint[])) as send_at,
        unnest(cast({delay} as bigint[])) as delay,
        unnest(cast({ordering_key} as text[])) as ordering_key,
        unnest(cast({dedup_key} as text[])) as dedup_key,
        unnest(cast({priority} as smallint[])) as priority,
        unnest(cast({hlc} as bigint[])) as hlc,
        unnest(cast({replaces} as boolean[])) as replaces
) as message

-- name: insert
insert into {table} (
    routing_key, body, content_type, tracking_ids, headers, expiration, send_after, ordering_key, dedup_key, priority, hlc
)
select routing_key, body, content_type, tracking_ids, headers, expiration, send_after, ordering_key, dedup_key, priority, hlc
from ({messages}) as message
order by position

-- name: insert_unique
-- Requires the locks of the dedup keys. Returns keys that are pending already; rows that replace them are inserted, others are left out.
-- A row that a relay has claimed counts as sent; see `publish_keys.sql`. A pending row that was found cannot be claimed until the
-- caller's transaction ends. If it were sent earlier, its handler would not see the caller's writes, about which the message that was
-- left out was to inform it.
with message as materialized (
{messages}
),
pending as materialized (
    select id, dedup_key
    from only {table}
    where dedup_key is not null and sent_at is null and failed_at is null
        and dedup_key = any(array(select dedup_key from message where dedup_key is not null))
    for key share skip locked
),
withdrawn as (
    delete from only {table}
    where id = any(array(
        select id
        from pending
        where dedup_key in (select dedup_key from message where replaces)
    )) and sent_at is null and failed_at is null
    returning tableoid as destination, id, ordering_key
),
{released},
inserted as (
    insert into {table} (
        routing_key, body, content_type, tracking_ids, headers, expiration, send_after, ordering_key, dedup_key, priority, hlc
    )
    select routing_key, body, content_type, tracking_ids, headers, expiration, send_after, ordering_key, dedup_key, priority, hlc
    from message
    where replaces or dedup_key is null or dedup_key not in (select dedup_key from pending)
    order by position
)
select distinct dedup_key
from pending
