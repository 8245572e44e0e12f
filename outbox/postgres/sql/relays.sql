-- name: serialize
-- Of two relays that start at once, the second waits until the first has recorded where it sends. The lock ends with the transaction, so
-- that it works behind transaction poolers, and the server ends that of a relay that is frozen.
select set_config('synchronous_commit', 'off', true), set_config('idle_in_transaction_session_timeout', '5s', true),
    pg_advisory_xact_lock(hashtextextended('outbox relays of ' || '{table}'::regclass::oid, 0))

-- name: other
-- A running relay of the same outbox table that does not send to $1.
select name, destination, held_until
from {relay}
where outbox_table = '{table}'::regclass::oid and not refused and destination <> $1 and held_until >= clock_timestamp()
order by held_until desc, id
limit 1

-- name: hold
-- Records for the time $4 that the relay $1 sends to $2.
insert into {relay} as relay (id, outbox_table, destination, name, held_until)
values ($1, '{table}'::regclass::oid, $2, $3, clock_timestamp() + $4::interval)
on conflict (id) do update
set held_until = excluded.held_until

-- name: extend
-- Extends the record of the relay {id}, unless it ends within {spare_seconds} seconds or another relay sends elsewhere. One string without
-- parameters takes one round trip, also behind a transaction pooler. It needs no lock: while a record is valid, no relay that sends elsewhere gets
-- one. If one did nevertheless, because this statement took longer than the record was valid, the next look finds it.
select set_config('synchronous_commit', 'off', true);
update {relay} as own
set held_until = clock_timestamp() + interval '{held_seconds} seconds'
where id = '{id}' and not refused and held_until > clock_timestamp() + interval '{spare_seconds} seconds'
    and not exists (
        select
        from {relay} as other
        where other.outbox_table = own.outbox_table and not other.refused and other.destination <> own.destination
            and other.held_until >= clock_timestamp()
    )

-- name: refuse
-- Records for the time $4 that the relay $1 did not start, because others do not send to $2.
insert into {relay} (id, outbox_table, destination, name, held_until, refused)
values ($1, '{table}'::regclass::oid, $2, $3, clock_timestamp() + $4::interval, true)
on conflict (id) do update
set held_until = excluded.held_until, refused = true

-- name: forget
-- Deletes rows that have ended, and records of earlier starts of the relay $1.
delete from {relay}
where held_until < clock_timestamp() or (refused and name = $1 and outbox_table = '{table}'::regclass::oid)

-- name: release
delete from {relay}
where id = $1 and not refused

-- name: list
select name, destination, refused
from {relay}
where outbox_table = '{table}'::regclass::oid and held_until >= clock_timestamp()
order by refused, name, id
limit 1000
