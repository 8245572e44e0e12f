"""Turns published messages into rows of the outbox table. Checks and encodes all of them before any is written."""

import json
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from outbox.core import codec
from outbox.core.destinations import validate_destinations
from outbox.core.message import OutboxMessage
from outbox.core.tracking import extend_chain, new_ids
from outbox.errors import ConfigurationError

LONGEST = timedelta(days=36_525)
"""Longest expiration and farthest eta, a hundred years, which every clock can represent."""
LONGEST_DEDUP_KEY = 1_000
"""Longest dedup key, in bytes, since it has to fit into an index."""
HIGHEST_PRIORITY = 9
FEWEST_MILLISECONDS = 1_000
"""An eta given as a smaller number logs a warning: the predecessor documented milliseconds but read seconds."""

LONGEST_CONTENT_TYPE = 255
"""Longest content type, in bytes: AMQP sends it as a short string."""

_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+( *;[ -~]*)?", re.ASCII)
_log = logging.getLogger("outbox")


class Extras(NamedTuple):
    """The optional columns of a row. `replaces`: replace a pending row with the same dedup key."""

    ordering_key: str | None = None
    dedup_key: str | None = None
    replaces: bool = False
    priority: int = 0
    hlc: int | None = None


class Row(NamedTuple):
    """One row of the outbox table, encoded for the insert.

    `tracking_ids` is a JSON array as text that ends with `id`. `due` is a time, a delay from the insert, or None for at once.
    `extras` is None for a row without optional columns.
    """

    id: str
    routing_key: str
    body: bytes
    content_type: str
    tracking_ids: str
    headers: str | None
    expiration: timedelta | None
    due: datetime | timedelta | None
    extras: Extras | None


class Encrypt(Protocol):
    """`outbox.encryption.Encryption.encrypt`."""

    def __call__(self, body: bytes, *, message_id: str) -> tuple[bytes, str]:
        """Returns the encrypted body, and the value of its header."""
        ...


def rows_of(
    messages: Iterable[OutboxMessage],
    *,
    default_expiration: timedelta | None = None,
    stamp: Callable[[], int] | None = None,
    encrypt: Encrypt | None = None,
) -> list[Row]:
    """Returns one row for each message, in order, as an effect of the message that the caller is handling, if any.

    Calls `encrypt` and `stamp` for each row, if given, after all messages are checked and encoded. Raises `ConfigurationError`
    for an invalid routing key or option, and `EncodingError` for a body or headers that cannot be stored.
    """
    batch = list(messages)
    # The inside of a JSON array, encoded once for the batch: the ids that come before a message's own.
    chain = extend_chain("")[:-1]
    ancestors = codec.encode_jsonb(chain, what="the chain of tracking ids")[1:-1] + ", " if chain else ""
    rows: list[Row] = []
    for message, id_ in zip(batch, new_ids(len(batch)), strict=True):
        if not isinstance(message, OutboxMessage):
            raise ConfigurationError(f"only an OutboxMessage can be published in bulk, not {type(message).__name__}")
        # The longest allowed key depends on the broker, which refuses longer ones. Here it must be text that a table can hold.
        routing_key = message.routing_key
        if not isinstance(routing_key, str) or not routing_key:
            raise ConfigurationError(f"a routing key must be non-empty text, such as 'order.placed', not {routing_key!r}")
        if "\0" in routing_key or not routing_key.isascii():
            _require_storable(routing_key, "routing key")
        if message.destination is not None:
            validate_destinations(message.destination)
        body, content_type = codec.encode_body(message.body, routing_key=routing_key)
        row = Row(
            id_,
            routing_key,
            body,
            content_type if message.content_type is None else _validate_content_type(message.content_type),
            f'[{ancestors}"{id_}"]',
            codec.encode_headers(message.headers, routing_key=routing_key) if message.headers else None,
            default_expiration if message.expiration is None else as_expiration(message.expiration),
            None if message.eta is None else _parse_eta(message.eta),
            # Saves most messages, which have none of these, a call.
            None
            if message.ordering_key is None
            and message.dedup_key is None
            and message.priority == 0
            and message.on_conflict == "ignore"
            else _extras(message),
        )
        rows.append(row)
    if encrypt is not None:
        # Encryption returns the body and its header.
        rows = [_with_body(row, codec.ENCRYPTION, *encrypt(row.body, message_id=row.id)) for row in rows]
    if stamp is None:
        return rows
    return [row._replace(extras=(row.extras or Extras())._replace(hlc=stamp())) for row in rows]


def positions_above(rows: Sequence[Row], above: int) -> list[int]:
    """Returns the positions of the rows whose bodies have more than `above` bytes."""
    return [position for position, row in enumerate(rows) if len(row.body) > above]


