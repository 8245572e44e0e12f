-- name: hand_over
-- Moves up to $1 due rows of the outbox to the queues of exchange $2 in one statement: either a row is in every queue that
-- wants it and gone from the outbox, or nothing happened. $3: keep what was sent. $4: drop what is unroutable instead of
-- holding it. $5 and $6: how long the probe of a routing key waits; $7: the same for every other key. $8: the expiration of
-- rows without one.
--
-- Rows are locked in the first step and changed by `id = any(array(…))`, which is an index scan whatever the planner believes
-- about the table's size, and which also finds a row that somebody changed between our snapshot and our lock.
with due as materialized (
    select id, routing_key, body, tracking_ids, created_at, expiration, send_after, headers, content_type, ordering_key,
        target_queue, last_error
    from {table}
    where sent_at is null and failed_at is null and send_after <= now()
    order by send_after, id
    limit $1::integer
    for update skip locked
),
-- `union` makes one delivery of two bindings of one queue that match the same message. Each pattern meets all routing keys of
-- the batch before the next pattern does, because PostgreSQL remembers only a few compiled expressions.
destination as materialized (
    select due.routing_key, subscription.queue
    from due
    join {subscription} as subscription on subscription.binding_key = due.routing_key
    where due.target_queue is null and subscription.exchange = $2 and subscription.pattern is null
    union
    select matching.routing_key, subscription.queue
    from {subscription} as subscription
    cross join lateral (
        select distinct_key.routing_key
        from (select distinct routing_key from due where target_queue is null offset 0) as distinct_key
        where distinct_key.routing_key ~ subscription.pattern
        offset 0
    ) as matching
    where subscription.exchange = $2 and subscription.pattern is not null
),
-- A row for one queue goes there whatever is bound to it, if some exchange knows the queue.
routed as materialized (
    select due.id, destination.queue
    from due
    join destination on destination.routing_key = due.routing_key
    where due.target_queue is null
    union all
    select id, target_queue
    from due
    where target_queue in (select queue from {subscription})
),
-- A producer in another language may write any JSON as tracking ids: a row without a readable id gets one that depends on
-- nothing but the row.
message as materialized (
    select due.*,
        case
            when jsonb_typeof(due.tracking_ids) = 'array' and due.tracking_ids <> '[]'
                and not jsonb_path_exists(due.tracking_ids, 'strict $[*] ? (@.type() != "string")', silent => true)
                then due.tracking_ids
            else jsonb_build_array(md5('{table}:' || due.id)::uuid::text)
        end as chain,
        case
            when due.id in (select id from routed) then 'sent'
            when $4::boolean then 'dropped'
            else 'held'
        end as state
    from due
),
-- A time limit that no calendar can hold is none.
delivered as (
    insert into {delivery} (
        exchange, queue, message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, created_at, expires_at
    )
    select $2, routed.queue, message.chain ->> -1, message.routing_key, message.body, message.content_type, message.headers,
        message.chain, message.ordering_key, message.created_at,
        case
            when coalesce(message.expiration, $8::interval) < interval '1000 years'
                then now() + coalesce(message.expiration, $8::interval)
        end
    from message
    join routed on routed.id = message.id
    order by message.send_after, message.id
),
deleted as (
    delete from {table}
    where not $3::boolean and id = any(array(select id from message where state <> 'held'))
),
kept as (
    update {table}
    set sent_at = clock_timestamp(), last_error = null
    where $3::boolean and id = any(array(select id from message where state <> 'held'))
),
-- One held row of a routing key probes, the others wait for its success; none of these if an earlier one probes already.
probe as materialized (
    select candidate.id, candidate.routing_key
    from (
        select min(id) as id, routing_key, target_queue
        from message
        where state = 'held'
        group by routing_key, target_queue
    ) as candidate
    where not exists (
        select
        from {table} as other
        where other.sent_at is null and other.failed_at is null and other.last_error = 'unroutable'
            and other.routing_key = candidate.routing_key and other.send_after < 'infinity'
            and other.target_queue is not distinct from candidate.target_queue
            and other.id <> all(array(select id from due))
    )
),
probing as (
    update {table} as held
    set last_error = 'unroutable', send_after = now() + coalesce(pause.delay, $7::interval)
    from probe
    left join unnest($5::text[], $6::interval[]) as pause (routing_key, delay) on pause.routing_key = probe.routing_key
    where held.id = probe.id and held.id = any(array(select id from probe))
),
waiting as (
    update {table}
    set last_error = 'unroutable', send_after = 'infinity'
    where id = any(array(select id from message where state = 'held' except select id from probe))
)
-- A creation time at infinity has no age, but must not end the statement either.
select id as row_id, chain ->> -1 as message_id, routing_key, state, last_error is not distinct from 'unroutable' as was_held,
    (extract(epoch from now()) - extract(epoch from created_at))::float8 as age_seconds
from message
order by send_after, id
