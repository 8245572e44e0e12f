-- name: take_turn
-- Until the end of the transaction no other entry is written, so that each follows one that is committed. Known by the table's
-- number: it may be named in several ways.
select pg_advisory_xact_lock(hashtextextended('outbox audit ' || to_regclass($1)::oid, 0))

-- name: record
-- A hash is made of the hash before it and of the columns, in the form that `chain` computes once more when it checks them: a change of
-- one breaks the other.
with entry as (
    select now() as at, $1::text as actor, $2::text as role, $3::text as action, $4::text as target, $5::text as outcome,
        $6::text as reason, $7::jsonb as details, $8::text as request_id, $9::text as client_request_id, $10::text as address,
        (select hash from {audit} where hash is not null order by id desc limit 1) as previous_hash
)
insert into {audit} (
    at, actor, role, action, target, outcome, reason, details, request_id, client_request_id, address, previous_hash, hash
)
select at, actor, role, action, target, outcome, reason, details, request_id, client_request_id, address, previous_hash,
    sha256(coalesce(previous_hash, '') || convert_to(
        jsonb_build_array(
            extract(epoch from at), actor, role, action, target, outcome, reason, details, request_id, client_request_id, address
        )::text,
        'UTF8'
    ))
from entry

-- name: chain
-- The first entry that is not as it was written, the first that does not follow the one before it, and the first without a hash
-- behind one that has one. Before the first that is kept, retention may have deleted others.
with chained as (
    select id, hash, previous_hash, lag(hash) over (order by id) as before, row_number() over (order by id) as position,
        hash = sha256(coalesce(previous_hash, '') || convert_to(
            jsonb_build_array(
                extract(epoch from at), actor, role, action, target, outcome, reason, details, request_id, client_request_id, address
            )::text,
            'UTF8'
        )) as is_whole
    from {audit}
    where hash is not null
)
select count(*) as entries, max(id) as last_id,
    (select encode(hash, 'hex') from chained order by id desc limit 1) as last_hash,
    min(id) filter (where not is_whole) as changed,
    min(id) filter (where position > 1 and previous_hash is distinct from before) as unlinked,
    (select min(id) from {audit} where hash is null and id > (select min(id) from chained)) as unchained
from chained

-- name: list
-- In the order of each index, so that a page is read and no more. `{conditions}` are those below that are asked for.
select id, at, actor, role, action, target, outcome, reason, details, request_id, client_request_id, address
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
