"""Caches for expensive reads: concurrent requests share one fetch, and values stay valid for seconds."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Generic, TypeVar

from outbox.runtime.tracer import silenced

T = TypeVar("T")

USABLE_FOR = timedelta(seconds=15)
"""Greatest age of a value that is returned while a new one is being fetched."""


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[T]):
    """A value, and when its fetch began. `error` is why a newer value could not be fetched; None: it is current."""

    value: T
    as_of: datetime
    error: Exception | None = None


class SingleFlightCache(Generic[T]):
    """Fetches a value with `refresh`, and returns it to all callers for `max_age`.

    One refresh runs at a time, for at most `timeout`. A caller that is cancelled does not cancel it. A failed refresh keeps
    the previous value, which is then returned with the error; the next refresh starts after `max_age`. A value older than
    `usable_for` is returned only together with a recent error.
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
        self._running: asyncio.Task[None] | None = None

    @property
    def last(self) -> Snapshot[T] | None:
        """The last value, however old; None before the first."""
        return self._last

    async def get(self, *, patience: timedelta | None = None) -> Snapshot[T]:
        """Returns a value no older than `max_age`, or the last usable one if no newer one is ready within `patience`.

        Without a usable value, raises the error of the refresh, or `TimeoutError` if none is ready within `patience`.
        """
        called_at = monotonic()
        if called_at >= self._stale_at:
            with suppress(TimeoutError):
                async with asyncio.timeout(None if patience is None else patience.total_seconds()):
                    if self._running is None or self._running.done():
                        self._running = asyncio.create_task(silenced(self._run)())
                    # `wait` does not cancel the task when this caller is cancelled; awaiting the task would, for all callers.
                    await asyncio.wait([self._running])
        # With a recent error the caller sees that the value is old, so it may be older than `usable_for`.
        error_is_new = self._error is not None and monotonic() - self._ended <= self._usable_for
        if self._last is not None and (self._fetched >= called_at or self.has_usable or error_is_new):
            return Snapshot(self._last.value, self._last.as_of, self._error)
        raise (self._error if self._last is None else None) or TimeoutError("the value is still being fetched")

    @property
    def has_usable(self) -> bool:
        """Whether a value can be returned without waiting."""
        return self._last is not None and monotonic() - self._fetched <= self._usable_for

    async def close(self) -> None:
        """Cancels a running refresh."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        as_of = datetime.now(UTC)
        try:
            async with asyncio.timeout(self._timeout):
                value = await self._refresh()
        except Exception as error:  # noqa: BLE001  `get` raises it
            self._error = error
        else:
            self._last, self._error, self._fetched = Snapshot(value, as_of), None, monotonic()
        finally:
            self._ended = monotonic()
            # After a failure too, so that clients do not all retry against a server in trouble.
            self._stale_at = self._ended + self._max_age


MAX_AGE = timedelta(seconds=5)
"""Age from which a result is computed again when requested."""
USABLE_AGE = timedelta(seconds=60)
"""Age up to which the previous result is returned meanwhile."""
TIMEOUT = timedelta(seconds=10)
MOST_KEPT = 64
MOST_AT_ONCE = 2
"""Results computed at a time, to limit the load on the database."""


class StaleWhileRevalidate(Generic[T]):
    """Returns the last result for a key at once, and computes a new one in the background, once for all callers."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, SingleFlightCache[T]] = OrderedDict()
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)

    async def get(self, key: Hashable, compute: Callable[[], Awaitable[T]]) -> Snapshot[T]:
        """Returns the result for `key`, from `compute` or the cache. Raises the error of `compute` without a usable result."""

        async def compute_in_slot() -> T:
            # The wait for a slot counts towards `timeout`, so that requests do not pile up at a slow database.
            async with self._slots:
                return await compute()

        if key not in self._entries:
            self._entries[key] = SingleFlightCache(compute_in_slot, max_age=MAX_AGE, timeout=TIMEOUT, usable_for=USABLE_AGE)
        self._entries.move_to_end(key)
        while len(self._entries) > MOST_KEPT:
            self._entries.popitem(last=False)
        entry = self._entries[key]
        usable = entry.has_usable
        found = await entry.get(patience=timedelta(0) if usable else None)
        if found.error is not None and not usable:
            raise found.error
        return found

    async def close(self) -> None:
        """Cancels running computations."""
        for entry in self._entries.values():
            await entry.close()
