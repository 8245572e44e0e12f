Statements of a relay: claim due rows of the outbox, settle them, and release waiting rows. `ordering.sql` claims rows with an ordering
key.

-- name: begin
-- The server limits the transaction as well: a relay that is frozen or gone loses its locks, and cannot commit late. Every statement
-- has an index in its order. Statistics lag behind in a table that is used as a queue, so the planner must not choose to read and sort
-- the backlog. Up to version 17 it adds a penalty to their costs that makes it compile them, for longer than they run. (`set` takes no
-- parameters, so the two times in milliseconds are written into it.)
begin isolation level read committed;
set local idle_in_transaction_session_timeout = {idle_timeout};
set local lock_timeout = {lock_timeout};
set local enable_seqscan = off;
set local enable_bitmapscan = off;
set local enable_sort = off;
set local jit = off

-- name: keep_plans
-- After `begin`: the connection plans each statement of this transaction once, because planning takes longer than claiming a few rows. Such
-- a statement must have the same plan for any table, and for arrays of any length.
set local plan_cache_mode = force_generic_plan

-- name: plan_again
-- Before statements that join rows with arrays.
set local plan_cache_mode = force_custom_plan

-- name: alone
-- As `begin`, for a statement without parameters that follows in the same message: a message is one transaction.
set transaction isolation level read committed;
set local lock_timeout = {lock_timeout};
set local enable_seqscan = off;
set local enable_bitmapscan = off;
set local enable_sort = off;
set local jit = off

-- name: claim
-- Claims up to $1 due rows without an ordering key, the highest priority first. $2: bytes of all rows together; the first one may have
-- more. $3: a row with more bytes is returned without its body. $4: the due times to start at, in seconds since 1970, by priority from 0
-- on, and for rows with an ordering key.
--
-- Reads the index of due rows priority by priority, locks rows as it reads, and skips rows that other relays have locked. The outer limit
-- stops the scan. The result has at least one row, of nulls if nothing was claimed, so that it always contains `keyed_after`.
with claimed as materialized (
    select message.*
    from generate_series(9, 0, -1) as class (priority)
    cross join lateral (
        select id, routing_key, body, tracking_ids, created_at, expiration, headers, content_type, ordering_key, target_queue,
            attempts, last_error, hlc, requeue_count, priority, dedup_key, send_after
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
            and send_after >= to_timestamp(($4::float8[])[class.priority + 1]) and send_after <= now()
        order by send_after, id
        limit $1
        for update skip locked
    ) as message
    limit $1
),
-- Sizes are added up before rows are fetched, so that a batch of large rows ends early instead of filling the memory. A row that is too
-- large to be fetched counts as zero: it is returned without its body. `octet_length` reads the length stored with a value, without
-- reading the value. For small jsonb values, finding out the size is not worth the conversion. `offset 0` keeps the planner from
-- computing a size once per mention.
sized as (
    select *,
        octet_length(routing_key) + octet_length(body)
            + case when pg_column_size(headers) > 2000 then octet_length(headers::text) else 0 end
            + case when pg_column_size(tracking_ids) > 2000 then octet_length(tracking_ids::text) else 0 end as row_bytes
    from claimed
    offset 0
),
measured as (
    select *, row_bytes > $3::bigint as too_large,
        sum(case when row_bytes > $3::bigint then 0 else row_bytes end) over (rows unbounded preceding) as batch_bytes
    from sized
)
-- Times are returned as seconds and jsonb as text, so that no value of a producer is out of the driver's range, and codecs of a given
-- pool do not matter. (`date_part` is `extract` without the conversion to numeric, which takes half a microsecond.)
-- `keyed_after` is the priority reached here if rows with an ordering key are due, which `ordering.sql` claims; else null. (Their order
-- makes the planner read the index of due rows.)
select id, case when too_large then left(routing_key, 255) else routing_key end as routing_key,
    case when not too_large then body end as body,
    case when too_large and pg_column_size(tracking_ids) > 2000 then '[]' else tracking_ids::text end as tracking_ids,
    date_part('epoch', created_at) as created_at,
    case when expiration < interval '1000 years' then date_part('epoch', expiration) end as expiration,
    case when not too_large then headers::text end as headers, content_type, ordering_key, target_queue, attempts, last_error,
    hlc, requeue_count, case when too_large then row_bytes end as too_large_bytes, dedup_key is not null as deduplicated,
    batch_bytes, priority, date_part('epoch', send_after) as due,
    case
        when (
            select true
            from only {table}
            where sent_at is null and failed_at is null and ordering_key is not null
                and send_after between to_timestamp(($4::float8[])[11]) and now()
            order by send_after, id
            limit 1
        )
        then coalesce(priority, 0)
    end as keyed_after
