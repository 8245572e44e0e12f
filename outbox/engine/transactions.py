"""Transactions that handlers run in."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta
from time import perf_counter
from types import TracebackType

from outbox.core.outcome import RETURNED, DeliveryOutcome, Postponed
from outbox.engine.lifecycle import Outage, Stopping
from outbox.errors import DatabaseUnavailableError, MarkHeldError, StaleDeliveryError, StaleStatementError
from outbox.ports import Ending, Marks, Unit, UnitsOfWork

DATABASE_PATIENCE = timedelta(minutes=5)
"""How long a message waits in flight for a transaction before it is postponed."""
DATABASE_PAUSE = timedelta(seconds=30)
"""How long it is then postponed. Returned, it would come back at once, and some brokers limit how often a message may."""
HELD_PAUSE = timedelta(seconds=5)
"""Pause before retrying a message that another worker holds, or whose handler used a table that has changed."""


class NotBegunError(Exception):
    """The handler was not called, or everything it did was rolled back. `outcome` is the outcome for its message."""

    def __init__(self, outcome: DeliveryOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Transactions:
    """Begins a transaction for each call of a handler.

    `wanted` names the resources that the handler takes. With `inbox`, a queue name, the messages are first marked as handled
    by that queue, waiting up to `inbox_wait` for another transaction that holds a mark.
    """

    def __init__(
        self,
        units: UnitsOfWork,
        wanted: frozenset[str],
        *,
        database: Outage,
        stopping: Stopping,
        inbox: str | None,
        inbox_wait: timedelta,
    ) -> None:
        self._units = units
        self._wanted = wanted
        self._database = database
        self._stopping = stopping
        self._inbox = inbox
        self._inbox_wait = inbox_wait

    def begin(self, message_ids: Sequence[str], ending: Ending | None = None) -> AbstractAsyncContextManager[Unit]:
        """Returns a transaction for these messages; see `outbox.ports.UnitsOfWork.begin`.

        Entering raises `NotBegunError` if the database is unavailable for too long, if the worker stops meanwhile, or if
        another transaction is handling one of the messages. Leaving raises it, after a rollback, for the latter or if a table
        has changed.
        """
        return _Transaction(self, message_ids, ending)

    async def enter(self, message_ids: Sequence[str], ending: Ending | None) -> tuple[AbstractAsyncContextManager[Unit], Unit]:
        """Begins a transaction. The messages stay in flight while the database is unavailable."""
        marks = None
        if self._inbox is not None:
            marks = Marks(queue=self._inbox, message_ids=message_ids, max_wait=self._inbox_wait)
        patience_ends = perf_counter() + DATABASE_PATIENCE.total_seconds()
        waiting = object()
        try:
            while True:
                try:
                    context = self._units.begin(self._wanted, marks, ending)
                    # Entered by hand: each attempt needs a new one, and `_Transaction` leaves the one that was entered.
                    unit = await context.__aenter__()
                except DatabaseUnavailableError as error:
                    self._database.waiting.add(waiting)
                    if await self._stopping.wait(self._database.lost(error)):
                        raise NotBegunError(RETURNED) from error
                    if perf_counter() > patience_ends:
                        raise NotBegunError(Postponed(DATABASE_PAUSE)) from error
                else:
                    self._database.waiting.discard(waiting)
                    self._database.answers()
                    return context, unit
        finally:
            self._database.waiting.discard(waiting)

    async def is_marked(self, message_id: str) -> bool:
        """Whether a committed transaction has marked the message. Raises `NotBegunError`."""
        # Marking it again waits for a transaction that is still committing; the rollback removes the new mark.
        was_marked = False
        try:
            with suppress(_RollbackError):
                async with self.begin((message_id,)) as unit:
                    was_marked = not unit.marked
                    raise _RollbackError  # noqa: TRY301  for the transaction, which then rolls back
        except NotBegunError:
            raise
        except Exception:  # noqa: BLE001  a trigger on the inbox that refuses the mark may raise anything
            return False
        return was_marked


class _Transaction:
    """The context manager of `Transactions.begin`. A class, because a generator-based one costs more for each message."""

    __slots__ = ("_context", "_ending", "_message_ids", "_transactions")

    def __init__(self, transactions: Transactions, message_ids: Sequence[str], ending: Ending | None) -> None:
        self._transactions = transactions
        self._message_ids = message_ids
        self._ending = ending

    async def __aenter__(self) -> Unit:
        try:
            self._context, unit = await self._transactions.enter(self._message_ids, self._ending)
        except MarkHeldError as error:
            raise NotBegunError(Postponed(HELD_PAUSE)) from error
        return unit

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        try:
            return await self._context.__aexit__(kind, error, traceback)
        except (MarkHeldError, StaleStatementError) as held:
            raise NotBegunError(Postponed(HELD_PAUSE)) from held
        except StaleDeliveryError as lost:
            # Another worker has the delivery, and what this handler did was rolled back.
            raise NotBegunError(RETURNED) from lost


class _RollbackError(Exception):
    """Rolls back the transaction of `is_marked`."""
