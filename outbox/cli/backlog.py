"""`outbox backlog`: how much waits in the outbox and in the queues, since when, and for how much longer."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from time import monotonic
from typing import Any

import click

from outbox.cli.api.client import Api
from outbox.cli.api.opening import ask
from outbox.cli.api.places import places
from outbox.cli.api.telling import echo_answer, json_output, number, span, when_exactly
from outbox.cli.command import Command
from outbox.cli.dlq.tables import echo_facts, echo_heading, echo_table
from outbox.cli.printing import echo, one_line

_STATES = ("pending", "scheduled", "held", "stalled", "blocked", "retrying", "parked")
_PATIENCE = timedelta(seconds=3)
_AGAIN = timedelta(milliseconds=200)


@click.command(cls=Command)
@click.option("--routing-keys", type=click.IntRange(0, 200), default=20, show_default=True, help="How many are listed.")
@json_output
@places
def backlog(*, routing_keys: int, as_json: bool, **given: Any) -> None:
    """Says how much waits, in the outbox and at the broker, since when, and for how much longer."""

    async def look(api: Api) -> Any:
        return await _gathered(api, routing_keys)

    answer = ask(given, look)
    if as_json:
        echo_answer(answer)
    else:
        _echo(answer)


async def _gathered(api: Api, routing_keys: int) -> Any:
    """The answer; of an admin that has just been opened, once everything has been counted, or after a moment."""
    until = monotonic() + (_PATIENCE.total_seconds() if api.just_opened else 0)
    while True:
        answer = await api.get("/backlog", routing_keys=routing_keys)
        if (answer["complete"] and not answer["degraded"]) or monotonic() >= until:
            return answer
        await asyncio.sleep(_AGAIN.total_seconds())


def _echo(answer: Mapping[str, Any]) -> None:
    rates = answer["per_second"]
    echo_facts(
        [
            ("as of", when_exactly(answer["as_of"])),
            ("only estimated", "" if answer["complete"] else "yes: it is still being counted"),
            ("not to be had", ", ".join(answer["degraded"])),
            ("oldest pending", span(answer["oldest_pending_seconds"])),
            ("come in", _rate(rates["incoming"])),
            ("go out", _rate(rates["outgoing"])),
            ("drained in", span(answer["drained_in_seconds"])),
        ]
    )
    echo()
    rows = [
        ("all", *_counts(answer["states"])),
        *((one_line(key["routing_key"]), *_counts(key)) for key in answer["routing_keys"]),
    ]
    if others := answer["other_routing_keys"]["routing_keys"]:
        rows.append((f"{others:,} others, {number(answer['other_routing_keys']['total'])} messages", *("" for _ in _STATES)))
    echo_table(("ROUTING KEY", *(state.upper() for state in _STATES)), rows, right=frozenset(map(str.upper, _STATES)))
    if answer["queues"] is None:
        echo(f"\nThe queues are not known: {answer['broker_error']}.")
    elif answer["queues"]:
        echo_heading("Queues")
        headings = ("QUEUE", "QUEUED", "IN HAND", "RETRYING", "CONSUMERS", "OLDEST")
        echo_table(headings, [_queue(queue) for queue in answer["queues"]], right=frozenset(headings[1:]))


def _counts(states: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(number(states[state]) for state in _STATES)


def _queue(queue: Mapping[str, Any]) -> tuple[str, ...]:
    if not queue["exists"]:
        return (f"{one_line(queue['queue'])} (does not exist)", "-", "-", "-", "-", "")
    counts = (number(queue[name]) for name in ("queued", "in_hand", "retrying", "consumers"))
    return (one_line(queue["queue"]), *counts, span(queue["oldest_seconds"]))


def _rate(per_second: float | None) -> str:
    return "" if per_second is None else f"{per_second:,.1f}/s"
