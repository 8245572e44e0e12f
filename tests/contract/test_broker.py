"""What every broker promises, at its port."""

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from outbox.core.outcome import DONE, RETURNED, Cause, Dead, Retry
from outbox.errors import MalformedMessageError, StaleDeliveryError
from outbox.ports import Broker, MeasuresQueues, QueueDepth
from tests.contract.harness import EXCHANGE, Harness, StoredDeadLetter
from tests.contract.support import A_WHILE, FAILURE, existing, message, send, taking
from tests.support import eventually

INSTANT = timedelta(0)
SHORT = timedelta(seconds=1)
DELAYS = (INSTANT, SHORT)


async def test_a_message_arrives_as_it_was_sent(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed") as taken:
        sent = message("order.placed", b'{"id": 7}', headers={"tenant": "acme", "size": 3, "nested": {"a": [1, 2]}})
        await send(broker, sent)
        delivery = await taken.next()
        arrived = delivery.message
        assert (arrived.id, arrived.routing_key, arrived.body) == (sent.id, "order.placed", b'{"id": 7}')
        assert (arrived.content_type, arrived.tracking_ids) == ("application/json", sent.tracking_ids)
        assert dict(arrived.headers) == {"tenant": "acme", "size": 3, "nested": {"a": [1, 2]}}
        assert abs(arrived.created_at - sent.created_at) <= timedelta(seconds=1)
        assert (delivery.attempt, delivery.crashes, delivery.blamed) == (1, 0, False)
        await delivery.settle(DONE)


async def test_the_message_parameter_has_the_documented_attributes(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed") as taken:
        sent = message("order.placed", b"{}", headers={"tenant": "acme"})
        await send(broker, sent)
        incoming: Any = (await taken.next()).incoming
        assert incoming.body == b"{}"
        assert incoming.message_id == sent.id
        assert incoming.routing_key == "order.placed"
        assert incoming.exchange in (EXCHANGE, "log")  # a source without exchanges gives its own name
        assert incoming.headers["tenant"] == "acme"
        assert incoming.content_type == "application/json"


async def test_bindings_follow_the_rules_of_topics(broker: Broker) -> None:
    async with (
        taking(broker, "one_word", "order.*") as one_word,
        taking(broker, "any_words", "order.#") as any_words,
        taking(broker, "exact", "order.placed") as exact,
        taking(broker, "everything", "#") as everything,
    ):
        keys = ["order", "order.placed", "order.placed.eu", "invoice.placed"]
        await send(broker, *(message(key) for key in keys))
        assert {(await everything.next()).message.routing_key for _ in keys} == set(keys)
        assert {(await any_words.next()).message.routing_key for _ in range(3)} == set(keys[:3])
        assert (await one_word.next()).message.routing_key == "order.placed"
        assert (await exact.next()).message.routing_key == "order.placed"
        for taken in (one_word, any_words, exact, everything):
            await taken.nothing_more(A_WHILE / 4)


async def test_every_bound_queue_gets_the_message_and_settles_its_own(broker: Broker, harness: Harness) -> None:
    async with taking(broker, "mail", "order.placed") as mail, taking(broker, "stock", "order.*") as stock:
        sent = message("order.placed")
        await send(broker, sent)
        first, second = await mail.next(), await stock.next()
        assert first.message.id == second.message.id == sent.id
        await first.settle(DONE)
        await second.settle(Dead(Cause.REJECTED, FAILURE))
    assert [dead.message_id for dead in await _dead(harness, "stock", 1)] == [sent.id]
    assert await harness.dead_letters("mail") == []


async def test_a_message_for_one_queue_reaches_that_queue_alone(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed") as mail, taking(broker, "stock", "order.placed") as stock:
        await send(broker, message("order.placed", target_queue="mail"))
        assert (await mail.next()).message.routing_key == "order.placed"
        await stock.nothing_more()


async def test_a_queue_is_known_as_soon_as_messages_for_it_have_somewhere_to_go(broker: Broker, other_broker: Broker) -> None:
    assert not await broker.has_queue("mail")
    await existing(other_broker, "mail", "order.placed")
    assert await broker.has_queue("mail")
    for name in ("mai", "order.placed", "", "ż" * 200, "m\0il", "m\ud800il"):
        assert not await broker.has_queue(name)


async def test_messages_wait_for_their_worker(broker: Broker) -> None:
    await existing(broker, "mail", "order.placed")
    await send(broker, message("order.placed"))
    async with taking(broker, "mail", "order.placed") as taken:
        await (await taken.next()).settle(DONE)


async def test_a_done_message_is_not_redelivered(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed") as taken:
        await send(broker, message("order.placed"))
        await (await taken.next()).settle(DONE)
    async with taking(broker, "mail", "order.placed") as taken:
        await taken.nothing_more()


async def test_a_retry_comes_back_to_its_queue_only_after_its_delay_and_keeps_everything(broker: Broker) -> None:
    async with (
        taking(broker, "mail", "order.*", retry_delays=DELAYS) as mail,
        taking(broker, "stock", "order.*", retry_delays=DELAYS) as stock,
    ):
        sent = message("order.placed", b'{"id": 7}', headers={"tenant": "acme"})
        await send(broker, sent)
        await (await stock.next()).settle(DONE)
        first = await mail.next()
        asked = time.monotonic()
        await first.settle(Retry(SHORT, FAILURE))
        again = await mail.next()
        assert time.monotonic() - asked >= SHORT.total_seconds() * 0.95
        assert (again.message.id, again.message.routing_key, again.message.body) == (sent.id, "order.placed", b'{"id": 7}')
        assert (again.message.tracking_ids, again.message.content_type) == (sent.tracking_ids, "application/json")
        assert dict(again.message.headers) == {"tenant": "acme"}
        assert abs(again.message.created_at - sent.created_at) <= timedelta(seconds=1)
        incoming: Any = again.incoming
        assert incoming.routing_key == "order.placed"
        assert again.attempt == 2
        await again.settle(DONE)
        await stock.nothing_more()


async def test_attempts_are_counted_exactly_when_instant_and_delayed_retries_are_mixed(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        await send(broker, message("order.placed"))
        for attempt, delay in enumerate([INSTANT, SHORT, INSTANT, INSTANT], start=1):
            delivery = await taken.next()
            assert delivery.attempt == attempt
            await delivery.settle(Retry(delay, FAILURE))
        delivery = await taken.next()
        assert (delivery.attempt, delivery.crashes) == (5, 0)
        await delivery.settle(DONE)


async def test_a_retry_may_have_a_delay_that_was_not_announced(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed") as taken:
        await send(broker, message("order.placed"))
        await (await taken.next()).settle(Retry(timedelta(milliseconds=250), FAILURE))
        assert (await taken.next()).attempt == 2


async def test_a_dead_message_is_kept_with_its_failure(broker: Broker, harness: Harness) -> None:
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        sent = message("order.placed", b'{"id": 7}', headers={"tenant": "acme"})
        await send(broker, sent)
        await (await taken.next()).settle(Retry(INSTANT, FAILURE))
        await (await taken.next()).settle(Dead(Cause.EXHAUSTED, FAILURE))
        [dead] = await _dead(harness, "mail", 1)
        assert (dead.message_id, dead.routing_key, dead.body) == (sent.id, "order.placed", b'{"id": 7}')
        assert (dead.exception_type, dead.exception_message) == ("shop.PaymentError", "the card was declined")
        assert "pay.py" in dead.exception_traceback
        assert dict(dead.headers) == {"tenant": "acme"}
        # Reading a dead letter of RabbitMQ takes it out of the queue for a moment.
        await eventually(lambda: _counts(broker, "mail", 1))
        await taken.nothing_more()


async def _counts(broker: Broker, queue: str, number: int) -> bool:
    return await broker.count_dead_letters(queue) == number


async def test_our_brokers_measure_the_depth_of_a_queue(broker: Broker) -> None:
    assert isinstance(broker, MeasuresQueues)
    assert await broker.queue_depth("mail") in (None, QueueDepth(0, timedelta(0)))
    async with taking(broker, "mail", "order.placed"):
        pass
    await send(broker, *(message("order.placed") for _ in range(3)))

    async def counted() -> QueueDepth | None:
        depth = await broker.queue_depth("mail")
        return depth if depth is not None and depth.ready == 3 else None

    depth = await eventually(counted)
    assert depth is not None
    assert depth.oldest_due is None or timedelta(0) <= depth.oldest_due < timedelta(minutes=1)
    async with taking(broker, "mail", "order.placed") as taken:
        for delivery in await taken.several(3):
            await delivery.settle(DONE)


async def test_a_dead_letter_never_expires(broker: Broker, harness: Harness) -> None:
    async with taking(broker, "mail", "order.placed") as taken:
        sent = message("order.placed", expiration=timedelta(seconds=3))
        await send(broker, sent)
        await (await taken.next()).settle(Dead(Cause.REJECTED, FAILURE))
        await _dead(harness, "mail", 1)
        await asyncio.sleep(3.5)  # what is watched is that time changes nothing
        assert len(await harness.dead_letters("mail")) == 1


async def test_a_retry_keeps_its_full_delay_and_the_deadline(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        sent = message("order.placed", expiration=timedelta(minutes=1))
        await send(broker, sent)
        first = await taken.next()
        assert first.message.expires_at is not None
        assert sent.expires_at is not None
        assert abs(first.message.expires_at - sent.expires_at) < timedelta(seconds=15)
        asked = time.monotonic()
        await first.settle(Retry(SHORT, FAILURE))
        again = await taken.next()
        assert time.monotonic() - asked >= SHORT.total_seconds() * 0.95
        assert again.message.expires_at == first.message.expires_at


async def test_a_message_that_expires_in_the_queue_becomes_a_dead_letter(broker: Broker, harness: Harness) -> None:
    await existing(broker, "mail", "order.placed")
    sent = message("order.placed", expiration=timedelta(milliseconds=200))
    await send(broker, sent)
    await asyncio.sleep(0.4)  # no event to wait for: no consumer uses the queue meanwhile
    async with taking(broker, "mail", "order.placed") as taken:
        [dead] = await _dead(harness, "mail", 1)
        assert (dead.message_id, dead.cause) == (sent.id, "expired")
        await taken.nothing_more(A_WHILE / 4)


async def test_a_returned_message_is_redelivered_and_uses_no_attempt(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed") as taken:
        await send(broker, message("order.placed"))
        for _ in range(5):
            delivery = await taken.next()
            assert (delivery.attempt, delivery.crashes) == (1, 0)
            await delivery.settle(RETURNED)
        await (await taken.next()).settle(DONE)


async def test_a_returned_retry_keeps_its_count(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        await send(broker, message("order.placed"))
        await (await taken.next()).settle(Retry(INSTANT, FAILURE))
        await (await taken.next()).settle(RETURNED)
        again = await taken.next()
        assert (again.attempt, again.crashes) == (2, 0)


async def test_leaving_the_subscription_returns_unsettled_deliveries_and_uses_no_attempt(broker: Broker) -> None:
    await existing(broker, "mail", "order.placed")
    await send(broker, *(message("order.placed") for _ in range(3)))
    for _ in range(3):
        async with taking(broker, "mail", "order.placed", prefetch_count=5) as taken:
            deliveries = await taken.several(3)
            assert [(delivery.attempt, delivery.crashes) for delivery in deliveries] == [(1, 0)] * 3


async def test_a_returned_delivery_cannot_be_settled(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed") as taken:
        await send(broker, message("order.placed"))
        delivery = await taken.next()
    with pytest.raises(StaleDeliveryError):
        await delivery.settle(DONE)
    async with taking(broker, "mail", "order.placed") as taken:
        await (await taken.next()).settle(DONE)


async def test_exactly_the_prefetch_count_of_deliveries_is_in_flight(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed", prefetch_count=5) as taken:
        await send(broker, *(message("order.placed", str(number).encode()) for number in range(12)))
        deliveries = list(await taken.several(5))
        await taken.nothing_more()
        await deliveries.pop().settle(DONE)
        deliveries.append(await taken.next())
        await taken.nothing_more()
        assert taken.received == 6
        for _ in range(6):
            await deliveries.pop(0).settle(DONE)
            deliveries.append(await taken.next())
        assert taken.received == 12


async def test_after_stop_nothing_is_received_and_deliveries_in_flight_can_be_settled(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed", prefetch_count=2) as taken:
        sent = [message("order.placed", str(number).encode()) for number in range(4)]
        await send(broker, *sent)
        deliveries = await taken.several(2)
        assert taken.intake is not None
        await taken.intake.stop()
        for delivery in deliveries:
            await delivery.settle(DONE)
        await taken.nothing_more()
    async with taking(broker, "mail", "order.placed") as taken:
        rest = {delivery.message.body for delivery in await taken.several(2)}
        assert rest == {b"2", b"3"}
        await taken.nothing_more()


async def test_workers_share_a_queue_and_each_message_goes_to_one(broker: Broker, other_broker: Broker) -> None:
    async with (
        taking(broker, "mail", "order.placed", prefetch_count=1) as first,
        taking(other_broker, "mail", "order.placed", prefetch_count=1) as second,
    ):
        await send(broker, message("order.placed", b"1"), message("order.placed", b"2"))
        one, two = await first.next(), await second.next()
        assert {one.message.body, two.message.body} == {b"1", b"2"}
        await one.settle(DONE)
        await two.settle(DONE)
        await first.nothing_more(A_WHILE / 2)
        await second.nothing_more(A_WHILE / 2)


async def test_a_malformed_message_raises_and_can_be_dead_lettered(broker: Broker, harness: Harness) -> None:
    async with taking(broker, "mail", "order.placed") as taken:
        await harness.put_malformed("mail")
        delivery = await taken.next()
        with pytest.raises(MalformedMessageError):
            _ = delivery.message
        incoming: Any = delivery.incoming
        assert incoming.body == b"broken"
        await delivery.settle(Dead(Cause.UNDECODABLE, FAILURE))
        [dead] = await _dead(harness, "mail", 1)
        assert (dead.body, dead.exception_type) == (b"broken", "shop.PaymentError")
        await taken.nothing_more(A_WHILE / 2)


async def test_crashes_of_workers_are_counted_and_are_not_attempts(broker: Broker, harness: Harness) -> None:
    await existing(broker, "mail", "order.placed")
    await send(broker, message("order.placed"))
    for _ in range(2):
        await harness.die_with_message("mail", "order.placed", isolated=False)
    async with taking(broker, "mail", "order.placed", retry_delays=DELAYS) as taken:
        delivery = await taken.next()
        assert (delivery.attempt, delivery.crashes, delivery.blamed) == (1, 2, False)
        await delivery.settle(RETURNED)
        assert (await taken.next()).crashes == 2


async def test_a_message_that_crashed_its_worker_alone_is_blamed(broker: Broker, harness: Harness) -> None:
    await existing(broker, "mail", "order.placed")
    sent = message("order.placed", headers={"tenant": "acme"})
    await send(broker, sent)
    await harness.die_with_message("mail", "order.placed", isolated=True)
    async with taking(broker, "mail", "order.placed") as taken:
        delivery = await taken.next()
        assert delivery.blamed
        assert (delivery.message.id, dict(delivery.message.headers)) == (sent.id, {"tenant": "acme"})
        assert delivery.attempt == 1


async def test_an_isolated_message_that_is_returned_is_not_blamed(broker: Broker) -> None:
    async with taking(broker, "mail", "order.placed") as taken:
        await send(broker, message("order.placed"))
        delivery = await taken.next()
        while not await delivery.isolate():
            delivery = await taken.next()
        await delivery.settle(RETURNED)
        again = await taken.next()
        assert (again.attempt, again.blamed) == (1, False)
        await again.settle(DONE)
        await taken.nothing_more()


async def _dead(harness: Harness, queue: str, count: int) -> Sequence[StoredDeadLetter]:
    """The dead letters of `queue`, once there are so many."""

    async def arrived() -> Sequence[StoredDeadLetter] | None:
        dead = await harness.dead_letters(queue)
        return dead if len(dead) >= count else None

    dead = await eventually(arrived)
    assert dead is not None
    assert len(dead) == count
    return dead
