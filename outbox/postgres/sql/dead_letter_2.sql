-- name: dead_letter_columns
-- `deaths`: how often the message was dead-lettered. `failures`: its failures, oldest first, as `outbox.core.failures` encodes them.
-- `properties` and `header_types`: parts of an AMQP message that JSON cannot represent. `search` and `preview` are masked.
alter table {dead_letter}
    add column if not exists properties jsonb,
    add column if not exists header_types jsonb,
    add column if not exists failures jsonb not null default '[]',
    add column if not exists deaths integer not null default 1,
    add column if not exists first_failed_at timestamptz not null default now(),
    add column if not exists fingerprint text not null default '',
    add column if not exists worker text not null default '',
    add column if not exists hlc bigint,
    add column if not exists preview text not null default '',
    add column if not exists search tsvector not null default '',
    add column if not exists version integer not null default 1,
    add column if not exists resolved_at timestamptz,
    add column if not exists resolved_by text,
    add column if not exists resolution text

-- name: dead_letter_identity_index
-- Each failure is recorded once, whichever process records it. A message without an id is never taken for another one.
create unique index if not exists {dead_letter_identity_index} on {dead_letter} (queue, md5(message_id), requeue_count, attempt, md5(body))
    where message_id is not null

-- name: dead_letter_message_index
-- By hash, because an id may be any text, and too long for an index.
create index if not exists {dead_letter_message_index} on {dead_letter} using hash (message_id)

-- name: dead_letter_group_index
-- Includes the columns for counting groups, also by queue, so that the large rows need not be read.
create index if not exists {dead_letter_group_index} on {dead_letter} (fingerprint, failed_at desc, id desc)
    include (status, first_failed_at, queue)

-- name: dead_letter_listing_index
create index if not exists {dead_letter_listing_index} on {dead_letter} (failed_at desc, id desc)

-- name: dead_letter_open_index
-- Open dead letters, among many resolved ones.
create index if not exists {dead_letter_open_index} on {dead_letter} (failed_at desc, id desc) where status = 'open'

-- name: dead_letter_search_index
create index if not exists {dead_letter_search_index} on {dead_letter} using gin (search)

-- name: dead_letter_tracking_index
create index if not exists {dead_letter_tracking_index} on {dead_letter} using gin (tracking_ids jsonb_path_ops)

-- name: dead_letter_key_index
-- Keys up to the limit of AMQP, with the columns for counting groups.
create index if not exists {dead_letter_key_index} on {dead_letter} (routing_key, failed_at desc, id desc)
    include (status, first_failed_at)
    where length(routing_key) <= 255

-- name: dead_letter_long_key_index
-- By hash: these routing keys may be any text, and too long for an index.
create index if not exists {dead_letter_long_key_index} on {dead_letter} (hashtextextended(routing_key, 0), failed_at desc, id desc)
    where least(length(routing_key), 256) = 256

-- name: dead_letter_exception_index
-- By hash: exception types may be any text.
create index if not exists {dead_letter_exception_index} on {dead_letter} (hashtextextended(exception_type, 0), failed_at desc, id desc)

-- name: dead_letter_failures_index
-- The few dead letters that failed very often.
create index if not exists {dead_letter_failures_index} on {dead_letter} (
    (case when jsonb_typeof(failures) = 'array' then greatest(attempt, jsonb_array_length(failures)) else attempt end)
)

-- name: dead_letter_requeued_index
-- Dead letters that were ever requeued.
create index if not exists {dead_letter_requeued_index} on {dead_letter} (resolved_at) where status = 'requeued' or deaths > 1

-- name: dead_letter_resolved_index
-- Dead letters that pruning deletes, oldest first.
create index if not exists {dead_letter_resolved_index} on {dead_letter} (resolved_at) where status <> 'open'

-- name: edition_table
-- Bodies and headers as they were before an edit.
create table if not exists {edition} (
    dead_letter_id bigint not null,
    version integer not null,
    body bytea not null,
    content_type text,
    headers jsonb,
    replaced_at timestamptz not null default now(),
    replaced_by text,
    constraint {edition_primary_key} primary key (dead_letter_id, version),
    constraint {edition_foreign_key} foreign key (dead_letter_id) references {dead_letter} (id) on delete cascade
)

-- name: operation_table
-- Bulk operations on dead letters. Maintenance processes them in batches, and continues after a restart. Until `canary_until`, an operation
-- waits for the results of its first messages.
create table if not exists {operation} (
    id bigint generated always as identity,
    action text not null,
    state text not null default 'running',
    selector jsonb not null,
    options jsonb not null default '{}',
    reason text,
    requested_by text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    finished_at timestamptz,
    continue_at timestamptz not null default now(),
    canary_until timestamptz,
    total integer not null default 0,
    done integer not null default 0,
    stopped_because text,
    constraint {operation_primary_key} primary key (id),
    constraint {operation_check_action} check (action in ('requeue', 'discard', 'restore', 'purge')),
    constraint {operation_check_state} check (state in ('running', 'paused', 'cancelled', 'stopped', 'finished')),
    constraint {operation_check_end} check ((finished_at is not null) = (state in ('cancelled', 'stopped', 'finished')))
)

