"""Messages of a source are stored before they are acknowledged: in order, within bounds, and whatever is away meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from outbox.core.events import DependencyLost, DependencyRestored, Event
from outbox.core.message import Message
from outbox.core.outcome import DONE, Failure
from outbox.errors import TopologyError
from outbox.ports import CONFIRMED, UNROUTABLE, Received, SendResult, Unconfirmed
from outbox.postgres.pool import Pool
from outbox.transports.postgres import PostgresBroker
from outbox.transports.stored import QueueTransport, StoredBroker
from tests.contract.harness import Recorder
from tests.contract.stored import Log, LogReader
from tests.contract.support import TIMEOUT, Taken, message, taking
from tests.postgres_transport.support import TABLE, bind, deliveries
from tests.servers.proxy import Proxy
from tests.support import eventually

LABEL = Log.label


def database_of(url: str, observer: Recorder | None = None) -> PostgresBroker:
    return PostgresBroker(url, table=TABLE, exchange_name=LABEL, observer=observer or Recorder())


@asynccontextmanager
async def storing(
    url: str,
    log: Log,
    *,
    observer: Recorder | None = None,
    prefetch_count: int = 10,
    ordered: bool = False,
    key: str = "order.#",
) -> AsyncIterator[Taken]:
    """A worker of the queue `mail` that reads the log."""
    broker = StoredBroker(log, database_of(url, observer), observer=observer or Recorder())
    async with AsyncExitStack() as stack:
        stack.push_async_callback(broker.close)
        yield await stack.enter_async_context(taking(broker, "mail", key, prefetch_count=prefetch_count, ordered=ordered))


def numbered(count: int, *, start: int = 0, ordering_key: str | None = None) -> Sequence[Message]:
    return [message("order.placed", str(n).encode(), ordering_key=ordering_key) for n in range(start, start + count)]


async def test_messages_are_acknowledged_once_they_are_stored_in_their_order(database: str, pool: Pool) -> None:
    log = Log()
    log.append(*numbered(1_200, ordering_key="one"), message("invoice.placed"), *numbered(1, start=1_200))
    async with storing(database, log, prefetch_count=1, ordered=True):
        await eventually(lambda: log.acknowledged["mail"] == len(log.messages))
        stored = await deliveries(pool, "mail")
    assert [int(row["body"]) for row in stored] == list(range(1_201))
    assert {(row["exchange"], row["ordering_key"]) for row in stored[:-1]} == {(LABEL, "one")}
    first = log.messages[0]
    assert (stored[0]["message_id"], stored[0]["created_at"]) == (first.id, first.created_at)


async def test_what_cannot_be_stored_is_dead_lettered_and_the_rest_is_stored(database: str, pool: Pool) -> None:
    log = Log()
    good = numbered(4)
    bad = [
        replace(message("order.placed", b"nul"), id="a\0b"),
        message("order.placed", b"deep", headers={"size": float("nan")}),
        replace(message("order.placed", b"key"), ordering_key="\ud800"),
    ]
    log.append(good[0], bad[0], good[1], bad[1], good[2], bad[2], bad[0], good[3])
    async with storing(database, log, prefetch_count=1):
        await eventually(lambda: log.acknowledged["mail"] == len(log.messages))
        assert [row["body"] for row in await deliveries(pool, "mail")] == [b"0", b"1", b"2", b"3"]
    dead = await pool.fetch(
        "select message_id, body, cause, source, exchange, queue, attempt from outbox_dead_letter order by id"
    )
    assert sorted(row["body"] for row in dead) == [b"deep", b"key", b"nul"]
    assert {tuple(row)[2:] for row in dead} == {("undecodable", "worker", LABEL, "mail", 1)}
    assert dead[0]["message_id"] == "a\N{SYMBOL FOR NULL}b"


async def test_a_full_queue_stops_the_reading_and_not_the_handling(
    database: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.stored.MOST_FETCHED", 50)
    monkeypatch.setattr("outbox.transports.stored.MOST_WAITING", 200)
    log = Log()
    log.append(*numbered(1_000))
    async with storing(database, log, prefetch_count=1) as taken:
        seen: set[bytes] = set()
        most = 0
        while len(seen) < 1_000:
            delivery = await taken.next()
            seen.add(delivery.message.body)
            if len(seen) % 50 == 1:
                await eventually(lambda: log.acknowledged["mail"] >= min(len(seen) + 150, 1_000))
                most = max(most, await pool.fetchval("select count(*) from outbox_delivery"))
            await delivery.settle(DONE)
    assert most < 500  # those that are claimed ahead are not due
    assert seen == {each.body for each in log.messages}


async def test_few_messages_are_fetched_until_the_size_of_their_bodies_is_known(
    database: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    log, fetch = Log(), LogReader.fetch

    async def noting(reader: LogReader, limit: int) -> Sequence[Received]:
        limits.append(limit)
        return await fetch(reader, limit)

    monkeypatch.setattr(LogReader, "fetch", noting)
    log.append(*(message("order.placed", b"x" * 4 * 2**20) for _ in range(24)), *numbered(1_000))
    async with storing(database, log, prefetch_count=1):
        await eventually(lambda: log.acknowledged["mail"] == len(log.messages), timeout=60)
    assert limits[:3] == [16, 4, 4]
    assert max(limits) > 50


async def test_a_missing_source_is_an_error_at_the_start(database: str) -> None:
    log = Log()
    log.missing = True
    with pytest.raises(TopologyError, match="the log is missing"):
        async with storing(database, log):
            pass


async def test_stored_messages_are_handled_while_the_source_is_away(database: str) -> None:
    log, recorder = Log(), Recorder()
    log.append(*numbered(2))
    async with storing(database, log, prefetch_count=1):
        await eventually(lambda: log.acknowledged["mail"] == 2)
    log.away = True
    async with storing(database, log, observer=recorder) as taken:
        for delivery in await taken.several(2):
            await delivery.settle(DONE)
        [lost] = recorder.of(DependencyLost)
        assert lost.reason == "the log is away"
        log.away = False
        log.append(*numbered(1, start=2))
        assert (await taken.next()).message.body == b"2"
        await eventually(lambda: recorder.of(DependencyRestored))


async def test_a_subscription_that_is_cancelled_while_it_starts_no_longer_finds_the_source_away(database: str) -> None:
    log = Log()
    log.away = True

    class Cancelling(Recorder):
        def notify(self, event: Event) -> None:
            super().notify(event)
            if isinstance(event, DependencyLost):
                cancelled.cancel()

    recorder = Cancelling()
    broker = StoredBroker(log, database_of(database), observer=recorder)

    async def start() -> None:
        async with taking(broker, "mail", "order.#"):
            pytest.fail("it was cancelled before it could start")

    cancelled = asyncio.create_task(start())
    await asyncio.wait({cancelled})
    assert cancelled.cancelled()
    log.away = False
    async with taking(broker, "billing", "order.#"):
        await eventually(lambda: recorder.of(DependencyRestored))
    await broker.close()


async def test_a_database_that_is_away_loses_nothing_and_keeps_the_order(
    database: str, pool: Pool, proxied: Callable[[str], Proxy]
) -> None:
    proxy, log = proxied(database), Log()
    async with storing(proxy.url, log, prefetch_count=1, ordered=True) as taken:
        log.append(*numbered(100, ordering_key="one"))
        first = await taken.next()
        proxy.refuse()
        proxy.cut()
        log.append(*numbered(1_000, start=100, ordering_key="one"))
        proxy.accept()
        await eventually(lambda: log.acknowledged["mail"] == 1_100)
        assert first.message.body == b"0"
    bodies = [int(row["body"]) for row in await deliveries(pool, "mail")]
    assert list(dict.fromkeys(bodies)) == list(range(1_100))


async def test_nothing_is_acknowledged_while_the_database_refuses(database: str, pool: Pool) -> None:
    log, recorder = Log(), Recorder()
    async with storing(database, log, observer=recorder):
        await pool.execute("alter table outbox_delivery rename to elsewhere")
        log.append(*numbered(3))
        await eventually(lambda: recorder.of(DependencyLost))
    assert log.acknowledged["mail"] == 0
    await pool.execute("alter table elsewhere rename to outbox_delivery")
    async with storing(database, log) as taken:
        assert [delivery.message.body for delivery in await taken.several(3)] == [b"0", b"1", b"2"]


class Answering:
    """A transport that answers each message with a result of its own, and remembers the messages."""

    def __init__(self, result: SendResult) -> None:
        self.result = result
        self.sent: list[Message] = []

    async def open(self) -> None: ...

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        self.sent += messages
        return [self.result for _ in messages]

    async def close(self) -> None: ...


async def test_messages_for_one_queue_go_there_and_all_others_to_the_broker(database: str, pool: Pool) -> None:
    away = Unconfirmed(Failure("away", ""))
    broker = Answering(away)
    transport = QueueTransport(broker, database_of(database))
    await bind(pool, "mail", "order.placed", exchange=LABEL)
    batch = [
        message("order.placed", b"0"),
        message("order.placed", b"1", target_queue="mail"),
        message("order.placed", b"2", target_queue="gone"),
        message("order.placed", b"3"),
        message("order.placed", b"4", target_queue="mail"),
    ]
    assert list(await transport.send(batch, timeout=TIMEOUT)) == [away, CONFIRMED, UNROUTABLE, away, CONFIRMED]
    assert [each.body for each in broker.sent] == [b"0", b"3"]
    assert [row["body"] for row in await deliveries(pool, "mail")] == [b"1", b"4"]
    await transport.close()


async def test_a_database_without_queues_stops_only_the_messages_for_single_queues(database: str, pool: Pool) -> None:
    batch = [message("order.placed"), message("order.placed", target_queue="mail")]
    await bind(pool, "mail", "order.placed", exchange=LABEL)
    transport = QueueTransport(Answering(CONFIRMED), database_of(database))
    await transport.open()
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("lock table outbox_delivery in access exclusive mode")
        results = asyncio.create_task(transport.send(batch, timeout=timedelta(milliseconds=300)))
        confirmed, waiting = await results
        assert (confirmed, type(waiting)) == (CONFIRMED, Unconfirmed)
    await transport.close()
    await pool.execute("drop table outbox_delivery")
    transport = QueueTransport(Answering(CONFIRMED), database_of(database))
    assert list(await transport.send(batch, timeout=TIMEOUT)) == [CONFIRMED, UNROUTABLE]
    await transport.close()
