A hand-over moves up to $2 rows of the outbox to the queues of exchange $1 in one statement. Either a row is in every queue that is
bound for it and gone from the outbox, or nothing happened. The statement is a chain of steps: the blocks of this file, and `routes` of
routing.sql. Each block is complete; `handover.py` lists the steps of each kind of hand-over in order. The kinds differ in the rows that
they claim, and in the steps that they leave out.

Parameters of all kinds. $3: keep sent rows. $4: drop unroutable rows instead of holding them. $5 and $6: routing keys, and how long
their probes wait; $7: the wait for every other key. $8: the expiration of rows without one. $9: bytes of all rows together; a single row
may have more. $10: the component to name in the history. $11: a row with more bytes is parked. From $12 on: where the claim starts.

The first step locks rows. Later ones change them by `id = any(array(...))`, which is an index scan whatever the statistics say, and
which also finds a row that was changed between the snapshot and the lock. The limit is hidden from the planner: it then expects to need
only a part of the rows, and reads the index in order instead of sorting. No step joins two sets of rows on a column, so that the statement
has one plan for any table; see `keep_plans` in relay.sql. Without rows, the result is one row of nulls.

-- name: claim
-- Due rows without an ordering key, priority by priority, from the due times $12 on; see `claim` in relay.sql.
claimed as materialized (
    select message.*
    from generate_series(9, 0, -1) as class (priority)
    cross join lateral (
        select id, routing_key, body, tracking_ids, created_at, expiration, send_after, headers, content_type, ordering_key,
            target_queue, last_error, hlc, requeue_count, priority, dedup_key
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
            and send_after >= to_timestamp(($12::float8[])[class.priority + 1]) and send_after <= now()
        order by send_after, id
        limit (select $2::integer)
        for update skip locked
    ) as message
    limit (select $2::integer)
)

-- name: claim_fair
-- As `claim`, but begins with the priority whose oldest row has been due the longest.
claimed as materialized (
    select message.*
    from (
        select priority
        from generate_series(9, 0, -1) as each (priority)
        order by (
            select send_after
            from only {table}
            where sent_at is null and failed_at is null and ordering_key is null and priority = each.priority
                and send_after between to_timestamp(($12::float8[])[each.priority + 1]) and now()
            order by send_after, id
            limit 1
        )
    ) as class
    cross join lateral (
        select id, routing_key, body, tracking_ids, created_at, expiration, send_after, headers, content_type, ordering_key,
            target_queue, last_error, hlc, requeue_count, priority, dedup_key
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
            and send_after >= to_timestamp(($12::float8[])[class.priority + 1]) and send_after <= now()
        order by send_after, id
        limit (select $2::integer)
        for update skip locked
    ) as message
    limit (select $2::integer)
)

-- name: claim_lean
-- As `claim`, but starts after the rows that were due at $12 and have the ids $13, by priority from 0 on.
claimed as materialized (
    select message.*
    from generate_series(9, 0, -1) as class (priority)
    cross join lateral (
        select id, routing_key, body, tracking_ids, created_at, expiration, send_after, headers, content_type, ordering_key,
            target_queue, last_error, hlc, requeue_count, priority, dedup_key
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
            and (send_after, id) > (to_timestamp(($12::float8[])[class.priority + 1]), ($13::bigint[])[class.priority + 1])
            and send_after <= now()
        order by send_after, id
        limit (select $2::integer)
        for update skip locked
    ) as message
    limit (select $2::integer)
)