-- name: operation_item_table
-- One row per operation and dead letter, with the outcome. `letter`: the id that operators see. `requeue_count`: the count with which the
-- message was requeued.
create table if not exists {operation_item} (
    operation_id bigint not null,
    position integer not null,
    letter text not null,
    outcome text not null default 'pending',
    detail text,
    requeue_count integer,
    settled_at timestamptz,
    constraint {operation_item_primary_key} primary key (operation_id, position),
    constraint {operation_item_foreign_key} foreign key (operation_id) references {operation} (id) on delete cascade,
    constraint {operation_item_check_outcome} check (
        outcome in ('pending', 'done', 'skipped', 'refused', 'not found', 'died again')
    )
)

-- name: operation_item_letter_index
create index if not exists {operation_item_letter_index} on {operation_item} (letter, operation_id)

-- name: operation_item_outcome_index
-- The next items of an operation, the number of those that failed again, and the items of each outcome in order.
create index if not exists {operation_item_outcome_index} on {operation_item} (operation_id, outcome, position)

-- name: operation_item_claim_index
-- A dead letter belongs to at most one active operation.
create unique index if not exists {operation_item_claim_index} on {operation_item} (letter)
    where outcome = 'pending'

-- name: dead_letter_shape
('column', 'properties', 'jsonb'),
('column', 'header_types', 'jsonb'),
('column', 'failures', 'jsonb not null default'),
('column', 'deaths', 'integer not null default'),
('column', 'first_failed_at', 'timestamp with time zone not null default'),
('column', 'fingerprint', 'text not null default'),
('column', 'worker', 'text not null default'),
('column', 'hlc', 'bigint'),
('column', 'preview', 'text not null default'),
('column', 'search', 'tsvector not null default'),
('column', 'version', 'integer not null default'),
('column', 'resolved_at', 'timestamp with time zone'),
('column', 'resolved_by', 'text'),
('column', 'resolution', 'text'),
('index', '{dead_letter_identity_index_name}', 'valid'),
('index', '{dead_letter_message_index_name}', 'valid'),
('index', '{dead_letter_group_index_name}', 'valid'),
('index', '{dead_letter_listing_index_name}', 'valid'),
('index', '{dead_letter_open_index_name}', 'valid'),
('index', '{dead_letter_search_index_name}', 'valid'),
('index', '{dead_letter_tracking_index_name}', 'valid'),
('index', '{dead_letter_key_index_name}', 'valid'),
('index', '{dead_letter_long_key_index_name}', 'valid'),
('index', '{dead_letter_exception_index_name}', 'valid'),
('index', '{dead_letter_failures_index_name}', 'valid'),
('index', '{dead_letter_requeued_index_name}', 'valid'),
('index', '{dead_letter_resolved_index_name}', 'valid')

-- name: edition_shape
('column', 'dead_letter_id', 'bigint not null'),
('column', 'version', 'integer not null'),
('column', 'body', 'bytea not null'),
('column', 'content_type', 'text'),
('column', 'headers', 'jsonb'),
('column', 'replaced_at', 'timestamp with time zone not null default'),
('column', 'replaced_by', 'text'),
('constraint', '{edition_primary_key_name}', 'valid'),
('constraint', '{edition_foreign_key_name}', 'valid')

-- name: operation_shape
('column', 'id', 'bigint not null default'),
('column', 'action', 'text not null'),
('column', 'state', 'text not null default'),
('column', 'selector', 'jsonb not null'),
('column', 'options', 'jsonb not null default'),
('column', 'reason', 'text'),
('column', 'requested_by', 'text'),
('column', 'created_at', 'timestamp with time zone not null default'),
('column', 'updated_at', 'timestamp with time zone not null default'),
('column', 'finished_at', 'timestamp with time zone'),
('column', 'continue_at', 'timestamp with time zone not null default'),
('column', 'canary_until', 'timestamp with time zone'),
('column', 'total', 'integer not null default'),
('column', 'done', 'integer not null default'),
('column', 'stopped_because', 'text'),
('constraint', '{operation_primary_key_name}', 'valid'),
('constraint', '{operation_check_action_name}', 'valid'),
('constraint', '{operation_check_state_name}', 'valid'),
('constraint', '{operation_check_end_name}', 'valid')

-- name: operation_item_shape
('column', 'operation_id', 'bigint not null'),
('column', 'position', 'integer not null'),
('column', 'letter', 'text not null'),
('column', 'outcome', 'text not null default'),
('column', 'detail', 'text'),
('column', 'requeue_count', 'integer'),
('column', 'settled_at', 'timestamp with time zone'),
('constraint', '{operation_item_primary_key_name}', 'valid'),
('constraint', '{operation_item_foreign_key_name}', 'valid'),
('constraint', '{operation_item_check_outcome_name}', 'valid'),
('index', '{operation_item_letter_index_name}', 'valid'),
('index', '{operation_item_outcome_index_name}', 'valid'),
('index', '{operation_item_claim_index_name}', 'valid')
