Deletes rows that are not needed any more: of longer ago than $1, up to $2 of them. Rows that another process deletes are skipped.

-- name: dead_letters
-- Resolved letters that are too old; none that a running operation still has to do with.
delete from {dead_letter}
where id = any(array(
    select id
    from {dead_letter} as letter
    where status <> 'open' and resolved_at < now() - $1::interval
        and not exists (
            select
            from {operation_item} as item
            join {operation} as operation on operation.id = item.operation_id
            where item.letter = letter.id::text and operation.finished_at is null
        )
    order by resolved_at
    limit $2
    for update skip locked
))

-- name: operations
-- Its items go with it.
delete from {operation}
where id = any(array(
    select id
    from {operation}
    where finished_at < now() - $1::interval
    limit $2
    for update skip locked
))

-- name: components
-- Whoever has given no sign of life for so long will not come back under this id.
delete from {component}
where seen_at < now() - $1::interval and id = any(array(select id from {component} order by seen_at limit $2))

-- name: pauses
-- Pauses that are over.
delete from {control}
where until < now() - $1::interval and $2::integer > 0

-- name: idempotency_keys
-- None that is still held: whoever holds it is about to write the answer.
delete from {idempotency}
where (actor, key) in (
    select actor, key
    from {idempotency}
    where created_at < now() - $1::interval and held_until < now()
    order by created_at
    limit $2
    for update skip locked
)

-- name: audit
-- Entries of the audit that are too old.
delete from {audit}
where id = any(array(
    select id
    from {audit}
    where at < now() - $1::interval
    order by at
    limit $2
    for update skip locked
))

-- name: alerts
-- What is not over is kept. The messages go with it.
delete from {alert}
where id = any(array(
    select id
    from {alert}
    where fired_at < now() - $1::interval and resolved_at < now() - $1::interval
    order by fired_at
    limit $2
    for update skip locked
))

-- name: sessions
-- Sessions that ended too long ago.
delete from {session}
where token_hash = any(array(
    select token_hash
    from {session}
    where expires_at < now() - $1::interval
    order by expires_at
    limit $2
    for update skip locked
))

-- name: login_failures
-- Counts of failed logins whose window of time ended too long ago.
delete from {login_failure}
where bucket = any(array(
    select bucket
    from {login_failure}
    where window_ends_at < now() - $1::interval
    order by window_ends_at
    limit $2
    for update skip locked
))

-- name: confirmations
-- Dry runs that could be followed up until too long ago.
delete from {confirmation}
where token_hash = any(array(
    select token_hash
    from {confirmation}
    where expires_at < now() - $1::interval
    order by expires_at
    limit $2
    for update skip locked
))
