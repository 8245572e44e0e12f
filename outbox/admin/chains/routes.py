"""`GET /chains` and `GET /chains/{tracking_id}`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from outbox.admin.access import Viewer
from outbox.admin.chains.models import ChainPage, ChainResponse, ChainSummary
from outbox.admin.models import Cursor, Direction, Instant, Request, Text, decode_cursor
from outbox.admin.problems import Code, Problem, documented
from outbox.admin.routing import area
from outbox.chains import MOST_NODES, ChainState, chain
from outbox.chains.beginnings import BeginningFilter, beginnings
from outbox.chains.model import masked
from outbox.chains.traces import BeginningsReader, Place
from outbox.postgres.pool import unavailable_errors

LONGEST_ID = 4_000
"""Most characters of an id: servers refuse an address of more than 64 KiB, and a character may take twelve bytes of it."""

router = area("chains")


class ChainParameters(Request):
    """What `GET /chains/{tracking_id}` takes."""

    id: Annotated[
        str | None,
        Field(min_length=1, max_length=LONGEST_ID, description="The id, in place of one that a path cannot carry: `..`"),
    ] = None
    max_nodes: Annotated[int, Field(ge=1, le=MOST_NODES, description="Most messages that are answered.")] = 500


class ChainListParameters(Request):
    """What `GET /chains` takes."""

    routing_key: Annotated[Text | None, Field(description="That of the first message, exactly.")] = None
    state: Annotated[
        ChainState | None,
        Field(description="The worst state of its messages."),
    ] = None
    sent_after: Annotated[Instant | None, Field(description="Its first message was sent then or later.")] = None
    sent_before: Annotated[Instant | None, Field(description="Its first message was sent before then.")] = None
    limit: Annotated[int, Field(ge=1, le=200, description="At most so many items.")] = 50
    cursor: Annotated[
        str | None, Field(max_length=2_000, description="`next` or `previous` of a page before; with its filter.")
    ] = None

    def bound_to(self) -> Mapping[str, Any]:
        """What says which filter this is."""
        return {"chains": True, **self.model_dump(exclude={"limit", "cursor"}, exclude_none=True)}


@router.get("/chains", operation_id="outbox_chains_list", responses=documented(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH))
async def list_chains(context: Viewer, wanted: Annotated[ChainListParameters, Query()]) -> ChainPage:
    """Lists the latest chains, newest first: how each began, its worst state, and how long it took.

    Chains are found in the history: messages that are still in the outbox, or whose history was pruned, are not included.
    """
    bound_to = wanted.bound_to()
    cursor = decode_cursor(wanted.cursor, bound_to, (str, int))
    filter_ = BeginningFilter(
        routing_key=wanted.routing_key,
        state=wanted.state,
        after=wanted.sent_after,
        before=wanted.sent_before,
    )
    async with context.admin.reading("listing chains") as connection:
        page = await beginnings(
            BeginningsReader(connection, context.admin.table),
            filter_,
            wanted.limit,
            None if cursor is None else _place(cursor),
            backwards=cursor is not None and cursor.direction == "previous",
        )
    return ChainPage(
        items=[ChainSummary.model_validate(item) for item in page.items],
        next=_cursor("next", page.next, bound_to),
        previous=_cursor("previous", page.previous, bound_to),
    )


@router.get("/chains/{tracking_id:path}", operation_id="outbox_chains_show", responses=documented(Code.NOT_FOUND))
async def show_chain(
    context: Viewer,
    tracking_id: Annotated[str, Path(description="The id of any message of the chain.", max_length=LONGEST_ID)],
    wanted: Annotated[ChainParameters, Query()],
) -> ChainResponse:
    """Shows the whole chain of a message: its causes, its effects, and the outcome of each.

    Times are those of the database. A message that is only named by others has the state `unknown`.
    """
    with unavailable_errors("reading a chain"):
        found = await chain(
            context.admin.pool,
            wanted.id or tracking_id,
            max_nodes=wanted.max_nodes,
            table_name=str(context.admin.table),
            bounded=True,
        )
    if not found.found:
        nothing = "nothing is known of that id: look at how it is written, and whether the history goes back that far"
        raise Problem(Code.NOT_FOUND, "; ".join((nothing, *found.unknown)))
    return ChainResponse.model_validate(masked(found, context.masking))


def _place(cursor: Cursor) -> Place:
    at, hash_ = cursor.place
    try:
        moment = datetime.fromisoformat(at).astimezone(UTC)
    except (ValueError, OverflowError):
        moment = None
    if moment is None or abs(hash_) >= _TOO_LARGE:
        raise Problem(Code.INVALID_CURSOR, "leave `cursor` out, or give one that a page has shown")
    return Place(moment, hash_)


_TOO_LARGE = 2**63 - 1


def _cursor(direction: Direction, place: Place | None, bound_to: Mapping[str, Any]) -> str | None:
    return None if place is None else Cursor(direction, (place.at.isoformat(), place.hash)).encode(bound_to)
