-- name: open_session
insert into {session} (token_hash, login_hash, name, expires_at, role)
values ($1, $2, $3, now() + $4::interval, $5)
returning expires_at

-- name: find_session
-- Not if its token was revoked.
select login_hash, expires_at, name, role
from {session} as session
where token_hash = $1 and expires_at > now()
    and not exists (select from {revoked_token} as revoked where revoked.token_hash = session.login_hash)

-- name: close_session
delete from {session}
where token_hash = $1

-- name: forget_expired
-- A few with every login, so that they do not pile up without maintenance.
delete from {session}
where token_hash = any(array(
    select token_hash
    from {session}
    where expires_at < now()
    order by expires_at
    limit 100
    for update skip locked
))

-- name: count_failure
-- Counts a failure in the current time window. The first one after its end begins the next window.
insert into {login_failure} as known (bucket, window_ends_at, failures)
values ($1, now() + $2::interval, 1)
on conflict (bucket) do update set
    failures = case when known.window_ends_at <= now() then 1 else known.failures + 1 end,
    window_ends_at = case when known.window_ends_at <= now() then excluded.window_ends_at else known.window_ends_at end
returning failures, window_ends_at - now() as rest

-- name: list_sessions
-- Sessions that have not ended, newest first. The id identifies a session, but gives no access.
select left(encode(sha256(token_hash), 'hex'), 16) as id, login_hash, name, created_at, expires_at, role
from {session} as session
where expires_at > now()
    and not exists (select from {revoked_token} as revoked where revoked.token_hash = session.login_hash)
order by created_at desc, id
limit 1000

-- name: revoked_tokens
select token_hash, revoked_by, revoked_at
from {revoked_token}

-- name: revoke_token
insert into {revoked_token} (token_hash, name, revoked_by)
values ($1, $2, $3)
on conflict (token_hash) do nothing

-- name: end_session
delete from {session}
where left(encode(sha256(token_hash), 'hex'), 16) = $1
returning name
