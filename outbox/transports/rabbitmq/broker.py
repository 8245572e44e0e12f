"""RabbitMQ as a Transport and a Broker."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from aiormq.exceptions import AMQPChannelError

from outbox.core.events import Advice, Dependency, DependencyLost, DependencyRestored
from outbox.core.message import Message
from outbox.core.outcome import RETURNED, Failure
from outbox.core.urls import amqp_url
from outbox.engine.lifecycle import MOST_REASONS, Pauses
from outbox.engine.tasks import ungrouped
from outbox.errors import BrokerUnavailableError, ConfigurationError, StaleDeliveryError, TopologyError
from outbox.ports import Guarantees, Intake, NotSent, Observer, QueueDepth, Receive, Refused, SendResult, Subscription
from outbox.transports.rabbitmq.amqp_encoding import Publication, UnsendableError
from outbox.transports.rabbitmq.connection import (
    CONNECT_TIMEOUT,
    BorrowedConnection,
    Link,
    OwnedConnection,
    UnresponsiveError,
    is_blocked,
)
from outbox.transports.rabbitmq.consume_channel import ConsumerChannel
from outbox.transports.rabbitmq.delivery import Isolation, RabbitDelivery, RedeliveryCounter
from outbox.transports.rabbitmq.inbound import Arrival
from outbox.transports.rabbitmq.message_format import DEFAULT_EXCHANGE, publication_of
from outbox.transports.rabbitmq.publisher import Pipeline
from outbox.transports.rabbitmq.settlement import CopySettlement
from outbox.transports.rabbitmq.topology import ExchangeResolver, Inquiry, Topology, dead_letter_queue, depth_of, inquiry_on

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection as HostConnection
    from aiormq.abc import AbstractConnection


CHECK_EVERY = timedelta(seconds=30)
"""Longest pause between two checks of what a consumer needs. Each pause is shortened by up to half at random."""
ROOM_FOR_FAILURES = 1_024
"""Bytes of the header frame that a first publish leaves free: for the longest routing key, a count, and an exception type."""


class RabbitBroker:
    """Implements `outbox.ports.Broker` on RabbitMQ 3.10 to 4.x.

    Takes either a `url`, and opens one connection for publishing and one for consuming; or a `connection` of aio-pika, robust
    or not, which is used for both and left open.
    """

    guarantees = Guarantees(dead_letter_queues=True)

    def __init__(
        self,
        url: str | None = None,
        *,
        connection: "HostConnection | None" = None,
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
            self._publishing = self._consuming = BorrowedConnection(connection)
        else:
            address = amqp_url(url or "", argument="url")
            self._publishing = OwnedConnection(address, purpose="outbox publishing", connect_timeout=connect_timeout)
            self._consuming = OwnedConnection(address, purpose="outbox consuming", connect_timeout=connect_timeout)
        self._outages = Outages(observer)
        self._topology = Topology(self._outages.advise, report_redeclared=self._outages.report)
        self._pipeline = Pipeline(self._publishing, on_exchange_missing=self._forget_exchange)
        self._exchanges = ExchangeResolver(self._pipeline, self._publishing, self._topology, self._outages.advise)
        self._redeliveries = RedeliveryCounter()
        self._isolation = Isolation()
        self._opening = asyncio.Lock()
        self._opened_on: AbstractConnection | None = None

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`."""
        connection = self._publishing.current
        if connection is None or connection is not self._opened_on:
            async with self._opening:
                connection = await self._publishing.open()
                # Another task may have declared the exchange while this one waited.
                if connection is not self._opened_on:
                    async with inquiry_on(self._publishing) as inquiry:
                        await self._topology.ensure_exchange(inquiry, self._exchange)
                        self._opened_on = connection = inquiry.connection
        if is_blocked(connection):
            raise BrokerUnavailableError("the broker accepts no messages now: it is short of memory or disk space")

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """See `outbox.ports.Transport.send`."""
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self.open()
                queue_exchange = DEFAULT_EXCHANGE
                if any(message.target_queue is not None for message in messages):
                    queue_exchange = await self._exchanges.to_queue(self._exchange)
        except (BrokerUnavailableError, TopologyError, TimeoutError) as error:
            return [NotSent(Failure.of(error))] * len(messages)
        results: list[SendResult | None] = [None] * len(messages)
        publications: list[Publication] = []
        # AMQP cannot split headers over frames. Copies for retries and dead letters have more of them than the original.
        available = self._pipeline.largest_header - ROOM_FOR_FAILURES
        for index, message in enumerate(messages):
            try:
                publication = publication_of(message, exchange=self._exchange, queue_exchange=queue_exchange)
            except UnsendableError as error:
                results[index] = _unsendable(str(error))
                continue
            if (size := publication.header_size) <= available:
                publications.append(publication)
            else:
                results[index] = _unsendable(
                    f"the headers take {size} bytes, and the broker's frame_max leaves {available} for them: "
                    f"{ROOM_FOR_FAILURES} are kept free for headers that retries and dead letters add"
                )
        left = timeout - timedelta(seconds=asyncio.get_running_loop().time() - started)
        sent = iter(await self._pipeline.send(publications, timeout=left))
        return [next(sent) if result is None else result for result in results]

    @asynccontextmanager
    async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator[Intake]:
        """See `outbox.ports.Broker.subscribe`."""
        exchange, queue = subscription.exchange_name, subscription.queue
        settlement = CopySettlement(
            queue=queue,
            exchange=exchange,
            pipeline=self._pipeline,
            exchanges=self._exchanges,
            redeliveries=self._redeliveries,
            isolation=self._isolation,
            in_order=subscription.ordered,
        )
        running = RunningSubscription(
            subscription,
            receive,
            link=self._consuming,
            topology=self._topology,
            exchanges=self._exchanges,
            settlement=settlement,
            isolation=self._isolation,
            outages=self._outages,
        )
        with ungrouped():
            async with asyncio.TaskGroup() as tasks:
                try:
                    await running.start(tasks)
                    yield running
                finally:
                    await running.finish()

    async def count_dead_letters(self, queue: str) -> int:
        """See `outbox.ports.Broker.count_dead_letters`."""
        return await depth_of(self._publishing, dead_letter_queue(queue)) or 0

    async def queue_depth(self, queue: str) -> QueueDepth | None:
        """See `outbox.ports.MeasuresQueues.queue_depth`. RabbitMQ does not report ages."""
        ready = await depth_of(self._publishing, queue)
        return None if ready is None else QueueDepth(ready)

    async def has_queue(self, queue: str) -> bool:
        """See `outbox.ports.Broker.has_queue`."""
        try:
            return queue != "" and await depth_of(self._publishing, queue) is not None
        except ValueError:
            return False  # raised by aiormq for a name that no queue can have

    async def close(self) -> None:
        """See `outbox.ports.Transport.close`."""
        self._pipeline.close()
        self._opened_on = None
        await self._publishing.close()
        await self._consuming.close()

    def _forget_exchange(self) -> None:
        """Makes the next `open` declare the exchange again, and the next retries their delay exchanges."""
        self._opened_on = None
        self._exchanges.recheck_delays()


