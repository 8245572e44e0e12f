Changes that were asked for with a key, and what was answered.

-- name: claim
-- Nothing is returned where the key is somebody else's now, or has been answered. Who held it and is late can store no answer any
-- more: its token is gone.
insert into {idempotency} as known (actor, key, request_hash, token, held_until)
values ($1, $2, $3, $4, now() + $5::interval)
on conflict (actor, key) do update
set token = excluded.token, held_until = excluded.held_until
where known.status is null and known.held_until <= now() and known.request_hash = excluded.request_hash
returning token

-- name: known
select request_hash, status, headers::text as headers, body
from {idempotency}
where actor = $1 and key = $2

-- name: store
update {idempotency}
set status = $4, headers = cast($5::text as jsonb), body = $6
where actor = $1 and key = $2 and token = $3 and status is null
returning token

-- name: release
delete from {idempotency}
where actor = $1 and key = $2 and token = $3 and status is null
