-- name: measured
-- Sizes are counted before anything is fetched, so that a batch of large rows ends early instead of filling the memory; the rest
-- stays for the next. A row that is too large to be fetched at all counts for nothing: it goes out without its body.
-- (`octet_length` reads the length that stands beside a stored value, and not the value. Small jsonb values are not worth the
-- conversion that tells their size. `offset 0` keeps the planner from computing each size once for every mention.)
sized as (
    select *,
        octet_length(routing_key) + octet_length(body)
            + case when pg_column_size(headers) > 2000 then octet_length(headers::text) else 0 end
            + case when pg_column_size(tracking_ids) > 2000 then octet_length(tracking_ids::text) else 0 end as row_bytes
    from claimed
    offset 0
),
measured as (
    select *, row_bytes > {max_body_bytes} as too_large,
        sum(case when row_bytes > {max_body_bytes} then 0 else row_bytes end) over (rows unbounded preceding) as batch_bytes
    from sized
)

-- name: fits
-- Whether a row still belongs to a batch of {max_batch_bytes}; the first one always does.
(batch_bytes <= {max_batch_bytes} or (batch_bytes = row_bytes and not too_large))

-- name: columns
-- Times are seconds and jsonb is text: no value that a producer may insert is too much for the driver then, and no codec of a
-- given pool has a say. (`date_part` is `extract` without the detour through numeric, which takes half a microsecond.)
id, case when too_large then left(routing_key, 255) else routing_key end as routing_key,
    case when not too_large then body end as body,
    case when too_large and pg_column_size(tracking_ids) > 2000 then '[]' else tracking_ids::text end as tracking_ids,
    date_part('epoch', created_at) as created_at,
    case when expiration < interval '1000 years' then date_part('epoch', expiration) end as expiration,
    case when not too_large then headers::text end as headers, content_type, ordering_key, target_queue, attempts, last_error,
    hlc, requeue_count, case when too_large then row_bytes end as too_large_bytes, dedup_key is not null as deduplicated,
    batch_bytes

-- name: keyed_after
-- Null unless rows with an ordering key are due, which other statements claim; then the priority that was reached here.
case
    when exists (
        select
        from {table}
        where sent_at is null and failed_at is null and ordering_key is not null
            and send_after between to_timestamp(({floors}::float8[])[11]) and now()
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
        and send_after between to_timestamp(({floors}::float8[])[class.priority + 1]) and now()
    order by send_after, id
    limit 1
)

-- name: ready
-- Of rows with an ordering key.
failed_at is null and (send_after <= now() or last_error is not distinct from 'blocked')
