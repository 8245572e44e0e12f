-- name: history_table
-- One row per fact about a message, without its body. Rows are never updated; whole days are dropped.
create table if not exists {history} (
    at timestamptz not null default now(),
    fact text not null,
    message_id text not null,
    root_id text not null,
    parent_id text,
    routing_key text not null,
    queue text,
    attempt integer,
    waited interval,
    ran interval,
    error_type text,
    error_message text,
    component text not null default '',
    constraint {history_check_fact} check (fact in ('sent', 'processed', 'retried', 'died', 'requeued', 'duplicate'))
) partition by range (at)

-- name: history_default
-- For facts of days without a partition.
create table if not exists {history_default} partition of {history} default

-- name: history_message_index
-- By hash, because an id may be any text, and too long for an index.
create index if not exists {history_message_index} on {history} (hashtextextended(message_id, 0), at)

-- name: history_root_index
-- Version 0007 replaced this index, so it is not created again after that version.
do $root$
begin
    if not exists (
        select
        from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where i.indrelid = {history_target} and c.relname = '{history_child_index_name}'
    ) then
        create index if not exists {history_root_index} on {history} (hashtextextended(root_id, 0), at);
    end if;
end
$root$

-- name: history_recent_index
-- The first messages of chains, newest first.
create index if not exists {history_recent_index} on {history} (at) where fact = 'sent' and parent_id is null

-- name: history_shape
('column', 'at', 'timestamp with time zone not null default'),
('column', 'fact', 'text not null'),
('column', 'message_id', 'text not null'),
('column', 'root_id', 'text not null'),
('column', 'parent_id', 'text'),
('column', 'routing_key', 'text not null'),
('column', 'queue', 'text'),
('column', 'attempt', 'integer'),
('column', 'waited', 'interval'),
('column', 'ran', 'interval'),
('column', 'error_type', 'text'),
('column', 'error_message', 'text'),
('column', 'component', 'text not null default'),
('constraint', '{history_check_fact_name}', 'valid'),
('index', '{history_message_index_name}', 'valid'),
('index', '{history_recent_index_name}', 'valid')
