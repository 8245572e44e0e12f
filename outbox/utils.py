"""Names that programs written for the predecessor import from here."""

from outbox.core.duration import parse_duration
from outbox.core.tracking import get_tracking_ids, tracking
from outbox.errors import Reject
from outbox.schema import (
    ensure_outbox_schema_async,
    ensure_outbox_schema_sync,
    ensure_outbox_table_async,
    ensure_outbox_table_sync,
)

__all__ = [
    "Reject",
    "ensure_outbox_schema_async",
    "ensure_outbox_schema_sync",
    "ensure_outbox_table_async",
    "ensure_outbox_table_sync",
    "get_tracking_ids",
    "parse_duration",
    "tracking",
]


def __getattr__(name: str) -> object:
    moved = {
        "get_rmq_connection": "use aio_pika.connect_robust",
        "tracking_ids_contextvar": "write `from outbox import get_tracking_ids, tracking`",
        "truncate_body": "bodies are no longer logged",
    }
    if name in moved:
        raise ImportError(f"outbox.utils.{name} no longer exists: {moved[name]}", name=__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
