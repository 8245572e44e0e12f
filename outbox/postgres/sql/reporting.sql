-- name: begin
-- Reports are not important enough to wait for the disk or for locks.
begin isolation level read committed;
set local synchronous_commit = off;
set local statement_timeout = {statement_timeout};
set local lock_timeout = {lock_timeout};
set local idle_in_transaction_session_timeout = {statement_timeout}

-- name: usable
-- Those of the tables that exist and the user may write to.
select wanted.kind
from unnest($1::text[], $2::text[], $3::text[]) as wanted (kind, name, rights)
where to_regclass(wanted.name) is not null and not exists (
    select
    from unnest(string_to_array(wanted.rights, ' ')) as needed (right_)
    where not has_table_privilege(to_regclass(wanted.name), needed.right_)
)

-- name: write_history
-- Facts are passed with their age, so that all times in the table are from the clock of the database. An array with one element is the
-- value of all rows, and roots that are null are the messages' own ids.
insert into {history} (
    at, fact, message_id, root_id, parent_id, routing_key, queue, attempt, waited, ran, error_type, error_message, keys,
    trace_id, component
)
select clock_timestamp() - make_interval(secs => ago), coalesce(fact, ($3::text[])[1]), message_id, coalesce(root_id, message_id),
    parent_id, coalesce(routing_key, ($7::text[])[1]), coalesce(queue, ($8::text[])[1]), coalesce(attempt, ($9::integer[])[1]),
    make_interval(secs => waited), make_interval(secs => ran), error_type, error_message, keys::text[], trace_id, $1
