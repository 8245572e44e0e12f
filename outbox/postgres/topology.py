"""What the database knows of where messages go: subscriptions of the Postgres transport, and routing keys that go nowhere."""

from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection
from outbox.postgres.queries import query
from outbox.postgres.schema.objects import satellite_names

MOST_SUBSCRIPTIONS = 5_000
MOST_HELD_KEYS = 100


@dataclass(frozen=True, slots=True)
class Subscribed:
    """What brings messages from an exchange to a queue."""

    exchange: str
    queue: str
    key: str


@dataclass(frozen=True, slots=True)
class HeldKey:
    """A routing key of which messages are held, `row_id` for one; `target_queue`: it is for that queue alone."""

    routing_key: str
    row_id: int
    target_queue: str | None


async def subscriptions(connection: Connection, table: TableName) -> Sequence[Subscribed]:
    """Those of all exchanges; none without the table."""
    sql = query("topology.sql", "subscriptions", **satellite_names(table.schema))
    try:
        async with connection.transaction():
            return [Subscribed(*row) for row in await connection.fetch(sql, MOST_SUBSCRIPTIONS)]
    except asyncpg.UndefinedTableError:
        return []


async def held_keys(connection: Connection, table: TableName) -> Sequence[HeldKey]:
    """The first hundred of them."""
    await connection.execute(query("backlog.sql", "settings"))
    rows = await connection.fetch(query("topology.sql", "held_keys", table=table.sql), MOST_HELD_KEYS)
    return [HeldKey(row["routing_key"], row["id"], row["target_queue"]) for row in rows]
