"""`outbox messages`: what is in the outbox, and why one message is where it is."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import click

from outbox.cli.api.client import Api
from outbox.cli.api.opening import ask
from outbox.cli.api.places import places
from outbox.cli.api.telling import echo_answer, json_output, moment, when, when_exactly
from outbox.cli.command import Command
from outbox.cli.dlq.filters import Moment
from outbox.cli.dlq.tables import counted, echo_facts, echo_heading, echo_table, indented, times
from outbox.cli.printing import echo, one_line, styled

_STATES = ("pending", "scheduled", "held", "stalled", "blocked", "retrying", "parked", "sent")
_DUE = ("scheduled", "retrying", "held")


@click.command(cls=Command)
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--state", type=click.Choice(_STATES), help="Only those.")
@click.option("--routing-key", metavar="KEY", help="Only with this routing key; with * at the end, with this beginning.")
@click.option("--ordering-key", metavar="KEY", help="Only with this ordering key, in their order.")
@click.option("--message-id", metavar="ID", help="Only with this message id.")
@click.option("--tracking-id", metavar="ID", help="Only of the chain that this id is in.")
@click.option("--queue", "target_queue", help="Only those that are for this one queue.")
@click.option("--created-after", type=Moment(), help="Only those written then or later: 2030-01-31T12:00Z, or 2h.")
@click.option("--created-before", type=Moment(), help="Only those written before then.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many lines.")
@click.option("--reveal", is_flag=True, help="With ID: show what is masked otherwise. It is written to the audit.")
@json_output
@places
def messages(id_: str | None, *, as_json: bool, limit: int, reveal: bool, **given: Any) -> None:
    """Lists messages of the outbox, or says why one of them is where it is.

    ID is the number of its row, which is in the list. What was sent is in the list until it is cleaned up; `outbox chain` knows
    more of it.
    """
    filters = {name: given[name] for name in _FILTERS}

    async def look(api: Api) -> Any:
        if id_ is not None:
            return await api.get(f"/messages/{quote(id_, safe='')}", reveal=reveal or None)
        return await api.page("/messages", limit=limit, **filters)

    answer = ask(given, look)
    if as_json:
        echo_answer(answer)
    elif id_ is not None:
        _echo_one(answer, reveal=reveal)
    elif answer["items"]:
        _echo_lines(answer)
    else:
        echo(f"No messages{' that fit' if any(filters.values()) else ''}.")


_FILTERS = (
    "state", "routing_key", "ordering_key", "message_id", "tracking_id", "target_queue", "created_after", "created_before",
)  # fmt: skip


def _echo_lines(answer: Mapping[str, Any]) -> None:
    rows = [
        (
            message["id"],
            message["state"],
            when(message["created_at"]),
            _due(message),
            str(message["attempts"]),
            one_line(message["routing_key"]),
            one_line(message["last_error"] or message["preview"]),
        )
        for message in answer["items"]
    ]
    headings = ("ID", "STATE", "WRITTEN", "DUE", "REFUSED", "ROUTING KEY", "ERROR OR BODY")
    echo_table(headings, rows, right=frozenset({"ID", "WRITTEN", "REFUSED"}))
    more = ", and there are more: --limit shows them" if answer["next"] else ""
    echo(f"\n{counted(len(rows), 'message')}{more}.")


def _due(message: Mapping[str, Any]) -> str:
    due = moment(message["due_at"]) if message["state"] in _DUE else None
    return "" if due is None else f"{due.astimezone():%Y-%m-%d %H:%M:%S}"


def _echo_one(message: Mapping[str, Any], *, reveal: bool) -> None:
    echo(styled(f"Message {message['id']}", bold=True), f", {message['state']}")
    echo(f"  {one_line(message['reason'])}")
    echo_facts(
        [
            ("to do", message["mend"] or ""),
            ("routing key", one_line(message["routing_key"])),
            ("for the queue", one_line(message["target_queue"] or "")),
            ("message id", message["message_id"] or "not yet"),
            ("chain", " → ".join(message["tracking_ids"]) if len(message["tracking_ids"]) > 1 else ""),
            ("ordering key", one_line(message["ordering_key"] or "")),
            ("written", when_exactly(message["created_at"])),
            (f"{'stalled' if message['state'] == 'stalled' else 'unroutable'} since", when_exactly(message["held_at"])),
            ("sent", when_exactly(message["sent_at"])),
            ("given up", when_exactly(message["failed_at"])),
            ("next attempt", when_exactly(message["next_attempt_at"])),
            ("refused", times(message["attempts"]) if message["attempts"] else ""),
            ("last error", one_line(message["last_error"] or "")),
            ("content type", f"{message['content_type'] or 'unknown'}, {message['size']:,} bytes"),
            ("handled", ", ".join(f"{one_line(each['queue'])} {each['fact']}" for each in message["handled"] or ())),
        ]
    )
    if message["headers"]:
        echo_heading("Headers")
        echo_facts([(one_line(name), one_line(str(value))) for name, value in message["headers"].items()])
    echo_heading("Body" if reveal else "Body, masked (--reveal shows it all)")
    echo(indented(message["body"] or message["body_base64"] or f"<{message['size']:,} bytes that are not shown>"))
