The parts in which hand-overs differ.

-- name: unkeyed
-- Due rows without an ordering key, class by class; see `claim`.
claimed as materialized (
    select message.*
    from ({classes}) as class
    cross join lateral (
        select id, routing_key, body, tracking_ids, created_at, expiration, send_after, headers, content_type, ordering_key,
            target_queue, last_error, hlc, requeue_count, priority, dedup_key
        from {table}
        where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
            and {since} and send_after <= now()
        order by send_after, id
        limit (select $2::integer)
        for update skip locked
    ) as message
    limit (select $2::integer)
)

-- name: single
-- One row, whatever its key; whoever asks has it locked.
claimed as materialized (
    select *
    from {table}
    where id = $2
)

-- name: superseding
-- A row that was held or came back, while another was published with its dedup key, is dropped: that one stands for it.
superseded as (
    delete from {table}
    where id = any(array(
        select id
        from claimed
        where dedup_key is not null and exists (
            select
            from {table} as later
            where later.dedup_key = claimed.dedup_key and later.id > claimed.id
                and later.sent_at is null and later.failed_at is null
        )
    ))
    returning id
),
due as materialized (
    select *
    from measured
    where id <> all(array(select id from superseded)) and (batch_bytes <= $9 or batch_bytes = row_bytes)
)

-- name: standing
-- Rows that another may stand for are left alone. They count, so that no more is read than is wanted.
due as materialized (
    select *
    from measured
    where dedup_key is null and (batch_bytes <= $9 or batch_bytes = row_bytes)
)

-- name: overtaking
-- Nothing is behind anything.
message as (
    select *
    from routed
)

-- name: in_line
-- What is behind a row that stays is left alone.
staying as materialized (
    select lane, min(rank) as rank
    from routed
    where policy <> 'skip' and state in ('held', 'parked', 'too_large')
    group by lane
),
message as materialized (
    select routed.*
    from routed
    left join staying on staying.lane = routed.lane
    where staying.rank is null or routed.rank <= staying.rank
)

-- name: facts
-- What the history is told.
told as (
    insert into {history} (at, fact, message_id, root_id, parent_id, routing_key, waited, component)
    select clock_timestamp(), 'sent', chain ->> -1, chain ->> 0, chain ->> -2, routing_key,
        case when isfinite(created_at) then greatest(clock_timestamp() - created_at, interval '0') end, {component}
    from message
    where state = 'sent'
),

-- name: runs
-- The first rows of each lane that is ours, up to the first that is not ready or that somebody else has: with a snapshot that is
-- younger than our locks on the heads. The first rows of all lanes come before the second ones, so that one after another of each
-- lane means as few steps as possible. `after_blocked` tells that the lane has blocked rows hereabouts.
candidate as materialized (
    select lane.number as lane, lane.policy, lane.place, near.id, near.rank, near.open, near.blocked
    from unnest($10::bigint[], $11::text[]) with ordinality as lane (number, policy, place)
    cross join lateral (
        select id, row_number() over numbered as rank, bool_and(ready) over numbered as open,
            bool_or(blocked) over () as blocked
        from (
            select id, failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked') as ready, last_error is not distinct from 'blocked' as blocked
            from {table}
            where sent_at is null and ordering_key is not null and hashtextextended(ordering_key, 0) = lane.number
                and (lane.policy <> 'skip' or failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked'))
            order by hashtextextended(ordering_key, 0), id
            limit $12 + 1
        ) as first
        window numbered as (order by id rows unbounded preceding)
    ) as near
),
chosen as materialized (
    select *
    from candidate
    where open and rank <= $12
    order by rank, place
    limit $2
),
locked as materialized (
    select chosen.lane, chosen.policy, chosen.rank, chosen.place, chosen.blocked, message.*
    from chosen
    cross join lateral (
        select id, routing_key, body, tracking_ids, created_at, expiration, send_after, headers, content_type, ordering_key,
            target_queue, attempts, last_error, hlc, requeue_count, dedup_key
        from {table}
        where id = chosen.id and sent_at is null and failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked')
        for update skip locked
    ) as message
),
gap as materialized (
    select lane, min(rank) as rank
    from chosen
    where id not in (select id from locked)
    group by lane
),
claimed as materialized (
    select locked.*
    from locked
    left join gap on gap.lane = locked.lane
    where gap.rank is null or locked.rank < gap.rank
    order by rank, place
)

-- name: keyed_after
-- Null unless rows with an ordering key are due, which other statements claim; then the priority that was reached here.
case
    when exists (
        select
        from {table}
        where sent_at is null and failed_at is null and ordering_key is not null
            and send_after between to_timestamp(($10::float8[])[11]) and now()
    )
    then coalesce(priority, 0)
end

-- name: highest_first
select priority
from generate_series(9, 0, -1) as priority

-- name: oldest_first
-- By how long its oldest row has been due, so that no class waits for ever behind those above it.
select class.priority
from generate_series(9, 0, -1) as class (priority)
order by (
    select send_after
    from {table}
    where sent_at is null and failed_at is null and ordering_key is null and priority = class.priority
        and send_after between to_timestamp(($10::float8[])[class.priority + 1]) and now()
    order by send_after, id
    limit 1
)

-- name: from_due_times
send_after >= to_timestamp(($10::float8[])[class.priority + 1])

-- name: from_cursor
(send_after, id) > (to_timestamp(($10::float8[])[class.priority + 1]), ($11::bigint[])[class.priority + 1])