from (select) as one
left join measured on batch_bytes <= $2 or (batch_bytes = row_bytes and not too_large)

-- name: claim_fair
-- As `claim`, but begins with the priority whose oldest row has been due the longest, so that no priority starves.
with claimed as materialized (
    select message.*
    from (
        select priority
        from generate_series(9, 0, -1) as each (priority)
        order by (
            select send_after
            from only {table}
            where sent_at is null and failed_at is null and ordering_key is null and priority = each.priority
                and send_after between to_timestamp(($4::float8[])[each.priority + 1]) and now()
            order by send_after, id
            limit 1
        )
    ) as class
    cross join lateral (
        select id, routing_key, body, tracking_ids, created_at, expiration, headers, content_type, ordering_key, target_queue,
            attempts, last_error, hlc, requeue_count, priority, dedup_key, send_after
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
            and send_after >= to_timestamp(($4::float8[])[class.priority + 1]) and send_after <= now()
        order by send_after, id
        limit $1
        for update skip locked
    ) as message
    limit $1
),
sized as (
    select *,
        octet_length(routing_key) + octet_length(body)
            + case when pg_column_size(headers) > 2000 then octet_length(headers::text) else 0 end
            + case when pg_column_size(tracking_ids) > 2000 then octet_length(tracking_ids::text) else 0 end as row_bytes
    from claimed
    offset 0
),
measured as (
    select *, row_bytes > $3::bigint as too_large,
        sum(case when row_bytes > $3::bigint then 0 else row_bytes end) over (rows unbounded preceding) as batch_bytes
    from sized
)
select id, case when too_large then left(routing_key, 255) else routing_key end as routing_key,
    case when not too_large then body end as body,
    case when too_large and pg_column_size(tracking_ids) > 2000 then '[]' else tracking_ids::text end as tracking_ids,
    date_part('epoch', created_at) as created_at,
    case when expiration < interval '1000 years' then date_part('epoch', expiration) end as expiration,
    case when not too_large then headers::text end as headers, content_type, ordering_key, target_queue, attempts, last_error,
    hlc, requeue_count, case when too_large then row_bytes end as too_large_bytes, dedup_key is not null as deduplicated,
    batch_bytes, priority, date_part('epoch', send_after) as due,
    case
        when (
            select true
            from only {table}
            where sent_at is null and failed_at is null and ordering_key is not null
                and send_after between to_timestamp(($4::float8[])[11]) and now()
            order by send_after, id
            limit 1
        )
        then coalesce(priority, 0)
    end as keyed_after
from (select) as one
left join measured on batch_bytes <= $2 or (batch_bytes = row_bytes and not too_large)

-- name: claim_lean
-- As `claim`, but starts after the last rows of the previous claim, which were due at $4 and have the ids $5, by priority from 0 on. Does
-- not look for rows with an ordering key: planning that takes longer than running it. The result may be empty.
with claimed as materialized (
    select message.*
    from generate_series(9, 0, -1) as class (priority)
    cross join lateral (
        select id, routing_key, body, tracking_ids, created_at, expiration, headers, content_type, ordering_key, target_queue,
            attempts, last_error, hlc, requeue_count, priority, dedup_key, send_after
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
            and (send_after, id) > (to_timestamp(($4::float8[])[class.priority + 1]), ($5::bigint[])[class.priority + 1])
            and send_after <= now()
        order by send_after, id
        limit $1
        for update skip locked
    ) as message
    limit $1
),
sized as (
    select *,
        octet_length(routing_key) + octet_length(body)
            + case when pg_column_size(headers) > 2000 then octet_length(headers::text) else 0 end
            + case when pg_column_size(tracking_ids) > 2000 then octet_length(tracking_ids::text) else 0 end as row_bytes
    from claimed
    offset 0
),
measured as (
    select *, row_bytes > $3::bigint as too_large,
        sum(case when row_bytes > $3::bigint then 0 else row_bytes end) over (rows unbounded preceding) as batch_bytes
    from sized
)
select id, case when too_large then left(routing_key, 255) else routing_key end as routing_key,
    case when not too_large then body end as body,
    case when too_large and pg_column_size(tracking_ids) > 2000 then '[]' else tracking_ids::text end as tracking_ids,
    date_part('epoch', created_at) as created_at,
    case when expiration < interval '1000 years' then date_part('epoch', expiration) end as expiration,
    case when not too_large then headers::text end as headers, content_type, ordering_key, target_queue, attempts, last_error,
    hlc, requeue_count, case when too_large then row_bytes end as too_large_bytes, dedup_key is not null as deduplicated,
    batch_bytes, priority, date_part('epoch', send_after) as due
