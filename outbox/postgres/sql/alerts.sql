Raises, resolves and sends alerts, and looks for causes that are not findings of the health verdict.

-- name: raise
-- Raises an alert, or updates it and the time until which it has held. `ended`: it is about an event, not about a state.
insert into {alert} as known (code, subject_kind, subject, severity, summary, link, since, resolved_at)
values ($1, $2, $3, $4, $5, $6, $7, case when $8 then clock_timestamp() end)
on conflict (code, subject_kind, md5(subject)) where resolved_at is null do update
set severity = excluded.severity, summary = excluded.summary, link = excluded.link, seen_at = excluded.seen_at
returning id, xmax = 0 as is_new, fired_at

-- name: resolve
-- Resolves alerts that have not held for $1. $2: alerts that hold now.
update {alert}
set resolved_at = clock_timestamp()
where resolved_at is null and id <> all($2::bigint[]) and seen_at < clock_timestamp() - $1::interval
returning id, code, subject_kind, subject, severity, summary, link, since, fired_at, resolved_at

-- name: withdraw
-- Withdraws unsent notifications of alerts that have ended. Returns the alerts with sent ones.
with unsent as (
    update {alert_delivery} set due_at = null, last_error = 'resolved before it was sent'
    where alert_id = any($1::bigint[]) and due_at is not null and attempts = 0
)
select distinct alert_id from {alert_delivery} where alert_id = any($1::bigint[]) and attempts > 0

-- name: deliver
insert into {alert_delivery} (alert_id, event, target, body, due_at)
select $1, $2, target, body, $5
from unnest($3::text[], $4::text[]) as given (target, body)

-- name: hasten
-- Makes notifications of the alert $1 that were not sent yet due now, with new bodies: it has become an error.
update {alert_delivery} as delivery
set due_at = clock_timestamp(), body = given.body
from unnest($2::text[], $3::text[]) as given (target, body)
where alert_id = $1 and event = 'fired' and attempts = 0 and due_at > clock_timestamp() and delivery.target = given.target

-- name: take
-- Takes due notifications, and keeps them from other processes for $1. That of the end of an alert waits for that of its beginning.
update {alert_delivery} as delivery
set attempts = attempts + 1, due_at = clock_timestamp() + $1::interval
where id = any(array(
    select id
    from {alert_delivery} as due
    where due_at <= clock_timestamp() and not exists (
        select
        from {alert_delivery} as earlier
        where earlier.alert_id = due.alert_id and earlier.target = due.target and earlier.id < due.id and earlier.due_at is not null
    )
    order by due_at, id
    limit $2
    for update skip locked
))
returning id, alert_id, event, target, body, attempts

-- name: sent
update {alert_delivery} set due_at = null, sent_at = clock_timestamp(), last_error = null where id = $1

-- name: failed
-- $3: the pause before the next attempt; null for no further attempt.
update {alert_delivery} set due_at = clock_timestamp() + $3::interval, last_error = $2 where id = $1

-- name: new_groups
-- Groups of the latest dead letters that failed within $1, without earlier failures, and in no alert since then. Marked groups are known.
select fingerprint
from (
    select distinct fingerprint
    from (
        select fingerprint, failed_at from {dead_letter} where status = 'open' order by failed_at desc, id desc limit 1000
    ) as latest
    where failed_at > now() - $1::interval
) as recent
where not exists (
    select from {dead_letter} as letter
    where letter.fingerprint = recent.fingerprint and first_failed_at <= now() - $1::interval
) and not exists (
    select from {alert} as known
    where known.code = 'group_new' and known.subject = recent.fingerprint and fired_at > now() - 2 * $1::interval
) and not exists (
    select from {group_mark} as mark where mark.group_id = recent.fingerprint
)
order by fingerprint
limit 100

-- name: ended_operations
-- Operations that ended within $1 and were in no alert.
select id::text as id, action, state, total, stopped_because, requested_by, finished_at
from {operation} as operation
where finished_at > now() - $1::interval and not exists (
    select from {alert} as known where known.code = 'operation_ended' and known.subject = operation.id::text
)
order by id
limit 100

-- name: list
-- The page of alerts after ($2, $3), or before it if $4. $1: true for open ones, false for resolved ones, null for all.
select id, code, subject_kind, subject, severity, summary, link, since, fired_at, resolved_at, (
    select coalesce(json_agg(json_build_object(
        'event', event, 'target', target, 'attempts', attempts, 'due_at', due_at, 'sent_at', sent_at, 'last_error', last_error
    ) order by id), '[]') from {alert_delivery} where alert_id = alert.id
)::text as deliveries
from {alert} as alert
where ($1::boolean is null or (resolved_at is null) = $1) and ($2::timestamptz is null or case
    when $4::boolean then (fired_at, id) > ($2, $3) else (fired_at, id) < ($2, $3) end)
order by case when $4 then fired_at end, case when $4 then id end, fired_at desc, id desc
limit $5

-- name: is_open
select exists (
    select from {alert} where code = $1 and subject_kind = $2 and md5(subject) = md5($3) and resolved_at is null
)
