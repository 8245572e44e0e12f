Dry runs that can be confirmed. The table has only the hash of a token.

-- name: issue
insert into {confirmation} (token_hash, actor, request_hash, total, expires_at)
values ($1, $2, $3, $4, now() + $5::interval)
returning expires_at

-- name: find
select actor, request_hash, total, expires_at <= now() as is_expired
from {confirmation}
where token_hash = $1

-- name: use
-- Another request that uses it at the same time waits here for our commit, and then finds nothing.
delete from {confirmation}
where token_hash = $1 and actor = $2 and request_hash = $3 and expires_at > now()
returning total
