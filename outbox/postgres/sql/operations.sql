Bulk operations on dead letters. Their items are fixed at creation and processed in batches.

-- name: take_turn
-- Only one operation is created at a time, so that no dead letter is in two.
select pg_catalog.pg_advisory_xact_lock('{operation}'::regclass::oid::bigint)

-- name: create
insert into {operation} (action, selector, options, reason, requested_by, continue_at)
values ($1, cast($2::text as jsonb), cast($3::text as jsonb), $4, $5, greatest($6::timestamptz, now()))
returning id

-- name: fix_letters
-- In the order of their creation, without items of other active operations. The digest identifies the dead letters and their states, in
-- any order, without storing or sorting them; planning.sql computes the same. It is computed here, because another statement would also
-- see rows that were committed meanwhile.
with wanted as materialized (
    select letter, kind, number, version, status, failed_at
    from (
        {selection}
    ) as meant
),
item as (
    insert into {operation_item} (operation_id, position, letter, outcome, detail, settled_at)
    select $1, row_number() over (order by kind, number), wanted.letter,
        case when other.operation_id is null then 'pending' else 'skipped' end,
        'in operation ' || other.operation_id,
        case when other.operation_id is not null then now() end
    from wanted
    left join {operation_item} as other on other.letter = wanted.letter and other.outcome = 'pending'
    returning outcome
)
select (select count(*) from item) as count,
    md5(coalesce(sum(
        hashtextextended(concat_ws(' ', letter, version, status, extract(epoch from failed_at)), 0)::numeric
    ), 0)::text) as digest
from wanted

-- name: created
-- An operation without items has ended.
update {operation}
set total = $2, state = case when pending then 'running' else 'finished' end, finished_at = case when not pending then now() end
from (select exists(select from {operation_item} where operation_id = $1 and outcome = 'pending') as pending) as item
where id = $1

-- name: operation
-- `counts`: numbers of the rarer outcomes. Done items are counted when they are done, and all others are pending.
-- `late`: items that failed again and were not looked at since, by the result recorded so far, and how many had not failed before.
select id, action, state, selector::text, options::text, reason, requested_by, created_at, updated_at, finished_at, continue_at,
    canary_since, canary_until, total, done, waiting, retrying, handled, failed, stopped_because,
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
from {operation}
where id = $1

-- name: operations
-- As `operation`, newest first. $1: only active ones.
select id, action, state, selector::text, options::text, reason, requested_by, created_at, updated_at, finished_at, continue_at,
    canary_since, canary_until, total, done, waiting, retrying, handled, failed, stopped_because,
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
from {operation}
where (not $1::boolean or finished_at is null) and ($3::bigint is null or id < $3)
order by id desc
limit $2

-- name: newer_operations
-- As `operations`, one page of those after the operation $3.
select *
from (
    select id, action, state, selector::text, options::text, reason, requested_by, created_at, updated_at, finished_at,
        continue_at, canary_since, canary_until, total, done, waiting, retrying, handled, failed, stopped_because,
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
    from {operation}
    where (not $1::boolean or finished_at is null) and id > $3::bigint
    order by id
    limit $2
) as page
order by id desc

-- name: items
select position, letter, outcome, detail, result, failed_attempts
from {operation_item}
where operation_id = $1 and position > $2 and ($3::text is null or outcome = $3)
order by position
limit $4

-- name: count_operations
-- Counted up to $2.
select count(*)
from (
    select
    from {operation}
    where not $1::boolean or finished_at is null
    limit $2
) as counted

-- name: items_in_turn
-- Items by outcome, in the order of $2, after the position $4 in the outcome with the index $3 in $2.
select position, letter, outcome, detail, result, failed_attempts, turn
from (select outcome, turn from unnest($2::text[]) with ordinality as wanted (outcome, turn) where turn >= $3::bigint) as wanted
cross join lateral (
    select position, letter, detail, result, failed_attempts
    from {operation_item} as item
    where operation_id = $1 and item.outcome = wanted.outcome
        and position > case when turn = $3::bigint then $4::bigint else 0 end
    order by position
    limit $5::bigint
) as item
order by turn, position
limit $5::bigint

