-- name: archive
-- Records dead messages of a broker. Clocks of other hosts may be ahead, so failure times are limited to now. A message without a time of
-- publication gets that of its failure. Dead letters of one message must be recorded by successive statements, never by the same.
with dead_message as materialized (
    select number, source, exchange, queue, message_id, routing_key, body, content_type, headers::jsonb as headers,
        properties::jsonb as properties, header_types::jsonb as header_types, tracking_ids::jsonb as tracking_ids, ordering_key, hlc,
        coalesce(created_at, least(last_failed_at, now()), now()) as created_at, attempt,
        requeue_count, cause, exception_type, exception_message, exception_traceback, failures::jsonb as failures, fingerprint,
        worker, preview, search, shown_message, coalesce(least(first_failed_at, now()), now()) as first_failed_at,
        coalesce(least(last_failed_at, now()), now()) as failed_at
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::text[], $9::text[],
        $10::text[], $11::text[], $12::text[], $13::bigint[], $14::timestamptz[], $15::timestamptz[], $16::timestamptz[],
        $17::integer[], $18::integer[], $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[], $25::text[],
        $26::text[], $27::text[], $28::text[]
    ) with ordinality as given (
        source, exchange, queue, message_id, routing_key, body, content_type, headers, properties, header_types, tracking_ids,
        ordering_key, hlc, created_at, first_failed_at, last_failed_at, attempt, requeue_count, cause, exception_type,
        exception_message, exception_traceback, failures, fingerprint, worker, preview, search, shown_message, number
    )
),
{recorded}
select count(*)
from dead_message

-- name: known_queues
-- Queues with a binding in the database, and queues of workers whose components are still recorded.
select queue
from {subscription}
union
select consumer ->> 'queue'
from {component}
cross join lateral jsonb_array_elements(case when jsonb_typeof(consumers) = 'array' then consumers end) as consumer
where consumer ->> 'queue' is not null

-- name: count_open
select count(*)
from {dead_letter}
where queue = $1 and status = 'open'

-- name: lacking_rights
select right_ || ' on ' || wanted.relation
from (
    values ('select', '{dead_letter}'), ('insert', '{dead_letter}'), ('update', '{dead_letter}'), ('select', '{edition}'),
        ('select', '{operation}'), ('select', '{operation_item}'), ('update', '{operation_item}'), ('select', '{subscription}'),
        ('select', '{component}')
) as wanted (right_, relation)
where not has_table_privilege(wanted.relation, right_)
