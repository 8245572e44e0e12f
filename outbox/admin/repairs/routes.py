"""The endpoints that change dead letters: `POST /requeue`, `/discard` and `/restore`."""

from typing import Any

from fastapi import Request, Response

from outbox.admin.access import Asked, Operator
from outbox.admin.auditing import record_refused
from outbox.admin.principals import Role
from outbox.admin.problems import Code, Problem, documented
from outbox.admin.repairs.answers import OperationAnswer, PlanAnswer, RepairedAnswer
from outbox.admin.repairs.changing import changed
from outbox.admin.repairs.keys import IdempotencyKey
from outbox.admin.repairs.requests import DiscardRequest, RequeueRequest, RestoreRequest
from outbox.admin.routing import area

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
        "model": OperationAnswer,
        "description": "An operation was made of it, whose letters are fixed now, and which goes on in batches.",
        "headers": {"location": {"description": "Where the operation is.", "schema": {"type": "string"}}},
    }
}

router = area("repairing")


@router.post(
    "/requeue",
    operation_id="outbox_requeue",
    summary="Requeue Dead Letters",
    response_model=RepairedAnswer | PlanAnswer,
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
async def requeue(change: RequeueRequest, asked: Operator, http: Request, key: IdempotencyKey = None) -> Response:
    """Sends dead letters again, through the outbox, with their ids, to the queue that each died in.

    Up to 100 ids are done at once: the answer has an outcome for each. More ids, a filter, a group, a rate or a canary make an
    operation (202), whose letters are fixed now, and which goes on wherever maintenance runs. With `dry_run` nothing is done:
    the answer says what would be, and has the `confirm_token` that filters and groups take.
    """
    return await changed(asked, change, key, http)


@router.post(
    "/discard",
    operation_id="outbox_discard",
    summary="Discard Dead Letters",
    response_model=RepairedAnswer | PlanAnswer,
    responses=_ACCEPTED | documented(*_PROBLEMS, Code.FORBIDDEN),
)
async def discard(change: DiscardRequest, asked: Operator, http: Request, key: IdempotencyKey = None) -> Response:
    """Puts dead letters aside: they stay, are not counted as open, and can be restored.

    With `purge` those that were discarded are deleted for good: that takes the role `admin`, a reason, and the token of a dry
    run, whatever selects them.
    """
    if change.purge:
        await _require_administrator(asked, change)
    return await changed(asked, change, key, http)


@router.post(
    "/restore",
    operation_id="outbox_restore",
    summary="Restore Dead Letters",
    response_model=RepairedAnswer | PlanAnswer,
    responses=_ACCEPTED | documented(*_PROBLEMS),
)
async def restore(change: RestoreRequest, asked: Operator, http: Request, key: IdempotencyKey = None) -> Response:
    """Opens discarded dead letters again. What was requeued cannot be restored: it is on its way."""
    return await changed(asked, change, key, http)


async def _require_administrator(asked: Asked, change: DiscardRequest) -> None:
    """A dry run purges nothing."""
    if change.dry_run or asked.principal.role.includes(Role.ADMIN):
        return
    target = ", ".join(change.selector.ids or ()) or "a filter"
    await record_refused(asked, "denied", action="dlq.purge", target=target, details={"code": Code.FORBIDDEN})
    raise Problem(Code.FORBIDDEN, f"purging takes the role admin, and {asked.principal.name} is {asked.principal.role}")
