"""What the routes of dead letters read with: one of it for all requests."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from outbox.admin.access import Asked
from outbox.admin.dlq.filters import DeadLetterFilters
from outbox.admin.problems import Code, Problem
from outbox.admin.remembered import Remembered
from outbox.admin.snapshots import Snapshot
from outbox.dead_letters import DeadLetterFilter, Group, GroupBy
from outbox.dead_letters.model import FACET_FIELDS, FacetField, Facets
from outbox.dead_letters.reading import Afterlife, DeadLetterListing, GroupNotes
from outbox.masking import Masking

if TYPE_CHECKING:
    from outbox.admin.admin import Admin

MOST_FACETED = 50_000
"""So many letters, the latest ones, are counted by value."""
MOST_VALUES = 20


class Letters:
    """Reads dead letters of an admin, in bounded time; counts of groups and of values are remembered for a moment."""

    def __init__(self, admin: "Admin") -> None:
        self.masking: Masking = admin.masking
        self.listing = DeadLetterListing(admin.pool, admin.table, masking=admin.masking, reading=admin.reading)
        self.notes = GroupNotes(admin.table)
        self.afterlife = Afterlife(admin.table)
        self._groups = Remembered[Sequence[Group]]()
        self._facets = Remembered[Facets]()

    async def groups(self, by: GroupBy, filter_: DeadLetterFilter, limit: int) -> Snapshot[Sequence[Group]]:
        """The largest groups, and when they were counted."""
        return await self._groups.get((by, filter_, limit), lambda: self.listing.groups(by, filter_, limit=limit))

    async def facets(self, filter_: DeadLetterFilter) -> tuple[Facets, datetime]:
        """Values and how many have them; of each field without the filter on it."""
        filtered = [name for name in FACET_FIELDS if getattr(filter_, name) is not None]
        found = await self._counted(filter_, tuple(name for name in FACET_FIELDS if name not in filtered))
        facets, as_of = dict(found.value), found.as_of
        for name in filtered:
            alone = await self._counted(_without(filter_, name), (name,))
            facets |= alone.value
            as_of = min(as_of, alone.as_of)
        return facets, as_of

    async def close(self) -> None:
        """Ends what is being counted."""
        await self._groups.close()
        await self._facets.close()

    async def _counted(self, filter_: DeadLetterFilter, fields: tuple[FacetField, ...]) -> Snapshot[Facets]:
        async def count() -> Facets:
            return await self.listing.facets(filter_, fields, limit=MOST_VALUES, most=MOST_FACETED) if fields else {}

        return await self._facets.get((filter_, fields), count)


def masking_of(asked: Asked, wanted: DeadLetterFilters) -> Masking:
    """What is hidden from whoever asks. Raises `forbidden` for a search in hidden texts: what it finds would tell them."""
    if asked.masking.hides_errors and wanted.q is not None:
        raise Problem(Code.FORBIDDEN, "searching reads the texts of errors, which are shown to operators only")
    return asked.masking


def _without(filter_: DeadLetterFilter, name: str) -> DeadLetterFilter:
    nothing: dict[str, Any] = {name: None}
    return replace(filter_, **nothing)
