"""`outbox chain`: shows the chain of a message as a tree, with times and states."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from outbox.chains import MOST_NODES
from outbox.cli.client import Client, with_client
from outbox.cli.command import Command
from outbox.cli.options import json_output
from outbox.cli.output import cut, duration, echo, echo_json, one_line, parse_time, styled

_HEADINGS = ("EVENT", "QUEUE", "PUBLISHED", "OUTBOX", "BROKER", "HANDLER", "ATTEMPTS", "STATE", "BY", "ID")
_COLOURS = {"dead": "red", "parked": "red", "processed": "green", "retrying": "yellow", "held": "yellow"}
_STATE = _HEADINGS.index("STATE")
_GAP = "  "
_LONGEST_TEXT = 60
_LONGEST_ERROR = 160

Json = Mapping[str, Any]


@click.command(cls=Command)
@click.argument("id_", metavar="ID")
@click.option(
    "--max-nodes", type=click.IntRange(1, MOST_NODES), default=MOST_NODES, show_default=True, help="Maximum messages."
)
@json_output
@with_client
async def chain(client: Client, id_: str, *, max_nodes: int, as_json: bool) -> None:
    """Shows the chain of messages that a message belongs to, as a tree.

    ID is the id of any message in the chain. OUTBOX and BROKER are the times that a message waited in the outbox and in the
    broker; HANDLER is its handling time. With RabbitMQ, BROKER and HANDLER need the history (OUTBOX_HISTORY).
    """
    # The id is a query parameter, because an id may contain characters that no URL path can carry.
    found = await client.get("/chains/-", id=id_, max_nodes=max_nodes)
    if as_json:
        echo_json(found)
        return
    rows = [(_HEADINGS, ""), *_rows(found["nodes"])]
    widths = [max(len(cells[column]) for cells, _ in rows) for column in range(len(_HEADINGS))]
    for cells, error in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        colour = _COLOURS.get(cells[_STATE])
        before, after = _GAP.join((*padded[:_STATE], "")), _GAP.join(("", *padded[_STATE + 1 :])).rstrip()
        echo(before, styled(padded[_STATE], fg=colour) if colour else padded[_STATE], after)
        if error:
            echo(" " * (widths[0] + len(_GAP)), styled(error, fg="red"))
    if found["truncated"]:
        echo(f"The chain has more than {len(found['nodes'])} messages: raise --max-nodes to see more.")
    for reason in found["gaps"]:
        echo(f"Missing: {reason}.")


def _rows(nodes: Sequence[Json]) -> Iterator[tuple[Sequence[str], str]]:
    """Yields a line for each message and queue. A message with several queues has its own cells in the first line only."""
    for node, (own, below) in zip(nodes, _branches([node["depth"] for node in nodes]), strict=True):
        deliveries: Sequence[Json | None] = node["deliveries"] or (None,)
        for index, delivery in enumerate(deliveries):
            first = index == 0
            state = node["state"] if delivery is None else delivery["state"]
            if delivery is not None and first and node["state"] not in {each["state"] for each in node["deliveries"]}:
                state = node["state"]  # it was requeued and waits in the outbox
            by = node["relay"] if delivery is None else _last(delivery).get("component") or ""
            cells = (
                own + _short(node["routing_key"] or "(unknown message)") if first else below,
                "" if delivery is None else _short(delivery["queue"]),
                _time(node["published_at"]) if first else "",
                duration(node["waited_seconds"]) if first else "",
                "" if delivery is None else duration(delivery["waited_seconds"]),
                "" if delivery is None else duration(delivery["handling_seconds"]),
                "" if delivery is None or not delivery["attempt_count"] else str(delivery["attempt_count"]),
                one_line(state).replace("_", " "),
                _short(by),
                _short(node["id"]) if first else "",
            )
            yield cells, _error(node, delivery)


def _error(node: Json, delivery: Json | None) -> str:
    if delivery is not None and delivery["waiting"] is not None:
        return cut(one_line(delivery["waiting"]["text"]), _LONGEST_ERROR)
    if delivery is not None and (error := _last(delivery).get("error")) and error["type"]:
        return cut(one_line(f"{error['type']}: {error['message']}" if error["message"] else error["type"]), _LONGEST_ERROR)
    return cut(one_line(node["last_error"]["message"]), _LONGEST_ERROR) if node["last_error"] and delivery is None else ""


def _last(delivery: Json) -> Json:
    """The last attempt; empty without one."""
    return delivery["attempts"][-1] if delivery["attempts"] else {}


def _branches(depths: Sequence[int]) -> Sequence[tuple[str, str]]:
    """The tree branches before the first line of each node, and before its further lines."""
    branches: list[tuple[str, str]] = []
    following: set[int] = set()
    """Depths with a later sibling; the loop runs from the last node to the first."""
    for own in reversed(depths):
        following = {depth for depth in following if depth <= own}
        bars = "".join("│  " if depth in following else "   " for depth in range(1, own))
        corner = "" if own == 0 else ("├─ " if own in following else "└─ ")
        further = "" if own == 0 else ("│  " if own in following else "   ")
        branches.append((bars + corner, bars + further))
        following.add(own)
    return branches[::-1]


def _time(text: str | None) -> str:
    at = parse_time(text)
    if at is None:
        return ""
    utc = at.astimezone(UTC)
    today = utc.date() == datetime.now(UTC).date()
    return f"{utc:%H:%M:%S}.{utc.microsecond // 1000:03}" if today else f"{utc:%Y-%m-%d %H:%M:%S}"


def _short(text: str) -> str:
    return cut(one_line(text), _LONGEST_TEXT)
