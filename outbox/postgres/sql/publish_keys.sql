Publishers of one key, and the pending row with it.

A row is in flight if, and only if, it is locked `for update`: claims take this lock, and nothing else takes it on a pending row.
Publishers therefore look for pending rows with `for key share skip locked`, which conflicts only with a claim or a deletion. All other
changes of a pending row (mark it as blocked, release it, make it a probe, keep a head in the outbox) are bookkeeping, and take at most
the lock of an update, `for no key update`. A publisher that withdraws a row waits for bookkeeping: a relay commits it without waiting
for anything, and an operator or another publisher holds it until they commit. No claim gets in between, because the share lock
prevents it.

-- name: lock
-- Makes publishers of one key wait for each other until their transactions end. A separate statement: the next one has a new snapshot, and
-- sees what the publisher before has committed. All batches take the locks in the same order, so that they cannot deadlock. Relays do
-- not use these locks, so no publisher waits for a relay.
select count(pg_advisory_xact_lock(lock_key))
from (
    select hashtextextended(key, hashtextextended('outbox ordering_key', cast(cast('{table}' as regclass) as bigint))) as lock_key
    from unnest(cast({ordering_key} as text[])) as key
    union
    select hashtextextended(key, hashtextextended('outbox dedup_key', cast(cast('{table}' as regclass) as bigint))) as lock_key
    from unnest(cast({dedup_key} as text[])) as key
    order by lock_key
) as sorted

-- name: lock_everywhere
-- As `lock`, for one dedup key in all destinations, in the order in which a publisher writes to them: that of their names.
select count(pg_advisory_xact_lock(lock_key))
from (
    select hashtextextended(key, hashtextextended('outbox dedup_key', cast(destination.id as bigint))) as lock_key
    from unnest(cast({dedup_key} as text[])) as key
    cross join (
        select cast(cast('{table}' as regclass) as oid) as id, 'default' as name
        union all
        select child.oid, substr(child.relname, length(parent.relname) + 2)
        from pg_inherits
        join pg_class as child on child.oid = inhrelid
        join pg_class as parent on parent.oid = inhparent
        where inhparent = cast('{table}' as regclass)
    ) as destination
    order by destination.name collate "C"
) as sorted

-- name: released
-- Makes the row after a withdrawn row of its ordering key due, if no other row for its destination is before it. A relay may have marked
-- that row just before the withdrawal, which this snapshot is too old to see; then the repair of the relays releases it.
released as (
    update {table}
    set last_error = null, send_after = now()
    where id = any(array(
        select id
        from {table}
        where sent_at is null and failed_at is null and last_error = 'blocked' and id = any(array(
            select first.id
            from (
                select distinct destination, hashtextextended(ordering_key, 0) as number
                from withdrawn
                where ordering_key is not null
            ) as lane
            cross join lateral (
                select id
                from {table}
                where tableoid = lane.destination and sent_at is null and ordering_key is not null
                    and hashtextextended(ordering_key, 0) = lane.number and id <> all(array(select id from withdrawn))
                order by hashtextextended(ordering_key, 0), id
                limit 1
            ) as first
        ))
        for no key update skip locked
    ))
    returning id
)

-- name: cancel
-- Requires the locks of the dedup key. Looks at the rows of all destinations, and returns a row for each withdrawn row that says whether
-- another row is due instead. The deletion waits for bookkeeping and checks the row again afterwards, because that may have parked it.
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
    returning tableoid as destination, id, ordering_key
),
{released}
select exists (select from released)
from withdrawn

-- name: ring
-- Wakes sleeping relays when the transaction commits: runs the trigger on inserts, which fires even without rows, and notifies those of
-- other destinations, unless the doorbell is off, as the trigger does.
with rung as (
    insert into {table} (routing_key, body)
    select '', ''
    where false
)
select pg_notify('outbox_' || encode(substr(sha256(convert_to(nspname || '.' || relname, 'UTF8')), 1, 12), 'hex'), '')
from pg_inherits
join pg_class as c on c.oid = inhrelid
join pg_namespace as n on n.oid = c.relnamespace
where inhparent = cast('{table}' as regclass) and coalesce(current_setting('outbox.doorbell', true), '') <> 'off'
