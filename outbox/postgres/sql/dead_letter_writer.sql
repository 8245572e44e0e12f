-- name: recorded
-- Records each row of the step `dead_message`, which comes before, identified by (queue, message_id, requeue_count, attempt, body).
--
-- `known`: recorded already, by a process that crashed between writing it and acknowledging the message, or before an edit. `earlier`:
-- the dead letter that was requeued and failed again, preferably the one with this body. It is opened again, unless another statement
-- did so meanwhile, which shows in its count; time and reason of its last resolution stay. Every other row becomes a new dead letter.
--
-- `back`: dead letters whose message failed again, in their queue or in another one that an operation had sent it to. The operation is
-- updated.
--
-- Dead letters of a message are looked up by its id, one message after another (`offset 0` keeps it so). The queue is hidden from the
-- planner: without statistics it expects few dead letters in a queue, and reads all of them.
found as materialized (
    select dead_message.number, letter.id, letter.requeue_count, letter.attempt, letter.body = dead_message.body as is_same_body
    from dead_message
    cross join lateral (
        select id, requeue_count, attempt, body
        from {dead_letter}
        where message_id = dead_message.message_id and queue || '' = dead_message.queue
        offset 0
    ) as letter
),
known as (
    select number
    from dead_message
    join found using (number, requeue_count, attempt)
    where is_same_body or dead_message.body = any(array(select body from {edition} where dead_letter_id = found.id))
),
earlier as (
    select distinct on (number) dead_message.*, found.id as letter_id
    from dead_message
    join found using (number)
    where found.requeue_count < dead_message.requeue_count and number not in (select number from known)
    order by number, is_same_body desc, found.requeue_count desc, found.id desc
),
reopened as (
    update {dead_letter} as letter
    set status = 'open', deaths = letter.deaths + 1, source = earlier.source, exchange = earlier.exchange, routing_key = earlier.routing_key, body = earlier.body,
        content_type = earlier.content_type, headers = earlier.headers, properties = earlier.properties,
        header_types = earlier.header_types, tracking_ids = earlier.tracking_ids, ordering_key = earlier.ordering_key,
        hlc = earlier.hlc, attempt = earlier.attempt, requeue_count = earlier.requeue_count, cause = earlier.cause,
        exception_type = earlier.exception_type, exception_message = earlier.exception_message,
        exception_traceback = earlier.exception_traceback, fingerprint = earlier.fingerprint, worker = earlier.worker,
        service_version = earlier.failures -> -1 ->> 'version', preview = earlier.preview, search = to_tsvector('simple', earlier.search),
        shown_message = earlier.shown_message, failed_at = earlier.failed_at,
        failures = (
            select coalesce(jsonb_agg(failure order by place), '[]')
            from jsonb_array_elements(letter.failures || earlier.failures) with ordinality as failed (failure, place)
            where place = 1 or place > jsonb_array_length(letter.failures || earlier.failures) - 99
        )
    from earlier
    where letter.id = earlier.letter_id and letter.requeue_count < earlier.requeue_count
    returning letter.id, earlier.number, earlier.requeue_count
),
back as materialized (
    select id::text as letter, requeue_count, false as is_elsewhere
    from reopened
    union
    select letter.id::text, dead_message.requeue_count, true
    from dead_message
    cross join lateral (
        select id
        from {dead_letter}
        where message_id = dead_message.message_id and queue || '' <> dead_message.queue
        offset 0
    ) as letter
    where dead_message.requeue_count > 0 and dead_message.number not in (select number from known)
),
bounced as (
    update {operation_item} as item
    set outcome = 'died again', check_at = now()
    from back
    where item.letter = any(array(select letter from back)) and item.letter = back.letter and item.outcome = 'done'
        and item.requeue_count = back.requeue_count and (not is_elsewhere or exists (
            select from {operation} as operation where operation.id = item.operation_id and options ? 'destination'
        ))
),
dead_lettered as (
    insert into {dead_letter} (
        source, exchange, queue, message_id, routing_key, body, content_type, headers, properties, header_types, tracking_ids,
        ordering_key, hlc, created_at, attempt, requeue_count, cause, exception_type, exception_message, exception_traceback,
        failures, fingerprint, worker, service_version, preview, search, shown_message, first_failed_at, failed_at
    )
    select source, exchange, queue, message_id, routing_key, body, content_type, headers, properties, header_types, tracking_ids,
        ordering_key, hlc, created_at, attempt, requeue_count, cause, exception_type, exception_message, exception_traceback,
        failures, fingerprint, worker, failures -> -1 ->> 'version', preview, to_tsvector('simple', search), shown_message, least(first_failed_at, failed_at), failed_at
    from dead_message
    where number not in (select number from known) and number not in (select number from reopened)
    order by number
    on conflict (queue, md5(message_id), requeue_count, attempt, md5(body)) where message_id is not null do nothing
)
