-- name: begin
-- With a short limit for locks: all other queries queue behind a statement that waits for an exclusive lock. They would also wait for a
-- process that is frozen while it has one.
begin isolation level read committed;
set local lock_timeout = {lock_timeout};
set local statement_timeout = {statement_timeout};
set local idle_in_transaction_session_timeout = {statement_timeout};
-- One process at a time. This lock does not block readers and writers.
lock table {history} in share update exclusive mode

-- name: has_default
select exists(select from pg_catalog.pg_partitioned_table where partrelid = '{history}'::regclass and partdefid <> 0)

-- name: restore_default
-- Facts of days without a partition are lost while the default partition is dropped or detached by hand.
create table if not exists {history_default} (like {history} including defaults including constraints including indexes);
alter table {history} attach partition {history_default} default

-- name: partitions
-- Names of the partitions without the default one.
select coalesce(array_agg(part.relname::text order by part.relname), '{}')
from pg_catalog.pg_inherits
join pg_catalog.pg_class as part on part.oid = inhrelid
where inhparent = '{history}'::regclass and inhrelid <> '{history_default}'::regclass and not inhdetachpending

-- name: detached
-- Former default partitions that are not attached yet.
select coalesce(array_agg(part.relname::text order by part.relname), '{}')
from pg_catalog.pg_class as part
where part.relnamespace = (select relnamespace from pg_catalog.pg_class where oid = '{history}'::regclass)
    and part.relkind = 'r' and part.relname ~ '^{before_name}_[0-9]+$' and not part.relispartition

-- name: today
select (clock_timestamp() at time zone 'UTC')::date

-- name: now
select clock_timestamp()

-- name: default_size
select pg_catalog.pg_relation_size('{history_default}')

-- name: lock_default
-- Writers wait at the history: one that waited at the default partition would fail, because its row belongs into another one by then.
lock table only {history} in share row exclusive mode;
lock table only {history_default} in access exclusive mode

-- name: lock_all
lock table only {history} in access exclusive mode

-- name: strays
-- Rows of the default partition that belong into another partition, counted up to a limit.
select count(*)
from (
    select
    from {history_default}
    where at >= $1 and at < $2
    limit $3
) as stray

-- name: make
create table if not exists {partition} (like {history} including defaults including constraints including indexes)

-- name: move
with moved as (
    delete from {history_default}
    where at >= $1 and at < $2
    returning *
)
insert into {partition}
select *
from moved

-- name: attach
alter table {history} attach partition {partition} for values from ({since}) to ({until})

-- name: set_aside_day
-- The partition of today, if it was detached by hand.
alter table if exists {partition} rename to {before}

-- name: set_aside
-- Renames and detaches the default partition with its rows, and attaches an empty one.
alter table {history} detach partition {history_default};
alter table {history_default} rename to {before};
create table {history_default} partition of {history} default

-- name: complete
-- A partition that was set aside before version 0004 or 0005 lacks columns. They are added in the order of the versions: rows are moved
-- by the position of their columns.
alter table {partition} add column if not exists keys text[], add column if not exists trace_id text

-- name: throw_out
-- Rows outside of the time range of a former default partition, whose time another program has set.
with moved as (
    delete from {partition}
    where ctid = any(array(select ctid from {partition} where at < $1 or at >= $2 limit $3))
    returning *
)
insert into {history}
select *
from moved

-- name: bound
-- Scans the table while no other process uses it, so that attaching it needs no scan.
alter table {partition} add constraint {bound} check ({later_than} at < {until})

-- name: is_bound
select exists(select from pg_catalog.pg_constraint where conrelid = '{partition}'::regclass and conname = '{bound_name}')

-- name: unbound
alter table {partition} drop constraint {bound}

-- name: drop
drop table {partition}

-- name: delete_strays
delete from {history_default}
where ctid = any(array(select ctid from {history_default} where at < clock_timestamp() - $1::interval limit $2))
