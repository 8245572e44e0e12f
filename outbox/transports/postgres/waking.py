"""Sleeping until deliveries are due: one sleeper for all queues that a process waits for."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta

from outbox.errors import DatabaseUnavailableError
from outbox.ports import Doorbell

LONGEST_SLEEP = timedelta(seconds=60)
"""Without a ring, and with nothing due sooner, the queues are looked at this often."""
ASKED_AGAIN_WITHIN = timedelta(milliseconds=20)
"""Who was woken and finds nothing waits again about this soon; until then the sleep has not ended."""

SecondsUntilDue = Mapping[str, float | None]
Wake = Callable[[], None]


class Waking:
    """Wakes whoever waits for a queue when something is due in it, while `run` is running."""

    def __init__(self, doorbell: Doorbell, *, next_due: Callable[[Sequence[str]], Awaitable[SecondsUntilDue]]) -> None:
        self._doorbell = doorbell
        self._next_due = next_due
        self._waiting: dict[Wake, str] = {}
        self._wanted = asyncio.Event()
        self._until_due = LONGEST_SLEEP

    def wake_when_due(self, queue: str, wake: Wake) -> None:
        """Calls `wake` once, when something may be due in `queue`. Asking again before that changes nothing."""
        if wake not in self._waiting:
            self._waiting[wake] = queue
            self._wanted.set()
            self._doorbell.ring()

    def forget(self, wake: Wake) -> None:
        """`wake` is not called any more."""
        self._waiting.pop(wake, None)

    async def run(self) -> None:
        """Looks, sleeps and wakes until cancelled."""
        while True:
            await self._wanted.wait()
            try:
                if not await self._wake_due():
                    await self._sleep()
            except DatabaseUnavailableError:
                self._wake(list(self._waiting))  # who finds it still away pauses by itself
            if not self._waiting:
                self._wanted.clear()

    async def _sleep(self) -> None:
        async with self._doorbell.asleep() as nap:
            # Whatever was committed before everybody rings is found by this look. Stays asleep while it finds nothing: a
            # commit wakes the workers of all processes, and only one of them gets the delivery.
            while self._waiting and not await self._wake_due():
                await nap.wait(self._until_due)
                if len(set(self._waiting.values())) == 1:
                    self._wake(list(self._waiting))  # claiming is as quick as looking
                    await nap.wait(ASKED_AGAIN_WITHIN)

    async def _wake_due(self) -> bool:
        """Wakes those whose queue has something due, and tells whether there were any, or nobody waits."""
        seconds = await self._next_due(sorted(set(self._waiting.values())))
        due = [wake for wake, queue in self._waiting.items() if _is_due(seconds.get(queue))]
        self._wake(due)
        later = [left for left in seconds.values() if left is not None and left > 0]
        self._until_due = min(timedelta(seconds=min(later, default=LONGEST_SLEEP.total_seconds())), LONGEST_SLEEP)
        return bool(due) or not self._waiting

    def _wake(self, sleepers: Sequence[Wake]) -> None:
        for wake in sleepers:
            self._waiting.pop(wake, None)
            wake()


def _is_due(seconds: float | None) -> bool:
    return seconds is not None and seconds <= 0
