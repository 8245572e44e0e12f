"""What every broker guarantees about redelivered messages: when, where, in which order, and with what."""

import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

from outbox.core.outcome import DONE, RETURNED, Cause, Dead, Failure, Postponed, Retry
from outbox.ports import Broker
from tests.contract.harness import Harness
from tests.contract.support import A_WHILE, FAILURE, existing, message, send, taking
from tests.support import eventually

SHORT = timedelta(milliseconds=500)
INSTANT = timedelta(0)
DELAYS = (INSTANT, SHORT)


# --- postponed ------------------------------------------------------------------------------------------------------------


async def test_a_postponed_message_is_redelivered_to_its_queue_only_after_the_delay_and_unchanged(broker: Broker) -> None:
    async with (
        taking(broker, "mail", "order.*", retry_delays=DELAYS) as mail,
        taking(broker, "stock", "order.*", retry_delays=DELAYS) as stock,
    ):
        sent = message("order.placed", b'{"id": 7}', headers={"tenant": "acme"})
        await send(broker, sent)
        await (await stock.next()).settle(DONE)
        first = await mail.next()
        asked = time.monotonic()
        await first.settle(Postponed(SHORT))
        again = await mail.next()
        assert time.monotonic() - asked >= SHORT.total_seconds() * 0.95
        assert (again.message.id, again.message.routing_key, again.message.body) == (sent.id, "order.placed", b'{"id": 7}')
        assert (again.message.tracking_ids, again.message.content_type) == (sent.tracking_ids, "application/json")
        assert dict(again.message.headers) == {"tenant": "acme"}
        assert (again.attempt, again.crashes, again.blamed) == (1, 0, False)
        await again.settle(DONE)
        await stock.nothing_more(A_WHILE / 4)


