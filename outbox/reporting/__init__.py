"""What processes report to the database, and the pauses that they obey."""

from outbox.reporting.components import Component, ComponentKind, ReportingSettings
from outbox.reporting.reporter import Reporter, keeping_time, reporting

__all__ = ["Component", "ComponentKind", "Reporter", "ReportingSettings", "keeping_time", "reporting"]
