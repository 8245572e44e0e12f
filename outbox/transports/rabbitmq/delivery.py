"""A delivery from RabbitMQ: its failures, its redelivery count, and isolation of poison messages."""

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
    """What failed of a message so far, by the headers that it came with, and now."""
    return extended_failures(decode_failures(headers.get(FAILURES)), latest)


def retry_headers(failures: Sequence[FailedAttempt]) -> Iterator[dict[str, str | None]]:
    """The headers of a message that will be tried again. None: it goes without the header that it came with."""
    brief = [replace(failed, failure=replace(failed.failure, traceback="")) for failed in failures]
    latest = brief[-1].failure
    barest = replace(brief[-1], failure=replace(latest, message=latest.message[:_BAREST_MESSAGE]))
    for kept in (failures, brief, brief[-_FEW:], [barest]):
        yield {FAILURES: _encodable(encode_failures(kept))}
    yield {FAILURES: None}


def dead_letter_headers(cause: Cause, failures: Sequence[FailedAttempt]) -> Iterator[dict[str, str | None]]:
    """The headers of a dead letter, whose last failure is the last of `failures`.

    The failure that it is a dead letter for is worth more than those before it: its traceback is cut only when no other
    failure is left, its message only when the traceback is gone, and its type at the very end.
    """
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
"""How much stays of the failures, and how many characters of the last one's traceback and message."""


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


class Settlement(Protocol):
    """What it takes to settle otherwise than by an acknowledgement."""

    async def retry(self, delivery: "RabbitDelivery", delay: "timedelta", failure: Failure) -> None:
        """Has a copy for the next attempt wait for `delay`, then acknowledges."""
        ...

    async def postpone(self, delivery: "RabbitDelivery", delay: "timedelta") -> None:
        """Has a copy for the same attempt wait for `delay`, then acknowledges."""
        ...

    async def dead_letter(self, delivery: "RabbitDelivery", cause: Cause, failure: Failure) -> None:
        """Puts a copy with the failure among the dead letters, then acknowledges."""
        ...

    async def give_back(self, delivery: "RabbitDelivery") -> None:
        """Has the message delivered again as it is."""
        ...

    async def isolate(self, delivery: "RabbitDelivery") -> None:
        """Queues a marked copy, then acknowledges."""
        ...

    async def begin_alone(self, delivery: "RabbitDelivery") -> None:
        """Afterwards no other marked message is in flight, and none arrives."""
        ...

    def end_alone(self, delivery: "RabbitDelivery") -> None:
        """The end of that."""
        ...

    def redeliveries(self, delivery: "RabbitDelivery") -> int:
        """How many earlier deliveries ended in this process without its death, and were counted all the same."""
        ...


