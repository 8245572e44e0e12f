Messages in queues of the database as operators see them, and changes of waiting messages: of unsent rows of the outbox, and of
deliveries. Changes do not wait for messages in flight: rows that a relay or a worker has locked are skipped, and reported as such.

-- name: deliveries
-- Up to $6 deliveries of queue $1 that match, in the order in which they are due, after the position ($7, $8), or from it on if $9.
-- A leased delivery is due again when its lease ends, so 'queued' is the only state with a due time in the past.
select id, exchange, queue, message_id, left(tracking_ids ->> 0, 1000) as root_id, routing_key,
    left(ordering_key, 1000) as ordering_key, content_type, octet_length(body) as size,
    case when octet_length(body) <= 4096 then body end as shown, left(headers ->> 'x-body-store', 200) as body_store,
    attempt, crashes, requeue_count,
    (failures -> -1)::text as last_failure, lease_token, state,
    extract(epoch from created_at)::float8 as created_at, extract(epoch from available_at)::float8 as due_at,
    extract(epoch from expires_at)::float8 as expires_at
from (
    select *,
        case
            when available_at <= now() then 'queued'
            when lease_token is not null then 'in_flight'
            when attempt > 1 then 'retrying'
            else 'postponed'
        end as state
    from {delivery}
    where queue = $1
        and available_at > case when $2 in ('in_flight', 'retrying', 'postponed') then now() else '-infinity' end
        and available_at <= case when $2 = 'queued' then now() else 'infinity' end
        and (available_at, id) {beyond}= (coalesce(to_timestamp($7::float8), '{first}'), coalesce($8::bigint, 0))
        and ($9::boolean or $8::bigint is null or (available_at, id) <> (to_timestamp($7::float8), $8::bigint))
        and ($3::text is null or routing_key = $3)
        and ($4::text is null or ordering_key = $4)
        and ($5::text is null or message_id = $5)
) as delivery
where $2::text is null or state = $2
order by available_at {way}, id {way}
limit $6

-- name: find_deliveries
-- The ids of the first $6 deliveries that match.
select id
from (
    select id, available_at,
        case
            when available_at <= now() then 'queued'
            when lease_token is not null then 'in_flight'
            when attempt > 1 then 'retrying'
            else 'postponed'
        end as state
    from {delivery}
    where queue = $1
        and available_at > case when $2 in ('in_flight', 'retrying', 'postponed') then now() else '-infinity' end
        and available_at <= case when $2 = 'queued' then now() else 'infinity' end
        and ($3::text is null or routing_key = $3)
        and ($4::text is null or ordering_key = $4)
        and ($5::text is null or message_id = $5)
) as delivery
where $2::text is null or state = $2
order by available_at, id
limit $6

-- name: delivery
select id, exchange, queue, message_id, left(tracking_ids ->> 0, 1000) as root_id, routing_key,
    left(ordering_key, 1000) as ordering_key, content_type, octet_length(body) as size,
    case when octet_length(body) <= 4096 then body end as shown, left(headers ->> 'x-body-store', 200) as body_store,
    attempt, crashes, requeue_count,
    (failures -> -1)::text as last_failure, lease_token,
    case
        when available_at <= now() then 'queued'
        when lease_token is not null then 'in_flight'
        when attempt > 1 then 'retrying'
        else 'postponed'
    end as state,
    extract(epoch from created_at)::float8 as created_at, extract(epoch from available_at)::float8 as due_at,
    extract(epoch from expires_at)::float8 as expires_at, body, headers::text as headers, tracking_ids::text as tracking_ids,
    failures::text as failures
from {delivery}
where id = $1

-- name: ahead
-- The number of deliveries of its queue that are due before delivery $1, counted up to $2.
select count(*)
from (
    select
    from {delivery} as other
    where queue = (select queue from {delivery} where id = $1)
        and (available_at, id) < (select available_at, id from {delivery} where id = $1) and available_at <= now()
    limit $2
) as counted

-- name: first_of_key
-- The first delivery of its ordering key in its queue, if that is before delivery $1.
select first.id, first.message_id,
    case
        when first.available_at <= now() then 'queued'
        when first.lease_token is not null then 'in_flight'
        when first.attempt > 1 then 'retrying'
        else 'postponed'
    end as state
from {delivery} as one
cross join lateral (
    select id, message_id, available_at, lease_token, attempt
    from {delivery} as other
    where other.queue = one.queue and other.ordering_key is not null
        and hashtextextended(other.ordering_key, 0) = hashtextextended(one.ordering_key, 0)
    order by other.id
    limit 1
) as first
where one.id = $1 and one.ordering_key is not null and first.id < one.id

