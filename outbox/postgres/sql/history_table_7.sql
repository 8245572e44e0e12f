-- name: history_child_index
-- The messages of a chain after its first one, which the index by message has. Most chains have no others.
create index if not exists {history_child_index} on {history} (hashtextextended(root_id, 0), at) where message_id <> root_id

-- name: drop_history_root_index
do $root$
declare
    replaced regclass := (
        select i.indexrelid
        from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where i.indrelid = {history_target} and c.relname = '{history_root_index_name}'
    );
begin
    if replaced is not null then
        execute 'drop index ' || replaced;
    end if;
end
$root$

-- name: history_shape
('index', '{history_child_index_name}', 'valid')
