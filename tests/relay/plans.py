"""The plans of the statements with which a relay claims."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import asyncpg

from outbox.postgres.claiming import outbox_queries
from outbox.postgres.pool import Connection
from outbox.postgres.queries import TableName

SQL = outbox_queries(TableName("outbox_table"), longest_send=timedelta(seconds=10))


async def explained(
    connection: asyncpg.Connection, statement: str, *arguments: object, analyze: bool = False
) -> list[dict[str, Any]]:
    """The nodes of the statement's plan; what it changes is rolled back."""
    await connection.execute(SQL["begin"])
    options = "analyze, format json" if analyze else "format json"
    text = await connection.fetchval(f"explain ({options}) {statement}", *arguments)
    await connection.execute("rollback")
    return flattened(json.loads(text)[0]["Plan"])


async def keep_plan(connection: Connection, name: str, statement: str, *, begin: str = SQL["begin_keeping_plans"]) -> None:
    """Prepares and plans a statement with the settings of a claim, as the first claim of a connection does."""
    await connection.execute(begin)
    await connection.execute(f'prepare "{name}" as {statement}')
    parameters = await connection.fetchval(
        "select cardinality(parameter_types) from pg_prepared_statements where name = $1", name
    )
    await connection.execute(f'explain execute "{name}" ({", ".join(["null"] * parameters)})')
    await connection.execute("commit")


async def explained_as_kept(
    connection: Connection, name: str, *arguments: object, begin: str = SQL["begin_keeping_plans"]
) -> list[dict[str, Any]]:
    """The nodes of a plan that `keep_plan` made, after running it; what it changes is rolled back."""
    await connection.execute(begin)
    values = ", ".join(_literal(value) for value in arguments)
    text = await connection.fetchval(f'explain (analyze, format json) execute "{name}" ({values})')
    await connection.execute("rollback")
    return flattened(json.loads(text)[0]["Plan"])


def _literal(value: object) -> str:
    if value is None:
        return "null"
    if value == []:
        return "'{}'"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, timedelta):
        return f"interval '{value.total_seconds()} s'"
    if isinstance(value, float):
        return f"'{value}'::float8"
    if isinstance(value, Sequence):
        return f"array[{', '.join(map(_literal, value))}]"
    return str(value)


def flattened(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *(inner for child in node.get("Plans", ()) for inner in flattened(child))]
