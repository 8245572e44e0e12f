"""`GET /audit`: who changed what, and who was refused."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from outbox.admin.access import Operator, area
from outbox.admin.models import (
    MOST_COUNTED,
    Cursor,
    Instant,
    Model,
    Moment,
    Page,
    Paged,
    Text,
    counted,
    cursor_page,
    decode_cursor,
)
from outbox.admin.problems import Code, Problem, documented
from outbox.postgres.audit import AuditFilter, AuditOutcome, Place, count_entries, list_entries

audit = area("audit")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class AuditParameters(Paged):
    """Which entries are asked for: those that fit all that is given."""

    actor: Annotated[Text | None, Field(description="The principal's whole name.")] = None
    action: Annotated[Text | None, Field(description="What was done, as in `dlq.requeue`.")] = None
    outcome: Annotated[AuditOutcome | None, Field(description="`denied`: it was not allowed; `failed`: it was not done.")] = (
        None
    )
    target: Annotated[Text | None, Field(description="To what it was done.")] = None
    created_after: Annotated[Instant | None, Field(description="At that moment or later.")] = None
    created_before: Annotated[Instant | None, Field(description="Before that moment.")] = None

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


@audit.get("/audit", operation_id="outbox_audit_list", responses=documented(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH))
async def list_audit(context: Operator, parameters: Annotated[AuditParameters, Query()]) -> AuditPage:
    """Lists the audit log, newest first: changes, failed changes, revealed secrets, logins, and denied requests."""
    admin, filter_ = context.admin, parameters.as_filter()
    bound_to = parameters.model_dump(mode="json", exclude={"limit", "cursor", "total"}, exclude_none=True)
    cursor = decode_cursor(parameters.cursor, bound_to, (int, int))
    place = None if cursor is None else _place(cursor)
    async with admin.reading("reading the audit") as connection:
        rows = await list_entries(connection, admin.table, filter_, limit=parameters.limit + 1, place=place)
        total = await count_entries(connection, admin.table, filter_, most=MOST_COUNTED + 1) if parameters.total else None
    page = cursor_page(rows, limit=parameters.limit, cursor=cursor, bound_to=bound_to, place=_keys)
    return AuditPage(
        items=[_entry(row) for row in page.items],
        next=page.next,
        previous=page.previous,
        total=None if total is None else counted(total),
    )


def _keys(row: Mapping[str, Any]) -> Sequence[int]:
    return [(row["at"] - _EPOCH) // _MICROSECOND, row["id"]]


def _place(cursor: Cursor) -> Place:
    """What a cursor says may be anything, since clients can make their own."""
    microseconds, id_ = cursor.place
    try:
        at = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        at = None
    if at is None or not 0 <= id_ < 2**63:
        raise Problem(Code.INVALID_CURSOR, "leave `cursor` out, or give one that a page has shown")
    return Place(at, id_, back=cursor.direction == "previous", inclusive=cursor.inclusive)


def _entry(row: Mapping[str, Any]) -> AuditEntry:
    return AuditEntry(**{**row, "id": str(row["id"]), "created_at": row["at"], "details": json.loads(row["details"])})
