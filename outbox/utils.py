"""Names that programs written for the predecessor import from here; each lives elsewhere."""

from outbox.duration import parse_duration
from outbox.schema import (
    ensure_outbox_schema_async,
    ensure_outbox_schema_sync,
    ensure_outbox_table_async,
    ensure_outbox_table_sync,
)
from outbox.tracking import get_tracking_ids, tracking

__all__ = [
    "ensure_outbox_schema_async",
    "ensure_outbox_schema_sync",
    "ensure_outbox_table_async",
    "ensure_outbox_table_sync",
    "get_tracking_ids",
    "parse_duration",
    "tracking",
]
