-- name: control_ring
-- Tells every component of a pause or its end, when it is committed (docs/decisions/0145-pauses-are-notified.md). The channel is that
-- of `BellName.of`, made from where the table is now. Pauses are rare, so this notifies whether or not a component listens.
create or replace function {control_ring_function}() returns trigger
    language plpgsql
    set search_path = pg_catalog, pg_temp
as $ring${control_ring_body}$ring$

-- name: control_ring_trigger
create or replace trigger {control_ring_trigger} after insert or update or delete or truncate on {control}
    for each statement execute function {control_ring_function}()

-- name: control_shape
('trigger', '{control_ring_trigger_name}', 'enabled')

-- name: relay_table
-- One row is one relay that runs, and where it sends the messages of its outbox table; it is held until then, unless it says so again.
-- All that run send to one place: another one is refused. There is no address with a password in it.
create table if not exists {relay} (
    id uuid not null,
    outbox_table oid not null,
    destination text not null,
    name text not null,
    held_until timestamptz not null,
    refused boolean not null default false,
    constraint {relay_primary_key} primary key (id)
)

-- name: relay_shape
('column', 'id', 'uuid not null'),
('column', 'outbox_table', 'oid not null'),
('column', 'destination', 'text not null'),
('column', 'name', 'text not null'),
('column', 'held_until', 'timestamp with time zone not null'),
('column', 'refused', 'boolean not null default'),
('constraint', '{relay_primary_key_name}', 'valid')