-- name: claim_lanes
-- The first rows of each of the lanes $12 with the policies $13, up to $14 of each; see `claim_runs` in ordering.sql.
candidate as materialized (
    select lane.number as lane, lane.policy, lane.place, near.id, near.rank, near.open, near.blocked
    from unnest($12::bigint[], $13::text[]) with ordinality as lane (number, policy, place)
    cross join lateral (
        select id, row_number() over numbered as rank, bool_and(ready) over numbered as open,
            bool_or(blocked) over () as blocked
        from (
            select id, last_error is not distinct from 'blocked' as blocked,
                failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked') as ready
            from only {table}
            where sent_at is null and ordering_key is not null and hashtextextended(ordering_key, 0) = lane.number
                and (
                    lane.policy <> 'skip'
                    or failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked')
                )
            order by hashtextextended(ordering_key, 0), id
            limit $14 + 1
        ) as first
        window numbered as (order by id rows unbounded preceding)
    ) as near
),
chosen as materialized (
    select *
    from candidate
    where open and rank <= $14
    order by rank, place
    limit $2
),
locked as materialized (
    select chosen.lane, chosen.policy, chosen.rank, chosen.place, chosen.blocked, message.*
    from chosen
    cross join lateral (
        select id, routing_key, body, tracking_ids, created_at, expiration, send_after, headers, content_type, ordering_key,
            target_queue, attempts, last_error, hlc, requeue_count, dedup_key
        from only {table}
        where id = chosen.id and sent_at is null
            and failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked')
        for update skip locked
    ) as message
),
gap as materialized (
    select jsonb_object_agg(lane, rank) as ranks
    from (
        select lane, min(rank) as rank
        from chosen
        where id not in (select id from locked)
        group by lane
    ) as first
),
claimed as materialized (
    select *
    from locked
    where coalesce(rank < ((select ranks from gap) ->> lane::text)::bigint, true)
    order by rank, place
)

-- name: claim_one
-- The row with the id $2, with or without an ordering key. The transaction has locked it.
claimed as materialized (
    select *
    from only {table}
    where id = $2
)

-- name: measured
-- `octet_length` reads the length stored with a value, without reading the value.
measured as (
    select *, octet_length(routing_key) + octet_length(body) + coalesce(pg_column_size(headers), 0) as row_bytes,
        sum(octet_length(routing_key) + octet_length(body) + coalesce(pg_column_size(headers), 0))
            over (rows unbounded preceding) as batch_bytes
    from claimed
)

-- name: superseded
-- Drops rows that were held or returned, if a later message with their dedup key replaces them.
superseded as (
    delete from only {table}
    where id = any(array(
        select id
        from claimed
        where dedup_key is not null and exists (
            select
            from only {table} as later
            where later.dedup_key = claimed.dedup_key and later.id > claimed.id
                and later.sent_at is null and later.failed_at is null
            offset 0
        )
    ))
    returning id
),
due as materialized (
    select *
    from measured
    where id <> all(array(select id from superseded)) and (batch_bytes <= $9 or batch_bytes = row_bytes)
)

-- name: not_superseded
-- Skips rows that a later message may replace. They count, so that the claim reads no more rows than its limit.
due as materialized (
    select *
    from measured
    where dedup_key is null and (batch_bytes <= $9 or batch_bytes = row_bytes)
)

-- name: address
address as materialized (
    select distinct routing_key
    from due
    where target_queue is null and row_bytes <= $11::bigint
)

-- name: routed
-- A row with a target queue goes there whatever its bindings are, if the queue is bound to any exchange.
-- A producer in another language may write any JSON as tracking ids. A row without a readable id gets one that is derived from the
-- row, so that it is always the same.
routed as (
    select *,
        case
            when row_bytes > $11::bigint then 'too_large'
            when queues is not null then 'sent'
            when $4::boolean then 'dropped'
            when octet_length(routing_key) > 1000 then 'parked'
            else 'held'
        end as state
    from (
        select due.*,
            case
                when jsonb_typeof(due.tracking_ids) = 'array' and due.tracking_ids <> '[]'
                    and not jsonb_path_exists(due.tracking_ids, 'strict $[*] ? (@.type() != "string")', silent => true)
                    then due.tracking_ids
                else jsonb_build_array(md5('{table}:' || due.id)::uuid::text)
            end as chain,
            case
                when due.row_bytes > $11::bigint then null
                when due.target_queue is null then (select by_key from route) -> due.routing_key
                else (select by_queue from route) -> due.target_queue
            end as queues
        from due
    ) as addressed
)

