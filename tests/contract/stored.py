"""Brokers whose messages are stored in PostgreSQL before they are handled, and a source in memory for them."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from outbox.core.message import Message
from outbox.core.topics import matches
from outbox.errors import BrokerUnavailableError, TopologyError
from outbox.ports import CONFIRMED, Broker, Guarantees, Observer, Received, SendResult, Source, Subscription, Transport
from outbox.postgres.queries import TableName
from outbox.transports.postgres import PostgresBroker
from outbox.transports.stored import QueueTransport, StoredBroker
from tests.contract.harness import PostgresHarness, Recorder
from tests.contract.support import taking


class Log:
    """Messages in the order in which they were sent, and how far each group of readers has come. Also sends to itself."""

    label = "log"
    guarantees = Guarantees(keeps_state=False)

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.acknowledged: dict[str, int] = defaultdict(int)
        self.away = False
        self.missing = False
        self.fetches = 0
        self._fetched: dict[str, int] = defaultdict(int)
        self._grown = asyncio.Event()

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`."""

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        self.append(*messages)
        return [CONFIRMED] * len(messages)

    async def close(self) -> None:
        """Does nothing: others use it, too."""

    def append(self, *messages: Message) -> None:
        self.messages += messages
        self._grown.set()

    @asynccontextmanager
    async def read(self, subscription: Subscription) -> AsyncIterator["LogReader"]:
        self.check()
        if self.missing:
            raise TopologyError("the log is missing")
        try:
            yield LogReader(self, subscription)
        finally:
            self._fetched[subscription.queue] = self.acknowledged[subscription.queue]

    def check(self) -> None:
        if self.away:
            raise BrokerUnavailableError("the log is away")

    async def next(self, group: str, limit: int) -> Sequence[tuple[int, Message]]:
        self.check()
        self.fetches += 1
        if self._fetched[group] == len(self.messages):
            self._grown.clear()
            try:
                await asyncio.wait_for(self._grown.wait(), 0.2)
            except TimeoutError:
                return []
            self.check()
        start = self._fetched[group]
        found = list(enumerate(self.messages))[start : start + limit]
        self._fetched[group] += len(found)
        return found


class LogReader:
    """Reads the log for one group."""

    def __init__(self, log: Log, subscription: Subscription) -> None:
        self._log = log
        self._subscription = subscription

    async def fetch(self, limit: int) -> Sequence[Received]:
        found = await self._log.next(self._subscription.queue, limit)
        return [
            Received(message, number)
            for number, message in found
            if matches(self._subscription.binding_key, message.routing_key)
        ]

    async def acknowledge(self, received: Sequence[Received]) -> None:
        self._log.check()
        for each in received:
            assert isinstance(each.token, int)
            self._log.acknowledged[self._subscription.queue] = each.token + 1


class SendingBroker(StoredBroker):
    """A broker that sends to where its source reads, as a relay does."""

    def __init__(self, url: str, source: Source, transport: Transport, *, label: str, observer: Observer) -> None:
        def database() -> PostgresBroker:
            return PostgresBroker(url, table=TableName("outbox_table"), exchange_name=label, observer=observer)

        super().__init__(source, database(), observer=observer)
        self._transport = QueueTransport(transport, database())

    async def open(self) -> None:
        await super().open()
        await self._transport.open()

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        return await self._transport.send(messages, timeout=timeout)

    async def close(self) -> None:
        await super().close()
        await self._transport.close()


class StoredHarness(PostgresHarness):
    """A database of its own, and a source whose messages are stored there. `ends` opens the source and a transport to it."""

    def __init__(self, url: str, name: str, ends: Callable[[], tuple[Source, Transport]]) -> None:
        super().__init__(url, exchange=name)
        self.name = name
        self._ends = ends

    def broker(self, observer: Observer | None = None) -> Broker:
        source, transport = self._ends()
        return SendingBroker(self._url, source, transport, label=self.name, observer=observer or Recorder())

    async def die_with_message(self, queue: str, binding_key: str, *, isolated: bool) -> None:
        broker = self.broker()
        # Once it is stored, the worker that dies needs no source.
        async with taking(broker, queue, binding_key) as taken:
            await taken.next()
        await broker.close()
        await super().die_with_message(queue, binding_key, isolated=isolated)