async def test_postponing_uses_no_attempt_however_often(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        await send(broker, message("order.placed"))
        await (await taken.next()).settle(Retry(INSTANT, FAILURE))
        for _ in range(4):
            delivery = await taken.next()
            assert delivery.attempt == 2
            await delivery.settle(Postponed(INSTANT))
        await (await taken.next()).settle(Retry(INSTANT, FAILURE))
        assert (await taken.next()).attempt == 3


async def test_a_postponed_message_keeps_its_deadline(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        await send(broker, message("order.placed", expiration=timedelta(seconds=30)))
        first = await taken.next()
        await first.settle(Postponed(INSTANT))
        again = await taken.next()
        assert first.message.expires_at is not None
        assert again.message.expires_at == first.message.expires_at


async def test_postponing_keeps_the_count_of_crashes(broker: Broker, harness: Harness) -> None:
    await existing(broker, "mail", "order.placed")
    await send(broker, message("order.placed"))
    await harness.die_with_message("mail", "order.placed", isolated=False)
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        for _ in range(2):
            delivery = await taken.next()
            assert (delivery.attempt, delivery.crashes, delivery.blamed) == (1, 1, False)
            await delivery.settle(Postponed(INSTANT))


async def test_an_isolated_message_that_is_postponed_is_not_blamed(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        await send(broker, message("order.placed"))
        delivery = await taken.next()
        while not await delivery.isolate():
            delivery = await taken.next()
        await delivery.settle(Postponed(INSTANT))
        again = await taken.next()
        assert (again.attempt, again.blamed) == (1, False)
        await again.settle(DONE)
        await taken.nothing_more(A_WHILE / 4)


# --- what goes along ------------------------------------------------------------------------------------------------------


async def test_key_stamp_and_requeue_count_arrive_and_stay_through_retries_and_postponing(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        await send(broker, message("order.placed", ordering_key="order 7", hlc=1_780_000_000_000_001, requeue_count=2))
        for outcome in (Retry(INSTANT, FAILURE), Postponed(INSTANT), RETURNED, DONE):
            arrived = await taken.next()
            assert (arrived.message.ordering_key, arrived.message.hlc) == ("order 7", 1_780_000_000_000_001)
            assert arrived.message.requeue_count == 2
            await arrived.settle(outcome)


async def test_a_message_without_key_stamp_and_requeues_says_so(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed") as taken:
        await send(broker, message("order.placed"))
        arrived = (await taken.next()).message
        assert (arrived.ordering_key, arrived.hlc, arrived.requeue_count) == (None, None, 0)


async def test_a_dead_letter_knows_every_failure_of_its_message(broker: Broker, harness: Harness) -> None:
    begun = datetime.now(UTC)
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        await send(broker, message("order.placed"))
        await (await taken.next()).settle(Retry(INSTANT, Failure("a.Error", "first", "Traceback: 1", "host:1")))
        await (await taken.next()).settle(Postponed(INSTANT))
        await (await taken.next()).settle(Retry(INSTANT, Failure("b.Error", "second", "Traceback: 2", "host:2")))
        await (await taken.next()).settle(RETURNED)
        await (await taken.next()).settle(Dead(Cause.EXHAUSTED, Failure("c.Error", "third", "Traceback: 3", "host:3")))
        await eventually(lambda: harness.dead_letters("mail"))
    [dead] = await harness.dead_letters("mail")
    assert [
        (failed.attempt, failed.failure.type, failed.failure.message, failed.failure.worker) for failed in dead.failures
    ] == [
        (1, "a.Error", "first", "host:1"),
        (2, "b.Error", "second", "host:2"),
        (3, "c.Error", "third", "host:3"),
    ]
    assert dead.failures[-1].failure.traceback == "Traceback: 3"
    times = [begun, *(failed.at for failed in dead.failures), datetime.now(UTC)]
    assert times == sorted(times)


async def test_of_very_many_failures_the_first_and_the_latest_are_known(broker: Broker, harness: Harness) -> None:
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        await send(broker, message("order.placed"))
        for number in range(1, 30):
            failure = Failure("a.Error", f"{number} " + "\0ż\ud800" * 3_000, "Traceback" * 2_000)
            await (await taken.next()).settle(Retry(INSTANT, failure))
        await (await taken.next()).settle(Dead(Cause.EXHAUSTED, FAILURE))
        await eventually(lambda: harness.dead_letters("mail"))
    [dead] = await harness.dead_letters("mail")
    attempts = [failed.attempt for failed in dead.failures]
    assert attempts[0] == 1
    assert attempts[-19:] == list(range(12, 31))
    assert len(attempts) <= 21
    assert dead.exception_message == "the card was declined"


# --- in order -------------------------------------------------------------------------------------------------------------


async def test_an_ordered_queue_gives_each_key_in_its_order(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed", prefetch_count=5, ordered=True) as taken:
        await send(broker, *(message("order.placed", str(n).encode(), ordering_key=f"key {n % 3}") for n in range(30)))
        seen: dict[str | None, list[int]] = {}
        for _ in range(30):
            delivery = await taken.next()
            seen.setdefault(delivery.message.ordering_key, []).append(int(delivery.message.body))
            await delivery.settle(DONE)
    assert seen == {f"key {key}": list(range(key, 30, 3)) for key in range(3)}


async def test_deliveries_left_by_an_ordered_consumer_go_to_the_next_one_in_order(broker: Broker, other_broker: Broker) -> None:
    async with AsyncExitStack() as leaving:
        first = await leaving.enter_async_context(taking(broker, "mail", "order.placed", prefetch_count=6, ordered=True))
        await send(broker, *(message("order.placed", str(n).encode(), ordering_key=f"key {n % 2}") for n in range(10)))
        begun = await first.next()
        async with taking(other_broker, "mail", "order.placed", ordered=True) as second:
            assert first.intake is not None
            await first.intake.stop()
            await begun.settle(DONE)
            await leaving.aclose()
            seen: dict[str | None, list[int]] = {}
            for _ in range(9):
                delivery = await second.next()
                seen.setdefault(delivery.message.ordering_key, []).append(int(delivery.message.body))
                await delivery.settle(DONE)
    assert seen == {"key 0": [2, 4, 6, 8], "key 1": [1, 3, 5, 7, 9]}
