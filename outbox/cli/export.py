"""`outbox export`: lists as files, CSV or NDJSON."""

import io
import os
import secrets
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from outbox.cli import options
from outbox.cli.client import Client, with_client
from outbox.cli.command import CliError, Command
from outbox.cli.dlq.letters import filtering, take_filter
from outbox.cli.messages import in_state, of_messages
from outbox.cli.options import PAST_TIME
from outbox.cli.output import echo, echo_bytes

Write = Callable[[bytes], object]

_to_a_file = options.together(
    click.option(
        "--format",
        "format_",
        type=click.Choice(["csv", "ndjson"]),
        default="csv",
        show_default=True,
        help="Rows below the names of the fields, or a JSON object on each line.",
    ),
    click.option(
        "--limit", type=click.IntRange(1, 100_000), default=10_000, show_default=True, help="At most so many items, in rows."
    ),
    click.option(
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write to this file, which appears, or is replaced, when it is complete.  [default: standard output]",
    ),
)


@click.group()
def export() -> None:
    """Exports dead letters, messages, the audit or operations, as CSV or NDJSON.

    The items are those of the list, in its order and masked as there. Exit code 1: the export is not complete.
    """


@export.command("dlq", cls=Command)
@filtering
@click.option("--oldest", is_flag=True, help="Those that failed first come first, instead of last.")
@_to_a_file
@with_client
async def export_dead_letters(client: Client, *, oldest: bool, **given: Any) -> None:
    """Exports dead letters and parked messages: only open ones, unless --status says otherwise."""
    wanted = take_filter(given)
    await _exported(client, "dlq", sort="oldest" if oldest else "newest", **wanted, **given)


@export.command("messages", cls=Command)
@in_state
@of_messages
@_to_a_file
@with_client
async def export_messages(client: Client, **given: Any) -> None:
    """Exports messages of the outbox."""
    await _exported(client, "messages", **given)


@export.command("audit", cls=Command)
@click.option("--actor", "by", help="Only what this principal did: the whole name.")
@click.option("--action", help="Only this action, such as dlq.requeue.")
@click.option("--outcome", type=click.Choice(["done", "failed", "denied"]), help="Only with this outcome.")
@click.option("--target", help="Only what was done to this.")
@click.option("--created-after", type=PAST_TIME, help="Only what was done then or later: 2030-01-31T12:00Z, or 2h.")
@click.option("--created-before", type=PAST_TIME, help="Only what was done before then.")
@_to_a_file
@with_client
async def export_audit(client: Client, *, by: str | None, **given: Any) -> None:
    """Exports the audit log, newest first."""
    # As `actor` it would be who runs the command, as with --by of those that change something.
    await _exported(client, "audit", actor=by, **given)


@export.command("operations", cls=Command)
@click.option("--active", is_flag=True, help="Only those that have not ended.")
@_to_a_file
@with_client
async def export_operations(client: Client, *, active: bool, **given: Any) -> None:
    """Exports operations, newest first, each with its progress."""
    await _exported(client, "operations", active=active or None, **given)


async def _exported(client: Client, name: str, *, format_: str, limit: int, output: Path | None, **filters: Any) -> None:
    """Writes the file, and says on standard error if there may be more than it has."""
    rows = _Rows(format_)
    with _standard_output() if output is None else _file(output) as write:
        async with client.stream(f"/export/{name}", format=format_, limit=limit, **filters) as chunks:
            async for chunk in chunks:
                rows.count(chunk)
                write(chunk)
    if rows.found >= limit:
        echo(f"outbox: {limit:,} items are the limit, and there may be more: raise --limit, or narrow the filter", err=True)


class _Rows:
    """Counts the rows of a file, of which some have line breaks within quotes."""

    def __init__(self, format_: str) -> None:
        self.found = -1 if format_ == "csv" else 0  # the first one is that of the names
        self._has_quotes = format_ == "csv"
        self._is_quoted = False

    def count(self, chunk: bytes) -> None:
        """Adds those that end in `chunk`."""
        for number, part in enumerate(chunk.split(b'"') if self._has_quotes else [chunk]):
            self._is_quoted ^= number > 0
            self.found += 0 if self._is_quoted else part.count(b"\n")


@contextmanager
def _standard_output() -> Iterator[Write]:
    """A pipe gets the bytes as they are, a terminal text."""
    if not sys.stdout.isatty():
        yield echo_bytes
        return
    # Characters, and CRLF, may come in two parts.
    decoder = io.IncrementalNewlineDecoder(getincrementaldecoder("utf-8")("replace"), translate=True)
    yield lambda chunk: echo_bytes(decoder.decode(chunk).encode())


@contextmanager
def _file(path: Path) -> Iterator[Write]:
    """A file that is complete, or not there: it is written under another name next to it. Links are followed."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise CliError(f"{path} is not a regular file: leave out --output, and redirect standard output")
    part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")
    with _refusals(path):
        file = part.open("xb")

    def write(chunk: bytes) -> None:
        with _refusals(path):
            file.write(chunk)

    try:
        yield write
        with _refusals(path):
            file.flush()
            os.fsync(file.fileno())  # the name must not outlive the content in a power failure
            file.close()
            part.replace(path)
    finally:
        with suppress(OSError):
            file.close()
            part.unlink(missing_ok=True)


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror or error}") from error
