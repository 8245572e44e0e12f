Tables of destinations. Each inherits from the outbox table, so that statements without `only` see the rows of all destinations. It has
indexes, a doorbell and relays of its own.

-- name: create
-- Its ids come from the sequence of the outbox table, so that no two rows have the same one.
do $create$
begin
    if to_regclass('{child}') is null then
        execute format(
            'create table {child} (id bigint not null default nextval(%L)) inherits ({table})',
            pg_get_serial_sequence('{table}', 'id')
        );
    elsif not exists (select from pg_inherits where inhrelid = to_regclass('{child}') and inhparent = to_regclass('{table}')) then
        raise exception using message = '{child} exists and does not belong to {table}, so it cannot hold messages for a destination';
    elsif (select not atthasdef from pg_attribute where attrelid = to_regclass('{child}') and attname = 'id') then
        execute format('alter table {child} alter id set default nextval(%L)', pg_get_serial_sequence('{table}', 'id'));
    end if;
end
$create$

-- name: list
-- The names of destinations with a table, without the default one.
select substr(child.relname, length(parent.relname) + 2)::text
from pg_inherits
join pg_class as child on child.oid = inhrelid
join pg_class as parent on parent.oid = inhparent
where inhparent = {target} and starts_with(child.relname, parent.relname || '_')
order by 1

-- name: knows_relays
-- Whether this role may see which relays run.
select coalesce(has_table_privilege(to_regclass('{relay}'), 'select'), false)
