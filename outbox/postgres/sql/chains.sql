Chains: of one message in full, and a list of their beginnings. Each statement is complete but for the rows that it looks at, which are
a table, or the part of it that `newest_rows` and `newest_deliveries` find.

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
from {rows_looked_at}
where tracking_ids @> jsonb_build_array($1::text)
limit 1

-- name: root_in_deliveries
select tracking_ids ->> 0
from {deliveries_looked_at}
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
-- One for each row, the latest last: that of a message that was requeued is its second.
select distinct on (id) id, tracking_ids ->> -1 as message_id, routing_key, tracking_ids::text as chain, attempts, last_error, target_queue,
    extract(epoch from created_at)::float8 as created_at, extract(epoch from sent_at)::float8 as sent_at,
    extract(epoch from failed_at)::float8 as failed_at,
    case when send_after < 'infinity' then extract(epoch from send_after)::float8 end as due_at,
    extract(epoch from held_at)::float8 as held_at,
    case
        when sent_at is not null then 'sent'
        when failed_at is not null then 'parked'
        when last_error = 'unroutable' then 'held'
        when last_error = 'stalled' then 'stalled'
        when last_error = 'blocked' then 'blocked'
        when send_after > clock_timestamp() and attempts > 0 then 'retrying'
        when send_after > clock_timestamp() then 'scheduled'
        else 'pending'
    end as state
from {rows_looked_at}
where tracking_ids @> jsonb_build_array($1::text)
order by id
limit $2

-- name: deliveries
select message_id, routing_key, queue, tracking_ids::text as chain, attempt,
    extract(epoch from created_at)::float8 as created_at, extract(epoch from available_at)::float8 as due_at,
    case
        when lease_token is not null and leased_until > clock_timestamp() then 'in_flight'
        when available_at > clock_timestamp() and attempt > 1 then 'retrying'
        else 'queued'
    end as state,
    (
        select count(*)
        from (
            select
            from {delivery} as earlier
            where earlier.queue = looked_at.queue and earlier.available_at <= clock_timestamp()
                and (earlier.available_at, earlier.id) < (looked_at.available_at, looked_at.id)
            limit 10001
        ) as ahead
    ) as ahead
from {deliveries_looked_at}
where tracking_ids @> jsonb_build_array($1::text)
limit $2

-- name: consumers
-- What workers have reported of their consumers, those included that ended lately: since when, whether any of them lives, whether
-- one that lives pauses itself because its handler fails, and the fixed delays of their retries, as the last one reported them.
select consumer ->> 'queue' as queue, consumer ->> 'binding_key' as binding_key,
    bool_or(consumer -> 'history' = 'true') as history, extract(epoch from min(started_at))::float8 as since,
    bool_or(stopped_at is null and seen_at >= clock_timestamp() - 6 * every) as lives,
    coalesce(bool_or(
        stopped_at is null and seen_at >= clock_timestamp() - 6 * every
        and activity -> 'failing_queues' @> jsonb_build_array(consumer -> 'queue')
    ), false) as failing,
    (array_agg(
        case when consumer -> 'retry' -> 'computed' = 'false' then (consumer -> 'retry' -> 'delays_seconds')::text end
        order by seen_at desc
    ))[1] as delays
from {component}
cross join lateral jsonb_array_elements(case when jsonb_typeof(consumers) = 'array' then consumers else '[]' end) as consumer
where kind = 'worker' and consumer ->> 'queue' is not null
group by 1, 2
order by 1, 2
limit 5000

-- name: pauses
select scope, name, reason, requested_by, extract(epoch from requested_at)::float8 as requested_at
from {control}
where scope in ('queue', 'worker') and (until is null or until > clock_timestamp())

-- name: subscribed
-- Queues of the Postgres transport: what waits in them is among the deliveries.
select distinct queue
from {subscription}
limit 5000

-- name: live_rows
-- Where the messages of the chains $1 are that have a row in the outbox, the latest row of each last.
select tracking_ids ->> 0 as root_id, tracking_ids ->> -1 as message_id,
    case
        when sent_at is not null then 'sent'
        when failed_at is not null then 'parked'
        when last_error = 'unroutable' then 'held'
        when last_error = 'stalled' then 'stalled'
        when last_error = 'blocked' then 'blocked'
        when send_after > clock_timestamp() and attempts > 0 then 'retrying'
        when send_after > clock_timestamp() then 'scheduled'
        else 'pending'
    end as state
from {rows_looked_at}
where tracking_ids ->> 0 = any($1::text[])
order by id
limit 20000

-- name: live_deliveries
-- The same of those that wait in a queue of the Postgres transport, or are being handled.
select tracking_ids ->> 0 as root_id, message_id, queue,
    case
        when lease_token is not null and leased_until > clock_timestamp() then 'in_flight'
        when available_at > clock_timestamp() and attempt > 1 then 'retrying'
        else 'queued'
    end as state
