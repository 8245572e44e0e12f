"""Whether all is well with an installation: one judgement, for the API, the dashboard, `outbox doctor` and the metrics."""

from outbox.admin.verdict.judging import HealthFinding, Verdict
from outbox.admin.verdict.routes import router
from outbox.admin.verdict.view import VerdictView, measure_health

__all__ = ["HealthFinding", "Verdict", "VerdictView", "measure_health", "router"]
