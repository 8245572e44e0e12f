"""What relays and workers tell the database about themselves, and the pauses that it tells them of."""

from outbox.postgres.reporting.component import Component, ComponentKind, ReportingSettings
from outbox.postgres.reporting.opening import keeping_time, reporting
from outbox.postgres.reporting.reporter import Reporter

__all__ = ["Component", "ComponentKind", "Reporter", "ReportingSettings", "keeping_time", "reporting"]
