-- name: shape
-- All parts of the tables $2 of schema $1 that migrations create, as (table, kind, name, definition), without the name of the schema. The
-- functions $3 belong to the first tables, one to each.
with wanted as (
    select c.oid, c.relname, c.reloptions, n.nspname
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relname = any($2::text[]) and c.relkind in ('r', 'p')
)
select wanted.relname::text, found.kind, found.name::text,
    replace(found.definition, quote_ident($1) || '.', '') as definition
from wanted
cross join lateral (
    select 'table' as kind, wanted.relname as name, '' as definition
    union all
    select 'storage', split_part(option, '=', 1), split_part(option, '=', 2)
    from unnest(wanted.reloptions) as option
    union all
    select 'column', a.attname,
        format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end
            || case when a.attidentity <> '' then ' generated as identity' else '' end
            || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
    from pg_catalog.pg_attribute a
    left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = wanted.oid and a.attnum > 0 and not a.attisdropped
    union all
    select 'constraint', k.conname, pg_get_constraintdef(k.oid) || case when k.convalidated then '' else ' not valid' end
    from pg_catalog.pg_constraint k
    where k.conrelid = wanted.oid and k.contype <> 'n'
    union all
    select 'index', c.relname, pg_get_indexdef(i.indexrelid) || case when i.indisvalid then '' else ' (invalid)' end
    from pg_catalog.pg_index i
    join pg_catalog.pg_class c on c.oid = i.indexrelid
    where i.indrelid = wanted.oid
    union all
    select 'trigger', t.tgname,
        pg_get_triggerdef(t.oid) || ' enabled ' || t.tgenabled::text || ' runs ' || p.prosrc || coalesce(p.proconfig::text, '')
    from pg_catalog.pg_trigger t
    join pg_catalog.pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = wanted.oid and not t.tgisinternal
    union all
    select 'function', p.proname, pg_get_function_arguments(p.oid) || ' runs ' || p.prosrc
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where n.nspname = $1 and p.proname = ($3::text[])[array_position($2::text[], wanted.relname::text)]
) as found

-- name: detached
-- Tables with a doorbell and all columns of the outbox table, and a name like that of a destination, which do not inherit from it. Another
-- outbox table with such a name has ids of its own.
select c.relname::text as name
from pg_catalog.pg_class target
join pg_catalog.pg_class c on c.relnamespace = target.relnamespace and c.relkind = 'r' and starts_with(c.relname, target.relname || '_')
where target.oid = {target}
    and not exists (select from pg_catalog.pg_inherits where inhrelid = c.oid and inhparent = target.oid)
    and exists (select from pg_catalog.pg_trigger where tgrelid = c.oid and not tgisinternal)
    and not exists (select from pg_catalog.pg_attribute where attrelid = c.oid and attname = 'id' and attidentity <> '')
    and not exists (
        select attname from pg_catalog.pg_attribute where attrelid = target.oid and attnum > 0 and not attisdropped
        except
        select attname from pg_catalog.pg_attribute where attrelid = c.oid
    )
order by 1

-- name: settings
select name, setting, unit
from pg_catalog.pg_settings
where name = any($1::text[])

-- name: server
select current_setting('server_version_num')::integer as version_number, current_setting('server_version') as version,
    current_setting('server_encoding') as encoding, current_user::text as role, current_database()::text as database,
    extract(epoch from clock_timestamp())::float8 as clock, current_setting('transaction_read_only')::boolean as read_only

-- name: dead_rows
select c.relname::text as name, s.n_live_tup as live, s.n_dead_tup as dead
from pg_catalog.pg_stat_user_tables s
join pg_catalog.pg_class c on c.oid = s.relid
where s.schemaname = $1 and c.relname = any($2::text[])

-- name: pinning
-- Sessions, prepared transactions and replication slots that keep vacuum from removing dead rows, longest first.
select kind, name, extract(epoch from now() - since)::float8 as seconds, what, fix
from (
    select 'session' as kind, pid::text || ' of ' || coalesce(usename, '?') || coalesce(' (' || nullif(application_name, '') || ')', '') as name,
        coalesce(xact_start, query_start) as since, state || ', ' || left(regexp_replace(query, '\s+', ' ', 'g'), 80) as what,
        format('select pg_terminate_backend(%s)', pid) as fix
    from pg_catalog.pg_stat_activity
    where (backend_xmin is not null or backend_xid is not null) and pid <> pg_backend_pid() and backend_type = 'client backend'
    union all
    select 'prepared transaction', gid, prepared, 'prepared by ' || owner, format('rollback prepared %L', gid)
    from pg_catalog.pg_prepared_xacts
    where database = current_database()
) as pinned
where since < now() - $1::interval
order by since

-- name: sees_all
-- Whether this role sees when the sessions of other roles began their transactions.
select pg_has_role('pg_read_all_stats', 'usage')

-- name: slots
-- Not those of logical replication, which keep dead rows of the catalog only.
select slot_name::text as name, age(xmin) as transactions
from pg_catalog.pg_replication_slots
where not active and xmin is not null

-- name: lacking_rights
-- Privileges $3 on the tables $2 of schema $1 that this role lacks.
select wanted.name, wanted.privilege
from unnest($2::text[], $3::text[]) as wanted (name, privilege)
join pg_catalog.pg_class c on c.relname = wanted.name
join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = $1
where not has_table_privilege(c.oid, wanted.privilege)

-- name: connections
select
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
        - coalesce(current_setting('reserved_connections', true)::integer, 0) as room,
    -- The type of other roles' backends is null for a role without pg_read_all_stats.
    (
        select count(*)
        from pg_catalog.pg_stat_activity
        where backend_type = 'client backend' or (backend_type is null and datname is not null)
    )::integer as used,
    (select rolconnlimit from pg_catalog.pg_roles where rolname = current_user) as role_limit,
    (select datconnlimit from pg_catalog.pg_database where datname = current_database()) as database_limit

-- name: parked
select count(*)
from (
    select
    from {table}
    where failed_at is not null
    limit 10000
) as parked

-- name: strays
select count(*)
from (
    select
    from {history_default}
    limit 10000
) as strays
