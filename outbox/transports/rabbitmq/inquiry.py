"""Questions to the broker that are answered one by one: is it there, may I, how many."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from aiormq.exceptions import AMQPChannelError, ChannelAccessRefused, ChannelNotFoundEntity, ChannelPreconditionFailed

from outbox.errors import BrokerUnavailableError
from outbox.transports.rabbitmq.connection import CONNECTION_ERRORS, Link, UnresponsiveError
from outbox.urls import redacted

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, AbstractConnection

T = TypeVar("T")

NotThere = ChannelNotFoundEntity
NotAllowed = ChannelAccessRefused
Different = ChannelPreconditionFailed

_TIMEOUT = timedelta(seconds=10)
"""For one question. Declaring a quorum queue takes a cluster a while."""


class Inquiry:
    """Asks on one channel after another: each refusal costs the channel that it was asked on."""

    def __init__(self, connection: "AbstractConnection") -> None:
        self.connection = connection
        self._channel: AbstractChannel | None = None

    async def ask(self, question: Callable[["AbstractChannel"], Awaitable[T]]) -> T:
        """The broker's answer. Raises the refusal (`AMQPChannelError`), or `BrokerUnavailableError` without an answer."""
        try:
            async with asyncio.timeout(_TIMEOUT.total_seconds()):
                if self._channel is None or self._channel.is_closed:
                    self._channel = await self.connection.channel(publisher_confirms=False)
                return await question(self._channel)
        except AMQPChannelError:
            self._channel = None
            raise
        except TimeoutError:
            self._channel = None
            raise UnresponsiveError("the broker does not answer") from None
        except CONNECTION_ERRORS as error:
            self._channel = None
            raise BrokerUnavailableError(f"the connection was lost: {redacted(str(error))}") from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._channel is not None:
            with suppress(*CONNECTION_ERRORS):
                async with asyncio.timeout(_TIMEOUT.total_seconds()):
                    await self._channel.close()


@asynccontextmanager
async def inquiry_on(link: Link) -> AsyncIterator[Inquiry]:
    """An inquiry on the connection of `link`, which is discarded if it does not answer."""
    connection = await link.open()
    try:
        async with Inquiry(connection) as inquiry:
            yield inquiry
    except UnresponsiveError:
        link.discard(connection)
        raise
