"""DeadLetters, the class with which applications read and repair dead letters."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from outbox.core.arguments import body_tools, exactly_one, one_of
from outbox.core.arguments import exchange_name as checked_exchange_name
from outbox.core.urls import ServerKind, postgres_url, server_kind
from outbox.dead_letters.actions import (
    Action,
    BeforeCommit,
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
from outbox.dead_letters.changes import Changes, Editor, HasQueue, Planner, Request, subscribed_queues
from outbox.dead_letters.filters import oldest_ids, with_default_status
from outbox.dead_letters.model import DeadLetter, DeadLetterDetail, DeadLetterFilter, Group, GroupBy, Position, Sort
from outbox.dead_letters.operations import OperationItem, Operations
from outbox.dead_letters.reader import EVERYTHING, DeadLetterListing
from outbox.dead_letters.runner import OperationsRunner
from outbox.engine.bodies import Bodies
from outbox.errors import ConfigurationError
from outbox.masking import Masking
from outbox.postgres.inbox import RETENTION
from outbox.postgres.pool import Connection, Pool, close_pool, open_pool
from outbox.postgres.queries import TableName
from outbox.runtime.brokers import open_broker, require_one_consumable_broker, stored_label
from outbox.runtime.observing import build_observer

if TYPE_CHECKING:
    from outbox.encryption import Encryption
    from outbox.large_bodies import LargeBodies
    from outbox.ports import Broker
    from outbox.runtime.brokers import ConsumableSource


_POOL_SIZE = 4


@dataclass(frozen=True, slots=True)
class Parts:
    """Components that read and change dead letters over one pool."""

    listing: DeadLetterListing
    changes: Changes
    editor: Editor
    planner: Planner
    operations: Operations
    runner: OperationsRunner


AT_ONCE = 100
"""Number of ids up to which one transaction makes the change; more ids, and filters, become an operation."""
INBOX_RETENTION = RETENTION
"""Default deduplication window of inboxes."""

Selector: TypeAlias = str | Iterable[str] | DeadLetterFilter
"""One id, several ids, or a filter; a group is `DeadLetterFilter(group_id=…)`."""


class DeadLetters:
    """Reads and repairs the dead letters and parked messages of one outbox table.

    Give exactly one of `db_engine_url` and `db_pool` (asyncpg), which stays open. `broker` is asked whether a queue exists
    before messages are requeued to it: an `amqp(s)://` URL, or an object that implements `outbox.ports.Broker`; without it, or
    with a `postgresql://`, `kafka://`, `redis://` or `sns://` URL, the queues are in PostgreSQL. `inbox_retention` is the
    inboxes' deduplication window: older messages are requeued only by force. `history`: whether requeues are written to the
    history. `masking`: what is shown as `***`. `encryption` and `large_bodies`, see `Admin`, are for edits: the new body of an
    encrypted message is encrypted, and a large one is stored. Without them such edits are refused.

    Ids are as operators know them: `"17"` is row 17 of the dead letters, `"outbox-17"` is row 17 of the outbox table, which the
    relay parked. The object connects on first use. Call `close`, or use it as an `async with` block, to close what it opened.
    Every method raises `DatabaseUnavailableError` while the database is away.
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
        encryption: "Encryption | None" = None,
        large_bodies: "LargeBodies | None" = None,
    ) -> None:
        exactly_one(db_engine_url=db_engine_url, db_pool=db_pool)
        if not isinstance(inbox_retention, timedelta) or inbox_retention <= timedelta(0):
            raise ConfigurationError(f"inbox_retention is a timedelta longer than zero, not {inbox_retention!r}")
        body_tools(encryption=encryption, large_bodies=large_bodies)
        self._retention = inbox_retention
        self._url = "" if db_engine_url is None else postgres_url(db_engine_url)
        self._pool = db_pool
        self._table = TableName.parse(table_name)
        self._broker: ConsumableSource | None = None  # None: PostgreSQL, whose queues are in the same database
        if (
            broker is not None
            and stored_label(broker) is None
            and not (isinstance(broker, str) and server_kind(broker, argument="broker") is ServerKind.POSTGRES)
        ):
            self._broker = require_one_consumable_broker(rmq_connection=None, rmq_connection_url=None, broker=broker)
        self._exchange_name = checked_exchange_name(exchange_name)
        self._masking = masking or Masking()
        self._bodies = Bodies(encryption, large_bodies)
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
        """Closes what this object opened. The next use opens it again."""
        async with self._busy:
            # Under the lock: a call that is just connecting must not get parts that are about to be closed.
            self._parts = None
            await self._closing.aclose()

    async def _open(self) -> Parts:
        """Returns the components, and connects first if necessary."""
        # One at a time: two first calls must not open two pools.
        async with self._busy:
            if self._parts is not None:
                return self._parts
            pool, table = self._pool, self._table
            if pool is None:
                pool = await open_pool(self._url, size=_POOL_SIZE, application_name="outbox dead letters")
                self._closing.push_async_callback(close_pool, pool)
            if self._broker is None:
                has_queue: HasQueue = subscribed_queues(pool, table)
            else:
                observer = build_observer(enable_metrics=False)
                broker = open_broker(self._broker, exchange_name=self._exchange_name, table=table, observer=observer)
                self._closing.push_async_callback(broker.close)
                has_queue = broker.has_queue
            exchange = None if self._broker is None else self._exchange_name
            changes = Changes(pool, table, has_queue, history=self._history, exchange_name=exchange)
            listing = DeadLetterListing(pool, table, masking=self._masking)
            self._parts = Parts(
                listing=listing,
                changes=changes,
                editor=Editor(pool, table, changes, self._masking, listing, self._bodies),
                planner=Planner(pool, table, listing, has_queue, exchange_name=exchange),
                operations=Operations(pool, table, masking=self._masking),
                runner=OperationsRunner(pool, table, has_queue, history=self._history, exchange_name=exchange),
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
        """Returns up to `limit` dead letters that match `filter_`, after the position `after` or before `before`."""
        return await (await self._open()).listing.list(filter_, limit=limit, after=after, before=before, sort=sort)

    async def get(self, id_: str) -> DeadLetterDetail | None:
        """Returns the dead letter with all its details, or None if there is none with that id."""
        return await (await self._open()).listing.get(id_)

    async def count(self, filter_: DeadLetterFilter = EVERYTHING) -> int:
        """Returns the number of dead letters that match `filter_`."""
        return await (await self._open()).listing.count(filter_)

    async def groups(
        self, by: GroupBy = "fingerprint", filter_: DeadLetterFilter = EVERYTHING, *, limit: int = 100
    ) -> Sequence[Group]:
        """Counts the dead letters that match `filter_` by fingerprint, queue or routing key, the largest group first."""
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
        before_commit: BeforeCommit[Repaired | Operation] | None = None,
    ) -> Repaired | Operation:
        """Sends dead letters again through the outbox table, with their message ids.

        Each dead letter is marked and its message inserted in one transaction. It goes to the queue where it failed, unless
        `destination` is given.

        Up to 100 ids are requeued immediately, and the result lists the outcome of each. More ids, a filter, a `rate`, a
        `canary` or `starts_at` create an `Operation`: its dead letters are fixed now, and maintenance, or any `runner`,
        requeues them in batches from `starts_at` on. An operation stops when more than `stop_ratio` of its messages failed
        an attempt and have not been handled since; the default is 0.1, and 1 disables it. A canary waits for the results of
        its messages, and without a `stop_ratio` stops at the first failed attempt. `edit` works for a single id; the
        replaced payload is kept as an edition. Messages older than the inbox retention are refused without `force`.
        `max_items` limits the action to the oldest dead letters. Raises `BrokerUnavailableError` if the broker cannot be
        asked whether the queues exist, and `EncodingError` for an edit that cannot be stored.

        `expected` is the value of `plan(…).expected`: if the selector now matches other dead letters, or some have changed,
        `CountDriftedError` is raised. A number checks only how many dead letters a filter matches. `before_commit` is
        awaited with the connection and the result, in the transaction of the action right before its commit, so that its
        writes, such as an audit entry, commit together with the action. Its errors roll everything back and are raised. It
        must not end the transaction.
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
            if len(ids) != 1 or request.options.needs_operation:
                raise ConfigurationError("an edit needs exactly one id, and cannot be combined with rate, canary or starts_at")
            return await (await self._open()).editor.requeue(request, ids[0], edit, before_commit=before_commit)
        return await self._apply(request, selector, expected, before_commit)

    async def discard(
        self,
        selector: Selector,
        *,
        reason: str | None = None,
        by: str | None = None,
        max_items: int | None = None,
        expected: int | Expected | None = None,
        before_commit: BeforeCommit[Repaired | Operation] | None = None,
    ) -> Repaired | Operation:
        """Marks dead letters as discarded; `restore` undoes it. A parked message moves out of the outbox table."""
        request = Request(action=Action.DISCARD, options=self._options(max_items), by=by, reason=reason)
        return await self._apply(request, selector, expected, before_commit)

    async def discard_within(
        self, connection: Connection, ids: Sequence[str], *, reason: str | None = None, by: str | None = None
    ) -> Repaired:
        """Discards the dead letters with those ids in the transaction that is open on `connection`."""
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
        before_commit: BeforeCommit[Repaired | Operation] | None = None,
    ) -> Repaired | Operation:
        """Reopens discarded dead letters."""
        request = Request(action=Action.RESTORE, options=self._options(max_items), by=by, reason=reason)
        return await self._apply(request, selector, expected, before_commit)

    async def purge(
        self,
        selector: Selector,
        *,
        reason: str | None = None,
        by: str | None = None,
        force: bool = False,
        max_items: int | None = None,
        expected: int | Expected | None = None,
        before_commit: BeforeCommit[Repaired | Operation] | None = None,
    ) -> Repaired | Operation:
        """Deletes discarded dead letters and their editions permanently; with `force`, others too."""
        request = Request(action=Action.PURGE, options=self._options(max_items, force=force), by=by, reason=reason)
        return await self._apply(request, selector, expected, before_commit)

    async def plan(
        self,
        action: Action | str,
        selector: Selector,
        *,
        destination: Destination | None = None,
        force: bool = False,
        max_items: int | None = None,
    ) -> Plan:
        """Dry run of `action`: counts the dead letters by queue and exception, with a sample and warnings. Changes nothing."""
        options = Options(destination=destination, force=force, max_items=max_items, retention=self._retention)
        request = Request(action=Action(one_of("action", action, list(Action))), options=options)
        if isinstance(selector, DeadLetterFilter):
            letters = selector
        else:
            letters = DeadLetterFilter(ids=tuple(oldest_ids(_ids(selector), max_items)))
        return await (await self._open()).planner.plan(request, _selected(letters, request), max_items)

    # --- operations ----------------------------------------------------------------------------------------------------

    async def operation(self, number: int) -> Operation | None:
        """Returns the operation with that number, or None."""
        return await (await self._open()).operations.get(number)

    async def operations(
        self, *, active: bool = False, limit: int = 50, before: int | None = None, after: int | None = None
    ) -> Sequence[Operation]:
        """Returns operations, newest first; `active`: only those that have not ended.

        `before`: the newest ones older than that operation. `after`: the oldest ones newer than it.
        """
        operations = (await self._open()).operations
        return await operations.list(active=active, limit=limit, before=before, after=after)

    async def operation_items(
        self, number: int, *, outcome: ItemOutcome | None = None, after: int = 0, limit: int = 200
    ) -> Sequence[OperationItem]:
        """Returns the dead letters of an operation with their outcomes, starting after the position `after`."""
        return await (await self._open()).operations.items(number, outcome=outcome, after=after, limit=limit)

    async def count_operations(self, *, active: bool = False, limit: int = 10_001) -> int:
        """Returns the number of operations, counted up to `limit`; `active`: only those that have not ended."""
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
        """Returns the dead letters of an operation, grouped by outcome in the order of `outcomes`, then by position.

        Starts after the outcome and position `behind`; with `backwards`, reads back from before it, the nearest first.
        """
        operations = (await self._open()).operations
        return await operations.items_by_outcome(number, outcomes, behind=behind, backwards=backwards, limit=limit)

    async def pause(self, number: int, *, before_commit: BeforeCommit[Operation] | None = None) -> Operation:
        """Pauses an operation: no batch begins until it is resumed. Raises `RefusedError` unless it is running.

        `before_commit` works as in `requeue`; the same holds for `resume` and `cancel`.
        """
        return await (await self._open()).operations.pause(number, before_commit=before_commit)

    async def resume(self, number: int, *, before_commit: BeforeCommit[Operation] | None = None) -> Operation:
        """Continues a paused operation in any process that runs operations. Raises `RefusedError` unless it is paused."""
        return await (await self._open()).operations.resume(number, before_commit=before_commit)

    async def cancel(self, number: int, *, before_commit: BeforeCommit[Operation] | None = None) -> Operation:
        """Ends an operation: processed dead letters stay changed, the others are released.

        Raises `RefusedError` if it has ended.
        """
        return await (await self._open()).operations.cancel(number, before_commit=before_commit)

    async def runner(self) -> OperationsRunner:
        """Returns a runner for the batches of running operations; any number of processes may have one."""
        return (await self._open()).runner

    # --- helpers -------------------------------------------------------------------------------------------------------

    async def _apply(
        self,
        request: Request,
        selector: Selector,
        expected: int | Expected | None,
        before_commit: BeforeCommit[Repaired | Operation] | None,
    ) -> Repaired | Operation:
        parts, limit = await self._open(), request.options.max_items
        if isinstance(selector, DeadLetterFilter):
            letters = _selected(selector, request)
            return await parts.operations.create(request, letters, limit=limit, expected=expected, before_commit=before_commit)
        ids, require = oldest_ids(_ids(selector), limit), None
        if isinstance(expected, Expected):
            letters = _selected(DeadLetterFilter(ids=tuple(ids)), request)
            require = partial(parts.planner.require, expected=expected, selector=letters, limit=limit)
        if len(ids) > AT_ONCE or request.options.needs_operation:
            return await parts.operations.create(request, ids, before_commit=before_commit, require=require)
        return await parts.changes.execute(request, ids, before_commit=before_commit, require=require)

    def _options(self, max_items: int | None, *, force: bool = False) -> Options:
        return Options(force=force, max_items=max_items, retention=self._retention)


def _ids(selector: str | Iterable[str]) -> Sequence[str]:
    """Selected ids without duplicates, in the order given. Raises `ConfigurationError` for an empty or invalid selector."""
    ids = [selector] if isinstance(selector, str) else list(selector)
    if not ids or not all(isinstance(id_, str) for id_ in ids):
        raise ConfigurationError('select dead letters by their ids as text, such as "17" or "outbox-17", or by a filter')
    return list(dict.fromkeys(ids))


def _selected(selector: DeadLetterFilter, request: Request) -> DeadLetterFilter:
    return with_default_status(selector, request.action, force=request.options.force)
