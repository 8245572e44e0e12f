-- name: record
insert into {audit} (actor, role, action, target, outcome, reason, details, request_id, address)
values ($1, $2, $3, $4, $5, $6, $7::jsonb, $8, $9)
