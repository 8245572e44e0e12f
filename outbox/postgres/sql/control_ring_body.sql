-- name: body
declare
    digest constant bytea := sha256(convert_to(tg_table_schema || '.' || tg_table_name, 'UTF8'));
begin
    perform pg_notify('outbox_' || encode(substr(digest, 1, 12), 'hex'), '');
    return null;
end
