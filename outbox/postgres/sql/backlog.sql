-- name: settings
-- Every count reads an index in order, up to a limit. Statistics lag behind in a table that is used as a queue, so the planner must not
-- choose to read and sort all of it. JIT compilation would take longer than counting.
set local enable_seqscan = off;
set local enable_bitmapscan = off;
set local enable_sort = off;
set local jit = off;
set local max_parallel_workers_per_gather = 0

-- name: counted
-- The number of rows by state and routing key. Reads up to $1 rows of each state from its index. A row that was moved to infinity by hand is
-- scheduled; held, stalled and blocked ones stand there as well. `ahead`: how many seconds ahead of now a row that is due later was
-- created, at most; below 0 if none was.
select state, routing_key, count(*) as count,
    (extract(epoch from max(created_at) filter (where isfinite(created_at))) - extract(epoch from now()))::float8 as ahead
from (
    (
        select 'pending' as state, routing_key, null::timestamptz as created_at
        from (
            (
                select message.*
                from generate_series(0, 9) as class (priority)
                cross join lateral (
                    select routing_key, attempts, last_error
                    from {table}
                    where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
                        and send_after <= now()
                    order by send_after, id
                    limit $1
                ) as message
            )
            union all
            (
                select routing_key, attempts, last_error
                from {table}
                where sent_at is null and failed_at is null and ordering_key is not null and send_after <= now()
                order by send_after, id
                limit $1
            )
        ) as due
        where coalesce(last_error, '') not in ('unroutable', 'stalled', 'blocked')
        limit $1
    )
    union all
    (
        select case when attempts > 0 then 'retrying' else 'scheduled' end, routing_key, created_at
        from (
            (
                select message.*
                from generate_series(0, 9) as class (priority)
                cross join lateral (
                    select routing_key, created_at, attempts, last_error
                    from {table}
                    where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
                        and send_after > now()
                    order by send_after, id
                    limit $1
                ) as message
            )
            union all
            (
                select routing_key, created_at, attempts, last_error
                from {table}
                where sent_at is null and failed_at is null and ordering_key is not null and send_after > now()
                order by send_after, id
                limit $1
            )
        ) as later
        where coalesce(last_error, '') not in ('unroutable', 'stalled', 'blocked')
        limit $1
    )
    union all
    (
        select 'held', routing_key, null
        from {table}
        where sent_at is null and failed_at is null and last_error = 'unroutable'
        order by routing_key, send_after, id
        limit $1
    )
    union all
    (
        select 'stalled', routing_key, null
        from {table}
        where sent_at is null and failed_at is null and last_error = 'stalled'
        order by routing_key, coalesce(target_queue, ''), attempts, id
        limit $1
    )
    union all
    (
        select 'blocked', routing_key, null
        from {table}
        where sent_at is null and failed_at is null and ordering_key is not null and last_error = 'blocked'
        order by hashtextextended(ordering_key, 0), id
        limit $1
    )
    union all
    (
        select 'parked', routing_key, null
        from {table}
        where failed_at is not null
        order by failed_at desc, id desc
        limit $1
    )
    union all
    (
        select 'sent', '', null
        from {table}
        where sent_at is not null
        order by sent_at
        limit $1
    )
) as counted
group by state, routing_key

-- name: pages
-- Of the tables of all destinations.
select greatest(sum(pg_relation_size(id)) / current_setting('block_size')::integer, 1)::bigint
from (
    select '{table}'::regclass as id
    union all
    select inhrelid::regclass from pg_inherits where inhparent = '{table}'::regclass
) as destination

-- name: sampled
-- As `counted`, from $1 percent of the table's pages. Always the same pages, so that the estimate does not jump.
select state, routing_key, count(*) as count
from (
    select
        case
            when sent_at is not null then 'sent'
            when failed_at is not null then 'parked'
            when last_error = 'unroutable' then 'held'
            when last_error = 'stalled' then 'stalled'
            when last_error = 'blocked' then 'blocked'
            when send_after > now() and attempts > 0 then 'retrying'
            when send_after > now() then 'scheduled'
            else 'pending'
        end as state,
        case when sent_at is null then routing_key else '' end as routing_key
    from {table} tablesample system ($1) repeatable (0)
) as sampled
group by state, routing_key

-- name: oldest
-- For how many seconds the oldest due row has been due.
select (extract(epoch from now()) - extract(epoch from min(send_after)))::float8
from (
    select first.send_after
    from generate_series(0, 9) as class (priority)
    cross join lateral (
        select send_after
        from {table}
        where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
            and send_after > '-infinity' and send_after <= now()
            and coalesce(last_error, '') not in ('unroutable', 'stalled', 'blocked')
        order by send_after, id
        limit 1
    ) as first
    union all
    (
        select send_after
        from {table}
        where sent_at is null and failed_at is null and ordering_key is not null
            and send_after > '-infinity' and send_after <= now()
            and coalesce(last_error, '') not in ('unroutable', 'stalled', 'blocked')
        order by send_after, id
        limit 1
    )
) as due

