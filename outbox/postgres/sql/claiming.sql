-- name: measured
-- Sizes are counted before anything is fetched, so that a batch of large rows ends early instead of filling the memory; the rest
-- stays for the next. (Small jsonb values are not worth the conversion that tells their size.)
sized as (
    select *,
        octet_length(routing_key) + octet_length(body)
            + case when pg_column_size(headers) > 2000 then octet_length(headers::text) else 0 end
            + case when pg_column_size(tracking_ids) > 2000 then octet_length(tracking_ids::text) else 0 end as bytes
    from claimed
),
measured as (
    select *, sum(bytes) over (rows unbounded preceding) - bytes as bytes_before
    from sized
)

-- name: columns
-- Times are seconds and jsonb is text: no value that a producer may insert is too much for the driver then, and no codec of a
-- given pool has a say. (`date_part` is `extract` without the detour through numeric, which takes half a microsecond.)
id, routing_key, body, tracking_ids::text, date_part('epoch', created_at) as created_at,
    case when expiration < interval '1000 years' then date_part('epoch', expiration) end as expiration,
    headers::text, content_type, ordering_key, target_queue, attempts, last_error, hlc, requeue_count,
    dedup_key is not null as deduplicated

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
