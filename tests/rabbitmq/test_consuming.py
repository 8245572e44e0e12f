"""Deliveries on a real broker: how they are settled, and how consumers recover from lost queues, channels and brokers."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import aio_pika
import pytest
from aiormq.exceptions import ChannelNotFoundEntity
from pamqp.commands import Basic
from yarl import URL

from outbox.core import codec
from outbox.core.events import DependencyLost, DependencyRestored
from outbox.core.failures import decode_failures
from outbox.core.outcome import DONE, MESSAGE_LIMIT, RETURNED, TRACEBACK_LIMIT, Cause, Dead, DeliveryOutcome, Failure, Retry
from outbox.errors import BrokerUnavailableError, MalformedMessageError, StaleDeliveryError
from outbox.ports import CONFIRMED
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq.amqp_decoding import Deliver
from outbox.transports.rabbitmq.delivery import Isolation
from outbox.transports.rabbitmq.inbound import Arrival
from outbox.transports.rabbitmq.message_format import publication_of
from outbox.transports.rabbitmq.topology import Topology
from tests.rabbitmq.alarms import consumer_timeout, memory_alarm
from tests.rabbitmq.support import EXCHANGE, FAILURE, TIMEOUT, MakeBroker, Recorder, bound, consuming, deliver, message
from tests.servers.proxy import Proxy, Towards
from tests.servers.rabbitmq import OwnRabbitMQ
from tests.support import RabbitAdmin, eventually

INSTANT, SHORT = timedelta(0), timedelta(milliseconds=200)
DELAYS = (INSTANT, SHORT)
DEAD = Dead(Cause.REJECTED, FAILURE)


# --- retries --------------------------------------------------------------------------------------------------------------


async def test_a_retry_keeps_id_properties_and_headers_without_those_of_the_broker(
    broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    async with consuming(broker, retry_delays=DELAYS) as inbox:
        properties = {
            "message_id": "7",
            "correlation_id": "c",
            "reply_to": "answers",
            "type": "order",
            "app_id": "shop",
            "priority": 3,
            "content_type": "text/plain",
            "content_encoding": "gzip",
            "timestamp": 1_780_000_000,
            "expiration": "60000",
        }
        headers = {"tenant": "acme", "ratio": 0.1, "nested": {"a": [1, "x", True]}, "CC": ["stock"]}
        await broker_admin.declare_queue("stock")
        await broker_admin.publish(EXCHANGE, "order.placed", b"hello", properties=properties, headers=headers)
        for delay in (SHORT, INSTANT):
            await (await inbox.next()).settle(Retry(delay, FAILURE))
        arrival = (await inbox.next()).arrival
        kept = arrival.properties
        assert kept.expiration is None
        for name, value in properties.items():
            if name not in ("expiration", "timestamp"):
                assert getattr(kept, "message_type" if name == "type" else name) == value
        assert kept.timestamp == datetime.fromtimestamp(1_780_000_000, UTC)
        brokers = ("x-death", "x-first-death-", "x-last-death-")
        own = {name: value for name, value in arrival.headers.items() if not name.startswith(brokers)}
        assert [failed.attempt for failed in decode_failures(own.pop("x-outbox-failures"))] == [1, 2]
        assert own == {
            "tenant": "acme",
            "ratio": 0.1,
            "nested": {"a": [1, "x", True]},
            "x-outbox-attempt": 3,
            "x-outbox-routing-key": "order.placed",
            "x-outbox-expires-at": datetime.fromtimestamp(1_780_000_060, UTC).isoformat(),
        }
        # The broker says where the copy waited, the last time only: what it said before was not carried along.
        [death] = arrival.headers["x-death"]
        assert (death["queue"], death["count"]) == ("shop.delay_0s", 1)


async def test_a_retry_of_the_predecessor_has_its_routing_key(broker: RabbitBroker, broker_admin: RabbitAdmin) -> None:
    async with consuming(broker, retry_delays=DELAYS) as inbox:
        await broker_admin.publish("", "mail", b"{}", headers={"x-original-routing-key": "order.placed"})
        delivery = await inbox.next()
        assert (delivery.message.routing_key, delivery.incoming.routing_key) == ("order.placed", "order.placed")
        assert dict(delivery.message.headers) == {}
        await delivery.settle(Retry(INSTANT, FAILURE))
        again = await inbox.next()
        assert (again.message.routing_key, again.attempt) == ("order.placed", 2)


async def test_a_message_without_an_id_keeps_the_one_it_is_given(broker: RabbitBroker, broker_admin: RabbitAdmin) -> None:
    async with consuming(broker, retry_delays=DELAYS) as inbox:
        await broker_admin.publish(EXCHANGE, "order.placed", b"{}")
        delivery = await inbox.next()
        given = delivery.message.id
        await delivery.settle(Retry(INSTANT, FAILURE))
        assert (await inbox.next()).message.id == given


async def test_a_message_stays_in_flight_until_its_retry_can_be_published(
    make_broker: MakeBroker, own_rabbitmq: OwnRabbitMQ
) -> None:
    """A memory alarm stops publishers, but not consumers."""
    broker = make_broker(own_rabbitmq.url)
    async with consuming(broker, retry_delays=DELAYS) as inbox:
        await deliver(broker, message(body=b"1"), message(body=b"2"))
        with memory_alarm(own_rabbitmq.server):
            first, second = await inbox.next(), await inbox.next()
            settling = asyncio.create_task(first.settle(Retry(INSTANT, FAILURE)))
            await second.settle(DONE)
            await eventually(lambda: _blocked(broker))
            with pytest.raises(BrokerUnavailableError, match="short of memory or disk space"):
                await broker.open()
            await inbox.nothing_more()
            assert not settling.done()
        await asyncio.wait_for(settling, 30)
        again = await inbox.next(30)
        assert (again.attempt, again.message.body) == (2, b"1")
        await inbox.nothing_more()


async def test_a_deleted_delay_is_declared_again_by_the_next_retry(broker: RabbitBroker, broker_admin: RabbitAdmin) -> None:
    async with consuming(broker, retry_delays=DELAYS) as inbox:
        for vanish in (broker_admin.delete_queue, broker_admin.delete_exchange):
            await deliver(broker, message())
            delivery = await inbox.next()
            await vanish("shop.delay_200ms")
            await delivery.settle(Retry(SHORT, FAILURE))
            again = await inbox.next()
            assert again.attempt == 2
            await again.settle(DONE)


# --- dead letters ---------------------------------------------------------------------------------------------------------


async def test_a_dead_letter_carries_the_error_within_bounds(broker: RabbitBroker, broker_admin: RabbitAdmin) -> None:
    failure = Failure("shop.PaymentError", "m" * MESSAGE_LIMIT, "t" * TRACEBACK_LIMIT)
    async with consuming(broker, retry_delays=DELAYS) as inbox:
        await deliver(broker, message(headers={"tenant": "acme"}, expiration=timedelta(minutes=1)))
        await (await inbox.next()).settle(Dead(Cause.EXHAUSTED, failure))
        [dead] = await broker_admin.get("mail.dlq")
        headers = dead["properties"]["headers"]
        assert (dead["exchange"], dead["routing_key"]) == ("shop.dlx", "mail")
        assert headers["tenant"] == "acme"
        assert headers[codec.ROUTING_KEY] == "order.placed"
        assert headers[codec.EXCEPTION_TYPE] == "shop.PaymentError"
        assert headers[codec.EXCEPTION_MESSAGE] == failure.message
        assert headers[codec.EXCEPTION_TRACEBACK] == failure.traceback
        assert "expiration" not in dead["properties"]
        assert dead["properties"]["delivery_mode"] == 2


@pytest.mark.parametrize(("room", "kept"), [(5_000, 2_000), (500, None), (-200, None)])
async def test_an_error_takes_no_more_space_than_the_headers_of_the_message_leave(
    broker: RabbitBroker, broker_admin: RabbitAdmin, room: int, kept: int | None
) -> None:
    failure = Failure("E", "m" * 2_000, "t" * TRACEBACK_LIMIT)
    async with consuming(broker) as inbox:
        # Past the relay, which keeps more room free.
        sent = publication_of(message(headers={"h": "x" * (131_072 - 420 - room)}), exchange=EXCHANGE)
        assert await broker._pipeline.send([sent], timeout=TIMEOUT) == [CONFIRMED]
        await (await inbox.next()).settle(Dead(Cause.EXHAUSTED, failure))
        [dead] = await eventually(lambda: broker_admin.get("mail.dlq"))
        assert len(dead["properties"]["headers"]["h"]) == 131_072 - 420 - room
        traceback = dead["properties"]["headers"].get(codec.EXCEPTION_TRACEBACK)
        assert traceback == (None if kept is None else "t" * kept)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-outbox-tracking-ids": "no JSON"},
        {"x-outbox-attempt": "many"},
        {"x-outbox-attempt": 0},
        {"x-outbox-routing-key": 7},
        {"x-outbox-expires-at": "soon"},
    ],
)
async def test_a_malformed_message_is_dead_lettered_complete_and_frees_its_prefetch(
    broker: RabbitBroker, broker_admin: RabbitAdmin, headers: dict[str, Any]
) -> None:
    async with consuming(broker, prefetch_count=1) as inbox:
        await broker_admin.publish(EXCHANGE, "order.placed", b"broken", properties={"message_id": "7"}, headers=headers)
        await deliver(broker, message(body=b"next"))
        delivery = await inbox.next()
        with pytest.raises(MalformedMessageError):
            _ = delivery.message, delivery.attempt
        assert delivery.incoming.body == b"broken"
        await delivery.settle(Dead(Cause.UNDECODABLE, FAILURE))
        assert (await inbox.next()).message.body == b"next"
        [dead] = await broker_admin.get("mail.dlq")
        kept = dead["properties"]["headers"]
        assert dead["properties"]["message_id"] == "7"
        assert {name: kept[name] for name in headers if name != codec.ROUTING_KEY}.items() <= headers.items()


async def test_a_deleted_dead_letter_queue_is_declared_again(broker: RabbitBroker, broker_admin: RabbitAdmin) -> None:
    async with consuming(broker) as inbox:
        await deliver(broker, message())
        delivery = await inbox.next()
        await broker_admin.delete_queue("mail.dlq")
        await delivery.settle(DEAD)
        assert await broker.count_dead_letters("mail") == 1


async def test_a_queue_without_dead_letters_has_none(broker: RabbitBroker, make_broker: MakeBroker) -> None:
    assert await broker.count_dead_letters("unknown") == 0
    with pytest.raises(BrokerUnavailableError):
        await make_broker("amqp://127.0.0.1:1/%2F").count_dead_letters("mail")


# --- acknowledgements -----------------------------------------------------------------------------------------------------


async def test_a_finished_message_behind_an_unfinished_one_is_not_redelivered(broker: RabbitBroker) -> None:
    await bound(broker)
    await deliver(broker, *(message(body=str(number).encode()) for number in range(6)))
    async with consuming(broker) as inbox:
        deliveries = [await inbox.next() for _ in range(6)]
        for number in (1, 2, 4):
            await deliveries[number].settle(DONE)
        # Beyond reach of the courtesies of leaving: the connection is cut as if the process had died.
        await deliveries[0].source.flush()
        deliveries[0].source.channel.connection.create_task(deliveries[0].source.channel.connection.close())
        again = {(await inbox.next()).message.body for _ in range(3)}
        assert again == {b"0", b"3", b"5"}
        await inbox.nothing_more()


async def test_a_handler_cannot_acknowledge_behind_our_back(broker: RabbitBroker) -> None:
    async with consuming(broker) as inbox:
        await deliver(broker, message())
        delivery = await inbox.next()
        assert isinstance(delivery.incoming, aio_pika.IncomingMessage)
        with pytest.raises(TypeError):
            await delivery.incoming.ack()
        await delivery.settle(DONE)


async def test_a_delivery_is_settled_once(broker: RabbitBroker) -> None:
    async with consuming(broker) as inbox:
        await deliver(broker, message())
        delivery = await inbox.next()
        await delivery.settle(DONE)
        with pytest.raises(StaleDeliveryError, match="settled already"):
            await delivery.settle(DONE)


async def test_an_outage_is_over_for_a_consumer_that_was_paused_in_it(
    make_broker: MakeBroker, broker_url: str, recorder: Recorder, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(broker_url)
    through = make_broker(proxy.url, observer=recorder)
    for round_ in (1, 2):
        reported = len(recorder.of(DependencyLost))
        async with consuming(through):
            proxy.refuse()
            proxy.cut()
            await eventually(lambda: len(recorder.of(DependencyLost)) > reported)  # noqa: B023
        proxy.accept()
        async with consuming(through):
            assert len(recorder.of(DependencyRestored)) == round_


# --- crashes --------------------------------------------------------------------------------------------------------------


async def test_a_lost_connection_counts_as_no_crash(
    make_broker: MakeBroker, broker_url: str, broker: RabbitBroker, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(broker_url)
    through = make_broker(proxy.url)
    async with consuming(through) as inbox:
        await deliver(broker, message())
        ran_alone = 0
        while ran_alone < 3:
            delivery = await inbox.next()
            assert (delivery.crashes, delivery.blamed) == (0, False)
            # The original may come again next to its copy: a cut can lose the acknowledgement that the copy overtook.
            with suppress(StaleDeliveryError):
                if await delivery.isolate():
                    ran_alone += 1
                    proxy.cut()
                    await asyncio.wait_for(delivery.source.ended.wait(), 30)
                    # Its run ends, as a worker's does: until then the same message would be postponed each time it arrives.
                    await delivery.settle(DONE)


async def test_a_message_that_runs_alone_keeps_its_deadline(broker: RabbitBroker, broker_admin: RabbitAdmin) -> None:
    """Also one from another publisher, which has only an `expiration`, a property that copies do not have."""
    async with consuming(broker) as inbox:
        properties = {"timestamp": 1_980_000_000, "expiration": "60000"}
        await broker_admin.publish(EXCHANGE, "order.placed", b"{}", properties=properties)
        assert not await (await inbox.next()).isolate()
        assert (await inbox.next()).message.expires_at == datetime.fromtimestamp(1_980_000_060, UTC)


async def test_a_message_that_runs_alone_is_not_blamed_for_being_given_back(broker: RabbitBroker) -> None:
    await bound(broker)
    await deliver(broker, message())
    async with consuming(broker) as inbox:
        assert not await (await inbox.next()).isolate()
        assert await (await inbox.next()).isolate()
    async with consuming(broker) as inbox:
        delivery = await inbox.next()
        assert delivery.arrival.mark is not None
        assert delivery.arrival.headers.get("x-delivery-count", 0) == 0
        await delivery.settle(DONE)
        await inbox.nothing_more()


async def test_a_message_waits_for_others_that_can_still_arrive_before_it_runs_alone() -> None:
    """The broker may be slow to fill the room of the messages that were postponed."""

    class Refilled:
        room = True
        asked = 0

        async def postpone_marked(self, running: Sequence[Arrival]) -> bool:
            return False

        async def may_receive(self) -> bool:
            self.asked += 1
            return self.room

    member, isolation = Refilled(), Isolation()
    isolation.join(member)
    arrival = Arrival(Deliver("", 1, False, EXCHANGE, "mail"), Basic.Properties(), b"{}")
    begun = asyncio.create_task(isolation.begin(arrival))
    await eventually(lambda: member.asked > 2)
    assert not begun.done()
    member.room = False
    await begun
    isolation.end(arrival)


async def test_a_message_whose_postponement_was_interrupted_runs_alone_and_is_settled(broker: RabbitBroker) -> None:
    """The run that it was postponed for has ended meanwhile. Without an outcome, it would stay in flight."""
    await bound(broker)
    await deliver(broker, message())
    async with consuming(broker) as inbox:
        assert not await (await inbox.next()).isolate()
        delivery = await inbox.next()
        postponing = asyncio.create_task(delivery._settlement.postpone_marked(delivery))  # type: ignore[attr-defined]
        await asyncio.sleep(0)  # it has begun
        postponing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await postponing
        assert await delivery.isolate()
        await delivery.settle(DONE)


# --- staying alive --------------------------------------------------------------------------------------------------------


async def test_a_deleted_queue_is_declared_again_and_other_consumers_go_on(
    broker: RabbitBroker, broker_admin: RabbitAdmin, recorder: Recorder
) -> None:
    async with consuming(broker, "mail") as mail, consuming(broker, "stock") as stock:
        await deliver(broker, message(body=b"1"))
        in_hand, neighbour = await mail.next(), await stock.next()
        await broker_admin.delete_queue("mail")
        await eventually(lambda: recorder.of(DependencyRestored))
        with pytest.raises(StaleDeliveryError):
            await in_hand.settle(DONE)
        await neighbour.settle(DONE)
        await deliver(broker, message(body=b"2"))
        assert (await mail.next()).message.body == b"2"
        assert (await stock.next()).message.body == b"2"
    [lost] = recorder.of(DependencyLost)
    assert "'mail'" in lost.reason
    assert "its queue was deleted" in lost.reason


async def test_a_subscription_keeps_retrying_when_something_is_deleted_meanwhile(
    broker: RabbitBroker, broker_admin: RabbitAdmin, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two declarations; or the node of a queue is down, which the broker reports as a missing queue."""
    async with consuming(broker) as inbox:
        ensure, refusals = Topology.ensure_consumer, [ChannelNotFoundEntity("no exchange 'shop' in vhost '/'")]

        async def ensured(*args: Any) -> None:
            if refusals:
                raise refusals.pop()
            await ensure(*args)

        monkeypatch.setattr(Topology, "ensure_consumer", ensured)
        await broker_admin.delete_queue("mail")
        await eventually(lambda: recorder.of(DependencyRestored))
        await deliver(broker, message())
        await (await inbox.next()).settle(DONE)
    assert refusals == []


