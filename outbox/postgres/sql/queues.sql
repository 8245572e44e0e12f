Queues in the admin API: activity of the last hour, and backlog.

-- name: activity
-- Activity of workers by queue in the hour from $1 on, in steps of five minutes from 0 to 11, and in the same hour a day before as -1.
-- Counts are added up as float8, which is exact up to 2^53.
select queue, step,
    sum(processed::float8)::bigint as handled, sum(failed::float8)::bigint as failed,
    sum(processed::float8 + dead::float8 + duplicates::float8)::bigint as settled,
    array[
        sum(latency[1]::float8), sum(latency[2]::float8), sum(latency[3]::float8), sum(latency[4]::float8),
        sum(latency[5]::float8), sum(latency[6]::float8), sum(latency[7]::float8), sum(latency[8]::float8),
        sum(latency[9]::float8), sum(latency[10]::float8), sum(latency[11]::float8), sum(latency[12]::float8),
        sum(latency[13]::float8), sum(latency[14]::float8), sum(latency[15]::float8), sum(latency[16]::float8),
        sum(latency[17]::float8), sum(latency[18]::float8), sum(latency[19]::float8), sum(latency[20]::float8),
        sum(latency[21]::float8)
    ]::bigint[] as latency
from (
    select queue, (extract(epoch from starts_at - $1::timestamptz)::integer / 300) as step, processed, failed, dead, duplicates, latency
    from {stats}
    where starts_at >= $1 and starts_at < $1::timestamptz + interval '1 hour' and seconds = 60 and queue <> ''
    union all
    select queue, -1, processed, failed, dead, duplicates, latency
    from {stats}
    where starts_at >= $1::timestamptz - interval '24 hours' and starts_at < $1::timestamptz - interval '23 hours'
        and seconds = 60 and queue <> ''
) as minute
group by queue, step

-- name: sent
-- Messages that relays sent in the five minutes from $1 on, by routing key.
select routing_key, sum(sent::float8)::bigint as sent
from {stats}
where starts_at >= $1 and starts_at < $1::timestamptz + interval '5 minutes' and seconds = 60 and queue = '' and sent > 0
group by routing_key

-- name: known_since
-- The first minute from $1 on with data.
select min(starts_at) from {stats} where starts_at >= $1 and seconds = 60

-- name: dead_letters
-- The number of open dead letters of each of the queues $1, counted up to $2.
select wanted.queue, (
    select count(*)
    from (select from {dead_letter} as letter where letter.queue = wanted.queue and letter.status = 'open' limit $2) as counted
) as count
from unnest($1::text[]) as wanted (queue)
