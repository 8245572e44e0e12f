-- name: inbox_table
-- One row is a message that a queue's consumer has processed: written in the transaction of what its handler wrote.
create table if not exists {inbox} (
    queue text not null,
    message_id text not null,
    processed_at timestamptz not null default now(),
    constraint {inbox_primary_key} primary key (queue, message_id)
)

-- name: inbox_age_index
-- What pruning deletes, oldest first.
create index if not exists {inbox_age_index} on {inbox} (processed_at)

-- name: inbox_storage
alter table {inbox} set (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.1
)

-- name: inbox_shape
('column', 'queue', 'text not null'),
('column', 'message_id', 'text not null'),
('column', 'processed_at', 'timestamp with time zone not null default'),
('constraint', '{inbox_primary_key_name}', 'valid'),
('index', '{inbox_age_index_name}', 'valid')
