-- name: keep_messages
-- Refuses to drop a table with committed messages: they must be delivered, requeued or discarded first.
do $keep$
declare
    kept record;
    holds boolean;
begin
    for kept in
        select *
        from (
            values
            ({target}, 'sent_at is null', 'messages that are not sent'),
            ({delivery_target}, 'true', 'messages that are not handled'),
            ({dead_letter_target}, 'status = ''open''', 'open dead letters')
        ) as t (place, condition, what)
        where place is not null
    loop
        execute 'lock table ' || kept.place || ' in access exclusive mode';
        execute 'select exists (select from ' || kept.place || ' where ' || kept.condition || ')' into holds;
        if holds then
            raise exception using message = kept.place || ' still holds ' || kept.what || ', so it is not dropped';
        end if;
    end loop;
end
$keep$

-- name: drop_dead_letter
drop table if exists {dead_letter}

-- name: drop_delivery
drop table if exists {delivery}

-- name: drop_delivery_ring
drop function if exists {delivery_ring_function}()

-- name: drop_subscription
drop table if exists {subscription}

-- name: drop_table
drop table if exists {table}

-- name: drop_ring
drop function if exists {ring_function}()
