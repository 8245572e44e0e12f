What becomes of dead letters by a person's wish. Rows are locked first, in the order of their ids, in a statement of their own:
the next one then judges them as they are, whoever changed them meanwhile. A row whose tracking ids cannot
be read has an id that depends on nothing but the row. `busy_with` is the operation that still has to do with a letter, other than $2.

-- name: lock_letters
select from {dead_letter} where id = any($1::bigint[]) order by id for update

-- name: lock_dedup_keys
-- What is requeued is pending: publishers of its dedup key come before or after, with the lock of publish_keys.sql. Taken before
-- rows are locked, as publishers do.
select count(pg_advisory_xact_lock(lock_key))
from (
    select distinct
        hashtextextended(dedup_key, hashtextextended('outbox dedup_key', cast(cast('{table}' as regclass) as bigint))) as lock_key
    from {table}
    where id = any($1::bigint[]) and dedup_key is not null
    order by lock_key
) as sorted

-- name: lock_parked
-- None that is pending: it may be in flight, and nobody waits for a relay, nor takes a lock that looks like one.
select from {table} where id = any($1::bigint[]) and failed_at is not null order by id for update

-- name: destinations
-- The queues that letters and parked rows would go back to; empty for those that go where their routing key leads.
select distinct queue
from (
    select queue from {dead_letter} where id = any($1::bigint[])
    union all
    select target_queue from {table} where id = any($2::bigint[])
) as place
where queue <> ''