def with_stored_bodies(rows: Sequence[Row], positions: Sequence[int], headers: Sequence[str]) -> list[Row]:
    """Returns the rows, with empty bodies and these headers `x-body-store` at these positions."""
    stored = list(rows)
    for position, header in zip(positions, headers, strict=True):
        stored[position] = _with_body(rows[position], codec.BODY_STORE, b"", header)
    return stored


def _with_body(row: Row, name: str, body: bytes, header: str) -> Row:
    headers = {} if row.headers is None else json.loads(row.headers)
    return row._replace(body=body, headers=json.dumps({**headers, name: header}, ensure_ascii=False))


def as_expiration(value: float | timedelta | None) -> timedelta | None:
    """Parses an expiration in seconds or as a timedelta. Raises `ConfigurationError` unless it is above zero."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        expiration = value
    elif _is_number(value) and abs(value) <= LONGEST.total_seconds():
        expiration = timedelta(seconds=value)
    else:
        raise ConfigurationError(f"expiration must be a number of seconds or a timedelta, above zero, not {value!r}")
    if not timedelta(0) < expiration <= LONGEST:
        raise ConfigurationError(f"expiration must be above zero and at most {LONGEST.days} days, not {value!r}")
    return expiration


def validate_dedup_key(dedup_key: object) -> str:
    """Checks a dedup key. Raises `ConfigurationError` unless it is non-empty text of at most 1,000 bytes."""
    key = _validate_key(dedup_key, "dedup_key")
    if len(key.encode()) > LONGEST_DEDUP_KEY:
        raise ConfigurationError(
            f"dedup_key must have at most {LONGEST_DEDUP_KEY:,} bytes, but {key[:60]!r}… has {len(key.encode()):,}"
        )
    return key


def _require_storable(text: str, kind: str) -> None:
    if "\0" in text:
        raise ConfigurationError(f"the {kind} {text!r} contains the character NUL, which PostgreSQL cannot store")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"the {kind} {text!r} is not valid text: {error}") from error


def _validate_content_type(content_type: object) -> str:
    if (
        not isinstance(content_type, str)
        or len(content_type) > LONGEST_CONTENT_TYPE
        or _MEDIA_TYPE.fullmatch(content_type) is None
    ):
        raise ConfigurationError(
            f"content_type must be a media type such as 'application/json', with at most {LONGEST_CONTENT_TYPE} characters, "
            f"not {content_type!r:.80}"
        )
    return content_type


def _extras(message: OutboxMessage) -> Extras:
    ordering_key, dedup_key, priority = message.ordering_key, message.dedup_key, message.priority
    if not (isinstance(priority, int) and 0 <= priority <= HIGHEST_PRIORITY) or isinstance(priority, bool):
        raise ConfigurationError(f"priority must be a whole number from 0 to {HIGHEST_PRIORITY}, not {priority!r}")
    if priority and ordering_key is not None:
        raise ConfigurationError("priority and ordering_key exclude each other: ordered messages cannot overtake one another")
    if message.on_conflict not in ("ignore", "replace"):
        raise ConfigurationError(f"on_conflict must be 'ignore' or 'replace', not {message.on_conflict!r}")
    if message.on_conflict == "replace" and dedup_key is None:
        raise ConfigurationError("on_conflict='replace' needs a dedup_key, which identifies the message to replace")
    return Extras(
        ordering_key=None if ordering_key is None else _validate_key(ordering_key, "ordering_key"),
        dedup_key=None if dedup_key is None else validate_dedup_key(dedup_key),
        replaces=message.on_conflict == "replace",
        priority=priority,
    )


def _validate_key(key: object, name: str) -> str:
    if not isinstance(key, str) or not key:
        raise ConfigurationError(f"{name} must be non-empty text, not {key!r}")
    _require_storable(key, name)
    return key


def _parse_eta(eta: datetime | timedelta | float) -> datetime | timedelta:
    if isinstance(eta, datetime):
        try:
            return eta.astimezone(UTC)  # a naive eta is in this process's local time
        except (OverflowError, ValueError, OSError) as error:
            raise ConfigurationError(f"eta is out of range: {eta!r}") from error
    if isinstance(eta, timedelta):
        delay = eta
    elif _is_number(eta) and abs(eta) <= LONGEST / timedelta(milliseconds=1):
        delay = timedelta(milliseconds=eta)
        if 0 < eta < FEWEST_MILLISECONDS:
            _log.warning(
                "eta=%r means %s milliseconds, as documented. If you mean seconds, write timedelta(seconds=%s)", eta, eta, eta
            )
    else:
        raise ConfigurationError(f"eta must be a datetime, a timedelta or a number of milliseconds, not {eta!r}")
    if abs(delay) > LONGEST:
        raise ConfigurationError(f"eta must be within {LONGEST.days} days from now, not {eta!r}")
    return delay


def _is_number(value: object) -> bool:
    # bool is a subclass of int.
    return isinstance(value, int | float) and not isinstance(value, bool)