-- name: waited
-- How long the oldest of up to $1 held, stalled and parked rows have been in that state.
select state, (extract(epoch from now()) - extract(epoch from min(since)))::float8 as seconds
from (
    (
        select 'held' as state, coalesce(held_at, created_at) as since
        from {table}
        where sent_at is null and failed_at is null and last_error = 'unroutable'
        order by routing_key, send_after, id
        limit $1
    )
    union all
    (
        select 'stalled', coalesce(held_at, created_at)
        from {table}
        where sent_at is null and failed_at is null and last_error = 'stalled'
        order by routing_key, coalesce(target_queue, ''), attempts, id
        limit $1
    )
    union all
    (
        select 'parked', failed_at
        from {table}
        where failed_at is not null
        order by failed_at desc, id desc
        limit $1
    )
) as waiting
where isfinite(since)
group by state

-- name: inserted
-- The number of ids assigned so far; null without the privilege to read it.
select case when has_sequence_privilege(sequence, 'select') then pg_sequence_last_value(sequence::regclass) end
from pg_get_serial_sequence('{table}', 'id') as sequence

-- name: rates
-- Messages sent in the last five complete minutes, and the number of those minutes in which a relay reported.
select coalesce(sum(sent) filter (where queue = ''), 0)::bigint as sent, count(distinct starts_at) as minutes
from {stats}
where starts_at >= date_trunc('minute', now()) - interval '5 minutes' and starts_at < date_trunc('minute', now())
    and seconds = 60

-- name: relays
-- The number of live relays, and their send rate as they last reported it.
select count(*) as alive,
    sum(case when jsonb_typeof(activity -> 'per_second' -> 'sent') = 'number'
        then (activity -> 'per_second' ->> 'sent')::float8 end) as sent
from {component}
where kind = 'relay' and stopped_at is null and seen_at > clock_timestamp() - 2 * every

-- name: oldest_transaction
-- How long the oldest transaction has kept vacuum from removing dead rows of this database: one with a snapshot, or one that has
-- written. A role without pg_read_all_stats does not see when those of other roles began.
select coalesce(extract(epoch from clock_timestamp() - min(since)), 0)::float8
from (
    select xact_start as since
    from pg_catalog.pg_stat_activity
    where (backend_xmin is not null or backend_xid is not null) and pid <> pg_backend_pid()
        and backend_type = 'client backend' and datname = current_database()
    union all
    select prepared
    from pg_catalog.pg_prepared_xacts
    where database = current_database()
) as pinning

-- name: dead_rows
-- Of the tables whose rows come and go, as the statistics have them: nothing is counted.
select relname::text as name, pg_stat_get_dead_tuples(oid) as dead
from pg_catalog.pg_class
where oid in (to_regclass('{table}'), to_regclass('{delivery}'), to_regclass('{inbox}'), to_regclass('{dead_letter}'))

-- name: deliveries
-- Walks the index from queue to queue. Reads up to $1 rows in total, but a hundred of each queue.
with recursive walk (queue) as (
    (
        select queue
        from {delivery}
        order by queue, available_at, id
        limit 1
    )
    union all
    select following.queue
    from walk
    cross join lateral (
        select queue
        from {delivery}
        where queue > walk.queue
        order by queue, available_at, id
        limit 1
    ) as following
),
known as materialized (
    select queue
    from (
        select queue
        from walk
        union
        select queue
        from {subscription}
    ) as each
    limit 1000
),
most as materialized (
    select greatest($1 / greatest(count(*), 1), 100) as rows
    from known
)
select known.queue, most.rows, due.queued, later.in_flight, later.retrying,
    (extract(epoch from now()) - extract(epoch from due.oldest))::float8 as oldest,
    (extract(epoch from later.newest) - extract(epoch from now()))::float8 as ahead
from known
cross join most
cross join lateral (
    select count(*) as queued, min(available_at) filter (where isfinite(available_at)) as oldest
    from (
        select available_at
        from {delivery}
        where queue = known.queue and available_at <= now()
        order by queue, available_at, id
        limit most.rows
    ) as front
) as due
cross join lateral (
    select count(*) filter (where leased) as in_flight, count(*) filter (where not leased) as retrying,
        max(created_at) filter (where not leased and isfinite(created_at)) as newest
    from (
        select lease_token is not null as leased, created_at
        from {delivery}
        where queue = known.queue and available_at > now()
        order by queue, available_at, id
        limit most.rows
    ) as back
) as later
order by known.queue

-- name: delivery_pages
select greatest(pg_relation_size('{delivery}'::regclass) / current_setting('block_size')::integer, 1)

-- name: deliveries_sampled
select queue, case when available_at <= now() then 'queued' when lease_token is null then 'retrying' else 'in_flight' end as state,
    count(*) as count
from {delivery} tablesample system ($1) repeatable (0)
group by 1, 2

-- name: last_handled
-- The minute of the time $2 in which a message of each of the queues $1 was last handled.
select queue, max(starts_at) as minute
from {stats}
where queue = any($1::text[]) and seconds = 60 and starts_at > now() - $2::interval
    and processed + failed + dead + duplicates > 0
group by queue

-- name: sent_since
-- The minutes of the time $1 in which messages were sent, with their routing keys, oldest first.
select starts_at as minute, routing_key
from {stats}
where queue = '' and seconds = 60 and sent > 0 and starts_at > now() - $1::interval
order by starts_at
limit 10000

-- name: last_sent
-- The minute of the time $1 in which a message with each routing key was last sent, oldest first.
select max(starts_at) as minute, routing_key
from {stats}
where queue = '' and seconds = 60 and sent > 0 and starts_at > now() - $1::interval
group by routing_key
order by minute
