-- name: history_trace_id
-- The trace in which an attempt was made, or a sent message was published, in 32 hexadecimal digits. Null if it was not traced.
alter table {history} add column if not exists trace_id text

-- name: history_shape
('column', 'trace_id', 'text')
