-- name: letters
-- Rows of the list from the dead letters. jsonb is returned as text, so that codecs of a given pool do not matter. A dead letter keeps the
-- requeue count of its failure, by which it is recognised if it fails again; if it was requeued since, the count is one higher. Only a relay's
-- has a destination.
select id::text as letter, id as number, 0 as kind, source, status, exchange, queue, routing_key, message_id,
    tracking_ids::text as tracking_ids, ordering_key, cause, exception_type, coalesce(shown_message, exception_message) as exception_message, fingerprint, worker, service_version, attempt,
    requeue_count + (status = 'requeued')::integer as requeue_count, deaths as dead_letter_count, {failed_attempts} as failures, created_at,
    first_failed_at, failed_at,
    version, resolved_at, resolved_by, resolution, content_type, octet_length(body) as size, preview, null::bytea as shown,
    case when source = 'relay' then coalesce(destination, 'default') end as destination
from {dead_letter} as letter

-- name: parked
-- As `letters`, from parked rows of the outbox. A producer may have written any time; Python's end with the year 9999. Small bodies are
-- returned for a preview. A parked row changes only after a requeue, so the number of requeues is its version.
select 'outbox-' || id as letter, id as number, 1 as kind, 'relay' as source, 'open' as status, '' as exchange,
    coalesce(target_queue, '') as queue, routing_key, {parked_message_id} as message_id, tracking_ids::text as tracking_ids,
    ordering_key, 'refused' as cause, {parked_type} as exception_type,
    substr(last_error, length({parked_type}) + 3) as exception_message, {parked_fingerprint} as fingerprint, '' as worker, null::text as service_version,
    greatest(attempts, 1) as attempt, requeue_count, 1 as dead_letter_count, attempts as failures,
    greatest(least(created_at, timestamptz '9999-12-31 00:00+00'), timestamptz '0001-01-02 00:00+00') as created_at,
    failed_at as first_failed_at, failed_at, requeue_count + 1 as version, null::timestamptz as resolved_at, null::text as resolved_by,
    null::text as resolution, content_type, octet_length(body) as size, null::text as preview,
    case when octet_length(body) <= 4096 then body end as shown,
    case
        when letter.tableoid <> '{table}'::regclass
            then (select substr(relname, length('{name}') + 2) from pg_class where oid = letter.tableoid)
        else 'default'
    end as destination
from {table} as letter

-- name: failed_attempts
-- The same expression as in the index.
case when jsonb_typeof(failures) = 'array' then greatest(attempt, jsonb_array_length(failures)) else attempt end

-- name: parked_message_id
case when jsonb_typeof(tracking_ids) = 'array' then tracking_ids ->> -1 end

-- name: parked_type
split_part(coalesce(last_error, ''), ': ', 1)

