Dry runs: counts what an action would do.

-- name: plan
-- $1: the greatest age that is requeued. Of items with an ordering key of waiting messages, only dead letters count: parked rows keep their
-- position.
with wanted as materialized (
    select letter, kind, queue, exception_type, ordering_key, created_at, version, status, failed_at
    from (
        {selection}
    ) as meant
)
select count(*) as count,
    md5(coalesce(sum(
        hashtextextended(concat_ws(' ', letter, version, status, extract(epoch from failed_at)), 0)::numeric
    ), 0)::text) as digest,
    count(*) filter (where created_at < now() - $1::interval) as too_old,
    count(*) filter (where exists (
        select from {operation_item} as item where item.letter = wanted.letter and item.outcome = 'pending'
    )) as busy,
    count(*) filter (where kind = 0 and ordering_key is not null and exists (
        select
        from {table} as waiting
        where waiting.sent_at is null and waiting.ordering_key is not null
            and hashtextextended(waiting.ordering_key, 0) = hashtextextended(wanted.ordering_key, 0)
    )) as overtaken,
    (
        select coalesce(json_object_agg(queue, count), '{}')::text
        from (select queue, count(*) from wanted group by queue order by count desc, queue limit 50) as counted
    ) as by_queue,
    (
        select coalesce(json_object_agg(exception_type, count), '{}')::text
        from (select exception_type, count(*) from wanted group by 1 order by count desc, exception_type limit 50) as counted
    ) as by_exception
from wanted

-- name: stored_queues
-- Those of the queues $1 in which the database stores the messages of a source: of another exchange than $2.
select distinct queue
from {subscription}
where queue = any($1::text[]) and exchange <> $2

-- name: digest_of
select count(*) as count,
    md5(coalesce(sum(
        hashtextextended(concat_ws(' ', letter, version, status, extract(epoch from failed_at)), 0)::numeric
    ), 0)::text) as digest
from (
    {selection}
) as meant

-- name: silent_workers
-- Those of the queues $1 that a live worker consumes without reporting what it handled.
select consumer ->> 'queue' as queue, min(component.name) as worker
from {component} as component
cross join lateral jsonb_array_elements(case when jsonb_typeof(consumers) = 'array' then consumers else '[]' end) as consumer
where kind = 'worker' and stopped_at is null and seen_at >= clock_timestamp() - 6 * every
    and consumer ->> 'queue' = any($1::text[]) and consumer -> 'history' = 'false' and consumer -> 'inbox' = 'false'
group by consumer ->> 'queue'
order by 1
