-- name: begin
-- Saves the settings for the end. Also shows whether a transaction is open: without one, they are lost at once.
select set_config('outbox.lock_timeout', current_setting('lock_timeout'), true),
    set_config('outbox.idle_timeout', current_setting('idle_in_transaction_session_timeout'), true)

-- name: in_transaction
select 1
where current_setting('outbox.lock_timeout', true) <> ''

-- name: do_not_stand_still
-- In milliseconds. A process that is frozen, or whose host is gone, would keep the locks, and every publisher waiting.
set local idle_in_transaction_session_timeout = {idle_timeout}

-- name: wait_for_others
-- In milliseconds. Another process may be rewriting a large table.
set local lock_timeout = {others_timeout}

-- name: lock
-- One process per database at a time, because `create ... if not exists` alone is not safe when two do the same.
select pg_advisory_xact_lock({lock_key})

-- name: do_not_wait_long
-- In milliseconds. Other queries queue behind a statement that waits for a table.
set local lock_timeout = {lock_timeout}

-- name: end
select set_config('lock_timeout', current_setting('outbox.lock_timeout'), true),
    set_config('idle_in_transaction_session_timeout', current_setting('outbox.idle_timeout'), true)
