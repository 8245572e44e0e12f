-- name: take_turn
-- No other entry is written until the transaction ends, so that each entry follows a committed one. The lock uses the table's oid, because
-- the table may be named in several ways.
select pg_advisory_xact_lock(hashtextextended('outbox audit ' || to_regclass($1)::oid, 0))

-- name: record
-- The hash covers the previous hash and all columns. `chain` computes it in the same way to check it: change both together.
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
-- The first changed entry, the first that does not follow the one before it, and the first without a hash after one with a hash.
-- Entries before the first one may have been deleted by retention.
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
-- In the order of the indexes, so that it reads one page only. `conditions` are clauses below, for the fields of the filter.
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
