-- name: serialize
-- Two relays that start at once see each other: the second waits until the first has said where it sends. Ends with the transaction,
-- so that it works behind poolers that share sessions.
select set_config('synchronous_commit', 'off', true), pg_advisory_xact_lock(hashtextextended('outbox relays of ' || '{table}'::regclass::oid, 0))

-- name: other
-- A relay of the same outbox table that runs and sends elsewhere than $1.
select name, destination, held_until
from {relay}
where outbox_table = '{table}'::regclass::oid and not refused and destination <> $1 and held_until >= clock_timestamp()
order by held_until desc, id
limit 1

-- name: hold
-- Says that the relay $1 sends to $2, for $4 more.
insert into {relay} as relay (id, outbox_table, destination, name, held_until)
values ($1, '{table}'::regclass::oid, $2, $3, clock_timestamp() + $4::interval)
on conflict (id) do update
set held_until = excluded.held_until

-- name: refuse
-- Says for $4 that the relay $1 did not start, because others send elsewhere than to $2.
insert into {relay} (id, outbox_table, destination, name, held_until, refused)
values ($1, '{table}'::regclass::oid, $2, $3, clock_timestamp() + $4::interval, true)
on conflict (id) do update
set held_until = excluded.held_until, refused = true

-- name: forget
-- Rows that have ended, and what was said of earlier starts of the relay $1.
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
