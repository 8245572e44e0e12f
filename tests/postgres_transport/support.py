"""Shared helpers: brokers with short leases, rows inserted by plain SQL, plans."""

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from outbox.postgres.pool import Connection, Pool
from outbox.postgres.queries import TableName
from outbox.transports.postgres import PostgresBroker
from outbox.transports.postgres.handover import PostgresHandover
from outbox.transports.postgres.tables import TransportTables
from tests.contract.harness import EXCHANGE, Recorder

TABLE = TableName("outbox_table")
TABLES = TransportTables(TABLE)


def new_broker(url: str, *, lease: timedelta = timedelta(seconds=30), observer: Recorder | None = None) -> PostgresBroker:
    """A broker that polls so rarely that every delivery in time was notified."""
    return PostgresBroker(
        url,
        table=TABLE,
        exchange_name=EXCHANGE,
        observer=observer or Recorder(),
        lease=lease,
        poll_interval=timedelta(hours=1),
    )


async def bind(pool: Pool, queue: str, binding_key: str, *, exchange: str = EXCHANGE) -> None:
    """Binds a queue without a consumer."""
    from outbox.transports.postgres.tables import pattern_of

    await pool.execute(TABLES.queries("delivery.sql")["bind"], exchange, queue, binding_key, pattern_of(binding_key))


async def insert(pool: Pool, routing_key: str, body: bytes = b"{}", **columns: object) -> int:
    """Inserts a row into the outbox with plain SQL, and returns its id."""
    names = ", ".join(("routing_key", "body", *columns))
    places = ", ".join(f"${number}" for number in range(1, len(columns) + 3))
    statement = f"insert into outbox_table ({names}) values ({places}) returning id"
    row_id: int = await pool.fetchval(statement, routing_key, body, *columns.values())
    return row_id


async def deliveries(pool: Pool, queue: str | None = None) -> Sequence[Any]:
    """Returns all deliveries, or those of one queue, oldest first."""
    return await pool.fetch("select * from outbox_delivery where $1::text is null or queue = $1 order by id", queue)


async def a_session_waits(pool: Pool) -> bool:
    """Whether a statement waits for a lock, except for that of the doorbell."""
    return bool(
        await pool.fetchval("select exists(select from pg_locks where not granted and (locktype <> 'advisory' or classid = 0))")
    )


async def fill_deliveries(pool: Pool, queue: str, count: int, *, bytes_each: int = 100) -> None:
    """Fills a queue with many due deliveries."""
    await pool.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids) "
        "select $1, $2, n::text, 'a.b', decode(repeat('ab', $4), 'hex'), jsonb_build_array(n::text) "
        "from generate_series(1, $3) as n",
        EXCHANGE,
        queue,
        count,
        bytes_each,
    )


async def explained(connection: Connection, statement: str, *arguments: object) -> "list[Node]":
    """Executes a statement, returns the nodes of its plan, and rolls back."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        plan = await connection.fetchval(f"explain (analyze, format json) {statement}", *arguments)
    finally:
        await transaction.rollback()
    return list(_nodes(json.loads(plan)[0]["Plan"]))


Node = dict[str, Any]


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def rows_read(node: Node) -> float:
    """Rows that a node returned and filtered out, in all its loops."""
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    rows: float = (node["Actual Rows"] + removed) * node["Actual Loops"]
    return rows


def handover(
    pool: Pool, *, keep_sent: bool = False, drop: bool = False, expiration: timedelta | None = None
) -> PostgresHandover:
    return PostgresHandover(
        pool, TABLE, exchange_name=EXCHANGE, keep_sent=keep_sent, drop_unroutable=drop, default_expiration=expiration
    )
