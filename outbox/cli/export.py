"""`outbox export`: writes lists to files as CSV or NDJSON."""

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
from outbox.cli.dlq.letters import filter_options, take_filter
from outbox.cli.messages import message_filters, state_filter
from outbox.cli.options import PAST_TIME
from outbox.cli.output import echo, echo_bytes

Write = Callable[[bytes], object]

_output_options = options.combine(
    click.option(
        "--format",
        "format_",
        type=click.Choice(["csv", "ndjson"]),
        default="csv",
        show_default=True,
        help="CSV with a header row, or one JSON object per line.",
    ),
    click.option("--limit", type=click.IntRange(1, 100_000), default=10_000, show_default=True, help="Maximum number of rows."),
    click.option(
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write to this file. It is created or replaced only when the export is complete.  [default: standard output]",
    ),
)


@click.group()
def export() -> None:
    """Exports dead letters, messages, operations or the audit log as CSV or NDJSON.

    Filters, order and masking are those of the list. Exit code 1: the export is incomplete.
    """


@export.command("dlq", cls=Command)
@filter_options
@click.option("--oldest", is_flag=True, help="Export the oldest failures first.")
@_output_options
@with_client
async def export_dead_letters(client: Client, *, oldest: bool, **given: Any) -> None:
    """Exports dead letters and parked messages: only open ones, unless --status is given."""
    wanted = take_filter(given)
    await _export(client, "dlq", sort="oldest" if oldest else "newest", **wanted, **given)


@export.command("messages", cls=Command)
@state_filter
@message_filters
@_output_options
@with_client
async def export_messages(client: Client, **given: Any) -> None:
    """Exports messages of the outbox."""
    await _export(client, "messages", **given)


@export.command("audit", cls=Command)
@click.option("--actor", "by", help="Only entries of this principal; the full name.")
@click.option("--action", help="Only entries with this action, such as dlq.requeue.")
@click.option("--outcome", type=click.Choice(["done", "failed", "denied"]), help="Only entries with this outcome.")
@click.option("--target", help="Only entries with this target.")
@click.option(
    "--created-after", type=PAST_TIME, help="Only created at or after this time: 2030-01-31T12:00Z, or 2h for two hours ago."
)
@click.option("--created-before", type=PAST_TIME, help="Only created before this time.")
@_output_options
@with_client
async def export_audit(client: Client, *, by: str | None, **given: Any) -> None:
    """Exports the audit log, newest first."""
    # The parameter `actor` means the user who runs a command, so this filter has another name here.
    await _export(client, "audit", actor=by, **given)


@export.command("operations", cls=Command)
@click.option("--active", is_flag=True, help="Only operations that have not ended.")
@_output_options
@with_client
async def export_operations(client: Client, *, active: bool, **given: Any) -> None:
    """Exports operations, newest first, each with its progress."""
    await _export(client, "operations", active=active or None, **given)


async def _export(client: Client, name: str, *, format_: str, limit: int, output: Path | None, **filters: Any) -> None:
    """Writes the rows, and a notice to standard error if the limit was reached."""
    rows = _Rows(format_)
    with _standard_output() if output is None else _file(output) as write:
        async with client.stream(f"/export/{name}", format=format_, limit=limit, **filters) as chunks:
            async for chunk in chunks:
                rows.count(chunk)
                write(chunk)
    if rows.found >= limit:
        echo(f"outbox: stopped at the limit of {limit:,} items: raise --limit or narrow the filter for the rest", err=True)


class _Rows:
    """Counts the rows of a file. In CSV, line breaks within quotes do not end a row."""

    def __init__(self, format_: str) -> None:
        self.found = -1 if format_ == "csv" else 0  # the header is not a row
        self._has_quotes = format_ == "csv"
        self._is_quoted = False

    def count(self, chunk: bytes) -> None:
        """Adds the rows that end in `chunk`."""
        # Between quotes, a line break is text. A doubled quote ends and begins such a part, which changes nothing.
        for number, part in enumerate(chunk.split(b'"') if self._has_quotes else [chunk]):
            self._is_quoted ^= number > 0
            self.found += 0 if self._is_quoted else part.count(b"\n")


@contextmanager
def _standard_output() -> Iterator[Write]:
    """Writes bytes unchanged to a pipe, and escaped text to a terminal."""
    if not sys.stdout.isatty():
        yield echo_bytes
        return
    # A chunk may end inside a UTF-8 character or between CR and LF.
    decoder = io.IncrementalNewlineDecoder(getincrementaldecoder("utf-8")("replace"), translate=True)
    yield lambda chunk: echo_bytes(decoder.decode(chunk).encode())


@contextmanager
def _file(path: Path) -> Iterator[Write]:
    """Writes to a temporary file in the same folder and renames it when complete. Follows links."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise CliError(f"{path} is not a regular file: redirect standard output instead of using --output")
    # In the same folder, since a file cannot be renamed into another file system.
    part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")
    with _translate_os_errors(path):
        file = part.open("xb")

    def write(chunk: bytes) -> None:
        with _translate_os_errors(path):
            file.write(chunk)

    try:
        yield write
        with _translate_os_errors(path):
            file.flush()
            # Without fsync before the rename, a power failure could leave the final name with no content.
            os.fsync(file.fileno())
            file.close()
            part.replace(path)
    finally:
        with suppress(OSError):
            file.close()
            part.unlink(missing_ok=True)


@contextmanager
def _translate_os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror or error}") from error
