"""`outbox backlog`, `queues`, `attempts` and `find`: backlog, queue rates, handler attempts, and search."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any
from urllib.parse import quote

import click

from outbox.chains import AttemptOutcome
from outbox.cli.client import Client, with_client
from outbox.cli.command import Command
from outbox.cli.options import PAST_TIME, health, json_output
from outbox.cli.output import (
    age,
    count,
    cut,
    duration,
    echo,
    echo_facts,
    echo_heading,
    echo_json,
    echo_table,
    one_line,
    time_and_age,
)

_COUNTED = ("pending", "scheduled", "held", "stalled", "blocked", "retrying", "parked")
_COUNTING_LIMIT = timedelta(seconds=3)
_POLL_INTERVAL = timedelta(milliseconds=200)


@click.command(cls=Command)
@click.option("--routing-keys", type=click.IntRange(0, 200), default=20, show_default=True, help="Number of routing keys.")
@json_output
@with_client
async def backlog(client: Client, *, routing_keys: int, as_json: bool) -> None:
    """Shows the backlog of the outbox and the broker: size, age, and estimated time to drain."""
    # The API counts in the background. A service has counts already; in this process the first request starts the count.
    until = monotonic() + (_COUNTING_LIMIT.total_seconds() if client.is_in_process else 0)
    answer = await client.get("/backlog", routing_keys=routing_keys)
    while not (answer["complete"] and not answer["degraded"]) and monotonic() < until:
        await asyncio.sleep(_POLL_INTERVAL.total_seconds())
        answer = await client.get("/backlog", routing_keys=routing_keys)
    if as_json:
        echo_json(answer)
        return
    rates = answer["per_second"]
    echo_facts(
        [
            ("as of", time_and_age(answer["as_of"])),
            ("estimated", "" if answer["complete"] else "yes, the count is incomplete"),
            ("unavailable", ", ".join(answer["degraded"])),
            ("oldest pending", duration(answer["oldest_pending_age_seconds"])),
            ("incoming", _rate(rates["incoming"])),
            ("outgoing", _rate(rates["outgoing"])),
            ("drained in", duration(answer["drained_in_seconds"] or None)),
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
        error = answer["broker_error"]
        echo(f"\nQueues unavailable: {'they are not counted yet' if error is None else one_line(error['message'])}.")
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
    """Shows depth, age, rates, failures, handling times and consumers of each queue.

    With NAME, shows one queue with its findings and its workers.

    IN and OUT are messages per second, FAILED is the share of attempts that failed, and P95 is the handling time. All cover
    the last five minutes; DAY BEFORE is the P95 of one hour, one day earlier.
    """
    answer = await client.get("/queues" if name is None else f"/queues/{quote(name, safe='')}")
    if as_json:
        echo_json(answer)
    elif name is not None:
        _echo_queue(answer)
    elif answer["items"]:
        rows = [
            (
                one_line(queue["name"]),
                *(count(queue[each]) for each in ("queued", "in_flight", "retrying")),
                duration(queue["oldest_age_seconds"]),
                *(_rate(queue["per_second"][each]) for each in ("incoming", "outgoing")),
                "" if queue["failed_share"] is None else f"{queue['failed_share']:.1%}",
                duration(queue["handling_seconds"]["p95"]),
                duration(queue["handling_seconds_day_before"]["p95"]),
                str(sum(each["status"] != "lost" for each in queue["consumers"])),
                count(queue["dead_letter_count"]),
                queue["state"].replace("_", " "),
            )
            for queue in answer["items"]
        ]
        echo_table(_HEADINGS, rows, right=frozenset(_HEADINGS[1:-1]))
    else:
        echo("No queues are bound, and no worker consumes from one.")
    if not as_json and name is None and answer["broker_error"]:
        echo(f"\nDepths unavailable: {one_line(answer['broker_error']['message'])}.")


def _echo_queue(queue: Mapping[str, Any]) -> None:
    rates, now, before = queue["per_second"], queue["handling_seconds"], queue["handling_seconds_day_before"]
    echo_facts(
        [
            ("queue", one_line(queue["name"])),
            ("state", queue["state"].replace("_", " ")),
            ("handlers", ", ".join(map(one_line, queue["handlers"]))),
            ("bound with", ", ".join(one_line(each["binding_key"]) for each in queue["bindings"])),
            ("queued", count(queue["queued"])),
            ("in flight", count(queue["in_flight"])),
            ("retrying", count(queue["retrying"])),
            ("oldest", duration(queue["oldest_age_seconds"])),
            ("incoming", _rate(rates["incoming"])),
            ("outgoing", _rate(rates["outgoing"])),
            ("drained in", duration(queue["drained_in_seconds"] or None)),
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
                one_line(each["service_version"] or each["version"]),
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
@click.argument("queue")
@click.option("--slowest", is_flag=True, help="Show the slowest of the latest 20,000 attempts.")
@click.option(
    "--outcome",
    multiple=True,
    type=click.Choice(list(AttemptOutcome), case_sensitive=False),
    help="Only this outcome; repeatable.",
)
@click.option("--from", "after", type=PAST_TIME, show_default="an hour ago", help="Only ended at or after this time.")
@click.option("--to", "before", type=PAST_TIME, show_default="now", help="Only ended before this time.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Maximum number of attempts.")
@json_output
@with_client
async def attempts(
    client: Client,
    queue: str,
    *,
    slowest: bool,
    outcome: Sequence[str],
    after: datetime | None,
    before: datetime | None,
    limit: int,
    as_json: bool,
) -> None:
    """Shows the latest or the slowest attempts to handle a queue's messages."""
    order = "slowest" if slowest else "latest"
    wanted = {"queue": queue, "order": order, "outcome": list(outcome), "after": after, "before": before, "limit": limit}
    answer = await client.get("/attempts", **wanted)
    if as_json:
        echo_json(answer)
    elif not answer["items"]:
        echo("No attempts recorded for that time.")
    else:
        headings = ("ENDED", "OUTCOME", "HANDLER", "WAITED", "ATTEMPT", "EVENT", "ID", "ERROR")
        rows = [
            (
                age(each["ended_at"]),
                each["outcome"].replace("_", " "),
                duration(each["handling_seconds"]),
                duration(each["waited_seconds"]),
                str(each["attempt"]),
                one_line(each["routing_key"]),
                one_line(each["message_id"]),
                "" if each["error"] is None else cut(one_line(f"{each['error']['type']}: {each['error']['message']}"), 80),
            )
            for each in answer["items"]
        ]
        echo_table(headings, rows, right=frozenset(headings[2:5]))


