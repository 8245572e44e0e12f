"""Bulk operations in the database: create, read with progress and results, pause, resume, cancel."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import asyncpg

from outbox.dead_letters.actions import (
    Action,
    BeforeCommit,
    Expected,
    Item,
    ItemOutcome,
    Operation,
    OperationState,
    Result,
    Results,
    decode_options,
    encode_options,
    encode_selector,
)
from outbox.dead_letters.changes import SELECTION, TIMEOUT, Request, Statements, require_expected
from outbox.dead_letters.filters import Arguments, Selection
from outbox.dead_letters.model import DeadLetterFilter
from outbox.errors import DatabaseUnavailableError, RefusedError
from outbox.masking import Masking
from outbox.postgres.pool import Connection, Pool
from outbox.postgres.queries import TableName

REFRESH_LIMIT = 1_000
"""Number of messages whose results one refresh looks for."""
UNKNOWN_AFTER = timedelta(days=7)
"""Age of a requeue after which its result is unknown, unless the message fails again later."""


class ResultRefresher:
    """Keeps the results of operations on the dead letters of one outbox table up to date."""

    def __init__(self, pool: Pool, table: TableName) -> None:
        self._sql = Statements(pool, table, "results.sql")

    async def refresh(self, operation: int | None = None) -> int:
        """Refreshes the results of one operation, or those due of all operations; returns the number of new results.

        Does nothing on a read-only connection.
        """
        doing = "looking for results of operations"
        if operation is None and not await self._sql.finds("any_due", doing):
            return 0
        try:
            async with self._sql.transaction(doing) as connection:
                if operation is None:
                    await connection.execute(self._sql["in_order"], timeout=TIMEOUT)
                    rows = await connection.fetch(self._sql["due"], REFRESH_LIMIT, timeout=TIMEOUT)
                    await connection.execute(self._sql["in_any_order"], timeout=TIMEOUT)
                    return await self._look(connection, rows)
                return await self.refresh_within(connection, operation)
        except DatabaseUnavailableError as error:
            if isinstance(error.__cause__, asyncpg.InsufficientPrivilegeError | asyncpg.ReadOnlySQLTransactionError):
                return 0
            raise

    async def refresh_within(self, connection: Connection, operation: int, *, due_only: bool = False) -> int:
        """Refreshes the results of one operation in the caller's transaction; `due_only`: only those that are due."""
        rows = await connection.fetch(self._sql["due_of"], REFRESH_LIMIT, operation, not due_only, timeout=TIMEOUT)
        return await self._look(connection, rows)

    async def _look(self, connection: Connection, rows: Sequence[Any]) -> int:
        if not rows:
            return 0
        ids, positions = [row["operation_id"] for row in rows], [row["position"] for row in rows]
        found: int = await connection.fetchval(self._sql["look"], ids, positions, UNKNOWN_AFTER, timeout=TIMEOUT)
        return found


_SELECT_TIMEOUT = timedelta(minutes=10).total_seconds()
"""Timeout for selecting the dead letters of one operation; a million take about one minute."""
_AFTER_LAST_POSITION = 2**31
CANCELLED = "the operation was cancelled before it"


@dataclass(frozen=True, slots=True)
class OperationItem:
    """One dead letter of an operation, with its position, and for a requeued message its result."""

    position: int
    item: Item
    result: Result | None = None
    failed_attempts: int = 0


