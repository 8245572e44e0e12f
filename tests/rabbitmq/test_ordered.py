"""An ordered consumer receives messages in order, also when workers stop, crash or lose their connection."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from outbox.core.events import Advice
from outbox.core.outcome import DONE, RETURNED
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq.delivery import RabbitDelivery
from tests.rabbitmq.support import Inbox, MakeBroker, Recorder, bound, consuming, deliver, message
from tests.servers.proxy import Proxy
from tests.support import RabbitAdmin

pytestmark = pytest.mark.rabbitmq

BODIES = [str(number).encode() for number in range(120)]


async def send_all(broker: RabbitBroker) -> None:
    """Twelve keys, alternating."""
    await deliver(broker, *(message(body=body, ordering_key=f"key {int(body) % 12}") for body in BODIES))


async def several(inbox: Inbox, count: int) -> Sequence[RabbitDelivery]:
    return [await inbox.next() for _ in range(count)]


def bodies(deliveries: Sequence[RabbitDelivery]) -> list[bytes]:
    return [delivery.message.body for delivery in deliveries]


async def test_one_worker_at_a_time_consumes(broker: RabbitBroker, make_broker: MakeBroker, broker_url: str) -> None:
    other = make_broker(broker_url)
    async with consuming(broker, ordered=True) as first, consuming(other, ordered=True) as second:
        await deliver(broker, *(message(body=body) for body in BODIES[:10]))
        assert bodies(await several(first, 10)) == BODIES[:10]
        await second.nothing_more()


async def test_the_queue_is_declared_for_a_single_active_consumer(broker: RabbitBroker, broker_admin: RabbitAdmin) -> None:
    async with consuming(broker, ordered=True):
        queues = await broker_admin.queues()
    assert queues["mail"]["arguments"]["x-single-active-consumer"] is True
    assert "x-single-active-consumer" not in queues["mail.dlq"]["arguments"]


async def test_a_queue_without_a_single_active_consumer_is_used_with_advice(
    broker: RabbitBroker, make_broker: MakeBroker, broker_url: str
) -> None:
    await bound(broker)
    recorder = Recorder()
    async with consuming(make_broker(broker_url, observer=recorder), ordered=True) as inbox:
        await deliver(broker, message())
        await (await inbox.next()).settle(DONE)
    [advice] = recorder.of(Advice)
    assert "only while one worker consumes from it" in advice.text
    assert '"single-active-consumer"' not in advice.text


async def test_messages_in_flight_of_a_disconnected_worker_come_to_the_next_one_in_order(
    make_broker: MakeBroker, broker: RabbitBroker, broker_url: str, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(broker_url)
    dying = make_broker(proxy.url)
    async with consuming(dying, ordered=True, prefetch_count=100) as first, consuming(broker, ordered=True) as second:
        await send_all(broker)
        in_hand = await several(first, 100)
        done = [0, 1, 2, 5, 11, 40]
        for number in done:
            await in_hand[number].settle(DONE)
            await in_hand[number].source.flush()
        await second.nothing_more(1)
        proxy.refuse()
        proxy.cut()
        rest = [body for body in BODIES if int(body) not in done]
        for expected in rest:
            delivery = await second.next()
            assert delivery.message.body == expected
            await delivery.settle(DONE)


async def test_a_stopping_worker_finishes_running_handlers_before_the_next_one_starts(
    make_broker: MakeBroker, broker: RabbitBroker, broker_url: str
) -> None:
    """Messages that it gives back, in any order, are redelivered in the order of sending."""
    other = make_broker(broker_url)
    async with consuming(other, ordered=True) as second:
        # The first consumer is active.
        async with consuming(broker, ordered=True, prefetch_count=100) as first:
            await first.nothing_more(0)
        await send_all(broker)
        for body in BODIES[:5]:
            delivery = await second.next()
            assert delivery.message.body == body
            await delivery.settle(DONE)
        running = await several(second, 10)
        assert second.intake is not None
        async with consuming(broker, ordered=True, prefetch_count=200) as third:
            await second.intake.stop()
            for number in (7, 2, 9):
                await running[number].settle(RETURNED)
            for number in (0, 1, 3):
                await running[number].settle(DONE)
            await third.nothing_more()
            await asyncio.create_task(second.intake.finish())  # type: ignore[attr-defined]
            done = set(bodies(running[:2]) + bodies(running[3:4])) | set(BODIES[:5])
            rest = [body for body in BODIES if body not in done]
            assert bodies(await several(third, len(rest))) == rest


async def test_deliveries_and_their_answers_keep_their_order_in_the_stream(broker: RabbitBroker) -> None:
    async with consuming(broker, ordered=True, prefetch_count=7) as inbox:
        await send_all(broker)
        for body in BODIES:
            delivery = await inbox.next()
            assert delivery.message.body == body
            assert delivery.message.ordering_key == f"key {int(body) % 12}"
            await delivery.settle(DONE)


async def test_large_bodies_do_not_overtake_small_ones(broker: RabbitBroker) -> None:
    sizes = [1, 300_000, 0, 150_000, 2]
    async with consuming(broker, ordered=True, retry_delays=(timedelta(0),)) as inbox:
        await deliver(broker, *(message(body=b"x" * size) for size in sizes))
        assert [len(body) for body in bodies(await several(inbox, 5))] == sizes
