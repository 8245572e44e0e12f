-- name: function
create or replace function {ring_function}() returns trigger
    language plpgsql
    set search_path = pg_catalog, pg_temp
as $ring${ring_body}$ring$

-- name: trigger
create or replace trigger {ring_trigger} after insert on {table}
    for each statement execute function {ring_function}()