class Operations:
    """Operations on the dead letters of one outbox table. Reading an operation refreshes its results first."""

    def __init__(self, pool: Pool, table: TableName, *, masking: Masking | None = None) -> None:
        self._sql = Statements(pool, table, "operations.sql")
        self._selecting = Selection(table)
        self._results = ResultRefresher(pool, table)
        self._masking = masking or Masking()

    async def create(
        self,
        request: Request,
        selector: Sequence[str] | DeadLetterFilter,
        *,
        limit: int | None = None,
        expected: int | Expected | None = None,
        before_commit: BeforeCommit[Operation] | None = None,
        require: Callable[[Connection], Awaitable[None]] | None = None,
    ) -> Operation:
        """Creates a running operation on the oldest `limit` dead letters of `selector`. Skips dead letters of other operations.

        Raises `CountDriftedError` if a filter no longer selects the `expected` dead letters. `require` is awaited before the
        dead letters are selected, `before_commit` right before the commit.
        """
        async with self._sql.transaction("creating an operation") as connection:
            # One creation at a time, so that no dead letter gets into two operations.
            await connection.execute(self._sql["take_turn"], timeout=TIMEOUT)
            id_ = await connection.fetchval(
                self._sql["create"],
                request.action,
                encode_selector(selector),
                encode_options(request.options),
                request.reason,
                request.by,
                request.options.starts_at,
                timeout=TIMEOUT,
            )
            arguments = Arguments([id_])
            statement = self._sql["fix_letters"].replace(SELECTION, self._selecting.oldest(selector, limit, arguments))
            if require is not None:
                await require(connection)
            [row] = await connection.fetch(statement, *arguments.values, timeout=_SELECT_TIMEOUT)
            if expected is not None:
                require_expected(expected, row)
            await connection.execute(self._sql["created"], id_, row["count"], timeout=TIMEOUT)
            return await self._finish(connection, id_, before_commit)

    async def get(self, id_: int) -> Operation | None:
        """Returns the operation with that number, or None."""
        await self._results.refresh(id_)
        async with self._sql.transaction("reading an operation") as connection:
            row = await connection.fetchrow(self._sql["operation"], id_, timeout=TIMEOUT)
        return None if row is None else operation_from_row(row)

    async def list(
        self, *, active: bool = False, limit: int = 50, before: int | None = None, after: int | None = None
    ) -> Sequence[Operation]:
        """Operations, newest first; `active`: only those that have not ended. `before`: older; `after`: the next newer ones."""
        await self._results.refresh()
        async with self._sql.transaction("reading operations") as connection:
            if after is None:
                rows = await connection.fetch(self._sql["operations"], active, limit, before, timeout=TIMEOUT)
            else:
                rows = await connection.fetch(self._sql["newer_operations"], active, limit, after, timeout=TIMEOUT)
        return [operation_from_row(row) for row in rows]

    async def items(
        self, id_: int, *, outcome: ItemOutcome | None = None, after: int = 0, limit: int = 200
    ) -> Sequence[OperationItem]:
        """Items of an operation in the order of their positions; `after` is the last position of the previous page."""
        async with self._sql.transaction("reading the letters of an operation") as connection:
            rows = await connection.fetch(self._sql["items"], id_, after, outcome, limit, timeout=TIMEOUT)
        return [self._item(row) for row in rows]

    async def count(self, *, active: bool = False, limit: int) -> int:
        """Number of operations, counted up to `limit`; `active`: only those that have not ended."""
        async with self._sql.transaction("counting operations") as connection:
            count: int = await connection.fetchval(self._sql["count_operations"], active, limit, timeout=TIMEOUT)
        return count

    async def items_by_outcome(
        self,
        id_: int,
        outcomes: Sequence[ItemOutcome],
        *,
        behind: tuple[ItemOutcome, int] | None = None,
        backwards: bool = False,
        limit: int = 200,
    ) -> Sequence[OperationItem]:
        """Items of an operation, grouped by outcome in the order of `outcomes`, then in the order of their positions.

        Starts after the outcome and position `behind`; with `backwards`, reads back from before it, the nearest first.
        """
        first = (outcomes[0], 0) if not backwards else (outcomes[-1], _AFTER_LAST_POSITION)
        outcome, position = behind or first
        block = "items_in_turn_backwards" if backwards else "items_in_turn"
        arguments = (id_, list(outcomes), list(outcomes).index(outcome) + 1, position, limit)
        async with self._sql.transaction("reading the letters of an operation") as connection:
            rows = await connection.fetch(self._sql[block], *arguments, timeout=TIMEOUT)
        return [self._item(row) for row in rows]

    async def pause(self, id_: int, *, before_commit: BeforeCommit[Operation] | None = None) -> Operation:
        """Pauses a running operation after its current batch. Raises `RefusedError` unless it is running."""
        return await self._change("pause", id_, before_commit)

    async def resume(self, id_: int, *, before_commit: BeforeCommit[Operation] | None = None) -> Operation:
        """Continues a paused operation. Raises `RefusedError` unless it is paused."""
        return await self._change("resume", id_, before_commit)

    async def cancel(self, id_: int, *, before_commit: BeforeCommit[Operation] | None = None) -> Operation:
        """Ends an operation and releases its pending dead letters. Raises `RefusedError` if it has ended."""
        async with self._sql.transaction("cancelling an operation") as connection:
            if await end_operation(connection, self._sql, id_, OperationState.CANCELLED, None, CANCELLED):
                return await self._finish(connection, id_, before_commit)
            raise await self._refusal(connection, "cancelled", id_)

    async def _change(self, name: str, id_: int, before_commit: BeforeCommit[Operation] | None) -> Operation:
        async with self._sql.transaction(f"changing operation {id_}") as connection:
            if await connection.fetchval(self._sql[name], id_, timeout=TIMEOUT) is None:
                raise await self._refusal(connection, f"{name}d", id_)
            return await self._finish(connection, id_, before_commit)

    async def _finish(self, connection: Connection, id_: int, before_commit: BeforeCommit[Operation] | None) -> Operation:
        """Reads the operation at the end of the transaction, and awaits `before_commit` with it."""
        operation = operation_from_row(await connection.fetchrow(self._sql["operation"], id_, timeout=TIMEOUT))
        if before_commit is not None:
            await before_commit(connection, operation)
        return operation

    def _item(self, row: Any) -> OperationItem:
        # The reason of a requeued dead letter quotes the error of its latest attempt.
        reason = self._masking.masked_text(row["detail"] or "") if row["result"] else row["detail"] or ""
        item = Item(row["letter"], ItemOutcome(row["outcome"]), reason)
        return OperationItem(row["position"], item, Result(row["result"]) if row["result"] else None, row["failed_attempts"])

    async def _refusal(self, connection: Connection, wanted: str, id_: int) -> RefusedError:
        row = await connection.fetchrow(self._sql["operation"], id_, timeout=TIMEOUT)
        if row is None:
            return RefusedError(f"there is no operation {id_}")
        return RefusedError(f"operation {id_} is {row['state']} and cannot be {wanted}")


