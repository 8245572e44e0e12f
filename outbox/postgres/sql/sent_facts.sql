-- name: writable
select coalesce(has_table_privilege(to_regclass('{history}'), 'insert'), false)

-- name: delete_and_record
-- Deletes the rows $1 and records them in the history. $2 to $4: ids, roots and parents of their messages. $5: the component. $6: their
-- index keys. The trace id is that of `outbox.core.codec.trace_id_of`.
with gone as (
    delete from {table}
    where id = any($1::bigint[])
    returning id, routing_key, created_at, headers
)
insert into {history} (at, fact, message_id, root_id, parent_id, routing_key, waited, component, keys, trace_id)
select clock_timestamp(), 'sent', sent.message_id, sent.root_id, sent.parent_id, gone.routing_key,
    case when isfinite(gone.created_at) then greatest(clock_timestamp() - gone.created_at, interval '0') end, $5::text, sent.keys::text[],
    substring(gone.headers ->> 'traceparent' from '^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)')
from gone
join unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $6::text[]) as sent (id, message_id, root_id, parent_id, keys) on sent.id = gone.id

-- name: keep_and_record
-- As `delete_and_record`, for rows that are kept.
with gone as (
    update {table}
    set sent_at = clock_timestamp(), last_error = null, held_at = null
    where id = any($1::bigint[])
    returning id, routing_key, created_at, headers
)
insert into {history} (at, fact, message_id, root_id, parent_id, routing_key, waited, component, keys, trace_id)
select clock_timestamp(), 'sent', sent.message_id, sent.root_id, sent.parent_id, gone.routing_key,
    case when isfinite(gone.created_at) then greatest(clock_timestamp() - gone.created_at, interval '0') end, $5::text, sent.keys::text[],
    substring(gone.headers ->> 'traceparent' from '^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)')
from gone
join unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $6::text[]) as sent (id, message_id, root_id, parent_id, keys) on sent.id = gone.id
