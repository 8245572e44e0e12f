"""`GET /audit`: changes, logins and refused requests."""

import json
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from outbox.admin.access import Operator, area
from outbox.admin.models import (
    MOST_COUNTED,
    Instant,
    Model,
    Moment,
    Page,
    Paged,
    Request,
    Text,
    cursor_page,
    decode_cursor,
    decode_time_keys,
    time_keys,
    to_total,
)
from outbox.admin.problems import Code, problem_responses
from outbox.postgres.audit import AuditFilter, AuditOutcome, Position, count_entries, list_entries

audit = area("audit")


class AuditFilters(Request):
    """Filters of the audit log. An entry must match all of them."""

    actor: Annotated[Text | None, Field(description="The principal's exact name.")] = None
    action: Annotated[Text | None, Field(description="The action, such as `dlq.requeue`.")] = None
    outcome: Annotated[AuditOutcome | None, Field(description="`denied`: not allowed; `failed`: allowed, but failed.")] = None
    target: Annotated[Text | None, Field(description="The changed object.")] = None
    created_after: Annotated[Instant | None, Field(description="Created at this time or later.")] = None
    created_before: Annotated[Instant | None, Field(description="Created before this time.")] = None


class AuditParameters(AuditFilters, Paged):
    """Query parameters of `GET /audit`."""

    def as_filter(self) -> AuditFilter:
        """Converts to the filter of the database layer."""
        values = self.model_dump(exclude={"limit", "cursor", "total", "created_after", "created_before"})
        return AuditFilter(**values, after=self.created_after, before=self.created_before)


class AuditEntry(Model):
    """An action that was done, failed, or was denied."""

    id: str
    created_at: Moment
    actor: str
    role: str
    action: str
    target: str
    outcome: AuditOutcome
    reason: str | None
    details: dict[str, Any]
    request_id: Annotated[str, Field(description="The id of the request in the log.")]
    client_request_id: Annotated[
        str | None, Field(description="The `X-Request-ID` that the client sent. Not necessarily unique.")
    ]
    address: Annotated[str, Field(description="The client's IP address.")]


class AuditPage(Page[AuditEntry]):
    """A page of the audit log."""


@audit.get("/audit", operation_id="outbox_audit_list", responses=problem_responses(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH))
async def list_audit(context: Operator, parameters: Annotated[AuditParameters, Query()]) -> AuditPage:
    """Lists the audit log, newest first: changes, failed changes, revealed secrets, logins, and denied requests."""
    admin, filter_ = context.admin, parameters.as_filter()
    bound_to = parameters.model_dump(mode="json", exclude={"limit", "cursor", "total"}, exclude_none=True)
    cursor = decode_cursor(parameters.cursor, bound_to, (int, int))
    position = None
    if cursor is not None:
        at, id_ = decode_time_keys(cursor)
        position = Position(at, id_, back=cursor.direction == "previous", inclusive=cursor.inclusive)
    async with admin.reading("reading the audit log") as connection:
        rows = await list_entries(connection, admin.table, filter_, limit=parameters.limit + 1, position=position)
        total = await count_entries(connection, admin.table, filter_, most=MOST_COUNTED + 1) if parameters.total else None
    page = cursor_page(
        rows,
        limit=parameters.limit,
        cursor=cursor,
        bound_to=bound_to,
        keys_of=lambda row: time_keys(row["at"], row["id"]),
    )
    return AuditPage(
        items=[
            AuditEntry(**{**row, "id": str(row["id"]), "created_at": row["at"], "details": json.loads(row["details"])})
            for row in page.items
        ],
        next=page.next,
        previous=page.previous,
        total=None if total is None else to_total(total),
    )
