"""Ordered consumers, over every broker: one message of a key after another, retries in place, keys in parallel."""

import asyncio
from datetime import timedelta
from random import Random

from outbox import Consumer, RetryAfter
from outbox.core.events import Processed
from outbox.core.outcome import Cause, Dead, Retry
from outbox.ports import Broker
from outbox.retry import constant
from tests.contract.harness import Harness
from tests.contract.support import message, send, taking
from tests.contract.workers import Running, working
from tests.support import eventually

SOON = 30.0


class Ledger:
    """What a handler did with the messages of each key; their bodies are `key:number`."""

    def __init__(self) -> None:
        self.attempts: dict[str, list[tuple[int, int]]] = {}
        self.handled: dict[str, list[int]] = {}
        self.running: set[str] = set()
        self.at_once = 0

    async def work(self, body: bytes, attempt: int, *, fails: bool = False) -> None:
        key, number = body.decode().split(":")
        assert key not in self.running, f"two of {key} at once"
        self.running.add(key)
        self.at_once = max(self.at_once, len(self.running))
        try:
            await asyncio.sleep(0.001)
            self.attempts.setdefault(key, []).append((int(number), attempt))
            if fails:
                raise ConnectionError(f"{key}:{number}")
            self.handled.setdefault(key, []).append(int(number))
        finally:
            self.running.discard(key)


def keyed(key: str, number: int) -> object:
    return message("order.placed", f"{key}:{number}".encode(), ordering_key=key)


async def sent(broker: Broker, *keys_and_numbers: tuple[str, int]) -> None:
    await existing_ordered(broker)
    await send(broker, *(keyed(key, number) for key, number in keys_and_numbers))  # type: ignore[arg-type]


async def existing_ordered(broker: Broker) -> None:
    async with taking(broker, "mail", "order.*", ordered=True):
        pass


async def all_processed(worker: Running, count: int) -> list[Processed]:
    """Settlements: attempts that are followed by another one in place are none."""
    await eventually(lambda: len(settled(worker)) >= count, timeout=SOON)
    return settled(worker)


def settled(worker: Running) -> list[Processed]:
    return [event for event in worker.recorder.of(Processed) if not isinstance(event.outcome, Retry)]


async def test_each_key_is_handled_in_order_and_keys_are_handled_in_parallel(broker: Broker) -> None:
    ledger = Ledger()

    async def handle(body: bytes, attempt_count: int) -> None:
        await ledger.work(body, attempt_count)

    await sent(broker, *((f"k{number % 5}", number) for number in range(100)))
    async with working(broker, Consumer("order.*", handle, "mail", ordered=True)) as worker:
        await all_processed(worker, 100)
    assert ledger.handled == {f"k{key}": list(range(key, 100, 5)) for key in range(5)}
    assert ledger.at_once > 1


async def test_a_failed_message_is_retried_in_place_and_none_of_its_key_overtakes_it(broker: Broker) -> None:
    ledger, chance = Ledger(), Random(7)

    async def handle(body: bytes, attempt_count: int) -> None:
        await ledger.work(body, attempt_count, fails=attempt_count < 3 and chance.random() < 0.2)

    await sent(broker, *((f"k{number % 5}", number) for number in range(100)))
    consumer = Consumer("order.*", handle, "mail", ordered=True, retry=constant("5ms", attempts=4))
    async with working(broker, consumer, prefetch_count=20) as worker:
        await all_processed(worker, 100)
    assert ledger.handled == {f"k{key}": list(range(key, 100, 5)) for key in range(5)}
    assert any(attempt > 1 for attempts in ledger.attempts.values() for _, attempt in attempts)
    assert all(attempts == sorted(attempts) for attempts in ledger.attempts.values())


async def test_other_keys_and_messages_without_a_key_go_on_meanwhile(broker: Broker) -> None:
    ledger, repaired = Ledger(), asyncio.Event()

    async def handle(body: bytes, attempt_count: int) -> None:
        await ledger.work(body, attempt_count, fails=body == b"sick:1" and not repaired.is_set())

    await sent(broker, ("sick", 1), ("sick", 2), ("well", 1), ("well", 2))
    await send(broker, *(message("order.placed", f"free{number}:0".encode()) for number in range(5)))
    consumer = Consumer("order.*", handle, "mail", ordered=True, retry=constant("10ms", attempts=None))
    async with working(broker, consumer) as worker:
        await all_processed(worker, 7)
        assert "sick" not in ledger.handled
        repaired.set()
        await all_processed(worker, 9)
    assert ledger.handled["sick"] == [1, 2]
    assert ledger.handled["well"] == [1, 2]


