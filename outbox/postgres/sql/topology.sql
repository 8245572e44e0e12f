-- name: subscriptions
select exchange, queue, binding_key
from {subscription}
order by exchange, queue, binding_key
limit $1

-- name: held_keys
-- Routing keys with held messages, and the first message of each. Walks the index of held rows from key to key, up to $1 keys.
with recursive held (routing_key, id, target_queue, number) as (
    (
        select routing_key, id, target_queue, 1
        from {table}
        where sent_at is null and failed_at is null and last_error = 'unroutable'
        order by routing_key, send_after, id
        limit 1
    )
    union all
    select following.*
    from held
    cross join lateral (
        select routing_key, id, target_queue, held.number + 1
        from {table}
        where sent_at is null and failed_at is null and last_error = 'unroutable' and routing_key > held.routing_key
            and held.number < $1
        order by routing_key, send_after, id
        limit 1
    ) as following
)
select routing_key, id, target_queue
from held
order by number
