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

-- name: cancel
-- Under the lock of the dedup key. Answers with the rows that were withdrawn.
with pending as materialized (
    select id
    from {table}
    where dedup_key is not null and sent_at is null and failed_at is null
        and dedup_key = any(cast({dedup_key} as text[]))
    for update skip locked
)
delete from {table}
where id = any(array(select id from pending))
returning id
