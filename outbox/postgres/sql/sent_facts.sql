-- name: trace_id
-- The id of a sampled trace in {headers}, as `outbox.core.codec.trace_id_of` reads it. One regular expression that counts the digits takes
-- twenty times as long as these simple patterns. Few traces are sampled, and their flags come first.
case
    when strpos('13579bdf', substr({headers} ->> 'traceparent', 55, 1)) > 0
        and {headers} ->> 'traceparent' ~ '^[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+(-|$)'
        and (
            {headers} ->> 'traceparent' like '__-________________________________-________________-__'
            or {headers} ->> 'traceparent' like '__-________________________________-________________-__-%'
        )
        and substr({headers} ->> 'traceparent', 4, 32) <> repeat('0', 32)
        and substr({headers} ->> 'traceparent', 37, 16) <> repeat('0', 16)
        then substr({headers} ->> 'traceparent', 4, 32)
end

-- name: writable
select coalesce(has_table_privilege(to_regclass('{history}'), 'insert'), false)

-- name: record
-- Records the rows $1, which this transaction has locked and sent, in the history. $2 to $4: ids, roots and parents of their messages,
-- the last two null if all are roots. $5: the component. $6: their index keys.
insert into {history} (at, fact, message_id, root_id, parent_id, routing_key, waited, component, keys, trace_id)
select clock_timestamp(), 'sent', sent.message_id, coalesce(sent.root_id, sent.message_id), sent.parent_id, message.routing_key,
    case when isfinite(message.created_at) then greatest(clock_timestamp() - message.created_at, interval '0') end, $5::text,
    sent.keys::text[], {trace_id}
from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $6::text[]) as sent (id, message_id, root_id, parent_id, keys)
cross join lateral (
    select routing_key, created_at, headers
    from only {table}
    where id = sent.id
    offset 0
) as message
