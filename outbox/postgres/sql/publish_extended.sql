What a batch takes in which any message has a key, a priority or a stamp. Plain ones have a statement of their own, publish.sql,
which costs less.

-- name: messages
-- The rows of a batch, from arrays as in publish.sql. A stamped row is not due before its stamp's time, so that claims, which
-- go by the due time, follow the stamps.
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
-- Under the locks of its dedup keys. Answers with those that are pending already; what replaces them is inserted, what does not
-- is left out. A row that a relay has claimed is on its way and counts as gone; see `publish_keys.sql`. One that is met is kept from
-- being claimed until the caller's transaction ends: if it were sent before, its handler would not see what the caller has written
-- and relies on it to tell.
with message as materialized (
{messages}
),
pending as materialized (
    select id, dedup_key
    from {table}
    where dedup_key is not null and sent_at is null and failed_at is null
        and dedup_key = any(array(select dedup_key from message where dedup_key is not null))
    for key share skip locked
),
withdrawn as (
    delete from {table}
    where id = any(array(
        select id
        from pending
        where dedup_key in (select dedup_key from message where replaces)
    )) and sent_at is null and failed_at is null
    returning id, ordering_key
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
