"""What aiormq raises once a connection is gone, in whatever form, is told as a loss."""

import asyncio
from datetime import timedelta

import aiormq
import pytest

from outbox.transports.rabbitmq.connection import LostError, OwnedConnection, translate_connection_errors
from outbox.transports.rabbitmq.frame_tap import InterceptedConnection


async def test_a_future_on_a_channel_whose_connection_was_closed_is_a_loss(broker_url: str) -> None:
    """aiormq rejects it twice, for the channel and for the connection, and stumbles over the second."""
    connection = await aiormq.connect(broker_url)
    channel = await connection.channel()
    await channel.close()
    await connection.close()
    with pytest.raises(LostError), translate_connection_errors():
        channel.create_future()


async def test_a_cancellation_stays_one_whatever_is_lost_meanwhile(broker_url: str) -> None:
    """aiormq answers it with the reason for which the connection ended; who takes that for the outcome never ends."""
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


async def test_a_cancelled_attempt_to_connect_is_no_failed_one(broker_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
