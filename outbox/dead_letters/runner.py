"""Runs bulk operations in batches, one transaction each, so that a crash leaves no batch half done."""

import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import Enum
from typing import Any

from outbox.dead_letters.actions import (
    STOP_RATIO,
    Action,
    Canary,
    ItemOutcome,
    Operation,
    OperationState,
    Options,
    Results,
    decode_options,
)
from outbox.dead_letters.changes import TIMEOUT, Changes, HasQueue, Request, Statements
from outbox.dead_letters.operations import ResultRefresher, end_operation, operation_from_row
from outbox.engine.lifecycle import Stopping
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError
from outbox.postgres.pool import Connection, Pool
from outbox.postgres.queries import TableName

BATCH = 500
"""Number of dead letters changed in one transaction."""
MIN_RESULTS = 10
"""Number of results below which the failure rate does not stop an operation. A canary has no minimum."""
POLL_INTERVAL = timedelta(milliseconds=250)
"""Pause of a runner that found no work."""
BROKER_PAUSE = timedelta(seconds=5)
"""Pause of an operation whose broker cannot be asked whether a queue exists."""
_STOPPED = "the operation stopped before it"


class OperationsRunner:
    """Processes running operations. Any number of runners may work at once; they take different batches."""

    def __init__(
        self,
        pool: Pool,
        table: TableName,
        has_queue: HasQueue,
        *,
        history: bool = True,
        batch: int = BATCH,
        exchange_name: str | None = None,
    ) -> None:
        self._sql = Statements(pool, table, "operations.sql")
        self._changes = Changes(pool, table, has_queue, history=history, exchange_name=exchange_name)
        self._results = ResultRefresher(pool, table)
        self._batch = batch

    async def run(self, stopping: Stopping, *, operation: int | None = None, failed: Callable[[Exception], None]) -> None:
        """Runs batches until `stopping` is requested, and finishes the current one. Calls `failed` while a server is away."""
        while not stopping.requested:
            try:
                worked = await self.run_once(operation)
            except (BrokerUnavailableError, DatabaseUnavailableError) as error:
                failed(error)
                worked = 0
            if not worked:
                await stopping.wait(POLL_INTERVAL)

    async def run_once(self, operation: int | None = None) -> int:
        """Processes one batch of a due operation, or of `operation`; returns the number of dead letters, 0 if none was due.

        Changes and records each dead letter in one transaction: after a crash, either both happened or neither. Raises
        `DatabaseUnavailableError`, and `BrokerUnavailableError` if the broker cannot be asked whether a queue exists; that
        operation then pauses, and others continue.
        """
        if operation is None and not await self._sql.finds("any_due", "looking for operations"):
            return 0
        async with self._sql.transaction("looking for operations") as connection:
            due = await self._fetchrow(connection, "due", operation)
            if due is None:
                return 0
            match await self._check_results(connection, due):
                case str(because):
                    await end_operation(connection, self._sql, due["id"], OperationState.STOPPED, because, _STOPPED)
                    # Counts as work, so that the next operation is looked for at once.
                    return 1
                case Decision.WAIT:
                    await connection.execute(self._sql["wait_for_canary"], due["id"], timeout=TIMEOUT)
                    return 0
            items = await self._next_items(connection, due)
        request = _request(due, decode_options(due["options"]))
        try:
            queues = await self._changes.known_queues(request, [item["letter"] for item in items])
        except BrokerUnavailableError:
            async with self._sql.transaction("postponing an operation") as connection:
                await connection.execute(self._sql["postpone"], due["id"], BROKER_PAUSE, timeout=TIMEOUT)
            raise
        # A second transaction, because the first would hold its locks while the broker is asked. The operation may have been
        # paused or cancelled in between: `lock` returns a row only if it is still running.
        async with self._sql.transaction(f"operation {due['id']}") as connection:
            locked = await self._fetchrow(connection, "lock", due["id"])
            if locked is None:
                return 0
            return await self._run_batch(connection, locked, queues, checked=frozenset(item["letter"] for item in items))

    async def refresh_results(self) -> int:
        """Refreshes the results of all operations, including ended ones; returns the number of new results."""
        return await self._results.refresh()

    async def _check_results(self, connection: Connection, row: Any) -> "Decision | str":
        """Whether the locked operation `row` may continue with its current results, or the reason to stop it."""
        if row["action"] != Action.REQUEUE or not row["done"]:
            return Decision.CONTINUE
        canary = decode_options(row["options"]).canary
        waiting = canary is not None and row["done"] == canary.count
        await self._results.refresh_within(connection, row["id"], due_only=not waiting)
        operation = operation_from_row(await self._fetchrow(connection, "operation", row["id"]))
        return decide(operation, is_canary_over=row["is_canary_over"])

    async def _run_batch(self, connection: Connection, row: Any, queues: frozenset[str], *, checked: frozenset[str]) -> int:
        """Processes a batch of the locked operation `row`, limited to dead letters whose queues were `checked`."""
        options = decode_options(row["options"])
        # Read again under the lock, as another runner may have been here, and without dead letters whose queue was not asked
        # for.
        items = [item for item in await self._next_items(connection, row) if item["letter"] in checked]
        changes = await self._changes.apply(connection, _request(row, options), [item["letter"] for item in items], queues)
        await connection.execute(
            self._sql["settle_items"],
            row["id"],
            [item["position"] for item in items],
            [change.item.outcome for change in changes],
            [change.item.reason for change in changes],
            [change.requeue_count for change in changes],
            [change.message_id for change in changes],
            [change.queue for change in changes],
            timeout=TIMEOUT,
        )
        done: int = sum(change.item.outcome is ItemOutcome.DONE for change in changes)
        # Only for what was sent: refused dead letters are no load.
        pause = None if options.rate is None else timedelta(seconds=done / options.rate)
        canary = options.canary
        # The wait begins with the batch that completes the canary, and only once.
        wait = canary.wait if canary is not None and row["done"] < canary.count <= row["done"] + done else None
        passed = canary is not None and row["done"] >= canary.count
        await connection.execute(self._sql["proceed"], row["id"], done, pause, wait, passed, timeout=TIMEOUT)
        return len(items)

    async def _next_items(self, connection: Connection, row: Any) -> Sequence[Any]:
        options = decode_options(row["options"])
        # At most what the rate allows in one second, so that it is kept evenly; a canary only up to its own count.
        limit = self._batch if options.rate is None else min(self._batch, math.ceil(options.rate))
        missing: int = 0 if options.canary is None else options.canary.count - row["done"]
        if missing > 0:
            limit = min(limit, missing)
        rows: Sequence[Any] = await connection.fetch(self._sql["next_items"], row["id"], limit, timeout=TIMEOUT)
        return rows

    async def _fetchrow(self, connection: Connection, name: str, id_: int | None) -> Any:
        row: Any = await connection.fetchrow(self._sql[name], id_, timeout=TIMEOUT)
        return row


