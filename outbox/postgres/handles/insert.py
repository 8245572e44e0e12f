"""The statements that insert messages, in each driver's spelling, and their parameters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from outbox.engine.publishing import Extras, Row
from outbox.postgres.handles.statement import Statement, Values
from outbox.postgres.names import TableName
from outbox.postgres.queries import query

PARAMETERS = ("routing_key", "body", "content_type", "tracking_ids", "headers", "expiration", "send_at", "delay")
EXTRA_PARAMETERS = ("ordering_key", "dedup_key", "replaces", "priority", "hlc")

STATEMENT_SIZE = 64 * 2**20
"""About how many bytes of messages one statement takes. PostgreSQL refuses a gigabyte, and some drivers double it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NO_EXTRAS = Extras()


@dataclass(frozen=True, slots=True)
class Statements:
    """What a Publisher executes on one table.

    `insert` is for plain rows: `insert … select … from unnest(…)`, any number of messages in one round trip.
    `insert_extended` is the same for batches in which any row has extras, `insert_unique` for those with dedup keys.
    """

    insert: Statement
    insert_extended: Statement
    insert_unique: Statement
    lock: Statement
    cancel: Statement
    ring: Statement

    @classmethod
    def on(cls, table: TableName) -> "Statements":
        """The statements for `table`."""
        every = (*PARAMETERS, *EXTRA_PARAMETERS)
        return cls(
            insert=_statement(table, "publish.sql", "insert", PARAMETERS),
            insert_extended=_statement(table, "publish_extended.sql", "insert", every),
            insert_unique=_statement(table, "publish_extended.sql", "insert_unique", every),
            lock=_statement(table, "publish_keys.sql", "lock", ("ordering_key", "dedup_key")),
            cancel=_statement(table, "publish_keys.sql", "cancel", ("dedup_key",)),
            ring=_statement(table, "publish_keys.sql", "ring", ()),
        )


def parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """All `rows`, in one part or in several when they are more than one statement can carry."""
    start = size = 0
    for position, row in enumerate(rows):
        row_size = len(row.body) + len(row.tracking_ids) + len(row.routing_key) + len(row.headers or "")
        if start < position and size + row_size > STATEMENT_SIZE:
            yield rows[start:position]
            start, size = position, 0
        size += row_size
    if rows:
        yield rows[start:]


def plain_values(rows: Sequence[Row]) -> Values:
    """The parameters of `PARAMETERS`, with one entry a message; None where no message has such a value."""
    _, routing_keys, bodies, content_types, tracking_ids, headers, expirations, dues, _ = map(list, zip(*rows, strict=True))
    return (
        routing_keys,
        bodies,
        content_types,
        tracking_ids,
        _unless_empty(headers),
        _unless_empty([_microseconds(expiration) for expiration in expirations]),
        _unless_empty([_microseconds(due - _EPOCH) if isinstance(due, datetime) else None for due in dues]),
        _unless_empty([_microseconds(due) if isinstance(due, timedelta) else None for due in dues]),
    )


def extended_values(rows: Sequence[Row]) -> Values:
    """The same, and the parameters of `EXTRA_PARAMETERS`."""
    ordering_keys, dedup_keys, replaces, priorities, stamps = map(
        list, zip(*(row.extras or _NO_EXTRAS for row in rows), strict=True)
    )
    return (
        *plain_values(rows),
        _unless_empty(ordering_keys),
        _unless_empty(dedup_keys),
        replaces,
        priorities,
        _unless_empty(stamps),
    )


def _unless_empty(array: Sequence[Any]) -> Sequence[Any] | None:
    return None if array.count(None) == len(array) else array


def _microseconds(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // _MICROSECOND


def _statement(table: TableName, file: str, block: str, parameters: tuple[str, ...]) -> Statement:
    def rendered(spelt: Mapping[str, str]) -> str:
        messages = query("publish_extended.sql", "messages", **spelt) if len(spelt) > len(PARAMETERS) else ""
        released = query("publish_keys.sql", "released", table=table.sql)
        return query(file, block, table=table.sql, messages=messages, released=released, **spelt)

    return Statement.rendered(table, parameters, rendered)
