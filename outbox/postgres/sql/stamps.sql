-- name: stamps_table
-- As Alembic makes it, so that both use one: `alembic upgrade head` and `ensure_outbox_schema` see each other's work.
create table if not exists {table} (
    version_num varchar(32) not null,
    constraint outbox_schema_version_pkc primary key (version_num)
)

-- name: stamps_exist
select 1
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = {schema_value} and c.relname = {table_value}

-- name: stamps
select version_num
from {table}

-- name: forget
delete from {table}

-- name: stamp
insert into {table} (version_num)
values ('{number}')
