-- name: body
-- The doorbell: notifies only if a relay or worker sleeps (docs/decisions/0144-sleepers-share-a-lock.md). The names of locks and
-- channel are those of `BellName.of`; made here, from where the table is now, they survive a rename and a restore into
-- another schema (measured: 1 microsecond a statement).
declare
    digest constant bytea := sha256(convert_to(tg_table_schema || '.' || tg_table_name, 'UTF8'));
    in_flight_key constant bigint := ('x' || encode(substr(digest, 13, 8), 'hex'))::bit(64)::bigint;
    -- One of the four that every sleeper shares.
    asleep_key constant bigint := ('x' || encode(substr(digest, 21, 8), 'hex'))::bit(64)::bigint & -4 | (pg_backend_pid() & 3);
    -- First of all, and until the transaction ends: whoever falls asleep after the next statement sees that we are in flight.
    -- Refused while a sleeper tries it, and while a relay of the release before sleeps.
    unseen constant boolean := not pg_try_advisory_xact_lock_shared(in_flight_key);
begin
    -- Within one expression, so that no cancelled statement leaves the lock taken. Two writers that try at once notify for
    -- nothing: 3 of 1,000 commits with 32 writers and one key, measured.
    if unseen or (case when pg_try_advisory_lock(asleep_key) then not pg_advisory_unlock(asleep_key) else true end) then
        -- A transaction that notifies cannot be prepared; who prepares one sets this, and sleepers learn of it later.
        if coalesce(current_setting('outbox.doorbell', true), '') <> 'off' then
            perform pg_notify('outbox_' || encode(substr(digest, 1, 12), 'hex'), '');
        end if;
    end if;
    return null;
end
