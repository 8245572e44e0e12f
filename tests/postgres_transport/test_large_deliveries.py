"""Large messages in queues: the memory of a consumer is bounded, and slow connections are handled."""

import asyncio
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from outbox import Worker, consume
from outbox.core.byte_limits import ByteLimits
from outbox.core.events import DependencyLost
from outbox.core.outcome import DONE
from outbox.errors import DatabaseUnavailableError, StatementTimeoutError
from outbox.ports import Delivery, Subscription
from outbox.postgres.pool import Pool
from outbox.transports.postgres import PostgresBroker
from tests.contract.harness import EXCHANGE, Recorder
from tests.contract.support import taking
from tests.postgres_transport.support import TABLE, deliveries, fill_deliveries
from tests.servers.proxy import Proxy, Towards
from tests.support import eventually

MIB = 1024 * 1024


class Handlers:
    """Handlers that settle on request, and count the bytes in flight."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.in_flight = 0
        self.most_in_flight = 0
        self.sizes: list[int] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def receive(self, delivery: Delivery) -> None:
        task = asyncio.create_task(self._handle(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(self, delivery: Delivery) -> None:
        size = len(delivery.message.body)
        self.sizes.append(size)
        self.in_flight += size
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await self.may_end.wait()
        self.in_flight -= size
        await delivery.settle(DONE)


def broker_with(url: str, *, batch: int, body: int = 128 * MIB, observer: Recorder | None = None) -> PostgresBroker:
    return PostgresBroker(
        url,
        table=TABLE,
        exchange_name=EXCHANGE,
        observer=observer or Recorder(),
        byte_limits=ByteLimits(batch=batch, body=body),
        poll_interval=timedelta(hours=1),
    )


def subscription(*, ordered: bool = False) -> Subscription:
    return Subscription(
        queue="mail", binding_key="#", exchange_name=EXCHANGE, prefetch_count=10, retry_delays=(), ordered=ordered
    )


async def no_deliveries(pool: Pool) -> bool:
    return not await pool.fetchval("select count(*) from outbox_delivery")


@pytest.mark.parametrize("ordered", [False, True])
async def test_messages_in_flight_have_no_more_bytes_than_allowed(database: str, pool: Pool, ordered: bool) -> None:
    await fill_deliveries(pool, "mail", 30, bytes_each=30_000)
    await fill_deliveries(pool, "mail", 1, bytes_each=150_000)
    handlers, broker = Handlers(), broker_with(database, batch=100_000)
    async with broker.subscribe(subscription(ordered=ordered), handlers.receive):
        await eventually(lambda: handlers.in_flight >= 90_000)
        handlers.may_end.set()
        await eventually(lambda: no_deliveries(pool))
    await broker.close()
    assert sorted(handlers.sizes) == [30_000] * 30 + [150_000]
    assert handlers.most_in_flight <= 50_000 + 150_000  # half a batch, and then one that is larger than any


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_message_above_the_limit_is_a_dead_letter_and_the_others_are_handled(
    database: str,
    pool: Pool,
    ordered: bool,
) -> None:
    await fill_deliveries(pool, "mail", 1, bytes_each=50_000)
    await fill_deliveries(pool, "mail", 5, bytes_each=100)
    handlers, broker = Handlers(), broker_with(database, batch=100_000, body=40_000)
    handlers.may_end.set()
    async with broker.subscribe(subscription(ordered=ordered), handlers.receive):
        await eventually(lambda: no_deliveries(pool))
    await broker.close()
    assert handlers.sizes == [100] * 5
    row = await pool.fetchrow("select cause, exception_message, octet_length(body) as size from outbox_dead_letter")
    assert row is not None
    assert dict(row) == {
        "cause": "undecodable",
        "exception_message": "the body has 50000 bytes, and max_body_bytes is 40000",
        "size": 50_000,
    }


@pytest.mark.parametrize("ordered", [False, True])
async def test_what_cannot_be_claimed_at_once_in_time_is_claimed_in_smaller_parts(
    database: str,
    pool: Pool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    ordered: bool,
) -> None:
    """Five messages of 3 MB, over a connection of 1 MB a second, with two seconds for a statement."""
    monkeypatch.setattr("outbox.transports.postgres.broker.STATEMENT_TIMEOUT", timedelta(seconds=2))
    await fill_deliveries(pool, "mail", 5, bytes_each=3_000_000)
    recorder, handlers = Recorder(), Handlers()
    handlers.may_end.set()
    with Proxy(database) as proxy:
        broker = broker_with(proxy.url, batch=64 * MIB, observer=recorder)
        proxy.limit(1_000_000, Towards.CLIENT)
        async with broker.subscribe(subscription(ordered=ordered), handlers.receive):
            await eventually(lambda: no_deliveries(pool), timeout=120)
        await broker.close()
        assert proxy.forwarded[Towards.CLIENT] < 3 * 15_000_000
    assert handlers.sizes == [3_000_000] * 5
    assert "took too long; using smaller claims" in caplog.text
    assert recorder.of(DependencyLost) == []
    assert await deliveries(pool) == []


@pytest.mark.parametrize(("rate", "size"), [(1_000_000, 3_000_000), (200_000, 1_000_000)])
async def test_a_single_body_that_takes_too_long_is_read_in_pieces(
    database: str,
    pool: Pool,
    monkeypatch: pytest.MonkeyPatch,
    rate: int,
    size: int,
) -> None:
    """Two seconds are too short for the body. In the second case they are too short for the first pieces as well."""
    monkeypatch.setattr("outbox.transports.postgres.broker.STATEMENT_TIMEOUT", timedelta(seconds=2))
    body = Random(1).randbytes(size)
    await fill_deliveries(pool, "mail", 1)
    await pool.execute("update outbox_delivery set body = $1", body)
    received: list[tuple[bytes, int]] = []
    settling: set[asyncio.Task[None]] = set()

    def receive(delivery: Delivery) -> None:
        received.append((delivery.message.body, delivery.crashes))
        settling.add(asyncio.create_task(delivery.settle(DONE)))

    recorder = Recorder()
    with Proxy(database) as proxy:
        broker = broker_with(proxy.url, batch=64 * MIB, observer=recorder)
        proxy.limit(rate, Towards.CLIENT)
        async with broker.subscribe(subscription(), receive):
            await eventually(lambda: no_deliveries(pool), timeout=120)
        await broker.close()
    assert received == [(body, 0)]
    assert recorder.of(DependencyLost) == []


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_body_that_could_not_be_read_in_pieces_is_claimed_again_long_before_its_lease_ends(
    broker: PostgresBroker, pool: Pool, monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    fetch = PostgresBroker._fetch
    claim = "claim_ordered" if ordered else "claim"
    failures = {claim: StatementTimeoutError("too slow"), "read_piece": DatabaseUnavailableError("away")}

    async def fail_once(broker: PostgresBroker, name: str, *arguments: object) -> object:
        if (error := failures.pop(name, None)) is not None:
            raise error
        return await fetch(broker, name, *arguments)

    monkeypatch.setattr(PostgresBroker, "_fetch", fail_once)
    await fill_deliveries(pool, "mail", 1)
    async with taking(broker, "mail", "#", prefetch_count=4, ordered=ordered) as taken:
        delivery = await taken.next(timedelta(seconds=10))
        assert (delivery.message.body, delivery.crashes) == (b"\xab" * 100, 0)
        await delivery.settle(DONE)
    assert failures == {}


async def test_a_worker_takes_the_limits(database: str, pool: Pool) -> None:
    await fill_deliveries(pool, "mail", 1, bytes_each=5_000)
    await fill_deliveries(pool, "mail", 1, bytes_each=100)
    sizes: list[int] = []

    @consume("#", queue="mail")
    async def handle(body: bytes) -> None:
        sizes.append(len(body))

    options: dict[str, Any] = {"reporting": False, "enable_metrics": False, "exchange_name": EXCHANGE}
    worker = Worker(broker=database, consumers=[handle], max_body_bytes=1_000, max_batch_bytes=2_000, **options)
    working = asyncio.create_task(worker.run(handle_signals=False))
    await eventually(lambda: no_deliveries(pool))
    worker.stop()
    await working
    assert sizes == [100]
