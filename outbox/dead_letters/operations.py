"""Bulk operations as rows: created with their items, read with progress and results, paused, resumed, cancelled."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import asyncpg

from outbox.dead_letters.actions import (
    Action,
    Also,
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
from outbox.dead_letters.filters import Arguments, Selecting
from outbox.dead_letters.model import DeadLetterFilter
from outbox.errors import DatabaseUnavailableError, RefusedError
from outbox.masking import Masking
from outbox.postgres.pool import Connection, Pool
from outbox.postgres.queries import TableName

LOOKED_AT = 1_000
"""Most messages that one look is for."""
GIVEN_UP_AFTER = timedelta(days=7)
"""How long a message's result is looked for; after that it is unknown, unless the message fails again."""


class ResultRefresher:
    """Keeps the results of operations on the dead letters of one outbox table up to date."""

    def __init__(self, pool: Pool, table: TableName) -> None:
        self._sql = Statements(pool, table, "results.sql")

    async def refresh(self, operation: int | None = None) -> int:
        """Looks for the results of one operation, or for what is due of all; how many were found that are new.

        Does nothing where the connection may only read.
        """
        try:
            async with self._sql.transaction("looking for results of operations") as connection:
                if operation is None:
                    return await self._look(connection, "due", LOOKED_AT)
                return await self.refresh_within(connection, operation)
        except DatabaseUnavailableError as error:
            if isinstance(error.__cause__, asyncpg.InsufficientPrivilegeError | asyncpg.ReadOnlySQLTransactionError):
                return 0
            raise

    async def refresh_within(self, connection: Connection, operation: int, *, due_only: bool = False) -> int:
        """Looks for the results of one operation in the caller's transaction; `due_only`: for those that are due."""
        return await self._look(connection, "due_of", LOOKED_AT, operation, not due_only)

    async def _look(self, connection: Connection, which: str, *arguments: object) -> int:
        rows = await connection.fetch(self._sql[which], *arguments, timeout=TIMEOUT)
        if not rows:
            return 0
        ids, positions = [row["operation_id"] for row in rows], [row["position"] for row in rows]
        found: int = await connection.fetchval(self._sql["look"], ids, positions, GIVEN_UP_AFTER, timeout=TIMEOUT)
        return found


_FIXING_TIMEOUT = timedelta(minutes=10).total_seconds()
"""Longest time that fixing the letters of one operation takes; a million take about one minute."""
_LAST = 2**31
CANCELLED = "the operation was cancelled before it"


@dataclass(frozen=True, slots=True)
class OperationItem:
    """One letter of an operation, at its place in it; if its message was sent again, what became of that."""

    position: int
    item: Item
    result: Result | None = None
    failed_attempts: int = 0


