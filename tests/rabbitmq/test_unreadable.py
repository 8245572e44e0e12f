"""Unreadable messages of other programs do not affect other messages."""

import asyncio
import struct
from datetime import timedelta

import pytest

from outbox.core.codec import EXCEPTION_TYPE
from outbox.core.events import DependencyLost
from outbox.core.outcome import Cause, Dead, Retry
from outbox.errors import MalformedMessageError
from outbox.ports import CONFIRMED
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq.amqp_decoding import raw_fields, raw_properties
from outbox.transports.rabbitmq.amqp_encoding import Publication
from outbox.transports.rabbitmq.dead_letters import RabbitDeadLetterQueues
from outbox.transports.rabbitmq.header_json import read_content
from outbox.transports.rabbitmq.inbound import Arrival
from tests.rabbitmq.support import EXCHANGE, FAILURE, TIMEOUT, Recorder, consuming, deliver, message
from tests.support import RabbitAdmin, eventually


def _short(value: bytes) -> bytes:
    return bytes((len(value),)) + value


def _headers(*fields: bytes) -> bytes:
    table = b"".join(fields)
    return struct.pack(">HI", 0x2000, len(table)) + table


UNREADABLE = {
    "an id that is not UTF-8": struct.pack(">H", 0x0080) + _short(b"\xe9t\xe9"),
    "a correlation id of sixteen random bytes": struct.pack(">H", 0x0400) + _short(bytes(range(0x80, 0x90))),
    "a timestamp in nanoseconds": struct.pack(">HQ", 0x0040, 1_780_000_000_000_000_000),
    "a header's name that is not UTF-8": _headers(_short(b"\xe9t\xe9") + b"t\x01"),
    "a header with a time in nanoseconds": _headers(_short(b"when") + struct.pack(">cQ", b"T", 1_780_000_000_000_000_000)),
}


@pytest.mark.parametrize("properties", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_unreadable_properties_make_a_dead_letter_and_disconnect_no_consumer(
    broker: RabbitBroker, broker_admin: RabbitAdmin, recorder: Recorder, properties: bytes
) -> None:
    async with consuming(broker, prefetch_count=1) as inbox:
        odd = Publication(EXCHANGE, "order.placed", "", properties, b"odd")
        assert await broker._pipeline.send([odd], timeout=TIMEOUT) == [CONFIRMED]
        await deliver(broker, message(body=b"next"))
        delivery = await inbox.next(3)
        assert delivery.arrival.body == b"odd"
        with pytest.raises(MalformedMessageError):
            _ = delivery.message
        assert delivery.incoming.body == b"odd"
        await delivery.settle(Dead(Cause.UNDECODABLE, FAILURE))
        assert (await inbox.next()).message.body == b"next"
        assert await eventually(lambda: broker.count_dead_letters("mail")) == 1
    assert recorder.of(DependencyLost) == []


@pytest.mark.parametrize("properties", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_the_dead_letter_of_an_unreadable_message_has_its_properties_byte_for_byte(
    broker: RabbitBroker, broker_admin: RabbitAdmin, broker_url: str, properties: bytes
) -> None:
    """On a classic queue without a dead letter exchange, where only a copy can be a dead letter."""
    await broker_admin.declare_queue("mail", quorum=False)
    async with consuming(broker) as inbox:
        odd = Publication(EXCHANGE, "order.placed", "", properties, b"odd")
        assert await broker._pipeline.send([odd], timeout=TIMEOUT) == [CONFIRMED]
        await (await inbox.next()).settle(Dead(Cause.UNDECODABLE, FAILURE))
    dead = await _only_dead_letter(broker_url)
    assert (dead.body, read_content(dead.raw_header).headers[EXCEPTION_TYPE]) == (b"odd", FAILURE.type)
    assert _values(properties).items() <= _values(dead.raw_header[12:]).items()


async def test_a_copy_keeps_header_types_that_python_cannot_represent(broker: RabbitBroker) -> None:
    fields = {
        b"small": b"b\xfb",
        b"short": b"s\x00\x07",
        b"single": struct.pack(">cf", b"f", 0.1),
        b"large": struct.pack(">cq", b"l", 3),
        b"latin": b"S\x00\x00\x00\x01\xe9",
        b"price": struct.pack(">cBi", b"D", 2, 1250),
    }
    properties = _headers(*(_short(name) + value for name, value in fields.items()))
    async with consuming(broker, retry_delays=(timedelta(0),)) as inbox:
        odd = Publication(EXCHANGE, "order.placed", "", properties, b"odd")
        assert await broker._pipeline.send([odd], timeout=TIMEOUT) == [CONFIRMED]
        await (await inbox.next()).settle(Retry(timedelta(0), FAILURE))
        again = await inbox.next()
    assert again.attempt == 2
    assert _values(properties).items() <= _values(again.arrival.raw_header[12:]).items()


async def test_a_copy_that_the_broker_returns_disconnects_no_consumer(
    broker: RabbitBroker, broker_admin: RabbitAdmin, broker_url: str
) -> None:
    async with consuming(broker) as inbox:
        connection = broker._publishing.current
        odd = Publication(EXCHANGE, "order.placed", "", UNREADABLE["an id that is not UTF-8"], b"odd")
        assert await broker._pipeline.send([odd], timeout=TIMEOUT) == [CONFIRMED]
        delivery = await inbox.next()
        await broker_admin.delete_queue("mail.dlq")
        await delivery.settle(Dead(Cause.UNDECODABLE, FAILURE))
        assert broker._publishing.current is connection
    assert (await _only_dead_letter(broker_url)).body == b"odd"


async def _only_dead_letter(url: str) -> Arrival:
    arrived: asyncio.Queue[Arrival] = asyncio.Queue()

    def receive(delivery: object) -> None:
        arrived.put_nowait(delivery._arrival)  # type: ignore[attr-defined]

    queues = RabbitDeadLetterQueues(url)
    async with queues.collect("mail", receive, prefetch_count=10, max_bytes=2**20):
        dead = await asyncio.wait_for(arrived.get(), 30)
    await queues.close()
    return dead


def _values(properties: bytes) -> dict[str, bytes]:
    """Encoded properties and headers by name."""
    raw = raw_properties(bytes(12) + properties)
    return raw | dict(raw_fields(raw.pop("headers", bytes(4))))
