-- name: drop_operation_item
drop table if exists {operation_item}

-- name: drop_operation
drop table if exists {operation}

-- name: drop_edition
drop table if exists {edition}

-- name: drop_inbox
drop table if exists {inbox}

-- name: drop_history
drop table if exists {history}

-- name: drop_stats
drop table if exists {stats}

-- name: drop_component
drop table if exists {component}

-- name: drop_control
drop table if exists {control}

-- name: drop_lease
drop table if exists {lease}

-- name: drop_audit
drop table if exists {audit}

-- name: drop_session
drop table if exists {session}

-- name: drop_login_failure
drop table if exists {login_failure}

-- name: drop_confirmation
drop table if exists {confirmation}

-- name: drop_idempotency
drop table if exists {idempotency}

-- name: drop_group_note
drop table if exists {group_note}

-- name: drop_dead_letter_columns
-- Their indexes are dropped with them, and so are the next two.
alter table if exists {dead_letter}
    drop column if exists properties, drop column if exists header_types, drop column if exists failures,
    drop column if exists deaths, drop column if exists first_failed_at, drop column if exists fingerprint,
    drop column if exists worker, drop column if exists hlc, drop column if exists preview, drop column if exists search,
    drop column if exists version, drop column if exists resolved_at, drop column if exists resolved_by,
    drop column if exists resolution

-- name: drop_indexes
do $indexes$
declare
    dropped regclass;
begin
    for dropped in
        select i.indexrelid
        from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where i.indrelid in ({target}, {delivery_target}, {dead_letter_target}) and c.relname in (
            '{due_index_name}', '{ordered_due_index_name}', '{ordered_index_name}', '{blocked_index_name}',
            '{dedup_index_name}', '{delivery_ordered_index_name}', '{dead_letter_identity_index_name}',
            '{dead_letter_message_index_name}', '{dead_letter_listing_index_name}', '{dead_letter_open_index_name}',
            '{dead_letter_tracking_index_name}', '{dead_letter_resolved_index_name}', '{dead_letter_key_index_name}',
            '{dead_letter_long_key_index_name}', '{dead_letter_exception_index_name}'
        )
    loop
        execute 'drop index ' || dropped;
    end loop;
end
$indexes$

-- name: drop_delivery_columns
alter table if exists {delivery} drop column if exists hlc, drop column if exists failures

-- name: unblock
-- The previous release does not know blocked rows.
do $unblock$
begin
    if {target} is not null then
        execute 'update ' || {target} || ' set send_after = now(), last_error = null where last_error = ''blocked'' and sent_at is null'
            || ' and failed_at is null';
    end if;
end
$unblock$

-- name: drop_columns
alter table if exists {table}
    drop constraint if exists {check_requeue_count}, drop column if exists requeue_count, drop column if exists held_at

-- name: pending_index
do $pending$
begin
    if {target} is not null then
        create index if not exists {pending_index} on {table} (send_after, id) where sent_at is null and failed_at is null;
    end if;
end
$pending$
