What the statements about lanes have in common; see `ordering.sql`.

-- name: policy
-- The longest prefix is the first.
(
    select rule.policy
    from unnest($1::text[], $2::text[]) as rule (prefix, policy)
    where starts_with(ordering_key, rule.prefix)
    limit 1
)

-- name: front
-- Due rows with their lanes, those that have been due the longest first.
select id, ordering_key, hashtextextended(ordering_key, 0) as lane, row_number() over () as place,
    date_part('epoch', send_after) as due
from (
    select id, ordering_key, send_after
    from {table}
    where sent_at is null and failed_at is null and ordering_key is not null
        and send_after between to_timestamp($4::float8) and now()
    order by send_after, id
    limit $3
) as due

-- name: runs
-- The first rows of each lane that is ours, up to the first that is not ready or that somebody else has: with a snapshot that is
-- younger than our locks on the heads. The first rows of all lanes come before the second ones, so that one after another of each
-- lane means as few steps as possible. `after_blocked` tells that the lane has blocked rows hereabouts.
candidate as materialized (
    select lane.number as lane, lane.policy, lane.place, near.id, near.rank, near.open, near.blocked
    from unnest({lanes}::bigint[], {policies}::text[]) with ordinality as lane (number, policy, place)
    cross join lateral (
        select id, row_number() over numbered as rank, bool_and(ready) over numbered as open,
            bool_or(blocked) over () as blocked
        from (
            select id, {ready} as ready, last_error is not distinct from 'blocked' as blocked
            from {table}
            where sent_at is null and ordering_key is not null and hashtextextended(ordering_key, 0) = lane.number
                and (lane.policy <> 'skip' or {ready})
            order by hashtextextended(ordering_key, 0), id
            limit {longest} + 1
        ) as first
        window numbered as (order by id rows unbounded preceding)
    ) as near
),
chosen as materialized (
    select *
    from candidate
    where open and rank <= {longest}
    order by rank, place
    limit {limit}
),
locked as materialized (
    select chosen.lane, chosen.policy, chosen.rank, chosen.place, chosen.blocked, message.*
    from chosen
    cross join lateral (
        select id, routing_key, body, tracking_ids, created_at, expiration, send_after, headers, content_type, ordering_key,
            target_queue, attempts, last_error, hlc, requeue_count, dedup_key
        from {table}
        where id = chosen.id and sent_at is null and {ready}
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
