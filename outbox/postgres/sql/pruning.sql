Deletes up to $2 rows that are older than $1. Skips rows that another process is deleting.

-- name: dead_letters
-- Resolved dead letters, except those of active operations.
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
-- Their items are deleted as well.
delete from {operation}
where id = any(array(
    select id
    from {operation}
    where finished_at < now() - $1::interval
    limit $2
    for update skip locked
))

-- name: components
-- A component without a heartbeat for so long does not come back under its id.
delete from {component}
where seen_at < now() - $1::interval and id = any(array(select id from {component} order by seen_at limit $2))

-- name: pauses
-- Pauses that have ended.
delete from {control}
where until < now() - $1::interval and $2::integer > 0

-- name: idempotency_keys
-- Not keys that are held: their request is about to store its response.
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
-- Old entries of the audit.
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
-- Not active alerts. Their notifications are deleted as well.
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
-- Sessions that have ended.
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
-- Counts of failed logins whose time window has ended.
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
-- Confirmation tokens of dry runs that have expired.
delete from {confirmation}
where token_hash = any(array(
    select token_hash
    from {confirmation}
    where expires_at < now() - $1::interval
    order by expires_at
    limit $2
    for update skip locked
))

-- name: referenced_bodies
-- Those of the keys $1 that a row refers to, of any destination. One statement sees each message that moves between the tables once.
-- Few messages have large bodies, and no index knows them: the statement reads the tables, but only their headers.
select distinct key
from (
    select substr(headers ->> 'x-body-store', 9, 32) as key from {table} where headers ? 'x-body-store'
    union all
    select substr(headers ->> 'x-body-store', 9, 32) from {delivery} where headers ? 'x-body-store'
    union all
    select substr(headers ->> 'x-body-store', 9, 32) from {dead_letter} where headers ? 'x-body-store'
    union all
    select substr(headers ->> 'x-body-store', 9, 32) from {edition} where headers ? 'x-body-store'
) as reference
where key = any($1::text[])
