Chains: one chain in full, and a list of their first messages. The statements read their rows from a table, or from the part of it that
`newest_rows` and `newest_deliveries` find.

-- name: root_in_history
-- The first message of the chain that an id belongs to, which may be that message.
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
        where hashtextextended(root_id, 0) = hashtextextended($1, 0) and root_id = $1 and message_id <> root_id
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
-- Facts of one chain, in order: of its first message, and of the others, from an index each. Times are returned as seconds: intervals and
-- timestamps of PostgreSQL can be out of Python's range.
select fact, message_id, parent_id, routing_key, queue, attempt, error_type, error_message, component, trace_id,
    extract(epoch from found.at)::float8 as at, extract(epoch from waited)::float8 as waited, extract(epoch from ran)::float8 as ran
from (
    (
        select *
        from {history}
        where hashtextextended(message_id, 0) = hashtextextended($1, 0) and message_id = $1 and root_id = $1
        order by at
        limit $2
    )
    union all
    (
        select *
        from {history}
        where hashtextextended(root_id, 0) = hashtextextended($1, 0) and root_id = $1 and message_id <> root_id
        order by at
        limit $2
    )
) as found
order by found.at
limit $2

-- name: letters
select id, source, queue, message_id, routing_key, tracking_ids::text as chain, attempt, requeue_count, exception_type,
    exception_message, status, worker, failures::text as failures, left(headers ->> 'traceparent', 255) as traceparent, extract(epoch from created_at)::float8 as created_at,
    extract(epoch from failed_at)::float8 as failed_at
from {dead_letter}
where tracking_ids @> jsonb_build_array($1::text)
order by id
limit $2

-- name: rows
-- One per row, the latest last. The row of a requeued message is its second.
select distinct on (id) id, tracking_ids ->> -1 as message_id, routing_key, tracking_ids::text as chain, attempts, last_error, target_queue,
    left(headers ->> 'traceparent', 255) as traceparent,
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
select message_id, routing_key, queue, tracking_ids::text as chain, attempt, left(headers ->> 'traceparent', 255) as traceparent,
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
-- Consumers as workers have reported them, including workers that ended recently: since when, whether any worker is alive, whether a live
-- one pauses itself because its handler fails, and the fixed retry delays that the last one reported.
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
-- Queues of the Postgres transport, whose messages are among the deliveries.
select distinct queue
from {subscription}
limit 5000

-- name: live_rows
-- Messages of the chains $1 that have a row in the outbox, the latest row of each last.
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
-- Messages of the chains $1 that are in a queue of the Postgres transport, waiting or in flight.
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
-- First messages of chains by the time of sending, newest first, after the position ($1, $2), from $3 to before $4.
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
-- As `beginnings`, before the position, oldest first.
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
-- The first facts of each of these chains in the history, up to $4. No fact of a chain is much older than its first message, which waited
-- $3 in the outbox.
select root.number, member.fact, member.message_id, member.routing_key, member.queue, extract(epoch from member.at)::float8 as at
from unnest($1::text[], $2::timestamptz[], $3::interval[]) with ordinality as root (id, at, waited, number)
cross join lateral (
    select *
    from (
        (
            select fact, message_id, routing_key, queue, at
            from {history}
            where hashtextextended(message_id, 0) = hashtextextended(root.id, 0) and message_id = root.id and root_id = root.id
                and {history}.at >= root.at - root.waited - interval '1 hour'
            order by {history}.at
            limit $4
        )
        union all
        (
            select fact, message_id, routing_key, queue, at
            from {history}
            where hashtextextended(root_id, 0) = hashtextextended(root.id, 0) and root_id = root.id and message_id <> root_id
                and {history}.at >= root.at - root.waited - interval '1 hour'
            order by {history}.at
            limit $4
        )
    ) as found
    order by found.at
    limit $4
) as member
order by root.number, member.at

-- name: begun_before
-- Those of these first messages that were sent before, and requeued.
select root.number
from unnest($1::text[], $2::timestamptz[]) with ordinality as root (id, at, number)
where exists(
    select
    from {history}
    where hashtextextended(message_id, 0) = hashtextextended(root.id, 0) and message_id = root.id
        and {history}.at < root.at and fact = 'sent'
)

-- name: resolved
-- Those of these dead letters that were resolved since, by message and queue, the latest of each.
select message_id, queue, status
from {dead_letter}
where message_id = any($1::text[]) and status <> 'open'

-- name: newest_rows
-- The part of a table that is searched, which may be too large to be searched in full: the newest, parked, held and stalled rows.
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
-- The latest messages with an index key equal to $1.
select root_id, message_id, routing_key, queue, fact
from {history}
where keys is not null and keys @> array[$1::text]
order by at desc
limit $2

-- name: latest_attempts
-- Attempts of the queue $1, from $2 to $3, with one of the facts $4.
select at, fact, message_id, root_id, routing_key, attempt, waited, ran, error_type, error_message, component, trace_id
from {history}
where queue = $1 and at >= $2 and at < $3 and fact = any($4::text[])
order by at desc
limit $5

-- name: slowest_attempts
-- As `latest_attempts`, the longest ones of the latest $6.
select *
from (
    select at, fact, message_id, root_id, routing_key, attempt, waited, ran, error_type, error_message, component, trace_id
    from {history}
    where queue = $1 and at >= $2 and at < $3 and fact = any($4::text[])
    order by at desc
    limit $6
) as latest
order by ran desc nulls last, at desc
limit $5
