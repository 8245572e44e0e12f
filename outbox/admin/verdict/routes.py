"""`GET /health/verdict`."""

from typing import Literal

from pydantic import Field

from outbox.admin.access import Viewer
from outbox.admin.models import Model, Moment
from outbox.admin.routing import area
from outbox.admin.verdict.findings import FindingCode, Verdict
from outbox.admin.verdict.view import VerdictView

router = area("health")


class HealthThresholdsResponse(Model):
    """From which figures on something is a finding, as configured."""

    late_after_seconds: float = Field(description="Age of a waiting message that is a warning.")
    overdue_after_seconds: float = Field(description="Age of a waiting message that is an error.")
    queue_depth: int = Field(description="Messages in one queue beyond which it is deep.")
    lost_for_seconds: float = Field(description="How long a lost component counts that was not replaced.")
    dead_letter_window_seconds: float = Field(description="How long a dead letter counts as new.")


class VerdictFinding(Model):
    """Something that needs attention."""

    code: FindingCode = Field(description="A stable name of the problem.")
    severity: Literal["warning", "error"]
    summary: str
    hint: str = Field(description="What to do about it.")
    started_at: Moment | None = Field(description="Since when; null: no data.")
    subject_kind: str = Field(
        description="`outbox`, `queue`, `exchange`, `relay`, `worker`, `archiver`, `maintenance`, `broker` or `database`."
    )
    subject: str = Field(description="Its name; empty: all of that kind.")


class VerdictResponse(Model):
    """Whether all is well."""

    as_of: Moment
    status: Literal["ok", "warning", "error"] = Field(description="The worst severity of the findings.")
    started_at: Moment | None = Field(description="When the first finding of that severity began; null: none, or no data.")
    findings: list[VerdictFinding] = Field(description="The gravest first.")
    thresholds: HealthThresholdsResponse


@router.get("/health/verdict", operation_id="outbox_health_verdict", summary="Show Verdict")
async def show(context: Viewer) -> VerdictResponse:
    """Says whether the installation is healthy, and if not, what is wrong, since when, and what to do.

    It covers the age and depth of outbox and queues, queues without a consumer, pauses, held, stalled and parked messages, the
    topology, components that are missing, late or lost, and dead letters. The dashboard, `outbox doctor` and the gauges
    `outbox_health_…` show the same verdict, which is computed at most every two seconds. A database that does not answer is a
    finding.
    """
    snapshot = await context.admin.shared(VerdictView).now()
    verdict, thresholds = snapshot.value, context.admin.thresholds
    return VerdictResponse(
        as_of=snapshot.as_of,
        status=_status(verdict),
        started_at=verdict.since,
        findings=[
            VerdictFinding(
                code=each.code,
                severity="error" if each.severity == "error" else "warning",
                summary=each.summary,
                hint=each.hint,
                started_at=each.since,
                subject_kind=each.subject_kind,
                subject=each.subject,
            )
            for each in verdict.findings
        ],
        thresholds=HealthThresholdsResponse(
            late_after_seconds=thresholds.late_after.total_seconds(),
            overdue_after_seconds=thresholds.overdue_after.total_seconds(),
            queue_depth=thresholds.queue_depth,
            lost_for_seconds=thresholds.lost_for.total_seconds(),
            dead_letter_window_seconds=thresholds.dead_letter_window.total_seconds(),
        ),
    )


def _status(verdict: Verdict) -> Literal["ok", "warning", "error"]:
    return "error" if verdict.status == "error" else "warning" if verdict.status == "warning" else "ok"
