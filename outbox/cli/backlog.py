"""`outbox backlog` and `outbox messages`: what waits in the outbox and at the broker, and why one message is where it is."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from time import monotonic
from typing import Any
from urllib.parse import quote

import click

from outbox.cli.client import Client, with_client
from outbox.cli.command import Command
from outbox.cli.options import PAST_TIME, json_output
from outbox.cli.output import (
    age,
    count,
    counted,
    duration,
    echo,
    echo_facts,
    echo_heading,
    echo_json,
    echo_table,
    indented,
    one_line,
    parse_time,
    styled,
    time_and_age,
    times,
)

_COUNTED = ("pending", "scheduled", "held", "stalled", "blocked", "retrying", "parked")
_STATES = (*_COUNTED, "sent")
_DUE = ("scheduled", "retrying", "held")
_COUNTING_LIMIT = timedelta(seconds=3)
_POLL_INTERVAL = timedelta(milliseconds=200)


@click.command(cls=Command)
@click.option("--routing-keys", type=click.IntRange(0, 200), default=20, show_default=True, help="How many are listed.")
@json_output
@with_client
async def backlog(client: Client, *, routing_keys: int, as_json: bool) -> None:
    """Shows the backlog of the outbox and the broker: how much waits, since when, and for how much longer."""
    # In this process nothing has been counted before the first request, and a service has counted already.
    until = monotonic() + (_COUNTING_LIMIT.total_seconds() if client.is_in_process else 0)
    answer = await client.get("/backlog", routing_keys=routing_keys)
    while not (answer["complete"] and not answer["degraded"]) and monotonic() < until:
        await asyncio.sleep(_POLL_INTERVAL.total_seconds())
        answer = await client.get("/backlog", routing_keys=routing_keys)
    if as_json:
        echo_json(answer)
    else:
        _echo_backlog(answer)


def _echo_backlog(answer: Mapping[str, Any]) -> None:
    rates = answer["per_second"]
    echo_facts(
        [
            ("as of", time_and_age(answer["as_of"])),
            ("estimated", "" if answer["complete"] else "yes, counting is not complete"),
            ("unavailable", ", ".join(answer["degraded"])),
            ("oldest pending", duration(answer["oldest_pending_age_seconds"])),
            ("incoming", _rate(rates["incoming"])),
            ("outgoing", _rate(rates["outgoing"])),
            ("drained in", duration(answer["drained_in_seconds"])),
        ]
    )
    echo()
    rows = [
        ("all", *_counts(answer["states"])),
        *((one_line(key["routing_key"]), *_counts(key)) for key in answer["routing_keys"]),
    ]
    if others := answer["other_routing_keys"]["routing_key_count"]:
        rows.append((f"{others:,} others, {count(answer['other_routing_keys']['total'])} messages", *("" for _ in _COUNTED)))
    echo_table(("ROUTING KEY", *(state.upper() for state in _COUNTED)), rows, right=frozenset(map(str.upper, _COUNTED)))
    if answer["queues"] is None:
        echo(f"\nQueues unavailable: {answer['broker_error']}.")
    elif answer["queues"]:
        echo_heading("Queues")
        headings = ("QUEUE", "QUEUED", "IN FLIGHT", "RETRYING", "CONSUMERS", "OLDEST")
        lines = []
        for queue in answer["queues"]:
            name = one_line(queue["queue"])
            if queue["exists"]:
                counts = (count(queue[each]) for each in ("queued", "in_flight", "retrying", "consumer_count"))
                lines.append((name, *counts, duration(queue["oldest_age_seconds"])))
            else:
                lines.append((f"{name} (does not exist)", "-", "-", "-", "-", ""))
        echo_table(headings, lines, right=frozenset(headings[1:]))


def _counts(states: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(count(states[state]) for state in _COUNTED)


def _rate(per_second: float | None) -> str:
    return "" if per_second is None else f"{per_second:,.1f}/s"


@click.command(cls=Command)
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--state", type=click.Choice(_STATES), help="Only those.")
@click.option("--routing-key", metavar="KEY", help="Only with this routing key; with * at the end, with this beginning.")
@click.option("--ordering-key", metavar="KEY", help="Only with this ordering key, in their order.")
@click.option("--message-id", metavar="ID", help="Only with this message id.")
@click.option("--tracking-id", metavar="ID", help="Only of the chain that this id is in.")
@click.option("--queue", "target_queue", help="Only those that are for this one queue.")
@click.option("--created-after", type=PAST_TIME, help="Only those written then or later: 2030-01-31T12:00Z, or 2h.")
@click.option("--created-before", type=PAST_TIME, help="Only those written before then.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many lines.")
@click.option("--reveal", is_flag=True, help="With ID: show what is masked otherwise. It is written to the audit.")
@json_output
@with_client
async def messages(client: Client, id_: str | None, *, as_json: bool, limit: int, reveal: bool, **given: Any) -> None:
    """Lists messages of the outbox, or shows why one of them is where it is.

    ID is the number of its row, as the list shows it. Sent messages are listed until they are cleaned up; `outbox chain` shows
    what became of them.
    """
    answer: Any
    if id_ is not None:
        answer = await client.get(f"/messages/{quote(id_, safe='')}", reveal=reveal or None)
    else:
        answer = await client.page("/messages", limit=limit, **given)
    if as_json:
        echo_json(answer)
    elif id_ is not None:
        _echo_message(answer, reveal=reveal)
    elif answer["items"]:
        _echo_messages(answer)
    else:
        echo(f"No messages{' match the filter' if any(given.values()) else ''}.")


def _echo_messages(answer: Mapping[str, Any]) -> None:
    rows = []
    for message in answer["items"]:
        due = parse_time(message["due_at"]) if message["state"] in _DUE else None
        rows.append(
            (
                message["id"],
                message["state"],
                age(message["created_at"]),
                "" if due is None else f"{due.astimezone():%Y-%m-%d %H:%M:%S}",
                str(message["attempt_count"]),
                one_line(message["routing_key"]),
                one_line(message["last_error"]["message"] if message["last_error"] else message["preview"]),
            )
        )
    headings = ("ID", "STATE", "WRITTEN", "DUE", "REFUSED", "ROUTING KEY", "ERROR OR BODY")
    echo_table(headings, rows, right=frozenset({"ID", "WRITTEN", "REFUSED"}))
    more = ", and there are more: --limit shows them" if answer["next"] else ""
    echo(f"\n{counted(len(rows), 'message')}{more}.")


def _echo_message(message: Mapping[str, Any], *, reveal: bool) -> None:
    echo(styled(f"Message {message['id']}", bold=True), f", {message['state']}")
    echo(f"  {one_line(message['reason'])}")
    echo_facts(
        [
            ("hint", message["hint"] or ""),
            ("routing key", one_line(message["routing_key"])),
            ("for the queue", one_line(message["target_queue"] or "")),
            ("message id", message["message_id"] or "not yet"),
            ("chain", " → ".join(message["tracking_ids"]) if len(message["tracking_ids"]) > 1 else ""),
            ("ordering key", one_line(message["ordering_key"] or "")),
            ("written", time_and_age(message["created_at"])),
            (f"{'stalled' if message['state'] == 'stalled' else 'unroutable'} since", time_and_age(message["held_at"])),
            ("sent", time_and_age(message["sent_at"])),
            ("parked", time_and_age(message["failed_at"])),
            ("next attempt", time_and_age(message["next_attempt_at"])),
            ("refused", times(message["attempt_count"]) if message["attempt_count"] else ""),
            ("last error", one_line(message["last_error"]["message"]) if message["last_error"] else ""),
            ("content type", f"{message['content_type'] or 'unknown'}, {message['size']:,} bytes"),
            ("handled", ", ".join(f"{one_line(each['queue'])} {each['outcome']}" for each in message["deliveries"] or ())),
        ]
    )
    if message["headers"]:
        echo_heading("Headers")
        echo_facts([(one_line(name), one_line(str(value))) for name, value in message["headers"].items()])
    echo_heading("Body" if reveal else "Body, masked (--reveal shows it all)")
    echo(indented(message["body"] or message["body_base64"] or f"<{message['size']:,} bytes that are not text>"))
