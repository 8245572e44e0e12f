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
