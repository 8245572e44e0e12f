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
