-- name: root_in_history
-- The beginning of the chain that an id belongs to, which may itself be the beginning.
select root_id
from (
    (
        select root_id, 1 as rank
        from {history}
        where hashtextextended(message_id, 0) = hashtextextended($1, 0) and message_id = $1
        limit 1
    )
    union all
    (
        select root_id, 2
        from {history}
        where hashtextextended(root_id, 0) = hashtextextended($1, 0) and root_id = $1
        limit 1
    )
) as found
order by rank
limit 1

-- name: root_in_letters
select tracking_ids ->> 0
from {dead_letter}
where tracking_ids @> jsonb_build_array($1::text)
limit 1

-- name: root_in_outbox
select tracking_ids ->> 0
from {table}
where tracking_ids @> jsonb_build_array($1::text)
limit 1

-- name: root_in_deliveries
select tracking_ids ->> 0
from {delivery}
where tracking_ids @> jsonb_build_array($1::text)
limit 1

-- name: facts
-- Of one chain, as they happened. Times are seconds: an interval or a moment of PostgreSQL can be too much for a program.
select fact, message_id, parent_id, routing_key, queue, attempt, error_type, error_message, component,
    extract(epoch from at)::float8 as at, extract(epoch from waited)::float8 as waited, extract(epoch from ran)::float8 as ran
from {history}
where hashtextextended(root_id, 0) = hashtextextended($1, 0) and root_id = $1
order by {history}.at
limit $2

-- name: letters
select id, source, queue, message_id, routing_key, tracking_ids::text as chain, attempt, requeue_count, exception_type,
    exception_message, status, worker, failures::text as failures, extract(epoch from created_at)::float8 as created_at,
    extract(epoch from failed_at)::float8 as failed_at
from {dead_letter}
where tracking_ids @> jsonb_build_array($1::text)
order by id
limit $2

-- name: rows
select id, tracking_ids ->> -1 as message_id, routing_key, tracking_ids::text as chain, attempts, last_error, target_queue,
    extract(epoch from created_at)::float8 as created_at, extract(epoch from sent_at)::float8 as sent_at,
    extract(epoch from failed_at)::float8 as failed_at,
    case when send_after < 'infinity' then extract(epoch from send_after)::float8 end as due_at,
    case
        when sent_at is not null then 'sent'
        when failed_at is not null then 'parked'
        when last_error = 'unroutable' then 'held'
        when last_error = 'blocked' then 'blocked'
        when send_after > clock_timestamp() and attempts > 0 then 'retrying'
        when send_after > clock_timestamp() then 'scheduled'
        else 'pending'
    end as state
from {table}
where tracking_ids @> jsonb_build_array($1::text)
limit $2

-- name: deliveries
select message_id, routing_key, queue, tracking_ids::text as chain, attempt,
    extract(epoch from created_at)::float8 as created_at, extract(epoch from available_at)::float8 as due_at,
    case
        when lease_token is not null and leased_until > clock_timestamp() then 'in hand'
        when available_at > clock_timestamp() and attempt > 1 then 'retrying'
        else 'in a queue'
    end as state
from {delivery}
where tracking_ids @> jsonb_build_array($1::text)
limit $2

-- name: recent
-- The chains that began last, by the time at which their first message was sent.
select root.message_id as root_id, root.routing_key, extract(epoch from root.at)::float8 as at, chain.facts, chain.deaths,
    chain.last_at
from (
    select message_id, routing_key, at
    from {history}
    where fact = 'sent' and parent_id is null
    order by at desc
    limit $1
) as root
cross join lateral (
    select count(*) as facts, count(*) filter (where fact = 'died') as deaths, max(extract(epoch from member.at))::float8 as last_at
    from (
        select fact, at
        from {history}
        where hashtextextended(root_id, 0) = hashtextextended(root.message_id, 0) and root_id = root.message_id
        limit 1000
    ) as member
) as chain
order by root.at desc
