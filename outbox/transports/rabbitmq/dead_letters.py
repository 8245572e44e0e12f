"""Drains dead letter queues for an archive, and reads what RabbitMQ says about each dead message."""

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
    is_ours,
    read_attempt,
    read_hlc,
    read_requeue_count,
    read_routing_key,
    read_text,
    read_tracking_ids,
)
from outbox.transports.rabbitmq.topology import dead_letter_queue, depth_of, exchange_of_dead_letters

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection as LentConnection


T = TypeVar("T")

UNKNOWN = "unknown"
"""The cause of death of what says nothing about it, such as a message that an operator put among the dead letters."""

_EXCEPTION = (codec.EXCEPTION_TYPE, codec.EXCEPTION_MESSAGE, codec.EXCEPTION_TRACEBACK)
_BROKERS_REASONS = {
    "expired": Failure("Expired", "its time ran out before it was handled"),
    "rejected": Failure("Rejected", "it was rejected, without a word why"),
    "maxlen": Failure("QueueTooLong", "its queue was full"),
    "delivery_limit": Failure("DeliveryLimit", "the broker had delivered it as often as it does"),
}


def read_dead(queue: str, arrival: Arrival) -> DeadMessage:
    """The message that died in `queue`. Never raises: what cannot be read is left out.

    Text may contain what PostgreSQL's does not hold, such as NUL.
    """
    content = read_content(arrival.header)
    headers, properties = content.headers, content.properties
    deaths = headers.get("x-death")
    deaths = [death for death in deaths if isinstance(death, dict)] if isinstance(deaths, list) else []
    # What the broker says that it did, which it says where it dead-lettered the message itself.
    account: Mapping[str, Any] = next((death for death in deaths if death.get("queue") == queue), {})
    attempt = _readable(lambda: read_attempt(headers), 1)
    failure, trail = _read_failures(headers, account, attempt)
    tracking_ids: tuple[str, ...] = _readable(lambda: read_tracking_ids(headers), ())
    message_id = None
    # What was written by nobody, or cannot be read, must not be taken for another message's.
    if "message_id" not in content.garbled:
        message_id = properties.get("message_id") or (tracking_ids[-1] if tracking_ids else None)
    # Dead letters are routed by the name of their queue; a header of ours, or the broker's account, has the original.
    keys = account.get("routing-keys")
    arrived_with = keys[0] if isinstance(keys, list) and keys and isinstance(keys[0], str) else arrival.method.routing_key
    reserved = {name: value for name, value in headers.items() if _is_reserved(name)}
    return DeadMessage(
        queue=queue,
        exchange=exchange_of_dead_letters(arrival.method.exchange),
        message_id=message_id,
        routing_key=_readable(lambda: read_routing_key(headers, arrived_with), arrived_with),
        body=arrival.body,
        cause=str(headers.get(CAUSE) or account.get("reason") or UNKNOWN),
        failure=failure,
        by_broker=codec.EXCEPTION_TYPE not in headers,
        content_type=properties.get("content_type"),
        headers={name: value for name, value in headers.items() if name not in reserved},
        # Of a JSON pointer the first part names the header.
        header_types={
            pointer: type_
            for pointer, type_ in content.types.items()
            if not _is_reserved(pointer.split("/", 2)[1].replace("~1", "/").replace("~0", "~"))
        },
        properties={**properties, **({"headers": reserved} if reserved else {})},
        tracking_ids=tracking_ids,
        ordering_key=_readable(lambda: read_text(headers, codec.ORDERING_KEY), None),
        hlc=_readable(lambda: read_hlc(headers), None),
        created_at=_instant(properties.get("timestamp")),
        died_at=trail[-1].at if trail else _instant(account.get("time")),
        attempt=attempt,
        requeue_count=_readable(lambda: read_requeue_count(headers), 0),
        trail=trail,
    )


def _read_failures(
    headers: Mapping[str, Any], account: Mapping[str, Any], attempt: int
) -> tuple[Failure, Sequence[FailedAttempt]]:
    """The failure that it is a dead letter for, and all of them."""
    trail = decode_failures(headers.get(codec.FAILURES))
    if codec.EXCEPTION_TYPE in headers:
        last = trail[-1].failure if trail else Failure("", "")
        type_, message, traceback = (str(headers.get(name) or "") for name in _EXCEPTION)
        return Failure(type_, message, traceback, last.worker, last.version), trail
    reason = str(account.get("reason") or UNKNOWN)
    failure = _BROKERS_REASONS.get(reason, Failure(reason.capitalize(), "it says nothing about why it is here"))
    if (died_at := _instant(account.get("time"))) is None:
        return failure, trail
    return failure, [*trail, FailedAttempt(at=died_at, attempt=attempt, failure=failure)]


