-- name: stats_table
-- Activity in a span of time, added up over all processes. `latency` has counts by bucket, which can be added up as well. `backlog` and
-- `oldest_age` are the highest values measured in the span.
create table if not exists {stats} (
    starts_at timestamptz not null,
    seconds integer not null,
    routing_key text not null default '',
    queue text not null default '',
    created bigint not null default 0,
    sent bigint not null default 0,
    processed bigint not null default 0,
    failed bigint not null default 0,
    retried bigint not null default 0,
    dead bigint not null default 0,
    duplicates bigint not null default 0,
    backlog bigint,
    oldest_age interval,
    latency bigint[],
    constraint {stats_primary_key} primary key (starts_at, seconds, routing_key, queue),
    constraint {stats_check_seconds} check (seconds > 0)
)

-- name: component_table
-- One row per relay, worker, archiver or maintenance task, with its last heartbeat.
create table if not exists {component} (
    id text not null,
    kind text not null,
    name text not null,
    host text not null,
    process_id integer not null,
    version text not null,
    started_at timestamptz not null default now(),
    seen_at timestamptz not null default now(),
    every interval not null,
    activity jsonb not null default '{}',
    consumers jsonb not null default '[]',
    applied jsonb not null default '[]',
    stopped_at timestamptz,
    constraint {component_primary_key} primary key (id),
    constraint {component_check_kind} check (kind in ('relay', 'worker', 'archiver', 'maintenance'))
)

-- name: control_table
-- One row per pause: of all relays, of all workers, of one of them by name, or of one queue.
create table if not exists {control} (
    scope text not null,
    name text not null default '',
    reason text,
    requested_by text,
    requested_at timestamptz not null default now(),
    until timestamptz,
    constraint {control_primary_key} primary key (scope, name),
    constraint {control_check_scope} check (scope in ('relay', 'worker', 'queue')),
    constraint {control_check_name} check (scope <> 'queue' or name <> '')
)

-- name: lease_table
-- Leases of duties that only one process performs. The process with the token holds the lease until it ends.
create table if not exists {lease} (
    duty text not null,
    holder text not null,
    token uuid not null,
    held_until timestamptz not null,
    constraint {lease_primary_key} primary key (duty)
)

-- name: stats_shape
('column', 'starts_at', 'timestamp with time zone not null'),
('column', 'seconds', 'integer not null'),
('column', 'routing_key', 'text not null default'),
('column', 'queue', 'text not null default'),
('column', 'created', 'bigint not null default'),
('column', 'sent', 'bigint not null default'),
('column', 'processed', 'bigint not null default'),
('column', 'failed', 'bigint not null default'),
('column', 'retried', 'bigint not null default'),
('column', 'dead', 'bigint not null default'),
('column', 'duplicates', 'bigint not null default'),
('column', 'backlog', 'bigint'),
('column', 'oldest_age', 'interval'),
('column', 'latency', 'bigint[]'),
('constraint', '{stats_primary_key_name}', 'valid'),
('constraint', '{stats_check_seconds_name}', 'valid')

-- name: component_shape
('column', 'id', 'text not null'),
('column', 'kind', 'text not null'),
('column', 'name', 'text not null'),
('column', 'host', 'text not null'),
('column', 'process_id', 'integer not null'),
('column', 'version', 'text not null'),
('column', 'started_at', 'timestamp with time zone not null default'),
('column', 'seen_at', 'timestamp with time zone not null default'),
('column', 'every', 'interval not null'),
('column', 'activity', 'jsonb not null default'),
('column', 'consumers', 'jsonb not null default'),
('column', 'applied', 'jsonb not null default'),
('column', 'stopped_at', 'timestamp with time zone'),
('constraint', '{component_primary_key_name}', 'valid'),
('constraint', '{component_check_kind_name}', 'valid')

-- name: control_shape
('column', 'scope', 'text not null'),
('column', 'name', 'text not null default'),
('column', 'reason', 'text'),
('column', 'requested_by', 'text'),
('column', 'requested_at', 'timestamp with time zone not null default'),
('column', 'until', 'timestamp with time zone'),
('constraint', '{control_primary_key_name}', 'valid'),
('constraint', '{control_check_scope_name}', 'valid'),
('constraint', '{control_check_name_name}', 'valid')

-- name: lease_shape
('column', 'duty', 'text not null'),
('column', 'holder', 'text not null'),
('column', 'token', 'uuid not null'),
('column', 'held_until', 'timestamp with time zone not null'),
('constraint', '{lease_primary_key_name}', 'valid')
