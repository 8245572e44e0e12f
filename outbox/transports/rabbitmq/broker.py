"""RabbitMQ as a Transport and a Broker: the parts tied together."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from outbox.errors import BrokerUnavailableError, ConfigurationError, TopologyError
from outbox.events import Advice
from outbox.message import Message
from outbox.outcome import Failure
from outbox.ports import NotSent, Observer, Refused, SendResult
from outbox.transports.rabbitmq.connection import LentLink, Link, OwnLink, is_blocked
from outbox.transports.rabbitmq.frames import Publication, UnsendableError
from outbox.transports.rabbitmq.inquiry import Inquiry
from outbox.transports.rabbitmq.publishing import Pipeline
from outbox.transports.rabbitmq.topology import Topology
from outbox.transports.rabbitmq.wire import publication_of
from outbox.urls import amqp_url

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection as LentConnection
    from aiormq.abc import AbstractConnection

CONNECT_TIMEOUT = timedelta(seconds=10)


class RabbitBroker:
    """Implements `outbox.ports.Broker` on RabbitMQ 3.10 to 4.x.

    Either `url`, which makes two connections of its own, one for publishing and one for consuming; or `connection`, an
    aio-pika connection, robust or not, that is used for both and left open.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        connection: "LentConnection | None" = None,
        exchange_name: str,
        observer: Observer,
        connect_timeout: timedelta = CONNECT_TIMEOUT,
    ) -> None:
        if (url is None) == (connection is None):
            raise ConfigurationError("RabbitMQ takes either a URL or a connection")
        self._exchange = exchange_name
        self._observer = observer
        self._publishing: Link
        self._consuming: Link
        if connection is not None:
            self._publishing = self._consuming = LentLink(connection)
        else:
            address = amqp_url(url or "", argument="url")
            self._publishing = OwnLink(address, purpose="outbox publishing", connect_timeout=connect_timeout)
            self._consuming = OwnLink(address, purpose="outbox consuming", connect_timeout=connect_timeout)
        self._topology = Topology(lambda text: observer.notify(Advice(text=text)))
        self._pipeline = Pipeline(self._publishing, exchange_gone=self._forget_exchange)
        self._opening = asyncio.Lock()
        self._opened_on: AbstractConnection | None = None

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`."""
        connection = self._publishing.current
        if connection is None or connection is not self._opened_on:
            async with self._opening:
                connection = await self._publishing.open()
                if connection is not self._opened_on:
                    async with Inquiry(connection) as inquiry:
                        await self._topology.ensure_exchange(inquiry, self._exchange)
                    self._opened_on = connection
        if is_blocked(connection):
            raise BrokerUnavailableError("the broker accepts no messages now: it is short of memory or disk space")

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """See `outbox.ports.Transport.send`."""
        results: list[SendResult | None] = [None] * len(messages)
        publications: list[Publication] = []
        for index, message in enumerate(messages):
            try:
                publications.append(publication_of(message, exchange=self._exchange))
            except UnsendableError as error:
                results[index] = Refused(Failure("unsendable", str(error)))
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self.open()
        except (BrokerUnavailableError, TopologyError, TimeoutError) as error:
            failure = NotSent(Failure.of(error))
            return [failure if result is None else result for result in results]
        left = timeout - timedelta(seconds=asyncio.get_running_loop().time() - started)
        sent = iter(await self._pipeline.send(publications, timeout=left))
        return [next(sent) if result is None else result for result in results]

    async def close(self) -> None:
        """See `outbox.ports.Transport.close`."""
        self._pipeline.close()
        self._opened_on = None
        await self._publishing.close()
        await self._consuming.close()

    def _forget_exchange(self) -> None:
        """The next `open` looks again, and declares it again."""
        self._opened_on = None
