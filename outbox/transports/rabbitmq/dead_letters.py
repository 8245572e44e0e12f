"""Consumes dead letter queues for an archive, and reads the headers of each dead letter."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from outbox.core import codec
from outbox.core.failures import FailedAttempt, decode_failures
from outbox.core.outcome import Failure
from outbox.core.urls import amqp_url
from outbox.errors import ConfigurationError, MalformedMessageError
from outbox.ports import DeadMessage, ReceiveDead
from outbox.transports.rabbitmq.connection import CONNECT_TIMEOUT, BorrowedConnection, Link, OwnedConnection, UnresponsiveError
from outbox.transports.rabbitmq.consume_channel import ConsumerChannel
from outbox.transports.rabbitmq.header_json import read_content
from outbox.transports.rabbitmq.inbound import Arrival
from outbox.transports.rabbitmq.message_format import (
    CAUSE,
    ROUTING_COMMANDS,
    is_internal_header,
    read_attempt,
    read_hlc,
    read_requeue_count,
    read_routing_key,
    read_text,
    read_tracking_ids,
)
from outbox.transports.rabbitmq.topology import dead_letter_queue, depth_of, exchange_of_dead_letters

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection as HostConnection


T = TypeVar("T")

UNKNOWN = "unknown"
"""Cause of a dead letter without any, such as a message that an operator published to the dead letter queue."""

_EXCEPTION = (codec.EXCEPTION_TYPE, codec.EXCEPTION_MESSAGE, codec.EXCEPTION_TRACEBACK)
_BROKERS_REASONS = {
    "expired": Failure("Expired", "its time ran out before it was handled"),
    "rejected": Failure("Rejected", "it was rejected without a reason"),
    "maxlen": Failure("QueueTooLong", "its queue was full"),
    "delivery_limit": Failure("DeliveryLimit", "the broker had delivered it as often as its limit allows"),
}


def read_dead_message(queue: str, arrival: Arrival) -> DeadMessage:
    """Decodes a dead letter of `queue`. Never raises: leaves out what cannot be read.

    Texts may contain characters that PostgreSQL cannot store, such as NUL.
    """
    content = read_content(arrival.header)
    headers, properties = content.headers, content.properties
    entries = headers.get("x-death")
    entries = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    # The broker adds this entry when it dead-letters a message itself.
    broker_entry: Mapping[str, Any] = next((entry for entry in entries if entry.get("queue") == queue), {})
    attempt = _read_or(lambda: read_attempt(headers), 1)
    failure, failures = _read_failures(headers, broker_entry, attempt)
    tracking_ids: tuple[str, ...] = _read_or(lambda: read_tracking_ids(headers), ())
    message_id = None
    # A garbled id could be mistaken for that of another message.
    if "message_id" not in content.garbled:
        message_id = properties.get("message_id") or (tracking_ids[-1] if tracking_ids else None)
    # Dead letters are routed by the name of their queue. The original routing key is in a header, or in the broker's entry.
    keys = broker_entry.get("routing-keys")
    arrived_with = keys[0] if isinstance(keys, list) and keys and isinstance(keys[0], str) else arrival.method.routing_key
    reserved = {name: value for name, value in headers.items() if _is_reserved(name)}
    return DeadMessage(
        queue=queue,
        exchange=exchange_of_dead_letters(arrival.method.exchange),
        message_id=message_id,
        routing_key=_read_or(lambda: read_routing_key(headers, arrived_with), arrived_with),
        body=arrival.body,
        cause=str(headers.get(CAUSE) or broker_entry.get("reason") or UNKNOWN),
        failure=failure,
        by_broker=codec.EXCEPTION_TYPE not in headers,
        content_type=properties.get("content_type"),
        headers={name: value for name, value in headers.items() if name not in reserved},
        # The first part of a JSON pointer is the name of the header.
        header_types={
            pointer: type_
            for pointer, type_ in content.types.items()
            if not _is_reserved(pointer.split("/", 2)[1].replace("~1", "/").replace("~0", "~"))
        },
        properties={**properties, **({"headers": reserved} if reserved else {})},
        tracking_ids=tracking_ids,
        ordering_key=_read_or(lambda: read_text(headers, codec.ORDERING_KEY), None),
        hlc=_read_or(lambda: read_hlc(headers), None),
        created_at=_instant(properties.get("timestamp")),
        failed_at=failures[-1].at if failures else _instant(broker_entry.get("time")),
        attempt=attempt,
        requeue_count=_read_or(lambda: read_requeue_count(headers), 0),
        failures=failures,
    )


def _read_failures(
    headers: Mapping[str, Any], broker_entry: Mapping[str, Any], attempt: int
) -> tuple[Failure, Sequence[FailedAttempt]]:
    """Returns the failure that made it a dead letter, and all failures."""
    failures = decode_failures(headers.get(codec.FAILURES))
    if codec.EXCEPTION_TYPE in headers:
        last = failures[-1].failure if failures else Failure("", "")
        type_, message, traceback = (str(headers.get(name) or "") for name in _EXCEPTION)
        return Failure(type_, message, traceback, last.worker, last.version), failures
    reason = str(broker_entry.get("reason") or UNKNOWN)
    failure = _BROKERS_REASONS.get(reason, Failure(reason.capitalize(), "it does not say why it is here"))
    if (failed_at := _instant(broker_entry.get("time"))) is None:
        return failure, failures
    return failure, [*failures, FailedAttempt(at=failed_at, attempt=attempt, failure=failure)]


def _instant(text: object) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text).astimezone(UTC) if isinstance(text, str) else None
    return None


def _read_or(read: Callable[[], T], default: T) -> T:
    try:
        return read()
    except MalformedMessageError:
        return default


def _is_reserved(name: str) -> bool:
    """Whether a header must not be sent with the message again."""
    return is_internal_header(name) or name in ROUTING_COMMANDS


FIRST_PREFETCH = 1
"""Prefetch count of a queue whose message sizes are unknown."""
MOST_LEFT = 10_000
"""With this many dead letters left in one queue, no more are taken until its channel ends: each one takes about a kilobyte."""


class RabbitDeadLetterQueues:
    """Implements `outbox.ports.DeadLetterQueues` on RabbitMQ.

    Takes either a `url`, and opens a connection, or a `connection` of aio-pika, which is left open. `first_prefetch` is the
    prefetch count of a queue whose message sizes are not known yet.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        connection: "HostConnection | None" = None,
        connect_timeout: timedelta = CONNECT_TIMEOUT,
        first_prefetch: int = FIRST_PREFETCH,
    ) -> None:
        if (url is None) == (connection is None):
            raise ConfigurationError("RabbitMQ takes either a URL or a connection")
        self._link: Link
        if connection is not None:
            self._link = BorrowedConnection(connection)
        else:
            address = amqp_url(url or "", argument="url")
            self._link = OwnedConnection(address, purpose="outbox dead letters", connect_timeout=connect_timeout)
        self._first_prefetch = first_prefetch
        self._sizes: dict[str, int] = {}

    @asynccontextmanager
    async def collect(
        self, queue: str, receive: ReceiveDead, *, prefetch_count: int, max_bytes: int
    ) -> "AsyncIterator[asyncio.Event]":
        """See `outbox.ports.DeadLetterQueues.collect`."""
        # RabbitMQ has no prefetch limit in bytes, so the prefetch count is chosen by the sizes of earlier messages.
        size = self._sizes.get(queue)
        chosen = (
            min(self._first_prefetch, prefetch_count) if size is None else _prefetch_count_for(size, prefetch_count, max_bytes)
        )
        intake = _Intake(queue, receive, chosen, most=prefetch_count, max_bytes=max_bytes)
        connection = await self._link.open()
        try:
            channel = await ConsumerChannel.open(
                connection,
                dead_letter_queue(queue),
                prefetch_count=chosen,
                on_arrival=intake.on_arrival,
                on_returned=lambda _: None,  # the delivery count of a dead letter is not used
                in_order=True,
            )
        except UnresponsiveError:
            self._link.discard(connection)
            raise
        following = asyncio.create_task(intake.follow(channel.ended))
        resizing = asyncio.create_task(intake.resize(channel))
        try:
            yield intake.ended
        finally:
            following.cancel()
            resizing.cancel()
            if intake.largest is not None:
                self._sizes[queue] = intake.largest
            await channel.cancel()
            await channel.close()

    async def count(self, queue: str) -> int:
        """See `outbox.ports.DeadLetterQueues.count`."""
        return await depth_of(self._link, dead_letter_queue(queue)) or 0

    async def close(self) -> None:
        """See `outbox.ports.DeadLetterQueues.close`."""
        await self._link.close()


