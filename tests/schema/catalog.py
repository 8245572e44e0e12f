"""Snapshots of schemas, to compare schemas that were created in different ways."""

from typing import Any

import asyncpg

_QUERIES = {
    "tables": """
        select c.relname, c.relkind, coalesce(array(select unnest(c.reloptions) order by 1)::text, ''), c.relpersistence
        from pg_class c
        where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
    """,
    "columns": """
        select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
            pg_get_expr(d.adbin, d.adrelid), a.attcollation
        from pg_attribute a
        join pg_class c on c.oid = a.attrelid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace = $1::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
    """,
    # PostgreSQL 18 keeps "not null" here too, under names that remember how it came about; the columns say it as well.
    "constraints": """
        select c.relname, k.conname, pg_get_constraintdef(k.oid), k.convalidated
        from pg_constraint k
        join pg_class c on c.oid = k.conrelid
        where c.relnamespace = $1::regnamespace and k.contype <> 'n'
    """,
    "indexes": """
        select tablename, indexname, replace(indexdef, quote_ident($1) || '.', '')
        from pg_indexes
        where schemaname = $1
    """,
    "triggers": """
        select c.relname, t.tgname, replace(pg_get_triggerdef(t.oid), quote_ident($1) || '.', ''), t.tgenabled
        from pg_trigger t
        join pg_class c on c.oid = t.tgrelid
        where c.relnamespace = $1::regnamespace and not t.tgisinternal
    """,
    "functions": """
        select p.proname, p.prosrc, p.proconfig::text, p.provolatile, p.prosecdef, p.proacl::text
        from pg_proc p
        where p.pronamespace = $1::regnamespace
    """,
    "sequences": """
        select sequencename, data_type::text, start_value, min_value, max_value, increment_by, cycle, cache_size
        from pg_sequences
        where schemaname = $1
    """,
}


async def catalog(connection: asyncpg.Connection, schema: str = "public") -> dict[str, list[tuple[Any, ...]]]:
    """Returns all objects in `schema`, by kind."""
    return {kind: sorted(map(tuple, await connection.fetch(query, schema)), key=repr) for kind, query in _QUERIES.items()}


async def clear(connection: asyncpg.Connection) -> None:
    """Empties `public`."""
    await connection.execute("drop schema public cascade; create schema public")


async def indexes_of(connection: asyncpg.Connection, table: str = "outbox_table") -> set[str]:
    return {row[0] for row in await connection.fetch("select indexname from pg_indexes where tablename = $1", table)}


async def triggers_of(connection: asyncpg.Connection, table: str = "outbox_table") -> set[str]:
    query = "select tgname from pg_trigger where tgrelid = to_regclass($1) and not tgisinternal"
    return {row[0] for row in await connection.fetch(query, table)}