class RabbitDelivery:
    """Implements `outbox.ports.Delivery`. What it carries is read when it is asked for, once.

    `noted` are the headers that its attempts in flight have changed.
    """

    __slots__ = ("_alone", "_incoming", "_message", "_settlement", "arrival", "noted", "settled", "source")

    def __init__(self, arrival: "Arrival", source: "ConsumerChannel", settlement: Settlement) -> None:
        self.arrival = arrival
        self.source = source
        self._settlement = settlement
        self._message: Message | None = None
        self._incoming: IncomingMessage | None = None
        self._alone = False
        self.noted: Mapping[str, Any] = NO_HEADERS
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
        """The aio-pika message, with its original routing key. It is settled by its outcome: acknowledging it is refused."""
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
        """As they arrived, or as they would arrive after the attempts that failed in flight."""
        return {**self.arrival.headers, **self.noted} if self.noted else self.arrival.headers

    @property
    def gone(self) -> bool:
        """See `outbox.ports.Delivery`."""
        return self.settled or self.source.lost

    async def note_failed(self, failed: "FailedAttempt") -> None:
        """See `outbox.ports.Delivery`. Nothing can be written to a message in flight: other workers will know nothing of it."""
        self._require_unsettled()
        trail = encode_failures(failures_after(self.headers, failed))
        self.noted = {ATTEMPT: failed.attempt + 1, FAILURES: trail}

    @property
    def attempt_or_first(self) -> int:
        """The attempt count, or 1 where it cannot be read."""
        try:
            return self.attempt
        except MalformedMessageError:
            return 1

    @property
    def crashes(self) -> int:
        """See `outbox.ports.Delivery`. What other workers gave back in good order counts too, on brokers before 4.3."""
        return read_count(self.arrival.headers, CRASHES) + self._own_crashes

    @property
    def blamed(self) -> bool:
        """See `outbox.ports.Delivery`."""
        return self.arrival.mark is not None and self._own_crashes > 0

    @property
    def _own_crashes(self) -> int:
        """Since it became this entry of the queue."""
        count = read_count(self.arrival.headers, DELIVERY_COUNT)
        return max(0, count - self._settlement.redeliveries(self)) if count else 0

    @property
    def message_id(self) -> str:
        """Its id; "" if it has none that can be read. A copy of it must have the same."""
        try:
            return self.message.id
        except MalformedMessageError:
            return self.arrival.properties.message_id or ""

    @property
    def routing_key(self) -> str:
        """What it was first sent with, as far as that can be read."""
        arrived_with = self.arrival.method.routing_key
        try:
            return read_routing_key(self.arrival.headers, arrived_with)
        except MalformedMessageError:
            return arrived_with

    @property
    def expires_at(self) -> "datetime | None":
        """Its deadline, as far as that can be read."""
        try:
            return self.message.expires_at
        except MalformedMessageError:
            return None

    async def isolate(self) -> bool:
        """See `outbox.ports.Delivery`."""
        if self.arrival.postponed:
            return False
        self._require_unsettled()
        if self.arrival.mark is None:
            await self._settlement.isolate(self)
            return False
        self._alone = True
        await self._settlement.begin_alone(self)
        return True

    async def settle(self, outcome: DeliveryOutcome) -> None:
        """See `outbox.ports.Delivery`."""
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
        """The broker may forget it. Raises `StaleDeliveryError`."""
        self.source.ack(self.arrival.tag)
        self.settled = True

    def give_back(self) -> None:
        """The broker shall deliver it again. Raises `StaleDeliveryError`."""
        self.source.give_back(self.arrival.tag)
        self.settled = True

    def reject(self) -> None:
        """The broker shall dead-letter it. Raises `StaleDeliveryError`."""
        self.source.reject(self.arrival.tag)
        self.settled = True

    async def pause(self, seconds: float) -> None:
        """Waits before another try. Raises `StaleDeliveryError` as soon as the delivery is no longer ours."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.source.ended.wait(), seconds)
        self.source.require_open()

    def _require_unsettled(self) -> None:
        if self.settled:
            raise StaleDeliveryError("the delivery was settled before")
        if self.arrival.postponed:
            raise StaleDeliveryError("the message was sent away while another ran alone, and comes again")
        self.source.require_open()


_MAX_TRACKED = 10_000


class RedeliveryCounter:
    """Remembers, for this process, how often each message was let go of by a worker that lived on.

    Quorum queues count in `x-delivery-count` how often a message came back. Before RabbitMQ 4.3 that includes what was given
    back in good order, and on every version what a lost connection gave back. What this process knows of is not counted
    against a message; what other processes gave back is: such a message is at worst run alone once more than necessary.
    """

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}

    def note(self, key: Hashable) -> None:
        """It was let go of once more."""
        self._counts[key] = self._counts.pop(key, 0) + 1
        if len(self._counts) > _MAX_TRACKED:
            del self._counts[next(iter(self._counts))]

    def of(self, key: Hashable) -> int:
        """How often it was."""
        return self._counts.get(key, 0)


QUIET = timedelta(milliseconds=100)
"""So long no other marked message may have arrived before one runs alone: the others are on their way back by then."""


class Member(Protocol):
    """A subscription, as far as isolation is concerned with it."""

    async def postpone_marked(self, running: Sequence["Arrival"]) -> bool:
        """Sends marked messages in flight away for a while, but for those that are `running`; whether there were any."""
        ...


class Isolation:
    """Shared by all subscriptions of a broker.

    When a worker dies, the broker counts that against every message that it had in flight, and for a marked one that count is
    the verdict. So while one runs alone, the other marked ones, also those that arrive meanwhile, are sent away for a while.

    What remains: a marked message that waits for handlers that were already running, and a worker that dies of one of these.
    """

    def __init__(self) -> None:
        self._members: set[Member] = set()
        self._running: list[Arrival] = []
        self._arrived = asyncio.Event()
        self._sweeper: asyncio.Task[None] | None = None

    def join(self, member: Member) -> None:
        """Another subscription that may hold marked messages."""
        self._members.add(member)

    def leave(self, member: Member) -> None:
        """It holds none any more."""
        self._members.discard(member)
        if not self._members:
            self._running.clear()
            self._stop_sweeping()

    def noticed(self, arrival: "Arrival") -> None:
        """A message has arrived."""
        if arrival.mark is not None:
            self._arrived.set()

    async def begin(self, arrival: "Arrival") -> None:
        """Afterwards no other marked message is in flight, or stays there, until `end`."""
        self._running.append(arrival)
        # Until none has arrived for a while: the others are on their way back to other workers by then.
        while True:
            if not await self._postpone_others():
                try:
                    async with asyncio.timeout(QUIET.total_seconds()):
                        await self._arrived.wait()
                except TimeoutError:
                    break
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep(), name="outbox isolation")

    def end(self, arrival: "Arrival") -> None:
        """It runs no more."""
        self._running = [other for other in self._running if other is not arrival]
        if not self._running:
            self._stop_sweeping()

    async def _sweep(self) -> None:
        while True:
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
