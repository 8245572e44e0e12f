"""Runs bulk operations batch by batch, one transaction each, so that a crash leaves no batch half done."""

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
from outbox.dead_letters.operations import ResultRefresher, end, operation_of
from outbox.engine.lifecycle import Stopping
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError
from outbox.postgres.pool import Connection, Pool
from outbox.postgres.queries import TableName

BATCH = 500
"""Letters that are changed in one transaction."""
FEWEST_JUDGED = 10
"""A share of fewer messages than these says nothing; a canary of fewer does."""
LOOK_AGAIN = timedelta(milliseconds=250)
"""How often a runner without work looks for some."""
BROKER_PAUSE = timedelta(seconds=5)
"""How long an operation waits for a broker that cannot say whether a queue is there."""
_STOPPED = "the operation stopped before it"


class OperationsRunner:
    """Does what running operations have to do. Any number may run at once: each batch is one runner's."""

    def __init__(self, pool: Pool, table: TableName, has_queue: HasQueue, *, history: bool = True, batch: int = BATCH) -> None:
        self._sql = Statements(pool, table, "operations.sql")
        self._changes = Changes(pool, table, has_queue, history=history)
        self._results = ResultRefresher(pool, table)
        self._batch = batch

    async def run(self, stopping: Stopping, *, operation: int | None = None, failed: Callable[[Exception], None]) -> None:
        """Works until `stopping` is requested; a batch that has begun is finished. `failed` is called when a server is away."""
        while not stopping.requested:
            try:
                worked = await self.run_once(operation)
            except (BrokerUnavailableError, DatabaseUnavailableError) as error:
                failed(error)
                worked = 0
            if not worked:
                await stopping.wait(LOOK_AGAIN)

    async def run_once(self, operation: int | None = None) -> int:
        """Does one batch of an operation that is due, of `operation` if it is given; how many letters, 0 if none was due.

        Each letter is changed and noted in one transaction: after a crash, either both happened or neither. Raises
        `DatabaseUnavailableError`, and `BrokerUnavailableError` if the broker cannot say whether a queue is there; then that
        operation waits a while, and others go on.
        """
        async with self._sql.transaction("looking for operations") as connection:
            due = await self._fetchrow(connection, "due", operation)
            if due is None:
                return 0
            match await self._judge(connection, due):
                case str(because):
                    await end(connection, self._sql, due["id"], OperationState.STOPPED, because, _STOPPED)
                    return 1
                case Verdict.WAIT:
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
        async with self._sql.transaction(f"operation {due['id']}") as connection:
            locked = await self._fetchrow(connection, "lock", due["id"])
            return (
                0
                if locked is None
                else await self._go_on(connection, locked, queues, asked=frozenset(item["letter"] for item in items))
            )

    async def refresh_results(self) -> int:
        """Looks for results of operations, also of those that have ended; how many were found that are new."""
        return await self._results.refresh()

    async def _judge(self, connection: Connection, row: Any) -> "Verdict | str":
        """Whether the locked operation `row` may go on, by the results that there are now; if it must stop, why."""
        if row["action"] != Action.REQUEUE or not row["done"]:
            return Verdict.GO_ON
        canary = decode_options(row["options"]).canary
        waiting = canary is not None and row["done"] == canary.count
        await self._results.refresh_within(connection, row["id"], due_only=not waiting)
        operation = operation_of(await self._fetchrow(connection, "operation", row["id"]))
        return verdict(operation, is_canary_over=row["is_canary_over"])

    async def _go_on(self, connection: Connection, row: Any, queues: frozenset[str], *, asked: frozenset[str]) -> int:
        """One batch of the locked operation `row`, of letters that it was judged for, and whose queues were asked for."""
        options = decode_options(row["options"])
        items = [item for item in await self._next_items(connection, row) if item["letter"] in asked]
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
        pause = None if options.rate is None else timedelta(seconds=done / options.rate)
        canary = options.canary
        wait = canary.wait if canary is not None and row["done"] < canary.count <= row["done"] + done else None
        passed = canary is not None and row["done"] >= canary.count
        await connection.execute(self._sql["proceed"], row["id"], done, pause, wait, passed, timeout=TIMEOUT)
        return len(items)

    async def _next_items(self, connection: Connection, row: Any) -> Sequence[Any]:
        options = decode_options(row["options"])
        # As many as a second has room for; of a canary, what is missing.
        limit = self._batch if options.rate is None else min(self._batch, math.ceil(options.rate))
        missing: int = 0 if options.canary is None else options.canary.count - row["done"]
        if missing > 0:
            limit = min(limit, missing)
        rows: Sequence[Any] = await connection.fetch(self._sql["next_items"], row["id"], limit, timeout=TIMEOUT)
        return rows

    async def _fetchrow(self, connection: Connection, name: str, id_: int | None) -> Any:
        row: Any = await connection.fetchrow(self._sql[name], id_, timeout=TIMEOUT)
        return row


class Verdict(Enum):
    """Whether an operation may go on, or has to wait for the results of its canary."""

    GO_ON = "go on"
    WAIT = "wait"


def verdict(operation: Operation, *, is_canary_over: bool) -> Verdict | str:
    """Whether a requeue may go on by its results, or the reason why it must stop.

    `is_canary_over`: the results of its canary have been waited for as long as was asked for.
    """
    options, results = operation.options, operation.results
    canary = options.canary
    if canary is not None and results.sent <= canary.count:
        if results.failed > (options.stop_ratio or 0.0) * canary.count:
            return f"{results.failed:,} of the first {results.sent:,} failed"
        if results.sent == canary.count and (results.open or results.unknown):
            return _unknown(results, canary) if is_canary_over else Verdict.WAIT
        return Verdict.GO_ON
    tolerated = STOP_RATIO if options.stop_ratio is None else options.stop_ratio
    failing = results.retrying + results.failed_again
    # What only deaths are known of can be compared with nothing but all that was sent.
    judged = failing + results.handled if results.handled else results.sent
    if tolerated < 1 and judged >= FEWEST_JUDGED and failing > tolerated * judged:
        return f"{failing:,} of {judged:,} failed, more than {tolerated:.0%}"
    return Verdict.GO_ON


def _unknown(results: Results, canary: Canary) -> str:
    """Why a canary whose results are not all known has not passed, and what to do."""
    after = f"after {canary.wait.total_seconds():g} s"
    if results.retrying:
        return f"{results.retrying:,} of the first {canary.count:,} were still being retried {after}"
    return (
        f"the results of {results.waiting + results.unknown:,} of the first {canary.count:,} are not known {after}: "
        "no worker has handled them yet, or theirs writes no history (OUTBOX_HISTORY); "
        "let the canary wait longer, or requeue the others without one"
    )


def _request(row: Any, options: Options) -> Request:
    return Request(
        action=Action(row["action"]), options=options, by=row["requested_by"], reason=row["reason"], operation=row["id"]
    )
