"""From what a caller publishes to rows of the outbox table: checked and encoded completely before anything is written."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from outbox import codec
from outbox.errors import ConfigurationError
from outbox.message import OutboxMessage
from outbox.tracking import extended_chain, new_ids

LONGEST = timedelta(days=36_525)
"""Longest expiration and farthest eta, a hundred years: far beyond any use, and within every clock's range."""


class Row(NamedTuple):
    """One row of the outbox table as it will be inserted, all columns encoded.

    `id` is the last of `tracking_ids`, a JSON array as text. `due` is an instant, a delay from the moment of inserting, or
    None for at once.
    """

    id: str
    routing_key: str
    body: bytes
    content_type: str
    tracking_ids: str
    headers: str | None
    expiration: timedelta | None
    due: datetime | timedelta | None


def rows_of(messages: Iterable[OutboxMessage], *, default_expiration: timedelta | None = None) -> list[Row]:
    """One row for each message, in order, as the next link of the causation chain that the caller is in.

    All are checked and encoded before the first is handed back. Raises `ConfigurationError` for a routing key, expiration or
    eta that makes no sense, and `EncodingError` for a body or headers that cannot be stored.
    """
    batch = list(messages)
    ancestors = _ancestors()
    ids = new_ids(len(batch))
    return [_encoded(message, id_, ancestors, default_expiration) for message, id_ in zip(batch, ids, strict=True)]


def as_expiration(value: float | timedelta | None) -> timedelta | None:
    """An expiration given in seconds or as a timedelta. Raises `ConfigurationError` unless it is above zero."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        expiration = value
    elif _is_number(value) and abs(value) <= LONGEST.total_seconds():
        expiration = timedelta(seconds=value)
    else:
        raise ConfigurationError(f"expiration is a number of seconds or a timedelta, above zero, not {value!r}")
    if not timedelta(0) < expiration <= LONGEST:
        raise ConfigurationError(f"expiration lies above zero and within {LONGEST.days} days, unlike {value!r}")
    return expiration


def _encoded(message: OutboxMessage, id_: str, ancestors: str, default_expiration: timedelta | None) -> Row:
    if not isinstance(message, OutboxMessage):
        raise ConfigurationError(f"only an OutboxMessage can be published in bulk, not {type(message).__name__}")
    routing_key = _checked_routing_key(message.routing_key)
    body, content_type = codec.encode_body(message.body, routing_key=routing_key)
    return Row(
        id_,
        routing_key,
        body,
        content_type,
        f'[{ancestors}"{id_}"]',
        codec.encode_headers(message.headers, routing_key=routing_key) if message.headers else None,
        default_expiration if message.expiration is None else as_expiration(message.expiration),
        None if message.eta is None else _due(message.eta),
    )


def _ancestors() -> str:
    """The inside of a JSON array: the ids that come before the new message's own. Encoded once for a whole batch."""
    chain = extended_chain("")[:-1]
    return codec.encode_jsonb(chain, what="the chain of tracking ids")[1:-1] + ", " if chain else ""


def _checked_routing_key(routing_key: object) -> str:
    """Any length will do, what a broker cannot take is found at sending; but it must be text that a table can hold."""
    if not isinstance(routing_key, str):
        raise ConfigurationError(f"a routing key is a str such as 'order.placed', not {routing_key!r}")
    if "\0" in routing_key:
        raise ConfigurationError(f"the routing key {routing_key!r} contains the character NUL, which PostgreSQL cannot store")
    if not routing_key.isascii():
        try:
            routing_key.encode()
        except UnicodeEncodeError as error:
            raise ConfigurationError(f"the routing key {routing_key!r} is not valid text: {error}") from error
    return routing_key


def _due(eta: datetime | timedelta | float) -> datetime | timedelta:
    if isinstance(eta, datetime):
        return _instant(eta)
    if isinstance(eta, timedelta):
        delay = eta
    elif _is_number(eta) and abs(eta) <= LONGEST / timedelta(milliseconds=1):
        delay = timedelta(milliseconds=eta)
    else:
        raise ConfigurationError(f"eta is a datetime, a timedelta or a number of milliseconds, not {eta!r}")
    if abs(delay) > LONGEST:
        raise ConfigurationError(f"eta lies within {LONGEST.days} days from now, unlike {eta!r}")
    return delay


def _instant(eta: datetime) -> datetime:
    """`eta` in UTC; without a time zone it means the local time of this process."""
    try:
        return eta.astimezone(UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise ConfigurationError(f"eta is out of the range of time: {eta!r}") from error


def _is_number(value: object) -> bool:
    """True is an int too, and no number of anything."""
    return isinstance(value, int | float) and not isinstance(value, bool)
