"""DeadLetters, the class that applications use: reading and repair, one method each."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from outbox.core.arguments import exactly_one, one_of
from outbox.core.arguments import exchange_name as checked_exchange_name
from outbox.core.urls import ServerKind, postgres_url, server_kind
from outbox.dead_letters.actions import (
    Action,
    Also,
    Canary,
    Destination,
    Edit,
    Expected,
    ItemOutcome,
    Operation,
    Options,
    Plan,
    Repaired,
)
from outbox.dead_letters.changes import Changes, Editing, Planning, Request, subscribed_queues
from outbox.dead_letters.filters import oldest_ids, sensible
from outbox.dead_letters.model import DeadLetter, DeadLetterDetail, DeadLetterFilter, Group, GroupBy, Position, Sort
from outbox.dead_letters.operations import OperationItem, Operations
from outbox.dead_letters.reader import EVERYTHING, DeadLetterListing
from outbox.dead_letters.runner import OperationsRunner
from outbox.errors import ConfigurationError
from outbox.masking import Masking
from outbox.postgres.inbox import RETENTION
from outbox.postgres.pool import Connection, Pool, close_pool, open_pool
from outbox.postgres.queries import TableName
from outbox.runtime.brokers import open_broker, require_one_consumable_broker
from outbox.runtime.observing import build_observer

if TYPE_CHECKING:
    from outbox.ports import Broker
    from outbox.runtime.brokers import ConsumableSource


_POOL_SIZE = 4


@dataclass(frozen=True, slots=True)
class Parts:
    """What reads and changes dead letters over one pool."""

    listing: DeadLetterListing
    changes: Changes
    editing: Editing
    planning: Planning
    operations: Operations
    runner: OperationsRunner


AT_ONCE = 100
"""So many dead letters named by their ids are changed in one transaction; more, and filters, become an operation."""
INBOX_RETENTION = RETENTION
"""How long inboxes remember messages, unless the caller says otherwise."""

Selector: TypeAlias = str | Iterable[str] | DeadLetterFilter
"""One id, several, or all that a filter fits; a group is `DeadLetterFilter(group_id=…)`."""


class DeadLetters:
    """Dead letters and parked messages next to one outbox table: to be read, and to be repaired.

    Give exactly one of `db_engine_url` and `db_pool` (asyncpg), which is left open. `broker` is where queues are looked for
    before something is requeued to them: an `amqp(s)://` URL, or an object that implements `outbox.ports.Broker`; without it,
    or with a `postgresql://` URL, PostgreSQL is the broker. `inbox_retention` is how long inboxes remember a message: what is
    older is requeued only by force. `history`: whether requeues are written to the history. `masking`: what is shown as `***`.

    Ids are as operators know them: `"17"` is row 17 of the dead letters, `"outbox-17"` row 17 of the outbox table, which the
    relay parked. Usable at once, and as an `async with` block, after which everything is closed that it opened; `close` does
    the same. Every method raises `DatabaseUnavailableError` while the database is away.
    """

    def __init__(
        self,
        db_engine_url: str | None = None,
        db_pool: Pool | None = None,
        table_name: str = "outbox_table",
        *,
        broker: "str | Broker | None" = None,
        exchange_name: str = "outbox",
        inbox_retention: timedelta = INBOX_RETENTION,
        history: bool = True,
        masking: Masking | None = None,
    ) -> None:
        exactly_one(db_engine_url=db_engine_url, db_pool=db_pool)
        if not isinstance(inbox_retention, timedelta) or inbox_retention <= timedelta(0):
            raise ConfigurationError(f"inbox_retention is a timedelta longer than zero, not {inbox_retention!r}")
        self._retention = inbox_retention
        self._url = "" if db_engine_url is None else postgres_url(db_engine_url)
        self._pool = db_pool
        self._table = TableName.parse(table_name)
        self._broker: ConsumableSource | None = None  # PostgreSQL, whose queues are in the same database
        if broker is not None and not (
            isinstance(broker, str) and server_kind(broker, argument="broker") is ServerKind.POSTGRES
        ):
            self._broker = require_one_consumable_broker(rmq_connection=None, rmq_connection_url=None, broker=broker)
        self._exchange_name = checked_exchange_name(exchange_name)
        self._masking = masking or Masking()
        self._history = history
        self._busy = asyncio.Lock()
        self._closing = AsyncExitStack()
        self._parts: Parts | None = None

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes what it opened. Used again, it opens again."""
        async with self._busy:
            self._parts = None
            await self._closing.aclose()

    async def _open(self) -> Parts:
        """The parts, opened now if they are not."""
        async with self._busy:
            if self._parts is not None:
                return self._parts
            pool, table = self._pool, self._table
            if pool is None:
                pool = await open_pool(self._url, size=_POOL_SIZE, application_name="outbox dead letters")
                self._closing.push_async_callback(close_pool, pool)
            if self._broker is None:
                has_queue = subscribed_queues(pool, table)
            else:
                observer = build_observer(enable_metrics=False)
                broker = open_broker(self._broker, exchange_name=self._exchange_name, table=table, observer=observer)
                self._closing.push_async_callback(broker.close)
                has_queue = broker.has_queue
            changes = Changes(pool, table, has_queue, history=self._history)
            listing = DeadLetterListing(pool, table, masking=self._masking)
            self._parts = Parts(
                listing=listing,
                changes=changes,
                editing=Editing(pool, table, changes, self._masking),
                planning=Planning(pool, table, listing, has_queue),
                operations=Operations(pool, table, masking=self._masking),
                runner=OperationsRunner(pool, table, has_queue, history=self._history),
            )
            return self._parts

    # --- reading -------------------------------------------------------------------------------------------------------

    async def list(
        self,
        filter_: DeadLetterFilter = EVERYTHING,
        *,
        limit: int = 50,
        after: Position | None = None,
        before: Position | None = None,
        sort: Sort = "newest",
    ) -> Sequence[DeadLetter]:
        """Up to `limit` that fit `filter_`, from behind the position `after` on, or up to the position `before`.

        Reading changes nothing anywhere.
        """
        return await (await self._open()).listing.list(filter_, limit=limit, after=after, before=before, sort=sort)

    async def get(self, id_: str) -> DeadLetterDetail | None:
        """The dead letter with that id and all its details; None if there is none, or no longer."""
        return await (await self._open()).listing.get(id_)

    async def count(self, filter_: DeadLetterFilter = EVERYTHING) -> int:
        """How many fit `filter_`."""
        return await (await self._open()).listing.count(filter_)

    async def groups(
        self, by: GroupBy = "fingerprint", filter_: DeadLetterFilter = EVERYTHING, *, limit: int = 100
    ) -> Sequence[Group]:
        """Those that fit `filter_`, counted by what they have in common, the largest group first."""
        return await (await self._open()).listing.groups(by, filter_, limit=limit)

    # --- repairing -----------------------------------------------------------------------------------------------------

    async def requeue(
        self,
        selector: Selector,
        *,
        destination: Destination | None = None,
        edit: Edit | None = None,
        rate: float | None = None,
        canary: Canary | None = None,
        stop_ratio: float | None = None,
        starts_at: datetime | None = None,
        reason: str | None = None,
        by: str | None = None,
        force: bool = False,
        max_items: int | None = None,
        expected: int | Expected | None = None,
        also: Also[Repaired | Operation] | None = None,
    ) -> Repaired | Operation:
        """Sends dead letters again, through the outbox table, with their ids: marked and inserted in one transaction.

        To the queue that each died in, unless `destination` says otherwise. Up to 100 ids are done at once, and the answer says
        what came of each; more, a filter, a `rate`, a `canary` or `starts_at` make an `Operation`, which begins then, whose
        letters are fixed now, and which maintenance, or any `runner`, does in batches. `edit` is for one id: what it replaces
        is kept as an edition. Past `stop_ratio` of messages that failed an attempt, and were not handled since, an operation
        stops itself: 0.1 unless it is given, and 1 is never. A canary waits for the results of its messages, and without a
        `stop_ratio` it stops at the first that fails an attempt. What is older than the inbox retention is refused without
        `force`. `max_items`: the oldest so many. Raises `BrokerUnavailableError` if the broker cannot say whether the queues
        are there, and `EncodingError` for an edit that cannot be stored.

        `expected` is what `plan(…).expected` has found: if other letters are meant by now, or some of them have changed,
        `CountDriftedError` is raised. A number says only how many a filter shall mean. `also` is awaited with the connection
        and the answer in the transaction of the action, right before its commit, so that what it writes is there if and only if
        the action is: an entry in an audit, say. What it raises rolls everything back, and is raised. It must not end the
        transaction.
        """
        options = Options(
            destination=destination,
            rate=rate,
            canary=canary,
            stop_ratio=stop_ratio,
            force=force,
            max_items=max_items,
            retention=self._retention,
            starts_at=starts_at,
        )
        request = Request(action=Action.REQUEUE, options=options, by=by, reason=reason)
        if edit is not None:
            ids = [] if isinstance(selector, DeadLetterFilter) else _ids(selector)
            if len(ids) != 1 or request.options.is_an_operation:
                raise ConfigurationError("an edit is for one dead letter, named by its id, and done at once")
            return await (await self._open()).editing.requeue(request, ids[0], edit, also=also)
        return await self._do(request, selector, expected, also)

    async def discard(
        self,
        selector: Selector,
        *,
        reason: str | None = None,
        by: str | None = None,
        max_items: int | None = None,
        expected: int | Expected | None = None,
        also: Also[Repaired | Operation] | None = None,
    ) -> Repaired | Operation:
        """Marks dead letters as not to be sent again; `restore` takes it back. A parked message leaves the outbox for it."""
        request = Request(action=Action.DISCARD, options=self._options(max_items), by=by, reason=reason)
        return await self._do(request, selector, expected, also)

    async def discard_within(
        self, connection: Connection, ids: Sequence[str], *, reason: str | None = None, by: str | None = None
    ) -> Repaired:
        """As `discard`, of those ids at once, in the transaction that is open on `connection`."""
        request = Request(action=Action.DISCARD, options=Options(), by=by, reason=reason)
        changes = await (await self._open()).changes.apply(connection, request, ids, frozenset())
        return Repaired(Action.DISCARD, [change.item for change in changes])

    async def restore(
        self,
        selector: Selector,
        *,
        reason: str | None = None,
        by: str | None = None,
        max_items: int | None = None,
        expected: int | Expected | None = None,
        also: Also[Repaired | Operation] | None = None,
    ) -> Repaired | Operation:
        """Opens discarded dead letters again."""
        request = Request(action=Action.RESTORE, options=self._options(max_items), by=by, reason=reason)
        return await self._do(request, selector, expected, also)

    async def purge(
        self,
        selector: Selector,
        *,
        reason: str | None = None,
        by: str | None = None,
        force: bool = False,
        max_items: int | None = None,
        expected: int | Expected | None = None,
        also: Also[Repaired | Operation] | None = None,
    ) -> Repaired | Operation:
        """Deletes discarded dead letters with everything that is known of them, for good; with `force`, others too."""
        request = Request(action=Action.PURGE, options=self._options(max_items, force=force), by=by, reason=reason)
        return await self._do(request, selector, expected, also)

    async def plan(
        self,
        action: Action | str,
        selector: Selector,
        *,
        destination: Destination | None = None,
        force: bool = False,
        max_items: int | None = None,
    ) -> Plan:
        """What `action` would do now: to how many, of which queues and exceptions, with a sample, and with what to think of."""
        options = Options(destination=destination, force=force, max_items=max_items, retention=self._retention)
        request = Request(action=Action(one_of("action", action, list(Action))), options=options)
        meant = selector if isinstance(selector, DeadLetterFilter) else DeadLetterFilter(ids=tuple(_ids(selector)))
        return await (await self._open()).planning.plan(request, _meant(meant, request), max_items)

    # --- operations ----------------------------------------------------------------------------------------------------

    async def operation(self, number: int) -> Operation | None:
        """The operation of that number as it is now; None if there is none."""
        return await (await self._open()).operations.get(number)

    async def operations(
        self, *, active: bool = False, limit: int = 50, before: int | None = None, after: int | None = None
    ) -> Sequence[Operation]:
        """Operations, the newest first; `active`: only those that have not ended.

        With `before` the first of those that are older than that operation, with `after` the last of those that are newer.
        """
        operations = (await self._open()).operations
        return await operations.list(active=active, limit=limit, before=before, after=after)

    async def operation_items(
        self, number: int, *, outcome: ItemOutcome | None = None, after: int = 0, limit: int = 200
    ) -> Sequence[OperationItem]:
        """What came of each letter of an operation, from the one behind position `after` on."""
        return await (await self._open()).operations.items(number, outcome=outcome, after=after, limit=limit)

    async def count_operations(self, *, active: bool = False, limit: int = 10_001) -> int:
        """How many operations there are, counted no further than `limit`; `active`: of those that have not ended."""
        return await (await self._open()).operations.count(active=active, limit=limit)

    async def operation_items_by_outcome(
        self,
        number: int,
        outcomes: Sequence[ItemOutcome],
        *,
        behind: tuple[ItemOutcome, int] | None = None,
        backwards: bool = False,
        limit: int = 200,
    ) -> Sequence[OperationItem]:
        """What came of each letter of an operation, one of `outcomes` after another, each in the order of their positions.

        From behind that outcome and position on, or `backwards` from before it, the nearest first.
        """
        operations = (await self._open()).operations
        return await operations.items_by_outcome(number, outcomes, behind=behind, backwards=backwards, limit=limit)

    async def pause(self, number: int, *, also: Also[Operation] | None = None) -> Operation:
        """No further batch of an operation begins until it is resumed. Raises `RefusedError` unless it is running.

        `also` is as with `requeue`, here and with the others.
        """
        return await (await self._open()).operations.pause(number, also=also)

    async def resume(self, number: int, *, also: Also[Operation] | None = None) -> Operation:
        """A paused operation goes on, wherever operations are run. Raises `RefusedError` unless it is paused."""
        return await (await self._open()).operations.resume(number, also=also)

    async def cancel(self, number: int, *, also: Also[Operation] | None = None) -> Operation:
        """Ends an operation: what is done stays done, the rest is free. Raises `RefusedError` if it has ended."""
        return await (await self._open()).operations.cancel(number, also=also)

    async def runner(self) -> OperationsRunner:
        """What does the batches of operations that are running; any number of processes may have one."""
        return (await self._open()).runner

    # --- helpers -------------------------------------------------------------------------------------------------------

    async def _do(
        self,
        request: Request,
        selector: Selector,
        expected: int | Expected | None,
        also: Also[Repaired | Operation] | None,
    ) -> Repaired | Operation:
        parts, limit = await self._open(), request.options.max_items
        if isinstance(selector, DeadLetterFilter):
            meant = _meant(selector, request)
            return await parts.operations.create(request, meant, limit=limit, expected=expected, also=also)
        given = _ids(selector)
        require = None
        if isinstance(expected, Expected):
            meant = _meant(DeadLetterFilter(ids=tuple(given)), request)
            require = partial(parts.planning.require, expected=expected, selector=meant, limit=limit)
        ids = oldest_ids(given, limit)
        if len(ids) > AT_ONCE or request.options.is_an_operation:
            return await parts.operations.create(request, ids, also=also, require=require)
        return await parts.changes.at_once(request, ids, also=also, require=require)

    def _options(self, max_items: int | None, *, force: bool = False) -> Options:
        return Options(force=force, max_items=max_items, retention=self._retention)


def _ids(selector: str | Iterable[str]) -> Sequence[str]:
    """The ids that are meant, each once, in the order given. Raises `ConfigurationError` for what are none."""
    ids = [selector] if isinstance(selector, str) else list(selector)
    if not ids or not all(isinstance(id_, str) for id_ in ids):
        raise ConfigurationError('dead letters are named by their ids, as text, such as "17" or "outbox-17", or by a filter')
    return list(dict.fromkeys(ids))


def _meant(selector: DeadLetterFilter, request: Request) -> DeadLetterFilter:
    return sensible(selector, request.action, force=request.options.force)
