-- name: audit_table
-- One row per action of an actor, done or denied, written in the transaction of the change.
create table if not exists {audit} (
    id bigint generated always as identity,
    at timestamptz not null default now(),
    actor text not null,
    role text not null,
    action text not null,
    target text not null default '',
    outcome text not null,
    reason text,
    details jsonb not null default '{}',
    request_id text not null default '',
    address text not null default '',
    constraint {audit_primary_key} primary key (id),
    constraint {audit_check_outcome} check (outcome in ('done', 'denied', 'failed'))
)

-- name: audit_age_index
-- For lists, newest first, and for pruning, oldest first.
create index if not exists {audit_age_index} on {audit} (at, id)

-- name: audit_actor_index
create index if not exists {audit_actor_index} on {audit} (actor, at, id)

-- name: audit_action_index
create index if not exists {audit_action_index} on {audit} (action, at, id)

-- name: audit_target_index
-- On the beginning only, because an index cannot hold long texts.
create index if not exists {audit_target_index} on {audit} (left(target, 200), at, id)

-- name: audit_outcome_index
-- Denied and failed actions, which are rare.
create index if not exists {audit_outcome_index} on {audit} (outcome, at, id) where outcome <> 'done'

-- name: session_table
-- One row per login. Stores only hashes of the cookie and of the token.
create table if not exists {session} (
    token_hash bytea not null,
    login_hash bytea not null,
    name text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    constraint {session_primary_key} primary key (token_hash)
)

-- name: session_age_index
create index if not exists {session_age_index} on {session} (expires_at)

-- name: login_failure_table
-- Failed logins of one address, or of all addresses, in the current time window, shared by all processes.
create table if not exists {login_failure} (
    bucket text not null,
    window_ends_at timestamptz not null,
    failures integer not null default 0,
    constraint {login_failure_primary_key} primary key (bucket)
)

-- name: login_failure_age_index
create index if not exists {login_failure_age_index} on {login_failure} (window_ends_at)

-- name: confirmation_table
-- One row per dry run with its confirmation token: the action, and the number of items. A token can be used once.
create table if not exists {confirmation} (
    token_hash bytea not null,
    actor text not null,
    request_hash bytea not null,
    total bigint not null,
    expires_at timestamptz not null,
    constraint {confirmation_primary_key} primary key (token_hash)
)

-- name: confirmation_age_index
create index if not exists {confirmation_age_index} on {confirmation} (expires_at)

-- name: idempotency_table
-- One row per request with an idempotency key: running under `token` until `held_until`, or done, with its response.
create table if not exists {idempotency} (
    actor text not null,
    key text not null,
    request_hash bytea not null,
    token uuid not null,
    held_until timestamptz not null,
    created_at timestamptz not null default now(),
    status integer,
    headers jsonb,
    body bytea,
    constraint {idempotency_primary_key} primary key (actor, key),
    constraint {idempotency_check_answer} check ((status is null) = (body is null))
)

-- name: idempotency_age_index
create index if not exists {idempotency_age_index} on {idempotency} (created_at)

-- name: group_note_table
-- Notes of operators about groups of dead letters.
create table if not exists {group_note} (
    by text not null,
    group_id text not null,
    note text not null,
    noted_by text not null,
    noted_at timestamptz not null default now(),
    constraint {group_note_primary_key} primary key (by, group_id)
)

-- name: audit_shape
('column', 'id', 'bigint not null default'),
('column', 'at', 'timestamp with time zone not null default'),
('column', 'actor', 'text not null'),
('column', 'role', 'text not null'),
('column', 'action', 'text not null'),
('column', 'target', 'text not null default'),
('column', 'outcome', 'text not null'),
('column', 'reason', 'text'),
('column', 'details', 'jsonb not null default'),
('column', 'request_id', 'text not null default'),
('column', 'address', 'text not null default'),
('constraint', '{audit_primary_key_name}', 'valid'),
('constraint', '{audit_check_outcome_name}', 'valid'),
('index', '{audit_age_index_name}', 'valid'),
('index', '{audit_actor_index_name}', 'valid'),
('index', '{audit_action_index_name}', 'valid'),
('index', '{audit_target_index_name}', 'valid'),
('index', '{audit_outcome_index_name}', 'valid')

-- name: session_shape
('column', 'token_hash', 'bytea not null'),
('column', 'login_hash', 'bytea not null'),
('column', 'name', 'text not null'),
('column', 'created_at', 'timestamp with time zone not null default'),
('column', 'expires_at', 'timestamp with time zone not null'),
('constraint', '{session_primary_key_name}', 'valid'),
('index', '{session_age_index_name}', 'valid')

-- name: login_failure_shape
('column', 'bucket', 'text not null'),
('column', 'window_ends_at', 'timestamp with time zone not null'),
('column', 'failures', 'integer not null default'),
('constraint', '{login_failure_primary_key_name}', 'valid'),
('index', '{login_failure_age_index_name}', 'valid')

-- name: confirmation_shape
('column', 'token_hash', 'bytea not null'),
('column', 'actor', 'text not null'),
('column', 'request_hash', 'bytea not null'),
('column', 'total', 'bigint not null'),
('column', 'expires_at', 'timestamp with time zone not null'),
('constraint', '{confirmation_primary_key_name}', 'valid'),
('index', '{confirmation_age_index_name}', 'valid')

-- name: idempotency_shape
('column', 'actor', 'text not null'),
('column', 'key', 'text not null'),
('column', 'request_hash', 'bytea not null'),
('column', 'token', 'uuid not null'),
('column', 'held_until', 'timestamp with time zone not null'),
('column', 'created_at', 'timestamp with time zone not null default'),
('column', 'status', 'integer'),
('column', 'headers', 'jsonb'),
('column', 'body', 'bytea'),
('constraint', '{idempotency_primary_key_name}', 'valid'),
('constraint', '{idempotency_check_answer_name}', 'valid'),
('index', '{idempotency_age_index_name}', 'valid')

-- name: group_note_shape
('column', 'by', 'text not null'),
('column', 'group_id', 'text not null'),
('column', 'note', 'text not null'),
('column', 'noted_by', 'text not null'),
('column', 'noted_at', 'timestamp with time zone not null default'),
('constraint', '{group_note_primary_key_name}', 'valid')
