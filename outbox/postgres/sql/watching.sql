Detects changes since the last look. Runs once a second while a client listens, so it reads indexes only and limits all counts.

-- name: now
select clock_timestamp()

-- name: dead_letters
-- The latest failure and the latest resolution show changes that the counts do not.
select
    (
        select count(*)
        from (select from {dead_letter} where status = 'open' order by failed_at desc, id desc limit $1) as counted
    ) as open,
    (
        select count(*)
        from (select from {table} where failed_at is not null order by failed_at desc, id desc limit $1) as counted
    ) as parked,
    (select failed_at from {dead_letter} where status = 'open' order by failed_at desc, id desc limit 1) as last_failed_at,
    (select failed_at from {table} where failed_at is not null order by failed_at desc, id desc limit 1) as last_parked_at,
    (
        select resolved_at
        from {dead_letter}
        where status <> 'open' and resolved_at is not null
        order by resolved_at desc
        limit 1
    ) as last_resolved_at

-- name: operations
select id, action, state, total as item_count, done as settled_count
from {operation}
order by id desc
limit $1

-- name: sessions
-- Those of the sessions $1 that have not ended.
select token_hash
from {session}
where token_hash = any($1::bytea[]) and expires_at > clock_timestamp()
