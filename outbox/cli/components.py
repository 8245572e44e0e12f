"""`outbox components`: which relays, workers and others live, what they do, and what is paused."""

from collections.abc import Mapping
from typing import Any

import click

from outbox.cli.api.client import Api
from outbox.cli.api.opening import ask
from outbox.cli.api.places import places
from outbox.cli.api.telling import echo_answer, json_output, when
from outbox.cli.command import Command
from outbox.cli.dlq.tables import echo_heading, echo_table
from outbox.cli.pausing import told
from outbox.cli.printing import echo, one_line


@click.command(cls=Command)
@click.option("--ended", type=click.IntRange(0, 500), default=10, show_default=True, help="How many that ended are listed.")
@json_output
@places
def components(*, ended: int, as_json: bool, **given: Any) -> None:
    """Lists relays, workers, archivers and maintenance: who lives, what they do, and which pauses they honour."""

    async def look(api: Api) -> Any:
        return await api.get("/components", ended=ended)

    answer = ask(given, look)
    if as_json:
        echo_answer(answer)
        return
    if answer["items"]:
        headings = ("NAME", "KIND", "CONDITION", "SINCE", "LAST SIGN", "VERSION", "DOES")
        echo_table(headings, [_row(component) for component in answer["items"]], right=frozenset({"SINCE", "LAST SIGN"}))
    else:
        echo("Nobody has given a sign of life.")
    if answer["pauses"]:
        echo_heading("Paused")
    for paused in answer["pauses"]:
        echo(f"  {told(paused)}")


def _row(component: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        one_line(component["name"]),
        one_line(component["kind"]),
        component["condition"],
        when(component["since"]),
        when(component["seen_at"]),
        one_line(component["version"]),
        one_line(_activity(component)),
    )


def _activity(component: Mapping[str, Any]) -> str:
    """Its state, and the pauses that it honours, which its state does not tell of queues."""
    if component["condition"] == "stopped":
        return ""
    state = str(component["activity"].get("state", ""))
    held = [f"{paused.get('scope')} {paused.get('name') or '(all)'}" for paused in component["applied"]]
    return f"{state}; holds {', '.join(held)}" if held else state
