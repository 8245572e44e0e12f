-- name: record
insert into {audit} (actor, role, action, target, outcome, reason, details, request_id, address)
values ($1, $2, $3, $4, $5, $6, $7::jsonb, $8, $9)

-- name: list
-- In the order of each index, so that a page is read and no more. `{conditions}` are those below that are asked for.
select id, at, actor, role, action, target, outcome, reason, details, request_id, address
from {audit}
where {conditions}
order by at {direction}, id {direction}
limit $1

-- name: count
select count(*)
from (select from {audit} where {conditions} limit $1) as found

-- name: by_actor
actor = {value}

-- name: by_action
action = {value}

-- name: by_outcome
outcome = {value} and outcome <> 'done'

-- name: by_done
outcome = {value}

-- name: by_target
left(target, 200) = left({value}, 200) and target = {value}

-- name: by_after
at >= {value}

-- name: by_before
at < {value}
