"""Settles deliveries that did not succeed: publishes delayed copies and dead letters, or returns messages to the queue."""

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
"""Longest wait for the confirm of one copy."""
PATIENCE = timedelta(seconds=30)
"""Longest time to retry publishing a copy before its original is given back."""

POSTPONED = timedelta(seconds=1)
"""Delay of a marked message while another one runs alone."""

MakeCopy = Callable[[], Awaitable[Publication]]


class CopySettlement:
    """Implements `outbox.transports.rabbitmq.delivery.Settlement` for the deliveries of one subscription.

    A copy is confirmed before its original is acknowledged, so that no message is lost. While a copy cannot be published, the
    delivery stays in flight and keeps its share of the prefetch count, so that no message is redelivered in a loop.
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
        """Publishes a copy for the next attempt after `delay`. Dead-letters the message if the copy cannot be sent."""
        failures = self._failures(delivery, failure)
        headers = self._headers(delivery) | {ATTEMPT: delivery.attempt + 1}

        async def make_copy() -> Publication:
            exchange = await self._exchanges.to_delay(self._exchange, delay)
            return self._copy_that_fits(delivery, headers, retry_headers(failures), exchange)

        if (refused := await self._replace(delivery, make_copy)) is not None:
            # The dead letter shows what the handler raised, and why there is no further attempt.
            message = f"{failure.message} (and it could not be retried: {refused.failure})"
            await self.dead_letter(delivery, Cause.REFUSED, replace(failure, message=message))

    async def postpone(self, delivery: "RabbitDelivery", delay: timedelta) -> None:
        """Publishes a copy for the same attempt after `delay`. Dead-letters the message if the copy cannot be sent."""

        async def make_copy() -> Publication:
            exchange = await self._exchanges.to_delay(self._exchange, delay)
            return self._copy(delivery, self._headers(delivery), exchange=exchange)

        if (refused := await self._replace(delivery, make_copy)) is not None:
            await self.dead_letter(delivery, Cause.REFUSED, refused.failure)

    async def dead_letter(self, delivery: "RabbitDelivery", cause: Cause, failure: Failure) -> None:
        """Publishes a dead letter, or rejects the original if the broker is certain to dead-letter it.

        Raises `BrokerUnavailableError` if neither is possible now. The message stays in flight, to be settled again.
        """
        failures = self._failures(delivery, failure)

        async def make_copy() -> Publication:
            exchange = await self._exchanges.to_dead_letters(self._exchange)
            if exchange is None:
                raise UnsendableError(f"this user may not write to exchange {dead_letter_exchange(self._exchange)!r}")
            try:
                return self._copy_that_fits(delivery, self._headers(delivery), dead_letter_headers(cause, failures), exchange)
            except UnsendableError:
                # A dead letter without its failure is better than none.
                return self._copy(delivery, {}, exchange=exchange)

        if (refused := await self._replace(delivery, make_copy, keep=True)) is None:
            return
        # Checked for each message: the queue may have been replaced by one that drops rejected messages.
        if not await self._exchanges.rejects_are_safe(self._exchange, self._queue, ordered=self._in_order):
            raise BrokerUnavailableError(f"its dead letter could not be published: {refused.failure}; the message is kept")
        delivery.reject()

    async def give_back(self, delivery: "RabbitDelivery") -> None:
        """Returns the message to its queue, or replaces it by a copy if it is marked as running alone."""
        if delivery.arrival.mark is None:
            delivery.give_back()
            return
        # The broker counts the return as a delivery. For a marked message that count would look like a crash; a copy starts at
        # zero. If the copy cannot be published, `isolate` has given the original back.
        with suppress(StaleDeliveryError):
            await self.isolate(delivery)

    async def isolate(self, delivery: "RabbitDelivery") -> None:
        """Publishes a copy with a new mark and a delivery count of zero to the end of the queue."""
        await self._mark(delivery, self._queue_exchange)

    async def _mark(self, delivery: "RabbitDelivery", find_exchange: Callable[[], Awaitable[str]]) -> None:
        headers = self._headers(delivery) | {ISOLATED: str(uuid4())}

        async def make_copy() -> Publication:
            return self._copy(delivery, headers, exchange=await find_exchange())

        if (refused := await self._replace(delivery, make_copy)) is not None:
            delivery.give_back()
            raise StaleDeliveryError(f"the message could not be marked: {refused.failure}; it was given back")

    async def _queue_exchange(self) -> str:
        return await self._exchanges.to_queue(self._exchange)

    async def _delayed_queue_exchange(self) -> str:
        try:
            return await self._exchanges.to_delay(self._exchange, POSTPONED)
        except TopologyError:
            return await self._queue_exchange()

    async def begin_alone(self, delivery: "RabbitDelivery") -> None:
        """See `Settlement.begin_alone`."""
        await self._isolation.begin(delivery.arrival)

    def end_alone(self, delivery: "RabbitDelivery") -> None:
        """See `Settlement.end_alone`."""
        self._isolation.end(delivery.arrival)

    async def postpone_marked(self, delivery: "RabbitDelivery") -> None:
        """Publishes a copy with a new mark that returns to the queue after `POSTPONED`."""
        delivery.arrival.postponed = True
        try:
            with suppress(StaleDeliveryError):  # the original was given back, or its channel has ended
                await self._mark(delivery, self._delayed_queue_exchange)
        except asyncio.CancelledError:
            delivery.arrival.postponed = False  # nothing else would settle it
            raise

    def redeliveries(self, delivery: "RabbitDelivery") -> int:
        """See `Settlement.redeliveries`."""
        return self._redeliveries.count((self._queue, delivery.arrival.identity))

    def record_return(self, arrival: "Arrival") -> None:
        """Records that the broker got the message back although this worker did not crash."""
        self._redeliveries.record((self._queue, arrival.identity))

    async def _replace(self, delivery: "RabbitDelivery", make_copy: MakeCopy, *, keep: bool = False) -> Refused | None:
        """Publishes a copy, then acknowledges the original. Returns a refusal, with nothing settled, if no retry can help.

        Raises `StaleDeliveryError` if the channel ends first, or after `PATIENCE`, when the message was given back. With
        `keep`, and in ordered queues, the message stays in flight instead, and this raises `BrokerUnavailableError`.
        """
        deadline = asyncio.get_running_loop().time() + PATIENCE.total_seconds()
        pauses = Pauses()
        while True:
            match result := await self._publish(make_copy):
                case Confirmed():
                    delivery.ack()
                    # Until the acknowledgement has left, a crash would leave both the copy and the original.
                    await delivery.source.flush()
                    return None
                case Refused(failure) if result is not NACKED:
                    return result
                case Refused(failure) | NotSent(failure) | Unconfirmed(failure):
                    reason = str(failure)
                case Unroutable():
                    reason = "no queue is bound for it"
                case _:
                    assert_never(result)
            pause = pauses.next().total_seconds()
            if asyncio.get_running_loop().time() + pause > deadline:
                # `keep`: given back, a dead letter would only run and fail again, and some queues drop a message that is given
                # back too often. In order: a message that is given back alone is overtaken by later ones.
                if keep or self._in_order:
                    raise BrokerUnavailableError(f"a copy could not be published: {reason}")
                delivery.give_back()
                raise StaleDeliveryError(f"its copy could not be published ({reason}); the message was given back")
            await delivery.pause(pause)
            with suppress(BrokerUnavailableError, TopologyError):
                await self._exchanges.declare_missing(self._exchange, self._queue)

    async def _publish(self, make_copy: MakeCopy) -> SendResult:
        try:
            publication = await make_copy()
        except UnsendableError as error:
            return Refused(Failure("unsendable", str(error)))
        except (BrokerUnavailableError, TopologyError) as error:
            return NotSent(Failure.of(error))
        (result,) = await self._pipeline.send([publication], timeout=COPY_TIMEOUT)
        return result

    def _headers(self, delivery: "RabbitDelivery") -> dict[str, Any]:
        """Returns the headers that a copy adds to, or replaces in, those of the message."""
        headers: dict[str, Any] = {**delivery.changed_headers, ROUTING_KEY: delivery.routing_key}
        if (expires_at := delivery.expires_at) is not None:
            headers[EXPIRES_AT] = encode_instant(expires_at)
        if crashes := delivery.crashes:
            headers[CRASHES] = crashes
        return headers

    def _copy(self, delivery: "RabbitDelivery", headers: Mapping[str, Any], *, exchange: str) -> Publication:
        header, body = delivery.arrival.header, delivery.arrival.body
        return copy_of(delivery.message_id, header, headers, body, exchange=exchange, routing_key=self._queue)

    def _copy_that_fits(
        self,
        delivery: "RabbitDelivery",
        headers: Mapping[str, Any],
        failure_headers: Iterable[Mapping[str, str | None]],
        exchange: str,
    ) -> Publication:
        """Makes a copy with the first of `failure_headers`, longest first, that fits into one frame with the other headers."""
        largest = self._pipeline.largest_header
        for failure_header in failure_headers:
            copy = self._copy(delivery, {**headers, **failure_header}, exchange=exchange)
            if copy.header_size <= largest:
                return copy
        raise UnsendableError("the headers leave no room for the error")

    def _failures(self, delivery: "RabbitDelivery", failure: Failure) -> list[FailedAttempt]:
        latest = FailedAttempt(at=self._now(), attempt=delivery.attempt_or_first, failure=failure)
        return failures_after(delivery.headers, latest)