async def test_an_error_on_one_channel_stops_no_other_and_is_repaired(broker: RabbitBroker) -> None:
    async with consuming(broker, "mail") as mail, consuming(broker, "stock") as stock:
        await deliver(broker, message())
        in_hand, neighbour = await mail.next(), await stock.next()
        in_hand.source.ack(4_711)  # a tag that the broker never gave: it closes the channel
        await asyncio.wait_for(in_hand.source.ended.wait(), 30)
        await neighbour.settle(DONE)
        again = await mail.next()
        assert again.message.id == in_hand.message.id
        await again.settle(DONE)
        await mail.nothing_more()
        assert stock.received == 1


async def test_consumers_recover_after_the_broker_was_killed_and_report_each_reason_once(
    make_broker: MakeBroker, own_rabbitmq: OwnRabbitMQ
) -> None:
    recorder = Recorder()
    broker = make_broker(own_rabbitmq.url, observer=recorder, connect_timeout=timedelta(seconds=10))
    async with consuming(broker, "mail") as mail, consuming(broker, "stock") as stock:
        await deliver(broker, message())
        first = await mail.next()
        own_rabbitmq.kill()
        await eventually(lambda: recorder.of(DependencyLost))
        with pytest.raises(StaleDeliveryError):
            await first.settle(DONE)
        own_rabbitmq.start()
        assert (await mail.next(90)).message.id == first.message.id
        await stock.next(90)
        await eventually(lambda: recorder.of(DependencyRestored))
    # Each names one of the two queues.
    reasons = [event.reason.partition(": ")[2] for event in recorder.of(DependencyLost)]
    assert len(reasons) == len(set(reasons))
    assert len(recorder.of(DependencyRestored)) == 1


