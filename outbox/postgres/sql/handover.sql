-- name: hand_over
-- Moves up to $2 rows of the outbox to the queues of exchange $1 in one statement: either a row is in every queue that
-- wants it and gone from the outbox, or nothing happened. $3: keep what was sent. $4: drop what is unroutable instead of
-- holding it. $5 and $6: how long the probes of some routing keys wait; $7: the same for every other key. $8: the expiration
-- of rows without one. $9: how many bytes they have together, unless one has more; what is larger than {max_body_bytes} is parked.
--
-- Rows are locked in the first step and changed by `id = any(array(...))`, which is an index scan whatever the planner believes
-- about the table, and which also finds a row that somebody changed between our snapshot and our lock. The limit is hidden from
-- it, so that it expects to need only a part of the rows, and reads the index in its order instead of sorting. There is one row
-- of nulls if there were none.
with {claimed},
-- `octet_length` reads the length that stands beside a stored value, and not the value.
measured as (
    select *, octet_length(routing_key) + octet_length(body) + coalesce(pg_column_size(headers), 0) as row_bytes,
        sum(octet_length(routing_key) + octet_length(body) + coalesce(pg_column_size(headers), 0))
            over (rows unbounded preceding) as batch_bytes
    from claimed
),
{due},
address as materialized (
    select distinct routing_key
    from due
    where target_queue is null and row_bytes <= {max_body_bytes}
),
{routes},
-- A row for one queue goes there whatever is bound to it, if some exchange knows the queue.
-- A producer in another language may write any JSON as tracking ids: a row without a readable id gets one that depends on
-- nothing but the row.
routed as {routed} (
    select *,
        case
            when row_bytes > {max_body_bytes} then 'too_large'
            when queues is not null then 'sent'
            when $4::boolean then 'dropped'
            when octet_length(routing_key) > {longest_held_key} then 'parked'
            else 'held'
        end as state
    from (
        select due.*,
            case
                when jsonb_typeof(due.tracking_ids) = 'array' and due.tracking_ids <> '[]'
                    and not jsonb_path_exists(due.tracking_ids, 'strict $[*] ? (@.type() != "string")', silent => true)
                    then due.tracking_ids
                else jsonb_build_array(md5('{table}:' || due.id)::uuid::text)
            end as chain,
            case
                when due.row_bytes > {max_body_bytes} then null
                when due.target_queue is null then (select by_key from route) -> due.routing_key
                else (select by_queue from route) -> due.target_queue
            end as queues
        from due
    ) as addressed
),
{message},
{facts}-- A time limit that no calendar can hold is none.
delivered as (
    insert into {delivery} (
        exchange, queue, message_id, routing_key, body, content_type, headers, tracking_ids, ordering_key, created_at, expires_at,
        hlc, requeue_count
    )
    select $1, jsonb_array_elements_text(queues), chain ->> -1, routing_key, body, content_type, headers, chain, ordering_key,
        created_at,
        case when coalesce(expiration, $8::interval) < interval '1000 years' then now() + coalesce(expiration, $8::interval) end,
        hlc, requeue_count
    from message
    where state = 'sent'
    order by {order}
),
gone as (
    select array(select id from message where state in ('sent', 'dropped')) as ids
),
deleted as (
    delete from {table}
    where not $3::boolean and id = any((select ids from gone)::bigint[])
),
kept as (
    update {table}
    set sent_at = clock_timestamp(), last_error = null, held_at = null
    where $3::boolean and id = any((select ids from gone)::bigint[])
),
-- One held row of a routing key probes, the others wait for its success; none of these if an earlier one probes already. Those
-- for one queue alone have a probe of their own; the others wait no longer than {longest_wait}, should it be lost.
-- `offset 0` keeps this a look into the held index for each key, where a join might read all held rows.
probe as materialized (
    select candidate.id, candidate.routing_key, candidate.target_queue
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
            and other.routing_key = candidate.routing_key 
            and other.send_after < case when candidate.target_queue is null then 'infinity' else now() + interval '1 minute' end
            and other.target_queue is not distinct from candidate.target_queue
            and other.id <> all(array(select id from due))
        offset 0
    )
),
probing as (
    update {table} as held
    set last_error = 'unroutable',
        held_at = case when held.last_error = 'unroutable' then held.held_at else clock_timestamp() end,
        send_after = now() + case
            when probe.target_queue is null then coalesce(pause.delay, $7::interval)
            else greatest($7::interval, interval '{queue_probe}')
        end
    from probe
    left join unnest($5::text[], $6::interval[]) as pause (routing_key, delay) on pause.routing_key = probe.routing_key
    where held.id = probe.id and held.id = any(array(select id from probe))
),
waiting as (
    update {table}
    set last_error = 'unroutable', held_at = case when last_error = 'unroutable' then held_at else clock_timestamp() end,
        send_after = case when target_queue is null then 'infinity' else now() + interval '{longest_wait}' end
    where id = any(array(select id from message where state = 'held' except select id from probe))
),
-- The index of held rows has no room for longer keys, and no worker for larger messages.
parked as (
    update {table}
    set attempts = least(attempts, 2147483646) + 1, failed_at = clock_timestamp(), held_at = null,
        last_error = case
            when id = any(array(select id from message where state = 'too_large'))
                then 'too large: the message has more than the {max_body_bytes} bytes of max_body_bytes'
            else 'unroutable, with a routing key longer than the {longest_held_key} bytes that can be held'
        end
    where id = any(array(select id from message where state in ('parked', 'too_large')))
)
-- A creation time at infinity has no age, but must not end the statement either.
select id as row_id, case state when 'too_large' then left(chain ->> -1, 255) else chain ->> -1 end as message_id,
    case state when 'too_large' then left(routing_key, 255) else routing_key end as routing_key, state,
    last_error is not distinct from 'unroutable' as was_held,
    date_part('epoch', now()) - date_part('epoch', created_at) as age_seconds, target_queue{more}
from (select) as one
left join message on true
order by {order}
