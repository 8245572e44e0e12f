-- name: control_ring
-- Notifies all components when the beginning or the end of a pause is committed (docs/decisions/0145-pauses-are-notified.md). The channel
-- is that of `BellName.of`, derived from the table's current schema and name. Pauses are rare, so this does not check for listeners.
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
-- One row per running relay, with the destination of its outbox table's messages, valid until `held_until` unless renewed. All running
-- relays have the same destination; a relay with another one is refused. Destinations contain no passwords.
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
