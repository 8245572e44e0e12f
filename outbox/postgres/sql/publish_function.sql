Publishing for programs in every language: one function beside each outbox table, which does what a `Publisher` does.

-- name: function
-- Checks what it is given as `Publisher.publish` does, inserts one row in the caller's transaction, with the caller's rights, and answers with
-- the message's id. The trigger on the table rings the doorbell, whoever inserts. The function names its table with the schema that it is made
-- in, because a caller's search path may lead elsewhere, and it reads nothing, so that the right to insert suffices.
do $make$
begin
    execute replace($create$
create or replace function {publish_function}(
    routing_key text,
    body jsonb,
    headers jsonb default null,
    ordering_key text default null,
    eta timestamptz default null,
    expiration interval default null,
    tracking_ids jsonb default null
) returns text
    language plpgsql
    set search_path = pg_catalog, pg_temp
as $publish$
declare
    id constant text := gen_random_uuid();
    problem text;
    chain jsonb;
begin
    problem := case
        when coalesce(routing_key, '') = '' then 'a routing key is a text such as ''order.placed'', and not empty'
        when body is null then 'body is JSON, and the value null is ''null''::jsonb'
        when jsonb_typeof(headers) <> 'object' then 'headers are an object of names and values'
        when ordering_key = '' then 'ordering_key is a text that is not empty'
        when not isfinite(eta) then 'eta is a moment, and not infinite'
        when not expiration > interval '0' or expiration > interval '36525 days' then
            'expiration lies above zero and within 36525 days'
        when jsonb_typeof(tracking_ids) <> 'array' then 'tracking_ids are a list of texts, root first'
    end;
    if problem is null and headers is not null then
        select 'the header ' || quote_literal(name) || ' is reserved, x-outbox-, x-encryption and x-body-store belong to Outbox'
        into problem
        from jsonb_object_keys(headers) as name
        where starts_with(lower(name), 'x-outbox-') or lower(name) in ('x-encryption', 'x-body-store');
    end if;
    if problem is null and tracking_ids is not null then
        select 'tracking_ids are a list of texts, root first'
        into problem
        from jsonb_array_elements(tracking_ids) as each
        where jsonb_typeof(each) <> 'string';
    end if;
    if problem is not null then
        raise exception using errcode = 'invalid_parameter_value', message = problem;
    end if;
    -- At most 256 ids, as in `outbox.tracking`: the root and the nearest ancestors stay.
    chain := coalesce(tracking_ids, jsonb_build_array()) || to_jsonb(id);
    if jsonb_array_length(chain) > 256 then
        select jsonb_agg(each order by place)
        into chain
        from jsonb_array_elements(chain) with ordinality as link (each, place)
        where place <= 128 or place > jsonb_array_length(chain) - 128;
    end if;
    insert into "@schema@".{table_alone} (
        routing_key, body, content_type, headers, ordering_key, expiration, tracking_ids, send_after
    )
    values (
        routing_key,
        convert_to(body::text, 'UTF8'),
        'application/json',
        nullif(headers, jsonb_build_object()),
        ordering_key,
        expiration,
        chain,
        -- An eta in the past does not overtake what is due already.
        greatest(now(), eta)
    );
    return id;
end
$publish$
$create$, '"@schema@"', quote_ident({schema}));
end
$make$

-- name: shape
('function', '{publish_function_name}', 'present')
