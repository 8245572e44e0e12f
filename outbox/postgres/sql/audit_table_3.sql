-- name: audit_client_request_id
-- The request id of the client, next to the one that the service assigns. Null without one, or in entries of an earlier release.
alter table {audit} add column if not exists client_request_id text

-- name: audit_previous_hash
-- The chain (docs/decisions/0163-audit-entries-are-chained.md): the hash of each entry covers the entry and the previous hash. Null in
-- entries from before version 0003.
alter table {audit} add column if not exists previous_hash bytea

-- name: audit_hash
alter table {audit} add column if not exists hash bytea

-- name: audit_shape
('column', 'client_request_id', 'text'),
('column', 'previous_hash', 'bytea'),
('column', 'hash', 'bytea')
