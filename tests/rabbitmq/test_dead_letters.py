"""Dead letters are read from their queue unchanged, for an archive."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import aio_pika
import pytest
from pamqp.commands import Basic

from outbox.core.outcome import Cause, Dead, Failure, Retry
from outbox.errors import BrokerUnavailableError, MalformedMessageError, StaleDeliveryError, TopologyError
from outbox.ports import DeadMessage
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq import settlement as settling
from outbox.transports.rabbitmq.amqp_encoding import Publication, encode_properties, encode_table
from outbox.transports.rabbitmq.dead_letters import RabbitDeadDelivery, RabbitDeadLetterQueues
from outbox.transports.rabbitmq.header_json import read_content
from outbox.transports.rabbitmq.message_format import publication_of
from tests.rabbitmq.support import EXCHANGE, FAILURE, TIMEOUT, bound, consuming, deliver, message, send
from tests.support import RabbitAdmin, eventually

pytestmark = pytest.mark.rabbitmq

MakeQueues = Callable[..., RabbitDeadLetterQueues]


class Collected:
    """Collects dead deliveries, to be read one by one."""

    def __init__(self) -> None:
        self.received = 0
        self.ended = asyncio.Event()
        self._waiting: asyncio.Queue[RabbitDeadDelivery] = asyncio.Queue()

    def receive(self, delivery: object) -> None:
        assert isinstance(delivery, RabbitDeadDelivery)
        self.received += 1
        self._waiting.put_nowait(delivery)

    async def next(self, seconds: float = 30) -> RabbitDeadDelivery:
        async with asyncio.timeout(seconds):
            return await self._waiting.get()

    async def dead(self) -> DeadMessage:
        """Returns the next one, and forgets it."""
        delivery = await self.next()
        delivery.ack()
        return delivery.dead


@pytest.fixture
async def make_queues(broker_url: str) -> AsyncIterator[MakeQueues]:
    async with AsyncExitStack() as stack:

        def make(url: str | None = broker_url, **options: object) -> RabbitDeadLetterQueues:
            queues = RabbitDeadLetterQueues(url, **options)  # type: ignore[arg-type]
            stack.push_async_callback(queues.close)
            return queues

        yield make


@asynccontextmanager
async def collecting(
    queues: RabbitDeadLetterQueues, queue: str = "mail", prefetch_count: int = 10, max_bytes: int = 1_000_000
) -> AsyncIterator[Collected]:
    collected = Collected()
    async with queues.collect(queue, collected.receive, prefetch_count=prefetch_count, max_bytes=max_bytes) as ended:
        collected.ended = ended
        yield collected


async def test_a_dead_letter_has_everything_about_its_message_and_failure(
    broker: RabbitBroker, make_queues: MakeQueues
) -> None:
    sent = message(
        body=b'{"id": 7}',
        headers={"tenant": "acme", "nested": {"a": [1, 2]}},
        tracking_ids=("root", "7"),
        id="7",
        ordering_key="order 7",
        hlc=1_780_000_000_000_001,
        requeue_count=2,
    )
    async with consuming(broker, retry_delays=(timedelta(0),)) as inbox:
        await deliver(broker, sent)
        await (await inbox.next()).settle(Retry(timedelta(0), FAILURE))
        await (await inbox.next()).settle(Dead(Cause.EXHAUSTED, FAILURE))
    async with collecting(make_queues()) as collected:
        dead = await collected.dead()
    assert (dead.queue, dead.exchange, dead.routing_key) == ("mail", EXCHANGE, "order.placed")
    assert (dead.message_id, dead.tracking_ids, dead.body) == ("7", ("root", "7"), b'{"id": 7}')
    assert (dead.cause, dead.by_broker, dead.attempt, dead.requeue_count) == ("exhausted", False, 2, 2)
    assert (dead.ordering_key, dead.hlc, dead.content_type) == ("order 7", 1_780_000_000_000_001, "application/json")
    assert (dict(dead.headers), dict(dead.header_types)) == ({"tenant": "acme", "nested": {"a": [1, 2]}}, {})
    assert (dead.failure.type, dead.failure.message) == ("shop.PaymentError", "the card was declined")
    assert [failed.attempt for failed in dead.failures] == [1, 2]
    assert dead.failed_at == dead.failures[-1].at
    assert dead.created_at is not None
    assert abs(dead.created_at - sent.created_at) < timedelta(seconds=2)


async def test_a_message_that_the_broker_dead_lettered_has_the_brokers_reason(
    broker: RabbitBroker, broker_admin: RabbitAdmin, make_queues: MakeQueues
) -> None:
    await bound(broker)
    await broker_admin.publish(EXCHANGE, "order.placed", b"late", properties={"expiration": "1", "message_id": "9"})
    async with collecting(make_queues()) as collected:
        dead = await collected.dead()
    assert (dead.message_id, dead.exchange, dead.routing_key, dead.body) == ("9", EXCHANGE, "order.placed", b"late")
    assert (dead.cause, dead.by_broker, dead.failure.type) == ("expired", True, "Expired")
    assert [failed.failure for failed in dead.failures] == [dead.failure]
    assert dead.failed_at is not None
    assert abs(dead.failed_at - datetime.now(UTC)) < timedelta(seconds=30)
    assert dead.properties["headers"]["x-death"][0]["queue"] == "mail"


async def test_a_message_above_the_delivery_limit_of_a_policy_is_a_dead_letter_that_says_so(
    broker: RabbitBroker, broker_admin: RabbitAdmin, broker_url: str, make_queues: MakeQueues
) -> None:
    """Declared queues have no delivery limit on any version, but a policy can set one."""
    await bound(broker)
    await broker_admin.set_policy("house", "^mail$", {"delivery-limit": 2}, apply_to="queues")
    await eventually(lambda: _limited(broker_admin, "mail"))
    await deliver(broker, message(id="7"))
    await _lost_until_it_is_gone(broker_url, broker_admin, "mail")
    async with collecting(make_queues()) as collected:
        dead = await collected.dead()
    assert (dead.message_id, dead.exchange, dead.by_broker) == ("7", EXCHANGE, True)
    assert (dead.cause, dead.failure.type) == ("delivery_limit", "DeliveryLimit")


async def test_no_declared_argument_protects_a_dead_letter_queue_from_a_policy(
    broker: RabbitBroker, broker_admin: RabbitAdmin, broker_url: str
) -> None:
    """Therefore the doctor and the topology report such policies. If this fails on a new version, they no longer need to."""
    await bound(broker)
    await broker_admin.set_policy("house", ".*", {"delivery-limit": 2}, apply_to="queues")
    await eventually(lambda: _limited(broker_admin, "mail.dlq"))
    await deliver(broker, message(target_queue="mail.dlq"))
    await _lost_until_it_is_gone(broker_url, broker_admin, "mail.dlq")
    assert await broker.count_dead_letters("mail") == 0


async def _limited(broker_admin: RabbitAdmin, queue: str) -> bool:
    seen = await broker_admin.queue(queue) or {}
    return bool(seen.get("effective_policy_definition"))


async def _lost_until_it_is_gone(broker_url: str, broker_admin: RabbitAdmin, queue: str) -> None:
    """Receives the message and loses the connection, repeatedly."""

    async def in_queue() -> int | None:
        """Ready or in flight."""
        seen = await broker_admin.queue(queue) or {}
        return seen.get("messages")

    async def gone() -> bool:
        async with await aio_pika.connect(broker_url) as connection:
            channel = await connection.channel()
            await (await channel.get_queue(queue)).get(fail=False)
        return await in_queue() == 0

    await eventually(in_queue)
    await eventually(gone, timeout=60)


async def test_headers_keep_their_types_next_to_their_json_values(broker: RabbitBroker, make_queues: MakeQueues) -> None:
    await bound(broker)
    when = datetime(2026, 5, 1, 12, tzinfo=UTC)
    headers = {"when": when, "raw": bytearray(b"\x00\xff"), "sum": Decimal("12.50"), "deep/er": {"list": [1, when]}, "n": 3}
    await deliver(broker, message(headers=headers, target_queue="mail.dlq"))
    async with collecting(make_queues()) as collected:
        dead = await collected.dead()
    assert dict(dead.headers) == {
        "when": "2026-05-01T12:00:00+00:00",
        "raw": "AP8=",
        "sum": "1250E-2",
        "deep/er": {"list": [1, "2026-05-01T12:00:00+00:00"]},
        "n": 3,
    }
    assert dead.header_types == {
        "/when": "timestamp",
        "/raw": "bytes",
        "/sum": "decimal",
        "/deep~1er/list/1": "timestamp",
    }
    assert (dead.cause, dead.by_broker, dead.failed_at, dead.failures) == ("unknown", True, None, [])


async def test_invalid_properties_are_decoded_as_far_as_possible(
    broker: RabbitBroker, broker_url: str, make_queues: MakeQueues
) -> None:
    await bound(broker)
    connection = await aio_pika.connect(broker_url)
    async with connection, connection.channel() as channel:
        underlay = await channel.get_underlay_channel()
        raw = Basic.Properties(message_id="7", headers={"x-outbox-tracking-ids": "no JSON", "x-outbox-attempt": "two", "a": 1})
        await underlay.basic_publish(b"odd", exchange="", routing_key="mail.dlq", properties=raw)
    async with collecting(make_queues()) as collected:
        dead = await collected.dead()
        assert (dead.message_id, dead.body, dead.tracking_ids, dead.attempt) == ("7", b"odd", (), 1)
        assert dict(dead.headers) == {"a": 1}
        assert dead.properties["headers"]["x-outbox-attempt"] == "two"


def test_properties_with_invalid_text_or_times_are_read_as_far_as_possible() -> None:
    table = encode_table({"tenant": "acme", "name": b"\xff\xfe"})
    flags = (0x8000 | 0x2000 | 0x0080 | 0x0040).to_bytes(2)
    payload = bytes(12) + flags + b"\x04text" + table + b"\x02\xff7" + (2**63).to_bytes(8)
    content = read_content(payload)
    assert content.properties == {"content_type": "text", "message_id": "\ufffd7", "timestamp": 2**63}
    assert content.headers == {"tenant": "acme", "name": "//4="}
    assert content.types == {"/name": "octets"}
    assert content.garbled == {"message_id", "timestamp"}


def test_a_table_with_an_invalid_end_keeps_the_fields_before_it() -> None:
    table = encode_table({"tenant": "acme"})[4:] + b"\x03bad?"
    payload = bytes(12) + (0x2000).to_bytes(2) + len(table).to_bytes(4) + table
    assert read_content(payload).headers == {"tenant": "acme"}
    deep = b"\x01aF".join([b""] * 2_000)
    assert read_content(bytes(12) + (0x2000).to_bytes(2) + deep).headers == {}
    assert read_content(b"").properties == {}


@pytest.mark.parametrize("value", ["a", 1, -5, 2**40, 0.5, True, None, {"b": [1, "x"]}, [None, {}]])
def test_json_says_everything_of_the_types_that_outbox_itself_sends(value: object) -> None:
    content = read_content(bytes(12) + encode_properties(Basic.Properties(headers={"a": value})))  # type: ignore[dict-item]
    assert (content.headers, content.types) == ({"a": value}, {})


async def test_unacknowledged_dead_letters_go_back_in_order_and_acknowledged_ones_do_not(
    broker: RabbitBroker, broker_admin: RabbitAdmin, make_queues: MakeQueues
) -> None:
    await bound(broker)
    bodies = [str(number).encode() for number in range(100)]
    await deliver(broker, *(message(body=body, target_queue="mail.dlq") for body in bodies))
    queues = make_queues(first_prefetch=100)
    for _ in range(2):
        async with collecting(queues, prefetch_count=100) as collected:
            assert [(await collected.next()).dead.body for _ in bodies] == bodies
    async with collecting(queues, prefetch_count=100) as collected:
        waiting = [await collected.next() for _ in bodies]
        for delivery in waiting[::5]:
            delivery.ack()
    with pytest.raises(StaleDeliveryError):
        waiting[1].ack()
    async with collecting(queues, prefetch_count=100) as collected:
        rest = [body for body in bodies if int(body) % 5]
        assert [(await collected.next()).dead.body for _ in rest] == rest
        assert collected.received == len(rest)


async def test_never_more_dead_letters_are_in_flight_than_the_prefetch_count(
    broker: RabbitBroker, broker_admin: RabbitAdmin, make_queues: MakeQueues
) -> None:
    await bound(broker)
    for _ in range(5):
        await broker_admin.publish("", "mail.dlq", b"x")
    async with collecting(make_queues(first_prefetch=2), prefetch_count=2) as collected:
        first = await collected.next()
        await collected.next()
        with pytest.raises(TimeoutError):
            await collected.next(0.3)
        first.ack()
        await collected.next()


async def test_fewer_large_and_more_small_dead_letters_are_in_flight(
    broker: RabbitBroker, broker_admin: RabbitAdmin, make_queues: MakeQueues
) -> None:
    await bound(broker)
    bodies = [b"s", *(b"%d" % number * 100_000 for number in range(8)), *(b"t%d" % number for number in range(9))]
    await deliver(broker, *(message(body=body, target_queue="mail.dlq") for body in bodies))
    queues = make_queues()
    taken: list[bytes] = []
    most_bytes: list[int] = []
    most_messages: list[int] = []
    while len(taken) < len(bodies):
        async with collecting(queues, prefetch_count=10, max_bytes=250_000) as collected:
            in_flight: list[RabbitDeadDelivery] = []
            with suppress(TimeoutError):
                while not collected.ended.is_set() or collected.received > len(in_flight):
                    in_flight.append(await collected.next(1))
            most_bytes.append(sum(len(delivery.dead.body) for delivery in in_flight))
            most_messages.append(len(in_flight))
            for delivery in in_flight:
                delivery.ack()
                taken.append(delivery.dead.body)
    assert sorted(taken) == sorted(bodies)
    assert max(most_bytes) <= 250_000
    sizes = [count for count in most_messages if count]  # a slow machine may get nothing in a second
    assert sizes[0] == 1, "its size was not known yet"
    assert max(most_messages) > 3
    assert await broker_admin.depth("mail.dlq") == 0


async def test_a_queue_without_dead_letters_is_named_and_nothing_is_declared(
    broker_admin: RabbitAdmin, make_queues: MakeQueues
) -> None:
    with pytest.raises(TopologyError, match=r"mail\.dlq"):
        async with collecting(make_queues()):
            pass
    assert await broker_admin.queues() == {}


async def test_a_broker_that_is_away_is_said_to_be(make_queues: MakeQueues) -> None:
    with pytest.raises(BrokerUnavailableError):
        async with collecting(make_queues("amqp://127.0.0.1:1/%2F")):
            pass


async def test_a_lost_connection_ends_the_collection_and_the_next_one_finds_everything(
    broker: RabbitBroker, broker_admin: RabbitAdmin, make_queues: MakeQueues
) -> None:
    await bound(broker)
    await broker_admin.publish("", "mail.dlq", b"x")
    queues = make_queues()
    async with collecting(queues) as collected:
        delivery = await collected.next()

        async def is_cut() -> bool:
            await broker_admin.close_connections()  # of which the list may not have both yet
            return collected.ended.is_set()

        await eventually(is_cut)
        with pytest.raises(StaleDeliveryError):
            delivery.ack()
    async with collecting(queues) as collected:
        assert (await collected.dead()).body == b"x"


async def test_a_given_connection_works_as_well(
    broker: RabbitBroker, broker_admin: RabbitAdmin, broker_url: str, make_queues: MakeQueues
) -> None:
    await bound(broker)
    await broker_admin.publish("", "mail.dlq", b"x", headers={"a": 1, "b": [0.5]}, properties={"message_id": "7"})
    async with await aio_pika.connect(broker_url) as connection:
        async with collecting(make_queues(None, connection=connection)) as collected:
            dead = await collected.dead()
        assert (dead.message_id, dead.body, dict(dead.headers)) == ("7", b"x", {"a": 1, "b": [0.5]})
        assert not connection.is_closed


async def test_failures_take_no_more_space_than_a_frame_has(broker: RabbitBroker, make_queues: MakeQueues) -> None:
    """A message with almost no space left for headers can still be retried and dead-lettered."""
    failure = Failure("shop.PaymentError", "ż" * 2_000, "t" * 8_000, "host:1")
    for size, attempts, message_kept, traceback_kept in (
        (100_000, [1, 2, 3], 2_000, 8_000),
        (122_000, [3], 2_000, 2_000),
        (124_000, [3], 2_000, 2_000),
        (129_000, [3], 500, 0),
    ):
        async with consuming(broker, retry_delays=(timedelta(0),)) as inbox:
            await deliver(broker, message(headers={"large": "x" * size}))
            for _ in range(2):
                await (await inbox.next()).settle(Retry(timedelta(0), failure))
            await (await inbox.next()).settle(Dead(Cause.EXHAUSTED, failure))
        async with collecting(make_queues()) as collected:
            dead = await collected.dead()
        assert [failed.attempt for failed in dead.failures] == attempts
        assert (dead.cause, dead.failure.type, dead.attempt) == ("exhausted", "shop.PaymentError", 3)
        assert (len(dead.failure.message), len(dead.failure.traceback)) == (message_kept, traceback_kept)


@pytest.mark.parametrize(
    ("room", "attempt", "cause", "type_", "message_kept"),
    [
        (1_024, 3, "exhausted", "shop.PaymentError", 600),
        (300, 3, "exhausted", "shop.PaymentError", 100),
        (150, 3, "exhausted", "shop.PaymentError", 0),
        (20, 1, "unknown", "Unknown", None),
    ],
)
async def test_a_foreign_message_with_large_headers_keeps_as_much_of_its_failure_as_fits(
    broker: RabbitBroker, make_queues: MakeQueues, room: int, attempt: int, cause: str, type_: str, message_kept: int | None
) -> None:
    failure = Failure("shop.PaymentError", "f" * 600, "t" * 8_000, "host:1")
    async with consuming(broker, retry_delays=(timedelta(0),)) as inbox:
        await broker.open()
        await broker._pipeline.send([_with_room(broker, room)], timeout=TIMEOUT)
        await (await inbox.next()).settle(Retry(timedelta(0), failure))
        for _ in range(attempt - 2):
            await (await inbox.next()).settle(Retry(timedelta(0), failure))
        if attempt > 1:
            await (await inbox.next()).settle(Dead(Cause.EXHAUSTED, failure))
    async with collecting(make_queues()) as collected:
        dead = await collected.dead()
    assert (dead.attempt, dead.cause, dead.failure.type, dead.message_id) == (attempt, cause, type_, "7")
    assert message_kept is None or dead.failure.message == "f" * message_kept
    assert dead.body == b"large"


async def test_a_message_without_space_for_another_attempt_is_dead_lettered_with_its_error(
    broker: RabbitBroker, make_queues: MakeQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "retry_headers", lambda _: iter([{"x-outbox-failures": "x" * 200_000}]))
    async with consuming(broker, retry_delays=(timedelta(0),)) as inbox:
        await deliver(broker, message())
        await (await inbox.next()).settle(Retry(timedelta(0), FAILURE))
    async with collecting(make_queues()) as collected:
        dead = await collected.dead()
    assert (dead.cause, dead.failure.type, dead.failure.traceback) == ("refused", FAILURE.type, FAILURE.traceback)
    assert dead.failure.message.startswith("the card was declined (and it could not be retried: ")


async def test_a_relay_leaves_space_for_headers_that_retries_and_dead_letters_add(broker: RabbitBroker) -> None:
    await bound(broker)
    plain = message(headers={"large": ""})
    size = publication_of(plain, exchange=EXCHANGE).header_size
    most = broker._pipeline.largest_header - size - 1_024
    fits, too_large = (replace(plain, headers={"large": "x" * length}) for length in (most, most + 1))
    confirmed, refused = await send(broker, fits, too_large)
    assert (type(confirmed).__name__, type(refused).__name__) == ("Confirmed", "Refused")
    assert "1024 are kept free" in str(refused)


def _with_room(broker: RabbitBroker, room: int) -> Publication:
    """A message with space for another `room` bytes of headers."""

    def publication(length: int) -> Publication:
        properties = Basic.Properties(message_id="7", delivery_mode=2, headers={"large": "x" * length})
        return Publication(EXCHANGE, "order.placed", "7", encode_properties(properties), b"large")

    return publication(broker._pipeline.largest_header - room - publication(0).header_size)


async def test_invalid_failures_of_other_programs_are_ignored(
    broker: RabbitBroker, broker_admin: RabbitAdmin, make_queues: MakeQueues
) -> None:
    odd = ["no JSON", "7", '[{"at": 1}]', "[" * 5_000, '[{"at": "2026-05-01", "attempt": 1e999, "type": "", "message": ""}]']
    async with consuming(broker, retry_delays=(timedelta(0),)) as inbox:
        for text in odd:
            await broker_admin.publish("", "mail", b"x", headers={"x-outbox-failures": text})
            await (await inbox.next()).settle(Retry(timedelta(0), FAILURE))
            await (await inbox.next()).settle(Dead(Cause.REJECTED, FAILURE))
    async with collecting(make_queues()) as collected:
        for _ in odd:
            assert [failed.attempt for failed in (await collected.dead()).failures] == [1, 2]


@pytest.mark.parametrize(
    "headers",
    [{"x-outbox-hlc": "soon"}, {"x-outbox-hlc": -1}, {"x-outbox-requeue-count": 0.5}, {"x-outbox-requeue-count": 2**40}],
)
async def test_stamps_and_counts_that_cannot_be_read_make_a_dead_letter(
    broker: RabbitBroker, broker_admin: RabbitAdmin, headers: dict[str, object]
) -> None:
    async with consuming(broker) as inbox:
        await broker_admin.publish("", "mail", b"x", headers=headers)
        with pytest.raises(MalformedMessageError, match=next(iter(headers))):
            _ = (await inbox.next()).message
