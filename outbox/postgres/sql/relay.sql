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
-- Reads the pending index from its front, locks as it goes, and passes over what other relays hold. Sizes are counted before
-- anything is fetched, so that a batch of large rows ends early instead of filling the memory; the rest stays for the next.
-- (Small jsonb values are not worth the conversion that tells their size.) Times are seconds and jsonb is text: no value that a
-- producer may insert is too much for the driver then, and no codec of a given pool has a say.
with claimed as materialized (
    select id, routing_key, body, tracking_ids, created_at, expiration, headers, content_type, ordering_key, target_queue,
        attempts, last_error
    from {table}
    where sent_at is null and failed_at is null and send_after <= now()
    order by send_after, id
    limit $1
    for update skip locked
),
sized as (
    select *,
        octet_length(routing_key) + octet_length(body)
            + case when pg_column_size(headers) > 2000 then octet_length(headers::text) else 0 end
            + case when pg_column_size(tracking_ids) > 2000 then octet_length(tracking_ids::text) else 0 end as bytes
    from claimed
),
measured as (
    select *, sum(bytes) over (rows unbounded preceding) - bytes as bytes_before
    from sized
)
select id, routing_key, body, tracking_ids::text, extract(epoch from created_at)::float8 as created_at,
    case when expiration < interval '1000 years' then extract(epoch from expiration)::float8 end as expiration,
    headers::text, content_type, ordering_key, target_queue, attempts, last_error
from measured
where bytes_before <= $2

-- name: claim_unread
-- What a claim of one row takes, without any text of it.
select id, attempts
from {table}
where sent_at is null and failed_at is null and send_after <= now()
order by send_after, id
limit 1
for update skip locked

-- name: delete
delete from {table}
where id = any($1::bigint[])

-- name: keep
update {table}
set sent_at = clock_timestamp(), last_error = null
where id = any($1::bigint[])

-- name: retry
update {table} as message
set attempts = least(message.attempts, 2147483646) + 1, last_error = outcome.error,
    send_after = clock_timestamp() + outcome.delay
from unnest($1::bigint[], $2::text[], $3::interval[]) as outcome (id, error, delay)
where message.id = outcome.id

-- name: park
update {table} as message
set attempts = least(message.attempts, 2147483646) + 1, last_error = outcome.error,
    failed_at = clock_timestamp()
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
select (extract(epoch from send_after) - extract(epoch from clock_timestamp()))::float8
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
-- Counting millions every few seconds would cost more than relaying them: beyond 100,000 rows the answer is what the pending
-- index held when it was last vacuumed or analysed.
select
    case when counted.unsent < 100000 then counted.unsent else greatest(counted.unsent, known.unsent) end as unsent,
    (
        select (extract(epoch from now()) - extract(epoch from send_after))::float8
        from {table}
        where sent_at is null and failed_at is null and send_after <= now()
        order by send_after, id
        limit 1
    ) as oldest_due
from (
    select count(*) as unsent
    from (
        select
        from {table}
        where sent_at is null and failed_at is null
        limit 100000
    ) as pending
) as counted
cross join (
    select max(index.reltuples)::bigint as unsent
    from pg_catalog.pg_index
    join pg_catalog.pg_class as index on index.oid = indexrelid
    join pg_catalog.pg_attribute on attrelid = indrelid and attnum = indkey[0]
    where indrelid = '{table}'::regclass and indpred is not null and attname = 'send_after'
) as known

-- name: lacking_rights
select array(
    select right_
    from unnest(array['select', 'update', 'delete']) as right_
    where not has_table_privilege('{table}'::regclass, right_)
)
