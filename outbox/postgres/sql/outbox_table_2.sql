-- name: columns
-- `held_at`: when a row was first found unroutable; null unless it is held. Rows that an earlier release held have none.
alter table {table}
    add column if not exists requeue_count integer not null default 0,
    add column if not exists held_at timestamptz

-- name: checks
-- Those of destinations' tables that were downgraded are restored as well: they have their own, in addition to the inherited one.
do $checks$
declare
    child record;
begin
    if not exists (select from pg_constraint where conrelid = {target} and conname = '{check_requeue_count_name}') then
        alter table {table} add constraint {check_requeue_count} check (requeue_count >= 0);
    end if;
    for child in
        select inhrelid, relname || '_check_requeue_count' as name
        from pg_inherits
        join pg_class on pg_class.oid = inhrelid
        where inhparent = {target} and length(relname) <= 43
    loop
        if not exists (select from pg_constraint where conrelid = child.inhrelid and conname = child.name) then
            execute 'alter table ' || child.inhrelid::regclass || ' add constraint ' || quote_ident(child.name)
                || ' check (requeue_count >= 0)';
        end if;
    end loop;
end
$checks$

-- name: due_index
-- Rows that a relay claims, by priority and then in the order in which they are due. Rows with an ordering key are claimed by key, and are
-- not in this index.
create index if not exists {due_index} on {table} (priority, send_after, id)
    where sent_at is null and failed_at is null and ordering_key is null

-- name: ordered_due_index
-- Finds ordering keys with due rows.
create index if not exists {ordered_due_index} on {table} (send_after, id)
    where sent_at is null and failed_at is null and ordering_key is not null

-- name: ordered_index
-- The rows of one ordering key in order, including parked ones. By hash, because a key may be too long for an index. Two keys with the same
-- hash are ordered as one.
create index if not exists {ordered_index} on {table} (hashtextextended(ordering_key, 0), id)
    where sent_at is null and ordering_key is not null

-- name: blocked_index
-- Rows that wait for an earlier one of their ordering key, for finding keys that nothing releases.
create index if not exists {blocked_index} on {table} (hashtextextended(ordering_key, 0), id)
    where sent_at is null and failed_at is null and ordering_key is not null and last_error = 'blocked'

-- name: dedup_index
create index if not exists {dedup_index} on {table} (dedup_key)
    where dedup_key is not null and sent_at is null and failed_at is null

-- name: drop_pending_index
-- The index of version 0001, which the two indexes of due rows replace.
do $pending$
declare
    replaced constant regclass := (
        select indexrelid
        from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where i.indrelid = {target} and c.relname = '{pending_index_name}'
    );
begin
    if replaced is not null then
        execute 'drop index ' || replaced;
    end if;
end
$pending$

-- name: shape
('column', 'requeue_count', 'integer not null default'),
('column', 'held_at', 'timestamp with time zone'),
('constraint', '{check_requeue_count_name}', 'valid'),
('index', '{due_index_name}', 'valid'),
('index', '{ordered_due_index_name}', 'valid'),
('index', '{ordered_index_name}', 'valid'),
('index', '{blocked_index_name}', 'valid'),
('index', '{dedup_index_name}', 'valid')
