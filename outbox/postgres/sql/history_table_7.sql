-- name: drop_history_root_index
-- Replaces the index of chains. One on the whole table would be built under a lock that keeps writers away from all its partitions. So they
-- get their indexes one by one, and last the one that is written to: today's. The index on the table then takes those.
do $root$
declare
    part regclass;
    replaced regclass := (
        select i.indexrelid
        from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where i.indrelid = {history_target} and c.relname = '{history_root_index_name}'
    );
begin
    if replaced is not null then
        for part in
            select c.oid
            from pg_inherits
            join pg_class c on c.oid = inhrelid
            where inhparent = {history_target}
            order by c.relname = 'outbox_history_p' || to_char(now() at time zone 'UTC', 'YYYYMMDD'), c.relname
        loop
            execute 'create index on ' || part || ' (hashtextextended(root_id, 0), at) where message_id <> root_id';
        end loop;
        execute 'drop index ' || replaced;
    end if;
end
$root$

-- name: history_child_index
-- The messages of a chain after its first one, which the index by message has. Most chains have no others.
create index if not exists {history_child_index} on {history} (hashtextextended(root_id, 0), at) where message_id <> root_id

-- name: history_shape
('index', '{history_child_index_name}', 'valid')
