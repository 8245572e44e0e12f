Changes of dead letters by operators. A separate statement locks the rows first, in the order of their ids, so that the next statement sees
them as they are after concurrent changes. A row with unreadable tracking ids gets an id that is derived from the row. `busy_with`: an
active operation other than $2 on the dead letter.

-- name: lock_letters
-- And returns where they were to be sent.
select id, destination from {dead_letter} where id = any($1::bigint[]) order by id for update

-- name: lock_dedup_keys
-- A requeued row is pending, so this takes the lock of its dedup key, see publish_keys.sql, to come before or after its publishers. Before
-- rows are locked, in the same order as publishers, so that they cannot deadlock.
select count(pg_advisory_xact_lock(lock_key))
from (
    select distinct case when message.tableoid = '{table}'::regclass then 'default' else substr(relname, length('{table_name}') + 2) end
            collate "C" as destination,
        hashtextextended(dedup_key, hashtextextended('outbox dedup_key', message.tableoid::bigint)) as lock_key
    from {table} as message
    join pg_class on pg_class.oid = message.tableoid
    where id = any($1::bigint[]) and dedup_key is not null
    order by destination, lock_key
) as sorted

-- name: lock_messages
-- Two transactions that discard one message, each for another destination, would not see each other's dead letter.
select count(pg_advisory_xact_lock(lock_key))
from (
    select distinct hashtextextended(tracking_ids ->> -1, hashtextextended('outbox discard', 0)) as lock_key
    from {table}
    where id = any($1::bigint[])
    order by lock_key
) as sorted

-- name: lock_parked
-- Not pending rows: one may be in flight, and this must not wait for a relay, nor take a lock that publishers take for a claim.
select from {table} where id = any($1::bigint[]) and failed_at is not null order by id for update

-- name: destinations
-- The queues that dead letters and parked rows would go back to; empty for those that are routed by their routing key.
select distinct queue
from (
    select queue from {dead_letter} where id = any($1::bigint[])
    union all
    select target_queue from {table} where id = any($2::bigint[])
) as place
where queue <> ''

-- name: has_table
select to_regclass('{table}') is not null

-- name: requeue_letters
-- $2: the operation. $3: another queue. $4: whether to use the routing key. $5: the existing queues. $6: the greatest age that is requeued;
-- null for any. $7: the actor. $8: whether to write the history. $9: the reason. $10: the exchange of the broker, if that is not the
-- database. A letter of another exchange failed in a queue of the database, which stores the messages of a source, and goes back there
-- without a relay.
--
-- A message without an id gets one, and the dead letter keeps it, so that it is recognised if the message fails again. Rows get their ids
-- in the order of the dead letters' ids, in which they failed. They are as old as the requeue: time as a dead letter is not time in the
-- outbox. Properties that JSON cannot represent are passed to the relay in a header. The outbox table is that of their destination.
with wanted as materialized (
    select letter.id, routing_key, body, content_type, headers, header_types, properties, ordering_key, created_at, hlc, requeue_count,
        status,
        case
            when $3::text is not null then $3
            when not $4::boolean and queue <> '' then queue
        end as destination,
        case
            when message_id is null and chain = '[]' then jsonb_build_array(gen_random_uuid()::text)
            when message_id is null or chain ->> -1 = message_id then chain
            else chain || to_jsonb(message_id)
        end as chain,
        (
            select operation_id
            from {operation_item} as item
            where item.letter = letter.id::text and item.outcome = 'pending' and item.operation_id is distinct from $2::bigint
        ) as busy_with,
        (
            select exchange
            from {subscription} as bound
            where $3::text is null and not $4::boolean and letter.exchange <> $10::text and letter.queue <> ''
                and bound.exchange = letter.exchange and bound.queue = letter.queue
            limit 1
        ) as stored
    from {dead_letter} as letter
    cross join lateral (
        select
            case
                when jsonb_typeof(tracking_ids) = 'array'
                    and not jsonb_path_exists(tracking_ids, 'strict $[*] ? (@.type() != "string")', silent => true)
                    then tracking_ids
                else '[]'
            end as chain
    ) as readable
    where id = any($1::bigint[])
),
judged as materialized (
    select *,
        case
            when status <> 'open' then array['skipped', 'already ' || status]
            when busy_with is not null then array['skipped', 'in operation ' || busy_with]
            when destination is not null and destination <> all($5::text[]) and stored is null
                then array[
                    'refused',
                    'the queue ' || destination || ' does not exist' || case when $10::text is null then ' in PostgreSQL' else '' end
                ]
            when created_at < now() - $6::interval then array['refused', '{too_old}']
            else array['done', '']
        end as verdict
    from wanted
),
delivered as (
    insert into {delivery} (
        exchange, queue, message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, hlc, requeue_count
    )
    select stored, destination, chain ->> -1, routing_key, body, content_type, headers, chain, ordering_key, hlc, requeue_count + 1
    from judged
    where verdict[1] = 'done' and stored is not null
    order by id
),
requeued as (
    insert into {table} (
        routing_key, body, content_type, headers, tracking_ids, ordering_key, hlc, requeue_count, target_queue
    )
    select routing_key, body, content_type,
        case
            when amqp is null then headers
            else coalesce(headers, '{}') || jsonb_build_object('x-outbox-amqp', amqp)
        end,
        chain, ordering_key, hlc, requeue_count + 1, destination
    from judged
    cross join lateral (
        select nullif(jsonb_strip_nulls(jsonb_build_object(
            'types', header_types,
            'properties', (
                select jsonb_object_agg(name, value)
                from jsonb_each(case when jsonb_typeof(properties) = 'object' then properties end) as property (name, value)
                where name in ('content_encoding', 'priority', 'correlation_id', 'reply_to', 'type', 'app_id')
                    -- The relay sets this one again.
                    and not (name = 'correlation_id' and value = chain -> 0)
            )
        )), '{}') as amqp
    ) as known
    where verdict[1] = 'done' and stored is null
    order by id
),
marked as (
    update {dead_letter} as letter
    set status = 'requeued', resolved_at = now(), resolved_by = $7, resolution = $9, message_id = chain ->> -1,
        tracking_ids = chain
    from judged
    where letter.id = judged.id and verdict[1] = 'done' and letter.id = any($1::bigint[])
),
recorded as (
    insert into {history} (fact, message_id, root_id, parent_id, routing_key, queue, component)
    select 'requeued', chain ->> -1, chain ->> 0, chain ->> -2, routing_key, destination, coalesce($7, '')
    from judged
    where $8::boolean and verdict[1] = 'done'
)
select id::text as id, verdict[1] as outcome, verdict[2] as reason, requeue_count + 1 as requeue_count, chain ->> -1 as message_id,
    destination
