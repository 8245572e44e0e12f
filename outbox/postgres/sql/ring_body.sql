-- name: body
-- The doorbell: notifies only if somebody sleeps, that is, holds or awaits the exclusive lock (docs/decisions/0002-doorbell.md).
-- Having the lock is remembered until the end of the transaction, so a later statement of it costs nothing. The names of
-- lock and channel are those of `BellName.of`; made here, from where the table is now, they survive a rename and a restore
-- into another schema (measured: 1 microsecond a statement).
declare
    digest constant bytea := sha256(convert_to(tg_table_schema || '.' || tg_table_name, 'UTF8'));
    lock_key constant bigint := ('x' || encode(substr(digest, 13, 8), 'hex'))::bit(64)::bigint;
begin
    if not pg_try_advisory_xact_lock_shared(lock_key) then
        perform pg_notify('outbox_' || encode(substr(digest, 1, 12), 'hex'), '');
    end if;
    return null;
end
