-- name: drop_alert_delivery
drop table if exists {alert_delivery}

-- name: drop_alert
drop table if exists {alert}

-- name: drop_history_queue_index
do $downgrade$
declare
    dropped regclass;
begin
    for dropped in
        select i.indexrelid
        from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where i.indrelid = to_regclass('{history}') and c.relname = '{history_queue_index_name}'
    loop
        execute 'drop index ' || dropped;
    end loop;
end
$downgrade$

-- name: drop_history_keys
alter table {history} drop column if exists keys

-- name: drop_revoked_token
drop table if exists {revoked_token}

-- name: end_sessions_of_providers
-- The previous release takes every session for one of a token.
delete from {session} where role is not null

-- name: drop_session_role
alter table {session} drop column if exists role

-- name: drop_requeue_policy
drop table if exists {requeue_policy}

-- name: drop_group_mark
drop table if exists {group_mark}

-- name: drop_dead_letter_service_version
alter table {dead_letter} drop column if exists service_version

-- name: drop_component_service_version
alter table {component} drop column if exists service_version
