-- name: past
-- Rows whose one time lies longer ago than anybody asks.
delete from {table}
where {key} = any(array(
    select {key}
    from {table}
    where {time} < now() - $1::interval
    order by {time}
    limit $2
    for update skip locked
))
