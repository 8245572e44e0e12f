"""What docs/settings.md has to say about each setting."""

from datetime import timedelta
from typing import Any

from app.settings import Settings
from outbox.core.duration import format_duration


def row(name: str) -> str:
    """The line of the setting in its table."""
    field = Settings.model_fields[name]
    assert field.description is not None
    return f"| `OUTBOX_{name.upper()}` | {_default(field.get_default())} | {field.description} |"


def _default(value: Any) -> str:
    match value:
        case None:
            return "unset"
        case bool():
            return f"`{str(value).lower()}`"
        case timedelta() if value.days and not value % timedelta(days=1):
            return f"{value.days} days"
        case timedelta():
            return f"{value.total_seconds():g} seconds"
        case frozenset():
            return f"`{','.join(sorted(value))}`"
        case ():
            return "none"
        case tuple():
            return f"`{','.join(map(format_duration, value))}`"
        case _:
            return f"`{value}`"
