-- name: stalled_index
-- Rows whose route takes no messages now, by route: probing and releasing a route, and finding routes, touch those rows only.
create index if not exists {stalled_index} on {table} (routing_key, coalesce(target_queue, ''), attempts, id)
    where sent_at is null and failed_at is null and last_error = 'stalled'

-- name: shape
('index', '{stalled_index_name}', 'valid')
