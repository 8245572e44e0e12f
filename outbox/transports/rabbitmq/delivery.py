"""A delivery from RabbitMQ: its failures, its redelivery count, and the isolation of poison messages."""

import asyncio
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from aio_pika import IncomingMessage
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from outbox.core.codec import ATTEMPT, EXCEPTION_MESSAGE, EXCEPTION_TRACEBACK, EXCEPTION_TYPE, FAILURES
from outbox.core.failures import FailedAttempt, decode_failures, encode_failures, extended_failures
from outbox.core.message import NO_HEADERS, Message
from outbox.core.outcome import Cause, Dead, DeliveryOutcome, Done, Failure, Postponed, Retry, Returned
from outbox.errors import MalformedMessageError, StaleDeliveryError
from outbox.transports.rabbitmq.message_format import (
    CAUSE,
    CRASHES,
    DELIVERY_COUNT,
    read_attempt,
    read_count,
    read_message,
    read_routing_key,
)

if TYPE_CHECKING:
    from datetime import datetime

    from outbox.transports.rabbitmq.consume_channel import ConsumerChannel
    from outbox.transports.rabbitmq.inbound import Arrival


_FEW = 5
_LONGEST_TYPE = 250
_SHORTEST_TYPE = 60
_BAREST_MESSAGE = 100


def failures_after(headers: Mapping[str, Any], latest: FailedAttempt) -> list[FailedAttempt]:
    """Returns the failures in `headers`, and `latest`."""
    return extended_failures(decode_failures(headers.get(FAILURES)), latest)


def retry_headers(failures: Sequence[FailedAttempt]) -> Iterator[dict[str, str | None]]:
    """Yields headers of a message that is retried, each set shorter than the one before. None removes a header."""
    brief = [replace(failed, failure=replace(failed.failure, traceback="")) for failed in failures]
    latest = brief[-1].failure
    barest = replace(brief[-1], failure=replace(latest, message=latest.message[:_BAREST_MESSAGE]))
    for kept in (failures, brief, brief[-_FEW:], [barest]):
        yield {FAILURES: _encodable(encode_failures(kept))}
    yield {FAILURES: None}


def dead_letter_headers(cause: Cause, failures: Sequence[FailedAttempt]) -> Iterator[dict[str, str | None]]:
    """Yields headers of a dead letter, each set shorter than the one before. The last of `failures` is why it failed."""
    failure = failures[-1].failure
    histories = list(retry_headers(failures))
    for history, traceback, message in _SHORTER:
        yield histories[history] | {
            CAUSE: cause.value,
            EXCEPTION_TYPE: _encodable(failure.type[:_LONGEST_TYPE]),
            EXCEPTION_MESSAGE: _encodable(failure.message[:message]) if message else None,
            EXCEPTION_TRACEBACK: _encodable(failure.traceback[-traceback:]) if traceback else None,
        }
    yield {FAILURES: None, CAUSE: cause.value, EXCEPTION_TYPE: _encodable(failure.type[-_SHORTEST_TYPE:])}


_WHOLE, _MOST, _SOME, _LATEST, _NONE = range(5)
# The last failure matters most: its traceback is cut only when no other failure is left, its message only when the traceback is
# gone, its type at the very end.
_SHORTER = (
    (_WHOLE, 8_000, 2_000),
    (_MOST, 8_000, 2_000),
    (_SOME, 8_000, 2_000),
    (_LATEST, 8_000, 2_000),
    (_LATEST, 2_000, 2_000),
    (_LATEST, 500, 2_000),
    (_LATEST, 0, 2_000),
    (_LATEST, 0, 500),
    (_LATEST, 0, 100),
    (_NONE, 0, 100),
    (_NONE, 0, 0),
)
"""Which failures to keep, and how many characters of the last one's traceback and message."""


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


class Settlement(Protocol):
    """Settles deliveries in ways other than acknowledging them."""

    async def retry(self, delivery: "RabbitDelivery", delay: "timedelta", failure: Failure) -> None:
        """Publishes a copy for the next attempt after `delay`, then acknowledges."""
        ...

    async def postpone(self, delivery: "RabbitDelivery", delay: "timedelta") -> None:
        """Publishes a copy for the same attempt after `delay`, then acknowledges."""
        ...

    async def dead_letter(self, delivery: "RabbitDelivery", cause: Cause, failure: Failure) -> None:
        """Publishes a dead letter with the failure, then acknowledges."""
        ...

    async def give_back(self, delivery: "RabbitDelivery") -> None:
        """Returns the message to its queue unchanged."""
        ...

    async def isolate(self, delivery: "RabbitDelivery") -> None:
        """Publishes a marked copy to the queue, then acknowledges."""
        ...

    async def begin_alone(self, delivery: "RabbitDelivery") -> None:
        """Returns when no other marked message is in flight. Keeps it so until `end_alone`."""
        ...

    def end_alone(self, delivery: "RabbitDelivery") -> None:
        """Ends what `begin_alone` began."""
        ...

    def redeliveries(self, delivery: "RabbitDelivery") -> int:
        """Number of earlier deliveries that the broker counted although this process did not crash."""
        ...