_SHOW_COMMANDS: Mapping[str, str] = {
    "message": "outbox messages {}",
    "delivery": "outbox deliveries {}",
    "dead_letter": "outbox dlq show {}",
    "chain": "outbox chain {}",
    "queue": "outbox queues {}",
    "routing_key": "outbox messages --routing-key {}",
    "component": "outbox components",
}


@click.command(cls=Command)
@click.argument("text")
@click.option("--limit", type=click.IntRange(1, 20), default=5, show_default=True, help="Maximum results of each kind.")
@json_output
@with_client
async def find(client: Client, text: str, *, limit: int, as_json: bool) -> None:
    """Finds messages, queues, dead letters and components by id, name, or words of an error."""
    answer = await client.get("/search", q=text, limit=limit)
    if as_json:
        echo_json(answer)
        return
    rows = [
        (
            item["kind"].replace("_", " "),
            one_line(item["title"]),
            one_line(item["detail"]),
            one_line(item["queue"] or ""),
            _SHOW_COMMANDS.get(item["kind"], "").format(shlex.quote(one_line(item["id"]))),
        )
        for item in answer["items"]
    ]
    echo_table(("KIND", "NAME", "STATE", "QUEUE", "COMMAND"), rows) if rows else echo("Nothing found.")
    if answer["incomplete"]:
        echo(f"\nNot searched: {', '.join(answer['incomplete']).replace('_', ' ')}.")