async def test_a_dead_letter_unblocks_the_next_message_and_lists_every_attempt(broker: Broker, harness: Harness) -> None:
    ledger = Ledger()

    async def handle(body: bytes, attempt_count: int) -> None:
        await ledger.work(body, attempt_count, fails=body == b"k:1")

    await sent(broker, ("k", 1), ("k", 2))
    consumer = Consumer("order.*", handle, "mail", ordered=True, retry=constant("5ms", attempts=3))
    async with working(broker, consumer) as worker:
        first, second = await all_processed(worker, 2)
        [dead] = await harness.dead_letters("mail")
    assert ledger.attempts["k"] == [(1, 1), (1, 2), (1, 3), (2, 1)]
    assert isinstance(first.outcome, Dead)
    assert (first.outcome.cause, first.attempt, second.attempt) == (Cause.EXHAUSTED, 3, 1)
    assert [(failed.attempt, failed.failure.message) for failed in dead.failures] == [(1, "k:1"), (2, "k:1"), (3, "k:1")]


async def test_a_delay_that_the_handler_chooses_is_waited_for_in_place(broker: Broker) -> None:
    ledger = Ledger()

    async def handle(body: bytes, attempt_count: int) -> None:
        await ledger.work(body, attempt_count, fails=False)
        if body == b"k:1" and attempt_count < 3:
            raise RetryAfter(timedelta(milliseconds=50))

    await sent(broker, ("k", 1), ("k", 2))
    async with working(broker, Consumer("order.*", handle, "mail", ordered=True, retry_delays=())) as worker:
        await all_processed(worker, 2)
    assert ledger.attempts["k"] == [(1, 1), (1, 2), (1, 3), (2, 1)]


async def test_messages_waiting_when_a_worker_stops_are_redelivered_in_order(broker: Broker, other_broker: Broker) -> None:
    ledger, begun = Ledger(), asyncio.Event()

    async def failing(body: bytes, attempt_count: int) -> None:
        begun.set()
        raise ConnectionError("away")

    async def handle(body: bytes, attempt_count: int) -> None:
        await ledger.work(body, attempt_count)

    await sent(broker, *((f"k{number % 2}", number) for number in range(20)))
    first = Consumer("order.*", failing, "mail", ordered=True, retry=constant("5m", attempts=None))
    async with working(broker, first, prefetch_count=15) as worker:
        await begun.wait()
        async with asyncio.timeout(30):
            await worker.stop()
    async with working(other_broker, Consumer("order.*", handle, "mail", ordered=True)) as worker:
        await all_processed(worker, 20)
    assert ledger.handled == {"k0": list(range(0, 20, 2)), "k1": list(range(1, 20, 2))}


async def test_a_worker_that_takes_over_continues_where_the_other_one_stopped(broker: Broker, other_broker: Broker) -> None:
    ledger = Ledger()

    async def handle(body: bytes, attempt_count: int) -> None:
        await ledger.work(body, attempt_count)

    consumer = Consumer("order.*", handle, "mail", ordered=True)
    await existing_ordered(broker)
    async with working(broker, consumer) as first, working(other_broker, consumer) as second:
        await sent(broker, *((f"k{number % 10}", number) for number in range(200)))
        await eventually(lambda: len(settled(first)) + len(settled(second)) >= 50, timeout=SOON)
        await first.stop()
        await eventually(lambda: len(settled(first)) + len(settled(second)) >= 200, timeout=SOON)
    assert ledger.handled == {f"k{key}": list(range(key, 200, 10)) for key in range(10)}


async def test_a_pause_of_the_consumer_keeps_the_order(broker: Broker) -> None:
    ledger, away = Ledger(), True

    async def handle(body: bytes, attempt_count: int) -> None:
        await ledger.work(body, attempt_count, fails=away)

    await sent(broker, *((f"k{number % 2}", number) for number in range(20)))
    consumer = Consumer(
        *("order.*", handle, "mail"),
        ordered=True,
        retry=constant("1ms", attempts=None),
        pause_on=ConnectionError,
        pause_after=3,
        pause_for="100ms",
    )
    async with working(broker, consumer) as worker:
        await eventually(lambda: len(ledger.attempts) == 2, timeout=SOON)
        away = False
        await all_processed(worker, 20)
    assert ledger.handled == {"k0": list(range(0, 20, 2)), "k1": list(range(1, 20, 2))}
