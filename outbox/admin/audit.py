"""`GET /audit`: who changed what, and who was refused."""

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
from outbox.postgres.audit import AuditFilter, AuditOutcome, Place, count_entries, list_entries

audit = area("audit")


class AuditFilters(Request):
    """What an entry must fit, all of it."""

    actor: Annotated[Text | None, Field(description="The principal's whole name.")] = None
    action: Annotated[Text | None, Field(description="What was done, as in `dlq.requeue`.")] = None
    outcome: Annotated[AuditOutcome | None, Field(description="`denied`: it was not allowed; `failed`: it was not done.")] = (
        None
    )
    target: Annotated[Text | None, Field(description="To what it was done.")] = None
    created_after: Annotated[Instant | None, Field(description="At that moment or later.")] = None
    created_before: Annotated[Instant | None, Field(description="Before that moment.")] = None


class AuditParameters(AuditFilters, Paged):
    """What `GET /audit` takes."""

    def as_filter(self) -> AuditFilter:
        """The filter as the database layer takes it."""
        wanted = self.model_dump(exclude={"limit", "cursor", "total", "created_after", "created_before"})
        return AuditFilter(**wanted, after=self.created_after, before=self.created_before)


class AuditEntry(Model):
    """An action, done, failed or denied."""

    id: str
    created_at: Moment
    actor: str
    role: str
    action: str
    target: str
    outcome: AuditOutcome
    reason: str | None
    details: dict[str, Any]
    request_id: Annotated[str, Field(description="What the log names the request by.")]
    client_request_id: Annotated[
        str | None, Field(description="What the client called it, in `X-Request-ID`: anything, and perhaps more than once.")
    ]
    address: Annotated[str, Field(description="Where the request came from.")]


class AuditPage(Page[AuditEntry]):
    """A page of the audit."""


@audit.get("/audit", operation_id="outbox_audit_list", responses=problem_responses(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH))
async def list_audit(context: Operator, parameters: Annotated[AuditParameters, Query()]) -> AuditPage:
    """Lists the audit log, newest first: changes, failed changes, revealed secrets, logins, and denied requests."""
    admin, filter_ = context.admin, parameters.as_filter()
    bound_to = parameters.model_dump(mode="json", exclude={"limit", "cursor", "total"}, exclude_none=True)
    cursor = decode_cursor(parameters.cursor, bound_to, (int, int))
    place = None
    if cursor is not None:
        at, id_ = decode_time_keys(cursor)
        place = Place(at, id_, back=cursor.direction == "previous", inclusive=cursor.inclusive)
    async with admin.reading("reading the audit") as connection:
        rows = await list_entries(connection, admin.table, filter_, limit=parameters.limit + 1, place=place)
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
