"""Output of the commands: terminal-safe text, tables, facts, and formats of times, durations and counts.

Text from a server, a database or a message may contain terminal control sequences. `echo` and `echo_json` escape them.
"""

import json
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any

import click

_GAP = "  "
_NARROWEST = 20
"""Minimum width of the last column of a table in a narrow terminal."""
_WIDEST = 60
"""Maximum width of the other columns in a terminal."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


@dataclass(frozen=True, slots=True)
class Styled:
    """A part of a line with its styles, the arguments of `click.style`."""

    text: str
    styles: dict[str, Any]


def styled(text: str, **styles: Any) -> Styled:
    """Returns `text` with styles. `echo` escapes the text before it adds them."""
    return Styled(text, styles)


def echo(*parts: str | Styled, err: bool = False, file: IO[Any] | None = None) -> None:
    """Prints the parts and a line break. Control characters are shown escaped, as `\\x1b`."""
    texts = [
        click.style(printable(part.text), **part.styles) if isinstance(part, Styled) else printable(part) for part in parts
    ]
    click.echo("".join(texts), err=err, file=file)


def echo_json(value: Any) -> None:
    """Prints `value` as JSON. Control characters are escaped as in JSON, so a parser reads the original text."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    click.echo("".join(char if _is_safe(char) else json.dumps(char)[1:-1] for char in text))


def echo_bytes(content: bytes) -> None:
    """Writes bytes unchanged to a file or a pipe, and as escaped text to a terminal."""
    if sys.stdout.isatty():
        click.echo(printable(content.decode(errors="replace")), nl=False)
    else:
        click.echo(content, nl=False)


def overwrite(text: str) -> None:
    """Replaces the current line of the terminal on standard error with `text`."""
    click.echo(f"\r\033[K{printable(text)}", nl=False, err=True)


def printable(text: str) -> str:
    """Returns `text` with control characters escaped as `\\x1b`, except line breaks and tabs. Idempotent."""
    return text if text.isprintable() else "".join(char if _is_safe(char) else ascii(char)[1:-1] for char in text)


def one_line(text: str) -> str:
    """`printable`, on one line."""
    return printable(" ".join(text.split()))


def _is_safe(char: str) -> bool:
    """Whether a character is printable, a space, a line break or a tab."""
    # U+202E, which reverses the text after it, is not printable in this sense.
    return char.isprintable() or char in "\n\t" or unicodedata.category(char) == "Zs"


# --- tables ------------------------------------------------------------------------------------------------------------


def echo_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[str] = frozenset()) -> None:
    """Prints a table. Columns in `right` are right-aligned. In a terminal, long cells are cut, the last column to its width."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    if is_terminal := sys.stdout.isatty():  # a pipe or a file gets the whole lines, for grep
        rows = [[*(cut(cell, _WIDEST) for cell in row[:-1]), *row[-1:]] for row in rows]
    widths = [max(len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    before_last = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    widest = max(shutil.get_terminal_size().columns, before_last + _NARROWEST)
    for number, row in enumerate([headings, *rows]):
        cells = [
            cell.rjust(width) if heading in right else cell.ljust(width)
            for heading, cell, width in zip(headings, row, widths, strict=True)
        ]
        line = _GAP.join(cells).rstrip()
        if is_terminal:
            line = cut(line, widest)
        echo(styled(line, bold=True) if number == 0 else line)


def echo_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Prints names and values in two columns; a fact without a value is left out."""
    shown = [(one_line(name), one_line(text)) for name, text in facts if text]
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        echo("  ", styled(name.ljust(width), dim=True), f"  {text}")


def echo_heading(text: str) -> None:
    """Prints an empty line and a heading."""
    echo()
    echo(styled(text, bold=True))


def indented(text: str) -> str:
    """Indents every line of `text` by two spaces."""
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def cut(text: str, length: int) -> str:
    """Cuts `text` to at most `length` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


# --- times, durations and counts of API responses ----------------------------------------------------------------------


def parse_time(text: str | None) -> datetime | None:
    """Parses a time of a response."""
    return None if text is None else datetime.fromisoformat(text)


def age(text: str | None) -> str:
    """Formats how long ago a time was: `3 min ago`; empty for None."""
    at = parse_time(text)
    if at is None:
        return ""
    passed = _whole((datetime.now(UTC) - at).total_seconds())
    return f"{passed} ago" if passed else "now"


def time_and_age(text: str | None) -> str:
    """Formats a time in the local zone with its age, or the time that is left: `(in 3 h)`; empty for None."""
    at = parse_time(text)
    if at is None:
        return ""
    left = _whole((at - datetime.now(UTC)).total_seconds())
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S %z} ({f'in {left}' if left else age(text)})"


def _whole(seconds: float) -> str:
    for size, unit in (*_UNITS, (1, "s")):
        if seconds >= size:
            return f"{int(seconds) // size} {unit}"
    return ""


def duration(seconds: float | None) -> str:
    """Formats a duration: `0.4 ms`, `250 ms`, `3.2 s`, `5 min`, `26 h`, `3 d`; empty for None."""
    if seconds is None:
        return ""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1_000:.0f} ms" if seconds >= 0.01 or not seconds else f"{seconds * 1_000:.1f} ms"


def count(value: Any) -> str:
    """Formats an exact, estimated or minimum count: `12`, `about 1,200`, `at least 10,000`; `-` if unknown."""
    match value:
        case {"value": number, "relation": relation}:
            return {"about": "about ", "gte": "at least "}.get(relation, "") + f"{number:,}"
        case int() | float():
            return f"{value:,}"
    return "-"


def counted(number: int, noun: str) -> str:
    """`1 dead letter`, `5,000 dead letters`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def times(number: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")
