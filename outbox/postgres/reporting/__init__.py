"""What relays and workers tell the database about themselves, and the pauses that it tells them of."""

from outbox.postgres.reporting.reporter import Component, ComponentKind, Reporter, ReportingSettings, reporting

__all__ = ["Component", "ComponentKind", "Reporter", "ReportingSettings", "reporting"]
