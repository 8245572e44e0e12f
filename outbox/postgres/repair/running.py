"""Operations at work: one batch after another, each one transaction, so that a crash leaves nothing half done."""

import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from outbox.engine.lifecycle import Stopping
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection, Pool
from outbox.postgres.repair.changes import Change, Changes, HasQueue, Request
from outbox.postgres.repair.encoding import decode_options
from outbox.postgres.repair.operations import end
from outbox.postgres.repair.statements import TIMEOUT, Statements
from outbox.postgres.repair.values import Action, ItemOutcome, OperationState, Options

BATCH = 500
"""Letters that are changed in one transaction."""
FEWEST_JUDGED = 10
"""A share of fewer messages than these says nothing; a canary says what it says."""
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
        self._batch = batch

    async def run(self, stopping: Stopping, *, operation: int | None = None, failed: Callable[[Exception], None]) -> None:
        """Works until `stopping` is requested; the batch in hand is finished. `failed` is told when a server is away."""
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
        `DatabaseUnavailableError`, and `BrokerUnavailableError` if nobody can say whether a queue is there; then that operation
        waits a while, and others go on.
        """
        async with self._sql.transaction("looking for operations") as connection:
            due = await self._fetchrow(connection, "due", operation)
            items = [] if due is None else await self._next_items(connection, due)
        if due is None:
            return 0
        queues = await self._queues(due, items)
        async with self._sql.transaction(f"operation {due['id']}") as connection:
            locked = await self._fetchrow(connection, "lock", due["id"])
            return 0 if locked is None else await self._go_on(connection, locked, queues, asked=_letters(items))

    async def _go_on(self, connection: Connection, row: Any, queues: frozenset[str], *, asked: frozenset[str]) -> int:
        """One batch of the locked operation `row`, of letters whose queues were asked for; or its end."""
        options = decode_options(row["options"])
        if because := _reason_to_stop(row, options):
            await end(connection, self._sql, row["id"], OperationState.STOPPED, because, _STOPPED)
            return 1
        items = [item for item in await self._next_items(connection, row) if item["letter"] in asked]
        changes = await self._changes.apply(connection, _request(row, options), [item["letter"] for item in items], queues)
        await self._note(connection, row["id"], items, changes)
        done: int = sum(change.item.outcome is ItemOutcome.DONE for change in changes)
        pause = None if options.rate is None else timedelta(seconds=done / options.rate)
        watch = _watch(row, options, done)
        await connection.execute(self._sql["proceed"], row["id"], done, pause, watch, timeout=TIMEOUT)
        return len(items)

    async def _note(self, connection: Connection, id_: int, items: Sequence[Any], changes: Sequence[Change]) -> None:
        await connection.execute(
            self._sql["settle_items"],
            id_,
            [item["position"] for item in items],
            [change.item.outcome for change in changes],
            [change.item.reason for change in changes],
            [change.requeue_count for change in changes],
            timeout=TIMEOUT,
        )

    async def _queues(self, row: Any, items: Sequence[Any]) -> frozenset[str]:
        request = _request(row, decode_options(row["options"]))
        try:
            return await self._changes.known_queues(request, [item["letter"] for item in items])
        except BrokerUnavailableError:
            async with self._sql.transaction("postponing an operation") as connection:
                await connection.execute(self._sql["postpone"], row["id"], BROKER_PAUSE, timeout=TIMEOUT)
            raise

    async def _next_items(self, connection: Connection, row: Any) -> Sequence[Any]:
        limit = _limit(row, decode_options(row["options"]), self._batch)
        rows: Sequence[Any] = await connection.fetch(self._sql["next_items"], row["id"], limit, timeout=TIMEOUT)
        return rows

    async def _fetchrow(self, connection: Connection, name: str, id_: int | None) -> Any:
        row: Any = await connection.fetchrow(self._sql[name], id_, timeout=TIMEOUT)
        return row


def _limit(row: Any, options: Options, batch: int) -> int:
    """As many as a second has room for; of a canary, what is missing."""
    limit = batch if options.rate is None else min(batch, math.ceil(options.rate))
    missing: int = 0 if options.canary is None else options.canary.count - row["done"]
    return min(limit, missing) if missing > 0 else limit


def _watch(row: Any, options: Options, done: int) -> timedelta | None:
    """How long to wait from now on for what becomes of the canary: it is complete with what was done now."""
    canary = options.canary
    if canary is not None and row["done"] < canary.count <= row["done"] + done:
        return canary.wait
    return None


def _reason_to_stop(row: Any, options: Options) -> str | None:
    """Why an operation must not go on; None: it may."""
    done, returned = row["done"], row["returned"]
    tolerated = options.stop_ratio or 0.0
    if options.canary is not None and done == options.canary.count and returned > tolerated * done:
        return f"{returned} of the first {done} came back dead"
    if options.stop_ratio is not None and done >= FEWEST_JUDGED and returned > tolerated * done:
        return f"{returned} of {done} came back dead, more than {options.stop_ratio:.0%}"
    return None


def _request(row: Any, options: Options) -> Request:
    return Request(
        action=Action(row["action"]), options=options, by=row["requested_by"], reason=row["reason"], operation=row["id"]
    )


def _letters(items: Sequence[Any]) -> frozenset[str]:
    return frozenset(item["letter"] for item in items)
