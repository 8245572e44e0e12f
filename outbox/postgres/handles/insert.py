"""Statements that insert messages, in the parameter style of each driver."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from outbox.engine.rows import Extras, Row
from outbox.postgres.queries import TableName, query

Values = tuple[Sequence[Any] | None, ...]
"""One array per parameter of a statement."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement on `table`, whose `parameters` are arrays.

    `numbered` is for asyncpg (`$1`, in the order of `parameters`), `named` for SQLAlchemy (`:body`), `formatted` for psycopg
    (`%(body)s`). `answers`: the caller reads the rows that it returns.
    """

    table: TableName
    parameters: tuple[str, ...]
    numbered: str
    named: str
    formatted: str
    answers: bool = False

    @classmethod
    def rendered(
        cls, table: TableName, parameters: tuple[str, ...], render: Callable[[Mapping[str, str]], str], *, answers: bool
    ) -> "Statement":
        """Calls `render` with the parameters in each style."""
        return cls(
            table=table,
            parameters=parameters,
            numbered=render({name: f"${number}" for number, name in enumerate(parameters, start=1)}),
            named=render({name: f":{name}" for name in parameters}),
            formatted=render({name: f"%({name})s" for name in parameters}),
            answers=answers,
        )

    def by_name(self, values: Values) -> Mapping[str, Sequence[Any] | None]:
        """Returns `values` by name, for drivers with named parameters."""
        return dict(zip(self.parameters, values, strict=True))


# Arrays of text, bytea and bigint only, each with a cast in the statement: no type codec, time zone or interval style of the
# caller's connection can change a value.
PARAMETERS = ("routing_key", "body", "content_type", "tracking_ids", "headers", "expiration", "send_at", "delay")
EXTRA_PARAMETERS = ("ordering_key", "dedup_key", "replaces", "priority", "hlc")

STATEMENT_SIZE = 64 * 2**20
"""Approximate bytes of messages in one statement. PostgreSQL refuses a gigabyte, and some drivers double the size."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NO_EXTRAS = Extras()


@dataclass(frozen=True, slots=True)
class Statements:
    """Statements of a Publisher on one table.

    `insert` inserts any number of plain rows in one round trip, with `insert … select … from unnest(…)`. `insert_extended` is
    for batches with extras, `insert_unique` for batches with dedup keys.
    """

    insert: Statement
    insert_extended: Statement
    insert_unique: Statement
    lock: Statement
    lock_everywhere: Statement
    cancel: Statement
    ring: Statement

    @classmethod
    def on(cls, table: TableName) -> "Statements":
        """Returns the statements for `table`."""
        every = (*PARAMETERS, *EXTRA_PARAMETERS)
        return cls(
            insert=_statement(table, "publish.sql", "insert", PARAMETERS),
            insert_extended=_statement(table, "publish_extended.sql", "insert", every),
            insert_unique=_statement(table, "publish_extended.sql", "insert_unique", every),
            lock=_statement(table, "publish_keys.sql", "lock", ("ordering_key", "dedup_key")),
            lock_everywhere=_statement(table, "publish_keys.sql", "lock_everywhere", ("dedup_key",)),
            cancel=_statement(table, "publish_keys.sql", "cancel", ("dedup_key",)),
            ring=_statement(table, "publish_keys.sql", "ring", ()),
        )


