-- name: begin
-- Kept for the end, and also the sign that there is a transaction, without which it is gone at once.
select set_config('outbox.lock_timeout', current_setting('lock_timeout'), true)

-- name: in_transaction
select 1
where current_setting('outbox.lock_timeout', true) <> ''

-- name: wait_for_others
-- Milliseconds. Another process may be rewriting a large table.
set local lock_timeout = {others_timeout}

-- name: lock
-- One at a time in a database, whoever it is: `create ... if not exists` by itself is not safe from others who do the same.
select pg_advisory_xact_lock({lock_key})

-- name: do_not_wait_long
-- Milliseconds. Whoever wants a table that we wait for waits behind us.
set local lock_timeout = {lock_timeout}

-- name: end
select set_config('lock_timeout', current_setting('outbox.lock_timeout'), true)
