-- name: operation_results
-- Numbers of requeued messages by result, updated as results are found. Messages that were requeued before version 0003 have none. The
-- canary was requeued at `canary_since`.
alter table {operation}
    add column if not exists waiting integer not null default 0,
    add column if not exists retrying integer not null default 0,
    add column if not exists handled integer not null default 0,
    add column if not exists failed integer not null default 0,
    add column if not exists canary_since timestamptz

-- name: operation_item_result
-- The requeued message and its queue; null for all queues that its routing key is bound to. `result`: its result so far, looked for again
-- at `check_at`, which is null if nothing was requeued or the result is final. `failed_attempts`: attempts since the requeue.
alter table {operation_item}
    add column if not exists message_id text,
    add column if not exists queue text,
    add column if not exists result text,
    add column if not exists failed_attempts integer not null default 0,
    add column if not exists check_at timestamptz

-- name: operation_item_check_result
do $check$
begin
    if not exists (
        select from pg_constraint where conrelid = {operation_item_target} and conname = '{operation_item_check_result_name}'
    ) then
        alter table {operation_item} add constraint {operation_item_check_result}
            check (result in ('waiting', 'retrying', 'handled', 'failed again', 'unknown'));
    end if;
end
$check$

-- name: operation_item_check_index
-- The next results to look for, of all operations.
create index if not exists {operation_item_check_index} on {operation_item} (check_at) where check_at is not null

-- name: operation_item_open_index
-- The next results to look for, of one operation.
create index if not exists {operation_item_open_index} on {operation_item} (operation_id, check_at) where check_at is not null

-- name: operation_shape
('column', 'waiting', 'integer not null default'),
('column', 'retrying', 'integer not null default'),
('column', 'handled', 'integer not null default'),
('column', 'failed', 'integer not null default'),
('column', 'canary_since', 'timestamp with time zone')

-- name: operation_item_shape
('column', 'message_id', 'text'),
('column', 'queue', 'text'),
('column', 'result', 'text'),
('column', 'failed_attempts', 'integer not null default'),
('column', 'check_at', 'timestamp with time zone'),
('constraint', '{operation_item_check_result_name}', 'valid'),
('index', '{operation_item_check_index_name}', 'valid'),
('index', '{operation_item_open_index_name}', 'valid')