from judged

-- name: requeue_parked
-- In place, so that it keeps its position in its ordering key. The parameters are the same, but $9 is the exchange. `rival`: a newer row
-- with the same dedup key that is pending, or is requeued in the same statement. An older pending one is dropped when it is claimed.
with wanted as materialized (
    select parked.id, routing_key, created_at, requeue_count, sent_at, failed_at,
        coalesce(
            (
                select max(id)
                from {table} as other
                where other.tableoid = parked.tableoid and other.dedup_key = parked.dedup_key and other.id > parked.id
                    and other.sent_at is null and other.failed_at is null
            ),
            case
                when dedup_key is not null
                    then nullif(
                        max(parked.id) filter (where failed_at is not null) over (partition by parked.tableoid, dedup_key), parked.id
                    )
            end
        ) as rival,
        case
            when $3::text is not null then $3
            when not $4::boolean then target_queue
        end as destination,
        case
            when jsonb_typeof(parked.tracking_ids) = 'array' and parked.tracking_ids <> '[]'
                and not jsonb_path_exists(parked.tracking_ids, 'strict $[*] ? (@.type() != "string")', silent => true)
                then parked.tracking_ids
            else jsonb_build_array(md5('{table}:' || parked.id)::uuid::text)
        end as chain,
        (
            select operation_id
            from {operation_item} as item
            where item.letter = 'outbox-' || parked.id and item.outcome = 'pending' and item.operation_id is distinct from $2::bigint
        ) as busy_with
    from {table} as parked
    where id = any($1::bigint[])
),
judged as materialized (
    select *,
        case
            when sent_at is not null then array['skipped', 'already sent']
            when failed_at is null then array['skipped', 'already requeued']
            when busy_with is not null then array['skipped', 'in operation ' || busy_with]
            when rival is not null then array['refused', 'outbox-' || rival || ' has its dedup key and stands for it: discard this one']
            when destination is not null and destination <> all($5::text[])
                then array[
                    'refused',
                    'the queue ' || destination || ' does not exist' || case when $9::text is null then ' in PostgreSQL' else '' end
                ]
            when created_at < now() - $6::interval then array['refused', '{too_old}']
            else array['done', '']
        end as verdict
    from wanted
),
requeued as (
    update {table} as parked
    set failed_at = null, attempts = 0, last_error = null, send_after = now(), requeue_count = parked.requeue_count + 1,
        target_queue = judged.destination
    from judged
    where parked.id = judged.id and verdict[1] = 'done' and parked.id = any($1::bigint[]) and parked.failed_at is not null
),
recorded as (
    insert into {history} (fact, message_id, root_id, parent_id, routing_key, queue, component)
    select 'requeued', chain ->> -1, chain ->> 0, chain ->> -2, routing_key, destination, coalesce($7, '')
    from judged
    where $8::boolean and verdict[1] = 'done'
)
select 'outbox-' || id as id, verdict[1] as outcome, verdict[2] as reason, requeue_count + 1 as requeue_count,
    chain ->> -1 as message_id, destination
