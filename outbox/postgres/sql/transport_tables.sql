-- name: subscription_table
-- An exchange's queues and what fills them. `pattern` is the binding key as a regular expression; null: compare as it is.
create table {subscription} (
    exchange text not null,
    queue text not null,
    binding_key text not null,
    pattern text,
    created_at timestamptz not null default now(),
    constraint {subscription_primary_key} primary key (exchange, queue, binding_key)
)

-- name: delivery_table
-- One message for one queue. A leased row is due again when its lease ends, so a claim never meets it before.
create table {delivery} (
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
-- What a worker claims from one queue, in the order in which it is due.
create index {delivery_index} on {delivery} (queue, available_at, id)

-- name: delivery_storage
alter table {delivery} set (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 0
)

-- name: dead_letter_table
-- A message that failed for good, with all that is needed to understand it and to send it again.
create table {dead_letter} (
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
create index {dead_letter_index} on {dead_letter} (queue, status, failed_at desc, id desc)
