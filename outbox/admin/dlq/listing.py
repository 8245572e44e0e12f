"""`GET /dlq`: the list, page by page."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query

from outbox.admin.access import Viewer
from outbox.admin.dlq.filters import DeadLetterListParameters
from outbox.admin.dlq.lines import line
from outbox.admin.dlq.models import DeadLetterPage, Facet, Facets
from outbox.admin.dlq.reading import MOST_FACETED, Letters, masking_of
from outbox.admin.dlq.unarchived import UnarchivedView
from outbox.admin.models import Total
from outbox.admin.paging import MOST_COUNTED, Cursor, counted, decode_cursor, invalid_cursor, turned
from outbox.admin.problems import Code, documented
from outbox.admin.routing import area
from outbox.dead_letters import DeadLetter, DeadLetterFilter, Position
from outbox.dead_letters.filters import is_letter_id
from outbox.masking import Masking

router = area("dlq")


@router.get("/dlq", operation_id="outbox_dlq_list", responses=documented(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH))
async def list_dead_letters(asked: Viewer, wanted: Annotated[DeadLetterListParameters, Query()]) -> DeadLetterPage:
    """Dead letters, and with them the messages that the relay parked, those that are open unless `status` says otherwise.

    Pages do not shift while messages die and are resolved: a page holds what is behind the last line of the one before it, or
    before the first line of the one after it. What dies anew moves to the place of its latest death. Counting all, up to
    10,000, and `facets` are done on request only; facets are up to a minute old, as `as_of` says.
    """
    letters = asked.admin.shared(Letters)
    masking = masking_of(asked, wanted)
    bound_to = {**wanted.bound_to(), "sort": wanted.sort}
    cursor = decode_cursor(wanted.cursor, bound_to, (str, str))
    position = None if cursor is None else _position(cursor)
    filter_ = wanted.as_filter()
    backwards = cursor is not None and cursor.direction == "previous"
    read, total, facets, (unarchived, degraded) = await asyncio.gather(
        letters.listing.list(
            filter_,
            limit=wanted.limit + 1,
            after=None if backwards else position,
            before=position if backwards else None,
            sort=wanted.sort,
        ),
        _total(letters, filter_, asked=wanted.total),
        _facets(letters, filter_, masking, asked=wanted.facets),
        asked.admin.shared(UnarchivedView).now(),
    )
    page = turned(read[::-1] if backwards else read, limit=wanted.limit, cursor=cursor, bound_to=bound_to, place=_place)
    return DeadLetterPage(
        items=[line(letter, masking) for letter in page.items],
        next=page.next,
        previous=page.previous,
        total=total,
        facets=facets,
        unarchived=unarchived,
        degraded=degraded,
    )


def _place(letter: DeadLetter) -> tuple[str, str]:
    return letter.failed_at.isoformat(), letter.id


def _position(cursor: Cursor) -> Position:
    """The position that a cursor keeps. Raises `invalid-cursor` for what no page has shown."""
    at, id_ = cursor.place
    try:
        failed_at = datetime.fromisoformat(at)
        in_utc = failed_at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise invalid_cursor() from None
    if failed_at.tzinfo is None or not is_letter_id(id_):
        raise invalid_cursor()
    return Position(failed_at=in_utc, id=id_, inclusive=cursor.inclusive)


async def _total(letters: Letters, filter_: DeadLetterFilter, *, asked: bool) -> Total | None:
    return counted(await letters.listing.count(filter_, most=MOST_COUNTED + 1)) if asked else None


async def _facets(letters: Letters, filter_: DeadLetterFilter, masking: Masking, *, asked: bool) -> Facets | None:
    if not asked:
        return None
    found, as_of = await letters.facets(filter_)
    return Facets(
        **{name: _shown(name, counts, masking) for name, counts in found.items()},
        relation="gte" if any(sum(count for _, count in counts) >= MOST_FACETED for counts in found.values()) else "eq",
        as_of=as_of,
    )


def _shown(name: str, counts: Sequence[tuple[str, int]], masking: Masking) -> list[Facet]:
    """What the relay parked has its whole error for a type, if that says nothing of one."""
    mask = masking.error_type if name == "exception_type" else str
    return [Facet(value=mask(value), count=count) for value, count in counts]
