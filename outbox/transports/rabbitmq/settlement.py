"""Settles deliveries that did not succeed: delayed copies, dead letters, and returns to the queue."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, assert_never
from uuid import uuid4

from outbox.core.codec import ATTEMPT, EXPIRES_AT, ROUTING_KEY, encode_instant
from outbox.core.failures import FailedAttempt
from outbox.core.outcome import Cause, Failure
from outbox.engine.lifecycle import Pauses
from outbox.errors import BrokerUnavailableError, StaleDeliveryError, TopologyError
from outbox.ports import Confirmed, NotSent, Refused, SendResult, Unconfirmed, Unroutable
from outbox.transports.rabbitmq.amqp_encoding import Publication, UnsendableError
from outbox.transports.rabbitmq.delivery import dead_letter_headers, failures_after, retry_headers
from outbox.transports.rabbitmq.message_format import CRASHES, ISOLATED, copy_of
from outbox.transports.rabbitmq.publish_channel import NACKED
from outbox.transports.rabbitmq.topology import dead_letter_exchange

if TYPE_CHECKING:
    from outbox.transports.rabbitmq.delivery import Isolation, RabbitDelivery, RedeliveryCounter
    from outbox.transports.rabbitmq.inbound import Arrival
    from outbox.transports.rabbitmq.publisher import Pipeline
    from outbox.transports.rabbitmq.topology import ExchangeResolver

COPY_TIMEOUT = timedelta(seconds=10)
"""How long one copy may wait for its confirm."""
PATIENCE = timedelta(seconds=30)
"""How long a copy is tried again before its original is given back."""

POSTPONED = timedelta(seconds=1)
"""How long a marked message stays away while another runs alone."""

Draft = Callable[[], Awaitable[Publication]]


class CopySettlement:
    """Implements `outbox.transports.rabbitmq.delivery.Settlement` for the deliveries of one subscription.

    A copy is confirmed before its original is acknowledged. While that is impossible the delivery stays in flight, and with it
    its share of the prefetch: nothing is lost, and nothing spins.
    """

    def __init__(
        self,
        *,
        queue: str,
        exchange: str,
        pipeline: "Pipeline",
        exchanges: "ExchangeResolver",
        redeliveries: "RedeliveryCounter",
        isolation: "Isolation",
        in_order: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._queue = queue
        self._exchange = exchange
        self._pipeline = pipeline
        self._exchanges = exchanges
        self._redeliveries = redeliveries
        self._isolation = isolation
        self._in_order = in_order
        self._now = now

    async def retry(self, delivery: "RabbitDelivery", delay: timedelta, failure: Failure) -> None:
        """A copy for the next attempt waits for `delay`; one that cannot be sent is a dead letter."""
        failures = self._failures(delivery, failure)
        headers = self._headers(delivery) | {ATTEMPT: delivery.attempt + 1}

        async def draft() -> Publication:
            exchange = await self._exchanges.to_delay(self._exchange, delay)
            return self._fitting(delivery, headers, retry_headers(failures), exchange)

        if (refused := await self._replace(delivery, draft)) is not None:
            # The dead letter has what its handler raised, not only why there is no further attempt.
            message = f"{failure.message} (and it could not be retried: {refused.failure})"
            await self.dead_letter(delivery, Cause.REFUSED, replace(failure, message=message))

    async def postpone(self, delivery: "RabbitDelivery", delay: timedelta) -> None:
        """A copy for the same attempt waits for `delay`; one that cannot be sent is a dead letter."""

        async def draft() -> Publication:
            exchange = await self._exchanges.to_delay(self._exchange, delay)
            return self._copy(delivery, self._headers(delivery), exchange=exchange)

        if (refused := await self._replace(delivery, draft)) is not None:
            await self.dead_letter(delivery, Cause.REFUSED, refused.failure)

    async def dead_letter(self, delivery: "RabbitDelivery", cause: Cause, failure: Failure) -> None:
        """Publishes a dead letter; or rejects the original, where it is certain that the broker dead-letters it.

        Raises `BrokerUnavailableError` where neither is possible now: the message is kept, to be settled again.
        """
        failures = self._failures(delivery, failure)

        async def draft() -> Publication:
            exchange = await self._exchanges.to_dead_letters(self._exchange)
            if exchange is None:
                raise UnsendableError(f"this user may not write to exchange {dead_letter_exchange(self._exchange)!r}")
            try:
                return self._fitting(delivery, self._headers(delivery), dead_letter_headers(cause, failures), exchange)
            except UnsendableError:
                # As it came: a dead letter without its failure is better than none.
                return self._copy(delivery, {}, exchange=exchange)

        if (refused := await self._replace(delivery, draft, keep=True)) is None:
            return
        # Asked for each message: a queue may have been replaced by one that drops what is rejected.
        if not await self._exchanges.rejects_are_safe(self._exchange, self._queue, ordered=self._in_order):
            raise BrokerUnavailableError(f"its dead letter could not be published: {refused.failure}; the message is kept")
        delivery.reject()

    async def give_back(self, delivery: "RabbitDelivery") -> None:
        """As it is; but one that runs alone as a fresh copy: its count of deliveries would put the blame on it."""
        if delivery.arrival.mark is None:
            delivery.give_back()
            return
        # Where that is impossible, it was given back as it is.
        with suppress(StaleDeliveryError):
            await self.isolate(delivery)

    async def isolate(self, delivery: "RabbitDelivery") -> None:
        """A copy with a fresh mark, and a fresh count of deliveries, goes to the end of the queue."""
        await self._mark(delivery, self._way_back)

    async def _mark(self, delivery: "RabbitDelivery", way: Callable[[], Awaitable[str]]) -> None:
        headers = self._headers(delivery) | {ISOLATED: str(uuid4())}

        async def draft() -> Publication:
            return self._copy(delivery, headers, exchange=await way())

        if (refused := await self._replace(delivery, draft)) is not None:
            delivery.give_back()
            raise StaleDeliveryError(f"the message could not be marked: {refused.failure}; it was given back")

    async def _way_back(self) -> str:
        return await self._exchanges.to_queue(self._exchange)

    async def _way_back_later(self) -> str:
        try:
            return await self._exchanges.to_delay(self._exchange, POSTPONED)
        except TopologyError:
            return await self._way_back()

    async def begin_alone(self, delivery: "RabbitDelivery") -> None:
        """See `Settlement.begin_alone`."""
        await self._isolation.begin(delivery.arrival)

    def end_alone(self, delivery: "RabbitDelivery") -> None:
        """See `Settlement.end_alone`."""
        self._isolation.end(delivery.arrival)

    async def send_away(self, delivery: "RabbitDelivery") -> None:
        """A copy with a fresh mark comes back a little later."""
        delivery.arrival.postponed = True
        with suppress(StaleDeliveryError):  # it went back as it was, or its channel is gone
            await self._mark(delivery, self._way_back_later)

    def redeliveries(self, delivery: "RabbitDelivery") -> int:
        """See `Settlement.redeliveries`."""
        return self._redeliveries.of((self._queue, delivery.arrival.identity))

    def let_go(self, arrival: "Arrival") -> None:
        """The broker has it back, and this worker lives."""
        self._redeliveries.note((self._queue, arrival.identity))

    async def _replace(self, delivery: "RabbitDelivery", draft: Draft, *, keep: bool = False) -> Refused | None:
        """Publishes a copy, then acknowledges; or else why the broker will never take the copy, with nothing settled.

        Raises `StaleDeliveryError` when the channel ends first, or when patience does: the message was given back then. With
        `keep` it stays in flight instead, and this raises `BrokerUnavailableError`: its handler would only run again, to fail
        again, and some queues drop what was given back too often. In order, too: what is given back alone is overtaken.
        """
        deadline = asyncio.get_running_loop().time() + PATIENCE.total_seconds()
        pauses = Pauses()
        while True:
            match result := await self._publish(draft):
                case Confirmed():
                    delivery.ack()
                    await delivery.source.flush()
                    return None
                case Refused(failure) if result is not NACKED:
                    return result
                case Refused(failure) | NotSent(failure) | Unconfirmed(failure):
                    trouble = str(failure)
                case Unroutable():
                    trouble = "no queue is bound for it"
                case _:
                    assert_never(result)
            pause = pauses.next().total_seconds()
            if asyncio.get_running_loop().time() + pause > deadline:
                if keep or self._in_order:
                    raise BrokerUnavailableError(f"a copy could not be published: {trouble}")
                delivery.give_back()
                raise StaleDeliveryError(f"its copy could not be published ({trouble}); the message was given back")
            await delivery.pause(pause)
            with suppress(BrokerUnavailableError, TopologyError):
                await self._exchanges.mend(self._exchange, self._queue)

    async def _publish(self, draft: Draft) -> SendResult:
        try:
            publication = await draft()
        except UnsendableError as error:
            return Refused(Failure("unsendable", str(error)))
        except (BrokerUnavailableError, TopologyError) as error:
            return NotSent(Failure.of(error))
        (result,) = await self._pipeline.send([publication], timeout=COPY_TIMEOUT)
        return result

    def _headers(self, delivery: "RabbitDelivery") -> dict[str, Any]:
        """Those that a copy has in addition to, or in place of, the message's own."""
        headers: dict[str, Any] = {**delivery.noted, ROUTING_KEY: delivery.routing_key}
        if (expires_at := delivery.expires_at) is not None:
            headers[EXPIRES_AT] = encode_instant(expires_at)
        if crashes := delivery.crashes:
            headers[CRASHES] = crashes
        return headers

    def _copy(self, delivery: "RabbitDelivery", headers: Mapping[str, Any], *, exchange: str) -> Publication:
        header, body = delivery.arrival.header, delivery.arrival.body
        return copy_of(delivery.message_id, header, headers, body, exchange=exchange, routing_key=self._queue)

    def _fitting(
        self,
        delivery: "RabbitDelivery",
        headers: Mapping[str, Any],
        dead_letter_headers: Iterable[Mapping[str, str | None]],
        exchange: str,
    ) -> Publication:
        """With as much of its failures as fits into a frame next to the message's own headers."""
        largest = self._pipeline.largest_header
        for account in dead_letter_headers:
            copy = self._copy(delivery, {**headers, **account}, exchange=exchange)
            if copy.header_size <= largest:
                return copy
        raise UnsendableError("the headers leave no room for the error")

    def _failures(self, delivery: "RabbitDelivery", failure: Failure) -> list[FailedAttempt]:
        latest = FailedAttempt(at=self._now(), attempt=delivery.attempt_or_first, failure=failure)
        return failures_after(delivery.headers, latest)
