"""What a dead letter in RabbitMQ says of its message and of its death, however little of it can be read."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from outbox.core import codec
from outbox.core.failures import FailedAttempt, decode_trail
from outbox.core.outcome import Failure
from outbox.errors import MalformedMessageError
from outbox.ports import DeadMessage
from outbox.transports.rabbitmq.arriving import Arrival
from outbox.transports.rabbitmq.fields import Content, read_content
from outbox.transports.rabbitmq.topology import exchange_of_dead_letters
from outbox.transports.rabbitmq.wire import (
    CAUSE,
    ROUTING_COMMANDS,
    is_ours,
    read_attempt,
    read_hlc,
    read_requeue_count,
    read_routing_key,
    read_text,
)

T = TypeVar("T")

UNKNOWN = "unknown"
"""The cause of death of what says nothing about it, such as a message that somebody put among the dead letters."""

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
    return _Remains(queue, arrival, content, _brokers_account(queue, content.headers)).dead


@dataclass(frozen=True, slots=True)
class _Remains:
    """A dead letter, and what the broker says that it did with it, which it says where it dead-lettered the message itself."""

    queue: str
    arrival: Arrival
    content: Content
    account: Mapping[str, Any]

    @property
    def dead(self) -> DeadMessage:
        content, headers = self.content, self.content.headers
        failure, trail = self._failures()
        tracking_ids: tuple[str, ...] = _readable(lambda: _tracking_ids(headers), ())
        return DeadMessage(
            queue=self.queue,
            exchange=self._exchange(),
            message_id=self._message_id(tracking_ids),
            routing_key=self._routing_key(),
            body=self.arrival.body,
            cause=self._cause(),
            failure=failure,
            by_broker=codec.EXCEPTION_TYPE not in headers,
            content_type=content.properties.get("content_type"),
            headers={name: value for name, value in headers.items() if not _is_reserved(name)},
            header_types={pointer: type_ for pointer, type_ in content.types.items() if not _is_reserved(_header_of(pointer))},
            properties=self._properties(),
            tracking_ids=tracking_ids,
            ordering_key=_readable(lambda: read_text(headers, codec.ORDERING_KEY), None),
            hlc=_readable(lambda: read_hlc(headers), None),
            created_at=_instant(content.properties.get("timestamp")),
            died_at=trail[-1].at if trail else _instant(self.account.get("time")),
            attempt=_readable(lambda: read_attempt(headers), 1),
            requeue_count=_readable(lambda: read_requeue_count(headers), 0),
            trail=trail,
        )

    def _message_id(self, tracking_ids: Sequence[str]) -> str | None:
        """What was written by nobody, or cannot be read, must not be taken for another message's."""
        if "message_id" in self.content.garbled:
            return None
        return self.content.properties.get("message_id") or (tracking_ids[-1] if tracking_ids else None)

    def _routing_key(self) -> str:
        """Dead letters are routed by the name of their queue; a header of ours, or the broker's account, has the original."""
        arrived_with = self.arrival.method.routing_key
        keys = self.account.get("routing-keys")
        if isinstance(keys, list) and keys and isinstance(keys[0], str):
            arrived_with = keys[0]
        return _readable(lambda: read_routing_key(self.content.headers, arrived_with), arrived_with)

    def _exchange(self) -> str:
        return exchange_of_dead_letters(self.arrival.method.exchange)

    def _cause(self) -> str:
        headers = self.content.headers
        return str(headers.get(CAUSE) or self.account.get("reason") or UNKNOWN)

    def _failures(self) -> tuple[Failure, Sequence[FailedAttempt]]:
        headers = self.content.headers
        trail = decode_trail(headers.get(codec.FAILURES))
        if codec.EXCEPTION_TYPE in headers:
            worker = trail[-1].failure.worker if trail else ""
            type_, message, traceback = (str(headers.get(name) or "") for name in _EXCEPTION)
            return Failure(type_, message, traceback, worker), trail
        reason = str(self.account.get("reason") or UNKNOWN)
        failure = _BROKERS_REASONS.get(reason, Failure(reason.capitalize(), "it says nothing about why it is here"))
        if (died_at := _instant(self.account.get("time"))) is None:
            return failure, trail
        attempt = _readable(lambda: read_attempt(headers), 1)
        return failure, [*trail, FailedAttempt(at=died_at, attempt=attempt, failure=failure)]

    def _properties(self) -> Mapping[str, Any]:
        """With the headers that are the broker's and ours."""
        reserved = {name: value for name, value in self.content.headers.items() if _is_reserved(name)}
        return {**self.content.properties, **({"headers": reserved} if reserved else {})}


def _brokers_account(queue: str, headers: Mapping[str, Any]) -> Mapping[str, Any]:
    deaths = headers.get("x-death")
    for death in deaths if isinstance(deaths, list) else ():
        if isinstance(death, dict) and death.get("queue") == queue:
            return death
    return {}


def _tracking_ids(headers: Mapping[str, Any]) -> tuple[str, ...]:
    text = headers.get(codec.TRACKING_IDS)
    return () if text is None else codec.decode_tracking_ids(text, source=codec.TRACKING_IDS)


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


def _header_of(pointer: str) -> str:
    """The name of the header that a JSON pointer leads into."""
    return pointer.split("/", 2)[1].replace("~1", "/").replace("~0", "~")
