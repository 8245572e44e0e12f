-- name: history_root_index
create index if not exists {history_root_index} on {history} (hashtextextended(root_id, 0), at)

-- name: drop_history_child_index
do $child$
declare
    replaced regclass := (
        select i.indexrelid
        from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where i.indrelid = {history_target} and c.relname = '{history_child_index_name}'
    );
begin
    if replaced is not null then
        execute 'drop index ' || replaced;
    end if;
end
$child$
