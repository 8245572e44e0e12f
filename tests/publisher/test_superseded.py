"""A message that came back unsent while another was published with its dedup key is not sent as well."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from outbox import Publisher, ensure_outbox_schema_async
from outbox.core.outcome import DONE, RETURNED, Cause, Dead, Failure, Held, RelayOutcome, Retry
from outbox.postgres.pool import Pool, open_pool
from outbox.postgres.queries import TableName
from outbox.postgres.store import PostgresStore
from outbox.transports.postgres.handover import PostgresHandover
from outbox.transports.postgres.tables import TransportTables, pattern_of

pytestmark = pytest.mark.slow

TABLE = TableName("outbox_table")
publisher = Publisher()


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    await ensure_outbox_schema_async(database_url)
    pool = await open_pool(database_url, size=3, application_name="test")
    yield pool
    await pool.close()


async def _publish(pool: Pool, body: bytes, **options: Any) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await publisher.publish(connection, "saved", body, dedup_key="document", **options)


async def _publish_other(pool: Pool, body: bytes) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await publisher.publish(connection, "saved", body, ordering_key="k")


async def _left(pool: Pool) -> list[bytes]:
    return [row["body"] for row in await pool.fetch("select body from outbox_table order by id")]


NACKED = Failure("Nack", "the broker refused it")
COMING_BACK: dict[str, RelayOutcome] = {
    "returned": RETURNED,
    "backing off": Retry(timedelta(minutes=5), NACKED),
    "held": Held(None),
    "parked": Dead(Cause.REFUSED, NACKED),
}


@pytest.mark.parametrize("ordering_key", [None, "k"])
@pytest.mark.parametrize("outcome", COMING_BACK.values(), ids=COMING_BACK.keys())
@pytest.mark.parametrize("on_conflict", ["ignore", "replace"])
async def test_a_message_that_comes_back_unsent_makes_way_at_once_for_the_one_that_was_published_meanwhile(
    on_conflict: str, outcome: RelayOutcome, ordering_key: str | None, pool: Pool
) -> None:
    store = PostgresStore(pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10))
    await _publish(pool, b"1", ordering_key=ordering_key)

    claim = await store.claim(10)
    assert claim is not None
    async with claim:  # the broker does not answer meanwhile
        await _publish(pool, b"2", on_conflict=on_conflict, ordering_key=ordering_key)
        await claim.settle([outcome])
    assert await _left(pool) == [b"2"]
    assert await _claimed(pool) == [b"2"]


async def test_a_message_whose_relay_died_makes_way_for_the_one_that_was_published_meanwhile(pool: Pool) -> None:
    store = PostgresStore(pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10))
    await _publish(pool, b"1")
    claim = await store.claim(10)
    assert claim is not None
    await _publish(pool, b"2", on_conflict="replace")
    async with claim:
        pass  # nothing is settled
    assert await _claimed(pool) == [b"2"]
    assert await _left(pool) == []


@pytest.mark.parametrize("send", ["_claimed", "_handed_over"])
@pytest.mark.parametrize("state", ["backing off", "held"])
async def test_what_replaces_a_message_that_came_back_does_not_wait_for_it(state: str, send: str, pool: Pool) -> None:
    """The publisher commits only when the message has come back."""
    await _publish(pool, b"1", ordering_key="k")
    store = PostgresStore(pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10))
    claim = await store.claim(10)
    assert claim is not None
    async with pool.acquire() as connection, connection.transaction(), claim:
        await publisher.publish(connection, "saved", b"2", dedup_key="document", on_conflict="replace", ordering_key="k")
        await claim.settle([COMING_BACK[state]])
    await _publish_other(pool, b"3")
    assert await _left(pool) == [b"1", b"2", b"3"]

    assert await (_claimed(pool) if send == "_claimed" else _handed_over(pool)) == [b"2", b"3"]
    assert await _left(pool) == []


async def _claimed(pool: Pool) -> list[bytes]:
    store = PostgresStore(pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10))
    sent = []
    while claim := await store.claim(10):
        async with claim:
            sent += [pending.message.body for pending in claim.messages]
            await claim.settle([DONE] * len(claim.messages))
    return sent


async def _handed_over(pool: Pool) -> list[bytes]:
    bind = TransportTables(TABLE).queries("delivery.sql")["bind"]
    await pool.execute(bind, "outbox", "everything", "#", pattern_of("#"))
    handover = PostgresHandover(pool, TABLE, exchange_name="outbox", keep_sent=False)
    while await handover.hand_over(10):
        pass
    return [row["body"] for row in await pool.fetch("select body from outbox_delivery order by id")]


ROWS = """
    insert into outbox_table (routing_key, body, dedup_key, ordering_key, send_after, sent_at, failed_at, last_error) values
        ('saved', '1', 'a', $1, now(), null, null, null),
        ('saved', '2', 'b', $1, now(), null, null, null),
        ('saved', '3', 'a', $1, now(), null, null, null),
        ('saved', '4', null, $1, now(), null, null, null),
        ('saved', '5', 'b', null, now(), now(), null, null),
        ('saved', '6', 'b', null, now(), null, now(), 'too large'),
        ('saved', '7', null, $1, now(), null, null, null),
        ('saved', '8', 'c', $1, now(), null, null, null),
        ('saved', '9', 'c', null, 'infinity', null, null, null)
"""


@pytest.mark.parametrize("ordering_key", [None, "k"])
@pytest.mark.parametrize("send", [_claimed, _handed_over])
async def test_of_pending_rows_with_one_dedup_key_the_last_stands_for_all(
    send: Callable[[Pool], Awaitable[list[bytes]]], ordering_key: str | None, pool: Pool
) -> None:
    await pool.execute(ROWS, ordering_key)

    assert await send(pool) == [b"2", b"3", b"4", b"7"]
    assert await _left(pool) == [b"5", b"6", b"9"]


async def test_a_parked_message_that_is_tried_again_makes_way_for_one_that_is_pending(pool: Pool) -> None:
    await _publish(pool, b"1")
    await pool.execute("update outbox_table set failed_at = now(), last_error = 'too large'")
    await _publish(pool, b"2")
    await pool.execute("update outbox_table set failed_at = null, last_error = null, attempts = 0")

    assert await _claimed(pool) == [b"2"]
