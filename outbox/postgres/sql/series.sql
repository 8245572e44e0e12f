Time series of statistics. Rows are found by the start of their span, the first column of the primary key. Spans are counted from midnight
UTC at the beginning of 2000.

-- name: now
select clock_timestamp()

-- name: coarsest
-- The longest span of statistics in that time. Days and hours are looked up at the times at which they would start.
select case
    when exists(
        select
        from generate_series(date_bin('24 hours', $1::timestamptz, timestamptz '2000-01-01 00:00:00+00'), $2::timestamptz, '24 hours') as span (at)
        cross join lateral (select from {stats} where starts_at = span.at and seconds = 86400 limit 1) as found
    ) then 86400
    when $3::boolean and exists(
        select
        from generate_series(date_bin('1 hour', $1::timestamptz, timestamptz '2000-01-01 00:00:00+00'), $2::timestamptz, '1 hour') as span (at)
        cross join lateral (select from {stats} where starts_at = span.at and seconds = 3600 limit 1) as found
    ) then 3600
    else 60
end

-- name: series
-- Activity from $1 to $2 in steps of $3 seconds, separately for relays and workers: relays report no queue. The columns are
-- those of `series_by_name`, without a name. Where there are no names, the length of a step does not depend on their number, so the rows
-- are added up at once. Counts are added up as float8, which is exact up to 2^53: the sums of bigint could become larger than a bigint,
-- and need time and memory for that.
select date_bin(make_interval(secs => $3::float8), starts_at, timestamptz '2000-01-01 00:00:00+00') as span, null::text as name,
    queue = '' as of_relays, null::bigint as place, 0::bigint as names,
    sum(created::float8)::bigint as created, sum(sent::float8)::bigint as sent, sum(processed::float8)::bigint as processed,
    sum(failed::float8)::bigint as failed, sum(retried::float8)::bigint as retried, sum(dead::float8)::bigint as dead,
    sum(duplicates::float8)::bigint as duplicates,
    max(backlog) as backlog, extract(epoch from max(oldest_age))::float8 as oldest_age,
    array[
        sum(latency[1]::float8), sum(latency[2]::float8), sum(latency[3]::float8), sum(latency[4]::float8),
        sum(latency[5]::float8), sum(latency[6]::float8), sum(latency[7]::float8), sum(latency[8]::float8),
        sum(latency[9]::float8), sum(latency[10]::float8), sum(latency[11]::float8), sum(latency[12]::float8),
        sum(latency[13]::float8), sum(latency[14]::float8), sum(latency[15]::float8), sum(latency[16]::float8),
        sum(latency[17]::float8), sum(latency[18]::float8), sum(latency[19]::float8), sum(latency[20]::float8),
        sum(latency[21]::float8)
    ]::bigint[] as latency
from {stats}
where starts_at >= date_bin(make_interval(secs => $3::float8), $1::timestamptz, timestamptz '2000-01-01 00:00:00+00')
    and starts_at < make_interval(secs => $3::float8)
        + date_bin(make_interval(secs => $3::float8), $2::timestamptz - interval '1 microsecond', timestamptz '2000-01-01 00:00:00+00')
group by 1, 3

-- name: series_of_queue
-- Activity of workers in the queue $4, with the same columns, and a row `(others)` for each step with activity in other queues: in such a
-- step, no activity means 0, not missing data.
select date_bin(make_interval(secs => $3::float8), starts_at, timestamptz '2000-01-01 00:00:00+00') as span, null::text as name,
    queue = '' as of_relays, null::bigint as place, 0::bigint as names,
    sum(created::float8)::bigint as created, sum(sent::float8)::bigint as sent, sum(processed::float8)::bigint as processed,
    sum(failed::float8)::bigint as failed, sum(retried::float8)::bigint as retried, sum(dead::float8)::bigint as dead,
    sum(duplicates::float8)::bigint as duplicates,
    max(backlog) as backlog, extract(epoch from max(oldest_age))::float8 as oldest_age,
    array[
        sum(latency[1]::float8), sum(latency[2]::float8), sum(latency[3]::float8), sum(latency[4]::float8),
        sum(latency[5]::float8), sum(latency[6]::float8), sum(latency[7]::float8), sum(latency[8]::float8),
        sum(latency[9]::float8), sum(latency[10]::float8), sum(latency[11]::float8), sum(latency[12]::float8),
        sum(latency[13]::float8), sum(latency[14]::float8), sum(latency[15]::float8), sum(latency[16]::float8),
        sum(latency[17]::float8), sum(latency[18]::float8), sum(latency[19]::float8), sum(latency[20]::float8),
        sum(latency[21]::float8)
    ]::bigint[] as latency
