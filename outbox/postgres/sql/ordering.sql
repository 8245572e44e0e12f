Rows with an ordering key. A *lane* is the sequence of rows with one key, by id; its number is the hash of the key. The *head* of a lane
is the row that must leave first: its first row, parked or not; under the policy "skip", its first ready row. A relay claims a lane by
locking its head. A row is *ready* if it is not parked, and due or blocked. A due row that must wait for the head may be marked
'blocked', which removes it from the index of due rows; the transaction that removes the head releases the row after it. The policy of a
key is that of its longest matching prefix; prefixes are passed longest first.

-- name: find_lanes
-- Locks the heads of up to $5 lanes with due rows, among the $3 rows that have been due the longest, from the due time $4 on. $1 and $2:
-- prefixes and their policies. Returns every lane that it found, whether this transaction owns it now, and the state of its head.
-- Locks exactly the head or nothing, never the row after it. With a moderate number of lanes, half of them are left to the next claim, so
-- that two claims are in flight.
with front as materialized (
    select id, ordering_key, hashtextextended(ordering_key, 0) as lane, row_number() over () as place,
        date_part('epoch', send_after) as due
    from (
        select id, ordering_key, send_after
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is not null
            and send_after between to_timestamp($4::float8) and now()
        order by send_after, id
        limit $3
    ) as due
),
lane as materialized (
    select lane, min(place) as place, count(*) as rows_due, min(ordering_key collate "C") as ordering_key
    from front
    group by lane
),
headed as materialized (
    select lane.lane, lane.place, lane.rows_due, lane.policy, first.id as head, first.ready, first.parked, first.deduplicated
    from (
        select *, (
            select rule.policy
            from unnest($1::text[], $2::text[]) as rule (prefix, policy)
            where starts_with(ordering_key, rule.prefix)
            limit 1
        ) as policy
        from lane
    ) as lane
    cross join lateral (
        select id, failed_at is not null as parked, dedup_key is not null as deduplicated,
            failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked') as ready
        from only {table}
        where sent_at is null and ordering_key is not null and hashtextextended(ordering_key, 0) = lane.lane
            and (
                lane.policy <> 'skip'
                or failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked')
            )
        order by hashtextextended(ordering_key, 0), id
        limit 1
    ) as first
),
ours as materialized (
    select wanted.lane
    from (select lane, head from headed where ready order by place) as wanted
    cross join lateral (
        select
        from only {table}
        where id = wanted.head and sent_at is null and failed_at is null
        for update skip locked
    ) as head
    limit least($5::bigint, greatest(16, (select (count(*) + 1) / 2 from headed where ready)))
)
select lane, policy, head, ready, parked, deduplicated, rows_due, lane in (select lane from ours) as ours,
    (select min(due) from front) as due
from headed
order by place

-- name: claim_runs
-- Claims the first rows of each of the lanes $1 with the policies $2, whose heads this transaction has locked, up to the first row that
-- is not ready or is locked by another transaction. $3: most rows of one lane. $4: most rows. $5 and $6: bytes, as in `claim`.
--
-- A separate statement, because its snapshot must be newer than the locks on the heads. The first rows of all lanes come before the
-- second ones, because the rows of a lane are sent one after another, and lanes at the same time. `gap`: where the rows of a lane end, as
-- a JSON object, because a lookup costs the same with any plan. `blocked`: the lane has blocked rows nearby. Sizes and columns are those of
-- `claim` in relay.sql.
with candidate as materialized (
    select lane.number as lane, lane.policy, lane.place, near.id, near.rank, near.open, near.blocked
    from unnest($1::bigint[], $2::text[]) with ordinality as lane (number, policy, place)
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
            limit $3 + 1
        ) as first
        window numbered as (order by id rows unbounded preceding)
    ) as near
),
chosen as materialized (
    select *
    from candidate
    where open and rank <= $3
    order by rank, place
    limit $4
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
    select *, row_bytes > $6::bigint as too_large,
        sum(case when row_bytes > $6::bigint then 0 else row_bytes end) over (rows unbounded preceding) as batch_bytes
    from sized
)
select id, case when too_large then left(routing_key, 255) else routing_key end as routing_key,
    case when not too_large then body end as body,
    case when too_large and pg_column_size(tracking_ids) > 2000 then '[]' else tracking_ids::text end as tracking_ids,
    date_part('epoch', created_at) as created_at,
    case when expiration < interval '1000 years' then date_part('epoch', expiration) end as expiration,
    case when not too_large then headers::text end as headers, content_type, ordering_key, target_queue, attempts, last_error,
    hlc, requeue_count, case when too_large then row_bytes end as too_large_bytes, dedup_key is not null as deduplicated,
    batch_bytes, lane, policy, blocked, date_part('epoch', send_after) as due
