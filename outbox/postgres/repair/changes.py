"""One action on a bounded number of dead letters, in few statements of the caller's transaction."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from outbox.postgres.dead_letters.selecting import dead_ids, parked_ids
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection, Pool
from outbox.postgres.repair.statements import TIMEOUT, Statements
from outbox.postgres.repair.values import Action, Also, Item, ItemOutcome, Options, OriginalRouting, Repaired, ToQueue

HasQueue = Callable[[str], Awaitable[bool]]
"""Whether a queue is there to send to. Raises `BrokerUnavailableError` if nobody can say now."""

_GONE = "there is no such dead letter: it was purged, or sent, or never was"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An action, how it is done, and for the record by whom, why, and in which operation."""

    action: Action
    options: Options
    by: str | None = None
    reason: str | None = None
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What came of one dead letter; if it was sent again, with which count and id, and where to (None: by routing key)."""

    item: Item
    requeue_count: int | None = None
    message_id: str | None = None
    queue: str | None = None


class Changes:
    """Applies actions to dead letters of the outbox table `table`.

    `history`: whether requeueing writes facts. Everything happens in the caller's transaction, which locks the letters until
    its end; a letter that somebody else is changing is waited for.
    """

    def __init__(self, pool: Pool, table: TableName, has_queue: HasQueue, *, history: bool = True) -> None:
        self._sql = Statements(pool, table, "repair.sql")
        self._has_queue = has_queue
        self._history = history

    async def at_once(
        self,
        request: Request,
        ids: Sequence[str],
        *,
        also: Also[Repaired] | None = None,
        require: Callable[[Connection], Awaitable[None]] | None = None,
    ) -> Repaired:
        """Does it in one transaction of its own, `also` in it, and says what came of each of `ids`, in their order.

        `require` is called before, when nobody else changes them any more; what it raises rolls everything back.
        """
        queues = await self.known_queues(request, ids)
        async with self._sql.transaction(f"{request.action} of dead letters") as connection:
            if require is not None:
                await self.lock(connection, request, ids)
                await require(connection)
            changes = await self.apply(connection, request, ids, queues)
            repaired = Repaired(request.action, [change.item for change in changes])
            if also is not None:
                await also(connection, repaired)
        return repaired

    async def known_queues(self, request: Request, ids: Sequence[str]) -> frozenset[str]:
        """Those of the queues that `ids` would be requeued to that exist; asked before the transaction, which waits for nobody.

        Raises `BrokerUnavailableError` if nobody can say now.
        """
        if request.action is not Action.REQUEUE:
            return frozenset()
        wanted = await self._destinations(request.options, _Ids.of(ids))
        return frozenset([queue for queue in sorted(wanted) if await self._has_queue(queue)])

    async def apply(
        self, connection: Connection, request: Request, ids: Sequence[str], queues: frozenset[str]
    ) -> Sequence[Change]:
        """Does what is requested to `ids`, and says what came of each, in their order. `queues` are those that exist."""
        await self.lock(connection, request, ids)
        split = _Ids.of(ids)
        rows = await self._change(connection, request, split, queues)
        changes = {row["id"]: _change(row) for row in rows}
        released = [row["ordering_key"] for row in rows if row.get("ordering_key") is not None]
        if released:
            await connection.execute(self._sql["release_lanes"], released, timeout=TIMEOUT)
        if released or (request.action is Action.REQUEUE and split.parked):
            await connection.execute(self._sql["ring"], timeout=TIMEOUT)
        return [changes.get(id_) or Change(Item(id_, ItemOutcome.NOT_FOUND, _GONE)) for id_ in ids]

    async def lock(self, connection: Connection, request: Request, ids: Sequence[str]) -> None:
        """Afterwards nobody else changes them until the transaction ends. What is in flight is not waited for."""
        split = _Ids.of(ids)
        if request.action is Action.REQUEUE and split.parked:
            await connection.execute(self._sql["lock_dedup_keys"], split.parked, timeout=TIMEOUT)
        await connection.execute(self._sql["lock_letters"], split.letters, timeout=TIMEOUT)
        await connection.execute(self._sql["lock_parked"], split.parked, timeout=TIMEOUT)

    async def _change(self, connection: Connection, request: Request, ids: "_Ids", queues: frozenset[str]) -> Sequence[Any]:
        arguments = self._arguments(request, queues)
        rows: list[Any] = []
        if ids.letters:
            why = (request.reason,) if request.action is Action.REQUEUE else ()
            statement = self._sql[f"{request.action}_letters"]
            rows += await connection.fetch(statement, ids.letters, *arguments, *why, timeout=TIMEOUT)
        if ids.parked:
            statement = self._sql[f"{request.action}_parked"]
            rows += await connection.fetch(statement, ids.parked, *arguments, timeout=TIMEOUT)
        return rows

    def _arguments(self, request: Request, queues: frozenset[str]) -> Sequence[object]:
        """What the statements of an action take after the ids."""
        match request.action:
            case Action.REQUEUE:
                options = request.options
                return (
                    request.operation,
                    options.destination.queue if isinstance(options.destination, ToQueue) else None,
                    isinstance(options.destination, OriginalRouting),
                    sorted(queues),
                    None if options.force else options.retention,
                    request.by,
                    self._history,
                )
            case Action.DISCARD:
                return request.operation, request.by, request.reason
            case Action.RESTORE:
                return (request.operation,)
            case Action.PURGE:
                return request.operation, request.options.force
            case _:
                assert_never(request.action)

    async def _destinations(self, options: Options, ids: "_Ids") -> Iterable[str]:
        match options.destination:
            case ToQueue(queue):
                return [queue]
            case OriginalRouting():
                return []
        async with self._sql.transaction("looking for the queues of dead letters") as connection:
            rows = await connection.fetch(self._sql["destinations"], ids.letters, ids.parked, timeout=TIMEOUT)
        return [row["queue"] for row in rows]


def subscribed_queues(pool: Pool, table: TableName) -> HasQueue:
    """Finds queues where PostgreSQL is the broker: in the tables beside `table`."""
    sql = Statements(pool, table, "repair.sql")

    async def has_queue(queue: str) -> bool:
        async with sql.transaction("looking for a queue") as connection:
            return bool(await connection.fetchval(sql["has_queue"], queue, timeout=TIMEOUT))

    return has_queue


@dataclass(frozen=True, slots=True)
class _Ids:
    """Ids as operators know them, as row ids of the two tables; what is neither is in none."""

    letters: list[int]
    parked: list[int]

    @classmethod
    def of(cls, ids: Sequence[str]) -> "_Ids":
        return cls(dead_ids(ids), parked_ids(ids))


def _change(row: Any) -> Change:
    item = Item(row["id"], ItemOutcome(row["outcome"]), row["reason"])
    if item.outcome is not ItemOutcome.DONE or "message_id" not in row:
        return Change(item, row.get("requeue_count"))
    return Change(item, row["requeue_count"], row["message_id"], row["destination"])