from measured
where batch_bytes <= $2 or (batch_bytes = row_bytes and not too_large)

-- name: claim_unread
-- Claims one row, and returns only columns that the server can always return. $1: in the order of `claim_fair`, from the front.
with claimed as materialized (
    select message.*
    from (
        select priority
        from generate_series(9, 0, -1) as each (priority)
        order by
            case
                when $1::boolean then (
                    select send_after
                    from only {table}
                    where sent_at is null and failed_at is null and ordering_key is null and priority = each.priority
                        and send_after <= now()
                    order by send_after, id
                    limit 1
                )
            end,
            priority desc
    ) as class
    cross join lateral (
        select id, attempts, priority
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
            and send_after <= now()
        order by send_after, id
        limit 1
        for update skip locked
    ) as message
    limit 1
)
select id, attempts
from claimed

-- name: read
-- Returns the row $1, which this transaction has locked, without its body if it has more than $2 bytes.
with claimed as (
    select *
    from only {table}
    where id = $1
),
sized as (
    select *,
        octet_length(routing_key) + octet_length(body)
            + case when pg_column_size(headers) > 2000 then octet_length(headers::text) else 0 end
            + case when pg_column_size(tracking_ids) > 2000 then octet_length(tracking_ids::text) else 0 end as row_bytes
    from claimed
    offset 0
),
measured as (
    select *, row_bytes > $2::bigint as too_large,
        sum(case when row_bytes > $2::bigint then 0 else row_bytes end) over (rows unbounded preceding) as batch_bytes
    from sized
)
select id, case when too_large then left(routing_key, 255) else routing_key end as routing_key,
    case when not too_large then body end as body,
    case when too_large and pg_column_size(tracking_ids) > 2000 then '[]' else tracking_ids::text end as tracking_ids,
    date_part('epoch', created_at) as created_at,
    case when expiration < interval '1000 years' then date_part('epoch', expiration) end as expiration,
    case when not too_large then headers::text end as headers, content_type, ordering_key, target_queue, attempts, last_error,
    hlc, requeue_count, case when too_large then row_bytes end as too_large_bytes, dedup_key is not null as deduplicated,
    date_part('epoch', send_after) as due
from measured

-- name: supersede
-- Deletes rows that were returned unsent, if a later message with their dedup key replaces them. It runs when a claim returns rows, and
-- again in the next claim, for messages that were committed in between and for claims that crashed. It is not part of the claim,
-- because most rows have no dedup key, and planning it would cost every claim. `offset 0` makes this one lookup per row; a join might read
-- all rows with dedup keys.
delete from only {table}
where id = any(array(
    select id
    from only {table} as older
    where id = any($1::bigint[]) and exists (
        select
        from only {table} as later
        where later.dedup_key = older.dedup_key and later.id > older.id and later.sent_at is null and later.failed_at is null
        offset 0
    )
))
returning id

-- name: delete
delete from only {table}
where id = any($1::bigint[])

-- name: keep
update only {table}
set sent_at = clock_timestamp(), last_error = null, held_at = null
where id = any($1::bigint[])

-- name: retry
update only {table} as message
set attempts = least(message.attempts, 2147483646) + 1, last_error = outcome.error, held_at = null,
    send_after = clock_timestamp() + outcome.delay
from unnest($1::bigint[], $2::text[], $3::interval[]) as outcome (id, error, delay)
where message.id = outcome.id and message.id = any($1::bigint[])

-- name: park
update only {table} as message
set attempts = least(message.attempts, 2147483646) + 1, last_error = outcome.error, held_at = null,
    failed_at = clock_timestamp()
from unnest($1::bigint[], $2::text[]) as outcome (id, error)
where message.id = outcome.id and message.id = any($1::bigint[])

-- name: hold
-- Without a probe delay, a held row is never due: the success of its key's probe releases it. A row that was held before keeps the time
-- since when, and has none if the release of Outbox that held it did not record one.
update only {table} as message
set last_error = 'unroutable', send_after = coalesce(clock_timestamp() + outcome.probe_after, 'infinity'),
    held_at = case when message.last_error = 'unroutable' then message.held_at else clock_timestamp() end
from unnest($1::bigint[], $2::interval[]) as outcome (id, probe_after)
where message.id = outcome.id and message.id = any($1::bigint[])

-- name: stall
-- Never due: the success of a probe releases it. A failed probe keeps the time since when it has been stalled.
update only {table} as message
set last_error = 'stalled', send_after = 'infinity',
    held_at = case when message.last_error = 'stalled' then message.held_at else clock_timestamp() end
where id = any($1::bigint[])

