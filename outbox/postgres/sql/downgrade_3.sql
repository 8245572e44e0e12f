-- name: drop_publish_function
drop function if exists {publish_function}(text, jsonb, jsonb, text, timestamptz, interval, jsonb)

-- name: drop_stalled_index
do $stalled$
declare
    dropped regclass;
begin
    for dropped in
        select i.indexrelid
        from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where i.indrelid = {target} and c.relname = '{stalled_index_name}'
    loop
        execute 'drop index ' || dropped;
    end loop;
end
$stalled$

-- name: release_stalled
-- The previous release does not know stalled routes.
do $stalled$
begin
    if {target} is not null then
        execute 'update ' || {target} || ' set send_after = now(), last_error = null, held_at = null where last_error = ''stalled'''
            || ' and sent_at is null and failed_at is null';
    end if;
end
$stalled$

-- name: drop_shown_message
alter table {dead_letter} drop column if exists shown_message

-- name: drop_control_ring_trigger
drop trigger if exists {control_ring_trigger} on {control}

-- name: drop_control_ring
drop function if exists {control_ring_function}()

-- name: drop_relay_table
drop table if exists {relay}

-- name: drop_audit_chain
alter table {audit} drop column if exists client_request_id, drop column if exists previous_hash, drop column if exists hash

-- name: drop_results
alter table {operation_item}
    drop column if exists message_id,
    drop column if exists queue,
    drop column if exists result,
    drop column if exists failed_attempts,
    drop column if exists check_at

-- name: drop_operation_results
alter table {operation}
    drop column if exists waiting,
    drop column if exists retrying,
    drop column if exists handled,
    drop column if exists failed,
    drop column if exists canary_since
