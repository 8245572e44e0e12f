"""Answers that cost something, remembered for a moment by what was asked."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from datetime import timedelta
from typing import Generic, TypeVar

from outbox.admin.snapshots import Snapshot, Snapshots

T = TypeVar("T")

MAX_AGE = timedelta(seconds=5)
"""Age from which on an answer is made again when somebody asks."""
USABLE_AGE = timedelta(seconds=60)
"""Age up to which the one that is there is given meanwhile."""
TIMEOUT = timedelta(seconds=10)
MOST_KEPT = 64
MOST_AT_ONCE = 2
"""So many are made at a time, whoever asks: they are work for the database."""


class Remembered(Generic[T]):
    """Gives each question the answer that was made for it last, and makes a new one once, however many ask."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, Snapshots[T]] = OrderedDict()
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def get(self, question: Hashable, make: Callable[[], Awaitable[T]]) -> Snapshot[T]:
        """The answer to `question`, which `make` makes. Raises what making raised, if there is none that is usable."""
        snapshots = self._of(question, make)
        usable = snapshots.has_usable
        found = await snapshots.get(patience=timedelta(0) if usable else None)
        if found.error is not None and not usable:
            raise found.error
        return found

    async def close(self) -> None:
        """Ends what is being made."""
        for snapshots in self._answers.values():
            await snapshots.close()

    def _of(self, question: Hashable, make: Callable[[], Awaitable[T]]) -> Snapshots[T]:
        async def make_in_turn() -> T:
            async with self._turns:
                return await make()

        if question not in self._answers:
            self._answers[question] = Snapshots(make_in_turn, max_age=MAX_AGE, timeout=TIMEOUT, usable_for=USABLE_AGE)
        self._answers.move_to_end(question)
        while len(self._answers) > MOST_KEPT:
            self._answers.popitem(last=False)
        return self._answers[question]
