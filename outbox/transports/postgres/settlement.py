"""Settles deliveries in groups: one statement for each kind of outcome, while the next group gathers."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never

from outbox.core.failures import FailedAttempt
from outbox.core.outcome import Cause, Dead, DeliveryOutcome, Done, Failure, Postponed, Retry, Returned
from outbox.engine.lifecycle import Pauses
from outbox.errors import DatabaseUnavailableError, StaleDeliveryError
from outbox.postgres.deaths import DeadLetterWriter, Payload
from outbox.transports.postgres.delivery import PostgresDelivery

MOST_AT_ONCE = 1_000
"""Most outcomes in one statement."""
LONGEST_DELAY = timedelta(days=365_000)
"""A retry that is asked for later comes then: no calendar holds more."""

Fetch = Callable[..., Awaitable[Sequence[Any]]]
"""Runs a statement by its name, with its arguments, and returns its rows. Raises `DatabaseUnavailableError`."""
FetchInTurn = Callable[..., Awaitable[Sequence[Sequence[Any]]]]
"""The same for several of them in one transaction, each with its name and its arguments."""
Ring = Callable[[], Awaitable[None]]
"""Wakes whoever sleeps in another process. Raises `DatabaseUnavailableError`."""


@dataclass(eq=False, slots=True)
class _Settlement:
    """One outcome on its way; `cut_off` says that an answer was lost, so that it may have been written already."""

    delivery: PostgresDelivery
    outcome: DeliveryOutcome
    source: str
    written: asyncio.Future[None]
    cut_off: bool = False

    def succeed(self) -> None:
        if not self.written.done():
            self.written.set_result(None)

    def fail(self, reason: str) -> None:
        if not self.written.done():
            self.written.set_exception(StaleDeliveryError(reason))
            self.written.exception()  # nobody has to be waiting for it


class Settling:
    """Writes outcomes in the order in which they come, while `run` is running.

    Each write names the lease's token, so that an outcome for a delivery that is not ours any more changes nothing. While the
    database is away outcomes are kept for as long as their leases may still hold. `forget` is told of each that ended.

    In an `ordered` queue the end of a delivery makes the next one of its key due, in one transaction. `takes_released` is told,
    and says whether these are claimed here.
    """

    def __init__(
        self,
        fetch: Fetch,
        *,
        fetch_in_turn: FetchInTurn,
        ring: Ring,
        forget: Callable[[PostgresDelivery], None],
        takes_released: Callable[[], bool],
        writer: DeadLetterWriter,
        queue: str,
        ordered: bool,
    ) -> None:
        self._fetch = fetch
        self._fetch_in_turn = fetch_in_turn
        self._takes_released = takes_released
        self._ordered = ordered
        self._writer = writer
        self._queue = queue
        self._ring = ring
        self._forget = forget
        self._waiting: deque[_Settlement] = deque()
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def submit(self, delivery: PostgresDelivery, outcome: DeliveryOutcome, *, source: str = "worker") -> asyncio.Future[None]:
        """Puts `outcome` in line. The future is done when it is durable, or raises `StaleDeliveryError`."""
        written = asyncio.get_running_loop().create_future()
        self._waiting.append(_Settlement(delivery, outcome, source, written))
        self._idle.clear()
        self._wanted.set()
        return written

    async def all_written(self) -> None:
        """Returns when nothing is in line."""
        await self._idle.wait()

    async def run(self) -> None:
        """Writes until cancelled."""
        pauses = Pauses()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_AT_ONCE))]
                if left := await self._write(batch):
                    self._waiting.extendleft(reversed(self._still_ours(left)))
                    await asyncio.sleep(pauses.next().total_seconds())
                else:
                    pauses.reset()
            self._idle.set()

    async def _write(self, batch: Sequence[_Settlement]) -> list[_Settlement]:
        """Writes what it can, and returns what the database did not take or did not answer to."""
        left: list[_Settlement] = []
        for statement, group in _by_statement(batch).items():
            try:
                await self._write_group(statement, await self._still_unwritten(group))
            except DatabaseUnavailableError:
                unanswered = [settlement for settlement in group if not settlement.written.done()]
                for settlement in unanswered:
                    settlement.cut_off = True
                left += unanswered
        return left

    async def _write_group(self, statement: str, group: Sequence[_Settlement]) -> None:
        if not group:
            return
        columns = map(list, zip(*map(self._arguments, group), strict=True))
        keys = self._keys_of(group) if statement in _ENDING else []
        if keys:
            rows, released = await self._fetch_in_turn((statement, *columns), ("release", self._queue, keys))
        else:
            rows, released = await self._fetch(statement, *columns), []
        written = {row["id"] for row in rows}
        for settlement in group:
            self._end(settlement, succeeded=settlement.delivery.id in written)
        if statement in _RINGING or (released and not self._takes_released()):
            await self._ring()

    def _keys_of(self, group: Sequence[_Settlement]) -> list[str]:
        """Whose next delivery can follow, in a queue where one follows another."""
        if not self._ordered:
            return []
        keys = (settlement.delivery.row["ordering_key"] for settlement in group)
        return sorted({key for key in keys if key is not None})

    def _arguments(self, settlement: _Settlement) -> tuple[object, ...]:
        """One row of the statement's arrays."""
        delivery = settlement.delivery
        match settlement.outcome:
            case Retry(delay, failure):
                failed = self._writer.trail(self._failed(delivery, failure))
                return delivery.id, delivery.token, min(delay, LONGEST_DELAY), failed
            case Postponed(delay):
                return delivery.id, delivery.token, min(delay, LONGEST_DELAY)
            case Dead(cause, failure):
                return delivery.id, delivery.token, *self._burial(settlement, cause, failure)
            case Returned():
                return delivery.id, delivery.token, delivery.blamed
            case _:
                return delivery.id, delivery.token

    def _burial(self, settlement: _Settlement, cause: Cause, failure: Failure) -> tuple[str, ...]:
        row = settlement.delivery.row
        return self._writer.buried(
            queue=self._queue,
            failure=failure,
            failed=self._failed(settlement.delivery, failure),
            cause=cause.value,
            source=settlement.source,
            words=(self._queue, row["routing_key"], row["message_id"], row["tracking_ids"]),
            payload=Payload(settlement.delivery.body, row["content_type"], row["headers"]),
        )

    def _failed(self, delivery: PostgresDelivery, failure: Failure) -> FailedAttempt:
        return FailedAttempt(at=datetime.now(UTC), attempt=delivery.attempt, failure=failure)

    async def _still_unwritten(self, group: Sequence[_Settlement]) -> Sequence[_Settlement]:
        """`group` without those that had been written after all when their answer was cut off."""
        if not any(settlement.cut_off for settlement in group):
            return group
        rows = await self._fetch("whereabouts", [settlement.delivery.id for settlement in group])
        found = {row["id"]: row for row in rows}
        unwritten = []
        for settlement in group:
            row = found.get(settlement.delivery.id)
            if row is not None and row["lease_token"] == settlement.delivery.token:
                unwritten.append(settlement)
            else:
                self._end(settlement, succeeded=_was_written(settlement, row))
        return unwritten

    def _still_ours(self, left: Sequence[_Settlement]) -> list[_Settlement]:
        now = asyncio.get_running_loop().time()
        ours = []
        for settlement in left:
            if settlement.delivery.safe_until > now:
                ours.append(settlement)
            else:
                self._end(settlement, succeeded=False)
        return ours

    def _end(self, settlement: _Settlement, *, succeeded: bool) -> None:
        self._forget(settlement.delivery)
        if succeeded:
            settlement.succeed()
        else:
            settlement.fail(f"the lease of {settlement.delivery} ran out before it was settled")


_ENDING = frozenset({"done", "bury"})
"""After these the delivery is not there any more."""
_RINGING = frozenset({"retry", "postpone", "give_back"})
"""These make rows due sooner than a sleeper elsewhere believes."""


def _by_statement(batch: Iterable[_Settlement]) -> Mapping[str, list[_Settlement]]:
    groups: dict[str, list[_Settlement]] = {}
    for settlement in batch:
        groups.setdefault(_statement(settlement.outcome), []).append(settlement)
    return groups


def _statement(outcome: DeliveryOutcome) -> str:
    match outcome:
        case Done():
            return "done"
        case Retry():
            return "retry"
        case Dead():
            return "bury"
        case Returned():
            return "give_back"
        case Postponed():
            return "postpone"
        case _:
            assert_never(outcome)


def _was_written(settlement: _Settlement, row: Any) -> bool:
    """Whether a delivery that is not under our token any more is so because our outcome was written."""
    match settlement.outcome:
        case Retry():
            return row is None or row["attempt"] > settlement.delivery.attempt
        case Returned() | Postponed():
            return True
        case _:
            return row is None
