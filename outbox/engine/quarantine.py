"""Lets a poison message run alone, so that a further death has one culprit, and its neighbours wait for a bounded time only."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from time import monotonic

FIRST_WAIT = timedelta(seconds=5)
"""How long neighbours begin nothing, at first, while a poison message waits for those that run."""
LONGEST_WAIT = timedelta(seconds=30)
"""How long they begin nothing at most; it doubles each time that the wait was in vain."""
NEIGHBOURS_SHARE = 4
"""After a wait in vain the neighbours have so many times as long to themselves: at most a fifth of their time is lost."""
ALONE_LIMIT = timedelta(seconds=60)
"""How long a message may run alone. Then its attempt has failed, and its neighbours go on."""
COPY_LIMIT = timedelta(seconds=2)
"""How long neighbours wait for the marked copy of a poison message. It comes at once, unless many messages are before it."""
_UNTIL_FORCED = ALONE_LIMIT + timedelta(seconds=10)
"""When neighbours go on in any case, since a handler that swallows its cancellation would keep them waiting for ever."""


class Quarantine:
    """Counts the handlers that run. While a poison message runs, or waits to for a limited time, no other handler begins.

    For the others it costs two additions. `clock` returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._running = 0
        self._isolating = 0
        self._forced = False
        self._open = asyncio.Event()
        self._open.set()
        self._emptied = asyncio.Event()
        self._followed = asyncio.Event()
        self._turn = asyncio.Lock()
        self._wait = FIRST_WAIT
        self._closed_at = 0.0
        self._neighbours_until = 0.0

    @property
    def closed(self) -> bool:
        """Whether no handler of another message may begin."""
        return self._isolating > 0 and not self._forced

    @property
    def running(self) -> int:
        """How many handlers of other messages run."""
        return self._running

    @property
    def wait(self) -> timedelta:
        """How long the next poison message waits for them."""
        return self._wait

    async def opened(self) -> None:
        """Returns when handlers may begin. Look at `closed` first: this is the way that takes time."""
        while self.closed:
            await self._open.wait()

    def enter(self) -> None:
        """A handler of a message that is not poison begins to run. Call it only while not `closed`, and `leave` afterwards."""
        self._running += 1

    def leave(self) -> None:
        """It has ended."""
        self._running -= 1
        if self._isolating:
            self._emptied.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[timedelta | None]:
        """For a poison message. Enters the block with None when no other handler runs, and none begins until it is left.

        If those that run do not end in time, it enters with a pause instead: the message is to go away for so long. Meanwhile
        neighbours go on. Poison messages run one after another.
        """

        def force_open() -> None:
            self._forced = True
            self._open.set()

        pause = self._left_to_neighbours() if self._running else None
        if pause is None:
            if not self._isolating:
                self._closed_at = self._clock()
                self._forced = False
                self._open.clear()
            self._isolating += 1
            if self._isolating > 1:
                self._followed.set()
            try:
                async with self._turn:
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
        yield pause

    async def followed(self) -> None:
        """Within the block of `alone`: returns when another poison message waits for its turn, or after `COPY_LIMIT`.

        Where a broker replaces the message by a marked copy, the copy begins while it is still quiet. Otherwise it would wait
        for handlers that had begun in between, and be blamed if one of those killed the worker.
        """
        if self._isolating == 1:
            self._followed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(COPY_LIMIT.total_seconds()):
                    await self._followed.wait()

    def _left_to_neighbours(self) -> timedelta | None:
        seconds = self._neighbours_until - self._clock()
        return timedelta(seconds=seconds) if seconds > 0 else None

    async def _until_quiet(self) -> timedelta | None:
        """None when nothing else runs; or else how long the message is to go away, because others have waited for long."""
        if self._running and (pause := self._left_to_neighbours()) is not None:
            return pause
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
        if (pause := self._left_to_neighbours()) is None:  # several may have waited together
            pause = self._wait * NEIGHBOURS_SHARE
            self._neighbours_until = self._clock() + pause.total_seconds()
            self._wait = min(self._wait * 2, LONGEST_WAIT)
        return pause