from {stats}
where starts_at >= date_bin(make_interval(secs => $3::float8), $1::timestamptz, timestamptz '2000-01-01 00:00:00+00')
    and starts_at < make_interval(secs => $3::float8)
        + date_bin(make_interval(secs => $3::float8), $2::timestamptz - interval '1 microsecond', timestamptz '2000-01-01 00:00:00+00')
    and queue = $4
group by 1, 3
union all
select date_bin(make_interval(secs => $3::float8), starts_at, timestamptz '2000-01-01 00:00:00+00'), '(others)',
    false, null, 0, 0, 0, 0, 0, 0, 0, 0, null, null, array_fill(null::bigint, array[21])
from {stats}
where queue not in ('', $4)
    and starts_at >= date_bin(make_interval(secs => $3::float8), $1::timestamptz, timestamptz '2000-01-01 00:00:00+00')
    and starts_at < make_interval(secs => $3::float8)
        + date_bin(make_interval(secs => $3::float8), $2::timestamptz - interval '1 microsecond', timestamptz '2000-01-01 00:00:00+00')
group by 1

-- name: series_by_name
-- Activity in each step by queue ($9), or by routing key. Reads the rows once, and adds them up to few cells of $3 seconds; everything else
-- is computed from those. The time range is $1 to $2. Steps may begin at $4 and end at $5, and take ($6)[n] seconds with n names. Returns
-- the $7 most active names separately, and the rest as $8. Rows without a name stay without: relays report no queue, and no routing key
-- for the depth of the backlog.
with cell as materialized (
    select date_bin(make_interval(secs => $3::float8), starts_at, timestamptz '2000-01-01 00:00:00+00') as span,
        case
            when $9::boolean then queue
            when routing_key <> '' or created + sent + processed + failed + duplicates > 0 then routing_key
        end as name,
        queue = '' as of_relays,
        sum((created + sent + processed + failed + duplicates)::float8) filter (where starts_at >= $1 and starts_at < $2) as happened,
        sum(created::float8) as created, sum(sent::float8) as sent, sum(processed::float8) as processed,
        sum(failed::float8) as failed, sum(retried::float8) as retried, sum(dead::float8) as dead,
        sum(duplicates::float8) as duplicates,
        sum(latency[1]::float8) as bucket_1, sum(latency[2]::float8) as bucket_2, sum(latency[3]::float8) as bucket_3,
        sum(latency[4]::float8) as bucket_4, sum(latency[5]::float8) as bucket_5, sum(latency[6]::float8) as bucket_6,
        sum(latency[7]::float8) as bucket_7, sum(latency[8]::float8) as bucket_8, sum(latency[9]::float8) as bucket_9,
        sum(latency[10]::float8) as bucket_10, sum(latency[11]::float8) as bucket_11, sum(latency[12]::float8) as bucket_12,
        sum(latency[13]::float8) as bucket_13, sum(latency[14]::float8) as bucket_14, sum(latency[15]::float8) as bucket_15,
        sum(latency[16]::float8) as bucket_16, sum(latency[17]::float8) as bucket_17, sum(latency[18]::float8) as bucket_18,
        sum(latency[19]::float8) as bucket_19, sum(latency[20]::float8) as bucket_20, sum(latency[21]::float8) as bucket_21,
        max(backlog) as backlog, max(oldest_age) as oldest_age
    from {stats}
    where starts_at >= $4 and starts_at < $5 and (not $9 or queue <> '')
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
select date_bin(step, span, timestamptz '2000-01-01 00:00:00+00') as span,
    case when cell.name is null or place <= $7 then cell.name else $8::text end as name, of_relays,
    min(place) filter (where place <= $7) as place, names,
    sum(created)::bigint as created, sum(sent)::bigint as sent, sum(processed)::bigint as processed, sum(failed)::bigint as failed,
    sum(retried)::bigint as retried, sum(dead)::bigint as dead, sum(duplicates)::bigint as duplicates,
    max(backlog) as backlog, extract(epoch from max(oldest_age))::float8 as oldest_age,
    array[
        sum(bucket_1), sum(bucket_2), sum(bucket_3), sum(bucket_4), sum(bucket_5), sum(bucket_6), sum(bucket_7),
        sum(bucket_8), sum(bucket_9), sum(bucket_10), sum(bucket_11), sum(bucket_12), sum(bucket_13), sum(bucket_14),
        sum(bucket_15), sum(bucket_16), sum(bucket_17), sum(bucket_18), sum(bucket_19), sum(bucket_20), sum(bucket_21)
    ]::bigint[] as latency
from cell
cross join chosen
left join named on named.name = cell.name
where span >= date_bin(step, $1, timestamptz '2000-01-01 00:00:00+00')
    and span < date_bin(step, $2 - interval '1 microsecond', timestamptz '2000-01-01 00:00:00+00') + step
group by 1, 2, 3, names
