-- name: add_up
-- Counts add up; of what was measured the highest stays.
on conflict (starts_at, seconds, routing_key, queue) do update
set created = so_far.created + excluded.created,
    sent = so_far.sent + excluded.sent,
    processed = so_far.processed + excluded.processed,
    failed = so_far.failed + excluded.failed,
    retried = so_far.retried + excluded.retried,
    dead = so_far.dead + excluded.dead,
    duplicates = so_far.duplicates + excluded.duplicates,
    backlog = greatest(so_far.backlog, excluded.backlog),
    oldest_age = greatest(so_far.oldest_age, excluded.oldest_age),
    latency = case
        when so_far.latency is null then excluded.latency
        when excluded.latency is null then so_far.latency
        else array(
            select coalesce(known, 0) + coalesce(new, 0)
            from unnest(so_far.latency, excluded.latency) with ordinality as bucket (known, new, number)
            order by number
        )
    end
