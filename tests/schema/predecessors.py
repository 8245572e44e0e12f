"""Outbox tables of predecessors, in shapes that exist in practice."""

import asyncpg

LATEST = """
    create table outbox_table (
        id serial primary key,
        routing_key text not null,
        body bytea not null,
        tracking_ids jsonb not null,
        created_at timestamptz not null default now(),
        expiration interval,
        send_after timestamptz not null,
        sent_at timestamptz
    );
    create index outbox_pending_idx on outbox_table (send_after, created_at) where sent_at is null;
    create index outbox_cleanup_idx on outbox_table (sent_at) where sent_at is not null;
"""
NOTIFYING = """
    create function notify_outbox_insert() returns trigger language plpgsql as $$
    begin
        -- not for what is to be updated or sent later
        if tg_op = 'INSERT' and new.send_after <= now() then
            perform pg_notify('outbox_channel', '');
        end if;
        return new;
    end $$;
    create trigger outbox_notify_trigger after insert on outbox_table
        for each row execute function notify_outbox_insert();
"""
SHAPES = {
    "latest": LATEST + NOTIFYING,
    "made by SQLAlchemy": """
        create table outbox_table (
            id bigserial not null,
            routing_key varchar(255) not null,
            body bytea not null,
            tracking_ids json not null,
            created_at timestamptz default now() not null,
            expiration interval,
            send_after timestamptz default now() not null,
            sent_at timestamptz,
            constraint pk_outbox_table primary key (id)
        );
        create index ix_outbox_table_send_after on outbox_table (send_after);
        create index outbox_table_pending_idx on outbox_table (send_after, id) where sent_at is null;
    """
    + NOTIFYING.replace("notify_outbox_insert", "notify_of_outbox").replace("outbox_notify_trigger", "outbox_insert"),
    "with JSON bodies": """
        create table outbox_table (
            id serial primary key,
            routing_key varchar not null,
            body json not null,
            tracking_ids json,
            created_at timestamptz,
            expiration interval,
            send_after timestamptz,
            sent_at timestamptz
        );
        create index ix_outbox_table_created_at on outbox_table (created_at);
    """,
    "with an identity": LATEST.replace("serial", "bigint generated always as identity"),
    "with naive times": LATEST.replace("timestamptz", "timestamp").replace("interval", "double precision"),
    "with a JSONB body and an array of ids": LATEST.replace("bytea", "jsonb").replace(
        "tracking_ids jsonb", "tracking_ids text[]"
    ),
}


async def make(connection: asyncpg.Connection, shape: str) -> None:
    """Creates the table in that shape. Every third row is sent, and the last but one is due first."""
    await connection.execute(SHAPES[shape])
    await connection.execute("""
        do $rows$
        declare
            kinds text[] = array(
                select format_type(atttypid, null) from pg_attribute
                where attrelid = 'outbox_table'::regclass and attname in ('body', 'tracking_ids') order by attname
            );
        begin
            execute 'insert into outbox_table (routing_key, body, tracking_ids, created_at, send_after, sent_at)
                select ''order.'' || n,'
                || case kinds[1] when 'bytea' then 'convert_to(''{"n": '' || n || ''}'', ''UTF8'')'
                    else '(''{"n": '' || n || ''}'')::' || kinds[1] end || ','
                || case kinds[2] when 'text[]' then 'array[''root'', ''leaf'' || n]'
                    else '(''["root", "leaf'' || n || ''"]'')::' || kinds[2] end || ',
                now() + n * interval ''1 ms'', now() - case n when 6 then 10 else 0 end * interval ''1 s'',
                case when n % 3 = 0 and n <> 6 then now() end
                from generate_series(1, 7) n';
        end $rows$
    """)
