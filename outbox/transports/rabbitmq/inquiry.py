"""Questions to the broker that are answered one by one: is it there, may I, how many."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity, ChannelPreconditionFailed

from outbox.transports.rabbitmq.connection import Link, UnresponsiveError, losses
from outbox.transports.rabbitmq.tapping import abandon

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
                with losses():
                    if self._channel is None or self._channel.is_closed:
                        self._channel = await self.connection.channel(publisher_confirms=False)
                    return await question(self._channel)
        except TimeoutError:
            self._drop_channel()
            raise UnresponsiveError("the broker does not answer") from None
        except BaseException:
            self._drop_channel()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._drop_channel()

    def _drop_channel(self) -> None:
        if self._channel is not None:
            abandon(self._channel)
            self._channel = None


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
