"""Options and selectors as the JSON that an operation's row keeps."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from outbox.core.codec import encode_instant
from outbox.postgres.dead_letters import DeadLetterFilter
from outbox.postgres.repair.values import ORIGINAL_ROUTING, Canary, Destination, Options, OriginalRouting, ToQueue

_ORIGINAL_ROUTING = "original routing"
_MOST_IDS = 20


def encode_options(options: Options) -> str:
    """What `decode_options` reads; what is not given is left out."""
    canary = options.canary
    entries = {
        "destination": _encoded_destination(options.destination),
        "rate": options.rate,
        "canary": None if canary is None else {"count": canary.count, "seconds": canary.wait.total_seconds()},
        "stop_ratio": options.stop_ratio,
        "force": options.force or None,
        "max_items": options.max_items,
        "retention_seconds": options.retention.total_seconds(),
    }
    return json.dumps({name: value for name, value in entries.items() if value is not None})


def decode_options(text: str) -> Options:
    """The options that `encode_options` wrote."""
    entries = json.loads(text)
    canary = entries.get("canary")
    return Options(
        destination=_decoded_destination(entries.get("destination")),
        rate=entries.get("rate"),
        canary=None if canary is None else Canary(canary["count"], timedelta(seconds=canary["seconds"])),
        stop_ratio=entries.get("stop_ratio"),
        force=entries.get("force", False),
        max_items=entries.get("max_items"),
        retention=timedelta(seconds=entries["retention_seconds"]),
    )


def encode_selector(selector: Sequence[str] | DeadLetterFilter) -> str:
    """What was meant, for people to read: the letters themselves are fixed. Of many ids the first are named."""
    if isinstance(selector, DeadLetterFilter):
        return json.dumps({"filter": encode_filter(selector)})
    return json.dumps({"ids": list(selector[:_MOST_IDS]), "count": len(selector)})


def encode_filter(wanted: DeadLetterFilter) -> Mapping[str, Any]:
    """What a filter asks for, as JSON knows it; what it does not ask for is left out."""
    values = {field.name: getattr(wanted, field.name) for field in fields(wanted)}
    return {
        name: encode_instant(value) if isinstance(value, datetime) else value
        for name, value in values.items()
        if value is not None and value != ()
    }


def _encoded_destination(destination: Destination | None) -> object:
    match destination:
        case ToQueue(queue):
            return {"queue": queue}
        case OriginalRouting():
            return _ORIGINAL_ROUTING
    return None


def _decoded_destination(value: Any) -> Destination | None:
    if value is None:
        return None
    return ORIGINAL_ROUTING if value == _ORIGINAL_ROUTING else ToQueue(value["queue"])
