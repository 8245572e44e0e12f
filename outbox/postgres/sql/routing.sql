-- name: routes
-- Returns the queues for each routing key of `address`, and the known queues, as two JSON objects. Lookups in them cost the same with any
-- plan; for a join, the statistics are wrong whenever a queue fills or drains quickly. (`is true` keeps the planner from joining bindings
-- and routing keys row by row: the set of keys is hashed once.)
--
-- `union` makes one delivery if two bindings of a queue match the same message. Each pattern is compared with all routing keys of the
-- batch before the next one, because PostgreSQL caches only a few compiled expressions.
destination as (
    select binding_key as routing_key, queue
    from {subscription}
    where exchange = $1 and pattern is null and (binding_key in (select routing_key from address)) is true
    union
    select matching.routing_key, subscription.queue
    from {subscription} as subscription
    cross join lateral (
        select address.routing_key
        from address
        where address.routing_key ~ subscription.pattern
        offset 0
    ) as matching
    where subscription.exchange = $1 and subscription.pattern is not null
),
route as materialized (
    select
        (
            select jsonb_object_agg(routing_key, queues)
            from (select routing_key, jsonb_agg(queue) as queues from destination group by routing_key) as by_key
        ) as by_key,
        (select jsonb_object_agg(queue, jsonb_build_array(queue)) from {subscription}) as by_queue
)