from measured
where batch_bytes <= $5 or (batch_bytes = row_bytes and not too_large)

-- name: claim_head_unread
-- Claims the first row of the lane $1 with the policy $2, and returns only columns that the server can always return.
select message.id, message.attempts, lane.number as lane, lane.policy
from (select $1::bigint as number, $2::text as policy) as lane
cross join lateral (
    select id, failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked') as ready
    from only {table}
    where sent_at is null and ordering_key is not null and hashtextextended(ordering_key, 0) = lane.number
        and (
            lane.policy <> 'skip'
            or failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked')
        )
    order by hashtextextended(ordering_key, 0), id
    limit 1
) as first
cross join lateral (
    select id, attempts
    from only {table}
    where first.ready and id = first.id and sent_at is null
        and failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked')
    for update skip locked
) as message

-- name: supersede_heads
-- Deletes those of the heads $1 that were returned unsent and replaced by a later message with their dedup key; see `supersede` in
-- relay.sql. The later message may be behind them, and must not wait for them. Parked heads stay, for an operator.
delete from only {table}
where id = any(array(
    select id
    from only {table} as older
    where id = any($1::bigint[]) and sent_at is null and failed_at is null and exists (
        select
        from only {table} as later
        where later.dedup_key = older.dedup_key and later.id > older.id and later.sent_at is null and later.failed_at is null
        offset 0
    )
    for update of older skip locked
))

-- name: share_heads
-- A shared lock keeps heads in the outbox, and skips heads that are just being removed: rows behind those must not be marked, because
-- nothing would release them. It is the weakest lock, so that publishers do not take the head for one in flight. A publisher that
-- withdraws it waits until this transaction commits. Under "skip", a head that is no longer ready is none.
select message.id
from only {table} as message
join unnest($1::bigint[], $2::text[]) as lane (head, policy) on id = lane.head
where sent_at is null
    and (
        lane.policy <> 'skip'
        or failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked')
    )
for key share of message skip locked

-- name: defer
-- Marks rows behind the heads $2 of the lanes $1 as blocked, among the $3 rows that have been due the longest, from $4 on.
update only {table}
set last_error = 'blocked', held_at = null, send_after = 'infinity'
where id = any(array(
    select id
    from only {table}
    where sent_at is null and failed_at is null and send_after <= now() and id = any(array(
        select front.id
        from (
            select id, hashtextextended(ordering_key, 0) as lane
            from only {table}
            where sent_at is null and failed_at is null and ordering_key is not null
                and send_after between to_timestamp($4::float8) and now()
            order by send_after, id
            limit $3
        ) as front
        join unnest($1::bigint[], $2::bigint[]) as lane (number, head) on lane.number = front.lane
        where front.id > lane.head
    ))
    for no key update skip locked
))

