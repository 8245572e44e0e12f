"""`POST /requeue`, `/discard` and `/restore`, each in one transaction with its audit entry; and the endpoints of operations."""

import json
from collections.abc import Awaitable, Callable, Sequence
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
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.admin.repairs.edits import prepare_edit, require_version
from outbox.admin.repairs.models import (
    DryRunResponse,
    OperationItemPage,
    OperationItemResponse,
    OperationPage,
    OperationResponse,
    RepairResponse,
)
from outbox.admin.repairs.once import (
    Confirmation,
    IdempotencyKey,
    IdempotencyLock,
    StoredResponse,
    idempotency_lock,
    issue_token,
    require_confirmation,
    to_response,
    use_token,
)
from outbox.admin.repairs.requests import DiscardRequest, Repair, RequeueRequest, RestoreRequest
from outbox.dead_letters import Action, Edit, ItemOutcome, Operation, OperationItem, Repaired
from outbox.dead_letters.actions import encode_selector
from outbox.errors import CountDriftedError, EncodingError
from outbox.postgres.pool import Connection


async def _apply_repair(context: RequestContext, change: Repair, key: str | None, http: Request) -> Response:
    """Applies a repair once per idempotency key, or plans it for a dry run, and returns the response."""
    dead_letters, selector, options = context.admin.dead_letters, change.selector.selection(), change.options()
    if change.dry_run:
        edit = await prepare_edit(context, change) if isinstance(change, RequeueRequest) else None
        planned = {name: options[name] for name in ("destination", "force") if name in options}
        plan = await dead_letters.plan(change.action, selector, max_items=change.max_items, **planned)
        token = await issue_token(context, change, plan.expected)
        return to_response(StoredResponse(200, {}, _encode(DryRunResponse.of(plan, token, context.admin.masking, edit))))
    async with idempotency_lock(context, key, change) as lock:
        if isinstance(lock, StoredResponse):
            return to_response(lock, replayed=True)
        confirmation = await require_confirmation(context, change)
        edit = await prepare_edit(context, change) if isinstance(change, RequeueRequest) else None
        # The location of operations relative to this endpoint, wherever the application and the router are mounted. Some
        # servers and proxies include the root path in `path`, others do not.
        root, path = str(http.scope.get("root_path", "")).rstrip("/"), str(http.scope["path"])
        full_path = path if path.startswith(f"{root}/") else root + path
        operations = f"{full_path.rstrip('/').rpartition('/')[0]}/operations"
        transaction = _ChangeTransaction(context, change, confirmation, lock, edit, operations)
        methods: dict[Action, Callable[..., Awaitable[Repaired | Operation]]] = {
            Action.REQUEUE: partial(dead_letters.requeue, edit=edit),
            Action.DISCARD: dead_letters.discard,
            Action.RESTORE: dead_letters.restore,
            Action.PURGE: dead_letters.purge,
        }
        try:
            repaired = await methods[change.action](
                selector,
                reason=change.reason,
                by=context.principal.name,
                max_items=change.max_items,
                expected=None if confirmation is None else confirmation.expected,
                before_commit=transaction.before_commit,
                **options,
            )
        except CountDriftedError as error:
            raise Problem(Code.COUNT_DRIFTED, str(error), expected=error.expected, found=error.found) from None
        except EncodingError as error:
            raise Problem(Code.INVALID_EDIT, str(error)) from None
        return to_response(transaction.response(repaired))


