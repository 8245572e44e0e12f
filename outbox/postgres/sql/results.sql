Results of messages that operations have requeued. A separate statement locks the items first, so that the next one sees them as they are
if one of their messages failed again meanwhile.

-- name: in_order
-- `due` reads the first entries of the index of times. With statistics from before the requeue, the planner expects no rows and might as well
-- sort all entries of another index, for each batch again. Up to PostgreSQL 17, an option that is off makes it compile the statement.
set local enable_sort = off;
set local jit = off

-- name: in_any_order
set local enable_sort to default;
set local jit to default

-- name: any_due
-- Whether `due` finds any, without the transaction that locks them.
set local enable_sort = off;
set local jit = off;
select
from {operation_item}
where check_at <= now()
order by check_at
limit 1

-- name: due
-- Locks items of all operations whose result is to be looked for. Skips those that another process is looking for.
select operation_id, position
from {operation_item}
where check_at <= now()
order by check_at
limit $1
for update skip locked

-- name: due_of
-- As `due`, for the operation $2. $3: include items that are not due yet.
select operation_id, position
from {operation_item}
where operation_id = $2 and check_at is not null and ($3::boolean or check_at <= now())
order by check_at
limit $1
for update skip locked

-- name: look
-- $1, $2: the items. $3: the time after which no result is looked for. With several queues, a message is handled when all queues that
-- reported it have handled it. If it is a dead letter or parked again, `requeue_count` shows after which requeue that happened. Items
-- without a final result are looked for again after a tenth of the time since the requeue, at least a second. Items are looked up one
-- by one (`offset 0` keeps it so) and updated by position, whatever the statistics say.
with item as materialized (
    select item.*
    from unnest($1::bigint[], $2::integer[]) as given (operation_id, position)
    cross join lateral (
        select found.*, found.ctid as place
        from {operation_item} as found
        where found.operation_id = given.operation_id and found.position = given.position
        offset 0
    ) as item
),
heard as (
    select operation_id, position, coalesce(sum(by_queue.failed), 0) as failed, bool_or(by_queue.last = 'died') as is_dead,
        bool_and(by_queue.last in ('processed', 'duplicate')) as is_handled,
        (array_agg(by_queue.error order by by_queue.failed_at desc nulls last))[1] as error
    from item
    cross join lateral (
        select count(*) filter (where fact in ('retried', 'died')) as failed,
            max(at) filter (where fact in ('retried', 'died')) as failed_at,
            (array_agg(fact order by at desc))[1] as last,
            (
                array_agg(concat_ws(': ', nullif(error_type, ''), nullif(error_message, '')) order by at desc)
                filter (where fact in ('retried', 'died'))
            )[1] as error
        from {history} as history
        where hashtextextended(history.message_id, 0) = hashtextextended(item.message_id, 0)
            and history.message_id = item.message_id and history.at >= item.settled_at
            and (item.queue is null or history.queue = item.queue)
            and fact in ('processed', 'duplicate', 'retried', 'died')
        group by history.queue
    ) as by_queue
    group by operation_id, position
),
parked_again as materialized (
    select
        case
            when jsonb_typeof(parked.tracking_ids) = 'array' and parked.tracking_ids <> '[]'
                and not jsonb_path_exists(parked.tracking_ids, 'strict $[*] ? (@.type() != "string")', silent => true)
                then parked.tracking_ids
            else jsonb_build_array(md5('{table}:' || parked.id)::uuid::text)
        end ->> -1 as message_id, target_queue as queue, requeue_count, last_error as error
    from {table} as parked
    where failed_at >= (select min(settled_at) from item)
    order by failed_at desc
    limit 10000
),
seen as materialized (
    select item.*, coalesce(heard.failed, 0) as failed,
        coalesce(nullif(heard.error, ''), parked_again.error, letter.error) as error,
        case
            when item.outcome = 'died again' or heard.is_dead or parked_again.message_id is not null then 'failed again'
            when heard.is_handled or exists (
                select
                from {inbox} as inbox
                where inbox.queue = item.queue and inbox.message_id = item.message_id and processed_at >= item.settled_at
            ) then 'handled'
            when item.settled_at < now() - $3::interval then 'unknown'
            when heard.failed > 0 then 'retrying'
            else 'waiting'
        end as seen
    from item
    left join heard using (operation_id, position)
    left join parked_again on parked_again.message_id = item.message_id and parked_again.requeue_count = item.requeue_count
        and parked_again.queue is not distinct from item.queue
    left join lateral (
        select concat_ws(': ', exception_type, coalesce(shown_message, exception_message)) as error
        from {dead_letter} as letter
        where letter.id = case when item.letter ~ '^[0-9]{1,18}$' then item.letter::bigint end
            and letter.requeue_count = item.requeue_count
    ) as letter on item.outcome = 'died again'
),
judged as materialized (
    select distinct on (operation_id, position) *,
        case when seen = 'failed again' then greatest(failed, 1) else failed end as attempts
    from seen
),
noted as (
    update {operation_item} as item
    set outcome = case when seen = 'failed again' then 'died again' else item.outcome end,
        result = seen, failed_attempts = attempts,
        detail = case when seen <> 'handled' then left(error, 1000) end,
        check_at = case
            when seen in ('waiting', 'retrying')
                then now() + greatest(interval '1 second', least(interval '10 minutes', (now() - item.settled_at) / 10))
        end
    from judged
    where item.operation_id = judged.operation_id and item.position = judged.position
        and item.ctid = any(array(select place from judged))
        and (item.check_at <= now() or item.result is distinct from seen or item.failed_attempts <> attempts)
),
-- In order, so that two transactions that count for the same operations cannot deadlock.
counting as materialized (
    select id
    from {operation}
    where id = any(array(select operation_id from judged))
    order by id
    for no key update
),
added as (
    update {operation} as operation
    set waiting = operation.waiting + counted.waiting, retrying = operation.retrying + counted.retrying,
        handled = operation.handled + counted.handled, failed = operation.failed + counted.failed
    from (
        select operation_id, sum((seen = 'waiting')::integer - coalesce(result = 'waiting', false)::integer) as waiting,
            sum((seen = 'retrying')::integer - coalesce(result = 'retrying', false)::integer) as retrying,
            sum((seen = 'handled')::integer - coalesce(result = 'handled', false)::integer) as handled,
            sum((attempts > 0)::integer - (failed_attempts > 0)::integer) as failed
        from judged
        group by operation_id
    ) as counted
    join counting on counting.id = counted.operation_id
    where operation.id = counted.operation_id
        and (counted.waiting, counted.retrying, counted.handled, counted.failed) <> (0, 0, 0, 0)
)
select count(*) filter (where seen is distinct from result)
from judged
