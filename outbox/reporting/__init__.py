"""What relays and workers tell the database about themselves, and the pauses that it tells them of."""

from outbox.reporting.components import Component, ComponentKind, ReportingSettings
from outbox.reporting.reporter import Reporter, keeping_time, reporting

__all__ = ["Component", "ComponentKind", "Reporter", "ReportingSettings", "keeping_time", "reporting"]