-- name: park_behind
-- Parks rows behind the parked heads $2 of the lanes $1, if they are due from $4 on or blocked. $3: most rows.
with behind as (
    select lane.head, follower.id
    from unnest($1::bigint[], $2::bigint[]) as lane (number, head)
    join only {table} as parked on parked.id = lane.head and parked.failed_at is not null
    cross join lateral (
        select id
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is not null and last_error = 'blocked'
            and hashtextextended(ordering_key, 0) = lane.number and id > lane.head
        order by hashtextextended(ordering_key, 0), id
        limit $3
    ) as follower
    union
    select lane.head, front.id
    from (
        select id, hashtextextended(ordering_key, 0) as lane
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is not null
            and send_after between to_timestamp($4::float8) and now()
        order by send_after, id
        limit $3
    ) as front
    join unnest($1::bigint[], $2::bigint[]) as lane (number, head) on lane.number = front.lane
    join only {table} as parked on parked.id = lane.head and parked.failed_at is not null
    where front.id > lane.head
)
update only {table} as message
set failed_at = clock_timestamp(), held_at = null,
    last_error = 'parked: behind outbox-' || behind.head || ', an earlier message of its ordering key'
from behind
where message.id = behind.id and message.id = any(array(
    select id
    from only {table}
    where id = any(array(select id from behind)) and sent_at is null
        and failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked')
    for no key update skip locked
))

-- name: release_next
-- Makes the next row of each of the lanes $1 with the policies $2 due, if it waits for a head that is gone. Skips a row that a publisher
-- is withdrawing, so as not to wait for that transaction: `repair_lanes` releases the row after it.
update only {table}
set last_error = null, send_after = now()
where id = any(array(
    select id
    from only {table}
    where last_error = 'blocked' and id = any(array(
        select first.id
        from unnest($1::bigint[], $2::text[]) as lane (number, policy)
        cross join lateral (
            select id, last_error
            from only {table}
            where sent_at is null and ordering_key is not null and hashtextextended(ordering_key, 0) = lane.number
                and (lane.policy = 'block' or failed_at is null)
                and (
                    lane.policy <> 'skip'
                    or failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked')
                )
            order by hashtextextended(ordering_key, 0), id
            limit 1
        ) as first
        where first.last_error = 'blocked'
    ))
    for no key update skip locked
))

-- name: repair_lanes
-- Walks the index of blocked rows from lane to lane, $4 lanes after the lane $3, and releases rows that wait for no other: their head was
-- withdrawn, or deleted by hand. $1 and $2: the policies by prefix. Under "park", a blocked row behind a parked one is released as well,
-- and parked when it is claimed.
with recursive walk (lane, id, ordering_key, number) as (
    (
        select hashtextextended(ordering_key, 0), id, ordering_key, 1
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is not null and last_error = 'blocked'
            and hashtextextended(ordering_key, 0) > $3
        order by hashtextextended(ordering_key, 0), id
        limit 1
    )
    union all
    select following.*
    from walk
    cross join lateral (
        select hashtextextended(ordering_key, 0), id, ordering_key, walk.number + 1
        from only {table}
        where sent_at is null and failed_at is null and ordering_key is not null and last_error = 'blocked'
            and hashtextextended(ordering_key, 0) > walk.lane and walk.number < $4
        order by hashtextextended(ordering_key, 0), id
        limit 1
    ) as following
),
released as (
    update only {table}
    set last_error = null, send_after = now()
    where id = any(array(
        select id
        from only {table}
        where last_error = 'blocked' and sent_at is null and failed_at is null and id = any(array(
            select walk.id
            from (
                select *, (
                    select rule.policy
                    from unnest($1::text[], $2::text[]) as rule (prefix, policy)
                    where starts_with(ordering_key, rule.prefix)
                    limit 1
                ) as policy
                from walk
            ) as walk
            where not exists (
                select
                from only {table} as earlier
                where earlier.sent_at is null and earlier.ordering_key is not null
                    and hashtextextended(earlier.ordering_key, 0) = walk.lane and earlier.id < walk.id
                    and (walk.policy = 'block' or earlier.failed_at is null)
                    and (walk.policy <> 'skip' or earlier.send_after <= now())
                offset 0
            )
        ))
        for no key update skip locked
    ))
    returning 1
)
select (select count(*) from released) as released, (select lane from walk where number = $4) as last_lane