class Decision(Enum):
    """Whether an operation continues, or waits for the results of its canary."""

    CONTINUE = "continue"
    WAIT = "wait"


def decide(operation: Operation, *, is_canary_over: bool) -> Decision | str:
    """Whether a requeue may continue with its current results, or the reason to stop it.

    `is_canary_over`: the wait for the results of its canary has ended.
    """
    options, results = operation.options, operation.results
    canary = options.canary
    if canary is not None and results.sent <= canary.count:
        if results.failed > (options.stop_ratio or 0.0) * canary.count:
            return f"{results.failed:,} of the first {results.sent:,} failed"
        if results.sent == canary.count and (results.open or results.unknown):
            return _why_canary_failed(results, canary) if is_canary_over else Decision.WAIT
        return Decision.CONTINUE
    tolerated = STOP_RATIO if options.stop_ratio is None else options.stop_ratio
    failing = results.retrying + results.failed_again
    # Without history only failures are known, not successes: compare them with all that was sent.
    known = failing + results.handled if results.handled else results.sent
    if tolerated < 1 and known >= MIN_RESULTS and failing > tolerated * known:
        return f"{failing:,} of {known:,} failed, more than {tolerated:.0%}"
    return Decision.CONTINUE


def _why_canary_failed(results: Results, canary: Canary) -> str:
    """Why a canary without all results has failed, and what to do."""
    after = f"after {canary.wait.total_seconds():g} s"
    if results.retrying:
        return f"{results.retrying:,} of the first {canary.count:,} were still being retried {after}"
    return (
        f"the results of {results.waiting + results.unknown:,} of the first {canary.count:,} are not known {after}: "
        "no worker has handled them yet, or their worker writes no history (OUTBOX_HISTORY); "
        "let the canary wait longer, or requeue the others without one"
    )


def _request(row: Any, options: Options) -> Request:
    return Request(
        action=Action(row["action"]), options=options, by=row["requested_by"], reason=row["reason"], operation=row["id"]
    )
