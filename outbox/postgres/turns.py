"""Whose turn it is in a claim: high priority before low, and none so long that the others starve."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

FAIR_EVERY = 4
"""One claim in so many begins with the priority whose oldest row has been due the longest."""

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Unkeyed(Generic[_T_co]):
    """What was taken of rows without an ordering key.

    `keyed_after`: the lowest priority that was reached, if rows with a key are due too. `plain`: nothing else was found either
    that a lean claim does without. `full`: there is no room for more, however few were taken.
    """

    taken: Sequence[_T_co]
    keyed_after: int | None = None
    plain: bool = True
    full: bool = False


class TakeUnkeyed(Protocol[_T_co]):
    """Takes rows without an ordering key. A `lean` claim looks for nothing beside them, and may leave unusual ones."""

    def __call__(self, limit: int, *, fair: bool, lean: bool) -> Awaitable[Unkeyed[_T_co]]: ...


class Turns:
    """Shares claims out. Rows with ordering keys are of the lowest priority, and have an equal share of it.

    In a long backlog of nothing but plain rows, only the fair claims look for others.
    """

    def __init__(self) -> None:
        self._claims = 0
        self._keyed_after: int | None = None
        self._lean = False

    async def share(
        self, limit: int, *, unkeyed: TakeUnkeyed[_T], keyed: Callable[[int], Awaitable[Sequence[_T]]]
    ) -> Sequence[_T]:
        """Up to `limit` of what both take. While no row with an ordering key is due, `keyed` is not asked."""
        self._claims += 1
        fair = self._claims % FAIR_EVERY == 0
        if self._lean and not fair:
            taken = (await unkeyed(limit, fair=False, lean=True)).taken
            self._lean = len(taken) >= limit
            if taken:
                return taken
        if self._keyed_first():
            taken = await keyed(limit)
            self._keyed_after = None
            if len(taken) >= limit:
                return taken
            return [*taken, *(await unkeyed(limit - len(taken), fair=fair, lean=False)).taken]
        found = await unkeyed(limit, fair=fair, lean=False)
        if len(found.taken) >= limit or found.full or found.keyed_after is None:
            self._keyed_after = found.keyed_after
            self._lean = len(found.taken) >= limit and found.keyed_after is None and found.plain
            return found.taken
        self._keyed_after = (
            None if found.taken else 0
        )  # where there are only rows with keys, every other claim looks for others
        return [*found.taken, *await keyed(limit - len(found.taken))]

    def _keyed_first(self) -> bool:
        """They had to wait, because of rows of the same priority; or of a higher one, and then more often."""
        return self._keyed_after == 0 or (self._keyed_after is not None and self._claims % (2 * FAIR_EVERY) == 0)