from unnest(
    $2::float8[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::integer[], $10::float8[],
    $11::float8[], $12::text[], $13::text[], $14::text[], $15::text[]
) as reported (
    ago, fact, message_id, root_id, parent_id, routing_key, queue, attempt, waited, ran, error_type, error_message, keys, trace_id
)

-- name: add_stats
-- Adds counts, and keeps the highest measured values. Locks rows in the order of their keys, so that two processes cannot deadlock.
insert into {stats} as so_far (
    starts_at, seconds, routing_key, queue, created, sent, processed, failed, retried, dead, duplicates, backlog, oldest_age,
    latency
)
select starts_at, 60, routing_key, queue, created, sent, processed, failed, retried, dead, duplicates, backlog, oldest_age,
    latency::bigint[]
from unnest(
    $1::timestamptz[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::interval[], $13::text[]
) as added (
    starts_at, routing_key, queue, created, sent, processed, failed, retried, dead, duplicates, backlog, oldest_age, latency
)
order by starts_at, routing_key collate "C", queue collate "C"
on conflict (starts_at, seconds, routing_key, queue) do update
set created = so_far.created + excluded.created,
    sent = so_far.sent + excluded.sent,
    processed = so_far.processed + excluded.processed,
    failed = so_far.failed + excluded.failed,
    retried = so_far.retried + excluded.retried,
    dead = so_far.dead + excluded.dead,
    duplicates = so_far.duplicates + excluded.duplicates,
    backlog = greatest(so_far.backlog, excluded.backlog),
    oldest_age = greatest(so_far.oldest_age, excluded.oldest_age),
    latency = case
        when so_far.latency is null then excluded.latency
        when excluded.latency is null then so_far.latency
        else array(
            select coalesce(known, 0) + coalesce(new, 0)
            from unnest(so_far.latency, excluded.latency) with ordinality as bucket (known, new, number)
            order by number
        )
    end

-- name: beat
insert into {component} as component (
    id, kind, name, host, process_id, version, service_version, every, activity, consumers, applied, stopped_at
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10::jsonb, $11::jsonb, case when $12::boolean then clock_timestamp() end)
on conflict (id) do update
set seen_at = clock_timestamp(), activity = excluded.activity, applied = excluded.applied, stopped_at = excluded.stopped_at

-- name: beat_again
-- One round trip, and one transaction: the statements of a message without parameters are committed together.
set transaction isolation level read committed;
set local synchronous_commit = off;
set local statement_timeout = {statement_timeout};
set local lock_timeout = {lock_timeout};
update {component}
set seen_at = clock_timestamp(), activity = {activity}::jsonb, applied = {applied}::jsonb,
    stopped_at = case when {stopped} then clock_timestamp() end
where id = {id}

-- name: pauses
-- The active pauses, how many seconds each of them has left, and the time.
select scope, name, (extract(epoch from until) - extract(epoch from clock_timestamp()))::float8 as seconds_left,
    extract(epoch from clock_timestamp())::float8 as now
from (values (1)) as always (one)
left join {control} on until is null or until > clock_timestamp()

-- name: channel
-- The schema and name of the table of pauses, if its trigger notifies.
select n.nspname::text as schema, c.relname::text as name
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = pg_catalog.to_regclass($1) and exists (
    select
    from pg_catalog.pg_trigger t
    join pg_catalog.pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = c.oid and t.tgenabled in ('O', 'A') and pg_catalog.strpos(p.prosrc, 'pg_notify(') > 0
)

-- name: pause
insert into {control} (scope, name, reason, requested_by, until)
values ($1, $2, $3, $4, $5)
on conflict (scope, name) do update
set reason = excluded.reason, requested_by = excluded.requested_by, requested_at = now(), until = excluded.until

-- name: resume
delete from {control}
where scope = $1 and name = $2
returning scope

-- name: list_pauses
select scope, name, reason, requested_by, requested_at, until
from {control}
where until is null or until > clock_timestamp()
order by scope, name

-- name: list_components
select id, kind, name, host, process_id, version, service_version, started_at, seen_at, every, activity::text as activity,
    consumers::text as consumers, applied::text as applied, stopped_at,
    case
        when stopped_at is not null then 'stopped'
        when seen_at < clock_timestamp() - 6 * every then 'lost'
        when seen_at < clock_timestamp() - 2 * every then 'late'
        else 'alive'
    end as condition
from {component}
order by kind, name, started_at

-- name: list_recent_components
-- All live components, and the $1 that ended last; each restart leaves a row. $2: with the schemas of bodies. Returns the time of the
-- server, so that ages do not depend on the reader's clock.
select id, kind, name, host, process_id, version, service_version, started_at, seen_at, every, activity::text as activity,
    case
        when $2::boolean or jsonb_typeof(consumers) <> 'array' then consumers
        else coalesce((select jsonb_agg(case jsonb_typeof(consumer) when 'object' then consumer - 'body' else consumer end order by number) from jsonb_array_elements(consumers)
            with ordinality as each (consumer, number)), '[]')
    end::text as consumers,
    applied::text as applied, stopped_at, condition
from (
    select *, row_number() over (partition by condition in ('lost', 'stopped') order by seen_at desc) as place
    from (
        select *,
            case
                when stopped_at is not null then 'stopped'
                when seen_at < clock_timestamp() - 6 * every then 'lost'
                when seen_at < clock_timestamp() - 2 * every then 'late'
                else 'alive'
            end as condition
        from {component}
    ) as judged
) as ranked
where place <= case when condition in ('lost', 'stopped') then $1 else 1000 end
order by kind, name, started_at

-- name: thin_stats
-- Merges up to $3 rows of spans shorter than $1 seconds that are older than $2 into rows of $1 seconds. In one statement, so that nothing
-- is lost or counted twice if rows are added meanwhile. Spans start at midnight UTC. Values are added up as in `add_stats`.
with thinned as (
    delete from {stats}
    where ctid = any(array(
        select ctid
        from {stats}
        where seconds < $1 and starts_at < date_bin(make_interval(secs => $1), clock_timestamp() - $2::interval, timestamptz '2000-01-01 00:00:00+00')
        order by starts_at, routing_key collate "C", queue collate "C"
        limit $3
        for update skip locked
    ))
    returning *, date_bin(make_interval(secs => $1), starts_at, timestamptz '2000-01-01 00:00:00+00') as span
),
latencies as (
    select span, routing_key, queue, array_agg(total order by number) as latency
    from (
        select span, routing_key, queue, number, sum(count)::bigint as total
        from thinned
        cross join unnest(latency) with ordinality as bucket (count, number)
        group by span, routing_key, queue, number
    ) as bucket
    group by span, routing_key, queue
),
added as (
    insert into {stats} as so_far (
        starts_at, seconds, routing_key, queue, created, sent, processed, failed, retried, dead, duplicates, backlog, oldest_age,
        latency
    )
    select span, $1, routing_key, queue, sum(created), sum(sent), sum(processed), sum(failed), sum(retried), sum(dead),
        sum(duplicates), max(backlog), max(oldest_age), latencies.latency
    from thinned
    left join latencies using (span, routing_key, queue)
    group by span, routing_key, queue, latencies.latency
    order by span, routing_key collate "C", queue collate "C"
    on conflict (starts_at, seconds, routing_key, queue) do update
    set created = so_far.created + excluded.created,
        sent = so_far.sent + excluded.sent,
        processed = so_far.processed + excluded.processed,
        failed = so_far.failed + excluded.failed,
        retried = so_far.retried + excluded.retried,
        dead = so_far.dead + excluded.dead,
        duplicates = so_far.duplicates + excluded.duplicates,
        backlog = greatest(so_far.backlog, excluded.backlog),
        oldest_age = greatest(so_far.oldest_age, excluded.oldest_age),
        latency = case
            when so_far.latency is null then excluded.latency
            when excluded.latency is null then so_far.latency
            else array(
                select coalesce(known, 0) + coalesce(new, 0)
                from unnest(so_far.latency, excluded.latency) with ordinality as bucket (known, new, number)
                order by number
            )
        end
)
select count(*)
from thinned
