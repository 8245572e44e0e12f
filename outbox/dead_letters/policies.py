"""Requeue policies: requeue the dead letters of a group automatically, at a limited rate, until one fails again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from outbox.core.arguments import at_least_one
from outbox.dead_letters.actions import Action, Canary, Operation, Options
from outbox.dead_letters.changes import TIMEOUT, Request, Statements
from outbox.dead_letters.model import DeadLetterFilter, DeadLetterStatus
from outbox.dead_letters.operations import Operations
from outbox.dead_letters.reader import DeadLetterListing
from outbox.postgres.pool import Connection, Pool
from outbox.postgres.queries import TableName

MOST_PER_HOUR = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RequeuePolicy:
    """Requeues up to `per_hour` open dead letters of a group, in one operation per hour.

    `operation_id` and `started_at` describe the latest operation. Once stopped, the policy requeues nothing until it is set
    again.
    """

    group_id: str
    per_hour: int
    set_by: str
    set_at: datetime
    operation_id: int | None
    started_at: datetime | None
    stopped_at: datetime | None
    stopped_because: str | None


class RequeuePolicies:
    """Requeue policies next to one outbox table. `retention` is the inboxes' deduplication window."""

    def __init__(self, pool: Pool, table: TableName, *, retention: timedelta = timedelta(days=30)) -> None:
        self._sql = Statements(pool, table, "policies.sql")
        self._operations = Operations(pool, table)
        self._listing = DeadLetterListing(pool, table)
        self._retention = retention

    async def all(self, connection: Connection) -> Mapping[str, RequeuePolicy]:
        """Returns all policies by the id of their group."""
        rows = await connection.fetch(self._sql["policies"], timeout=TIMEOUT)
        return {row["group_id"]: RequeuePolicy(**row) for row in rows}

    async def set(self, connection: Connection, group: str, per_hour: int | None, *, set_by: str) -> None:
        """Sets the policy of a group, also if it has stopped; None removes it."""
        if per_hour is None:
            await connection.execute(self._sql["clear_policy"], group, timeout=TIMEOUT)
        else:
            at_least_one("per_hour", per_hour, most=MOST_PER_HOUR)
            await connection.execute(self._sql["set_policy"], group, per_hour, set_by, timeout=TIMEOUT)

    async def apply(self) -> int:
        """Starts due operations, and stops policies whose latest one failed or requeued nothing; returns the number of changes.

        Any number of processes may call this at once. Raises `DatabaseUnavailableError`.
        """
        changed = 0
        async with self._sql.transaction("reading requeue policies") as connection:
            rows = await connection.fetch(self._sql["active_policies"], timeout=TIMEOUT)
            for row in rows:
                if (because := _reason_to_stop(row)) is not None:
                    await connection.execute(self._sql["stop"], row["group_id"], because, timeout=TIMEOUT)
                    changed += 1
        for row in rows:
            # After the commit: creating an operation waits for its turn, and must not hold the locks of all policies meanwhile.
            if _reason_to_stop(row) is None and row["is_due"]:
                changed += await self._start(row["group_id"], row["per_hour"], row["set_by"])
        return changed

    async def _start(self, group: str, per_hour: int, set_by: str) -> int:
        wanted = DeadLetterFilter(group_id=group, status=DeadLetterStatus.OPEN)
        if not await self._listing.count(wanted, most=1):
            return 0

        async def claim(connection: Connection) -> None:
            # In the transaction that creates the operation, so that of several processes only one starts it.
            if not await connection.fetchval(self._sql["take"], group, timeout=TIMEOUT):
                raise _NotDueError

        async def record_start(connection: Connection, operation: Operation) -> None:
            await connection.execute(self._sql["started"], group, operation.id, timeout=TIMEOUT)

        options = Options(canary=Canary(1), max_items=per_hour, retention=self._retention)
        request = Request(
            action=Action.REQUEUE, options=options, by=f"policy:{set_by}", reason="the requeue policy of the group"
        )
        try:
            await self._operations.create(request, wanted, limit=per_hour, require=claim, before_commit=record_start)
        except _NotDueError:
            return 0
        return 1


class _NotDueError(Exception):
    """The policy was removed, or another process has started its operation."""


def _reason_to_stop(row: Any) -> str | None:
    """Why a policy has to stop after its latest operation; None if it may continue."""
    named = f"operation {row['operation_id']}"
    if row["state"] == "cancelled":
        return f"{named} was cancelled"
    if row["failed"]:
        return f"{row['failed']:,} of the messages of {named} failed again"
    if row["state"] == "stopped":
        return f"{named} stopped: {row['operation_stopped_because']}"
    if row["refused_because"]:
        return f"{named} requeued nothing, because all was refused: {row['refused_because']}"
    return None
