Publishers of one key among themselves: no relay takes part in this, and none is waited for.

-- name: lock
-- Publishers of one key wait for each other until their transactions end, in a statement of its own: the next one sees what
-- whoever was before committed, where this one would still have its old snapshot. In one order for everybody, so that no two
-- batches wait for each other; the names of the locks are no relay's, so that nobody waits for one.
select count(pg_advisory_xact_lock(lock_key))
from (
    select hashtextextended(key, hashtextextended('outbox ordering_key', cast(cast('{table}' as regclass) as bigint))) as lock_key
    from unnest(cast({ordering_key} as text[])) as key
    union
    select hashtextextended(key, hashtextextended('outbox dedup_key', cast(cast('{table}' as regclass) as bigint))) as lock_key
    from unnest(cast({dedup_key} as text[])) as key
    order by lock_key
) as sorted

-- name: released
-- What waited for a withdrawn row of its ordering key is due, if nothing else is before it. A relay may be marking just that row;
-- then its housekeeping releases it.
released as (
    update {table}
    set last_error = null, send_after = now()
    where id = any(array(
        select id
        from {table}
        where sent_at is null and failed_at is null and last_error = 'blocked' and id = any(array(
            select first.id
            from (
                select distinct hashtextextended(ordering_key, 0) as number
                from withdrawn
                where ordering_key is not null
            ) as lane
            cross join lateral (
                select id
                from {table}
                where sent_at is null and ordering_key is not null and hashtextextended(ordering_key, 0) = lane.number
                    and id <> all(array(select id from withdrawn))
                order by hashtextextended(ordering_key, 0), id
                limit 1
            ) as first
        ))
        for update skip locked
    ))
    returning id
)

-- name: cancel
-- Under the lock of the dedup key. Answers with one row for each that was withdrawn: whether another one is due instead.
with pending as materialized (
    select id
    from {table}
    where dedup_key is not null and sent_at is null and failed_at is null
        and dedup_key = any(cast({dedup_key} as text[]))
    for update skip locked
),
withdrawn as (
    delete from {table}
    where id = any(array(select id from pending))
    returning id, ordering_key
),
{released}
select exists (select from released)
from withdrawn

-- name: ring
-- Wakes a relay that sleeps, when the transaction is committed: the trigger on inserts does, and does not count rows.
insert into {table} (routing_key, body)
select '', ''
where false
