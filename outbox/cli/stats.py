"""`outbox stats`: what was published, sent, handled and lost to dead letters, step by step."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from outbox.cli.api.client import Api
from outbox.cli.api.opening import ask
from outbox.cli.api.places import places
from outbox.cli.api.telling import echo_answer, json_output, moment, number, span
from outbox.cli.command import Command
from outbox.cli.dlq.tables import echo_heading, echo_table
from outbox.cli.printing import echo, one_line

_COUNTS = ("created", "sent", "processed", "failed", "dead", "backlog")
_HEADINGS = ("FROM", *(name.upper() for name in _COUNTS), "OLDEST", "OUTBOX P95", "HANDLER P95")


@click.command(cls=Command)
@click.option("--from", "from_", default="-1h", show_default=True, metavar="TIME", help="A time with its zone, or -15m, -7d.")
@click.option("--to", default="now", show_default=True, metavar="TIME", help="The end, in the same words.")
@click.option("--step", default="auto", show_default=True, metavar="LENGTH", help="60s, 5m, 1h, 1d, or auto.")
@click.option("--group-by", type=click.Choice(["none", "queue", "routing_key"]), default="none", show_default=True)
@json_output
@places
def stats(*, as_json: bool, from_: str, to: str, step: str, group_by: str, **given: Any) -> None:
    """Says what happened when, all processes together.

    Nothing stands where nobody told anything, because no relay or no worker ran. The newest line may not be complete.
    """

    async def look(api: Api) -> Any:
        return await api.get("/stats", **{"from": from_}, to=to, step=step, group_by=group_by)

    answer = ask(given, look)
    if as_json:
        echo_answer(answer)
        return
    for series in answer["series"]:
        if series["group"] is not None:
            echo_heading(one_line(series["group"]) or "(none)")
        echo_table(_HEADINGS, list(_rows(answer["starts_at"], answer["complete"], series)), right=frozenset(_HEADINGS[1:]))
    if answer["widened"]:
        echo(f"\nThe steps are of {span(answer['step_seconds'])}: {answer['widened']}.")


def _rows(starts: Sequence[str], complete: Sequence[bool], series: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for place, start in enumerate(starts):
        counts = [series[name][place] for name in _COUNTS]
        if any(count is not None for count in counts):
            yield (
                _start(start) + ("" if complete[place] else " …"),
                *("" if count is None else number(count) for count in counts),
                span(series["oldest_age_seconds"][place]),
                span(series["latency_seconds"]["p95"][place]),
                span(series["handling_seconds"]["p95"][place]),
            )


def _start(text: str) -> str:
    start = moment(text)
    return "" if start is None else f"{start.astimezone():%Y-%m-%d %H:%M}"
