-- name: drop_history_trace_id
alter table {history} drop column if exists trace_id
