-- name: binding
-- Whether queue $2 is bound to exchange $1 with key $3, or with any key, and to which other exchanges.
select
    exists(
        select
        from {subscription}
        where exchange = $1 and queue = $2 and binding_key = $3 and pattern is not distinct from $4
    ) as bound,
    exists(select from {subscription} where exchange = $1 and queue = $2) as known,
    array(select distinct exchange from {subscription} where queue = $2 and exchange <> $1 order by exchange) as others

-- name: lock_bindings
-- Keeps other workers from binding until the transaction ends. If two bind one queue to two exchanges at once, the second must see the
-- row of the first. The server ends the transaction of a worker that is frozen.
select pg_catalog.set_config('idle_in_transaction_session_timeout', '5s', true),
    pg_catalog.pg_advisory_xact_lock('{subscription}'::regclass::oid::bigint)

-- name: bind
-- Tries the expression first, so that one that PostgreSQL cannot compile is never used for a message.
insert into {subscription} (exchange, queue, binding_key, pattern)
select $1, $2, $3, $4
where ('' ~ $4) is not null or $4::text is null
on conflict (exchange, queue, binding_key) do update set pattern = excluded.pattern

-- name: send
-- Puts messages into the queues of exchange $1, all or none, and returns the numbers of unroutable ones.
with message as materialized (
    select *
    from unnest(
        $2::text[], $3::text[], $4::bytea[], $5::text[], $6::jsonb[], $7::jsonb[], $8::text[], $9::timestamptz[],
        $10::timestamptz[], $11::interval[], $12::text[], $13::bigint[], $14::integer[]
    ) with ordinality as given (
        message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, created_at, expires_at, expiration,
        target_queue, hlc, requeue_count, number
    )
),
address as materialized (
    select distinct routing_key
    from message
    where target_queue is null
),
{routes},
routed as materialized (
    select message.*,
        case
            when target_queue is null then (select by_key from route) -> routing_key
            else (select by_queue from route) -> target_queue
        end as queues
    from message
),
-- An expiration beyond the range of timestamps is none.
delivered as (
    insert into {delivery} (
        exchange, queue, message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, hlc, requeue_count,
        created_at, expires_at
    )
    select $1, jsonb_array_elements_text(queues), message_id, routing_key, body, content_type, headers, tracking_ids,
        ordering_key, hlc, requeue_count, created_at,
        coalesce(expires_at, case when expiration < interval '1000 years' then now() + expiration end)
    from routed
    where queues is not null
    order by number
)
select number
from routed
where queues is null

-- name: claim
-- Leases up to $2 due deliveries of queue $1 for the time $4, under the token $3. A delivery that is due with a lease was never given
-- back: its worker crashed, or was frozen for as long. Times are returned as seconds, so that no value is out of the driver's range.
--
-- The limit is hidden from the planner: it then expects to need only a part of the rows, and reads the index in order instead of sorting
-- what the statistics take for a few rows and may be a million. $5: the due time to start at. `first_due`: when the first row was due.
-- `seen`: the number of due rows; if they have more than $6 bytes together, only some of them are leased, but always the first. Bodies of
-- more than $7 bytes are not returned. `due_order`, in the row that was due first: the ids in the order in which they are due.
-- (`octet_length` reads the length stored with a value, without reading the value.)
with due as materialized (
    select id, available_at, octet_length(routing_key) + octet_length(body) + coalesce(pg_column_size(headers), 0) as bytes
    from {delivery}
    where queue = $1 and available_at between to_timestamp($5::float8) and now()
    order by available_at, id
    limit (select $2::integer)
    for update skip locked
)
update {delivery}
set lease_token = $3, leased_until = now() + $4::interval, available_at = now() + $4::interval,
    crashes = crashes + (lease_token is not null)::integer
where id = any(array(
    select id
    from (select id, bytes, sum(bytes) over (rows unbounded preceding) as batch_bytes from due) as measured
    where batch_bytes <= $6 or batch_bytes = bytes
))
returning id, exchange, message_id, routing_key, case when octet_length(body) <= $7 then body end as body,
    octet_length(body) as size, content_type, headers, tracking_ids, ordering_key, hlc, requeue_count, attempt,
    crashes, isolated, extract(epoch from created_at)::float8 as created_seconds,
    extract(epoch from expires_at)::float8 as expires_seconds,
    (extract(epoch from expires_at) - extract(epoch from now()))::float8 as seconds_left,
    (select extract(epoch from min(available_at))::float8 from due) as first_due, (select count(*) from due) as seen,
    case when id = (select id from due limit 1) then (select array_agg(id) from due) end as due_order