class OnSettled(Protocol):
    """Called with the size of each dead letter that was acknowledged, or `left` at the broker."""

    def __call__(self, size: int, *, left: bool) -> None: ...


class _Intake:
    """Receives dead letters on one channel. Consumes with a larger prefetch count when the dead letters leave room for it.

    Sets `ended` when the caller should open a channel with a smaller one. Dead letters that are left at the broker use up the
    prefetch count of their consumer, so that another one takes its place on the channel.
    """

    def __init__(self, queue: str, receive: ReceiveDead, prefetch_count: int, *, most: int, max_bytes: int) -> None:
        self.ended = asyncio.Event()
        self.largest: int | None = None
        self._queue = queue
        self._receive = receive
        self._prefetch_count = prefetch_count
        self._most = most
        self._max_bytes = max_bytes
        self._bytes = 0
        self._in_flight = 0
        self._settled = 0
        self._left = 0
        self._resize = asyncio.Event()
        self._idle = asyncio.Event()

    async def follow(self, channel_ended: asyncio.Event) -> None:
        """Sets `ended` when the channel ends."""
        await channel_ended.wait()
        self.ended.set()

    async def resize(self, channel: ConsumerChannel) -> None:
        """Consumes with another prefetch count each time that this is worth it."""

        async def new_prefetch_count() -> int:
            # Without the rest, because both prefetch counts together could exceed `max_bytes`.
            await self._idle.wait()
            self._prefetch_count, self._left, self._settled = self._possible, 0, 0
            self._resize.clear()
            return self._prefetch_count

        while not channel.ended.is_set() and len(channel.in_flight) < MOST_LEFT:
            await self._resize.wait()
            await channel.consume_again(dead_letter_queue(self._queue), new_prefetch_count)

    def on_arrival(self, source: ConsumerChannel, arrival: Arrival) -> None:
        """Hands a dead letter over, unless those in flight exceed `max_bytes` with it: then ends the channel."""
        size = len(arrival.body)
        self.largest = max(self.largest or 0, size)
        self._bytes += size
        if self._bytes > self._max_bytes and self._bytes > size:
            # It and all others in flight are given back, and come again on the next channel.
            arrival.body = b""
            source.hold()
            self.ended.set()
        else:
            self._in_flight += 1
            self._idle.clear()
            self._receive(RabbitDeadDelivery(self._queue, arrival, source, self._on_settled))

    def _on_settled(self, size: int, *, left: bool) -> None:
        """Changes the prefetch count when twice as many dead letters as now could be in flight."""
        self._bytes -= size
        self._in_flight -= 1
        self._settled += 1
        self._left += left
        usable = self._prefetch_count - self._left
        if self._settled >= usable:
            if self._possible >= 2 * usable:
                self._resize.set()
            elif not self._in_flight:
                self.largest, self._settled = None, 0  # the next ones may be smaller
        if not self._in_flight:
            self._idle.set()

    @property
    def _possible(self) -> int:
        return _prefetch_count_for(self.largest or 0, self._most, self._max_bytes)