@dataclass(frozen=True, slots=True)
class _ChangeTransaction:
    """Writes what belongs to the transaction of a repair, and makes its response."""

    context: RequestContext
    change: Repair
    confirmation: Confirmation | None
    lock: IdempotencyLock | None
    edit: Edit | None
    operations: str

    async def before_commit(self, connection: Connection, result: Repaired | Operation) -> None:
        """Uses the token up, writes the audit entry, and stores the response. An exception rolls everything back."""
        if self.edit is not None and isinstance(result, Repaired) and result.items[0].outcome is ItemOutcome.REFUSED:
            # Another edit may have been committed after the version was checked. The library reports that as text only, so
            # check the version again.
            detail = await self.context.admin.dead_letters.get(result.items[0].id)
            if detail is not None:
                require_version(detail.letter, self.edit)
        ids = self.change.selector.ids or ()
        target = ids[0] if len(ids) == 1 else f"{len(ids)} dead letters"
        not_options = {"selector", "reason", "dry_run", "confirm_token", "edit"}
        options = self.change.model_dump(mode="json", exclude=not_options, exclude_defaults=True)
        details: dict[str, Any] = {"selector": json.loads(encode_selector(self.change.selector.selection())), **options}
        if isinstance(self.change, RequeueRequest) and self.change.edit is not None:
            edit = self.change.edit
            details["edit"] = {"version": edit.version, "body": edit.has_body, "headers": edit.headers is not None}
        if isinstance(result, Operation):
            target = f"operation {result.id}"
            details |= {"operation": str(result.id), "total": result.total}
        else:
            details["counts"] = RepairResponse.of(result).counts
        if self.confirmation is not None:
            await use_token(connection, self.context, self.change, self.confirmation)
        await record(
            connection,
            self.context,
            action=f"dlq.{self.change.action}",
            target=target,
            reason=self.change.reason,
            details=details,
        )
        if self.lock is not None:
            await self.lock.store(connection, self.response(result))

    def response(self, result: Repaired | Operation) -> StoredResponse:
        """Returns the response to the client."""
        if isinstance(result, Repaired):
            return StoredResponse(200, {}, _encode(RepairResponse.of(result)))
        return StoredResponse(202, {"location": f"{self.operations}/{result.id}"}, _encode(OperationResponse.of(result)))


def _encode(model: BaseModel) -> bytes:
    return model.model_dump_json().encode()


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
        "description": "An operation was created. Its dead letters are fixed now; maintenance processes them in batches.",
        "headers": {"location": {"description": "Path of the operation.", "schema": {"type": "string"}}},
    }
}

router = area("repairing")


@router.post(
    "/requeue",
    operation_id="outbox_requeue",
    summary="Requeue Dead Letters",
    response_model=RepairResponse | DryRunResponse,
    responses=_ACCEPTED
    | problem_responses(
        *_PROBLEMS,
        Code.VERSION_CONFLICT,
        Code.HEADER_LOCKED,
        Code.INVALID_EDIT,
        Code.BROKER_UNAVAILABLE,
        Code.BODY_STORE_UNAVAILABLE,
        Code.KEYS_UNAVAILABLE,
        Code.DATABASE_UNAVAILABLE,
    ),
)
async def requeue(change: RequeueRequest, context: Operator, http: Request, key: IdempotencyKey = None) -> Response:
    """Sends dead letters again through the outbox. Messages keep their ids, and go to the queue where they failed.

    Up to 100 ids are requeued immediately, with an outcome for each. More ids, a filter, a group, a rate, a canary or a start
    time create an operation (202): its items are fixed now, and maintenance processes them. With `dry_run`, nothing changes:
    the response has what would change, and the `confirm_token` that filters and groups require.
    """
    return await _apply_repair(context, change, key, http)


@router.post(
    "/discard",
    operation_id="outbox_discard",
    summary="Discard Dead Letters",
    response_model=RepairResponse | DryRunResponse,
    responses=_ACCEPTED | problem_responses(*_PROBLEMS, Code.FORBIDDEN),
)
async def discard(change: DiscardRequest, context: Operator, http: Request, key: IdempotencyKey = None) -> Response:
    """Discards dead letters. They are kept and can be restored, but do not count as open.

    With `purge`, discarded ones are permanently deleted instead. This requires the `admin` role, a reason, and the token of a
    dry run.
    """
    # Operators may plan a purge, because a dry run deletes nothing.
    if change.purge and not change.dry_run and not context.principal.role.includes(Role.ADMIN):
        target = ", ".join(change.selector.ids or ()) or "a filter"
        await record_refused(context, "denied", action="dlq.purge", target=target, details={"code": Code.FORBIDDEN})
        raise Problem(Code.FORBIDDEN, f"purge requires the role admin; {context.principal.name} is {context.principal.role}")
    return await _apply_repair(context, change, key, http)


