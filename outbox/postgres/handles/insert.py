"""The one statement that inserts messages, in each driver's spelling, and its parameters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from outbox.engine.publishing import Row
from outbox.postgres.names import TableName
from outbox.postgres.queries import queries

PARAMETERS = ("routing_key", "body", "content_type", "tracking_ids", "headers", "expiration", "send_at", "delay")
"""The statement's parameters, in this order where they have no names."""

STATEMENT_SIZE = 64 * 2**20
"""About how many bytes of messages one statement takes. PostgreSQL refuses a gigabyte, and some drivers double it."""

Values = tuple[Sequence[Any] | None, ...]
"""One array for each of `PARAMETERS`, with one entry a message; None where no message has such a value."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert … select … from unnest(…)` into one table: any number of messages in one statement and one round trip.

    `numbered` has parameters as asyncpg has them (`$1`), `named` as SQLAlchemy (`:body`), `formatted` as psycopg (`%(body)s`).
    """

    table: TableName
    numbered: str
    named: str
    formatted: str

    @classmethod
    def into(cls, table: TableName) -> "Insert":
        """The statement for `table`."""
        return cls(
            table=table,
            numbered=_rendered(table, {name: f"${number}" for number, name in enumerate(PARAMETERS, start=1)}),
            named=_rendered(table, {name: f":{name}" for name in PARAMETERS}),
            formatted=_rendered(table, {name: f"%({name})s" for name in PARAMETERS}),
        )


def statements(rows: Sequence[Row]) -> Iterator[Values]:
    """The parameters for all `rows`: of one statement, or of several when they are more than one can carry."""
    start = size = 0
    for position, row in enumerate(rows):
        row_size = len(row.body) + len(row.tracking_ids) + len(row.routing_key) + len(row.headers or "")
        if start < position and size + row_size > STATEMENT_SIZE:
            yield _values(rows[start:position])
            start, size = position, 0
        size += row_size
    if rows:
        yield _values(rows[start:])


def by_name(values: Values) -> Mapping[str, Sequence[Any] | None]:
    """The same values for drivers that name parameters."""
    return dict(zip(PARAMETERS, values, strict=True))


def _values(rows: Sequence[Row]) -> Values:
    _, routing_keys, bodies, content_types, tracking_ids, headers, expirations, dues = map(list, zip(*rows, strict=True))
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


def _unless_empty(array: Sequence[Any]) -> Sequence[Any] | None:
    return None if array.count(None) == len(array) else array


def _microseconds(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // _MICROSECOND


def _rendered(table: TableName, parameters: Mapping[str, str]) -> str:
    return queries("publish.sql", table=table.sql, **parameters)["insert"]