from judged

-- name: discard_letters
with judged as materialized (
    select id,
        case
            when status <> 'open' then array['skipped', 'already ' || status]
            when busy_with is not null then array['skipped', 'in operation ' || busy_with]
            else array['done', '']
        end as verdict
    from (
        select letter.id, status,
            (
                select operation_id
                from {operation_item} as item
                where item.letter = letter.id::text and item.outcome = 'pending' and item.operation_id is distinct from $2::bigint
            ) as busy_with
        from {dead_letter} as letter
        where id = any($1::bigint[])
    ) as wanted
),
marked as (
    update {dead_letter} as letter
    set status = 'discarded', resolved_at = now(), resolved_by = $3, resolution = $4
    from judged
    where letter.id = judged.id and verdict[1] = 'done' and letter.id = any($1::bigint[])
)
select id::text as id, verdict[1] as outcome, verdict[2] as reason
from judged

-- name: discard_parked
-- Moves the row from the outbox to the discarded dead letters, so that rows behind it can go on. It gets the error type, the fingerprint
-- and the search text that dead_letter_list.sql shows for a parked row.
with judged as materialized (
    select id,
        case
            when sent_at is not null then array['skipped', 'already sent']
            when failed_at is null then array['skipped', 'already requeued']
            when busy_with is not null then array['skipped', 'in operation ' || busy_with]
            else array['done', '']
        end as verdict
    from (
        select parked.id, sent_at, failed_at,
            (
                select operation_id
                from {operation_item} as item
                where item.letter = 'outbox-' || parked.id and item.outcome = 'pending'
                    and item.operation_id is distinct from $2::bigint
            ) as busy_with
        from {table} as parked
        where id = any($1::bigint[])
    ) as wanted
),
gone as (
    delete from {table} as parked
    using judged
    where parked.id = judged.id and verdict[1] = 'done' and parked.id = any($1::bigint[]) and parked.failed_at is not null
    returning parked.*,
        case
            when jsonb_typeof(parked.tracking_ids) = 'array' and parked.tracking_ids <> '[]'
                and not jsonb_path_exists(parked.tracking_ids, 'strict $[*] ? (@.type() != "string")', silent => true)
                then parked.tracking_ids
            else jsonb_build_array(md5('{table}:' || parked.id)::uuid::text)
        end as chain,
        case
            when parked.tableoid <> '{table}'::regclass
                then (select substr(relname, length('{table_name}') + 2) from pg_class where oid = parked.tableoid)
        end as destination,
        'discarded' as status, $3::text as done_by, $4::text as done_because
),
discarded as (
    insert into {dead_letter} (
        source, exchange, queue, message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, created_at,
        attempt, requeue_count, cause, exception_type, exception_message, exception_traceback, failed_at, first_failed_at, hlc,
        fingerprint, search, status, resolved_at, resolved_by, resolution, destination
    )
    select 'relay', '', coalesce(target_queue, ''), chain ->> -1, routing_key, body, content_type, headers, chain, ordering_key,
        created_at,
        -- A message may be parked for several destinations, and their dead letters differ in the attempt, which is a part of the identity.
        row_number() over same - 1 + greatest(max(attempts) over same, 1, (
            select max(attempt) + 1
            from {dead_letter} as other
            where other.message_id = chain ->> -1 and other.requeue_count = gone.requeue_count and other.source = 'relay'
                and other.destination is distinct from gone.destination
        )),
        requeue_count, 'refused',
        split_part(coalesce(last_error, ''), ': ', 1),
        substr(last_error, length(split_part(coalesce(last_error, ''), ': ', 1)) + 3), '', failed_at, failed_at, hlc,
        lpad(to_hex(hashtextextended(
            regexp_replace(coalesce(last_error, ''), '''[^'']*''|"[^"]*"|[0-9a-fA-F]{8,}|[0-9]+', '#', 'g'), 0
        )), 16, '0'),
        to_tsvector('simple', concat_ws(' ', routing_key, target_queue, tracking_ids::text, regexp_replace(
            left(last_error, 4000), '(=|:|\mbearer|\mbasic)\s*("[^"]*"|''[^'']*''|\S+)', '\1', 'gi'
        ))),
        status, now(), done_by, done_because, destination
    from gone
    window same as (partition by chain ->> -1, requeue_count order by id)
    order by id
    on conflict do nothing
)
select 'outbox-' || judged.id as id, verdict[1] as outcome, verdict[2] as reason, gone.ordering_key
from judged
left join gone on gone.id = judged.id

-- name: restore_letters
with judged as materialized (
    select id,
        case
            when status = 'requeued' then array['skipped', 'already requeued']
            when status = 'open' then array['skipped', 'open already']
            when busy_with is not null then array['skipped', 'in operation ' || busy_with]
            else array['done', '']
        end as verdict
    from (
        select letter.id, status,
            (
                select operation_id
                from {operation_item} as item
                where item.letter = letter.id::text and item.outcome = 'pending' and item.operation_id is distinct from $2::bigint
            ) as busy_with
        from {dead_letter} as letter
        where id = any($1::bigint[])
    ) as wanted
),
marked as (
    update {dead_letter} as letter
    set status = 'open', resolved_at = null, resolved_by = null, resolution = null
    from judged
    where letter.id = judged.id and verdict[1] = 'done' and letter.id = any($1::bigint[])
)
select id::text as id, verdict[1] as outcome, verdict[2] as reason
from judged

-- name: restore_parked
select 'outbox-' || id as id, 'skipped' as outcome,
    case when failed_at is null then 'not a dead letter' else 'open already' end as reason
from {table}
where id = any($1::bigint[]) and ($2::bigint is null or true)

-- name: purge_letters
with judged as materialized (
    select id,
        case
            when busy_with is not null then array['skipped', 'in operation ' || busy_with]
            when status <> 'discarded' and not $3::boolean
                then array['refused', 'it is ' || status || ': only what was discarded is purged, unless you force it']
            else array['done', '']
        end as verdict
    from (
        select letter.id, status,
            (
                select operation_id
                from {operation_item} as item
                where item.letter = letter.id::text and item.outcome = 'pending' and item.operation_id is distinct from $2::bigint
            ) as busy_with
        from {dead_letter} as letter
        where id = any($1::bigint[])
    ) as wanted
),
purged as (
    delete from {dead_letter} as letter
    using judged
    where letter.id = judged.id and verdict[1] = 'done' and letter.id = any($1::bigint[])
)
select id::text as id, verdict[1] as outcome, verdict[2] as reason
from judged

-- name: purge_parked
with judged as materialized (
    select id,
        case
            when failed_at is null then array['skipped', 'not a dead letter']
            when busy_with is not null then array['skipped', 'in operation ' || busy_with]
            when not $3::boolean
                then array['refused', 'it is open: only what was discarded is purged, unless you force it']
            else array['done', '']
        end as verdict
    from (
        select parked.id, failed_at,
            (
                select operation_id
                from {operation_item} as item
                where item.letter = 'outbox-' || parked.id and item.outcome = 'pending'
                    and item.operation_id is distinct from $2::bigint
            ) as busy_with
        from {table} as parked
        where id = any($1::bigint[])
    ) as wanted
),
purged as (
    delete from {table} as parked
    using judged
    where parked.id = judged.id and verdict[1] = 'done' and parked.id = any($1::bigint[]) and parked.failed_at is not null
    returning parked.id, ordering_key
)
select 'outbox-' || judged.id as id, verdict[1] as outcome, verdict[2] as reason, ordering_key
from judged
left join purged on purged.id = judged.id

-- name: letter_to_edit
select version, status, queue, routing_key, message_id, tracking_ids::text, exception_type, exception_message, body,
    content_type, headers::text
from {dead_letter}
where id = $1

-- name: edit_letter
-- Saves the replaced version as an edition. $7 and $8: the new preview and search text.
with kept as (
    insert into {edition} (dead_letter_id, version, body, content_type, headers, replaced_by)
    select id, version, body, content_type, headers, $6
    from {dead_letter}
    where id = $1 and version = $2
    returning dead_letter_id
)
update {dead_letter} as letter
set version = letter.version + 1, body = $3, content_type = $4, headers = cast($5::text as jsonb),
    header_types = case when letter.headers is not distinct from cast($5::text as jsonb) then letter.header_types end,
    preview = $7, search = to_tsvector('simple', $8)
from kept
where letter.id = kept.dead_letter_id

-- name: copy_parked
-- Keeps the original of an edited parked row as a dead letter. Returns a null id if that failure is recorded already.
with gone as (
    select parked.*,
        case
            when jsonb_typeof(parked.tracking_ids) = 'array' and parked.tracking_ids <> '[]'
                and not jsonb_path_exists(parked.tracking_ids, 'strict $[*] ? (@.type() != "string")', silent => true)
                then parked.tracking_ids
            else jsonb_build_array(md5('{table}:' || parked.id)::uuid::text)
        end as chain,
        case
            when parked.tableoid <> '{table}'::regclass
                then (select substr(relname, length('{table_name}') + 2) from pg_class where oid = parked.tableoid)
        end as destination,
        'requeued' as status, $2::text as done_by, $3::text as done_because
    from {table} as parked
    where id = $1 and sent_at is null and failed_at is not null
),
copy as (
    insert into {dead_letter} (
        source, exchange, queue, message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, created_at,
        attempt, requeue_count, cause, exception_type, exception_message, exception_traceback, failed_at, first_failed_at, hlc,
        fingerprint, search, status, resolved_at, resolved_by, resolution, destination
    )
    select 'relay', '', coalesce(target_queue, ''), chain ->> -1, routing_key, body, content_type, headers, chain, ordering_key,
        created_at,
        -- As in `discard_parked`.
        greatest(attempts, 1, (
            select max(attempt) + 1
            from {dead_letter} as other
            where other.message_id = chain ->> -1 and other.requeue_count = gone.requeue_count and other.source = 'relay'
                and other.destination is distinct from gone.destination
        )),
        requeue_count, 'refused',
        split_part(coalesce(last_error, ''), ': ', 1),
        substr(last_error, length(split_part(coalesce(last_error, ''), ': ', 1)) + 3), '', failed_at, failed_at, hlc,
        lpad(to_hex(hashtextextended(
            regexp_replace(coalesce(last_error, ''), '''[^'']*''|"[^"]*"|[0-9a-fA-F]{8,}|[0-9]+', '#', 'g'), 0
        )), 16, '0'),
        to_tsvector('simple', concat_ws(' ', routing_key, target_queue, tracking_ids::text, regexp_replace(
            left(last_error, 4000), '(=|:|\mbearer|\mbasic)\s*("[^"]*"|''[^'']*''|\S+)', '\1', 'gi'
        ))),
        status, now(), done_by, done_because, destination
    from gone
    on conflict do nothing
    returning id
)
select copy.id, gone.requeue_count + 1 as version
from gone
left join copy on true

