Rows that wait because their route is stalled: the broker answers, but takes no messages for it. Of each route, those with the fewest
refusals come first, so that a row that is refused for another reason does not block the others.

-- name: lock_stalled
-- Locks the first $5 rows of each of the routes $3 (routing keys) and $4 (queues, or '') that no other relay has locked. Except under
-- "skip", a row with an ordering key must be the head of its lane, which this transaction owns then; see `ordering.sql`. $1 and $2: the
-- policies by prefix.
select message.id, message.attempts, octet_length(message.body) + coalesce(pg_column_size(message.headers), 0) as bytes,
    message.lane, message.policy
from unnest($3::text[], $4::text[], $5::bigint[]) as route (routing_key, queue, rows)
cross join lateral (
    select id, attempts, body, headers, hashtextextended(ordering_key, 0) as lane, rule.policy
    from only {table} as waiting
    cross join lateral (
        select
            case
                when waiting.ordering_key is not null then (
                    select each.policy
                    from unnest($1::text[], $2::text[]) as each (prefix, policy)
                    where starts_with(waiting.ordering_key, each.prefix)
                    limit 1
                )
            end as policy
    ) as rule
    where sent_at is null and failed_at is null and last_error = 'stalled' and routing_key = route.routing_key
        and coalesce(target_queue, '') = route.queue
        and (
            ordering_key is null
            or rule.policy = 'skip'
            or not exists (
                select
                from only {table} as earlier
                where earlier.sent_at is null and earlier.ordering_key is not null and earlier.id < waiting.id
                    and hashtextextended(earlier.ordering_key, 0) = hashtextextended(waiting.ordering_key, 0)
                    and (earlier.failed_at is null or rule.policy = 'block')
                offset 0
            )
        )
    order by routing_key, coalesce(target_queue, ''), attempts, id
    limit route.rows
    for update of waiting skip locked
) as message

-- name: release_stalled
update only {table}
set last_error = null, held_at = null, send_after = now()
where id in (
    select id
    from only {table}
    where sent_at is null and failed_at is null and last_error = 'stalled' and routing_key = $1
        and coalesce(target_queue, '') = $2
    order by routing_key, coalesce(target_queue, ''), attempts, id
    limit $3
    for no key update skip locked
)

-- name: stalled_ways
-- Walks the index from route to route.
with recursive walk (routing_key, queue) as (
    (
        select routing_key, coalesce(target_queue, '')
        from only {table}
        where sent_at is null and failed_at is null and last_error = 'stalled'
        order by routing_key, coalesce(target_queue, ''), attempts, id
        limit 1
    )
    union all
    select following.routing_key, following.queue
    from walk
    cross join lateral (
        select routing_key, coalesce(target_queue, '') as queue
        from only {table}
        where sent_at is null and failed_at is null and last_error = 'stalled'
            and (routing_key, coalesce(target_queue, '')) > (walk.routing_key, walk.queue)
        order by routing_key, coalesce(target_queue, ''), attempts, id
        limit 1
    ) as following
)
select routing_key, nullif(queue, '') as queue
from walk
limit $1
