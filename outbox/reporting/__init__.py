"""Reports of running components in the database: heartbeats, history, statistics; and the pauses that they follow."""

from outbox.reporting.components import Component, ComponentKind, ReportingSettings
from outbox.reporting.reporter import Reporter, reporting, synchronizing

__all__ = ["Component", "ComponentKind", "Reporter", "ReportingSettings", "reporting", "synchronizing"]
