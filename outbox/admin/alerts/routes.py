"""`GET /alerts` and `POST /alerts/test`: what was raised and sent, and whether webhooks take messages."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from outbox.admin.access import Operator, Viewer, area, record
from outbox.admin.alerts.monitor import Sender
from outbox.admin.alerts.rules import AlertRules
from outbox.admin.models import Model, Moment, Page, Paged, cursor_page, decode_cursor, decode_time_keys, time_keys
from outbox.admin.problems import Code, Problem, documented
from outbox.core.codec import encode_instant
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names

router = area("alerts")


class AlertsParameters(Paged):
    """Which alerts are listed."""

    status: Annotated[
        Literal["open", "resolved"] | None, Field(description="`open`: the condition holds; without it, all.")
    ] = None


class AlertDelivery(Model):
    """A message about an alert to one webhook."""

    event: Literal["fired", "resolved"]
    target: str = Field(description="The host of the webhook, and a mark of its address.")
    attempts: int
    due_at: Moment | None = Field(description="When it is sent, or sent again; null: it was sent, or is not sent again.")
    sent_at: Moment | None
    last_error: str | None = Field(description="Why the last attempt failed, or why it was not sent.")


class AlertResponse(Model):
    """Something that was wrong, or happened."""

    id: str
    code: str = Field(description="That of the finding, or `group_new`, `group_reopened`, `operation_ended`.")
    severity: Literal["info", "warning", "error"]
    summary: str
    subject_kind: str
    subject: str
    link: str = Field(description="Where the dashboard shows it; empty: the dashboard's address is not configured.")
    started_at: Moment | None = Field(description="Since when the condition holds; null: not known.")
    fired_at: Moment
    resolved_at: Moment | None = Field(description="Null: the condition holds.")
    deliveries: list[AlertDelivery]


class QuietHours(Model):
    """Hours in which only errors are sent."""

    begins: str
    ends: str
    time_zone: str


class AlertSettings(Model):
    """How alerts are configured in the process that answers."""

    targets: list[str]
    codes: list[str]
    dead_letters_above: int
    after_seconds: float
    every_seconds: float
    quiet: QuietHours | None


class AlertPage(Page[AlertResponse]):
    """A part of the alerts, the newest first."""

    settings: AlertSettings | None = Field(description="Null: no alerts are configured, and none are raised.")


class TestedWebhook(Model):
    """What a webhook did with a test message."""

    target: str
    delivered: bool
    error: str | None


class AlertTest(Model):
    """What became of the test message at each webhook."""

    items: list[TestedWebhook]


@router.get("/alerts", operation_id="outbox_alerts_list", responses=documented(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH))
async def list_alerts(context: Viewer, wanted: Annotated[AlertsParameters, Query()]) -> AlertPage:
    """Lists alerts, the newest first, with what became of the messages about each, and how alerts are configured."""
    bound_to = {"status": wanted.status}
    cursor = decode_cursor(wanted.cursor, bound_to, (int, int))
    at, id_ = None, None
    if cursor is not None:
        at, id_ = decode_time_keys(cursor)
        if cursor.inclusive:
            id_ += 1 if cursor.direction == "next" else -1
    backwards = cursor is not None and cursor.direction == "previous"
    sql = queries("alerts.sql", **satellite_names(context.admin.table.schema))
    is_open = None if wanted.status is None else wanted.status == "open"
    async with context.admin.reading("listing alerts") as connection:
        rows = await connection.fetch(sql["list"], is_open, at, id_, backwards, wanted.limit + 1)
    page = cursor_page(
        rows,
        limit=wanted.limit,
        cursor=cursor,
        bound_to=bound_to,
        keys_of=lambda row: time_keys(row["fired_at"], row["id"]),
    )
    return AlertPage(
        items=[_alert(dict(row), hides=context.masking.hides_errors) for row in page.items],
        next=page.next,
        previous=page.previous,
        settings=_settings(context.admin.alerts),
    )


@router.post(
    "/alerts/test",
    operation_id="outbox_alerts_test",
    summary="Send A Test Message",
    responses=documented(Code.NOT_FOUND, Code.CROSS_SITE, Code.READ_ONLY),
)
async def send_test(context: Operator) -> AlertTest:
    """Sends a test message to every webhook now, once, and says what each did with it. No alert is raised."""
    admin = context.admin
    if (rules := admin.alerts) is None:
        raise Problem(Code.NOT_FOUND, "no alerts are configured: OUTBOX_ALERT_WEBHOOKS")
    sender, now = Sender(rules, admin.environment.name if admin.environment else None), datetime.now(UTC)
    facts = {
        "id": "0",
        "code": "test",
        "severity": "info",
        "summary": f"a test message, sent by {context.principal.name}",
        "subject_kind": "",
        "subject": "",
        "started_at": None,
        "link": rules.link("/alerts"),
        "at": encode_instant(now),
    }
    items = []
    async with sender.open():
        for target, webhook in rules.webhooks.items():
            problem, _ = await sender.send(webhook, f"test-{context.request_id}", sender.body(webhook, "test", facts))
            items.append(TestedWebhook(target=target, delivered=not problem, error=problem or None))
    async with admin.changing("writing to the audit") as connection:
        details = {each.target: each.error or "delivered" for each in items}
        await record(connection, context, action="alerts.test", target="", details=details)
    return AlertTest(items=items)


def _alert(row: dict[str, Any], *, hides: bool) -> AlertResponse:
    """`hides`: the texts of errors, of which the summaries of groups are made, are not shown to this principal."""
    row["deliveries"] = json.loads(row["deliveries"])
    row["started_at"] = row.pop("since")
    if hides and row["code"].startswith("group_"):
        row["summary"] = row["summary"].partition(": ")[0]
    return AlertResponse(**row | {"id": str(row["id"])})


def _settings(rules: AlertRules | None) -> AlertSettings | None:
    if rules is None:
        return None
    quiet = rules.quiet
    return AlertSettings(
        targets=list(rules.webhooks),
        codes=sorted(rules.codes),
        dead_letters_above=rules.dead_letters_above,
        after_seconds=rules.after.total_seconds(),
        every_seconds=rules.every.total_seconds(),
        quiet=None
        if quiet is None
        else QuietHours(begins=f"{quiet.begins:%H:%M}", ends=f"{quiet.ends:%H:%M}", time_zone=quiet.zone.key),
    )
