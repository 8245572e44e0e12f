"""Transactions for the handlers of one consumer: waited for while the database is away, with marks if it has an inbox."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from time import perf_counter

from outbox.core.outcome import RETURNED, DeliveryOutcome, Postponed
from outbox.engine.lifecycle import Stopping
from outbox.engine.outages import Outage
from outbox.errors import DatabaseUnavailableError, MarkHeldError
from outbox.ports import Marks, Unit, UnitsOfWork

DATABASE_PATIENCE = timedelta(minutes=5)
"""How long a message waits in hand for its transaction, before it goes away for a while."""
DATABASE_PAUSE = timedelta(seconds=30)
"""How long it then stays away. Given back instead, it would come again at once, and some brokers count how often one does."""
HELD_PAUSE = timedelta(seconds=5)
"""How long a message stays away that is being handled elsewhere."""


class NotBegunError(Exception):
    """The handler was not called, or as good as not: its transaction is not there. `outcome` is what becomes of the message."""

    def __init__(self, outcome: DeliveryOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Transactions:
    """Begins a transaction for each call of a handler that takes part in one.

    `wanted` names what the handler takes of it. With an `inbox`, the name of a queue, the messages are marked in it first, and
    a mark that another transaction holds is waited for, up to `inbox_wait`.
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

    @asynccontextmanager
    async def begin(self, message_ids: Sequence[str]) -> AsyncIterator[Unit]:
        """A transaction for these messages; see `outbox.ports.UnitsOfWork.begin`.

        Raises `NotBegunError` when the database stays away for too long, when the worker stops meanwhile, and when one of the
        messages is being handled elsewhere; also at the end, after everything in it was undone.
        """
        try:
            async with AsyncExitStack() as stack:
                yield await self._begun(stack, self._marks(message_ids))
        except MarkHeldError as error:
            raise NotBegunError(Postponed(HELD_PAUSE)) from error

    async def is_marked(self, message_id: str) -> bool:
        """Whether the message was marked, by whatever transaction, and that has been committed. Raises `NotBegunError`."""
        try:
            async with self.begin((message_id,)) as unit:
                _undo(marked=not unit.marked)
        except _OnlyLookingError as seen:
            return seen.marked
        raise AssertionError("the transaction was not undone")

    def _marks(self, message_ids: Sequence[str]) -> Marks | None:
        if self._inbox is None:
            return None
        return Marks(queue=self._inbox, message_ids=message_ids, patience=self._inbox_wait)

    async def _begun(self, stack: AsyncExitStack, marks: Marks | None) -> Unit:
        """The messages stay in hand while the database is away, so that they do not go in circles."""
        patience_ends = perf_counter() + DATABASE_PATIENCE.total_seconds()
        while True:
            try:
                unit = await stack.enter_async_context(self._units.begin(self._wanted, marks))
            except DatabaseUnavailableError as error:
                if await self._stopping.wait(self._database.lost(error)):
                    raise NotBegunError(RETURNED) from error
                if perf_counter() > patience_ends:
                    raise NotBegunError(Postponed(DATABASE_PAUSE)) from error
            else:
                self._database.answers()
                return unit


class _OnlyLookingError(Exception):
    """Leaves a transaction as if it had not been."""

    def __init__(self, *, marked: bool) -> None:
        super().__init__(marked)
        self.marked = marked


def _undo(*, marked: bool) -> None:
    raise _OnlyLookingError(marked=marked)
