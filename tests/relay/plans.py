"""The plans of the statements with which a relay claims."""

import json
from datetime import timedelta
from typing import Any

import asyncpg

from outbox.postgres.claiming import outbox_queries
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


def flattened(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *(inner for child in node.get("Plans", ()) for inner in flattened(child))]
