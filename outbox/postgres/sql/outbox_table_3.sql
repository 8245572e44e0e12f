-- name: stalled_index
-- Rows of stalled routes by route, for probing, releasing and finding routes.
create index if not exists {stalled_index} on {table} (routing_key, coalesce(target_queue, ''), attempts, id)
    where sent_at is null and failed_at is null and last_error = 'stalled'

-- name: shape
('index', '{stalled_index_name}', 'valid')
