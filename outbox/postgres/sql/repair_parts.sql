Parts of the statements of repair.sql and operations.sql.

-- name: digest
-- Which letters these are, and in which state: equal for the same ones in any order, without keeping or sorting them.
md5(coalesce(sum(hashtextextended(concat_ws(' ', letter, version, status, extract(epoch from failed_at)), 0)::numeric), 0)::text)

-- name: readable
-- The ids of a letter's message, if they can be read.
case
    when jsonb_typeof(tracking_ids) = 'array'
        and not jsonb_path_exists(tracking_ids, 'strict $[*] ? (@.type() != "string")', silent => true)
        then tracking_ids
    else '[]'
end

-- name: readable_row
-- A row without a readable id has one that depends on nothing but the row.
case
    when jsonb_typeof(parked.tracking_ids) = 'array' and parked.tracking_ids <> '[]'
        and not jsonb_path_exists(parked.tracking_ids, 'strict $[*] ? (@.type() != "string")', silent => true)
        then parked.tracking_ids
    else jsonb_build_array(md5('{table}:' || parked.id)::uuid::text)
end

-- name: busy
(
    select operation_id
    from {operation_item} as item
    where item.letter = letter.id::text and item.outcome = 'pending' and item.operation_id is distinct from $2::bigint
) as busy_with

-- name: busy_parked
(
    select operation_id
    from {operation_item} as item
    where item.letter = 'outbox-' || parked.id and item.outcome = 'pending' and item.operation_id is distinct from $2::bigint
) as busy_with

-- name: recorded
recorded as (
    insert into {history} (fact, message_id, root_id, parent_id, routing_key, queue, component)
    select 'requeued', chain ->> -1, chain ->> 0, chain ->> -2, routing_key, destination, coalesce($7, '')
    from judged
    where $8::boolean and verdict[1] = 'done'
)

-- name: copied
-- The dead letters that the rows of `gone` become.
insert into {dead_letter} (
    source, exchange, queue, message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, created_at,
    attempt, requeue_count, cause, exception_type, exception_message, exception_traceback, failed_at, first_failed_at, hlc,
    fingerprint, search, status, resolved_at, resolved_by, resolution
)
select 'relay', '', coalesce(target_queue, ''), chain ->> -1, routing_key, body, content_type, headers, chain, ordering_key,
    created_at, greatest(attempts, 1), requeue_count, 'refused',
    {parked_type}, substr(last_error, length({parked_type}) + 3), '', failed_at, failed_at, hlc, {parked_fingerprint},
    {parked_search}, fate, now(), done_by, done_because
from gone
on conflict do nothing

-- name: operation_columns
id, action, state, selector::text, options::text, reason, requested_by, created_at, updated_at, finished_at, continue_at,
    canary_since, canary_until, total, done, waiting, retrying, handled, failed, stopped_because

-- name: operation_counts
-- Of the outcomes that few letters come to. What was done is counted as it is done, and what is left is to be done. `late`: of what
-- failed again and has not been looked at since, what it was taken for, and how many had not failed before.
(
    select coalesce(json_object_agg(outcome, count), '{}')::text
    from (
        select outcome, count(*)
        from {operation_item}
        where operation_id = id and outcome in ('skipped', 'refused', 'not found', 'died again')
        group by outcome
    ) as counted
) as counts,
(
    select json_build_object(
        'waiting', count(*) filter (where result = 'waiting'),
        'retrying', count(*) filter (where result = 'retrying'),
        'handled', count(*) filter (where result = 'handled'),
        'failed', count(*) filter (where failed_attempts = 0)
    )::text
    from {operation_item}
    where operation_id = id and outcome = 'died again' and check_at is not null
) as late