from {deliveries_looked_at}
where tracking_ids ->> 0 = any($1::text[])
limit 20000

-- name: beginnings
-- The first messages of chains, by the time at which they were sent, newest first, behind the place $1, $2, from $3 to before $4.
select message_id as root_id, routing_key, at, hashtextextended(message_id, 0) as hash,
    least(coalesce(waited, '0'), '7 days') as waited
from {history}
where fact = 'sent' and parent_id is null
    and at <= coalesce($1::timestamptz, 'infinity')
    and at >= coalesce($3::timestamptz, '-infinity') and at < coalesce($4::timestamptz, 'infinity')
    and (at, hashtextextended(message_id, 0)) < (coalesce($1::timestamptz, 'infinity'), coalesce($2::bigint, 0))
order by at desc, hash desc
limit $5

-- name: later_beginnings
-- The same before the place, oldest first.
select message_id as root_id, routing_key, at, hashtextextended(message_id, 0) as hash,
    least(coalesce(waited, '0'), '7 days') as waited
from {history}
where fact = 'sent' and parent_id is null
    and at >= coalesce($1::timestamptz, '-infinity')
    and at >= coalesce($3::timestamptz, '-infinity') and at < coalesce($4::timestamptz, 'infinity')
    and (at, hashtextextended(message_id, 0)) > (coalesce($1::timestamptz, '-infinity'), coalesce($2::bigint, 0))
order by at, hash
limit $5

-- name: members
-- What the history tells first of each of these chains, up to $4 facts. Nothing of a chain is much older than its beginning,
-- which waited $3 in the outbox.
select root.number, member.fact, member.message_id, member.routing_key, member.queue, extract(epoch from member.at)::float8 as at
from unnest($1::text[], $2::timestamptz[], $3::interval[]) with ordinality as root (id, at, waited, number)
cross join lateral (
    select fact, message_id, routing_key, queue, at
    from {history}
    where hashtextextended(root_id, 0) = hashtextextended(root.id, 0) and root_id = root.id
        and {history}.at >= root.at - root.waited - interval '1 hour'
    order by {history}.at
    limit $4
) as member
order by root.number, member.at

-- name: begun_before
-- Which of these beginnings are second ones: of messages that had been sent before they were requeued.
select root.number
from unnest($1::text[], $2::timestamptz[]) with ordinality as root (id, at, number)
where exists(
    select
    from {history}
    where hashtextextended(message_id, 0) = hashtextextended(root.id, 0) and message_id = root.id
        and {history}.at < root.at and fact = 'sent'
)

-- name: resolved
-- Which of these dead letters were resolved since, by message and queue; the latest of each.
select message_id, queue, status
from {dead_letter}
where message_id = any($1::text[]) and status <> 'open'

-- name: newest_rows
-- Of a table that may be too large to be searched: what came last, what is parked, and what nobody could be found for.
(
    (select * from {table} order by id desc limit {most_rows})
    union all
    (select * from {table} where failed_at is not null order by failed_at desc, id desc limit {most_rows})
    union all
    (
        select *
        from {table}
        where sent_at is null and failed_at is null and last_error = 'unroutable'
        order by routing_key, send_after, id
        limit {most_rows}
    )
    union all
    (
        select *
        from {table}
        where sent_at is null and failed_at is null and last_error = 'stalled'
        order by routing_key, coalesce(target_queue, ''), attempts, id
        limit {most_rows}
    )
) as looked_at

-- name: newest_deliveries
(select * from {delivery} order by id desc limit {most_rows}) as looked_at

-- name: more_rows
select exists(select from {table} order by id desc offset {most_rows} limit 1)

-- name: more_deliveries
select exists(select from {delivery} order by id desc offset {most_rows} limit 1)

-- name: by_key
-- The latest messages that have one of their index keys equal to $1.
select root_id, message_id, routing_key, queue, fact
from {history}
where keys is not null and keys @> array[$1::text]
order by at desc
limit $2

-- name: latest_attempts
-- Of the queue $1, from $2 to $3, with one of the facts $4.
select at, fact, message_id, root_id, routing_key, attempt, waited, ran, error_type, error_message, component
from {history}
where queue = $1 and at >= $2 and at < $3 and fact = any($4::text[])
order by at desc
limit $5

-- name: slowest_attempts
-- The same by how long they ran, of the latest $6.
select *
from (
    select at, fact, message_id, root_id, routing_key, attempt, waited, ran, error_type, error_message, component
    from {history}
    where queue = $1 and at >= $2 and at < $3 and fact = any($4::text[])
    order by at desc
    limit $6
) as latest
order by ran desc nulls last, at desc
limit $5