@router.post(
    "/restore",
    operation_id="outbox_restore",
    summary="Restore Dead Letters",
    response_model=RepairResponse | DryRunResponse,
    responses=_ACCEPTED | problem_responses(*_PROBLEMS),
)
async def restore(change: RestoreRequest, context: Operator, http: Request, key: IdempotencyKey = None) -> Response:
    """Restores discarded dead letters to open. Requeued ones cannot be restored: they have been sent."""
    return await _apply_repair(context, change, key, http)


FAILURES_FIRST: tuple[ItemOutcome, ...] = (
    ItemOutcome.FAILED_AGAIN,
    ItemOutcome.REFUSED,
    ItemOutcome.NOT_FOUND,
    ItemOutcome.SKIPPED,
    ItemOutcome.PENDING,
    ItemOutcome.DONE,
)
"""The order in which the items of an operation are listed."""

Number = Annotated[int, Path(alias="id", ge=1, le=2**63 - 1, description="Id of the operation.")]

_LARGEST = 2**63 - 2

operations_router = area("operations")


class OperationFilters(Parameters):
    """Filters of the list of operations."""

    active: Annotated[bool, Field(description="Only operations that are running or paused.")] = False


class OperationsParameters(OperationFilters, Paged):
    """Query parameters of `GET /operations`."""


class ItemsParameters(Paged):
    """Query parameters of `GET /operations/{id}/items`."""

    outcome: Annotated[Outcome | None, Field(description="Only items with this outcome.")] = None


@operations_router.get(
    "/operations",
    operation_id="outbox_operations_list",
    summary="List Operations",
    responses=problem_responses(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH),
)
async def operations(wanted: Annotated[OperationsParameters, Query()], context: Viewer) -> OperationPage:
    """Lists operations with their progress, newest first."""
    bound = {"operations": True, "active": wanted.active}
    cursor = decode_cursor(wanted.cursor, bound, (int,))
    bounds: dict[str, int] = {}
    if cursor is not None:
        [id_] = cursor.keys
        if not 0 < id_ < _LARGEST:
            raise invalid_cursor()
        backwards = cursor.direction == "previous"
        bounds = {"after": id_ - cursor.inclusive} if backwards else {"before": id_ + cursor.inclusive}
    found = await context.admin.dead_letters.operations(active=wanted.active, limit=wanted.limit + 1, **bounds)
    read = found[::-1] if cursor is not None and cursor.direction == "previous" else found
    page = cursor_page(read, limit=wanted.limit, cursor=cursor, bound_to=bound, keys_of=lambda operation: (operation.id,))
    items = [OperationResponse.of(operation) for operation in page.items]
    total = None
    if wanted.total:
        total = to_total(await context.admin.dead_letters.count_operations(active=wanted.active, limit=MOST_COUNTED + 1))
    return OperationPage(items=items, next=page.next, previous=page.previous, total=total)


@operations_router.get(
    "/operations/{id}",
    operation_id="outbox_operations_show",
    summary="Show Operation",
    responses=problem_responses(Code.NOT_FOUND),
)
async def operation(number: Number, context: Viewer) -> OperationResponse:
    """Shows one operation: the request with its author and reason, the progress, and the results of requeued messages."""
    return OperationResponse.of(await _found(context, number))


