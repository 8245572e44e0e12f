"""Every error of aiormq about a lost connection is reported as a loss."""

import asyncio
from datetime import timedelta

import aiormq
import pytest

from outbox.errors import StaleDeliveryError
from outbox.transports.rabbitmq.connection import LostError, OwnedConnection, translate_connection_errors
from outbox.transports.rabbitmq.consume_channel import ConsumerChannel
from outbox.transports.rabbitmq.frame_tap import InterceptedConnection
from outbox.transports.rabbitmq.inbound import Arrival
from outbox.transports.rabbitmq.topology import Inquiry
from tests.support import RabbitAdmin


async def test_a_future_on_a_channel_whose_connection_was_closed_is_a_loss(broker_url: str) -> None:
    """aiormq rejects it twice, for the channel and for the connection, and fails at the second."""
    connection = await aiormq.connect(broker_url)
    channel = await connection.channel()
    await channel.close()
    await connection.close()
    with pytest.raises(LostError), translate_connection_errors():
        channel.create_future()


async def test_a_cancellation_survives_a_lost_connection(broker_url: str) -> None:
    """aiormq replaces it by the reason of the connection's end. A task that took that for its outcome would never end."""
    connection = await aiormq.connect(broker_url)
    channel = await connection.channel()
    waiting = asyncio.Event()

    async def wait() -> None:
        with translate_connection_errors():
            task = channel.create_task(asyncio.sleep(60))
            waiting.set()
            await task

    cancelled = asyncio.create_task(wait())
    await waiting.wait()
    closing = asyncio.create_task(connection.close(aiormq.exceptions.ConnectionClosed(320, "forced")))
    while not connection.is_closed and not cancelled.done():
        await asyncio.sleep(0)
        cancelled.cancel()
    await asyncio.wait({cancelled})
    assert cancelled.cancelled()
    await closing


async def test_a_cancelled_connect_is_not_a_failed_one(broker_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()

    async def connect(_: object) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise aiormq.exceptions.ConnectionClosed(320, "forced") from None

    monkeypatch.setattr(InterceptedConnection, "connect", connect)
    link = OwnedConnection(broker_url, purpose="a test", connect_timeout=timedelta(seconds=30))
    opening = asyncio.create_task(link.open())
    await begun.wait()
    opening.cancel()
    await asyncio.wait({opening})
    assert opening.cancelled()


async def test_a_cancelled_question_leaves_the_connection_open(broker_url: str) -> None:
    """aiormq closes the channel of a cancelled call. A second Close would make the broker end the connection."""
    link = OwnedConnection(broker_url, purpose="a test", connect_timeout=timedelta(seconds=30))
    connection = await link.open()
    for number in range(60):
        inquiry = Inquiry(connection)
        await inquiry.ask(lambda channel: channel.queue_declare("asked"))
        slow = f"slow-{number}"
        asking = asyncio.create_task(
            inquiry.ask(lambda channel: channel.queue_declare(slow, durable=True, arguments={"x-queue-type": "quorum"}))  # noqa: B023
        )
        for _ in range(2 + number % 3):  # until the question was written
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait({asking})
    async with Inquiry(connection) as inquiry:
        await inquiry.ask(lambda channel: channel.queue_declare("asked"))
    assert link.current is connection
    await link.close()


async def test_deliveries_to_a_consumer_that_was_cancelled_as_it_began_are_lost(
    broker_url: str, broker_admin: RabbitAdmin
) -> None:
    """Answers to them on the closing channel would make the broker end the connection."""
    link = OwnedConnection(broker_url, purpose="a test", connect_timeout=timedelta(seconds=30))
    connection = await link.open()
    await broker_admin.declare_queue("mail")
    for _ in range(10):
        await broker_admin.publish("", "mail", b"{}")
    arrived: list[tuple[ConsumerChannel, Arrival]] = []
    returned: list[Arrival] = []

    def receive(channel: ConsumerChannel, arrival: Arrival) -> None:
        arrived.append((channel, arrival))
        opening.cancel()

    async with asyncio.timeout(60):
        while True:  # until the first delivery arrives together with the answer to `consume`
            opening = asyncio.create_task(
                ConsumerChannel.open(connection, "mail", prefetch_count=10, on_arrival=receive, on_returned=returned.append)
            )
            await asyncio.wait({opening})
            if opening.cancelled():
                break
            await opening.result().close()
            arrived.clear()
            returned.clear()
    assert len(returned) == len(arrived) > 0
    for channel, arrival in arrived:
        with pytest.raises(StaleDeliveryError):
            channel.ack(arrival.tag)
    await link.close()
