-- name: begin
-- Bounded by the server too: a relay that froze or vanished loses its rows by itself, and a late one cannot commit. Every
-- statement has an index in the order that it wants; statistics, which lag behind a queue's table, shall not talk the planner
-- into reading and sorting the backlog instead.
begin isolation level read committed;
set local idle_in_transaction_session_timeout = {idle_timeout};
set local lock_timeout = {lock_timeout};
set local enable_seqscan = off;
set local enable_bitmapscan = off;
set local enable_sort = off

-- name: claim
-- Reads the pending index from its front, locks as it goes, and passes over what other relays hold. Bodies are counted before
-- they are fetched, so that a batch of large ones ends early instead of filling the memory; the rest stays for the next.
with claimed as materialized (
    select id, routing_key, body, tracking_ids, created_at, expiration, headers, content_type, ordering_key, target_queue,
        attempts, last_error
    from {table}
    where sent_at is null and failed_at is null and send_after <= now()
    order by send_after, id
    limit $1
    for update skip locked
),
measured as (
    select *, sum(octet_length(body)) over (rows unbounded preceding) - octet_length(body) as bytes_before
    from claimed
)
select id, routing_key, body, tracking_ids, created_at, expiration, headers, content_type, ordering_key, target_queue,
    attempts, last_error
from measured
where bytes_before <= $2

-- name: delete
delete from {table}
where id = any($1::bigint[])

-- name: keep
update {table}
set sent_at = clock_timestamp(), last_error = null
where id = any($1::bigint[])

-- name: retry
update {table} as message
set attempts = message.attempts + 1, last_error = outcome.error, send_after = clock_timestamp() + outcome.delay
from unnest($1::bigint[], $2::text[], $3::interval[]) as outcome (id, error, delay)
where message.id = outcome.id

-- name: park
update {table} as message
set attempts = message.attempts + 1, last_error = outcome.error, failed_at = clock_timestamp()
from unnest($1::bigint[], $2::text[]) as outcome (id, error)
where message.id = outcome.id

-- name: hold
-- Without a probe delay a held row is due never: the success of its key's probe releases it.
update {table} as message
set last_error = 'unroutable', send_after = coalesce(clock_timestamp() + outcome.probe_after, 'infinity')
from unnest($1::bigint[], $2::interval[]) as outcome (id, probe_after)
where message.id = outcome.id

-- name: release_held
update {table}
set last_error = null, send_after = now()
where id in (
    select id
    from {table}
    where sent_at is null and failed_at is null and last_error = 'unroutable' and routing_key = $1
    order by send_after, id
    limit $2
    for update skip locked
)

-- name: ensure_probes
-- Walks the held index from key to key; the first row of a key is its probe, unless it too waits for ever.
with recursive probe as (
    (
        select id, routing_key, send_after
        from {table}
        where sent_at is null and failed_at is null and last_error = 'unroutable'
        order by routing_key, send_after, id
        limit 1
    )
    union all
    select following.id, following.routing_key, following.send_after
    from probe
    cross join lateral (
        select id, routing_key, send_after
        from {table}
        where sent_at is null and failed_at is null and last_error = 'unroutable' and routing_key > probe.routing_key
        order by routing_key, send_after, id
        limit 1
    ) as following
)
update {table} as message
set send_after = now()
from probe
where message.id = probe.id and probe.send_after = 'infinity' and message.send_after = 'infinity'

-- name: next_due
select send_after - clock_timestamp()
from {table}
where sent_at is null and failed_at is null and send_after < 'infinity'
order by send_after
limit 1

-- name: delete_sent
delete from {table}
where id in (
    select id
    from {table}
    where sent_at is not null and sent_at < now() - $1::interval
    order by sent_at
    limit $2
    for update skip locked
)

-- name: backlog
select count(*) as unsent, now() - min(send_after) filter (where send_after <= now()) as oldest_due
from {table}
where sent_at is null and failed_at is null