@operations_router.get(
    "/operations/{id}/items",
    operation_id="outbox_operations_items",
    summary="List The Items Of An Operation",
    responses=problem_responses(Code.NOT_FOUND, Code.INVALID_CURSOR, Code.CURSOR_MISMATCH),
)
async def items(number: Number, wanted: Annotated[ItemsParameters, Query()], context: Viewer) -> OperationItemPage:
    """Lists the items of an operation with their outcomes, failed items first.

    While the operation is active, outcomes change. A page has the outcomes at the time of its request.
    """
    found = await _found(context, number)
    outcomes = FAILURES_FIRST
    if wanted.outcome is not None:
        only = outcome_of(wanted.outcome, found.action)
        outcomes = () if only is None else (only,)
    bound = {"items": number, "outcome": wanted.outcome}
    cursor = decode_cursor(wanted.cursor, bound, (int, int))
    read = await _read_items(context, found, outcomes, cursor, wanted.limit + 1)
    page = cursor_page(
        read,
        limit=wanted.limit,
        cursor=cursor,
        bound_to=bound,
        keys_of=lambda item: (outcomes.index(item.item.outcome), item.position),
    )
    total = Total(value=sum(found.counts.get(outcome, 0) for outcome in outcomes), relation="eq") if wanted.total else None
    responses = [OperationItemResponse.at(found.action, item) for item in page.items]
    return OperationItemPage(items=responses, next=page.next, previous=page.previous, total=total)


@operations_router.post(
    "/operations/{id}/pause",
    operation_id="outbox_operations_pause",
    summary="Pause Operation",
    responses=problem_responses(Code.NOT_FOUND),
)
async def pause(number: Number, context: Operator) -> OperationResponse:
    """Pauses an operation. No further batch starts until it is resumed."""
    return await _change_state(context, number, "pause", context.admin.dead_letters.pause)


@operations_router.post(
    "/operations/{id}/resume",
    operation_id="outbox_operations_resume",
    summary="Resume Operation",
    responses=problem_responses(Code.NOT_FOUND),
)
async def resume(number: Number, context: Operator) -> OperationResponse:
    """Resumes a paused operation."""
    return await _change_state(context, number, "resume", context.admin.dead_letters.resume)


@operations_router.post(
    "/operations/{id}/cancel",
    operation_id="outbox_operations_cancel",
    summary="Cancel Operation",
    responses=problem_responses(Code.NOT_FOUND),
)
async def cancel(number: Number, context: Operator) -> OperationResponse:
    """Cancels an operation. Finished items stay finished; the others do not change."""
    return await _change_state(context, number, "cancel", context.admin.dead_letters.cancel)


async def _found(context: RequestContext, number: int) -> Operation:
    found = await context.admin.dead_letters.operation(number)
    if found is None:
        raise Problem(Code.NOT_FOUND, f"there is no operation {number}")
    return found


async def _read_items(
    context: RequestContext, found: Operation, outcomes: tuple[ItemOutcome, ...], cursor: Cursor | None, limit: int
) -> Sequence[OperationItem]:
    if not outcomes:
        return []
    if cursor is None:
        return await context.admin.dead_letters.operation_items_by_outcome(found.id, outcomes, limit=limit)
    index, position = cursor.keys
    if not (0 <= index < len(outcomes) and 0 <= position < _LARGEST):
        raise invalid_cursor()
    backwards = cursor.direction == "previous"
    position += cursor.inclusive if backwards else -cursor.inclusive
    return await context.admin.dead_letters.operation_items_by_outcome(
        found.id, outcomes, behind=(outcomes[index], position), backwards=backwards, limit=limit
    )


async def _change_state(
    context: RequestContext, number: int, verb: str, change: Callable[..., Awaitable[Operation]]
) -> OperationResponse:
    """Changes the state of an operation, with its audit entry in the same transaction. Raises `conflict` and `not_found`."""
    await _found(context, number)

    async def before_commit(connection: Connection, operation: Operation) -> None:
        details = {"action": operation.action, "counts": dict(operation.counts)}
        await record(connection, context, action=f"operations.{verb}", target=f"operation {operation.id}", details=details)

    return OperationResponse.of(await change(number, before_commit=before_commit))
