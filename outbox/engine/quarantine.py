"""Runs a poison message alone, so that another crash has one possible cause. Other handlers wait for a limited time only."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from time import monotonic

FIRST_WAIT = timedelta(seconds=5)
"""How long a poison message waits, at first, for running handlers to end. No other handler starts meanwhile."""
LONGEST_WAIT = timedelta(seconds=30)
"""Longest such wait. The wait doubles each time that the handlers did not end in time."""
OTHERS_SHARE = 4
"""After a failed wait, other handlers run undisturbed for this many times as long: they lose at most a fifth of their time."""
ALONE_LIMIT = timedelta(seconds=60)
"""How long a message may run alone. Then its attempt has failed, and other handlers start again."""
COPY_LIMIT = timedelta(seconds=2)
"""How long handlers wait for the marked copy of a poison message. It arrives at once unless many messages are ahead of it."""
_UNTIL_FORCED = ALONE_LIMIT + timedelta(seconds=10)
"""When other handlers start in any case: a handler that swallows its cancellation would block them forever."""


class Quarantine:
    """Counts running handlers. No other handler starts while a poison message runs, or waits for the others to end.

    `clock` returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._running = 0
        self._isolating = 0
        self._forced = False
        self._open = asyncio.Event()
        self._open.set()
        self._emptied = asyncio.Event()
        self._copy_waits = asyncio.Event()
        self._lock = asyncio.Lock()
        self._wait = FIRST_WAIT
        self._closed_at = 0.0
        self._others_until = 0.0

    @property
    def closed(self) -> bool:
        """Whether other handlers have to wait before they start."""
        return self._isolating > 0 and not self._forced

    @property
    def running(self) -> int:
        """How many handlers of other messages are running."""
        return self._running

    @property
    def wait(self) -> timedelta:
        """How long the next poison message waits for running handlers."""
        return self._wait

    async def wait_until_open(self) -> None:
        """Waits until handlers may start. Check `closed` first, which is cheaper."""
        while self.closed:
            await self._open.wait()

    def enter(self) -> None:
        """Counts a handler that starts. Call it only while not `closed`, and `leave` afterwards."""
        self._running += 1

    def leave(self) -> None:
        """Counts a handler that has ended."""
        self._running -= 1
        if self._isolating:
            self._emptied.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[timedelta | None]:
        """Yields None when no other handler runs. None starts until the block ends. Poison messages run one after another.

        If the running handlers do not end in time, yields how long to postpone the message. Others may start meanwhile.
        """

        def force_open() -> None:
            self._forced = True
            self._open.set()

        pause = self._remaining_pause() if self._running else None
        if pause is None:
            if not self._isolating:
                self._closed_at = self._clock()
                self._forced = False
                self._open.clear()
            self._isolating += 1
            if self._isolating > 1:
                self._copy_waits.set()
            try:
                async with self._lock:
                    pause = await self._until_quiet()
                    if pause is None:
                        forced = asyncio.get_running_loop().call_later(_UNTIL_FORCED.total_seconds(), force_open)
                        try:
                            yield None
                        finally:
                            forced.cancel()
                        return
            finally:
                self._isolating -= 1
                if not self._isolating:
                    self._open.set()
        # Outside of the lock, and with other handlers running again: the caller only postpones the message.
        yield pause

    async def wait_for_copy(self) -> None:
        """Within the block of `alone`: waits until another poison message waits for its turn, at most for `COPY_LIMIT`."""
        # Where a broker replaces the message by a marked copy, the copy must run before other handlers start. Otherwise it
        # would wait for those, and become a dead letter if one of them killed the worker.
        if self._isolating == 1:
            self._copy_waits.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(COPY_LIMIT.total_seconds()):
                    await self._copy_waits.wait()

    def _remaining_pause(self) -> timedelta | None:
        seconds = self._others_until - self._clock()
        return timedelta(seconds=seconds) if seconds > 0 else None

    async def _until_quiet(self) -> timedelta | None:
        """Waits for the running handlers. Returns None when none runs, or how long to postpone the poison message."""
        if self._running and (pause := self._remaining_pause()) is not None:
            return pause
        # Counted from the closing: poison messages that wait one after another delay others by `LONGEST_WAIT` together.
        wait = min(self._wait, LONGEST_WAIT - timedelta(seconds=self._clock() - self._closed_at))
        if wait > timedelta(0):
            try:
                async with asyncio.timeout(wait.total_seconds()):
                    while self._running:
                        self._emptied.clear()
                        await self._emptied.wait()
            except TimeoutError:
                pass
            else:
                self._wait = FIRST_WAIT
                return None
        # Several poison messages may time out together: only the first one doubles the wait.
        if (pause := self._remaining_pause()) is None:
            pause = self._wait * OTHERS_SHARE
            self._others_until = self._clock() + pause.total_seconds()
            self._wait = min(self._wait * 2, LONGEST_WAIT)
        return pause
