-- name: line
-- The listed columns of a row. Times are returned as seconds and jsonb as text, so that no value of a producer is out of the driver's
-- range. Small bodies are returned for a preview. A released row may still have the time since when it was held.
id,
    case
        when sent_at is not null then 'sent'
        when failed_at is not null then 'parked'
        when last_error = 'unroutable' then 'held'
        when last_error = 'stalled' then 'stalled'
        when last_error = 'blocked' then 'blocked'
        when send_after > now() and attempts > 0 then 'retrying'
        when send_after > now() then 'scheduled'
        else 'pending'
    end as state,
    routing_key, left(tracking_ids ->> -1, 1000) as message_id, left(tracking_ids ->> 0, 1000) as root_id,
    left(ordering_key, 1000) as ordering_key, left(dedup_key, 1000) as dedup_key, left(target_queue, 1000) as target_queue,
    priority, attempts, requeue_count, left(last_error, 2000) as last_error, content_type, octet_length(body) as size,
    case when octet_length(body) <= 4096 then body end as shown, left(headers ->> 'x-body-store', 200) as body_store,
    extract(epoch from created_at)::float8 as created_at,
    extract(epoch from send_after)::float8 as due_at, (send_after at time zone 'UTC')::text as due_key,
    extract(epoch from sent_at)::float8 as sent_at,
    extract(epoch from failed_at)::float8 as failed_at, hashtextextended(ordering_key, 0) as lane,
    case
        when sent_at is null and failed_at is null and last_error in ('unroutable', 'stalled')
            then extract(epoch from held_at)::float8
    end as held_at, coalesce(left(target_queue, 1000), '') as route_queue,
    case
        when message.tableoid <> '{table}'::regclass
            then (select substr(relname, length('{name}') + 2) from pg_class where oid = message.tableoid)
        else 'default'
    end as destination

-- name: classes
select message.*
from generate_series(0, 9) as class (priority)
cross join lateral (
    {unordered}
) as message
union all
(
    {ordered}
)

-- name: detail
select id,
    case
        when sent_at is not null then 'sent'
        when failed_at is not null then 'parked'
        when last_error = 'unroutable' then 'held'
        when last_error = 'stalled' then 'stalled'
        when last_error = 'blocked' then 'blocked'
        when send_after > now() and attempts > 0 then 'retrying'
        when send_after > now() then 'scheduled'
        else 'pending'
    end as state,
    routing_key, left(tracking_ids ->> -1, 1000) as message_id, left(tracking_ids ->> 0, 1000) as root_id,
    left(ordering_key, 1000) as ordering_key, left(dedup_key, 1000) as dedup_key, left(target_queue, 1000) as target_queue,
    priority, attempts, requeue_count, left(last_error, 2000) as last_error, content_type, octet_length(body) as size,
    case when octet_length(body) <= 4096 then body end as shown, left(headers ->> 'x-body-store', 200) as body_store,
    extract(epoch from created_at)::float8 as created_at,
    extract(epoch from send_after)::float8 as due_at, extract(epoch from sent_at)::float8 as sent_at,
    extract(epoch from failed_at)::float8 as failed_at, hashtextextended(ordering_key, 0) as lane,
    case
        when sent_at is null and failed_at is null and last_error in ('unroutable', 'stalled')
            then extract(epoch from held_at)::float8
    end as held_at, coalesce(left(target_queue, 1000), '') as route_queue,
    case
        when message.tableoid <> '{table}'::regclass
            then (select substr(relname, length('{name}') + 2) from pg_class where oid = message.tableoid)
        else 'default'
    end as destination,
    body, headers::text as headers, tracking_ids::text as tracking_ids,
    extract(epoch from expiration)::float8 as expires_in, hlc, send_after = 'infinity' as due_never, message.tableoid as table_id
from {table} as message
where id = $1

-- name: first_of_key
-- The first unsent row of an ordering key before row $2, in the table $3.
select id,
    case
        when sent_at is not null then 'sent'
        when failed_at is not null then 'parked'
        when last_error = 'unroutable' then 'held'
        when last_error = 'stalled' then 'stalled'
        when last_error = 'blocked' then 'blocked'
        when send_after > now() and attempts > 0 then 'retrying'
        when send_after > now() then 'scheduled'
        else 'pending'
    end as state,
    tracking_ids ->> -1 as message_id
from {table}
where sent_at is null and ordering_key is not null and hashtextextended(ordering_key, 0) = $1 and id < $2 and tableoid = $3
order by hashtextextended(ordering_key, 0), id
limit 1

-- name: probe
-- The probe for all held rows of the table $3 with the route of this one.
select id, extract(epoch from send_after)::float8 as due_at
from {table}
where sent_at is null and failed_at is null and last_error = 'unroutable' and routing_key = $1 and send_after < 'infinity'
    and target_queue is not distinct from $2 and tableoid = $3
order by routing_key, send_after, id
limit 1

-- name: stalled_probe
-- The next probe for all stalled rows of the table $3 with the route of this one. Only the relay knows when it is sent.
select id, null::float8 as due_at
from {table}
where sent_at is null and failed_at is null and last_error = 'stalled' and routing_key = $1
    and coalesce(target_queue, '') = coalesce($2, '') and tableoid = $3
order by routing_key, coalesce(target_queue, ''), attempts, id
limit 1

-- name: handled
-- The last fact about a message in each queue. Materialized: the index in this order would read all queues.
with facts as materialized (
    select queue, fact, attempt, error_type, error_message, at
    from {history}
    where hashtextextended(message_id, 0) = hashtextextended($1, 0) and message_id = $1 and queue is not null
)
select distinct on (queue) queue, fact, attempt, error_type, error_message, extract(epoch from at)::float8 as at
from facts
order by queue, facts.at desc
limit 100

-- name: alive_relays
select count(*)
from {component}
where kind = 'relay' and stopped_at is null and seen_at > clock_timestamp() - 6 * every

-- name: relays_of
-- The relays that send the rows of the table $1.
select count(*)
from {relay}
where outbox_table = $1 and not refused and held_until >= clock_timestamp()

-- name: has_destinations
-- Whether there are others than the default one.
select exists (select from pg_inherits where inhparent = '{table}'::regclass)

-- name: exists
select to_regclass($1) is not null

-- name: containing
-- Rows among the newest $2 with up to $3 bytes whose body contains the bytes $1, newest first.
select id
from (select id, body from {table} order by id desc limit $2) as newest
where case when octet_length(body) <= $3 then position($1::bytea in body) > 0 end
limit $4