-- name: message
-- Without ordering keys no row is behind another.
message as (
    select *
    from routed
)

-- name: message_in_line
-- Rows behind a row that stays in the outbox are not moved.
staying as materialized (
    select jsonb_object_agg(lane, rank) as ranks
    from (
        select lane, min(rank) as rank
        from routed
        where policy <> 'skip' and state in ('held', 'parked', 'too_large')
        group by lane
    ) as first
),
message as materialized (
    select *
    from routed
    where coalesce(rank <= ((select ranks from staying) ->> lane::text)::bigint, true)
)

-- name: recorded
-- Records sent messages in the history.
recorded as (
    insert into {history} (at, fact, message_id, root_id, parent_id, routing_key, waited, component, trace_id)
    select clock_timestamp(), 'sent', chain ->> -1, chain ->> 0, chain ->> -2, routing_key,
        case when isfinite(created_at) then greatest(clock_timestamp() - created_at, interval '0') end, $10::text,
        {trace_id}
    from message
    where state = 'sent'
)

-- name: unrecorded
-- Without a history. Mentions the component, so that all kinds have the same parameters.
recorded as (
    select $10::text
)

-- name: delivered
-- An expiration beyond the range of timestamps is none.
delivered as (
    insert into {delivery} (
        exchange, queue, message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, created_at, expires_at,
        hlc, requeue_count
    )
    select $1, jsonb_array_elements_text(queues), chain ->> -1, routing_key, body, content_type, headers, chain, ordering_key,
        created_at,
        case when coalesce(expiration, $8::interval) < interval '1000 years' then now() + coalesce(expiration, $8::interval) end,
        hlc, requeue_count
    from message
    where state = 'sent'
    order by send_after, id
)

-- name: delivered_in_line
-- As `delivered`, in the order of the lanes.
delivered as (
    insert into {delivery} (
        exchange, queue, message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, created_at, expires_at,
        hlc, requeue_count
    )
    select $1, jsonb_array_elements_text(queues), chain ->> -1, routing_key, body, content_type, headers, chain, ordering_key,
        created_at,
        case when coalesce(expiration, $8::interval) < interval '1000 years' then now() + coalesce(expiration, $8::interval) end,
        hlc, requeue_count
    from message
    where state = 'sent'
    order by rank, place
)

-- name: settled
gone as (
    select array(select id from message where state in ('sent', 'dropped')) as ids
),
deleted as (
    delete from only {table}
    where not $3::boolean and id = any((select ids from gone)::bigint[])
),
kept as (
    update only {table}
    set sent_at = clock_timestamp(), last_error = null, held_at = null
    where $3::boolean and id = any((select ids from gone)::bigint[])
),
-- One held row per routing key is the probe, unless an earlier row is one already; the others wait for its success. Rows with a target
-- queue have a separate probe; others wait at most `LONGEST_WAIT`, in case that the probe is lost.
-- `offset 0` makes this one lookup in the held index per key; a join might read all held rows.
probe as materialized (
    select candidate.id
    from (
        select min(id) as id, routing_key, target_queue
        from message
        where state = 'held'
        group by routing_key, target_queue
    ) as candidate
    where not exists (
        select
        from only {table} as other
        where other.sent_at is null and other.failed_at is null and other.last_error = 'unroutable'
            and other.routing_key = candidate.routing_key
            and other.send_after < case when candidate.target_queue is null then 'infinity' else now() + interval '1 minute' end
            and other.target_queue is not distinct from candidate.target_queue
            and other.id <> all(array(select id from due))
        offset 0
    )
),
pause as (
    select jsonb_object_agg(routing_key, delay) as by_key
    from unnest($5::text[], $6::interval[]) as given (routing_key, delay)
),
probing as (
    update only {table}
    set last_error = 'unroutable', held_at = case when last_error = 'unroutable' then held_at else clock_timestamp() end,
        send_after = now() + case
            when target_queue is null then coalesce(((select by_key from pause) ->> routing_key)::interval, $7::interval)
            else greatest($7::interval, interval '5 seconds')
        end
    where id = any(array(select id from probe))
),
waiting as (
    update only {table}
    set last_error = 'unroutable', held_at = case when last_error = 'unroutable' then held_at else clock_timestamp() end,
        send_after = case when target_queue is null then 'infinity' else now() + interval '300 seconds' end
    where id = any(array(select id from message where state = 'held' except select id from probe))
),
-- Longer keys do not fit into the index of held rows. Larger messages exceed the limit of workers.
parked as (
    update only {table}
    set attempts = least(attempts, 2147483646) + 1, failed_at = clock_timestamp(), held_at = null,
        last_error = case
            when id = any(array(select id from message where state = 'too_large'))
                then 'too large: the message has more than the ' || $11::bigint || ' bytes of max_body_bytes'
            else 'unroutable, with a routing key longer than the 1000 bytes that can be held'
        end
    where id = any(array(select id from message where state in ('parked', 'too_large')))
)

