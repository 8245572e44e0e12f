"""Brokers under test, closed at the end."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest

from outbox.transports.rabbitmq import RabbitBroker
from tests.rabbitmq.support import EXCHANGE, MakeBroker, Recorder


@pytest.fixture
async def make_broker() -> AsyncIterator[MakeBroker]:
    """Returns a function that makes a broker for a URL or a connection."""
    async with AsyncExitStack() as stack:

        def make(url: str | None = None, *, observer: Recorder | None = None, **options: Any) -> RabbitBroker:
            options.setdefault("connect_timeout", timedelta(seconds=30))
            broker = RabbitBroker(url, exchange_name=EXCHANGE, observer=observer or Recorder(), **options)
            stack.push_async_callback(broker.close)
            return broker

        yield make


@pytest.fixture
async def broker(broker_url: str, make_broker: MakeBroker, recorder: Recorder) -> AsyncIterator[RabbitBroker]:
    """A broker on the session's server, closed before its virtual host is deleted."""
    broker = make_broker(broker_url, observer=recorder)
    yield broker
    await broker.close()


@pytest.fixture
def recorder() -> Recorder:
    """The events of `broker`."""
    return Recorder()