-- name: requeue_letters
-- $2: the operation that does it. $3: another queue. $4: by the routing key. $5: which queues exist. $6: the greatest age that is
-- requeued; null: any. $7: by whom. $8: whether history is written. $9: why.
--
-- A message without an id gets one, which the letter keeps, so that it is known if it comes back. Rows get their ids in the order
-- of the letters', which is that of their deaths. They are as old as the requeue: how long they were dead is no time in the
-- outbox. What AMQP knows of a message beyond JSON travels in a header that the relay reads.
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
        ) as busy_with
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
            when destination is not null and destination <> all($5::text[])
                then array['refused', 'the queue ' || destination || ' does not exist']
            when created_at < now() - $6::interval then array['refused', '{too_old}']
            else array['done', '']
        end as verdict
    from wanted
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
            )
        )), '{}') as amqp
    ) as known
    where verdict[1] = 'done'
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
-- In place, so that it keeps its place among those of its ordering key. The parameters are the same, without the last. `rival` has
-- the same dedup key and is pending, or is requeued with it and younger: only one of them may be pending.
with wanted as materialized (
    select parked.id, routing_key, created_at, requeue_count, sent_at, failed_at,
        coalesce(
            (
                select max(id)
                from {table} as other
                where other.dedup_key = parked.dedup_key and other.sent_at is null and other.failed_at is null
            ),
            case
                when dedup_key is not null
                    then nullif(max(parked.id) filter (where failed_at is not null) over (partition by dedup_key), parked.id)
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
                then array['refused', 'the queue ' || destination || ' does not exist']
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
-- It leaves the outbox, so that what waits for it goes on, and is a discarded dead letter from then on, with the kind of error, the
-- fingerprint and the search text that letters.sql shows of a parked row.
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
        'discarded' as fate, $3::text as done_by, $4::text as done_because
),
discarded as (
    insert into {dead_letter} (
        source, exchange, queue, message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, created_at,
        attempt, requeue_count, cause, exception_type, exception_message, exception_traceback, failed_at, first_failed_at, hlc,
        fingerprint, search, status, resolved_at, resolved_by, resolution
    )
    select 'relay', '', coalesce(target_queue, ''), chain ->> -1, routing_key, body, content_type, headers, chain, ordering_key,
        created_at, greatest(attempts, 1), requeue_count, 'refused',
        split_part(coalesce(last_error, ''), ': ', 1),
        substr(last_error, length(split_part(coalesce(last_error, ''), ': ', 1)) + 3), '', failed_at, failed_at, hlc,
        lpad(to_hex(hashtextextended(
            regexp_replace(coalesce(last_error, ''), '''[^'']*''|"[^"]*"|[0-9a-fA-F]{8,}|[0-9]+', '#', 'g'), 0
        )), 16, '0'),
        to_tsvector('simple', concat_ws(' ', routing_key, target_queue, tracking_ids::text, regexp_replace(
            left(last_error, 4000), '(=|:|\mbearer|\mbasic)\s*("[^"]*"|''[^'']*''|\S+)', '\1', 'gi'
        ))),
        fate, now(), done_by, done_because
    from gone
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
-- What is replaced becomes an edition. $7 and $8: what is shown and searched of it from now on.
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
-- A parked row that is edited leaves a dead letter behind, which keeps what it was; without an id: that death is on record already.
with gone as (
    select parked.*,
        case
            when jsonb_typeof(parked.tracking_ids) = 'array' and parked.tracking_ids <> '[]'
                and not jsonb_path_exists(parked.tracking_ids, 'strict $[*] ? (@.type() != "string")', silent => true)
                then parked.tracking_ids
            else jsonb_build_array(md5('{table}:' || parked.id)::uuid::text)
        end as chain,
        'requeued' as fate, $2::text as done_by, $3::text as done_because
    from {table} as parked
    where id = $1 and sent_at is null and failed_at is not null
),
copy as (
    insert into {dead_letter} (
        source, exchange, queue, message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, created_at,
        attempt, requeue_count, cause, exception_type, exception_message, exception_traceback, failed_at, first_failed_at, hlc,
        fingerprint, search, status, resolved_at, resolved_by, resolution
    )
    select 'relay', '', coalesce(target_queue, ''), chain ->> -1, routing_key, body, content_type, headers, chain, ordering_key,
        created_at, greatest(attempts, 1), requeue_count, 'refused',
        split_part(coalesce(last_error, ''), ': ', 1),
        substr(last_error, length(split_part(coalesce(last_error, ''), ': ', 1)) + 3), '', failed_at, failed_at, hlc,
        lpad(to_hex(hashtextextended(
            regexp_replace(coalesce(last_error, ''), '''[^'']*''|"[^"]*"|[0-9a-fA-F]{8,}|[0-9]+', '#', 'g'), 0
        )), 16, '0'),
        to_tsvector('simple', concat_ws(' ', routing_key, target_queue, tracking_ids::text, regexp_replace(
            left(last_error, 4000), '(=|:|\mbearer|\mbasic)\s*("[^"]*"|''[^'']*''|\S+)', '\1', 'gi'
        ))),
        fate, now(), done_by, done_because
    from gone
    on conflict do nothing
    returning id
)
select copy.id
from gone
left join copy on true

-- name: edit_parked
update {table}
set body = $2, content_type = $3, headers = cast($4::text as jsonb)
where id = $1 and sent_at is null and failed_at is not null

-- name: release_lanes
-- What waited for rows that are gone: the first of a key is due, unless it is parked itself. One that is on its way needs no
-- release; one that a publisher is withdrawing is released by the relays' housekeeping.
update {table}
set send_after = now(), last_error = null
where id = any(array(
    select id
    from {table}
    where last_error = 'blocked' and failed_at is null and id = any(array(
        select head.id
        from (select distinct hashtextextended(key, 0) as lane from unnest($1::text[]) as given (key)) as touched
        cross join lateral (
            select id
            from {table}
            where sent_at is null and ordering_key is not null and hashtextextended(ordering_key, 0) = touched.lane
            order by id
            limit 1
        ) as head
    ))
    for no key update skip locked
))

-- name: ring
-- For what became due by an update, which no trigger tells of: once a batch, so it may notify where no relay or worker sleeps.
select pg_catalog.pg_notify('outbox_' || encode(substr(sha256(convert_to(nspname || '.' || relname, 'UTF8')), 1, 12), 'hex'), '')
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.oid = '{table}'::regclass

-- name: has_queue
-- What a worker has consumed from, where PostgreSQL is the broker.
select exists(select from {subscription} where queue = $1)