-- name: shown
-- A creation time of infinity has no age, and must not make the statement fail.
select id as row_id, case state when 'too_large' then left(chain ->> -1, 255) else chain ->> -1 end as message_id,
    case state when 'too_large' then left(routing_key, 255) else routing_key end as routing_key, state,
    last_error is not distinct from 'unroutable' as was_held,
    date_part('epoch', now()) - date_part('epoch', created_at) as age_seconds,
    case
        when last_error is null and isfinite(created_at) then date_part('epoch', send_after) - date_part('epoch', created_at)
    end as scheduled_seconds,
    target_queue, priority,
    left(headers ->> 'traceparent', 255) as traceparent,
    date_part('epoch', send_after) as due, exists(select from claimed where dedup_key is not null) as deduplicated,
    case
        when (
            select true
            from only {table}
            where sent_at is null and failed_at is null and ordering_key is not null
                and send_after between to_timestamp(($12::float8[])[11]) and now()
            order by send_after, id
            limit 1
        )
        then coalesce(priority, 0)
    end as keyed_after
from (select) as one
left join message on true
order by send_after, id

-- name: shown_lean
-- As `shown`, without looking for rows with dedup keys or ordering keys: planning that takes longer than running it.
select id as row_id, case state when 'too_large' then left(chain ->> -1, 255) else chain ->> -1 end as message_id,
    case state when 'too_large' then left(routing_key, 255) else routing_key end as routing_key, state,
    last_error is not distinct from 'unroutable' as was_held,
    date_part('epoch', now()) - date_part('epoch', created_at) as age_seconds,
    case
        when last_error is null and isfinite(created_at) then date_part('epoch', send_after) - date_part('epoch', created_at)
    end as scheduled_seconds,
    target_queue, priority,
    left(headers ->> 'traceparent', 255) as traceparent,
    date_part('epoch', send_after) as due
from (select) as one
left join message on true
order by send_after, id

-- name: shown_in_line
-- As `shown`, in the order of the lanes. `blocked`: lanes with waiting rows, including those whose claimed rows were all superseded.
select id as row_id, case state when 'too_large' then left(chain ->> -1, 255) else chain ->> -1 end as message_id,
    case state when 'too_large' then left(routing_key, 255) else routing_key end as routing_key, state,
    last_error is not distinct from 'unroutable' as was_held,
    date_part('epoch', now()) - date_part('epoch', created_at) as age_seconds,
    case
        when last_error is null and isfinite(created_at) then date_part('epoch', send_after) - date_part('epoch', created_at)
    end as scheduled_seconds,
    target_queue,
    left(headers ->> 'traceparent', 255) as traceparent,
    array(select distinct lane from claimed where blocked) as blocked
from (select) as one
left join message on true
order by rank, place
