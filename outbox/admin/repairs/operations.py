"""The endpoints about operations: lists of them, one with its progress and its letters; pausing, resuming, cancelling."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from outbox.admin.access import Asked, Operator, Viewer
from outbox.admin.auditing import record
from outbox.admin.models import Total
from outbox.admin.outcomes import Outcome, outcome_of
from outbox.admin.paging import MOST_COUNTED, Cursor, Paged, counted, decode_cursor, turned
from outbox.admin.problems import Code, Problem, documented
from outbox.admin.repairs.answers import (
    OperationAnswer,
    OperationItemAnswer,
    OperationItemPage,
    OperationPage,
)
from outbox.admin.routing import area
from outbox.dead_letters import ItemOutcome, Operation, OperationItem
from outbox.postgres.pool import Connection

FAILURES_FIRST = (
    ItemOutcome.DIED_AGAIN,
    ItemOutcome.REFUSED,
    ItemOutcome.NOT_FOUND,
    ItemOutcome.SKIPPED,
    ItemOutcome.PENDING,
    ItemOutcome.DONE,
)
"""The order in which the letters of an operation are listed."""

Number = Annotated[int, Path(alias="id", ge=1, le=2**63 - 1, description="The number of the operation.")]

_LARGEST = 2**63 - 2

router = area("operations")


class OperationsParameters(Paged):
    """What `GET /operations` takes."""

    going_on: Annotated[bool, Field(description="Only those that have not ended.")] = False


class ItemsParameters(Paged):
    """What `GET /operations/{id}/items` takes."""

    outcome: Annotated[Outcome | None, Field(description="Only those of which this came.")] = None


@router.get(
    "/operations",
    operation_id="outbox_operations_list",
    summary="List Operations",
    responses=documented(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH),
)
async def operations(wanted: Annotated[OperationsParameters, Query()], asked: Viewer) -> OperationPage:
    """The changes of many dead letters, the newest first, each with its progress."""
    bound = {"operations": True, "going_on": wanted.going_on}
    cursor = decode_cursor(wanted.cursor, bound, (int,))
    found = await asked.admin.dead_letters.operations(going_on=wanted.going_on, limit=wanted.limit + 1, **_beyond(cursor))
    read = found[::-1] if cursor is not None and cursor.direction == "previous" else found
    page = turned(read, limit=wanted.limit, cursor=cursor, bound_to=bound, place=lambda operation: (operation.id,))
    items = [OperationAnswer.of(operation) for operation in page.items]
    total = None
    if wanted.total:
        total = counted(await asked.admin.dead_letters.count_operations(going_on=wanted.going_on, limit=MOST_COUNTED + 1))
    return OperationPage(items=items, next=page.next, previous=page.previous, total=total)


@router.get(
    "/operations/{id}", operation_id="outbox_operations_show", summary="Show Operation", responses=documented(Code.NOT_FOUND)
)
async def operation(number: Number, asked: Viewer) -> OperationAnswer:
    """One operation: what was asked for, by whom and why, how far it is, and what became of the messages that it sent again."""
    return OperationAnswer.of(await _found(asked, number))


@router.get(
    "/operations/{id}/items",
    operation_id="outbox_operations_items",
    summary="List What Came Of Each Letter",
    responses=documented(Code.NOT_FOUND, Code.INVALID_CURSOR, Code.CURSOR_MISMATCH),
)
async def items(number: Number, wanted: Annotated[ItemsParameters, Query()], asked: Viewer) -> OperationItemPage:
    """What came of each letter of an operation: those that failed first.

    While it goes on, letters move from one outcome to another, and a page shows what is there when it is asked for.
    """
    found = await _found(asked, number)
    outcomes = _outcomes(wanted.outcome, found)
    bound = {"items": number, "outcome": wanted.outcome}
    cursor = decode_cursor(wanted.cursor, bound, (int, int))
    read = await _read(asked, found, outcomes, cursor, wanted.limit + 1)
    page = turned(
        read,
        limit=wanted.limit,
        cursor=cursor,
        bound_to=bound,
        place=lambda item: (outcomes.index(item.item.outcome), item.position),
    )
    total = Total(value=sum(found.counts.get(outcome, 0) for outcome in outcomes), relation="eq") if wanted.total else None
    answers = [OperationItemAnswer.at(found.action, item) for item in page.items]
    return OperationItemPage(items=answers, next=page.next, previous=page.previous, total=total)


@router.post(
    "/operations/{id}/pause",
    operation_id="outbox_operations_pause",
    summary="Pause Operation",
    responses=documented(Code.NOT_FOUND, Code.CONFLICT),
)
async def pause(number: Number, asked: Operator) -> OperationAnswer:
    """Holds an operation: no further batch of it begins, wherever it is run, until it is resumed."""
    return await _change(asked, number, "pause", asked.admin.dead_letters.pause)


@router.post(
    "/operations/{id}/resume",
    operation_id="outbox_operations_resume",
    summary="Resume Operation",
    responses=documented(Code.NOT_FOUND, Code.CONFLICT),
)
async def resume(number: Number, asked: Operator) -> OperationAnswer:
    """Goes on with an operation that was paused."""
    return await _change(asked, number, "resume", asked.admin.dead_letters.resume)


@router.post(
    "/operations/{id}/cancel",
    operation_id="outbox_operations_cancel",
    summary="Cancel Operation",
    responses=documented(Code.NOT_FOUND, Code.CONFLICT),
)
async def cancel(number: Number, asked: Operator) -> OperationAnswer:
    """Ends an operation: what is done stays done, and its other letters are as they were."""
    return await _change(asked, number, "cancel", asked.admin.dead_letters.cancel)


async def _found(asked: Asked, number: int) -> Operation:
    found = await asked.admin.dead_letters.operation(number)
    if found is None:
        raise Problem(Code.NOT_FOUND, f"there is no operation {number}")
    return found


def _beyond(cursor: Cursor | None) -> Mapping[str, Any]:
    """What the library takes for `cursor`."""
    if cursor is None:
        return {}
    [place] = cursor.place
    if not 0 < place < _LARGEST:
        raise Problem(Code.INVALID_CURSOR, "leave `cursor` out, or give one that a page has shown")
    if cursor.direction == "previous":
        return {"after": place - cursor.inclusive}
    return {"before": place + cursor.inclusive}


def _outcomes(word: Outcome | None, found: Operation) -> tuple[ItemOutcome, ...]:
    if word is None:
        return FAILURES_FIRST
    outcome = outcome_of(word, found.action)
    return () if outcome is None else (outcome,)


async def _read(
    asked: Asked, found: Operation, outcomes: tuple[ItemOutcome, ...], cursor: Cursor | None, limit: int
) -> Sequence[OperationItem]:
    if not outcomes:
        return []
    if cursor is None:
        return await asked.admin.dead_letters.operation_items_by_outcome(found.id, outcomes, limit=limit)
    turn, position = cursor.place
    if not (0 <= turn < len(outcomes) and 0 <= position < _LARGEST):
        raise Problem(Code.INVALID_CURSOR, "leave `cursor` out, or give one that a page has shown")
    backwards = cursor.direction == "previous"
    position += cursor.inclusive if backwards else -cursor.inclusive
    return await asked.admin.dead_letters.operation_items_by_outcome(
        found.id, outcomes, behind=(outcomes[turn], position), backwards=backwards, limit=limit
    )


Do = Callable[..., Awaitable[Operation]]


async def _change(asked: Asked, number: int, verb: str, do: Do) -> OperationAnswer:
    """Does it, and tells the audit in its transaction. A state that does not allow it is a conflict."""
    await _found(asked, number)

    async def also(connection: Connection, operation: Operation) -> None:
        details = {"action": operation.action, "counts": dict(operation.counts)}
        await record(connection, asked, action=f"operations.{verb}", target=f"operation {operation.id}", details=details)

    return OperationAnswer.of(await do(number, also=also))