-- name: claim_ordered
-- As `claim`, for ordered queues. Of the first $5 due deliveries, leases those without an ordering key, and those that are the first of
-- their key in this queue. One statement is enough: a delivery that was first in the snapshot but is gone or leased by now is not locked,
-- and a worker leases the next one only after it has seen that the first is gone.
--
-- Due deliveries behind the first of their key are deferred, so that the next claims need not read them again; `release` makes the next
-- one due when the first ends. Meanwhile the first is locked against deletion. Otherwise it could end before the next one is deferred,
-- and nothing would make that one due.
--
-- Deferred deliveries become due again after some minutes, at random times, in case that no process releases them: see
-- `release_abandoned`, which is run for the keys in `deferred_keys`, in the first row.
--
-- `seen`: the number of due deliveries. `left`: how many of them were neither leased nor deferred; they are due at once. $6 and $7: as
-- in `claim`.
with due as materialized (
    select id, case when ordering_key is not null then hashtextextended(ordering_key, 0) end as lane,
        octet_length(routing_key) + octet_length(body) + coalesce(pg_column_size(headers), 0) as bytes
    from {delivery}
    where queue = $1 and available_at <= now()
    order by available_at, id
    limit (select $5::integer)
    for update skip locked
),
placed as materialized (
    select due.id, due.bytes, coalesce(first.id, due.id) as first
    from due
    left join lateral (
        select delivery.id
        from {delivery} as delivery
        where due.lane is not null and delivery.queue = $1 and delivery.ordering_key is not null
            and hashtextextended(delivery.ordering_key, 0) = due.lane
        order by delivery.id
        limit 1
    ) as first on true
),
standing as materialized (
    select id
    from {delivery}
    where id = any(array(select first from placed where first <> id))
    for key share skip locked
),
put_off as (
    update {delivery}
    set available_at = now() + interval '5 minutes' * (0.75 + random() / 2)
    where id = any(array(select placed.id from placed join standing on standing.id = placed.first where placed.id <> placed.first))
    returning ordering_key
),
-- The next step refers to this one, so that it runs first: no later step can lock a row that an earlier one has changed.
aside as materialized (
    select count(*) as number
    from put_off
),
claimed as (
    update {delivery}
    set lease_token = $3, leased_until = now() + $4::interval, available_at = now() + $4::interval,
        crashes = crashes + (lease_token is not null)::integer
    where id = any(array(
        select id
        from (
            select id, bytes, sum(bytes) over (rows unbounded preceding) as batch_bytes
            from (
                select id, bytes
                from placed
                where id = first and (select number from aside) >= 0
                limit (select $2::integer)
            ) as wanted
        ) as measured
        where batch_bytes <= $6 or batch_bytes = bytes
    ))
    returning *
),
count as (
    select (select count(*) from due) as seen,
        (select count(*) from due) - (select number from aside) - (select count(*) from claimed) as left,
        array(select distinct ordering_key from put_off) as deferred_keys
)
select claimed.id, exchange, message_id, routing_key, case when octet_length(body) <= $7 then body end as body,
    octet_length(body) as size, content_type, headers, tracking_ids, ordering_key, hlc, requeue_count, attempt,
    crashes, isolated, extract(epoch from created_at)::float8 as created_seconds,
    extract(epoch from expires_at)::float8 as expires_seconds,
    (extract(epoch from expires_at) - extract(epoch from now()))::float8 as seconds_left, count.seen, count.left,
    case when row_number() over () = 1 then count.deferred_keys end as deferred_keys
from count
left join claimed on true

-- name: read_piece
-- $4 bytes of a body, from position $3 on.
select substring(body from $3::integer + 1 for $4::integer)
from {delivery}
where id = $1 and lease_token = $2

-- name: release
-- Makes the first delivery of each of the keys $2 in queue $1 due, after the one before it has ended. Run it in the same transaction,
-- after that end: only a new statement sees deliveries that others deferred while the first statement waited for its locks.
update {delivery}
set available_at = now()
where lease_token is null and available_at > now() and id = any(array(
    select first.id
    from unnest($2::text[]) as ended (ordering_key)
    cross join lateral (
        select delivery.id
        from {delivery} as delivery
        where delivery.queue = $1 and delivery.ordering_key is not null
            and hashtextextended(delivery.ordering_key, 0) = hashtextextended(ended.ordering_key, 0)
        order by delivery.id
        limit 1
    ) as first
))
returning id

-- name: release_abandoned
-- Makes the first delivery of each of the keys $2 in queue $1 due if it is deferred, though it waits for no other: the one before it ended
-- in a worker that is not ordered, or was deleted by hand. One that failed waits for its retry. Returns the keys that still have
-- deliveries.
with first as materialized (
    select wanted.ordering_key, first.id
    from unnest($2::text[]) as wanted (ordering_key)
    cross join lateral (
        select delivery.id
        from {delivery} as delivery
        where delivery.queue = $1 and delivery.ordering_key is not null
            and hashtextextended(delivery.ordering_key, 0) = hashtextextended(wanted.ordering_key, 0)
        order by delivery.id
        limit 1
    ) as first
),
released as (
    update {delivery}
    set available_at = now()
    where lease_token is null and available_at > now() and attempt = 1 and id = any(array(select id from first))
    returning id
)
select ordering_key, id in (select id from released) as released
from first

