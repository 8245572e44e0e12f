Requests with an idempotency key, and their responses.

-- name: claim
-- Returns nothing if another request holds the key, or its response is stored. A request that held the key before and is late cannot store
-- a response: its token was replaced.
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