async def end_operation(
    connection: Connection, sql: Statements, id_: int, state: OperationState, because: str | None, detail: str
) -> bool:
    """Ends an active operation and releases its pending dead letters with the reason `detail`; False if it had ended."""
    if await connection.fetchval(sql["end"], id_, state, because, timeout=TIMEOUT) is None:
        return False
    await connection.execute(sql["skip_pending"], id_, detail, timeout=TIMEOUT)
    return True


def operation_from_row(row: Any) -> Operation:
    """Builds an `Operation` from a row of the statement `operation`. Leaves out outcomes without dead letters."""
    counts = {ItemOutcome(name): count for name, count in json.loads(row["counts"]).items()}
    # `done` also counts dead letters that have failed again since.
    counts[ItemOutcome.DONE] = row["done"] - counts.get(ItemOutcome.FAILED_AGAIN, 0)
    counts[ItemOutcome.PENDING] = row["total"] - sum(counts.values())
    return Operation(
        id=row["id"],
        action=Action(row["action"]),
        state=OperationState(row["state"]),
        selector=json.loads(row["selector"]),
        options=decode_options(row["options"]),
        reason=row["reason"],
        requested_by=row["requested_by"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        finished_at=row["finished_at"],
        continue_at=row["continue_at"],
        canary_until=row["canary_until"],
        total=row["total"],
        counts={outcome: count for outcome, count in counts.items() if count},
        stopped_because=row["stopped_because"],
        canary_since=row["canary_since"],
        results=_results(row) if row["action"] == Action.REQUEUE else Results(),
    )


def _results(row: Any) -> Results:
    # `late` counts dead letters that failed again after the last refresh: they still count under their previous result.
    late, failed_again = json.loads(row["late"]), json.loads(row["counts"]).get(ItemOutcome.FAILED_AGAIN, 0)
    waiting, retrying, handled = (row[name] - late[name] for name in ("waiting", "retrying", "handled"))
    return Results(
        sent=row["done"],
        waiting=waiting,
        retrying=retrying,
        handled=handled,
        failed_again=failed_again,
        unknown=row["done"] - waiting - retrying - handled - failed_again,
        failed=row["failed"] + late["failed"],
    )