-- name: parked_fingerprint
-- Errors that differ only in numbers, ids and quoted values are equal.
lpad(to_hex(hashtextextended(
    regexp_replace(coalesce(last_error, ''), '''[^'']*''|"[^"]*"|[0-9a-fA-F]{8,}|[0-9]+', '#', 'g'), 0
)), 16, '0')

-- name: parked_search
-- The error without possible secrets: text after an equals sign, a colon, or the name of an authentication scheme.
to_tsvector('simple', concat_ws(' ', routing_key, target_queue, tracking_ids::text, regexp_replace(
    left(last_error, 4000), '(=|:|\mbearer|\mbasic)\s*("[^"]*"|''[^'']*''|\S+)', '\1', 'gi'
)))

-- name: detail
-- $2: most bytes of the body to return; null for all.
select case when $2::integer is null then body else substr(body, 1, $2) end as body, headers::text as headers, properties::text as properties, header_types::text as header_types, hlc,
    exception_message as whole_message, exception_traceback, failures::text as failures
from {dead_letter}
where id = $1

-- name: parked_detail
select case when $2::integer is null then body else substr(body, 1, $2) end as body, headers::text as headers, null as properties, null as header_types, hlc,
    substr(last_error, length({parked_type}) + 3) as whole_message, '' as exception_traceback, null as failures
from {table}
where id = $1 and failed_at is not null

-- name: editions
select version, case when $2::integer is null then body else substr(body, 1, $2) end as body, octet_length(body) as size, content_type, headers::text as headers, replaced_at, replaced_by
from {edition}
where dead_letter_id = $1
order by version

-- name: failures
select id::text as letter, exception_type, coalesce(shown_message, exception_message), exception_traceback, queue
from {dead_letter}
where id = any($1::bigint[])
union all
select 'outbox-' || id, {parked_type}, substr(last_error, length({parked_type}) + 3), '', coalesce(target_queue, '')
from {table}
where id = any($2::bigint[])

-- name: groups
-- One pass over the dead letters: first by group and hour, which are few, then by group. Ignores the status of the filter, because requeued
-- dead letters are no longer open.
with requeued as materialized (
    select {by} as key, max(resolved_at) as at
    from (
        {once_requeued}
    ) as letter
    group by key
),
part as (
    select {by} as key,
        case
            when failed_at > now() then 23
            when failed_at > now() - interval '24 hours'
                then greatest(0, 23 - floor(extract(epoch from now() - failed_at) / 3600)::integer)
        end as hour,
        count(*) as count, count(*) filter (where status = 'open') as open, min(first_failed_at) as first_seen,
        max(failed_at) as last_seen, max(requeued.at) as last_requeued_at,
        count(*) filter (where requeued.at is null or failed_at > requeued.at) as since_requeue,
        max(number) filter (where kind = 0) as dead, max(number) filter (where kind = 1) as parked
    from (
        {letters}
    ) as letter
    left join requeued on requeued.key = {by}
    group by {by}, hour
)
select key, sum(count)::bigint as count, sum(open)::bigint as open, min(first_seen) as first_seen, max(last_seen) as last_seen,
    max(last_requeued_at) as last_requeued_at, sum(since_requeue)::bigint as since_requeue,
    coalesce(max(dead)::text, 'outbox-' || max(parked)) as sample,
    coalesce(json_object_agg(hour, count) filter (where hour is not null), '{}')::text as hours
from part
group by key
order by count desc, last_seen desc, key
limit {most}

-- name: versions_of
-- For each of the groups $1, the service releases in which its latest $2 dead letters failed, latest first.
select fingerprint, service_version, count(*) as count, min(failed_at) as first_failed_at, max(failed_at) as last_failed_at
from unnest($1::text[]) as wanted (fingerprint)
cross join lateral (
    select service_version, failed_at
    from {dead_letter} as letter
    where letter.fingerprint = wanted.fingerprint
    order by failed_at desc, id desc
    limit $2
) as latest
where service_version is not null
group by fingerprint, service_version
order by last_failed_at desc, service_version

-- name: marks
-- All marks, and what shows whether they still hold. For a fixed group: failures since then, in a release in which the latest dead letters
-- did not fail before. For a muted group: the number of open ones, counted up to its limit plus one.
select mark.group_id, mark.status, mark.fixed_in, mark.muted_above, mark.marked_by, mark.marked_at,
    coalesce(failed.count, 0) as since_count, failed.first as since_at, coalesce(unresolved.count, 0) as open_count
from {group_mark} as mark
left join lateral (
    select count(*) as count, min(failed_at) as first
    from (
        (
            select failed_at
            from {dead_letter} as letter
            where mark.status = 'fixed' and fingerprint = mark.group_id and failed_at > mark.marked_at and (
                mark.fixed_in is null or service_version is null or service_version = mark.fixed_in
                or service_version <> all(array(
                    select distinct service_version
                    from (
                        select service_version, first_failed_at
                        from {dead_letter}
                        where fingerprint = mark.group_id
                        order by failed_at desc, id desc
                        limit 1000
                    ) as latest
                    where service_version is not null and first_failed_at <= mark.marked_at
                ))
            )
            order by failed_at desc, id desc
            limit 1000
        )
        union all
        select failed_at
        from {table}
        where mark.status = 'fixed' and failed_at > mark.marked_at and {parked_fingerprint} = mark.group_id
    ) as later
) as failed on true
left join lateral (
    select count(*) as count
    from (
        (
            select
            from {dead_letter}
            where mark.status = 'muted' and fingerprint = mark.group_id and status = 'open'
            limit mark.muted_above + 1
        )
        union all
        (
            select
            from {table}
            where mark.status = 'muted' and failed_at is not null and {parked_fingerprint} = mark.group_id
            limit mark.muted_above + 1
        )
    ) as open
) as unresolved on true
order by mark.group_id

-- name: set_mark
insert into {group_mark} (group_id, status, fixed_in, muted_above, marked_by)
values ($1, $2, $3, $4, $5)
on conflict (group_id) do update
set status = excluded.status, fixed_in = excluded.fixed_in, muted_above = excluded.muted_above, marked_by = excluded.marked_by,
    marked_at = excluded.marked_at

-- name: clear_mark
delete from {group_mark}
where group_id = $1

-- name: never_requeued
select null::text as fingerprint, null::text as queue, null::text as routing_key, null::timestamptz as resolved_at
where false

-- name: facets
-- The most frequent values of each field, with their counts. `grouping` has a bit per field, the first one the highest, which is 0 for the
-- field that is grouped by.
select field, value, count
from (
    select grouping({fields}) as field, coalesce({fields}) as value, count(*) as count,
        row_number() over (partition by grouping({fields}) order by count(*) desc, coalesce({fields})) as rank
    from (
        {letters}
    ) as letter
    group by grouping sets ({sets})
) as counted
where rank <= {most}
order by field, rank

-- name: error_containing
-- Dead letters among the newest $2 whose error contains the text $1, newest first.
select id
from (select id, exception_type, exception_message from {dead_letter} order by failed_at desc, id desc limit $2) as newest
where strpos(lower(exception_message), lower($1)) > 0 or strpos(lower(exception_type), lower($1)) > 0
limit $3

-- name: requeues_of
-- Entries of the history about a message after it was requeued, in order.
select fact, at, queue, component
from {history}
where hashtextextended(message_id, 0) = hashtextextended($1, 0) and message_id = $1
    and fact in ('requeued', 'processed', 'died', 'duplicate')
order by at
limit 1000

-- name: operations_of
select item.operation_id::text as id, operation.action, item.outcome, item.detail, item.settled_at
from {operation_item} as item
join {operation} as operation on operation.id = item.operation_id
where item.letter = $1
order by item.operation_id desc
limit 50
