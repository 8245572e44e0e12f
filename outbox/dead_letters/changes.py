"""Changes a bounded number of dead letters with a few statements: requeue, discard, restore, purge, edit; and dry runs."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any, assert_never

import asyncpg

from outbox.core.codec import decode_tracking_ids, edited_content_type, edited_headers, encode_body
from outbox.core.destinations import DEFAULT
from outbox.dead_letters.actions import (
    Action,
    BeforeCommit,
    Edit,
    Expected,
    Item,
    ItemOutcome,
    Options,
    OriginalRouting,
    Plan,
    Repaired,
    ToQueue,
)
from outbox.dead_letters.filters import Arguments, Selection, dead_ids, parked_ids
from outbox.dead_letters.model import PARKED_PREFIX, DeadLetterFilter, DeadLetterStatus
from outbox.dead_letters.reader import DeadLetterListing
from outbox.engine.bodies import Bodies
from outbox.errors import CountDriftedError, MalformedMessageError, RefusedError, SchemaError
from outbox.masking import Masking, preview, searchable
from outbox.postgres.dead_letter_writer import Storable
from outbox.postgres.pool import (
    COMMAND_TIMEOUT,
    REFUSALS,
    Connection,
    Pool,
    PooledConnection,
    reason_of,
    roll_back_quietly,
    taken_from,
    unavailable_errors,
)
from outbox.postgres.queries import TableName, queries
from outbox.postgres.relays import no_table
from outbox.postgres.schema.objects import destination_table, satellite_names

LOCK_TIMEOUT = timedelta(seconds=5)
"""Longest wait for a row that another transaction has locked."""
IDLE_TIMEOUT = timedelta(seconds=15)
"""How long a transaction may idle. The server then ends it, so that a frozen process releases its row locks."""
TIMEOUT = COMMAND_TIMEOUT.total_seconds()
"""Timeout of each statement, passed explicitly because a pool given by the caller may set none."""

SELECTION = "{selection}"
"""Placeholder in a statement for the query that selects the dead letters."""
_TOO_OLD = (
    "older than the deduplication window: a consumer with an inbox could process it twice; use force if that does no harm"
)
_LOCK_TIMEOUT = f"set local lock_timeout = {LOCK_TIMEOUT // timedelta(milliseconds=1)}"
_BEGIN = f"""
begin isolation level read committed;
{_LOCK_TIMEOUT};
set local idle_in_transaction_session_timeout = {IDLE_TIMEOUT // timedelta(milliseconds=1)}
"""


class Statements:
    """Statements of one SQL file, for one outbox table and its satellite tables, over connections of `pool`."""

    def __init__(self, pool: Pool, table: TableName, file: str) -> None:
        self._pool = pool
        names = {"table": table.sql, "table_name": table.name, **satellite_names(table.schema)}
        self._sql = queries(file, too_old=_TOO_OLD, selection=SELECTION, **names)

    def __getitem__(self, name: str) -> str:
        return self._sql[name]

    @asynccontextmanager
    async def transaction(self, doing: str) -> AsyncIterator[Connection]:
        """Opens a read committed transaction with timeouts. Raises `DatabaseUnavailableError` with `doing` in its text."""
        async with self._connection(doing) as connection:
            try:
                await connection.execute(_BEGIN, timeout=TIMEOUT)
                yield connection
                await connection.execute("commit", timeout=TIMEOUT)
            except BaseException:
                await roll_back_quietly(connection)
                raise

    async def finds(self, name: str, doing: str) -> bool:
        """Whether a statement without parameters finds a row, in one round trip. Raises as `transaction` does."""
        async with self._connection(doing) as connection:
            # One message is one transaction.
            status = await connection.execute(f"{_LOCK_TIMEOUT};\n{self._sql[name]}", timeout=TIMEOUT)
        return status != "SELECT 0"

    @asynccontextmanager
    async def _connection(self, doing: str) -> AsyncIterator[PooledConnection]:
        with unavailable_errors(doing):
            async with taken_from(self._pool) as connection:
                try:
                    yield connection
                except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError) as error:
                    raise SchemaError(
                        f"the tables do not match this release ({error}): create or upgrade them with `outbox migrate`"
                    ) from error


HasQueue = Callable[[str], Awaitable[bool]]
"""Returns whether a queue exists. Raises `BrokerUnavailableError` if the broker cannot be asked now."""

_NOT_FOUND = "no such dead letter: it was purged or sent, or never existed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An action with its options, and for the records the requester, the reason and the operation."""

    action: Action
    options: Options
    by: str | None = None
    reason: str | None = None
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Outcome for one dead letter; for a requeue also the new count, the message id and the queue (None: by routing key)."""

    item: Item
    requeue_count: int | None = None
    message_id: str | None = None
    queue: str | None = None


class Changes:
    """Applies actions to dead letters of the outbox table `table`.

    The transaction locks the dead letters until its end, and waits for those that another transaction has locked. `history`:
    whether requeues are written to the history. `exchange_name`: that of the broker, if its queues are not in the database.
    """

    def __init__(
        self, pool: Pool, table: TableName, has_queue: HasQueue, *, history: bool = True, exchange_name: str | None = None
    ) -> None:
        self._sql = Statements(pool, table, "repair.sql")
        self._of_destination = cache(lambda name: Statements(pool, destination_table(table, name), "repair.sql"))
        self._has_queue = has_queue
        self._history = history
        self._exchange_name = exchange_name

    async def execute(
        self,
        request: Request,
        ids: Sequence[str],
        *,
        before_commit: BeforeCommit[Repaired] | None = None,
        require: Callable[[Connection], Awaitable[None]] | None = None,
    ) -> Repaired:
        """Applies `request` to `ids` in a new transaction, and returns the outcomes in the order of `ids`.

        `before_commit` is awaited with them, right before the commit. `require` is awaited once the dead letters are locked,
        before they change. The error of either rolls everything back.
        """
        queues = await self.known_queues(request, ids)
        async with self._sql.transaction(f"{request.action} of dead letters") as connection:
            # Under the locks, so that what it has checked still holds when the dead letters change.
            if require is not None:
                await self.lock(connection, request, ids)
                await require(connection)
            changes = await self.apply(connection, request, ids, queues)
            return await _finish(connection, Repaired(request.action, [change.item for change in changes]), before_commit)

    async def known_queues(self, request: Request, ids: Sequence[str]) -> frozenset[str]:
        """Those of the destination queues of `ids` that exist.

        Raises `BrokerUnavailableError` if the broker cannot be asked now.
        """
        # Call this before the transaction of the change: row locks must not be held while the broker answers.
        if request.action is not Action.REQUEUE:
            return frozenset()
        wanted: Iterable[str]
        match request.options.destination:
            case ToQueue(queue):
                wanted = [queue]
            case OriginalRouting():
                wanted = []
            case _:
                split = _RowIds.of(ids)
                async with self._sql.transaction("looking for the queues of dead letters") as connection:
                    rows = await connection.fetch(self._sql["destinations"], split.letters, split.parked, timeout=TIMEOUT)
                wanted = [row["queue"] for row in rows]
        return frozenset([queue for queue in sorted(wanted) if await self._has_queue(queue)])

    async def apply(
        self, connection: Connection, request: Request, ids: Sequence[str], queues: frozenset[str]
    ) -> Sequence[Change]:
        """Applies `request` in the caller's transaction; returns the changes in the order of `ids`. `queues` exist.

        A dead letter that the database refuses to change, for example by a trigger, is `REFUSED`. The others are changed.
        """
        destinations = await self.lock(connection, request, ids)
        split = _RowIds.of(ids)
        await connection.execute("savepoint changes", timeout=TIMEOUT)
        try:
            rows = await self._write(connection, request, split, queues, destinations)
        except REFUSALS as error:
            await connection.execute("rollback to savepoint changes", timeout=TIMEOUT)
            if len(ids) == 1:
                return [Change(Item(ids[0], ItemOutcome.REFUSED, f"the database refuses it: {reason_of(error)}"))]
            # The error does not say which dead letter it is about.
            middle = len(ids) // 2
            return [
                *await self.apply(connection, request, ids[:middle], queues),
                *await self.apply(connection, request, ids[middle:], queues),
            ]
        changes = {}
        for row in rows:
            item = Item(row["id"], ItemOutcome(row["outcome"]), row["reason"])
            if item.outcome is ItemOutcome.DONE and "message_id" in row:
                changes[item.id] = Change(item, row["requeue_count"], row["message_id"], row["destination"])
            else:
                changes[item.id] = Change(item, row.get("requeue_count"))
        # Once a parked message has left the table, the next one of its ordering key is due.
        released = [row["ordering_key"] for row in rows if row.get("ordering_key") is not None]
        if released:
            await connection.execute(self._sql["release_lanes"], released, timeout=TIMEOUT)
        if released or (request.action is Action.REQUEUE and split.parked):
            await connection.execute(self._sql["ring"], timeout=TIMEOUT)
        return [changes.get(id_) or Change(Item(id_, ItemOutcome.NOT_FOUND, _NOT_FOUND)) for id_ in ids]

    async def lock(self, connection: Connection, request: Request, ids: Sequence[str]) -> Mapping[int, str]:
        """Locks the dead letters until the transaction ends. Does not wait for messages in flight.

        Returns the destinations of those that were for another than the default one.
        """
        # Locks are taken in the order that publishers use, dedup keys before rows; the opposite order could deadlock.
        split = _RowIds.of(ids)
        if request.action is Action.REQUEUE and split.parked:
            await connection.execute(self._sql["lock_dedup_keys"], split.parked, timeout=TIMEOUT)
        if request.action is Action.DISCARD and split.parked:
            await connection.execute(self._sql["lock_messages"], split.parked, timeout=TIMEOUT)
        letters = await connection.fetch(self._sql["lock_letters"], split.letters, timeout=TIMEOUT)
        await connection.execute(self._sql["lock_parked"], split.parked, timeout=TIMEOUT)
        return {row["id"]: row["destination"] for row in letters if row["destination"] is not None}

    async def _write(
        self,
        connection: Connection,
        request: Request,
        ids: "_RowIds",
        queues: frozenset[str],
        destinations: Mapping[int, str],
    ) -> Sequence[Any]:
        options = request.options
        arguments: tuple[object, ...]
        match request.action:
            case Action.REQUEUE:
                arguments = (
                    request.operation,
                    options.destination.queue if isinstance(options.destination, ToQueue) else None,
                    isinstance(options.destination, OriginalRouting),
                    sorted(queues),
                    None if options.force else options.retention,
                    request.by,
                    self._history,
                )
            case Action.DISCARD:
                arguments = (request.operation, request.by, request.reason)
            case Action.RESTORE:
                arguments = (request.operation,)
            case Action.PURGE:
                arguments = (request.operation, options.force)
            case _:
                assert_never(request.action)
        rows: list[Any] = []
        broker = (self._exchange_name,) if request.action is Action.REQUEUE else ()
        if ids.letters:
            why = (request.reason, *broker) if request.action is Action.REQUEUE else ()
            by_destination: dict[str, list[int]] = {}
            for id_ in ids.letters:
                by_destination.setdefault(destinations.get(id_, DEFAULT), []).append(id_)
            for destination, letters in by_destination.items():
                sql = self._of_destination(destination) if request.action is Action.REQUEUE else self._sql
                if destination != DEFAULT and not await connection.fetchval(sql["has_table"], timeout=TIMEOUT):
                    # Such a message must not go to another destination, nor keep the others from theirs.
                    refused = {"outcome": ItemOutcome.REFUSED, "reason": no_table(destination)}
                    rows += [{"id": str(id_), **refused} for id_ in letters]
                    continue
                rows += await connection.fetch(sql[f"{request.action}_letters"], letters, *arguments, *why, timeout=TIMEOUT)
        if ids.parked:
            statement = self._sql[f"{request.action}_parked"]
            rows += await connection.fetch(statement, ids.parked, *arguments, *broker, timeout=TIMEOUT)
        return rows


def subscribed_queues(pool: Pool, table: TableName) -> HasQueue:
    """Looks up queues where PostgreSQL is the broker, in the tables next to `table`."""
    sql = Statements(pool, table, "repair.sql")

    async def has_queue(queue: str) -> bool:
        async with sql.transaction("looking for a queue") as connection:
            return bool(await connection.fetchval(sql["has_queue"], queue, timeout=TIMEOUT))

    return has_queue


@dataclass(frozen=True, slots=True)
class _RowIds:
    """Row ids in the two tables, from ids as operators know them. Ignores malformed ids."""

    letters: list[int]
    parked: list[int]

    @classmethod
    def of(cls, ids: Sequence[str]) -> "_RowIds":
        return cls(dead_ids(ids), parked_ids(ids))


_EDIT_COLLIDES = "with this edit it equals another dead letter of the same message: requeue that one"

_COPY_EXISTS = "there is a dead letter of the same message with this body: restore and requeue that one, and discard this one"


class Editor:
    """Edits and requeues a dead letter in one transaction: either both happen, or neither.

    A new body is encrypted if the old one is, and stored if it is large, with what `bodies` has.
    """

    def __init__(
        self, pool: Pool, table: TableName, changes: Changes, masking: Masking, listing: DeadLetterListing, bodies: Bodies
    ) -> None:
        self._sql = Statements(pool, table, "repair.sql")
        self._changes = changes
        self._masking = masking
        self._listing = listing
        self._bodies = bodies

    async def requeue(
        self, request: Request, id_: str, edit: Edit, *, before_commit: BeforeCommit[Repaired] | None = None
    ) -> Repaired:
        """Edits and requeues the dead letter `id_`, if it still has the version of `edit`.

        Awaits `before_commit` in the same transaction; for a refused edit in a new one, because the first is rolled back.
        Raises `EncodingError` for a body or headers that cannot be stored, or for reserved headers, `KeysUnavailableError`,
        and the errors of the store of large bodies.
        """
        queues = await self._changes.known_queues(request, [id_])
        try:
            # Before the transaction, because the store is on another network. The version shows whether the old body, and with
            # it the headers of the new one, has changed since.
            new = await self._new_body(id_, edit)
            async with self._sql.transaction("requeueing an edited dead letter") as connection:
                await self._changes.lock(connection, request, [id_])
                if id_.startswith(PARKED_PREFIX):
                    await self._edit_parked(connection, request, id_, edit, new)
                else:
                    await self._edit_letter(connection, request, id_, edit, new)
                [change] = await self._changes.apply(connection, request, [id_], queues)
                _require_done(change.item)
                return await _finish(connection, Repaired(request.action, [change.item]), before_commit)
        # In a new transaction, because the rollback has undone everything, and the refusal is to be recorded.
        except _EditRefusedError as refused:
            async with self._sql.transaction("recording a refused edit") as connection:
                return await _finish(connection, Repaired(request.action, [refused.item]), before_commit)

    async def _new_body(self, id_: str, edit: Edit) -> "_NewBody | None":
        found = None if edit.body is None else await self._listing.get(id_, most_bytes=0)
        if found is None or found.letter.status is not DeadLetterStatus.OPEN:
            return None
        _require_version(id_, edit, found.letter.version)
        body, kind = encode_body(edit.body, routing_key=found.letter.routing_key)
        try:
            return _NewBody(*await self._bodies.write(body, found.headers, found.letter.message_id), kind)
        except RefusedError as error:
            raise _EditRefusedError(Item(id_, ItemOutcome.REFUSED, str(error))) from None

    async def _edit_letter(
        self, connection: Connection, request: Request, id_: str, edit: Edit, new: "_NewBody | None"
    ) -> None:
        # A missing or resolved dead letter is no error here: the requeue that follows reports it.
        for number in dead_ids([id_]):
            row = await connection.fetchrow(self._sql["letter_to_edit"], number, timeout=TIMEOUT)
            if row is not None and row["status"] == "open":
                _require_version(id_, edit, row["version"])
                _require_body(id_, edit, new)
                try:
                    await self._replace(connection, request, number, row, _apply_edit(row, edit, new))
                except asyncpg.UniqueViolationError:
                    raise _EditRefusedError(Item(id_, ItemOutcome.REFUSED, _EDIT_COLLIDES)) from None

    async def _edit_parked(
        self, connection: Connection, request: Request, id_: str, edit: Edit, new: "_NewBody | None"
    ) -> None:
        for number in parked_ids([id_]):
            parked = await connection.fetchrow(self._sql["copy_parked"], number, request.by, request.reason, timeout=TIMEOUT)
            if parked is None:
                return
            _require_version(id_, edit, parked["version"])
            _require_body(id_, edit, new)
            copy = parked["id"]
            if copy is None:
                raise _EditRefusedError(Item(id_, ItemOutcome.REFUSED, _COPY_EXISTS))
            row = await connection.fetchrow(self._sql["letter_to_edit"], copy, timeout=TIMEOUT)
            payload = _apply_edit(row, edit, new)
            try:
                await self._replace(connection, request, copy, row, payload)
            except asyncpg.UniqueViolationError:
                raise _EditRefusedError(Item(id_, ItemOutcome.REFUSED, _EDIT_COLLIDES)) from None
            await connection.execute(
                self._sql["edit_parked"], number, payload.body, payload.content_type, payload.headers, timeout=TIMEOUT
            )

    async def _replace(self, connection: Connection, request: Request, number: int, row: Any, payload: "_Payload") -> None:
        storable = Storable(connection.get_settings().server_encoding)
        try:
            tracking_ids = decode_tracking_ids(row["tracking_ids"], source="the column tracking_ids")
        except MalformedMessageError:
            tracking_ids = ()
        words = (row["queue"], row["routing_key"], *tracking_ids, row["message_id"] or "")
        error = f"{row['exception_type']} {row['exception_message']}"
        # Mask secrets of both payloads: the error may quote the old one, the preview shows the new one.
        masking = self._masking.of_message(row["body"], row["headers"]).of_message(payload.body, payload.headers)
        search = searchable(payload.body, payload.content_type, masking, error=error, words=words)
        await connection.execute(
            self._sql["edit_letter"],
            number,
            row["version"],
            payload.body,
            payload.content_type,
            payload.headers,
            request.by,
            storable.text(preview(payload.body, payload.content_type, masking, headers=payload.headers)),
            storable.text(search),
            timeout=TIMEOUT,
        )


class _EditRefusedError(Exception):
    """Rolls the edit back, because the message cannot be edited or requeued."""

    def __init__(self, item: Item) -> None:
        super().__init__(item.reason)
        self.item = item


@dataclass(frozen=True, slots=True)
class _NewBody:
    """An edited body as it is written, the headers that belong to it, and the content type that it has by itself."""

    body: bytes
    headers: Mapping[str, Any]
    kind: str


@dataclass(frozen=True, slots=True)
class _Payload:
    """Body, content type, and headers as JSON."""

    body: bytes
    content_type: str | None
    headers: str | None


async def _finish(connection: Connection, repaired: Repaired, before_commit: BeforeCommit[Repaired] | None) -> Repaired:
    """Awaits `before_commit`, if there is one, as the last step of a transaction. Returns `repaired`."""
    if before_commit is not None:
        await before_commit(connection, repaired)
    return repaired


def _require_done(item: Item) -> None:
    if item.is_done_already(Action.REQUEUE):
        # With its content at that time, so that what was asked for now is not done.
        item = replace(item, reason=f"{item.reason}: the edit was not applied")
    if item.outcome is not ItemOutcome.DONE:
        raise _EditRefusedError(item)


def _require_version(id_: str, edit: Edit, version: int) -> None:
    if edit.version != version:
        reason = f"the edit is for version {edit.version}, but the current version is {version}: reload it and edit again"
        raise _EditRefusedError(Item(id_, ItemOutcome.REFUSED, reason))


def _require_body(id_: str, edit: Edit, new: _NewBody | None) -> None:
    # None if the dead letter was not open when the body was prepared, and was restored since.
    if edit.body is not None and new is None:
        reason = "the dead letter changed while its new body was prepared: reload it and edit again"
        raise _EditRefusedError(Item(id_, ItemOutcome.REFUSED, reason))


def _apply_edit(row: Any, edit: Edit, new: _NewBody | None) -> _Payload:
    """Payload of `row` after `edit`. The content type stays if it still fits the body."""
    headers = edited_headers(row["headers"], edit.headers, None if new is None else new.headers, routing_key=row["routing_key"])
    if new is None:
        return _Payload(row["body"], row["content_type"], headers)
    return _Payload(new.body, edited_content_type(row["content_type"], new.kind), headers)


SAMPLE = 5
"""Number of dead letters that a plan lists."""


class Planner:
    """Does dry runs on the dead letters of one outbox table."""

    def __init__(
        self,
        pool: Pool,
        table: TableName,
        listing: DeadLetterListing,
        has_queue: HasQueue,
        *,
        exchange_name: str | None = None,
    ) -> None:
        self._sql = Statements(pool, table, "planning.sql")
        self._selection = Selection(table)
        self._listing = listing
        self._has_queue = has_queue
        self._exchange_name = exchange_name

    async def plan(self, request: Request, selector: DeadLetterFilter, limit: int | None) -> Plan:
        """Plan of `request` for the oldest `limit` dead letters that match `selector` now."""
        arguments = Arguments([request.options.retention])
        statement = self._sql["plan"].replace(SELECTION, self._selection.rows(selector, limit, arguments))
        async with self._sql.transaction("planning") as connection:
            [row] = await connection.fetch(statement, *arguments.values, timeout=TIMEOUT)
        by_queue = json.loads(row["by_queue"])
        warnings = [f"{row['busy']:,} will be skipped: they belong to other operations"] if row["busy"] else []
        if request.action is Action.REQUEUE:
            warnings += await self._requeue_warnings(request, row, by_queue)
        return Plan(
            action=request.action,
            count=row["count"],
            by_queue=by_queue,
            by_exception=json.loads(row["by_exception"]),
            sample=await self._listing.list(selector, limit=min(SAMPLE, limit or SAMPLE), sort="oldest"),
            warnings=warnings,
            digest=row["digest"],
        )

    async def require(
        self, connection: Connection, expected: int | Expected, selector: DeadLetterFilter, limit: int | None
    ) -> None:
        """Raises `CountDriftedError` unless the oldest `limit` dead letters that match `selector` are the `expected` ones."""
        arguments = Arguments()
        statement = self._sql["digest_of"].replace(SELECTION, self._selection.rows(selector, limit, arguments))
        [row] = await connection.fetch(statement, *arguments.values, timeout=TIMEOUT)
        require_expected(expected, row)

    async def _requeue_warnings(self, request: Request, row: Any, by_queue: Mapping[str, int]) -> list[str]:
        warnings = []
        too_old = f"{row['too_old']:,}" if row["too_old"] else ""
        if too_old and request.options.force:
            warnings.append(
                f"{too_old} are older than the deduplication window: a consumer with an inbox could process them twice"
            )
        elif too_old:
            warnings.append(
                f"{too_old} will be refused: they are older than the deduplication window (use force to requeue them)"
            )
        if row["overtaken"]:
            warnings.append(f"{row['overtaken']:,} share an ordering key with waiting messages, and will be sent after those")
        match request.options.destination:
            case ToQueue(queue):
                wanted = {queue: sum(by_queue.values())}
            case OriginalRouting():
                wanted = {}
            case _:
                wanted = {queue: count for queue, count in by_queue.items() if queue}
        missing = {queue: count for queue, count in wanted.items() if not await self._has_queue(queue)}
        async with self._sql.transaction("looking for queues and workers") as connection:
            if self._exchange_name is not None and not isinstance(request.options.destination, ToQueue):
                stored = await connection.fetch(
                    self._sql["stored_queues"], sorted(missing), self._exchange_name, timeout=TIMEOUT
                )
                missing = {queue: count for queue, count in missing.items() if queue not in {row["queue"] for row in stored}}
            silent = await connection.fetch(self._sql["silent_workers"], sorted(wanted), timeout=TIMEOUT)
        where = " in PostgreSQL" if self._exchange_name is None else ""
        warnings += [f"{count:,} will be refused: the queue {queue} does not exist{where}" for queue, count in missing.items()]
        return warnings + [
            f"the results of {wanted[row['queue']]:,} will be unknown: {row['worker']}, a worker of {row['queue']}, "
            "writes no history and has no inbox there, so a canary would stop"
            for row in silent
        ]


def require_expected(expected: int | Expected, found: Any) -> None:
    """Raises `CountDriftedError` unless the row `found` has the expected count, and the expected digest if there is one."""
    count = expected if isinstance(expected, int) else expected.count
    if found["count"] != count or (isinstance(expected, Expected) and found["digest"] != expected.digest):
        raise CountDriftedError(expected=count, found=found["count"])