-- name: items_in_turn_backwards
-- As `items_in_turn`, backwards from that position.
select position, letter, outcome, detail, result, failed_attempts, turn
from (select outcome, turn from unnest($2::text[]) with ordinality as wanted (outcome, turn) where turn <= $3::bigint) as wanted
cross join lateral (
    select position, letter, detail, result, failed_attempts
    from {operation_item} as item
    where operation_id = $1 and item.outcome = wanted.outcome
        and position < case when turn = $3::bigint then $4::bigint else 2147483648 end
    order by position desc
    limit $5::bigint
) as item
order by turn desc, position desc
limit $5::bigint

-- name: any_due
-- Whether `due` finds one, without the transaction that locks it.
select
from {operation}
where state = 'running' and continue_at <= now()
limit 1

-- name: due
select id, action, state, selector::text, options::text, reason, requested_by, created_at, updated_at, finished_at, continue_at,
    canary_since, canary_until, total, done, waiting, retrying, handled, failed, stopped_because,
    coalesce(canary_until <= now(), false) as is_canary_over
from {operation}
where state = 'running' and continue_at <= now() and ($1::bigint is null or id = $1)
order by continue_at, id
limit 1
for update skip locked

-- name: lock
select id, action, state, selector::text, options::text, reason, requested_by, created_at, updated_at, finished_at, continue_at,
    canary_since, canary_until, total, done, waiting, retrying, handled, failed, stopped_because
from {operation}
where id = $1 and state = 'running' and continue_at <= now()
for update skip locked

-- name: next_items
select position, letter
from {operation_item}
where operation_id = $1 and outcome = 'pending'
order by position
limit $2

-- name: settle_items
-- The results of requeued messages are looked for from then on.
update {operation_item} as item
set outcome = settled.outcome, detail = nullif(settled.detail, ''), requeue_count = settled.requeue_count, settled_at = now(),
    message_id = settled.message_id, queue = settled.queue, result = case when settled.message_id is not null then 'waiting' end,
    check_at = case when settled.message_id is not null then now() + interval '1 second' end
from unnest($2::integer[], $3::text[], $4::text[], $5::integer[], $6::text[], $7::text[])
    as settled (position, outcome, detail, requeue_count, message_id, queue)
where item.operation_id = $1 and item.position = settled.position

-- name: proceed
-- $2: how many items were done. $3: the pause for the rate limit; a delay of up to a second is made up for. $4: the longest wait for the
-- results of the canary, which is complete now. $5: the canary passed.
update {operation}
set updated_at = now(), done = done + $2, waiting = waiting + case when action = 'requeue' then $2 else 0 end,
    canary_since = case when $4::interval is null then canary_since else now() end,
    canary_until = case when $4 is not null then now() + $4 when $5::boolean then least(canary_until, now()) else canary_until end,
    continue_at = case
        when $4 is not null then now()
        when $3::interval is null then now()
        else greatest(continue_at, now() - interval '1 second') + $3
    end,
    state = case when pending then state else 'finished' end,
    finished_at = case when not pending then now() end
from (select exists(select from {operation_item} where operation_id = $1 and outcome = 'pending') as pending) as item
where id = $1

-- name: wait_for_canary
-- Soon at first, then after growing intervals.
update {operation}
set continue_at = now() + greatest(interval '250 milliseconds', least(interval '5 seconds', (now() - canary_since) / 10))
where id = $1

-- name: postpone
update {operation}
set continue_at = now() + $2::interval
where id = $1

-- name: pause
update {operation} set state = 'paused', updated_at = now() where id = $1 and state = 'running' returning id

-- name: resume
update {operation} set state = 'running', updated_at = now() where id = $1 and state = 'paused' returning id

-- name: end
-- $2: cancelled by an operator, or stopped automatically. $3: the reason.
update {operation}
set state = $2, stopped_because = $3, updated_at = now(), finished_at = now()
where id = $1 and state in ('running', 'paused')
returning id

-- name: skip_pending
update {operation_item}
set outcome = 'skipped', detail = $2, settled_at = now()
where operation_id = $1 and outcome = 'pending'
