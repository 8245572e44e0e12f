"""One change from request to response: a dry run, or the change with its audit entry and keys in one transaction."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel

from outbox.admin.access import RequestContext
from outbox.admin.audit_log import record
from outbox.admin.problems import Code, Problem
from outbox.admin.repairs.models import DryRunResponse, OperationResponse, RepairResponse
from outbox.admin.repairs.once import Confirmation, IdempotencyLock, idempotency_lock, issue_token, require_confirmation, use
from outbox.admin.repairs.requests import Change, RequeueRequest, edit_of, require_version
from outbox.admin.store.once import Answer
from outbox.dead_letters import Action, Edit, ItemOutcome, Operation, Repaired
from outbox.dead_letters.actions import encode_selector
from outbox.errors import CountDriftedError, EncodingError
from outbox.postgres.pool import Connection

REPLAYED = "idempotency-replayed"
"""Header of an answer that was given before."""
JSON = "application/json"


async def changed(context: RequestContext, change: Change, key: str | None, http: Request) -> Response:
    """Does what is asked for, once, and answers it."""
    dead_letters, selector, options = context.admin.dead_letters, change.selector.meant(), change.options()
    if change.dry_run:
        if isinstance(change, RequeueRequest):
            await edit_of(context, change)
        planned = {name: options[name] for name in ("destination", "force") if name in options}
        plan = await dead_letters.plan(change.action, selector, max_items=change.max_items, **planned)
        token = await issue_token(context, change, plan.expected)
        return _response(Answer(200, {}, _encoded(DryRunResponse.of(plan, token, context.admin.masking))))
    async with idempotency_lock(context, key, change) as hold:
        if isinstance(hold, Answer):
            return _response(hold, replayed=True)
        confirmation = await require_confirmation(context, change)
        edit = await edit_of(context, change) if isinstance(change, RequeueRequest) else None
        transaction = _ChangeTransaction(context, change, confirmation, hold, edit, operations=_beside(http, "operations"))
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
        return _response(transaction.answered(repaired))


@dataclass(frozen=True, slots=True)
class _ChangeTransaction:
    """What is written in the transaction of a change, and what is answered."""

    context: RequestContext
    change: Change
    confirmation: Confirmation | None
    hold: IdempotencyLock | None
    edit: Edit | None
    operations: str

    async def also(self, connection: Connection, answer: Repaired | Operation) -> None:
        """Uses the token up, tells the audit, and keeps the answer. What it raises takes everything back."""
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
        """What the client is told."""
        if isinstance(answer, Repaired):
            return Answer(200, {}, _encoded(RepairResponse.of(answer)))
        return Answer(202, {"location": f"{self.operations}/{answer.id}"}, _encoded(OperationResponse.of(answer)))


def _beside(http: Request, name: str) -> str:
    """The path of what is next to the endpoint that was asked, wherever the application and the router are mounted.

    Servers and proxies differ in whether the path that they give has the root path in it.
    """
    root, path = str(http.scope.get("root_path", "")).rstrip("/"), str(http.scope["path"])
    whole = path if path.startswith(f"{root}/") else root + path
    return f"{whole.rstrip('/').rpartition('/')[0]}/{name}"


def _response(answer: Answer, *, replayed: bool = False) -> Response:
    headers = {**answer.headers, **({REPLAYED: "true"} if replayed else {})}
    return Response(answer.body, answer.status, headers, JSON)


def _encoded(model: BaseModel) -> bytes:
    return model.model_dump_json().encode()


def _details(change: Change, answer: Repaired | Operation) -> Mapping[str, Any]:
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
