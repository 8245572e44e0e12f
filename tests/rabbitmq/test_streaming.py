"""Intercepted deliveries are decoded as by pamqp, and all other frames are passed on to aiormq."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.frame import marshal
from pamqp.header import ContentHeader
from pamqp.heartbeat import Heartbeat

from outbox.core.events import DependencyLost
from outbox.core.outcome import DONE
from outbox.transports.rabbitmq import frame_tap as streaming
from outbox.transports.rabbitmq.amqp_decoding import Deliver
from outbox.transports.rabbitmq.frame_tap import FrameStream
from outbox.transports.rabbitmq.inbound import Arrival, Assembly
from tests.rabbitmq.support import MakeBroker, Recorder, consuming, deliver, message

PROPERTIES = Basic.Properties(
    content_type="application/json",
    content_encoding="gzip",
    headers={"text": "ä", "nested": {"list": [1, -1, 2**40, True, None, 0.5]}, "price": Decimal("-1.50")},
    delivery_mode=2,
    priority=3,
    correlation_id="c",
    reply_to="answers",
    expiration="60000",
    message_id="7",
    timestamp=datetime(2026, 7, 1, tzinfo=UTC),
    message_type="order",
    user_id="shop",
    app_id="till",
)


def _delivery(channel: int, *pieces: bytes, properties: Basic.Properties = PROPERTIES) -> list[bytes]:
    method = Basic.Deliver("ctag", 2**33, True, "shop", "order.placed")
    header = ContentHeader(body_size=sum(map(len, pieces)), properties=properties)
    frames: list[Any] = [method, header, *map(ContentBody, pieces)]
    return [marshal(frame, channel) for frame in frames]


async def _read(frames: list[bytes], *, chunk: int) -> tuple[list[Arrival], list[bytes]]:
    """Returns the deliveries of channel 1 and the frames that are passed on, if the socket returns `chunk` bytes at a time."""
    reader, arrivals, left = asyncio.StreamReader(), list[Arrival](), list[bytes]()
    stream = FrameStream(reader)
    stream.divert(1, Assembly(arrivals.append).take)
    received = b"".join(frames)

    async def feed() -> None:
        for start in range(0, len(received), chunk):
            reader.feed_data(received[start : start + chunk])
            await asyncio.sleep(0)
        reader.feed_eof()

    feeding = asyncio.create_task(feed())
    with suppress(EndOfStream):
        while True:
            head = await _head(stream)
            left.append(head + await stream.readexactly(int.from_bytes(head[3:]) + 1))
    await feeding
    return arrivals, left


class EndOfStream(Exception):
    """Between two frames."""


async def _head(stream: FrameStream) -> bytes:
    try:
        return await stream.readexactly(7)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        raise EndOfStream from None


@pytest.mark.parametrize("chunk", [1, 7, 100, 1_000_000])
async def test_deliveries_are_intercepted_and_other_frames_are_passed_on(chunk: int) -> None:
    others = [
        marshal(Heartbeat(), 0),
        marshal(Basic.CancelOk("ctag"), 1),
        *_delivery(2, b"for another consumer"),
        marshal(Basic.Cancel("ctag"), 1),
    ]
    frames = [others[0], *_delivery(1, b"one"), *others[1:3], *_delivery(1), *others[3:], *_delivery(1, b"tw", b"o")]
    arrivals, left = await _read(frames, chunk=chunk)
    assert left == others
    assert [arrival.body for arrival in arrivals] == [b"one", b"", b"two"]
    for arrival in arrivals:
        assert arrival.method == Deliver("ctag", 2**33, True, "shop", "order.placed")
        assert arrival.properties == PROPERTIES
        assert arrival.defect == ""


async def test_a_message_without_properties_is_read() -> None:
    [arrival], _ = await _read(_delivery(1, b"bare", properties=Basic.Properties()), chunk=1_000)
    assert (arrival.body, arrival.defect, dict(arrival.headers)) == (b"bare", "", {})


async def test_the_answer_of_another_protocol_version_is_passed_on() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"AMQP\x01\x01\x00\x09")
    reader.feed_eof()
    assert await FrameStream(reader).readexactly(7) == b"AMQP\x01\x01\x00"


async def test_a_stream_that_ends_within_a_frame_says_so() -> None:
    with pytest.raises(asyncio.IncompleteReadError):
        await _read([b"".join(_delivery(1, b"one"))[:-1]], chunk=1_000)


async def test_a_channel_that_took_over_a_number_keeps_its_deliveries() -> None:
    taken: list[int] = []

    def first(*_: object) -> bool:
        raise AssertionError("it has ended")

    def second(type_: int, *_: object) -> bool:
        taken.append(type_)
        return True

    reader = asyncio.StreamReader()
    stream = FrameStream(reader)
    stream.divert(1, first)
    stream.divert(1, second)
    stream.restore(1, first)
    reader.feed_data(b"".join(_delivery(1, b"one")) + marshal(Heartbeat(), 0))
    assert await stream.readexactly(8) == marshal(Heartbeat(), 0)
    assert taken == [1, 2, 3]
    stream.restore(1, second)
    reader.feed_data(marshal(Basic.CancelOk("ctag"), 1))
    assert await stream.readexactly(7) == marshal(Basic.CancelOk("ctag"), 1)[:7]


async def test_aiormq_sees_heartbeats_while_deliveries_are_intercepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_HEARTBEAT_SECONDS", -1.0)
    _, left = await _read(_delivery(1, b"one"), chunk=1_000_000)
    assert left == [marshal(Heartbeat(), 0)] * 3


@pytest.mark.chaos
async def test_a_connection_that_only_delivers_is_not_taken_for_lost(make_broker: MakeBroker, broker_url: str) -> None:
    """Brokers send no heartbeats while they send other frames. With one per second, aiormq closes the connection after six."""
    recorder = Recorder()
    broker = make_broker(f"{broker_url}?heartbeat=1", observer=recorder)
    async with consuming(broker) as inbox:
        ends = asyncio.get_running_loop().time() + 8
        while asyncio.get_running_loop().time() < ends:
            await deliver(broker, message())
            await (await inbox.next()).settle(DONE)
    assert recorder.of(DependencyLost) == []
