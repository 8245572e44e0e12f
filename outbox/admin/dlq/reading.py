"""What the routes of dead letters read with, shared by all requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from outbox.admin.access import RequestContext
from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.admin.cache import SingleFlightCache, Snapshot, StaleWhileRevalidate
from outbox.admin.dlq.models import DeadLetterFilters, Unarchived
from outbox.admin.problems import Code, Problem
from outbox.dead_letters import DeadLetterFilter, Group, GroupBy
from outbox.dead_letters.model import FACET_FIELDS, FacetField, Facets
from outbox.dead_letters.reader import Afterlife, DeadLetterListing, GroupNotes
from outbox.masking import Masking
from outbox.postgres.archive import PostgresArchive

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
        self._groups = StaleWhileRevalidate[Sequence[Group]]()
        self._facets = StaleWhileRevalidate[Facets]()

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


def masking_of(context: RequestContext, wanted: DeadLetterFilters) -> Masking:
    """What is hidden from whoever asks. Raises `forbidden` for a search in hidden texts: what it finds would tell them."""
    if context.masking.hides_errors and wanted.q is not None:
        raise Problem(Code.FORBIDDEN, "searching reads the texts of errors, which are shown to operators only")
    return context.masking


def _without(filter_: DeadLetterFilter, name: str) -> DeadLetterFilter:
    nothing: dict[str, Any] = {name: None}
    return replace(filter_, **nothing)


MAX_AGE = timedelta(seconds=5)
TIMEOUT = timedelta(seconds=10)
PATIENCE = timedelta(milliseconds=120)
"""How long a list waits for the broker."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found: by queue, or why nothing is known."""

    queues: Mapping[str, int]
    problem: str | None


class UnarchivedView:
    """The dead letters at the broker that no archiver has taken. With PostgreSQL as the broker there are none of the kind."""

    def __init__(self, admin: "Admin") -> None:
        self._admin = admin
        self._broker = admin.shared(BrokerView)
        self._found = SingleFlightCache(self._look, max_age=MAX_AGE, timeout=TIMEOUT)

    async def now(self) -> tuple[Unarchived | None, list[Literal["broker"]]]:
        """What there is, None if nobody knows; and what could not be asked."""
        if self._broker.kind is not BrokerKind.RABBITMQ:
            return None, []
        try:
            found = await self._found.get(patience=PATIENCE)
        except Exception:  # noqa: BLE001  whatever it is, the list has an answer without it
            return None, ["broker"]
        if found.error is not None or found.value.problem is not None:
            return None, ["broker"]
        queues = {queue: count for queue, count in found.value.queues.items() if count}
        return Unarchived(count=sum(queues.values()), queues=queues, as_of=found.as_of), []

    async def close(self) -> None:
        """Ends what is being asked."""
        await self._found.close()

    async def _look(self) -> Found:
        from outbox.transports.rabbitmq.topology import dead_letter_queue

        known = await PostgresArchive(self._admin.pool, self._admin.table).known_queues()
        dead_letters = {dead_letter_queue(queue): queue for queue in known}
        depths = await self._broker.depths(dead_letters)
        queues = {
            dead_letters[seen.name]: (seen.ready or 0) + (seen.unacked or 0)
            for seen in depths.queues
            if seen.name in dead_letters
        }
        return Found(queues, depths.problem)