def _unsendable(reason: str) -> Refused:
    return Refused(Failure("unsendable", reason))


class Outages:
    """Reports consumers' outages to the observer: each reason and one recovery for all consumers, each piece of advice once."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._lost: set[str] = set()
        self._reasons: set[str] = set()
        self._advised: set[str] = set()

    def lost(self, queue: str, reason: str) -> None:
        """Records that the consumer of `queue` lost it, or cannot consume from it again, and reports each new reason."""
        # Not only the first: an outage may continue because a password was changed, which an operator has to know.
        if reason not in self._reasons and len(self._reasons) < MOST_REASONS:
            self._reasons.add(reason)
            self._observer.notify(DependencyLost(dependency=Dependency.BROKER, reason=f"consuming from {queue!r}: {reason}"))
        self._lost.add(queue)

    def consuming(self, queue: str) -> None:
        """Records that `queue` is consumed from, and reports the end of an outage when no other consumer has lost its queue."""
        self._lost.discard(queue)
        if self._reasons and not self._lost:
            self._reasons.clear()
            self._observer.notify(DependencyRestored(dependency=Dependency.BROKER))

    def leave(self, queue: str) -> None:
        """Records that `queue` is not consumed from any more. The next consumer that receives ends its outage."""
        self._lost.discard(queue)

    def advise(self, text: str) -> None:
        """Reports `text` once: something works but could work better."""
        if text not in self._advised:
            self._advised.add(text)
            self.report(text)

    def report(self, text: str) -> None:
        """Reports `text` each time."""
        self._observer.notify(Advice(text=text))


class RunningSubscription:
    """Implements `outbox.ports.Intake`. Consumes from `start` to `finish`, and starts again after a lost channel or queue."""

    def __init__(
        self,
        subscription: Subscription,
        receive: Receive,
        *,
        link: Link,
        topology: Topology,
        exchanges: ExchangeResolver,
        settlement: CopySettlement,
        isolation: Isolation,
        outages: Outages,
    ) -> None:
        self._subscription = subscription
        self._receive = receive
        self._link = link
        self._topology = topology
        self._exchanges = exchanges
        self._settlement = settlement
        self._isolation = isolation
        self._outages = outages
        self._channel: ConsumerChannel | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begins to consume: messages can arrive when this returns. Raises `BrokerUnavailableError` and `TopologyError`."""
        self._isolation.join(self)
        self._channel = await self._consume()
        self._outages.consuming(self._subscription.queue)
        self._watcher = tasks.create_task(self._watch(self._channel), name=f"outbox consumer {self._subscription.queue}")

    async def stop(self) -> None:
        """See `outbox.ports.Intake`."""
        if self._channel is not None:
            self._channel.hold()
        if self._watcher is not None:
            # Before the channel: the watcher may be about to replace it.
            self._watcher.cancel()
            await asyncio.wait({self._watcher})
        if self._channel is not None:
            await self._channel.cancel()

    async def finish(self) -> None:
        """Stops, and gives back every message in flight."""
        self._isolation.leave(self)
        await self.stop()
        self._outages.leave(self._subscription.queue)
        if self._channel is not None:
            # Messages in isolation go back as copies, see `CopySettlement.give_back`.
            for arrival in [arrival for arrival in self._channel.in_flight.values() if arrival.mark is not None]:
                with suppress(StaleDeliveryError, BrokerUnavailableError):  # closing gives it back, too
                    await RabbitDelivery(arrival, self._channel, self._settlement).settle(RETURNED)
            await self._channel.close()
            self._channel = None

    async def postpone_marked(self, running: Sequence[Arrival]) -> bool:
        """See `outbox.transports.rabbitmq.delivery.Member`."""
        channel = self._channel
        if channel is None:
            return False
        found_any = False
        for arrival in [arrival for arrival in channel.in_flight.values() if arrival.mark is not None]:
            delivery = RabbitDelivery(arrival, channel, self._settlement)
            # Each just before its turn, because others may have begun to run or to settle while the last one was published.
            is_running = any(arrival is other for other in running)
            if not (is_running or arrival.settling or arrival.postponed or delivery.blamed):
                found_any = True
                await self._settlement.postpone_marked(delivery)
        return found_any

    async def may_receive(self) -> bool:
        """See `outbox.transports.rabbitmq.delivery.Member`."""
        channel, subscription = self._channel, self._subscription
        # Nothing is marked in order.
        if channel is None or subscription.ordered or len(channel.in_flight) >= subscription.prefetch_count:
            return False
        try:
            return bool(await depth_of(self._link, subscription.queue))
        except BrokerUnavailableError:
            return False

    async def _consume(self) -> ConsumerChannel:
        subscription = self._subscription
        exchange = subscription.exchange_name
        try:
            async with inquiry_on(self._link) as inquiry:
                await self._topology.ensure_consumer(inquiry, subscription)
            await self._exchanges.prepare(exchange, subscription.retry_delays)
            await self._exchanges.require_dead_letters(exchange, subscription.queue, ordered=subscription.ordered)
        except AMQPChannelError as error:
            # Deleted between two declarations, or its node is down: trying again later helps.
            raise BrokerUnavailableError(f"what queue {subscription.queue!r} needs cannot be declared now: {error}") from None
        connection = await self._link.open()
        try:
            return await ConsumerChannel.open(
                connection,
                subscription.queue,
                prefetch_count=subscription.prefetch_count,
                on_arrival=self._on_arrival,
                on_returned=self._settlement.record_return,
                in_order=subscription.ordered,
            )
        except UnresponsiveError:
            self._link.discard(connection)
            raise

    async def _watch(self, channel: ConsumerChannel) -> None:
        """Consumes again after each loss, and checks the topology regularly, until cancelled."""
        while True:
            try:
                # A random pause, so that the consumers of many processes do not all check at once.
                async with asyncio.timeout(CHECK_EVERY.total_seconds() * random.uniform(0.5, 1)):  # noqa: S311
                    await channel.ended.wait()
            except TimeoutError:
                await self._check()
                continue
            self._outages.lost(self._subscription.queue, channel.reason)
            # It may still be open, if the broker has cancelled the consumer: closing it returns what is in flight.
            await channel.close()
            pauses, again = Pauses(), None
            while again is None:
                await asyncio.sleep(pauses.next().total_seconds())
                try:
                    again = await self._consume()
                except BrokerUnavailableError as error:  # the next pause is longer
                    self._outages.lost(self._subscription.queue, str(error))
                except TopologyError as error:
                    self._outages.advise(str(error))
            channel = self._channel = again
            self._outages.consuming(self._subscription.queue)

    async def _check(self) -> None:
        """Declares and binds again what was deleted.

        The broker does not notify a consumer that an exchange or a binding is gone: it would just receive nothing.
        """
        connection = self._link.current
        # During an alarm the broker does not read connections that publish, such as a shared one of the host. Each declaration
        # would wait, and keep a channel open, until the alarm is over. A connection that only consumes is not blocked.
        if connection is None or is_blocked(connection):
            return
        exchange = self._subscription.exchange_name
        try:
            # Not `inquiry_on`, which discards a connection that does not answer. A single queue may not answer, because its
            # leader is gone; that must not cut off the consumers of other queues.
            async with Inquiry(connection) as inquiry:
                await self._topology.ensure_consumer(inquiry, self._subscription)
                await self._exchanges.ensure_known_delays(inquiry, exchange)
        except TopologyError as error:
            self._outages.advise(str(error))
        except (BrokerUnavailableError, AMQPChannelError):
            return  # the next check tries again

    def _on_arrival(self, source: ConsumerChannel, arrival: Arrival) -> None:
        self._isolation.record_arrival(arrival)
        self._receive(RabbitDelivery(arrival, source, self._settlement))
