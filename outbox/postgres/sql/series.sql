Statistics as series. Rows are found by the beginning of their span, which the primary key begins with.

-- name: now
select clock_timestamp()

-- name: coarsest
-- The longest span that statistics of that time are kept by. Days and hours are looked for where they would begin.
select case
    when exists(
        select
        from generate_series(date_bin('24 hours', $1::timestamptz, {origin}), $2::timestamptz, '24 hours') as span (at)
        cross join lateral (select from {stats} where starts_at = span.at and seconds = 86400 limit 1) as found
    ) then 86400
    when $3::boolean and exists(
        select
        from generate_series(date_bin('1 hour', $1::timestamptz, {origin}), $2::timestamptz, '1 hour') as span (at)
        cross join lateral (select from {stats} where starts_at = span.at and seconds = 3600 limit 1) as found
    ) then 3600
    else 60
end

-- name: groups
-- The names that most happened under.
select {group} as name
from {stats}
where starts_at >= $1 and starts_at < $2 and {belongs}
group by 1
order by sum(created + sent + processed + failed + duplicates) desc, 1
limit $3

-- name: reported
-- The spans of which anything was told, by relays and by workers. A message's creation may be told of a time without a relay.
select date_bin(make_interval(secs => $3::float8), starts_at, {origin}) as span,
    bool_or(queue = '' and (sent > 0 or backlog is not null)) as by_relays, bool_or(queue <> '') as by_workers
from {stats}
where starts_at >= $1 and starts_at < $2
group by 1

-- name: series
-- $3: the step in seconds. $4: the names that are told apart, the rest being $5. What relays tell has no queue.
select date_bin(make_interval(secs => $3::float8), starts_at, {origin}) as span,
    case when {group} = any($4::text[]) then {group} else $5::text end as name,
    queue = '' as of_relays, sum(created)::bigint as created, sum(sent)::bigint as sent, sum(processed)::bigint as processed,
    sum(failed)::bigint as failed, sum(retried)::bigint as retried, sum(dead)::bigint as dead,
    sum(duplicates)::bigint as duplicates, max(backlog) as backlog, extract(epoch from max(oldest_age))::float8 as oldest_age,
    array[{sums}]::bigint[] as latency
from {stats}
where starts_at >= $1 and starts_at < $2 and {belongs}
group by 1, 2, 3