-- name: release_held
-- Rows with a target queue are released by a row with the same one.
update only {table}
set last_error = null, held_at = null, send_after = now()
where id in (
    select id
    from only {table}
    where sent_at is null and failed_at is null and last_error = 'unroutable' and routing_key = $1
        and target_queue is not distinct from $2
    order by send_after, id
    limit $3
    for no key update skip locked
)

-- name: any_held_or_blocked
-- Whether there is anything for `ensure_probes` and `repair_lanes` to look at. In the order of an index each: a plain limit could read all
-- rows that are kept after they were sent.
select
from (
    (
        select
        from only {table}
        where sent_at is null and failed_at is null and last_error = 'unroutable'
        order by routing_key, send_after, id
        limit 1
    )
    union all
    (
        select
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is not null and last_error = 'blocked'
        order by hashtextextended(ordering_key, 0), id
        limit 1
    )
) as waiting
limit 1

-- name: ensure_probes
-- Walks the held index from key to key. The first row of a key is its probe, unless it is never due itself. Rows with a target queue are
-- few, are always due at some time, and do not show whether the others have a probe.
with recursive probe as (
    (
        select id, routing_key, send_after
        from only {table}
        where sent_at is null and failed_at is null and last_error = 'unroutable' and target_queue is null
        order by routing_key, send_after, id
        limit 1
    )
    union all
    select following.id, following.routing_key, following.send_after
    from probe
    cross join lateral (
        select id, routing_key, send_after
        from only {table}
        where sent_at is null and failed_at is null and last_error = 'unroutable' and target_queue is null
            and routing_key > probe.routing_key
        order by routing_key, send_after, id
        limit 1
    ) as following
)
update only {table}
set send_after = now()
where id = any(array(
    select id
    from only {table}
    where send_after = 'infinity' and id = any(array(select id from probe where send_after = 'infinity'))
    for no key update skip locked
))

-- name: next_due
-- The first entry of each index of due rows, from the times $1 on; see `claim`.
select (extract(epoch from min(send_after)) - extract(epoch from clock_timestamp()))::float8
from (
    select first.send_after
    from generate_series(0, 9) as class (priority)
    cross join lateral (
        select send_after
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
            and send_after >= to_timestamp(($1::float8[])[class.priority + 1]) and send_after < 'infinity'
        order by send_after, id
        limit 1
    ) as first
    union all
    (
        select send_after
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is not null
            and send_after >= to_timestamp(($1::float8[])[11]) and send_after < 'infinity'
        order by send_after, id
        limit 1
    )
) as next

-- name: delete_sent
delete from only {table}
where id in (
    select id
    from only {table}
    where sent_at is not null and sent_at < now() - $1::interval
    order by sent_at
    limit $2
    for update skip locked
)

-- name: any_unsent
-- Whether there is anything for `backlog` to count, read like `any_held_or_blocked`.
select
from (
    (
        select
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is null
        order by priority, send_after, id
        limit 1
    )
    union all
    (
        select
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is not null
        order by send_after, id
        limit 1
    )
) as unsent
limit 1

-- name: backlog
-- Counting millions of rows every few seconds would cost more than relaying them. Beyond 100,000 rows, the answer is the size of the two
-- indexes of due rows at the last vacuum or analyze.
select
    case when counted.unsent < 100000 then counted.unsent else greatest(counted.unsent, known.unsent) end as unsent,
    (extract(epoch from now()) - extract(epoch from oldest.send_after))::float8 as oldest_due
from (
    select count(*) as unsent
    from (
        select
        from (
            (
                select
                from only {table}
                where sent_at is null and failed_at is null and ordering_key is null
                limit 100000
            )
            union all
            (
                select
                from only {table}
                where sent_at is null and failed_at is null and ordering_key is not null
                limit 100000
            )
        ) as each
        limit 100000
    ) as pending
) as counted
cross join (
    select sum(index.reltuples)::bigint as unsent
    from pg_catalog.pg_index
    join pg_catalog.pg_class as index on index.oid = indexrelid
    where indrelid = '{table}'::regclass and index.relname in ('{due_index_name}', '{ordered_due_index_name}')
) as known
cross join (
    select min(send_after) as send_after
    from (
        select first.send_after
        from generate_series(0, 9) as class (priority)
        cross join lateral (
            select send_after
            from only {table}
            where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
                and send_after <= now()
            order by send_after, id
            limit 1
        ) as first
        union all
        (
            select send_after
            from only {table}
            where sent_at is null and failed_at is null and ordering_key is not null and send_after <= now()
            order by send_after, id
            limit 1
        )
    ) as due
) as oldest

-- name: lacking_rights
select array(
    select right_
    from unnest(array['select', 'update', 'delete']) as right_
    where not has_table_privilege('{table}'::regclass, right_)
)