class RabbitDelivery:
    """Implements `outbox.ports.Delivery`. Decodes its message once, on access.

    `changed_headers` are the headers that attempts in this process have changed.
    """

    __slots__ = ("_alone", "_incoming", "_message", "_settlement", "arrival", "changed_headers", "settled", "source")

    def __init__(self, arrival: "Arrival", source: "ConsumerChannel", settlement: Settlement) -> None:
        self.arrival = arrival
        self.source = source
        self._settlement = settlement
        self._message: Message | None = None
        self._incoming: IncomingMessage | None = None
        self._alone = False
        self.changed_headers: Mapping[str, Any] = NO_HEADERS
        self.settled = False

    @property
    def message(self) -> Message:
        """See `outbox.ports.Delivery`."""
        if self._message is None:
            arrival = self.arrival
            if arrival.defect:
                raise MalformedMessageError(arrival.defect)
            self._message = read_message(arrival.properties, arrival.method.routing_key, arrival.body)
        return self._message

    @property
    def incoming(self) -> IncomingMessage:
        """The aio-pika message, with its original routing key. aio-pika refuses to acknowledge it: its outcome settles it."""
        if self._incoming is None:
            arrival = self.arrival
            method = Basic.Deliver(**(arrival.method._asdict() | {"routing_key": self.routing_key}))
            header = ContentHeader(body_size=len(arrival.body), properties=arrival.properties)
            delivered = DeliveredMessage(delivery=method, header=header, body=arrival.body, channel=self.source.channel)
            self._incoming = IncomingMessage(delivered, no_ack=True)
        return self._incoming

    @property
    def attempt(self) -> int:
        """See `outbox.ports.Delivery`."""
        return read_attempt(self.headers)

    @property
    def headers(self) -> "Mapping[str, Any]":
        """The headers, as they would arrive after the attempts that failed in this process."""
        return {**self.arrival.headers, **self.changed_headers} if self.changed_headers else self.arrival.headers

    @property
    def gone(self) -> bool:
        """See `outbox.ports.Delivery`."""
        return self.settled or self.source.lost

    @property
    def ending(self) -> None:
        """See `outbox.ports.Delivery`: no transaction spans PostgreSQL and RabbitMQ."""
        return None

    async def note_failed(self, failed: "FailedAttempt") -> None:
        """See `outbox.ports.Delivery`. Kept in this process only: AMQP cannot change a message in flight."""
        self._require_unsettled()
        failures = encode_failures(failures_after(self.headers, failed))
        self.changed_headers = {ATTEMPT: failed.attempt + 1, FAILURES: failures}

    @property
    def attempt_or_first(self) -> int:
        """The attempt count, or 1 where it cannot be read."""
        try:
            return self.attempt
        except MalformedMessageError:
            return 1

    @property
    def crashes(self) -> int:
        """See `outbox.ports.Delivery`. On brokers before 4.3, includes messages that other workers gave back normally."""
        return read_count(self.arrival.headers, CRASHES) + self._own_crashes

    @property
    def blamed(self) -> bool:
        """See `outbox.ports.Delivery`."""
        return self.arrival.mark is not None and self._own_crashes > 0

    @property
    def _own_crashes(self) -> int:
        """Crashes since this copy was published."""
        count = read_count(self.arrival.headers, DELIVERY_COUNT)
        return max(0, count - self._settlement.redeliveries(self)) if count else 0

    @property
    def message_id(self) -> str:
        """The message id; "" if it has no readable one. Copies keep it."""
        try:
            return self.message.id
        except MalformedMessageError:
            return self.arrival.properties.message_id or ""

    @property
    def routing_key(self) -> str:
        """The original routing key, if it can be read."""
        arrived_with = self.arrival.method.routing_key
        try:
            return read_routing_key(self.arrival.headers, arrived_with)
        except MalformedMessageError:
            return arrived_with

    @property
    def expires_at(self) -> "datetime | None":
        """The time of expiration, if it can be read."""
        try:
            return self.message.expires_at
        except MalformedMessageError:
            return None

    async def isolate(self) -> bool:
        """See `outbox.ports.Delivery`."""
        if self.arrival.postponed:
            return False
        self._require_unsettled()
        # AMQP cannot mark a message in flight. A marked copy starts with a delivery count of zero, so that a count on it later
        # means that a worker crashed while it was in flight.
        if self.arrival.mark is None:
            await self._settlement.isolate(self)
            return False
        self._alone = True
        await self._settlement.begin_alone(self)
        return True

    async def settle(self, outcome: DeliveryOutcome) -> None:
        """See `outbox.ports.Delivery`."""
        # First, because the settlement may raise: other marked messages must not wait for one that was lost.
        if self._alone:
            self._alone = False
            self._settlement.end_alone(self)
        self._require_unsettled()
        self.arrival.settling = True
        match outcome:
            case Done():
                self.ack()
            case Retry(delay, failure):
                await self._settlement.retry(self, delay, failure)
            case Postponed(delay):
                await self._settlement.postpone(self, delay)
            case Dead(cause, failure):
                await self._settlement.dead_letter(self, cause, failure)
            case Returned():
                await self._settlement.give_back(self)
            case _:
                assert_never(outcome)

    def ack(self) -> None:
        """Acknowledges the delivery. Raises `StaleDeliveryError`."""
        self.source.ack(self.arrival.tag)
        self.settled = True

    def give_back(self) -> None:
        """Returns the delivery to its queue. Raises `StaleDeliveryError`."""
        self.source.give_back(self.arrival.tag)
        self.settled = True

    def reject(self) -> None:
        """Has the broker dead-letter the delivery. Raises `StaleDeliveryError`."""
        self.source.reject(self.arrival.tag)
        self.settled = True

    async def pause(self, seconds: float) -> None:
        """Waits before another attempt. Raises `StaleDeliveryError` as soon as the channel has ended."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.source.ended.wait(), seconds)
        self.source.require_open()

    def _require_unsettled(self) -> None:
        if self.settled:
            raise StaleDeliveryError("the delivery was settled already")
        if self.arrival.postponed:
            raise StaleDeliveryError("the message was postponed while another ran alone, and is delivered again")
        self.source.require_open()


_MAX_TRACKED = 10_000


class RedeliveryCounter:
    """Counts how often this process gave each message back without having crashed.

    The `x-delivery-count` of quorum queues includes such returns: on every version after a lost connection, and before RabbitMQ
    4.3 also after a normal return. Returns by this process are subtracted. Returns by other processes are unknown here; at
    worst, a message runs alone once more than necessary.
    """

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}

    def record(self, key: Hashable) -> None:
        """Counts one more return of a message."""
        # Removed and added again, so that the first entry is always the one that was not updated for the longest time.
        self._counts[key] = self._counts.pop(key, 0) + 1
        if len(self._counts) > _MAX_TRACKED:
            del self._counts[next(iter(self._counts))]

    def count(self, key: Hashable) -> int:
        """Number of recorded returns."""
        return self._counts.get(key, 0)


QUIET = timedelta(milliseconds=100)
"""A marked message runs alone after no other one has arrived for this time, and none waits for room in the prefetch count."""
REFILL_LIMIT = timedelta(seconds=5)
"""How long a marked message waits, at most, for messages that have room but have not arrived."""


class Member(Protocol):
    """A subscription whose marked messages can be postponed."""

    async def postpone_marked(self, running: Sequence["Arrival"]) -> bool:
        """Postpones marked messages in flight, except those `running`. Returns whether there were any."""
        ...

    async def may_receive(self) -> bool:
        """Whether there is room for more messages, and some wait at the broker."""
        ...


class Isolation:
    """Runs one marked message at a time among all subscriptions of a broker.

    When a worker crashes, the broker counts a delivery for every message that was in flight. A marked message with a count is
    taken for the cause. While one marked message runs alone, all others are postponed, including those that arrive meanwhile.

    Known limit: if a handler that was already running crashes the worker, the marked message that waits for it is taken for
    the cause.
    """

    def __init__(self) -> None:
        self._members: set[Member] = set()
        self._running: list[Arrival] = []
        self._arrived = asyncio.Event()
        self._sweeper: asyncio.Task[None] | None = None

    def join(self, member: Member) -> None:
        """Adds a subscription that may have marked messages in flight."""
        self._members.add(member)

    def leave(self, member: Member) -> None:
        """Removes a subscription that has no messages in flight any more."""
        self._members.discard(member)
        if not self._members:
            self._running.clear()
            self._stop_sweeping()

    def record_arrival(self, arrival: "Arrival") -> None:
        """Records that a message has arrived."""
        if arrival.mark is not None:
            self._arrived.set()

    async def begin(self, arrival: "Arrival") -> None:
        """Returns when no other marked message is in flight. Postpones all that arrive until `end`."""
        self._running.append(arrival)
        deadline = asyncio.get_running_loop().time() + REFILL_LIMIT.total_seconds()
        # The broker refills the prefetch with further messages, which may be marked as well. Wait until no more arrive: if the
        # worker crashes before such a message is postponed, it is taken for the cause.
        while True:
            if not await self._postpone_others():
                try:
                    async with asyncio.timeout(QUIET.total_seconds()):
                        await self._arrived.wait()
                except TimeoutError:
                    may_receive = any([await member.may_receive() for member in list(self._members)])
                    if not may_receive or asyncio.get_running_loop().time() > deadline:
                        break
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep(), name="outbox isolation")

    def end(self, arrival: "Arrival") -> None:
        """Ends the run that `begin` started."""
        self._running = [other for other in self._running if other is not arrival]
        if not self._running:
            self._stop_sweeping()

    async def _sweep(self) -> None:
        while True:
            # If the message that runs alone crashes the worker, every marked message in flight would get a count as well.
            await self._arrived.wait()
            await self._postpone_others()

    def _stop_sweeping(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    async def _postpone_others(self) -> bool:
        self._arrived.clear()
        postponed = [await member.postpone_marked(self._running) for member in list(self._members)]
        return any(postponed)