-- name: unclaim
-- Gives back the deliveries of a claim whose answer was lost. Leased and scheduled deliveries are after now() in the index.
update {delivery}
set available_at = least(now(), created_at), lease_token = null, leased_until = null
where id = any(array(select id from {delivery} where queue = $1 and available_at > now() and lease_token = $2))
returning id

-- name: next_due
-- Seconds until the first delivery of each queue is due, from the due times $2 on. A leased one is due when its lease ends.
select wanted.queue,
    (
        select extract(epoch from delivery.available_at)
        from {delivery} as delivery
        where delivery.queue = wanted.queue and delivery.available_at >= to_timestamp(wanted.since)
        order by delivery.available_at, delivery.id
        limit 1
    )::float8 - extract(epoch from clock_timestamp())::float8 as seconds
from unnest($1::text[], $2::float8[]) as wanted (queue, since)

-- name: renew
update {delivery} as delivery
set leased_until = now() + $3::interval, available_at = now() + $3::interval
from unnest($1::bigint[], $2::uuid[]) as held (id, token)
where delivery.id = held.id and delivery.lease_token = held.token and delivery.id = any($1::bigint[])
returning delivery.id

-- name: isolate
update {delivery}
set isolated = true
where id = $1 and lease_token = $2
returning id

-- name: done
delete from {delivery} as delivery
using unnest($1::bigint[], $2::uuid[]) as settled (id, token)
where delivery.id = settled.id and delivery.lease_token = settled.token and delivery.id = any($1::bigint[])
returning delivery.id

-- name: done_in_transaction
-- Ends a delivery in the transaction of its handler. Fails there if the lease is lost, and with $3 if this is not the transaction that
-- marked the message; see `same_transaction` of the inbox. Reading a setting that is never set is an error.
with done as (
    delete from {delivery}
    where id = $1 and lease_token = $2
    returning id
)
select
    case
        when count(*) <> 1 then current_setting('outbox.lease_lost')
        when $3 and coalesce(current_setting('outbox.lock_timeout', true), '') = '' then current_setting('outbox.no_such_transaction')
    end
from done

-- name: note_failed
-- Records a failed attempt. The same worker makes the next one, so the lease stays. Repeating this changes nothing. Keeps the first and
-- the latest failures, as `outbox.core.failures` does.
update {delivery} as delivery
set attempt = greatest(delivery.attempt, $3),
    failures = case
        when delivery.attempt >= $3 then delivery.failures
        else (
            select jsonb_agg(failure order by place)
            from jsonb_array_elements(coalesce(delivery.failures, '[]') || $4::jsonb) with ordinality as failed (failure, place)
            where place = 1 or place > jsonb_array_length(coalesce(delivery.failures, '[]')) - $5
        )
    end
where delivery.id = $1 and delivery.lease_token = $2
returning delivery.id

-- name: retry
-- Keeps the first and the latest failures, and the traceback of the last one, as `outbox.core.failures` does.
update {delivery} as delivery
set attempt = delivery.attempt + 1, available_at = now() + settled.delay, isolated = false, lease_token = null,
    leased_until = null,
    failures = (
        select jsonb_agg(
            case when place < count and jsonb_typeof(failure) = 'object' then failure - 'traceback' else failure end
            order by place
        )
        from (
            select failed.*, count(*) over () as count
            from jsonb_array_elements(coalesce(delivery.failures, '[]') || settled.failed::jsonb)
                with ordinality as failed (failure, place)
        ) as numbered
        where place = 1 or place > count - {most_failures} + 1
    )
from unnest($1::bigint[], $2::uuid[], $3::interval[], $4::text[]) as settled (id, token, delay, failed)
where delivery.id = settled.id and delivery.lease_token = settled.token and delivery.id = any($1::bigint[])
returning delivery.id

-- name: postpone
update {delivery} as delivery
set available_at = now() + settled.delay, isolated = false, lease_token = null, leased_until = null
from unnest($1::bigint[], $2::uuid[], $3::interval[]) as settled (id, token, delay)
where delivery.id = settled.id and delivery.lease_token = settled.token and delivery.id = any($1::bigint[])
returning delivery.id

-- name: give_back
-- The delivery goes before later ones, not after them. The mark of one that is taken for a poison message stays.
update {delivery} as delivery
set available_at = least(now(), delivery.created_at), isolated = settled.blamed, lease_token = null, leased_until = null
from unnest($1::bigint[], $2::uuid[], $3::boolean[]) as settled (id, token, blamed)
where delivery.id = settled.id and delivery.lease_token = settled.token and delivery.id = any($1::bigint[])
returning delivery.id

