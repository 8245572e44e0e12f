"""`outbox backlog`, `queues` and `messages`: what waits, who handles it how fast, and why one message is where it is."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any
from urllib.parse import quote

import click

from outbox.cli.client import Client, with_client
from outbox.cli.command import Command
from outbox.cli.options import PAST_TIME, health, json_output
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
        echo(f"\nQueues unavailable: {one_line(answer['broker_error']['message'])}.")
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


_HEADINGS = (
    "QUEUE", "QUEUED", "IN FLIGHT", "RETRYING", "OLDEST", "IN", "OUT", "FAILED", "P95",
    "DAY BEFORE", "CONSUMERS", "DEAD", "STATE",
)  # fmt: skip


@click.command(cls=Command)
@click.argument("name", required=False)
@health
@json_output
@with_client
async def queues(client: Client, name: str | None, *, as_json: bool) -> None:
    """Shows each queue: depth, age, rates, failures, handling times, consumers. With NAME, one of them with its workers.

    IN and OUT are messages a second, FAILED is the share of attempts and P95 the handling time, all of the last five minutes.
    """
    answer = await client.get("/queues" if name is None else f"/queues/{quote(name, safe='')}")
    if as_json:
        echo_json(answer)
    elif name is not None:
        _echo_queue(answer)
    elif answer["items"]:
        echo_table(_HEADINGS, [_queue_row(queue) for queue in answer["items"]], right=frozenset(_HEADINGS[1:-1]))
    else:
        echo("No worker consumes a queue, and none is bound.")
    if not as_json and name is None and answer["broker_error"]:
        echo(f"\nDepths unavailable: {one_line(answer['broker_error']['message'])}.")


def _queue_row(queue: Mapping[str, Any]) -> tuple[str, ...]:
    rates = queue["per_second"]
    living = [each for each in queue["consumers"] if each["status"] != "lost"]
    return (
        one_line(queue["name"]),
        *(count(queue[each]) for each in ("queued", "in_flight", "retrying")),
        duration(queue["oldest_age_seconds"]),
        _rate(rates["incoming"]),
        _rate(rates["outgoing"]),
        "" if queue["failed_share"] is None else f"{queue['failed_share']:.1%}",
        duration(queue["handling_seconds"]["p95"]),
        duration(queue["handling_seconds_day_before"]["p95"]),
        str(len(living)),
        count(queue["dead_letter_count"]),
        _queue_state(queue, living),
    )


def _queue_state(queue: Mapping[str, Any], living: Sequence[Any]) -> str:
    """The worst that is known of it, in a word or two."""
    if not queue["exists"]:
        return "does not exist"
    if queue["pauses"]:
        return "paused"
    if not living:
        return "no consumer"
    return ", ".join(each["code"].replace("_", " ") for each in queue["findings"]) or "ok"


def _echo_queue(queue: Mapping[str, Any]) -> None:
    rates, now, before = queue["per_second"], queue["handling_seconds"], queue["handling_seconds_day_before"]
    living = [each for each in queue["consumers"] if each["status"] != "lost"]
    echo_facts(
        [
            ("queue", one_line(queue["name"])),
            ("state", _queue_state(queue, living)),
            ("handlers", ", ".join(map(one_line, queue["handlers"]))),
            ("bound with", ", ".join(one_line(each["binding_key"]) for each in queue["bindings"])),
            ("queued", count(queue["queued"])),
            ("in flight", count(queue["in_flight"])),
            ("retrying", count(queue["retrying"])),
            ("oldest", duration(queue["oldest_age_seconds"])),
            ("incoming", _rate(rates["incoming"])),
            ("outgoing", _rate(rates["outgoing"])),
            ("drained in", duration(queue["drained_in_seconds"])),
            ("failed", "" if queue["failed_share"] is None else f"{queue['failed_share']:.1%} of the attempts"),
            ("handling", _times(now)),
            ("day before", _times(before)),
            ("dead letters", count(queue["dead_letter_count"])),
        ]
    )
    for each in queue["findings"]:
        echo(f"\n{each['severity']}: {one_line(each['summary'])}\n  {one_line(each['hint'])}")
    if queue["consumers"]:
        echo_heading("Consumers")
        headings = ("WORKER", "HOST", "PROCESS", "VERSION", "STARTED", "STATUS", "STATE")
        rows = [
            (
                one_line(each["name"]),
                one_line(each["host"]),
                str(each["process_id"]),
                one_line(each["version"]),
                age(each["started_at"]),
                each["status"],
                one_line(each["state"]).replace("_", " "),
            )
            for each in queue["consumers"]
        ]
        echo_table(headings, rows, right=frozenset({"PROCESS", "STARTED"}))


def _times(handling: Mapping[str, float | None]) -> str:
    found = [f"{name} {duration(seconds)}" for name, seconds in handling.items() if seconds is not None]
    return ", ".join(found)


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