def _instant(text: object) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text).astimezone(UTC) if isinstance(text, str) else None
    return None


def _readable(read: Callable[[], T], default: T) -> T:
    try:
        return read()
    except MalformedMessageError:
        return default


def _is_reserved(name: str) -> bool:
    """Whether a header must not travel with the message when it is sent again."""
    return is_ours(name) or name in ROUTING_COMMANDS


FIRST_PREFETCH = 1
"""How many messages of a queue are in flight before anybody knows how large they are."""


class OnAck(Protocol):
    """Is called with an arrival that was acknowledged, and how many are still in flight."""

    def __call__(self, arrival: Arrival, *, in_flight: int) -> None: ...


class RabbitDeadLetterQueues:
    """Implements `outbox.ports.DeadLetterQueues` on RabbitMQ.

    Either `url`, which makes a connection of its own, or `connection`, an aio-pika connection that is left open. Of a queue of
    which nothing is known yet `first_prefetch` messages are taken at once.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        connection: "LentConnection | None" = None,
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
        """See `outbox.ports.DeadLetterQueues.collect`. Brokers know no limit in bytes, so the number is chosen by the sizes."""
        size = self._sizes.get(queue)
        chosen = min(self._first_prefetch, prefetch_count) if size is None else _fitting(size, prefetch_count, max_bytes)
        intake = _Intake(queue, receive, chosen, most=prefetch_count, max_bytes=max_bytes)
        connection = await self._link.open()
        try:
            channel = await ConsumerChannel.open(
                connection,
                dead_letter_queue(queue),
                prefetch_count=chosen,
                arrived=intake.arrived,
                let_go=lambda _: None,  # how often a dead letter came back says nothing about it
                in_order=True,
            )
        except UnresponsiveError:
            self._link.discard(connection)
            raise
        following = asyncio.create_task(intake.follow(channel.ended))
        try:
            yield intake.ended
        finally:
            following.cancel()
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


class _Intake:
    """What arrives on one channel, and when another one is to be opened that is sent more at once, or less.

    The number of a consumer's messages in flight cannot be changed while it consumes.
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
        self._acknowledged = 0

    async def follow(self, channel_ended: asyncio.Event) -> None:
        """Ends with the channel."""
        await channel_ended.wait()
        self.ended.set()

    def arrived(self, source: ConsumerChannel, arrival: Arrival) -> None:
        """Hands it over; if there is too much by now, no more is, and what is in flight is given back and comes again."""
        size = len(arrival.body)
        self.largest = max(self.largest or 0, size)
        self._bytes += size
        if self._bytes > self._max_bytes and self._bytes > size:
            arrival.body = b""
            source.hold()
            self.ended.set()
        else:
            self._receive(RabbitDeadDelivery(self._queue, arrival, source, self._on_ack))

    def _on_ack(self, arrival: Arrival, *, in_flight: int) -> None:
        """Nothing needs to be given back while nothing is in flight: a good time to ask for more."""
        self._bytes -= len(arrival.body)
        self._acknowledged += 1
        if in_flight or self.largest is None or self._acknowledged < self._prefetch_count:
            return
        if _fitting(self.largest, self._most, self._max_bytes) >= 2 * self._prefetch_count:
            self.ended.set()
        else:
            self.largest, self._acknowledged = None, 0  # the next ones may be smaller


def _fitting(size: int, most: int, max_bytes: int) -> int:
    """How many messages of that size may be in flight."""
    return max(min(max_bytes // max(size, 1), most), 1)


class RabbitDeadDelivery:
    """Implements `outbox.ports.DeadDelivery`."""

    __slots__ = ("_arrival", "_dead", "_on_ack", "_queue", "_source")

    def __init__(self, queue: str, arrival: Arrival, source: ConsumerChannel, on_ack: "OnAck") -> None:
        self._queue = queue
        self._arrival = arrival
        self._source = source
        self._on_ack = on_ack
        self._dead: DeadMessage | None = None

    @property
    def dead(self) -> DeadMessage:
        """See `outbox.ports.DeadDelivery`."""
        if self._dead is None:
            self._dead = read_dead(self._queue, self._arrival)
        return self._dead

    def ack(self) -> None:
        """See `outbox.ports.DeadDelivery`."""
        self._source.ack(self._arrival.tag)
        self._on_ack(self._arrival, in_flight=len(self._source.in_hand))
