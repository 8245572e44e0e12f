"""Columns that stand in line, and times and numbers as people read them."""

import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from outbox.cli.printing import echo, one_line, styled

_GAP = "  "
_NARROWEST = 20
_UNITS = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min"), (timedelta(seconds=1), "s"))


def echo_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[str] = frozenset()) -> None:
    """Prints `rows` below `headings`, the columns named in `right` flush right. In a terminal the last column is cut to fit."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    for number, row in enumerate([headings, *rows]):
        cells = [
            cell.rjust(width) if heading in right else cell.ljust(width)
            for heading, cell, width in zip(headings, row, widths, strict=True)
        ]
        line = _fitted(_GAP.join(cells).rstrip(), sum(widths[:-1]) + len(_GAP) * (len(widths) - 1))
        echo(styled(line, bold=True) if number == 0 else line)


def echo_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Prints what each fact is called and what it says, those that say nothing left out."""
    width = max((len(one_line(name)) for name, _ in facts), default=0)
    for name, text in facts:
        if text:
            echo("  ", styled(one_line(name).ljust(width), dim=True), f"  {one_line(text)}")


def echo_heading(text: str) -> None:
    """Prints the beginning of a part."""
    echo()
    echo(styled(text, bold=True))


def indented(text: str) -> str:
    """Every line of `text` two places to the right."""
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def ago(moment: datetime | None) -> str:
    """How long ago, in the largest unit that fits: `3 min ago`."""
    if moment is None:
        return ""
    passed = datetime.now(UTC) - moment
    for unit, name in _UNITS:
        if passed >= unit:
            return f"{passed // unit} {name} ago"
    return "now"


def at(moment: datetime | None) -> str:
    """The moment in local time, and how long ago it was."""
    return "" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M:%S %z} ({ago(moment)})"


def counted(count: int, noun: str) -> str:
    """`1 dead letter`, `5,000 dead letters`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def times(count: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _fitted(line: str, before_last: int) -> str:
    if not sys.stdout.isatty():
        return line
    width = max(shutil.get_terminal_size().columns, before_last + _NARROWEST)
    return line if len(line) <= width else f"{line[: width - 1]}…"
