Confirmation tokens of dry runs. Only their hashes are stored.

-- name: issue
insert into {confirmation} (token_hash, actor, request_hash, total, expires_at)
values ($1, $2, $3, $4, now() + $5::interval)
returning expires_at

-- name: find
select actor, request_hash, total, expires_at <= now() as is_expired
from {confirmation}
where token_hash = $1

-- name: use
-- A second request with the same token waits here until the first commits, and then finds nothing.
delete from {confirmation}
where token_hash = $1 and actor = $2 and request_hash = $3 and expires_at > now()
returning total
