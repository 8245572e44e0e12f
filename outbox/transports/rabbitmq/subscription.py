"""A subscription that consumes again after its channel, connection or queue was lost."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from aiormq.exceptions import AMQPChannelError

from outbox.core.outcome import RETURNED
from outbox.engine.lifecycle import Pauses
from outbox.errors import BrokerUnavailableError, StaleDeliveryError, TopologyError
from outbox.ports import Receive, Subscription
from outbox.transports.rabbitmq.connection import Link, UnresponsiveError, is_blocked
from outbox.transports.rabbitmq.consume_channel import ConsumerChannel
from outbox.transports.rabbitmq.delivery import RabbitDelivery
from outbox.transports.rabbitmq.inbound import Arrival
from outbox.transports.rabbitmq.topology import Inquiry, inquiry_on

if TYPE_CHECKING:
    from outbox.transports.rabbitmq.delivery import Isolation
    from outbox.transports.rabbitmq.settlement import CopySettlement
    from outbox.transports.rabbitmq.topology import ExchangeResolver, Topology


CHECK_EVERY = timedelta(seconds=30)
"""Longest time between two looks at what a consumer needs; each is shortened by up to half at random."""


class Notice(Protocol):
    """Is told when a consumer has lost its queue, and when it is back."""

    def lost(self, queue: str, reason: str) -> None: ...

    def restored(self, queue: str) -> None: ...

    def advise(self, text: str) -> None: ...


class RunningSubscription:
    """Implements `outbox.ports.Intake`, from `start` to `finish`."""

    def __init__(
        self,
        subscription: Subscription,
        receive: Receive,
        *,
        link: Link,
        topology: "Topology",
        exchanges: "ExchangeResolver",
        settlement: "CopySettlement",
        isolation: "Isolation",
        notice: "Notice",
    ) -> None:
        self._subscription = subscription
        self._receive = receive
        self._link = link
        self._topology = topology
        self._exchanges = exchanges
        self._settlement = settlement
        self._isolation = isolation
        self._notice = notice
        self._channel: ConsumerChannel | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Messages can arrive when this returns. Raises `BrokerUnavailableError` and `TopologyError`."""
        self._isolation.join(self)
        self._channel = await self._consume()
        self._watcher = asyncio.create_task(self._watch(self._channel), name=f"outbox consumer {self._subscription.queue}")

    async def stop(self) -> None:
        """See `outbox.ports.Intake`."""
        if self._channel is not None:
            self._channel.hold()
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait({self._watcher})
        if self._channel is not None:
            await self._channel.cancel()

    async def finish(self) -> None:
        """Gives back what is in hand."""
        self._isolation.leave(self)
        await self.stop()
        if self._channel is not None:
            # Messages that run alone go back with care, see `CopySettlement.give_back`.
            for arrival in [arrival for arrival in self._channel.in_hand.values() if arrival.mark is not None]:
                with suppress(StaleDeliveryError):
                    await RabbitDelivery(arrival, self._channel, self._settlement).settle(RETURNED)
            await self._channel.close()
            self._channel = None
        if self._watcher is not None and not self._watcher.cancelled():
            self._watcher.result()  # it ends by itself only by a mistake of ours, which must not be silent

    async def postpone_marked(self, running: Sequence[Arrival]) -> bool:
        """See `outbox.transports.rabbitmq.delivery.Member`."""
        channel = self._channel
        if channel is None:
            return False
        marked = [arrival for arrival in channel.in_hand.values() if arrival.mark is not None]
        waiting = [arrival for arrival in marked if not any(arrival is other for other in running)]
        deliveries = [RabbitDelivery(arrival, channel, self._settlement) for arrival in waiting if not arrival.settling]
        postponed = [delivery for delivery in deliveries if not delivery.arrival.postponed and not delivery.blamed]
        for delivery in postponed:
            await self._settlement.send_away(delivery)
        return bool(postponed)

    async def _consume(self) -> ConsumerChannel:
        subscription = self._subscription
        exchange = subscription.exchange_name
        try:
            async with inquiry_on(self._link) as inquiry:
                await self._topology.ensure_consumer(inquiry, subscription)
            await self._exchanges.explore(exchange, subscription.retry_delays)
            await self._exchanges.require_dead_letters(exchange, subscription.queue, ordered=subscription.ordered)
        except AMQPChannelError as error:
            # Deleted between two questions, or its node is down: a refusal that time mends.
            raise BrokerUnavailableError(f"what queue {subscription.queue!r} needs cannot be declared now: {error}") from None
        connection = await self._link.open()
        try:
            return await ConsumerChannel.open(
                connection,
                subscription.queue,
                prefetch_count=subscription.prefetch_count,
                arrived=self._on_arrival,
                let_go=self._settlement.let_go,
                in_order=subscription.ordered,
            )
        except UnresponsiveError:
            self._link.discard(connection)
            raise

    async def _watch(self, channel: ConsumerChannel) -> None:
        """Repairs what is lost, for as long as it lives."""
        while True:
            try:
                # At random, so that the consumers of many processes do not ask at once.
                async with asyncio.timeout(CHECK_EVERY.total_seconds() * random.uniform(0.5, 1)):  # noqa: S311
                    await channel.ended.wait()
            except TimeoutError:
                await self._check()
                continue
            self._notice.lost(self._subscription.queue, channel.reason)
            await channel.close()
            pauses, again = Pauses(), None
            while again is None:
                await asyncio.sleep(pauses.next().total_seconds())
                try:
                    again = await self._consume()
                except BrokerUnavailableError:
                    pass  # the next pause is longer
                except TopologyError as error:
                    self._notice.advise(str(error))
            channel = self._channel = again
            self._notice.restored(self._subscription.queue)

    async def _check(self) -> None:
        """Declares and binds again what was deleted. The broker tells nobody of a binding or an exchange that is gone: the
        consumer goes on, and nothing comes."""
        connection = self._link.current
        # The host's connection is blocked by an alarm, ours never is, as nothing is published on it: then nothing is answered,
        # and each question would keep a channel until the alarm is over.
        if connection is None or is_blocked(connection):
            return
        exchange = self._subscription.exchange_name
        try:
            # Without `inquiry_on`, which gives up a connection that does not answer: one queue that does not, because its
            # leader is gone, must not cut off the consumers of the others.
            async with Inquiry(connection) as inquiry:
                await self._topology.ensure_consumer(inquiry, self._subscription)
                await self._exchanges.ensure_known_delays(inquiry, exchange)
        except TopologyError as error:
            self._notice.advise(str(error))
        except (BrokerUnavailableError, AMQPChannelError):
            return  # the next check asks again

    def _on_arrival(self, source: ConsumerChannel, arrival: Arrival) -> None:
        self._isolation.noticed(arrival)
        self._receive(RabbitDelivery(arrival, source, self._settlement))
