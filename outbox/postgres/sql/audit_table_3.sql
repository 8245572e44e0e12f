-- name: audit_client_request_id
-- What the client called the request, apart from our name for it. Null: it said nothing, or a release before wrote the entry.
alter table {audit} add column if not exists client_request_id text

-- name: audit_previous_hash
-- The chain (docs/decisions/0163-audit-entries-are-chained.md): each entry has a hash of itself and of the hash before it. Null:
-- written before version 0003.
alter table {audit} add column if not exists previous_hash bytea

-- name: audit_hash
alter table {audit} add column if not exists hash bytea

-- name: audit_shape
('column', 'client_request_id', 'text'),
('column', 'previous_hash', 'bytea'),
('column', 'hash', 'bytea')
