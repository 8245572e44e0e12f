"""`POST /requeue`, `/discard` and `/restore`, in one transaction with their audit entry, and the endpoints of operations."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel, Field

from outbox.admin.access import Operator, RequestContext, Viewer, area, record, record_refused
from outbox.admin.dlq.models import Outcome, outcome_of
from outbox.admin.models import MOST_COUNTED, Cursor, Paged, Total, cursor_page, decode_cursor, invalid_cursor, to_total
from outbox.admin.models import Request as Parameters
from outbox.admin.principals import Role
from outbox.admin.problems import Code, Problem, documented
from outbox.admin.repairs.models import (
    DryRunResponse,
    OperationItemPage,
    OperationItemResponse,
    OperationPage,
    OperationResponse,
    RepairResponse,
)
from outbox.admin.repairs.once import (
    Answer,
    Confirmation,
    IdempotencyKey,
    IdempotencyLock,
    idempotency_lock,
    issue_token,
    require_confirmation,
    respond,
    use,
)
from outbox.admin.repairs.requests import DiscardRequest, Repair, RequeueRequest, RestoreRequest, edit_of, require_version
from outbox.dead_letters import Action, Edit, ItemOutcome, Operation, OperationItem, Repaired
from outbox.dead_letters.actions import encode_selector
from outbox.errors import CountDriftedError, EncodingError
from outbox.postgres.pool import Connection


async def changed(context: RequestContext, change: Repair, key: str | None, http: Request) -> Response:
    """Does what is asked for, once, and answers it."""
    dead_letters, selector, options = context.admin.dead_letters, change.selector.meant(), change.options()
    if change.dry_run:
        if isinstance(change, RequeueRequest):
            await edit_of(context, change)
        planned = {name: options[name] for name in ("destination", "force") if name in options}
        plan = await dead_letters.plan(change.action, selector, max_items=change.max_items, **planned)
        token = await issue_token(context, change, plan.expected)
        return respond(Answer(200, {}, _encoded(DryRunResponse.of(plan, token, context.admin.masking))))
    async with idempotency_lock(context, key, change) as hold:
        if isinstance(hold, Answer):
            return respond(hold, replayed=True)
        confirmation = await require_confirmation(context, change)
        edit = await edit_of(context, change) if isinstance(change, RequeueRequest) else None
        # The path next to the endpoint that was asked, wherever the application and the router are mounted. Servers and
        # proxies differ in whether the path that they give has the root path in it.
        root, path = str(http.scope.get("root_path", "")).rstrip("/"), str(http.scope["path"])
        whole = path if path.startswith(f"{root}/") else root + path
        operations = f"{whole.rstrip('/').rpartition('/')[0]}/operations"
        transaction = _ChangeTransaction(context, change, confirmation, hold, edit, operations)
        does: dict[Action, Callable[..., Awaitable[Repaired | Operation]]] = {
            Action.REQUEUE: partial(dead_letters.requeue, edit=edit),
            Action.DISCARD: dead_letters.discard,
            Action.RESTORE: dead_letters.restore,
            Action.PURGE: dead_letters.purge,
        }
        try:
            repaired = await does[change.action](
                selector,
                reason=change.reason,
                by=context.principal.name,
                max_items=change.max_items,
                expected=None if confirmation is None else confirmation.expected,
                also=transaction.also,
                **options,
            )
        except CountDriftedError as error:
            raise Problem(Code.COUNT_DRIFTED, str(error), expected=error.expected, found=error.found) from None
        except EncodingError as error:
            raise Problem(Code.INVALID_EDIT, str(error)) from None
        return respond(transaction.answered(repaired))


@dataclass(frozen=True, slots=True)
class _ChangeTransaction:
    """What is written in the transaction of a change, and what is answered."""

    context: RequestContext
    change: Repair
    confirmation: Confirmation | None
    hold: IdempotencyLock | None
    edit: Edit | None
    operations: str

    async def also(self, connection: Connection, answer: Repaired | Operation) -> None:
        """Uses the token up, writes the audit entry, and keeps the answer. What it raises takes everything back."""
        if self.edit is not None and isinstance(answer, Repaired) and answer.items[0].outcome is ItemOutcome.REFUSED:
            # It may have been changed after we had looked; the library says that in words only.
            detail = await self.context.admin.dead_letters.get(answer.items[0].id)
            if detail is not None:
                require_version(detail.letter, self.edit)
        ids = self.change.selector.ids or ()
        target = ids[0] if len(ids) == 1 else f"{len(ids)} dead letters"
        if self.confirmation is not None:
            await use(connection, self.context, self.change, self.confirmation)
        await record(
            connection,
            self.context,
            action=f"dlq.{self.change.action}",
            target=f"operation {answer.id}" if isinstance(answer, Operation) else target,
            reason=self.change.reason,
            details=_details(self.change, answer),
        )
        if self.hold is not None:
            await self.hold.store(connection, self.answered(answer))

    def answered(self, answer: Repaired | Operation) -> Answer:
        """The answer to the client."""
        if isinstance(answer, Repaired):
            return Answer(200, {}, _encoded(RepairResponse.of(answer)))
        return Answer(202, {"location": f"{self.operations}/{answer.id}"}, _encoded(OperationResponse.of(answer)))


def _encoded(model: BaseModel) -> bytes:
    return model.model_dump_json().encode()


def _details(change: Repair, answer: Repaired | Operation) -> Mapping[str, Any]:
    selector = change.selector.meant()
    asked_for = change.model_dump(
        mode="json", exclude={"selector", "reason", "dry_run", "confirm_token", "edit"}, exclude_defaults=True
    )
    details: dict[str, Any] = {"selector": json.loads(encode_selector(selector)), **asked_for}
    if isinstance(change, RequeueRequest) and change.edit is not None:
        details["edit"] = {
            "version": change.edit.version,
            "body": change.edit.has_body,
            "headers": change.edit.headers is not None,
        }
    if isinstance(answer, Operation):
        return {**details, "operation": str(answer.id), "total": answer.total}
    return {**details, "counts": RepairResponse.of(answer).counts}


_PROBLEMS = (
    Code.BODY_TOO_LARGE,
    Code.CONFIRMATION_REQUIRED,
    Code.COUNT_DRIFTED,
    Code.REQUEST_RUNNING,
    Code.KEY_REUSED,
    Code.INVALID_REQUEST,
)
_ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {
        "model": OperationResponse,
        "description": "An operation was made of it, whose letters are fixed now, and which goes on in batches.",
        "headers": {"location": {"description": "Where the operation is.", "schema": {"type": "string"}}},
    }
}

router = area("repairing")


@router.post(
    "/requeue",
    operation_id="outbox_requeue",
    summary="Requeue Dead Letters",
    response_model=RepairResponse | DryRunResponse,
    responses=_ACCEPTED
    | documented(
        *_PROBLEMS,
        Code.VERSION_CONFLICT,
        Code.HEADER_LOCKED,
        Code.INVALID_EDIT,
        Code.BROKER_UNAVAILABLE,
        Code.DATABASE_UNAVAILABLE,
    ),
)
async def requeue(change: RequeueRequest, context: Operator, http: Request, key: IdempotencyKey = None) -> Response:
    """Sends dead letters again through the outbox, with their ids, each to the queue where it failed.

    Up to 100 ids are done at once, with an outcome for each. More ids, a filter, a group, a rate or a canary make an operation
    (202), whose items are fixed now, and which runs wherever maintenance runs. With `dry_run` nothing is done: the answer says
    what would be done, and has the `confirm_token` that filters and groups require.
    """
    return await changed(context, change, key, http)


@router.post(
    "/discard",
    operation_id="outbox_discard",
    summary="Discard Dead Letters",
    response_model=RepairResponse | DryRunResponse,
    responses=_ACCEPTED | documented(*_PROBLEMS, Code.FORBIDDEN),
)
async def discard(change: DiscardRequest, context: Operator, http: Request, key: IdempotencyKey = None) -> Response:
    """Discards dead letters: they are kept, do not count as open, and can be restored.

    With `purge`, discarded ones are deleted for good: this requires the role `admin`, a reason, and the token of a dry run.
    """
    if change.purge and not change.dry_run and not context.principal.role.includes(Role.ADMIN):  # a dry run purges nothing
        target = ", ".join(change.selector.ids or ()) or "a filter"
        await record_refused(context, "denied", action="dlq.purge", target=target, details={"code": Code.FORBIDDEN})
        raise Problem(Code.FORBIDDEN, f"purging takes the role admin, and {context.principal.name} is {context.principal.role}")
    return await changed(context, change, key, http)


@router.post(
    "/restore",
    operation_id="outbox_restore",
    summary="Restore Dead Letters",
    response_model=RepairResponse | DryRunResponse,
    responses=_ACCEPTED | documented(*_PROBLEMS),
)
async def restore(change: RestoreRequest, context: Operator, http: Request, key: IdempotencyKey = None) -> Response:
    """Restores discarded dead letters to open. Requeued ones cannot be restored: they have been sent."""
    return await changed(context, change, key, http)


FAILURES_FIRST: tuple[ItemOutcome, ...] = (
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

operations_router = area("operations")


class OperationFilters(Parameters):
    """Which operations are listed."""

    active: Annotated[bool, Field(description="Only those that have not ended.")] = False


class OperationsParameters(OperationFilters, Paged):
    """What `GET /operations` takes."""


class ItemsParameters(Paged):
    """What `GET /operations/{id}/items` takes."""

    outcome: Annotated[Outcome | None, Field(description="Only those of which this came.")] = None


@operations_router.get(
    "/operations",
    operation_id="outbox_operations_list",
    summary="List Operations",
    responses=documented(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH),
)
async def operations(wanted: Annotated[OperationsParameters, Query()], context: Viewer) -> OperationPage:
    """Lists operations, newest first, each with its progress."""
    bound = {"operations": True, "active": wanted.active}
    cursor = decode_cursor(wanted.cursor, bound, (int,))
    beyond: dict[str, int] = {}
    if cursor is not None:
        [place] = cursor.keys
        if not 0 < place < _LARGEST:
            raise invalid_cursor()
        backwards = cursor.direction == "previous"
        beyond = {"after": place - cursor.inclusive} if backwards else {"before": place + cursor.inclusive}
    found = await context.admin.dead_letters.operations(active=wanted.active, limit=wanted.limit + 1, **beyond)
    read = found[::-1] if cursor is not None and cursor.direction == "previous" else found
    page = cursor_page(read, limit=wanted.limit, cursor=cursor, bound_to=bound, keys_of=lambda operation: (operation.id,))
    items = [OperationResponse.of(operation) for operation in page.items]
    total = None
    if wanted.total:
        total = to_total(await context.admin.dead_letters.count_operations(active=wanted.active, limit=MOST_COUNTED + 1))
    return OperationPage(items=items, next=page.next, previous=page.previous, total=total)


@operations_router.get(
    "/operations/{id}", operation_id="outbox_operations_show", summary="Show Operation", responses=documented(Code.NOT_FOUND)
)
async def operation(number: Number, context: Viewer) -> OperationResponse:
    """Shows one operation: what was requested, by whom and why, its progress, and the results of what it sent again."""
    return OperationResponse.of(await _found(context, number))


@operations_router.get(
    "/operations/{id}/items",
    operation_id="outbox_operations_items",
    summary="List The Items Of An Operation",
    responses=documented(Code.NOT_FOUND, Code.INVALID_CURSOR, Code.CURSOR_MISMATCH),
)
async def items(number: Number, wanted: Annotated[ItemsParameters, Query()], context: Viewer) -> OperationItemPage:
    """Lists the items of an operation with their outcomes, those that failed first.

    While it is active, items move from one outcome to another; a page shows the state at the time of the request.
    """
    found = await _found(context, number)
    outcomes = FAILURES_FIRST
    if wanted.outcome is not None:
        only = outcome_of(wanted.outcome, found.action)
        outcomes = () if only is None else (only,)
    bound = {"items": number, "outcome": wanted.outcome}
    cursor = decode_cursor(wanted.cursor, bound, (int, int))
    read = await _read(context, found, outcomes, cursor, wanted.limit + 1)
    page = cursor_page(
        read,
        limit=wanted.limit,
        cursor=cursor,
        bound_to=bound,
        keys_of=lambda item: (outcomes.index(item.item.outcome), item.position),
    )
    total = Total(value=sum(found.counts.get(outcome, 0) for outcome in outcomes), relation="eq") if wanted.total else None
    answers = [OperationItemResponse.at(found.action, item) for item in page.items]
    return OperationItemPage(items=answers, next=page.next, previous=page.previous, total=total)


@operations_router.post(
    "/operations/{id}/pause",
    operation_id="outbox_operations_pause",
    summary="Pause Operation",
    responses=documented(Code.NOT_FOUND, Code.CONFLICT),
)
async def pause(number: Number, context: Operator) -> OperationResponse:
    """Pauses an operation: no further batch begins until it is resumed."""
    return await _change(context, number, "pause", context.admin.dead_letters.pause)


@operations_router.post(
    "/operations/{id}/resume",
    operation_id="outbox_operations_resume",
    summary="Resume Operation",
    responses=documented(Code.NOT_FOUND, Code.CONFLICT),
)
async def resume(number: Number, context: Operator) -> OperationResponse:
    """Resumes a paused operation."""
    return await _change(context, number, "resume", context.admin.dead_letters.resume)


@operations_router.post(
    "/operations/{id}/cancel",
    operation_id="outbox_operations_cancel",
    summary="Cancel Operation",
    responses=documented(Code.NOT_FOUND, Code.CONFLICT),
)
async def cancel(number: Number, context: Operator) -> OperationResponse:
    """Cancels an operation: finished items stay done, and the others are as they were."""
    return await _change(context, number, "cancel", context.admin.dead_letters.cancel)


async def _found(context: RequestContext, number: int) -> Operation:
    found = await context.admin.dead_letters.operation(number)
    if found is None:
        raise Problem(Code.NOT_FOUND, f"there is no operation {number}")
    return found


async def _read(
    context: RequestContext, found: Operation, outcomes: tuple[ItemOutcome, ...], cursor: Cursor | None, limit: int
) -> Sequence[OperationItem]:
    if not outcomes:
        return []
    if cursor is None:
        return await context.admin.dead_letters.operation_items_by_outcome(found.id, outcomes, limit=limit)
    turn, position = cursor.keys
    if not (0 <= turn < len(outcomes) and 0 <= position < _LARGEST):
        raise invalid_cursor()
    backwards = cursor.direction == "previous"
    position += cursor.inclusive if backwards else -cursor.inclusive
    return await context.admin.dead_letters.operation_items_by_outcome(
        found.id, outcomes, behind=(outcomes[turn], position), backwards=backwards, limit=limit
    )


Do = Callable[..., Awaitable[Operation]]


async def _change(context: RequestContext, number: int, verb: str, do: Do) -> OperationResponse:
    """Does it, with its audit entry in the same transaction. A state that does not allow it is a conflict."""
    await _found(context, number)

    async def also(connection: Connection, operation: Operation) -> None:
        details = {"action": operation.action, "counts": dict(operation.counts)}
        await record(connection, context, action=f"operations.{verb}", target=f"operation {operation.id}", details=details)

    return OperationResponse.of(await do(number, also=also))
