-- name: mark_one
-- Marks a message; no row if it was marked already. A transaction that marked it and has not ended is waited for, but no longer
-- than `patience`, and less than `statement_timeout`, which would look like an outage. Where that leaves a mark, the statements
-- that follow wait for locks as long as they would have before.
insert into {inbox} (queue, message_id)
select $1, $2
from (
    select
        set_config('outbox.lock_timeout', current_setting('lock_timeout'), true),
        set_config(
            'lock_timeout',
            least($3::int, 800 * nullif(extract(epoch from current_setting('statement_timeout')::interval), 0))::int::text,
            true
        )
) as waiting
on conflict do nothing
returning set_config('lock_timeout', current_setting('outbox.lock_timeout'), true)

-- name: mark_all
-- The same for several: those that were not marked before. All transactions mark in one order, so that none waits in a circle.
with waiting as materialized (
    select
        set_config('outbox.lock_timeout', current_setting('lock_timeout'), true),
        set_config(
            'lock_timeout',
            least({patience}, 800 * nullif(extract(epoch from current_setting('statement_timeout')::interval), 0))::int::text,
            true
        )
),
marked as (
    insert into {inbox} (queue, message_id)
    select {queue}, message_id
    from waiting, unnest(array[{message_ids}]) as given (message_id)
    order by message_id collate "C"
    on conflict do nothing
    returning message_id
)
-- Of the whole, so that it is evaluated after the last insert.
select array_agg(message_id), set_config('lock_timeout', current_setting('outbox.lock_timeout'), true)
from marked

-- name: same_transaction
-- Fails unless it is in the transaction that marked: in a later one for want of a parameter that is never set.
select case when current_setting('outbox.lock_timeout', true) <> '' then '' else current_setting('outbox.no_such_transaction') end

-- name: prune
-- The oldest marks that are too old, by way of the index on their age.
delete from {inbox}
where ctid = any (array(
    select ctid
    from {inbox}
    where processed_at < now() - $1::interval
    order by processed_at
    limit $2
    for update skip locked
))
