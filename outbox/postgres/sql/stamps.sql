-- name: stamps_table
-- As Alembic creates it, so that `alembic upgrade head` and `ensure_outbox_schema` share one table.
create table if not exists {table} (
    version_num varchar(32) not null,
    constraint outbox_schema_version_pkc primary key (version_num)
)

-- name: stamps_exist
-- Whether this role may read the version; no row if there is none.
select has_table_privilege({target}, 'select')
where {target} is not null

-- name: stamps
select version_num
from {table}

-- name: forget
delete from {table}

-- name: stamp
insert into {table} (version_num)
values ('{number}')

-- name: forget_older
delete from {table}
where version_num < '{number}'

-- name: stamp_if_none
insert into {table} (version_num)
select '{number}'
where not exists (select from {table})

-- name: drop_stamps
drop table if exists {table}
