"""What an action would do, and what to think of before: counted, and nothing changed."""

import json
from collections.abc import Mapping
from typing import Any

from outbox.errors import CountDriftedError
from outbox.postgres.dead_letters import DeadLetterFilter
from outbox.postgres.dead_letters.listing import DeadLetterListing
from outbox.postgres.dead_letters.selecting import Arguments
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection, Pool
from outbox.postgres.repair.changes import HasQueue, Request
from outbox.postgres.repair.statements import SELECTION, TIMEOUT, Statements
from outbox.postgres.repair.targeting import Selecting
from outbox.postgres.repair.values import Action, Expected, OriginalRouting, Plan, ToQueue

SAMPLE = 5
"""Dead letters that a plan shows."""


class Planning:
    """Makes plans for the dead letters of one outbox table."""

    def __init__(self, pool: Pool, table: TableName, listing: DeadLetterListing, has_queue: HasQueue) -> None:
        self._sql = Statements(pool, table, "planning.sql")
        self._selecting = Selecting(table)
        self._listing = listing
        self._has_queue = has_queue

    async def plan(self, request: Request, selector: DeadLetterFilter, limit: int | None) -> Plan:
        """What `request` would do to the oldest `limit` that fit `selector` now."""
        arguments = Arguments([request.options.retention])
        statement = self._sql["plan"].replace(SELECTION, self._selecting.lines(selector, limit, arguments))
        async with self._sql.transaction("planning") as connection:
            [row] = await connection.fetch(statement, *arguments.values, timeout=TIMEOUT)
        by_queue = json.loads(row["by_queue"])
        warnings = _busy_warnings(row)
        if request.action is Action.REQUEUE:
            warnings += _requeue_warnings(row, request) + await self._queue_warnings(request, by_queue)
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
        """Raises `CountDriftedError` unless the oldest `limit` that fit `selector` are those that were `expected`."""
        arguments = Arguments()
        statement = self._sql["digest_of"].replace(SELECTION, self._selecting.lines(selector, limit, arguments))
        [row] = await connection.fetch(statement, *arguments.values, timeout=TIMEOUT)
        require_expected(expected, row)

    async def _queue_warnings(self, request: Request, by_queue: Mapping[str, int]) -> list[str]:
        match request.options.destination:
            case ToQueue(queue):
                wanted = {queue: sum(by_queue.values())}
            case OriginalRouting():
                wanted = {}
            case _:
                wanted = {queue: count for queue, count in by_queue.items() if queue}
        missing = {queue: count for queue, count in wanted.items() if not await self._has_queue(queue)}
        refused = [f"{count:,} will be refused: the queue {queue} does not exist" for queue, count in missing.items()]
        async with self._sql.transaction("looking for workers without history") as connection:
            silent = await connection.fetch(self._sql["silent_workers"], sorted(wanted), timeout=TIMEOUT)
        return refused + [
            f"what becomes of {wanted[row['queue']]:,} will not be known: {row['worker']}, a worker of {row['queue']}, "
            "writes no history and has no inbox there, so a canary would stop"
            for row in silent
        ]


def require_expected(expected: int | Expected, found: Any) -> None:
    """Raises `CountDriftedError` unless the row `found` has the count, and the digest if there is one, that were expected."""
    count = expected if isinstance(expected, int) else expected.count
    if found["count"] != count or (isinstance(expected, Expected) and found["digest"] != expected.digest):
        raise CountDriftedError(expected=count, found=found["count"])


def _busy_warnings(row: Any) -> list[str]:
    return [f"{row['busy']:,} will be skipped: other operations have them"] if row["busy"] else []


def _requeue_warnings(row: Any, request: Request) -> list[str]:
    warnings = []
    if row["too_old"] and request.options.force:
        warnings.append(
            f"{row['too_old']:,} are older than inboxes remember: a consumer with an inbox could process them twice"
        )
    elif row["too_old"]:
        warnings.append(
            f"{row['too_old']:,} will be refused: they are older than inboxes remember (force does it all the same)"
        )
    if row["overtaken"]:
        warnings.append(f"{row['overtaken']:,} share an ordering key with messages that wait, and will come after those")
    return warnings
