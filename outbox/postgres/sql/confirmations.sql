Dry runs that may be followed up. A token is known by its hash only.

-- name: promise
insert into {confirmation} (token_hash, actor, request_hash, total, expires_at)
values ($1, $2, $3, $4, now() + $5::interval)
returning expires_at

-- name: look
select actor, request_hash, total, expires_at <= now() as is_over
from {confirmation}
where token_hash = $1

-- name: use
-- Another request that uses it at the same time waits here for our commit, and then finds nothing.
delete from {confirmation}
where token_hash = $1 and actor = $2 and request_hash = $3 and expires_at > now()
returning total