-- name: dead_letter
-- Deletes the delivery and records a dead letter, or neither. Its earlier failures come before the last one.
with gone as (
    delete from {delivery} as delivery
    using unnest(
        $1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
        $10::text[], $11::text[], $12::text[], $13::text[]
    ) as settled (
        id, token, source, cause, exception_type, exception_message, exception_traceback, failed, fingerprint, worker, preview,
        search, shown_message
    )
    where delivery.id = settled.id and delivery.lease_token = settled.token and delivery.id = any($1::bigint[])
    returning delivery.*, settled.source, settled.cause, settled.exception_type, settled.exception_message,
        settled.exception_traceback, settled.failed, settled.fingerprint, settled.worker, settled.preview, settled.search, settled.shown_message
),
dead_message as materialized (
    select id as number, source, exchange, queue, message_id, routing_key, body, content_type, headers, null::jsonb as properties,
        null::jsonb as header_types, tracking_ids, ordering_key, hlc, created_at, attempt, requeue_count, cause, exception_type,
        exception_message, exception_traceback, coalesce(failures, '[]') || failed::jsonb as failures, fingerprint, worker, preview,
        search, shown_message, now() as failed_at,
        case
            when failures -> 0 ->> 'at' ~ '^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$' then (failures -> 0 ->> 'at')::timestamptz
            else now()
        end as first_failed_at
    from gone
),
{recorded}
select id
from gone

-- name: lacking_rights
-- Privileges for claiming and settling; for recording a dead letter: find earlier ones, open them again, and update the operation that
-- requeued them.
select right_ || ' on ' || wanted.relation
from (
    values ('select', '{delivery}'), ('update', '{delivery}'), ('delete', '{delivery}'), ('select', '{dead_letter}'),
        ('insert', '{dead_letter}'), ('update', '{dead_letter}'), ('select', '{edition}'), ('select', '{operation}'),
        ('select', '{operation_item}'), ('update', '{operation_item}')
) as wanted (right_, relation)
where not has_table_privilege(wanted.relation, right_)

-- name: whereabouts
-- The state of deliveries whose settlement may have been written although its answer was lost.
select id, attempt, lease_token
from {delivery}
where id = any($1::bigint[])

-- name: ring
-- Notifies if a worker sleeps, as `ring_body_3.sql` does, after an update made rows due earlier: the trigger fires on inserts only. $1 to
-- $3: the channel, the in-flight lock, which workers of the previous release hold while they sleep, and an asleep lock.
select pg_catalog.pg_notify($1, '')
where not pg_catalog.pg_try_advisory_xact_lock_shared($2)
    or case when pg_catalog.pg_try_advisory_lock($3) then not pg_catalog.pg_advisory_unlock($3) else true end

-- name: count_dead_letters
select count(*)
from {dead_letter}
where queue = $1 and status = 'open'

-- name: queue_depth
-- The number of due deliveries of queue $1, counted up to $2, and for how many seconds the first has been due. At most about 30,000 years:
-- a row of another program may have been due since -infinity.
select count(*) as ready,
    case
        when count(*) > 0 then least(extract(epoch from clock_timestamp()) - extract(epoch from min(available_at)), 1e12)::float8
    end as oldest
from (
    select available_at
    from {delivery}
    where queue = $1 and available_at <= now()
    order by available_at, id
    limit $2
) as counted

-- name: count_waiting
-- The number of due deliveries of queue $1, counted up to $2; with $3, also those that wait for another one or for a time.
select count(*)
from (
    select
    from {delivery}
    where queue = $1 and available_at <= case when $3::boolean then 'infinity' else now() end
    limit $2
) as counted

-- name: queue_depth_estimated
-- Estimates the number of due deliveries of queue $1 from $2 pages of the table.
select (count(*) filter (where queue = $1 and available_at <= now()) * greatest(pages::float8 / $2, 1))::bigint as ready
from (select pg_relation_size('{delivery}'::regclass) / current_setting('block_size')::integer as pages) as size
cross join lateral (
    select queue, available_at
    from {delivery} tablesample system (least(100.0 * $2 / greatest(size.pages, 1), 100)) repeatable (0)
) as sampled
group by pages

-- name: has_queue
-- Whether `send` and the hand-over find the queue as a target queue.
select exists(select from {subscription} where queue = $1)

-- name: relay_elsewhere
-- A running relay of an outbox table in this schema, if none of these sends to PostgreSQL.
select name, destination
from {relay}
where not refused and held_until >= clock_timestamp()
    and not exists (
        select
        from {relay}
        where not refused and held_until >= clock_timestamp() and starts_with(destination, 'PostgreSQL')
    )
order by name, id
limit 1
