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

-- name: series
-- What happened in each step by name, relays and workers apart. The rows are read once, and added up to cells of $3 seconds, of which
-- there are few; everything else is made of those. Asked for is the time from $1 to $2; steps may begin with $4 and end with $5, and
-- take ($6)[n] seconds where there are n names. Told apart are the $7 names that most happened under; the rest is $8, and what has no
-- name stays without. What relays tell has no queue. Counts are added up as float8, which is exact up to 2^53: the sums of bigint
-- could become larger than a bigint, and need time and memory for that.
with cell as materialized (
    select date_bin(make_interval(secs => $3::float8), starts_at, {origin}) as span, {group} as name, queue = '' as of_relays,
        sum((created + sent + processed + failed + duplicates)::float8) filter (where starts_at >= $1 and starts_at < $2) as happened,
        {cell_sums}, max(backlog) as backlog, max(oldest_age) as oldest_age
    from {stats}
    where starts_at >= $4 and starts_at < $5 and {belongs}
    group by 1, 2, 3
),
named as (
    select name, row_number() over (order by sum(happened) desc, name) as place
    from cell
    where name is not null and happened is not null
    group by name
    order by place
    limit $7::integer + 1
),
chosen as (
    select count(*) as names,
        make_interval(secs => ($6::integer[])[least(greatest(1, count(*)), cardinality($6))::integer]) as step
    from named
)
select date_bin(step, span, {origin}) as span,
    case when cell.name is null or place <= $7 then cell.name else $8::text end as name, of_relays,
    min(place) filter (where place <= $7) as place, names, {sums}, max(backlog) as backlog,
    extract(epoch from max(oldest_age))::float8 as oldest_age, array[{latency}]::bigint[] as latency
from cell
cross join chosen
left join named on named.name = cell.name
where span >= date_bin(step, $1, {origin}) and span < date_bin(step, $2 - interval '1 microsecond', {origin}) + step
group by 1, 2, 3, names
