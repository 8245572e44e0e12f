"""Where lean claims go on: behind what was taken last, instead of at the front of the index, among rows that are gone."""

from collections.abc import Sequence

from outbox.postgres.floors import FRONT


class Bookmarks:
    """The last row that was taken of each of `count` priorities, since a claim from the front.

    Until a vacuum has been, whatever was sent stands at the front of the index, and each claim from there reads past it; past
    what other claims hold, too. What comes to lie before a bookmark, because its transaction was long or its claim was given
    back, is for the next claim from the front, of which there is one in `outbox.postgres.turns.FAIR_EVERY`.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.forget()

    @property
    def places(self) -> tuple[Sequence[float], Sequence[int]]:
        """By priority: when the last row was due, in seconds since 1970, and its id; `FRONT` and 0 where none was taken."""
        return self._dues, self._ids

    def forget(self) -> None:
        """The next claim begins at the front."""
        self._dues = [FRONT] * self._count
        self._ids = [0] * self._count

    def put(self, priority: int, due: float, row_id: int) -> None:
        """That row was taken last; those before it were taken with it, or are left to a claim from the front."""
        self._dues[priority], self._ids[priority] = due, row_id