def split_rows(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Splits `rows` into parts that one statement can carry."""
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
    """Returns one array per name in `PARAMETERS`, with an entry per message; None where no message has a value."""
    _, routing_keys, bodies, content_types, tracking_ids, headers, expirations, dues, _ = map(list, zip(*rows, strict=True))
    return (
        routing_keys,
        bodies,
        content_types,
        tracking_ids,
        _none_if_empty(headers),
        _none_if_empty([_microseconds(expiration) for expiration in expirations]),
        _none_if_empty([_microseconds(due - _EPOCH) if isinstance(due, datetime) else None for due in dues]),
        _none_if_empty([_microseconds(due) if isinstance(due, timedelta) else None for due in dues]),
    )


def extended_values(rows: Sequence[Row]) -> Values:
    """Returns the arrays of `plain_values`, and those of `EXTRA_PARAMETERS`."""
    ordering_keys, dedup_keys, replaces, priorities, stamps = map(
        list, zip(*(row.extras or _NO_EXTRAS for row in rows), strict=True)
    )
    return (
        *plain_values(rows),
        _none_if_empty(ordering_keys),
        _none_if_empty(dedup_keys),
        replaces,
        priorities,
        _none_if_empty(stamps),
    )


def _none_if_empty(array: Sequence[Any]) -> Sequence[Any] | None:
    # Most messages leave most columns empty, and a null costs nothing on the wire.
    return None if array.count(None) == len(array) else array


def _microseconds(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // _MICROSECOND


def _statement(table: TableName, file: str, block: str, parameters: tuple[str, ...]) -> Statement:
    def rendered(spelling: Mapping[str, str]) -> str:
        messages = query("publish_extended.sql", "messages", **spelling) if len(spelling) > len(PARAMETERS) else ""
        released = query("publish_keys.sql", "released", table=table.sql)
        return query(file, block, table=table.sql, messages=messages, released=released, **spelling)

    return Statement.rendered(table, parameters, rendered, answers=block in ("insert_unique", "cancel"))


def drop_duplicates(rows: Sequence[Row]) -> list[Row]:
    """Returns `rows` without duplicates of a dedup key, in order.

    Keeps the last row of a key that replaces, or the first row if none does, as publishing them one after another would.
    """
    # A statement does not see the rows that it inserts itself, so it cannot find duplicates within a batch.
    chosen: dict[str, int] = {}
    for position, row in enumerate(rows):
        key = _dedup_key(row)
        if key is not None and (key not in chosen or _replaces(row)):
            chosen[key] = position
    return [row for position, row in enumerate(rows) if chosen.get(_dedup_key(row) or "", position) == position]


def published_ids(rows: Sequence[Row], pending: Collection[str]) -> list[str | None]:
    """Returns the id of each row, or None if it was dropped as a duplicate, as publishing them one after another would.

    `pending` are the dedup keys that were found in the table. A row that a later one of the same call replaced keeps its id, as
    if both had been published by separate calls.
    """
    taken = set(pending)
    ids: list[str | None] = []
    for row in rows:
        key = _dedup_key(row)
        ids.append(None if key in taken and not _replaces(row) else row.id)
        if key is not None:
            taken.add(key)
    return ids


def _dedup_key(row: Row) -> str | None:
    return None if row.extras is None else row.extras.dedup_key


def _replaces(row: Row) -> bool:
    return row.extras is not None and row.extras.replaces


class SyncWriter(Protocol):
    """Executes statements through one sync handle of the caller."""

    def in_transaction(self) -> bool:
        """Whether writes become durable only when the caller commits."""
        ...

    def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        """Returns the first column of the rows, if any. Neither commits nor rolls back; raises the driver's errors."""
        ...


class AsyncWriter(Protocol):
    """Executes statements through one async handle of the caller."""

    async def in_transaction(self) -> bool:
        """Whether writes become durable only when the caller commits."""
        ...

    async def execute(self, statement: Statement, values: Values) -> Sequence[Any]:
        """Returns the first column of the rows, if any. Neither commits nor rolls back; raises the driver's errors."""
        ...


AnswerT = TypeVar("AnswerT")
Steps = Generator[tuple[Statement, Values], Sequence[Any], AnswerT]
"""Yields statements with their values, is sent the first column of the rows of each, and returns the result."""


def publish_steps(rows: Sequence[Row], on: Statements, *, serialize: bool) -> Steps[list[str | None]]:
    """Inserts `rows` and returns their ids, None for duplicates of a pending message.

    `serialize`: locks the ordering keys first. Rows without extras need one statement per part.
    """
    extras = [row.extras for row in rows if row.extras is not None]
    if not extras:
        for part in split_rows(rows):
            yield on.insert, plain_values(part)
        return [row.id for row in rows]
    dedup_keys = _distinct(extra.dedup_key for extra in extras)
    ordering_keys = _distinct(extra.ordering_key for extra in extras) if serialize else []
    # Before the insert, in a separate statement: its snapshot must be newer than the locks.
    if dedup_keys or ordering_keys:
        yield on.lock, (ordering_keys, dedup_keys)
    pending: set[str] = set()
    insert = on.insert_unique if dedup_keys else on.insert_extended
    for part in split_rows(drop_duplicates(rows)):
        pending.update((yield insert, extended_values(part)))
    return published_ids(rows, pending)


def cancel_steps(dedup_key: str, on: Statements) -> Steps[bool]:
    """Withdraws the pending message with `dedup_key`. Returns whether there was one."""
    # As in `publish_steps`: a publisher of the same key must have committed before the next statement takes its snapshot.
    yield on.lock_everywhere, ([dedup_key],)
    withdrawn = yield on.cancel, ([dedup_key],)
    if any(withdrawn):
        yield on.ring, ()
    return bool(withdrawn)


def execute_sync(writer: SyncWriter, steps: Steps[AnswerT]) -> AnswerT:
    """Runs `steps` with a sync handle."""
    try:
        statement, values = next(steps)
        while True:
            statement, values = steps.send(writer.execute(statement, values))
    except StopIteration as end:
        answer: AnswerT = end.value
        return answer


async def execute_async(writer: AsyncWriter, steps: Steps[AnswerT]) -> AnswerT:
    """Runs `steps` with an async handle."""
    try:
        statement, values = next(steps)
        while True:
            statement, values = steps.send(await writer.execute(statement, values))
    except StopIteration as end:
        answer: AnswerT = end.value
        return answer


def _distinct(keys: Iterable[str | None]) -> list[str]:
    return list({key for key in keys if key is not None})


def array_literals(values: Values) -> Values:
    """Encodes each array of texts, bytes, integers or booleans, including nulls, as an array literal."""
    return tuple(None if array is None else "{" + ",".join(map(_element, array)) + "}" for array in values)


def _element(value: str | bytes | int | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    return str(value)
