"""A relay and the publishers that hold rows of its table: it does not wait for their transactions either."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from outbox import Publisher
from outbox.core.message import OutboxMessage
from outbox.core.outcome import DONE
from outbox.postgres.pool import Pool, open_pool
from outbox.postgres.store import PostgresStore
from outbox.transports.postgres.handover import PostgresHandover
from outbox.transports.postgres.tables import TransportTables, pattern_of
from tests.relay.support import TABLE

publisher = Publisher()


@pytest.fixture
async def pool(url: str, connection: asyncpg.Connection) -> AsyncIterator[Pool]:
    pool = await open_pool(url, size=3, application_name="test")
    yield pool
    await pool.close()


def store_on(pool: Pool) -> PostgresStore:
    return PostgresStore(pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10))


async def publish(connection: asyncpg.Connection, name: str, **options: Any) -> str | None:
    return await publisher.publish_async(connection, name, b"", ordering_key="a", **options)


async def block(connection: asyncpg.Connection, name: str) -> None:
    await connection.execute(
        "update outbox_table set last_error = 'blocked', send_after = 'infinity' where routing_key = $1", name
    )


async def claimed(store: PostgresStore, limit: int) -> list[str]:
    """The routing keys of what a claim takes, sends and settles."""
    claim = await store.claim(limit)
    if claim is None:
        return []
    async with claim:
        await claim.settle([DONE for _ in claim.messages])
    return [pending.message.routing_key for pending in claim.messages]


@pytest.mark.parametrize("what", ["ignored", "replaced", "cancelled"])
async def test_what_was_sent_is_settled_at_once_though_a_publisher_holds_the_row_behind_it(
    what: str, pool: Pool, connection: asyncpg.Connection
) -> None:
    async with connection.transaction():
        await publish(connection, "a1")
        await publish(connection, "a2", dedup_key="d")
        await publish(connection, "a3")
    await block(connection, "a2")
    await block(connection, "a3")
    store = store_on(pool)
    async with connection.transaction():  # and takes its time
        if what == "cancelled":
            assert await publisher.cancel(connection, "d")
        else:
            on_conflict = "ignore" if what == "ignored" else "replace"
            await publish(connection, "a2", dedup_key="d", on_conflict=on_conflict)
        assert await claimed(store, 10) == ["a1"]
    assert await store.repair_lanes() == (0 if what == "ignored" else 1)  # a row that is only met is released, too
    sent: list[str] = []
    while taken := await claimed(store, 10):
        sent += taken
    assert sent == {"ignored": ["a2", "a3"], "replaced": ["a3", "a2"], "cancelled": ["a3"]}[what]


async def test_probes_are_restored_though_a_publisher_holds_one(pool: Pool, connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        await publisher.bulk_publish(connection, [OutboxMessage("x", b"", dedup_key="d"), OutboxMessage("y", b"")])
    await connection.execute("update outbox_table set last_error = 'unroutable', send_after = 'infinity'")
    store = store_on(pool)
    async with connection.transaction():
        assert await publisher.publish(connection, "x", b"", dedup_key="d") is None
        assert await store.ensure_probes() == 2


async def test_probes_are_restored_though_a_publisher_is_withdrawing_one(pool: Pool, connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        await publisher.bulk_publish(connection, [OutboxMessage("x", b"", dedup_key="d"), OutboxMessage("y", b"")])
    await connection.execute("update outbox_table set last_error = 'unroutable', send_after = 'infinity'")
    async with connection.transaction():
        assert await publisher.cancel(connection, "d") is True
        assert await store_on(pool).ensure_probes() == 1


async def _handed_over(pool: Pool) -> list[str]:
    bind = TransportTables(TABLE).queries("delivery.sql")["bind"]
    await pool.execute(bind, "outbox", "everything", "#", pattern_of("#"))
    handover = PostgresHandover(pool, TABLE, exchange_name="outbox", keep_sent=False)
    return [message.routing_key for _ in range(3) for message in (await handover.hand_over(1)).messages]


async def _relayed(pool: Pool) -> list[str]:
    store = store_on(pool)
    return [name for _ in range(3) for name in await claimed(store, 1)]


@pytest.mark.parametrize("send", [_relayed, _handed_over])
async def test_messages_behind_one_that_is_replaced_go_on_at_once(
    send: Callable[[Pool], Awaitable[list[str]]], pool: Pool, connection: asyncpg.Connection
) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, ordering_key, dedup_key) "
        "values ('a1', '', 'a', 'd'), ('a2', '', 'a', null), ('a3', '', 'a', 'd')"
    )
    await block(connection, "a2")
    await block(connection, "a3")
    assert await send(pool) == ["a2", "a3"]
