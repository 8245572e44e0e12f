"""Messages that other programs wrote and that cannot be read: each is its own trouble and nobody else's."""

import struct

import pytest

from outbox.errors import MalformedMessageError
from outbox.events import DependencyLost
from outbox.outcome import Cause, Dead
from outbox.ports import CONFIRMED
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq.frames import Publication
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
async def test_properties_that_cannot_be_read_make_a_dead_letter_and_cut_nobody_off(
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
