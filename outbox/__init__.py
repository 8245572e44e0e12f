"""Outbox: reliable events for FastAPI services, on PostgreSQL and RabbitMQ.

Importing this package is light: public names load when they are first used, and optional dependencies with them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

# At once, unlike the others: whoever imports the module `outbox.tracking` first would put it in the function's place.
from outbox.tracking import get_tracking_ids, tracking

if TYPE_CHECKING:
    from outbox.archiver import Archiver
    from outbox.clock import HybridClock
    from outbox.dead_letters import DeadLetters
    from outbox.engine.consuming import Consumer, consume
    from outbox.errors import OutboxError, Reject, RetryAfter
    from outbox.maintenance import Maintenance
    from outbox.message import OutboxMessage
    from outbox.publisher import BoundPublisher, Publisher
    from outbox.relay import IMMEDIATELY, NEVER, MessageRelay
    from outbox.schema import (
        ensure_outbox_schema_async,
        ensure_outbox_schema_sync,
        ensure_outbox_table_async,
        ensure_outbox_table_sync,
    )
    from outbox.worker import Worker

__version__ = "0.1.0"

__all__ = [
    "IMMEDIATELY",
    "NEVER",
    "Archiver",
    "BoundPublisher",
    "Consumer",
    "DeadLetters",
    "HybridClock",
    "Maintenance",
    "MessageRelay",
    "OutboxError",
    "OutboxMessage",
    "Publisher",
    "Reject",
    "RetryAfter",
    "Worker",
    "consume",
    "ensure_outbox_schema_async",
    "ensure_outbox_schema_sync",
    "ensure_outbox_table_async",
    "ensure_outbox_table_sync",
    "get_tracking_ids",
    "tracking",
]

_HOMES = {
    "IMMEDIATELY": "outbox.relay",
    "NEVER": "outbox.relay",
    "Archiver": "outbox.archiver",
    "BoundPublisher": "outbox.publisher",
    "Consumer": "outbox.engine.consuming",
    "DeadLetters": "outbox.dead_letters",
    "HybridClock": "outbox.clock",
    "Maintenance": "outbox.maintenance",
    "MessageRelay": "outbox.relay",
    "OutboxError": "outbox.errors",
    "OutboxMessage": "outbox.message",
    "Publisher": "outbox.publisher",
    "Reject": "outbox.errors",
    "RetryAfter": "outbox.errors",
    "Worker": "outbox.worker",
    "consume": "outbox.engine.consuming",
    "ensure_outbox_schema_async": "outbox.schema",
    "ensure_outbox_schema_sync": "outbox.schema",
    "ensure_outbox_table_async": "outbox.schema",
    "ensure_outbox_table_sync": "outbox.schema",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
