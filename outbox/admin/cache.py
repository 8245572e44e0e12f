"""Caches for expensive reads: one fetch for all who wait, and values that stay valid for a moment."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")

USABLE_FOR = timedelta(seconds=15)
"""The greatest age of a value that is given while a new one is being fetched."""


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[T]):
    """A value, when it began to be fetched, and why it is no newer; `error` None: it is as new as was asked for."""

    value: T
    as_of: datetime
    error: Exception | None = None


class SingleFlightCache(Generic[T]):
    """Fetches a value by `refresh`, and gives the same one to everybody for `max_age`.

    One refresh runs at a time and belongs to no caller: one that stops waiting, for any reason, leaves it to the others. It
    may take `timeout`. One that fails leaves the value that was there, which is then given with the error; after a failure the
    next try is not before `max_age` has passed again. A value that is older than `usable_for` is given with such an error
    alone: not to the first one that asks after a quiet time and does not wait for a new one.
    """

    def __init__(
        self,
        refresh: Callable[[], Awaitable[T]],
        *,
        max_age: timedelta,
        timeout: timedelta,
        usable_for: timedelta = USABLE_FOR,
    ) -> None:
        self._refresh = refresh
        self._max_age = max_age.total_seconds()
        self._timeout = timeout.total_seconds()
        self._usable_for = usable_for.total_seconds()
        self._fetched = self._ended = float("-inf")
        self._last: Snapshot[T] | None = None
        self._error: Exception | None = None
        self._stale_at = float("-inf")
        self._changes = self._seen = 0
        self._running: asyncio.Task[None] | None = None

    @property
    def last(self) -> Snapshot[T] | None:
        """What is there now, however old."""
        return self._last

    async def get(self, *, patience: timedelta | None = None) -> Snapshot[T]:
        """A value that is not older than `max_age`, or the last one, if no newer one can be had, or not within `patience`.

        Without any that is usable it raises what the refresh raised, and `TimeoutError` if there is none within `patience`.
        """
        asked = monotonic()
        if asked >= self._stale_at or self._seen < self._changes:
            changes = self._changes
            with suppress(TimeoutError):
                async with asyncio.timeout(None if patience is None else patience.total_seconds()):
                    # `wait` leaves the task alone when its caller is cancelled; awaiting the task would cancel it for all.
                    await asyncio.wait([self._begin()])
                    if self._seen < changes:  # it began before the last change
                        await asyncio.wait([self._begin()])
        # An error says itself that the value is old, unless the error is old as well.
        error_is_new = self._error is not None and monotonic() - self._ended <= self._usable_for
        if self._last is not None and (self._fetched >= asked or self.has_usable or error_is_new):
            return Snapshot(self._last.value, self._last.as_of, self._error)
        raise (self._error if self._last is None else None) or TimeoutError("the value is still being fetched")

    @property
    def has_usable(self) -> bool:
        """Whether there is a value that may be given without waiting."""
        return self._last is not None and monotonic() - self._fetched <= self._usable_for

    def forget(self) -> None:
        """The next one who asks gets a new value: something in it has changed."""
        self._changes += 1

    async def close(self) -> None:
        """Ends a refresh that runs."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    def _begin(self) -> asyncio.Task[None]:
        """The task of the one refresh, which others may have begun."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return self._running

    async def _run(self) -> None:
        as_of, changes = datetime.now(UTC), self._changes
        try:
            async with asyncio.timeout(self._timeout):
                value = await self._refresh()
        except Exception as error:  # noqa: BLE001  raised where the value is asked for
            self._error = error
        else:
            self._last, self._error, self._fetched = Snapshot(value, as_of), None, monotonic()
        finally:
            self._ended = monotonic()
            # After a failure too: what is in trouble is not asked again by every client at once.
            self._stale_at, self._seen = self._ended + self._max_age, changes


MAX_AGE = timedelta(seconds=5)
"""Age from which on an answer is made again when it is asked for."""
USABLE_AGE = timedelta(seconds=60)
"""Age up to which the one that is there is given meanwhile."""
TIMEOUT = timedelta(seconds=10)
MOST_KEPT = 64
MOST_AT_ONCE = 2
"""So many are made at a time: they are work for the database."""


class StaleWhileRevalidate(Generic[T]):
    """Gives each question the answer that was made for it last, and makes a new one once, however many ask."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, SingleFlightCache[T]] = OrderedDict()
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def get(self, question: Hashable, make: Callable[[], Awaitable[T]]) -> Snapshot[T]:
        """The answer to `question`, which `make` makes. Raises what making raised, if there is none that is usable."""

        async def make_in_turn() -> T:
            async with self._turns:
                return await make()

        if question not in self._answers:
            self._answers[question] = SingleFlightCache(make_in_turn, max_age=MAX_AGE, timeout=TIMEOUT, usable_for=USABLE_AGE)
        self._answers.move_to_end(question)
        while len(self._answers) > MOST_KEPT:
            self._answers.popitem(last=False)
        snapshots = self._answers[question]
        usable = snapshots.has_usable
        found = await snapshots.get(patience=timedelta(0) if usable else None)
        if found.error is not None and not usable:
            raise found.error
        return found

    async def close(self) -> None:
        """Ends what is being made."""
        for snapshots in self._answers.values():
            await snapshots.close()
