"""`GET /alerts` and `POST /alerts/test`: lists alerts and their notifications, and tests the webhooks."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from fastapi import Query
from pydantic import Field

from outbox.admin.access import Operator, Viewer, area, record
from outbox.admin.alerts.monitor import Sender
from outbox.admin.alerts.rules import AlertRules
from outbox.admin.models import Model, Moment, Page, Paged, cursor_page, decode_cursor, decode_time_keys, time_keys
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.core.codec import encode_instant
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names

router = area("alerts")


class AlertsParameters(Paged):
    """Query parameters of `GET /alerts`."""

    status: Annotated[Literal["open", "resolved"] | None, Field(description="`open`: the condition holds. Default: both.")] = (
        None
    )


class AlertDelivery(Model):
    """A notification about an alert to one webhook."""

    event: Literal["fired", "resolved"]
    target: str = Field(description="Host of the webhook, and a hash of its URL.")
    attempts: int
    due_at: Moment | None = Field(description="When the next attempt is due. Null if it was sent, or is not retried.")
    sent_at: Moment | None
    last_error: str | None = Field(description="Why the last attempt failed, or why the notification was not sent.")


class AlertResponse(Model):
    """A problem, or an event."""

    id: str
    code: str = Field(description="Code of the verdict's finding, or `group_new`, `group_reopened` or `operation_ended`.")
    severity: Literal["info", "warning", "error"]
    summary: str
    subject_kind: str
    subject: str
    link: str = Field(description="Page of the dashboard. Empty if the dashboard's URL is not configured.")
    started_at: Moment | None = Field(description="Since when the condition holds. Null if unknown.")
    fired_at: Moment
    resolved_at: Moment | None = Field(description="Null while the condition holds.")
    deliveries: list[AlertDelivery]

    @classmethod
    def of(cls, row: Mapping[str, Any], *, hides_errors: bool) -> Self:
        """Converts a row of the table. Summaries of groups contain an error text, which some principals may not see."""
        summary = row["summary"]
        if hides_errors and row["code"].startswith("group_"):
            summary = summary.partition(": ")[0]
        facts = {**row, "id": str(row["id"]), "deliveries": json.loads(row["deliveries"]), "summary": summary}
        return cls(started_at=facts.pop("since"), **facts)


class QuietHours(Model):
    """Hours during which only errors are sent."""

    begins: str
    ends: str
    time_zone: str


class AlertSettings(Model):
    """Settings of alerts in the process that responds."""

    targets: list[str]
    codes: list[str]
    dead_letters_above: int
    after_seconds: float
    every_seconds: float
    quiet: QuietHours | None

    @classmethod
    def of(cls, rules: AlertRules) -> Self:
        """Converts the rules of this process."""
        quiet = rules.quiet
        return cls(
            targets=list(rules.webhooks),
            codes=sorted(rules.codes),
            dead_letters_above=rules.dead_letters_above,
            after_seconds=rules.after.total_seconds(),
            every_seconds=rules.every.total_seconds(),
            quiet=None
            if quiet is None
            else QuietHours(begins=f"{quiet.begins:%H:%M}", ends=f"{quiet.ends:%H:%M}", time_zone=quiet.zone.key),
        )


class AlertPage(Page[AlertResponse]):
    """One page of the alerts, newest first."""

    settings: AlertSettings | None = Field(description="Null if alerts are not configured; then none are raised.")


class TestedWebhook(Model):
    """Result of the test for one webhook."""

    target: str
    delivered: bool
    error: str | None


class AlertTest(Model):
    """Results of the test for all webhooks."""

    items: list[TestedWebhook]


@router.get(
    "/alerts", operation_id="outbox_alerts_list", responses=problem_responses(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH)
)
async def list_alerts(context: Viewer, wanted: Annotated[AlertsParameters, Query()]) -> AlertPage:
    """Lists alerts, newest first, with their notifications, and the settings of alerts."""
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
        items=[AlertResponse.of(dict(row), hides_errors=context.masking.hides_errors) for row in page.items],
        next=page.next,
        previous=page.previous,
        settings=None if context.admin.alerts is None else AlertSettings.of(context.admin.alerts),
    )


@router.post(
    "/alerts/test",
    operation_id="outbox_alerts_test",
    summary="Send A Test Message",
    responses=problem_responses(Code.NOT_FOUND, Code.CROSS_SITE, Code.READ_ONLY),
)
async def send_test(context: Operator) -> AlertTest:
    """Sends a test message once to every webhook, and returns the results. No alert is raised."""
    admin = context.admin
    if (rules := admin.alerts) is None:
        raise Problem(Code.NOT_FOUND, "alerts are not configured: set OUTBOX_ALERT_WEBHOOKS")
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
    async with admin.changing("writing the audit entry") as connection:
        details = {each.target: each.error or "delivered" for each in items}
        await record(connection, context, action="alerts.test", target="", details=details)
    return AlertTest(items=items)