-- name: lock_messages
-- Locks waiting rows among $1, and returns the state of each. `lock` is `no key update`, for which publishers wait: by `update` they recognise a
-- row in flight, see publish_keys.sql. A removal takes `update`, because a publisher may have locked a row that covers its message.
with locked as materialized (
    select id, sent_at, failed_at, ordering_key
    from {table}
    where id = any($1::bigint[])
    order by id
    for {lock} skip locked
)
select asked.id, locked.ordering_key is not null as is_ordered,
    case
        when locked.id is null and exists (select from {table} as message where message.id = asked.id) then 'in_flight'
        when locked.id is null then 'gone'
        when locked.sent_at is not null then 'sent'
        when locked.failed_at is not null then 'parked'
        else 'waiting'
    end as state
from unnest($1::bigint[]) as asked (id)
left join locked on locked.id = asked.id

-- name: park
-- A cancelled message is parked first, and then discarded like any parked one.
update {table}
set failed_at = now(), last_error = $2, held_at = null
where id = any($1::bigint[])

-- name: reschedule
-- Makes rows due at $2, or now; null leaves the time. They are tried then, whatever they waited for. $3: the priority; null leaves it.
update {table}
set priority = coalesce($3::smallint, priority),
    send_after = case
        when $4::boolean then greatest(now(), coalesce($2::timestamptz, now()))
        when last_error in ('unroutable', 'stalled', 'blocked') then now()
        else send_after
    end,
    last_error = case when last_error in ('unroutable', 'stalled', 'blocked') then null else last_error end,
    held_at = null
where id = any($1::bigint[])

-- name: message_to_edit
select routing_key, body, content_type, headers::text as headers
from {table}
where id = $1

-- name: edit_message
-- With another routing key it may be routable, so a held or stalled message is tried again.
update {table}
set routing_key = $2, body = $3, content_type = $4, headers = cast($5::text as jsonb),
    send_after = case when last_error in ('unroutable', 'stalled') then now() else send_after end,
    last_error = case when last_error in ('unroutable', 'stalled') then null else last_error end,
    held_at = null
where id = $1

-- name: ring_messages
-- Notifies after updates made rows due: the trigger fires on inserts only. Runs once a request, so it need not check for sleepers.
select pg_catalog.pg_notify('outbox_' || encode(substr(sha256(convert_to(nspname || '.' || relname, 'UTF8')), 1, 12), 'hex'), '')
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.oid = '{table}'::regclass
    or c.oid in (select inhrelid from pg_catalog.pg_inherits where inhparent = '{table}'::regclass)

-- name: lock_deliveries
-- Locks deliveries among $1 that no worker holds, and returns the state of each.
with locked as materialized (
    select id, lease_token, available_at, ordering_key
    from {delivery}
    where id = any($1::bigint[])
    order by id
    for update skip locked
)
select asked.id, locked.ordering_key is not null as is_ordered,
    case
        when locked.id is null and exists (select from {delivery} as delivery where delivery.id = asked.id) then 'in_flight'
        when locked.id is null then 'gone'
        when locked.available_at <= now() then 'due'
        when locked.lease_token is not null then 'in_flight'
        else 'waiting'
    end as state
from unnest($1::bigint[]) as asked (id)
left join locked on locked.id = asked.id

-- name: make_due
-- After all deliveries that are due already.
update {delivery}
set available_at = now()
where id = any($1::bigint[])

-- name: move_to_front
-- Makes it due just before the first delivery of its queue. Workers that start to read further on return to the front of the index, see
-- `outbox.postgres.index_positions`.
with first as materialized (
    select wanted.queue, due.available_at
    from (select distinct queue from {delivery} where id = any($1::bigint[])) as wanted
    left join lateral (
        select available_at
        from {delivery} as other
        where other.queue = wanted.queue and available_at <= now()
        order by available_at, id
        limit 1
    ) as due on true
)
update {delivery} as delivery
set available_at = coalesce(first.available_at - interval '1 microsecond', now())
from first
where delivery.id = any($1::bigint[]) and delivery.queue = first.queue

-- name: take
-- Leases them to this transaction, because ending a delivery requires a lease.
update {delivery}
set lease_token = $2, leased_until = now() + interval '1 minute'
where id = any($1::bigint[])
returning id, queue, message_id, routing_key, body, content_type, headers::text as headers, tracking_ids::text as tracking_ids,
    ordering_key, attempt, failures::text as failures

-- name: died
-- Writes the history that a worker would write for a dead letter, on behalf of the operator $9.
insert into {history} (fact, message_id, root_id, parent_id, routing_key, queue, attempt, error_type, error_message, component)
select 'died', message_id, root_id, parent_id, routing_key, queue, attempt, error_type, error_message, $9
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::text[], $8::text[])
    as dead_message (message_id, root_id, parent_id, routing_key, queue, attempt, error_type, error_message)

-- name: ring_deliveries
select pg_catalog.pg_notify('outbox_' || encode(substr(sha256(convert_to(nspname || '.' || relname, 'UTF8')), 1, 12), 'hex'), '')
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.oid = '{delivery}'::regclass

-- name: deliveries_containing
-- Deliveries among the newest $2 with up to $3 bytes whose body contains the bytes $1, newest first.
select id
from (select id, body from {delivery} order by id desc limit $2) as newest
where case when octet_length(body) <= $3 then position($1::bytea in body) > 0 end
limit $4