class Operations:
    """The operations on the dead letters of the outbox table `table`. What is read tells the results as they are found now."""

    def __init__(self, pool: Pool, table: TableName, *, masking: Masking | None = None) -> None:
        self._sql = Statements(pool, table, "operations.sql")
        self._selecting = Selecting(table)
        self._results = ResultRefresher(pool, table)
        self._masking = masking or Masking()

    async def create(
        self,
        request: Request,
        selector: Sequence[str] | DeadLetterFilter,
        *,
        limit: int | None = None,
        expected: int | Expected | None = None,
        also: Also[Operation] | None = None,
        require: Callable[[Connection], Awaitable[None]] | None = None,
    ) -> Operation:
        """A running operation on what `selector` means now, the oldest `limit`; what another one has to do is skipped.

        Raises `CountDriftedError` if these are not `expected`, of a filter. `also` is done in the transaction that fixes the
        letters, `require` before.
        """
        async with self._sql.transaction("creating an operation") as connection:
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
            [row] = await connection.fetch(statement, *arguments.values, timeout=_FIXING_TIMEOUT)
            if expected is not None:
                require_expected(expected, row)
            await connection.execute(self._sql["created"], id_, row["count"], timeout=TIMEOUT)
            return await self._finish(connection, id_, also)

    async def get(self, id_: int) -> Operation | None:
        """The operation as it is now; None if there is none of that number."""
        await self._results.refresh(id_)
        async with self._sql.transaction("reading an operation") as connection:
            row = await connection.fetchrow(self._sql["operation"], id_, timeout=TIMEOUT)
        return None if row is None else operation_of(row)

    async def list(
        self, *, active: bool = False, limit: int = 50, before: int | None = None, after: int | None = None
    ) -> Sequence[Operation]:
        """The newest first; `active`: only those that have not ended. `before`: older ones; `after`: the next newer ones."""
        await self._results.refresh()
        async with self._sql.transaction("reading operations") as connection:
            if after is None:
                rows = await connection.fetch(self._sql["operations"], active, limit, before, timeout=TIMEOUT)
            else:
                rows = await connection.fetch(self._sql["newer_operations"], active, limit, after, timeout=TIMEOUT)
        return [operation_of(row) for row in rows]

    async def items(
        self, id_: int, *, outcome: ItemOutcome | None = None, after: int = 0, limit: int = 200
    ) -> Sequence[OperationItem]:
        """What came of each of its letters, in their order; `after` is the position with which the page before ended."""
        async with self._sql.transaction("reading the letters of an operation") as connection:
            rows = await connection.fetch(self._sql["items"], id_, after, outcome, limit, timeout=TIMEOUT)
        return [self._item(row) for row in rows]

    async def count(self, *, active: bool = False, limit: int) -> int:
        """How many there are, counted no further than `limit`; `active`: of those that have not ended."""
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
        """What came of its letters, one of `outcomes` after another, each in the order of their positions.

        From behind that outcome and position on, or `backwards` from before it.
        """
        first = (outcomes[0], 0) if not backwards else (outcomes[-1], _LAST)
        outcome, position = behind or first
        block = "items_in_turn_backwards" if backwards else "items_in_turn"
        arguments = (id_, list(outcomes), list(outcomes).index(outcome) + 1, position, limit)
        async with self._sql.transaction("reading the letters of an operation") as connection:
            rows = await connection.fetch(self._sql[block], *arguments, timeout=TIMEOUT)
        return [self._item(row) for row in rows]

    async def pause(self, id_: int, *, also: Also[Operation] | None = None) -> Operation:
        """Afterwards nothing more of it is done until it is resumed. Raises `RefusedError` unless it is running."""
        return await self._change("pause", id_, also)

    async def resume(self, id_: int, *, also: Also[Operation] | None = None) -> Operation:
        """Afterwards it goes on where it was. Raises `RefusedError` unless it is paused."""
        return await self._change("resume", id_, also)

    async def cancel(self, id_: int, *, also: Also[Operation] | None = None) -> Operation:
        """Ends it; what is done stays done, and its other letters are free. Raises `RefusedError` if it has ended."""
        async with self._sql.transaction("cancelling an operation") as connection:
            if await end(connection, self._sql, id_, OperationState.CANCELLED, None, CANCELLED):
                return await self._finish(connection, id_, also)
            raise await self._refusal(connection, "cancelled", id_)

    async def _change(self, name: str, id_: int, also: Also[Operation] | None) -> Operation:
        async with self._sql.transaction(f"changing operation {id_}") as connection:
            if await connection.fetchval(self._sql[name], id_, timeout=TIMEOUT) is None:
                raise await self._refusal(connection, f"{name}d", id_)
            return await self._finish(connection, id_, also)

    async def _finish(self, connection: Connection, id_: int, also: Also[Operation] | None) -> Operation:
        """The operation as it is at the end of the transaction, after `also` was called with it."""
        operation = operation_of(await connection.fetchrow(self._sql["operation"], id_, timeout=TIMEOUT))
        if also is not None:
            await also(connection, operation)
        return operation

    def _item(self, row: Any) -> OperationItem:
        """Its reason may quote an error."""
        reason = self._masking.masked_text(row["detail"] or "") if row["result"] else row["detail"] or ""
        item = Item(row["letter"], ItemOutcome(row["outcome"]), reason)
        return OperationItem(row["position"], item, Result(row["result"]) if row["result"] else None, row["failed_attempts"])

    async def _refusal(self, connection: Connection, wanted: str, id_: int) -> RefusedError:
        row = await connection.fetchrow(self._sql["operation"], id_, timeout=TIMEOUT)
        if row is None:
            return RefusedError(f"there is no operation {id_}")
        return RefusedError(f"operation {id_} is {row['state']} and cannot be {wanted}")


async def end(
    connection: Connection, sql: Statements, id_: int, state: OperationState, because: str | None, detail: str
) -> bool:
    """Ends an operation that goes on, and frees its other letters with `detail`; whether it did go on."""
    if await connection.fetchval(sql["end"], id_, state, because, timeout=TIMEOUT) is None:
        return False
    await connection.execute(sql["skip_pending"], id_, detail, timeout=TIMEOUT)
    return True


def operation_of(row: Any) -> Operation:
    """The operation that a row with the columns and `counts` is. Outcomes that no letter came to are left out."""
    counts = {ItemOutcome(name): count for name, count in json.loads(row["counts"]).items()}
    # What was done and has failed again has that outcome now.
    counts[ItemOutcome.DONE] = row["done"] - counts.get(ItemOutcome.DIED_AGAIN, 0)
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
    """What became of what was sent. What failed again since it was looked at last has a result no more."""
    late, failed_again = json.loads(row["late"]), json.loads(row["counts"]).get(ItemOutcome.DIED_AGAIN, 0)
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
