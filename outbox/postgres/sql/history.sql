-- name: begin
-- Nobody waits long for us, who wait for a lock: behind a waiting exclusive lock everybody else queues.
begin isolation level read committed;
set local lock_timeout = {lock_timeout};
set local statement_timeout = {statement_timeout};
-- One at a time; readers and writers do not mind.
lock table {history} in share update exclusive mode

-- name: partitions
-- The partitions, the default one aside, with the names that they have in their schema.
select coalesce(array_agg(part.relname::text order by part.relname), '{}')
from pg_catalog.pg_inherits
join pg_catalog.pg_class as part on part.oid = inhrelid
where inhparent = '{history}'::regclass and inhrelid <> '{history_default}'::regclass and not inhdetachpending

-- name: detached
-- Former default partitions that have not found their place yet.
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
lock table only {history_default} in access exclusive mode

-- name: lock_all
lock table only {history} in access exclusive mode

-- name: strays
-- How many rows of the default partition belong elsewhere, if they are not too many to be moved at once.
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

-- name: set_aside
-- What is in the default partition stays in it, under another name, and an empty one takes its place.
alter table {history} detach partition {history_default};
alter table {history_default} rename to {before};
create table {history_default} partition of {history} default

-- name: complete
-- One that was set aside before version 0004 lacks it.
alter table {partition} add column if not exists keys text[]

-- name: throw_out
-- Rows outside of the time of a former default partition: written by whoever says when a fact was.
with moved as (
    delete from {partition}
    where ctid = any(array(select ctid from {partition} where at < $1 or at >= $2 limit $3))
    returning *
)
insert into {history}
select *
from moved

-- name: bound
-- Scans, but nobody else uses the table meanwhile; attaching it does not have to scan then.
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
