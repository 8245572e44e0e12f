-- name: subscription_table
-- Bindings of queues to exchanges. `pattern`: the binding key as a regular expression; null if it has no wildcards.
create table if not exists {subscription} (
    exchange text not null,
    queue text not null,
    binding_key text not null,
    pattern text,
    created_at timestamptz not null default now(),
    constraint {subscription_primary_key} primary key (exchange, queue, binding_key)
)

-- name: delivery_table
-- One row per message and queue. A leased row is due again when its lease ends, so that no claim finds it before.
create table if not exists {delivery} (
    id bigint generated always as identity,
    exchange text not null,
    queue text not null,
    message_id text not null,
    routing_key text not null,
    body bytea not null,
    content_type text,
    headers jsonb,
    tracking_ids jsonb not null,
    ordering_key text,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    available_at timestamptz not null default now(),
    attempt integer not null default 1,
    crashes integer not null default 0,
    isolated boolean not null default false,
    requeue_count integer not null default 0,
    lease_token uuid,
    leased_until timestamptz,
    constraint {delivery_primary_key} primary key (id),
    constraint {delivery_check_attempt} check (attempt >= 1),
    constraint {delivery_check_crashes} check (crashes >= 0),
    constraint {delivery_check_requeue_count} check (requeue_count >= 0),
    constraint {delivery_check_lease} check ((lease_token is null) = (leased_until is null))
)

-- name: delivery_index
-- Deliveries that a worker claims from one queue, in the order in which they are due.
create index if not exists {delivery_index} on {delivery} (queue, available_at, id)

-- name: delivery_storage
-- As the outbox table, it needs frequent vacuums.
alter table {delivery} set (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 0
)

-- name: dead_letter_table
-- Messages that failed for good, with everything that is needed to investigate and requeue them.
create table if not exists {dead_letter} (
    id bigint generated always as identity,
    source text not null,
    exchange text not null,
    queue text not null,
    message_id text,
    routing_key text not null,
    body bytea not null,
    content_type text,
    headers jsonb,
    tracking_ids jsonb not null,
    ordering_key text,
    created_at timestamptz not null,
    attempt integer not null,
    requeue_count integer not null default 0,
    cause text not null,
    exception_type text not null,
    exception_message text not null,
    exception_traceback text not null,
    failed_at timestamptz not null default now(),
    status text not null default 'open',
    constraint {dead_letter_primary_key} primary key (id),
    constraint {dead_letter_check_attempt} check (attempt >= 1),
    constraint {dead_letter_check_requeue_count} check (requeue_count >= 0),
    constraint {dead_letter_check_source} check (source in ('relay', 'worker', 'broker')),
    constraint {dead_letter_check_status} check (status in ('open', 'requeued', 'discarded'))
)

-- name: dead_letter_index
create index if not exists {dead_letter_index} on {dead_letter} (queue, status, failed_at desc, id desc)

-- name: subscription_shape
('column', 'exchange', 'text not null'),
('column', 'queue', 'text not null'),
('column', 'binding_key', 'text not null'),
('column', 'pattern', 'text'),
('column', 'created_at', 'timestamp with time zone not null default'),
('constraint', '{subscription_primary_key_name}', 'valid')

-- name: delivery_shape
('column', 'id', 'bigint not null default'),
('column', 'exchange', 'text not null'),
('column', 'queue', 'text not null'),
('column', 'message_id', 'text not null'),
('column', 'routing_key', 'text not null'),
('column', 'body', 'bytea not null'),
('column', 'content_type', 'text'),
('column', 'headers', 'jsonb'),
('column', 'tracking_ids', 'jsonb not null'),
('column', 'ordering_key', 'text'),
('column', 'created_at', 'timestamp with time zone not null default'),
('column', 'expires_at', 'timestamp with time zone'),
('column', 'available_at', 'timestamp with time zone not null default'),
('column', 'attempt', 'integer not null default'),
('column', 'crashes', 'integer not null default'),
('column', 'isolated', 'boolean not null default'),
('column', 'requeue_count', 'integer not null default'),
('column', 'lease_token', 'uuid'),
('column', 'leased_until', 'timestamp with time zone'),
('constraint', '{delivery_primary_key_name}', 'valid'),
('constraint', '{delivery_check_attempt_name}', 'valid'),
('constraint', '{delivery_check_crashes_name}', 'valid'),
('constraint', '{delivery_check_requeue_count_name}', 'valid'),
('constraint', '{delivery_check_lease_name}', 'valid'),
('index', '{delivery_index_name}', 'valid'),
('trigger', '{delivery_ring_trigger_name}', 'enabled')

-- name: dead_letter_shape
('column', 'id', 'bigint not null default'),
('column', 'source', 'text not null'),
('column', 'exchange', 'text not null'),
('column', 'queue', 'text not null'),
('column', 'message_id', 'text'),
('column', 'routing_key', 'text not null'),
('column', 'body', 'bytea not null'),
('column', 'content_type', 'text'),
('column', 'headers', 'jsonb'),
('column', 'tracking_ids', 'jsonb not null'),
('column', 'ordering_key', 'text'),
('column', 'created_at', 'timestamp with time zone not null'),
('column', 'attempt', 'integer not null'),
('column', 'requeue_count', 'integer not null default'),
('column', 'cause', 'text not null'),
('column', 'exception_type', 'text not null'),
('column', 'exception_message', 'text not null'),
('column', 'exception_traceback', 'text not null'),
('column', 'failed_at', 'timestamp with time zone not null default'),
('column', 'status', 'text not null default'),
('constraint', '{dead_letter_primary_key_name}', 'valid'),
('constraint', '{dead_letter_check_attempt_name}', 'valid'),
('constraint', '{dead_letter_check_requeue_count_name}', 'valid'),
('constraint', '{dead_letter_check_source_name}', 'valid'),
('constraint', '{dead_letter_check_status_name}', 'valid'),
('index', '{dead_letter_index_name}', 'valid')
