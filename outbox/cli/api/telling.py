"""What several commands print of the API's answers."""

from datetime import datetime
from typing import Any

import click

from outbox.cli.dlq.tables import ago, at
from outbox.cli.printing import echo_json

json_output = click.option("--json", "as_json", is_flag=True, help="Print what the API answers, for scripts.")
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def echo_answer(answer: Any) -> None:
    """Prints an answer as it is."""
    echo_json(answer)


def moment(text: str | None) -> datetime | None:
    """The time that an answer has."""
    return None if text is None else datetime.fromisoformat(text)


def when(text: str | None) -> str:
    """How long ago."""
    return ago(moment(text))


def when_exactly(text: str | None) -> str:
    """The time, and how long ago that was."""
    return at(moment(text))


def span(seconds: float | None) -> str:
    """A length of time as people say it: `250 ms`, `3.2 s`, `5 min`; nothing for what is not known."""
    if seconds is None:
        return ""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds * 1_000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def number(count: Any) -> str:
    """A count, which may be an estimate or a lower bound: `12`, `about 1,200`, `at least 10,000`; `-` if it is not known."""
    match count:
        case {"value": value, "relation": relation}:
            return {"about": "about ", "gte": "at least "}.get(relation, "") + f"{value:,}"
        case int() | float():
            return f"{count:,}"
    return "-"