-- name: edit_parked
update {table}
set body = $2, content_type = $3, headers = cast($4::text as jsonb)
where id = $1 and sent_at is null and failed_at is not null

-- name: release_lanes
-- Makes the first row of each key due, if it waited for a row that is gone and is not parked. A row in flight needs no release. The repair
-- of the relays releases rows behind one that a publisher is withdrawing.
update {table}
set send_after = now(), last_error = null
where id = any(array(
    select id
    from {table}
    where last_error = 'blocked' and failed_at is null and id = any(array(
        select head.id
        from (select distinct hashtextextended(key, 0) as lane from unnest($1::text[]) as given (key)) as touched
        cross join (
            select '{table}'::regclass::oid as id
            union all
            select inhrelid from pg_inherits where inhparent = '{table}'::regclass
        ) as destination
        cross join lateral (
            select id
            from {table}
            where tableoid = destination.id and sent_at is null and ordering_key is not null
                and hashtextextended(ordering_key, 0) = touched.lane
            order by id
            limit 1
        ) as head
    ))
    for no key update skip locked
))

-- name: ring
-- Notifies after updates made rows due: the trigger fires on inserts only. Runs once a batch, so it need not check whether anyone sleeps.
select pg_catalog.pg_notify('outbox_' || encode(substr(sha256(convert_to(nspname || '.' || relname, 'UTF8')), 1, 12), 'hex'), '')
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.oid = '{table}'::regclass
    or c.oid in (select inhrelid from pg_catalog.pg_inherits where inhparent = '{table}'::regclass)

-- name: has_queue
-- Whether a worker has consumed the queue, with PostgreSQL as the broker.
select exists(select from {subscription} where queue = $1)
