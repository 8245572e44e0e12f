"""Alerts: what is wrong, sent to webhooks when it begins and when it is over."""

from outbox.admin.alerts.monitor import Alerting
from outbox.admin.alerts.rules import AlertRules

__all__ = ["AlertRules", "Alerting"]
