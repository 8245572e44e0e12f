"""Whose turn it is in a claim: high priority before low, and none so long that the others starve."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

FAIR_EVERY = 4
"""One claim in so many begins with the priority whose oldest row has been due the longest."""

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class TakeUnkeyed(Protocol[_T_co]):
    """Takes rows without an ordering key; also tells whether others are due, by the lowest priority that it reached."""

    def __call__(self, limit: int, *, fair: bool) -> Awaitable[tuple[Sequence[_T_co], int | None]]: ...


class Turns:
    """Shares claims out. Rows with ordering keys are of the lowest priority, and have an equal share of it."""

    def __init__(self) -> None:
        self._claims = 0
        self._keyed_after: int | None = None

    async def share(
        self, limit: int, *, unkeyed: TakeUnkeyed[_T], keyed: Callable[[int], Awaitable[Sequence[_T]]]
    ) -> Sequence[_T]:
        """Up to `limit` of what both take. While no row with an ordering key is due, `keyed` is not asked."""
        self._claims += 1
        if self._keyed_first():
            taken = await keyed(limit)
            self._keyed_after = None
            if len(taken) >= limit:
                return taken
            return [*taken, *(await unkeyed(limit - len(taken), fair=self._fair()))[0]]
        taken, keyed_after = await unkeyed(limit, fair=self._fair())
        if len(taken) >= limit or keyed_after is None:
            self._keyed_after = keyed_after
            return taken
        self._keyed_after = None if taken else 0  # where there are only rows with keys, every other claim looks for others
        return [*taken, *await keyed(limit - len(taken))]

    def _keyed_first(self) -> bool:
        """They had to wait, because of rows of the same priority; or of a higher one, and then more often."""
        return self._keyed_after == 0 or (self._keyed_after is not None and self._claims % (2 * FAIR_EVERY) == 0)

    def _fair(self) -> bool:
        return self._claims % FAIR_EVERY == 0
