"""Alerts: notify webhooks when a problem begins and when it is resolved."""

from outbox.admin.alerts.monitor import Alerting
from outbox.admin.alerts.rules import AlertRules

__all__ = ["AlertRules", "Alerting"]
