Publishers of one key, and what is pending with it.

A row is in flight if, and only if, it is locked `for update`: claims take this lock, and nothing else does to a pending row.
Publishers therefore look for what is pending with `for key share skip locked`, which only a claim, or a deletion, keeps from its
row. What else is done to a pending row (marking it as blocked, releasing it, making it a probe, keeping a head where it is) is
bookkeeping, and takes at most the lock of an update, `for no key update`. Whoever withdraws a row waits for it: a relay's is
committed without waiting for anybody, and what an operator or another publisher released is theirs until they commit. No claim
gets in between, because the share keeps it away.

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
-- What waited for a withdrawn row of its ordering key is due, if nothing else is before it. A relay may have been marking just that
-- row until the withdrawal went through, which our snapshot is too old to see; then the relays' housekeeping releases it.
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
        for no key update skip locked
    ))
    returning id
)

-- name: cancel
-- Under the lock of the dedup key. Answers with one row for each that was withdrawn: whether another one is due instead. The
-- deletion waits for bookkeeping, and looks again afterwards, because that may have parked the row.
with pending as materialized (
    select id
    from {table}
    where dedup_key is not null and sent_at is null and failed_at is null
        and dedup_key = any(cast({dedup_key} as text[]))
    for key share skip locked
),
withdrawn as (
    delete from {table}
    where id = any(array(select id from pending)) and sent_at is null and failed_at is null
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