async def test_what_keeps_a_consumer_from_coming_back_is_reported(
    make_broker: MakeBroker, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    """A password is changed: the worker's log must not end with the connection that was lost for another reason."""
    user = f"{broker_admin.vhost}-ada"
    url = await broker_admin.create_user(user, "first")
    await broker_admin.permit(user)
    recorder = Recorder()
    try:
        async with consuming(make_broker(url, observer=recorder)) as inbox:
            await broker_admin.create_user(user, "second")
            await eventually(lambda: cut_off(broker_admin, user, recorder))
            await eventually(lambda: "the broker refused the user or the password" in recorder.of(DependencyLost)[-1].reason)
            assert recorder.of(DependencyRestored) == []
            await broker_admin.create_user(user, "first")
            await deliver(broker, message())
            await (await inbox.next(60)).settle(DONE)
            await eventually(lambda: recorder.of(DependencyRestored))
    finally:
        await broker_admin.delete_user(user)


async def cut_off(admin: RabbitAdmin, user: str, recorder: Recorder) -> bool:
    """Closes the user's connections, which the broker lists late, and returns whether the loss was reported."""
    await admin.close_connections(user=user)
    return bool(recorder.of(DependencyLost))


async def test_a_message_in_flight_for_too_long_is_redelivered_and_other_consumers_go_on(
    make_broker: MakeBroker, own_rabbitmq: OwnRabbitMQ
) -> None:
    recorder = Recorder()
    broker = make_broker(own_rabbitmq.url, observer=recorder)
    with consumer_timeout(own_rabbitmq.server, 3):
        async with consuming(broker, "mail", "mail.*") as mail, consuming(broker, "stock", "stock.*") as stock:
            await deliver(broker, message("mail.sent", body=b"held"), message("mail.sent", body=b"other"))
            held, other = await mail.next(), await mail.next()
            await asyncio.wait_for(held.source.ended.wait(), 60)
            for stale in (held, other):
                with pytest.raises(StaleDeliveryError):
                    await stale.settle(DONE)
            for body in (b"held", b"other"):
                again = await mail.next(30)
                # Its worker lived: nothing is held against it.
                assert (again.message.body, again.attempt, again.crashes) == (body, 1, 0)
                await again.settle(DONE)
            await deliver(broker, message("stock.low"))
            await (await stock.next()).settle(DONE)
            await mail.nothing_more()
    [lost] = recorder.of(DependencyLost)
    assert "'mail'" in lost.reason
    assert "consumer_timeout in rabbitmq.conf" in lost.reason, "it says what to do"


async def test_subscribing_while_the_broker_is_away_says_so(make_broker: MakeBroker) -> None:
    with pytest.raises(BrokerUnavailableError):
        async with consuming(make_broker("amqp://127.0.0.1:1/%2F")):
            pass


@pytest.mark.parametrize(
    ("part", "reason"), [("path", "vhost nowhere not found"), ("password", "refused the user or the password")]
)
async def test_a_connection_that_the_broker_refuses_says_why(
    make_broker: MakeBroker, broker_url: str, part: str, reason: str
) -> None:
    url = URL(broker_url)
    wrong = url.with_path("/nowhere") if part == "path" else url.with_password("sesame")
    with pytest.raises(BrokerUnavailableError, match=reason) as caught:
        await make_broker(str(wrong)).open()
    assert "sesame" not in str(caught.value)


async def test_stopping_and_leaving_are_bounded_when_the_broker_does_not_answer(
    make_broker: MakeBroker, broker_url: str, broker: RabbitBroker, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(broker_url)
    through = make_broker(proxy.url)
    async with asyncio.timeout(30):
        async with consuming(through) as inbox:
            await deliver(broker, message())
            delivery = await inbox.next()
            proxy.pause(*Towards)
            assert inbox.intake is not None
            await inbox.intake.stop()
            await delivery.settle(RETURNED)
        await through.close()


async def test_stop_is_idempotent_and_messages_in_flight_can_be_settled_in_any_way(
    broker: RabbitBroker,
) -> None:
    async with consuming(broker, retry_delays=DELAYS) as inbox:
        await deliver(broker, *(message(body=str(number).encode()) for number in range(4)))
        deliveries = [await inbox.next() for _ in range(4)]
        assert inbox.intake is not None
        await inbox.intake.stop()
        await inbox.intake.stop()
        outcomes: list[DeliveryOutcome] = [DONE, RETURNED, Retry(INSTANT, FAILURE), DEAD]
        for delivery, outcome in zip(deliveries, outcomes, strict=True):
            await delivery.settle(outcome)
        await inbox.nothing_more()
    async with consuming(broker) as inbox:
        assert {(await inbox.next()).message.body for _ in range(2)} == {b"1", b"2"}
        await inbox.nothing_more()
    assert await broker.count_dead_letters("mail") == 1


async def _blocked(broker: RabbitBroker) -> bool:
    try:
        await broker.open()
    except BrokerUnavailableError:
        return True
    return False
