-- name: schema_of
-- The schema in which the search path finds a name, qualified or not; no row if it does not exist, or in a schema that the role may not
-- use, for which `to_regclass` fails.
select n.nspname::text
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.oid = to_regclass(
    case when (select has_schema_privilege(oid, 'usage') from pg_namespace where nspname = {schema}) then '{table}' end
)

-- name: unusable_schema
-- The schema with the table $1, in $2 or else in the search path, that the role may not use.
select quote_ident(n.nspname) as schema, quote_ident(current_user) as role
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relname = $1 and not has_schema_privilege(n.oid, 'usage')
    and n.nspname = any(coalesce(
        case when $2::text is not null then array[$2::text] end,
        regexp_split_to_array(translate(replace(current_setting('search_path'), '$user', current_user), '"', ''), ',\s*')
    ))
limit 1

-- name: differences
-- Differences of a table from its shape, as (kind, name, wanted, found); all objects, if the table does not exist. Includes objects that an
-- older release that is still in use creates again.
with target as (
    select {target} as oid
), wanted (kind, name, definition) as (
    values
    {shape}
), found (kind, name, definition) as (
    select 'column', attname::text,
        format_type(atttypid, atttypmod)
        || case when attnotnull then ' not null' else '' end
        || case when atthasdef or attidentity <> '' then ' default' else '' end
    from pg_attribute
    where attrelid = (select oid from target) and attnum > 0 and not attisdropped
    union all
    select 'index', c.relname::text, 'valid'
    from pg_index i
    join pg_class c on c.oid = i.indexrelid
    where i.indrelid = (select oid from target) and i.indisvalid
    union all
    select 'constraint', conname::text, 'valid'
    from pg_constraint
    where conrelid = (select oid from target) and convalidated
    union all
    select 'trigger', t.tgname::text, 'enabled'
    from pg_trigger t
    join pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = (select oid from target) and t.tgenabled in ('O', 'A') and p.prosrc = $ring${ring_body}$ring$
    union all
    -- One that a schema had before it was renamed names the table where it was.
    select 'function', p.proname::text,
        case when position('insert into ' || c.relnamespace::regnamespace::text || '.' in p.prosrc) > 0 then 'present' else 'of elsewhere' end
    from pg_class c
    join pg_proc p on p.pronamespace = c.relnamespace
    where c.oid = (select oid from target)
)
select w.kind, w.name, w.definition, f.definition
from wanted w
left join found f using (kind, name)
where f.definition is distinct from w.definition
union all
select 'leftover', tgname::text, 'absent', 'notifying for every row'
from pg_trigger
where tgrelid = (select oid from target) and tgname = 'outbox_notify_trigger'
union all
select 'leftover', c.relname::text, 'absent', 'superfluous'
from pg_index i
join pg_class c on c.oid = i.indexrelid
where i.indrelid = (select oid from target) and c.relname in ('outbox_pending_idx', 'outbox_cleanup_idx')
