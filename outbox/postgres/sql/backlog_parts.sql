What statements about the state of the outbox have in common.

-- name: due
select message.*
from generate_series(0, 9) as class (priority)
cross join lateral (
    select routing_key, attempts, last_error
    from {table}
    where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority

-- name: due_and_ordered
    order by send_after, id
    limit $1
) as message
union all
(
    select routing_key, attempts, last_error
    from {table}
    where sent_at is null and failed_at is null and ordering_key is not null

-- name: due_end
    order by send_after, id
    limit $1
)

-- name: state
case
    when sent_at is not null then 'sent'
    when failed_at is not null then 'parked'
    when last_error = 'unroutable' then 'held'
    when last_error = 'stalled' then 'stalled'
    when last_error = 'blocked' then 'blocked'
    when send_after > now() and attempts > 0 then 'retrying'
    when send_after > now() then 'scheduled'
    else 'pending'
end
