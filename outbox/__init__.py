"""Outbox: reliable events for FastAPI services, on PostgreSQL and RabbitMQ.

Importing this package is light: public names load when they are first used, and optional dependencies with them.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

# Not lazily: importing the module `outbox.core.tracking` first would set the attribute `tracking` to the module.
from outbox.core.tracking import get_tracking_ids, tracking

if TYPE_CHECKING:
    from outbox.archiver import Archiver
    from outbox.core.clock import HybridClock
    from outbox.core.destinations import Destinations, Route
    from outbox.core.fingerprint import fingerprint_of
    from outbox.core.message import OutboxMessage, PublishOptions
    from outbox.databases import Databases
    from outbox.dead_letters import DeadLetters
    from outbox.engine.consumer import Consumer, consume
    from outbox.errors import OutboxError, Reject, RetryAfter
    from outbox.maintenance import Maintenance
    from outbox.observers.logging import LogFields
    from outbox.publisher import BoundPublisher, Publisher
    from outbox.relay import IMMEDIATELY, NEVER, MessageRelay
    from outbox.schema import (
        ensure_outbox_schema_async,
        ensure_outbox_schema_sync,
        ensure_outbox_table_async,
        ensure_outbox_table_sync,
    )
    from outbox.worker import Worker


def _refuse_another_distribution() -> None:
    """Raises `ImportError` if the distribution `outbox` is installed, which installs files into the same package.

    See docs/decisions/0166-the-distribution-is-fastapi-outbox.md.
    """
    # Lists folders, because `importlib.metadata` takes ten times as long.
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as entries:
                found = [each.path for each in entries if each.name.startswith("outbox-") and each.name.endswith(".dist-info")]
        except OSError:
            continue
        if found:
            raise ImportError(
                f"another distribution named 'outbox' is installed ({found[0]}), whose files are mixed with those of Outbox: "
                "run `pip uninstall outbox`, then `pip install --force-reinstall --no-deps fastapi-outbox`"
            )


_refuse_another_distribution()

__version__ = "0.2.0"

__all__ = [
    "IMMEDIATELY",
    "NEVER",
    "Archiver",
    "BoundPublisher",
    "Consumer",
    "Databases",
    "DeadLetters",
    "Destinations",
    "HybridClock",
    "LogFields",
    "Maintenance",
    "MessageRelay",
    "OutboxError",
    "OutboxMessage",
    "PublishOptions",
    "Publisher",
    "Reject",
    "RetryAfter",
    "Route",
    "Worker",
    "consume",
    "ensure_outbox_schema_async",
    "ensure_outbox_schema_sync",
    "ensure_outbox_table_async",
    "ensure_outbox_table_sync",
    "fingerprint_of",
    "get_tracking_ids",
    "tracking",
]

_HOMES = {
    "IMMEDIATELY": "outbox.relay",
    "NEVER": "outbox.relay",
    "Archiver": "outbox.archiver",
    "BoundPublisher": "outbox.publisher",
    "Consumer": "outbox.engine.consumer",
    "Databases": "outbox.databases",
    "DeadLetters": "outbox.dead_letters",
    "Destinations": "outbox.core.destinations",
    "HybridClock": "outbox.core.clock",
    "LogFields": "outbox.observers.logging",
    "Maintenance": "outbox.maintenance",
    "MessageRelay": "outbox.relay",
    "OutboxError": "outbox.errors",
    "OutboxMessage": "outbox.core.message",
    "PublishOptions": "outbox.core.message",
    "Publisher": "outbox.publisher",
    "Reject": "outbox.errors",
    "RetryAfter": "outbox.errors",
    "Route": "outbox.core.destinations",
    "Worker": "outbox.worker",
    "consume": "outbox.engine.consumer",
    "ensure_outbox_schema_async": "outbox.schema",
    "ensure_outbox_schema_sync": "outbox.schema",
    "ensure_outbox_table_async": "outbox.schema",
    "ensure_outbox_table_sync": "outbox.schema",
    "fingerprint_of": "outbox.core.fingerprint",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