def _prefetch_count_for(size: int, most: int, max_bytes: int) -> int:
    """Returns how many messages of that size may be in flight."""
    return max(min(max_bytes // max(size, 1), most), 1)


class RabbitDeadDelivery:
    """Implements `outbox.ports.DeadDelivery`."""

    __slots__ = ("_arrival", "_dead", "_on_settled", "_queue", "_source")

    def __init__(self, queue: str, arrival: Arrival, source: ConsumerChannel, on_settled: "OnSettled") -> None:
        self._queue = queue
        self._arrival = arrival
        self._source = source
        self._on_settled = on_settled
        self._dead: DeadMessage | None = None

    @property
    def dead(self) -> DeadMessage:
        """See `outbox.ports.DeadDelivery`."""
        if self._dead is None:
            self._dead = read_dead_message(self._queue, self._arrival)
        return self._dead

    def ack(self) -> None:
        """See `outbox.ports.DeadDelivery`."""
        self._source.ack(self._arrival.tag)
        self._on_settled(len(self._arrival.body), left=False)

    def leave(self) -> None:
        """See `outbox.ports.DeadDelivery`."""
        size = len(self._arrival.body)
        # Frees most of the memory: the channel keeps the arrival.
        self._arrival.body, self._arrival.raw_header, self._dead = b"", b"", None
        self._on_settled(size, left=True)
