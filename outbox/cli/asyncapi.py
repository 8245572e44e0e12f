"""`outbox asyncapi`: prints what a service publishes and consumes as an AsyncAPI document, and compares two of them."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from outbox.asyncapi import asyncapi_document, compare_documents, describe_contracts
from outbox.cli.command import CliError, Command, DefaultGroup
from outbox.cli.output import counted, echo, echo_json, echo_table, styled
from outbox.runtime.consumers import load_consumers, load_events


@click.group(cls=DefaultGroup)
def asyncapi() -> None:
    """Prints what a service publishes and consumes as an AsyncAPI document, and finds breaking changes.

    `outbox asyncapi shop.handlers --publishes shop.events` prints the document of a service, `outbox asyncapi check` compares
    two documents.
    """


@asyncapi.command(cls=Command)
@click.argument("consumers", required=False)
@click.option(
    "--publishes",
    "published",
    multiple=True,
    metavar="EVENTS",
    help="Events that the service publishes: package.module, or package.module:name of an event or a list. May be repeated.",
)
@click.option("--title", default="Outbox", show_default=True, help="Name of the service, for the document.")
@click.option("--release", default="0", show_default=True, help="Release of the service, for the document.")
def show(consumers: str | None, published: tuple[str, ...], title: str, release: str) -> None:
    """Prints the AsyncAPI document of consumers and events, as JSON.

    CONSUMERS is package.module:name, as for `outbox worker`. No database and no broker is needed.
    """
    if consumers is None and not published:
        raise click.UsageError("name the consumers, as package.module:name, or the events with --publishes")
    described = [] if consumers is None else describe_contracts(load_consumers(consumers))
    events = {id(event): event for target in published for event in load_events(target)}
    echo_json(asyncapi_document(described, events.values(), title=title, version=release))


@asyncapi.command(cls=Command)
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def check(old: Path, new: Path, *, as_json: bool) -> None:
    """Compares two documents, and exits with 1 if a change breaks consumers or publishers.

    OLD is the document of the release in production, NEW that of the release to be deployed.
    """
    try:
        changes = compare_documents(_read(old), _read(new))
    except ValueError as error:
        raise CliError(str(error)) from error
    breaking = [change for change in changes if change.breaks is not None]
    if as_json:
        echo_json({"is_compatible": not breaking, "items": [asdict(change) for change in changes]})
    else:
        if changes:
            rows = [(change.breaks or "", change.where, change.text) for change in changes]
            echo_table(("BREAKS", "WHERE", "CHANGE"), rows)
            echo()
        result = f"{counted(len(breaking), 'breaking change')}." if breaking else "No breaking changes."
        echo(styled(result, fg="red" if breaking else "green"))
    if breaking:
        sys.exit(1)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content: Any = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise CliError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise CliError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, Mapping):
        raise CliError(f"{path} is not an AsyncAPI document, which is a JSON object")
    return content
