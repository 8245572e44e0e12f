"""`outbox messages` and `deliveries`: shows messages in the outbox or in a queue, explains why they wait, and changes them."""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import IO, Any, TypeVar
from urllib.parse import quote

import click

from outbox.cli import options
from outbox.cli.client import Client, in_commands, with_client
from outbox.cli.command import Command, DefaultGroup
from outbox.cli.dlq.repair import confirm, read_headers
from outbox.cli.options import FUTURE_TIME, PAST_TIME, json_output
from outbox.cli.output import (
    age,
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

F = TypeVar("F", bound=Callable[..., Any])

_WAITING = ("pending", "scheduled", "held", "stalled", "blocked", "retrying")
_STATES = (*_WAITING, "parked", "sent")
_DUE = ("scheduled", "retrying", "held")
_DELIVERY_STATES = ("queued", "in_flight", "retrying", "postponed")
_FILTER = (
    "state",
    "queue",
    "routing_key",
    "ordering_key",
    "message_id",
    "tracking_id",
    "target_queue",
    "created_after",
    "created_before",
)


class _Listing(DefaultGroup):
    """A group that runs `list` without a command name, and `show` for an id alone."""

    def default_command(self, first: str) -> str:
        return "show" if first and not first.startswith("-") else "list"


message_filters = options.combine(
    click.option("--routing-key", metavar="KEY", help="Only with this routing key; a trailing * matches a prefix."),
    click.option("--ordering-key", metavar="KEY", help="Only with this ordering key, in sending order."),
    click.option("--message-id", metavar="ID", help="Only with this message id."),
    click.option("--tracking-id", metavar="ID", help="Only of the chain that contains this id."),
    click.option("--queue", "target_queue", help="Only messages addressed to this queue alone."),
    click.option("--created-after", type=PAST_TIME, help="Only created at or after this time: 2030-01-31T12:00Z, or 2h (ago)."),
    click.option("--created-before", type=PAST_TIME, help="Only created before this time."),
)
"""One option for each filter of the API's list except the state."""
_delivery_filters = options.combine(
    click.option("--state", type=click.Choice(_DELIVERY_STATES), help="Only in this state."),
    click.option("--routing-key", metavar="KEY", help="Only with this routing key."),
    click.option("--ordering-key", metavar="KEY", help="Only with this ordering key."),
    click.option("--message-id", metavar="ID", help="Only with this message id."),
)
state_filter = click.option("--state", type=click.Choice(_STATES), help="Only in this state.")
_limit = click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of lines.")
_reveal = click.option("--reveal", is_flag=True, help="Show masked values. The audit log records it.")
_change_options = options.combine(
    click.option("--max-items", type=click.IntRange(1, 10_000), help="Maximum number of messages.  [default: 10,000]"),
    click.option("--reason", help="Reason, recorded in the audit log."),
    click.option("--by", "actor", help="With a database: your name in the audit log.  [default: your user name]"),
    click.option("--dry-run", is_flag=True, help="Show how many messages would change, and change nothing."),
    click.option("--yes", is_flag=True, help="Do not ask for confirmation."),
    json_output,
)


def _selecting_messages(function: F) -> F:
    ids = click.argument("ids", nargs=-1, metavar="[ID]...")
    state = click.option("--state", type=click.Choice(_WAITING), help="Instead of ids: messages in this state.")
    return ids(state(message_filters(_change_options(function))))


def _selecting_deliveries(function: F) -> F:
    ids = click.argument("ids", nargs=-1, metavar="[ID]...")
    queue = click.option("--queue", help="Instead of ids: messages in this queue that match the other filters.")
    return ids(queue(_delivery_filters(_change_options(function))))


@click.group(cls=_Listing)
def messages() -> None:
    """Lists messages of the outbox, shows why a message waits, and cancels, reschedules or edits it.

    ID is the id that the list shows: `outbox messages 17`. Sent messages are listed until they are deleted; `outbox chain`
    shows how they were handled. Changes skip messages that a relay is sending.
    """


@messages.command("list", cls=Command)
@state_filter
@message_filters
@_limit
@json_output
@with_client
async def list_messages(client: Client, *, as_json: bool, limit: int, **given: Any) -> None:
    """Lists messages of the outbox."""
    answer = await client.page("/messages", limit=limit, **given)
    if as_json:
        echo_json(answer)
    elif answer["items"]:
        rows = [
            (
                message["id"],
                message["state"],
                age(message["created_at"]),
                _local(message["due_at"]) if message["state"] in _DUE else "",
                str(message["attempt_count"]),
                one_line(message["routing_key"]),
                one_line(message["last_error"]["message"] if message["last_error"] else message["preview"]),
            )
            for message in answer["items"]
        ]
        headings = ("ID", "STATE", "CREATED", "DUE", "REFUSED", "ROUTING KEY", "ERROR OR BODY")
        echo_table(headings, rows, right=frozenset({"ID", "CREATED", "REFUSED"}))
        more = ", more available: raise --limit" if answer["next"] else ""
        echo(f"\n{counted(len(rows), 'message')}{more}.")
    else:
        echo(f"No messages{' match the filter' if any(given.values()) else ''}.")


@messages.command("show", cls=Command)
@click.argument("id_", metavar="ID")
@_reveal
@json_output
@with_client
async def show_message(client: Client, id_: str, *, as_json: bool, reveal: bool) -> None:
    """Shows a message of the outbox, why it waits, and what happens next."""
    answer = await client.get(f"/messages/{quote(id_, safe='')}", reveal=reveal or None)
    echo_json(answer) if as_json else _echo_message(answer, reveal=reveal)


@messages.command("cancel", cls=Command)
@_selecting_messages
@with_client
async def cancel_messages(client: Client, **given: Any) -> int:
    """Removes messages from the outbox before they are sent.

    They become discarded dead letters, which `outbox dlq restore` reopens.
    """
    return await _change_messages(client, "/messages/cancel", "cancel", {}, given)


@messages.command("send-now", cls=Command)
@click.option("--priority", type=click.IntRange(0, 9), help="New priority; higher is sent first.")
@_selecting_messages
@with_client
async def send_messages_now(client: Client, **given: Any) -> int:
    """Makes scheduled, held, stalled or retrying messages due now."""
    return await _change_messages(client, "/messages/send-now", "send now", {"priority": given.pop("priority")}, given)


@messages.command("reschedule", cls=Command)
@click.option("--due", type=FUTURE_TIME, help="New due time: 2030-01-31T12:00Z, or 2h for two hours from now.")
@click.option("--priority", type=click.IntRange(0, 9), help="New priority; higher is sent first.")
@_selecting_messages
@with_client
async def reschedule_messages(client: Client, **given: Any) -> int:
    """Changes the due time or the priority of messages."""
    due: datetime | None = given.pop("due")
    change = {"due_at": due, "priority": given.pop("priority")}
    if due is None and change["priority"] is None:
        raise click.UsageError("give --due, --priority, or both")
    return await _change_messages(client, "/messages/reschedule", "reschedule", change, given)


@messages.command("edit", cls=Command)
@click.argument("id_", metavar="ID")
@click.option("--routing-key", metavar="KEY", help="New routing key.")
@click.option("--body", type=click.File("rb"), help="File with the new body; - reads standard input.")
@click.option("--headers", type=click.File("r"), help="File with the new headers, a JSON object.")
@click.option("--version", type=click.IntRange(min=1), help="Version that you edited.  [default: the current one]")
@click.option("--force", is_flag=True, help="Accept a body that violates a consumer's schema.")
@click.option("--reason", help="Reason, recorded in the audit log.")
@click.option("--by", "actor", help="With a database: your name in the audit log.  [default: your user name]")
@json_output
@with_client
async def edit_message(
    client: Client,
    id_: str,
    *,
    body: IO[bytes] | None,
    headers: IO[str] | None,
    version: int | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Changes the routing key, the body or the headers of a message before it is sent."""
    if body is None and headers is None and given["routing_key"] is None:
        raise click.UsageError("give --routing-key, --body or --headers")
    path = f"/messages/{quote(id_, safe='')}"
    edit: dict[str, Any] = {"version": version or (await client.get(path))["version"], **given, "force": given["force"] or None}
    if body is not None:
        edit |= {"body": base64.b64encode(body.read()).decode(), "encoding": "base64"}
    if headers is not None:
        edit["headers"] = read_headers(headers)
    answer = await client.patch(path, edit)
    echo_json(answer) if as_json else _echo_message(answer, reveal=False)


@messages.command("publish", cls=Command)
@click.argument("routing_key", metavar="ROUTING_KEY")
@click.option("--body", type=click.File("rb"), required=True, help="File with the body; - reads standard input.")
@click.option("--headers", type=click.File("r"), help="File with the headers, a JSON object.")
@click.option("--ordering-key", metavar="KEY", help="Ordering key: sent after earlier messages with the same key.")
@click.option("--due", type=FUTURE_TIME, help="Due time: 2030-01-31T12:00Z, or 2h for two hours from now.  [default: now]")
@click.option(
    "--destination",
    "destinations",
    multiple=True,
    metavar="NAME",
    help="Destination that sends it, such as kafka. May be given several times.  [default: default]",
)
@click.option("--force", is_flag=True, help="Accept a body that violates a consumer's schema.")
@click.option("--reason", help="Reason, recorded in the audit log.")
@click.option("--by", "actor", help="With a database: your name in the audit log.  [default: your user name]")
@json_output
@with_client
async def publish_message(
    client: Client,
    *,
    body: IO[bytes],
    headers: IO[str] | None,
    due: datetime | None,
    destinations: tuple[str, ...],
    as_json: bool,
    **given: Any,
) -> None:
    """Publishes a message, for example to test a consumer."""
    content = body.read()
    try:
        # Python also reads what other parsers refuse: NaN, numbers that are too large, unpaired surrogates.
        json.dumps(json.loads(content), allow_nan=False, ensure_ascii=False).encode()
        # As text, because decoding and encoding it would change numbers that a double does not hold.
        text = content.decode(json.detect_encoding(content))
        parts: dict[str, Any] = {"body": text, "encoding": "text", "content_type": "application/json"}
    except (ValueError, RecursionError) as error:
        name = str(getattr(body, "name", "-"))
        if name.lower().endswith(".json"):
            raise click.UsageError(f"--body: {name} is not JSON: {error}; bytes need a file with another name") from error
        parts = {"body": base64.b64encode(content).decode(), "encoding": "base64"}
    if headers is not None:
        parts["headers"] = read_headers(headers)
    if destinations:
        parts["destinations"] = list(destinations)
    answer = await client.post("/messages", {**given, **parts, "due_at": due, "force": given["force"] or None})
    as_bytes = "" if "content_type" in parts else " as application/octet-stream, because the body is not JSON"
    echo_json(answer) if as_json else echo(
        f"Published {answer['message_id']}{as_bytes}. `outbox chain {answer['message_id']}` shows its progress."
    )


@click.group(cls=_Listing)
def deliveries() -> None:
    """Lists messages in a PostgreSQL queue, shows why a message waits, and retries, moves or dead-letters it.

    ID is the id that the list shows: `outbox deliveries 17`. Messages in RabbitMQ cannot be listed, because RabbitMQ shows a
    message only by delivering it. Changes skip messages that a worker is handling.
    """


@deliveries.command("list", cls=Command)
@click.option("--queue", required=True, help="Name of the queue.")
@_delivery_filters
@_limit
@json_output
@with_client
async def list_deliveries(client: Client, *, as_json: bool, limit: int, **given: Any) -> None:
    """Lists messages in a queue, in the order in which they are due."""
    answer = await client.page("/deliveries", limit=limit, **given)
    if as_json:
        echo_json(answer)
    elif answer["items"]:
        rows = [
            (
                each["id"],
                each["state"].replace("_", " "),
                age(each["created_at"]),
                _local(each["due_at"]),
                str(each["attempt"]),
                one_line(each["routing_key"]),
                one_line(each["last_error"]["message"] if each["last_error"] else each["preview"]),
            )
            for each in answer["items"]
        ]
        headings = ("ID", "STATE", "CREATED", "DUE", "ATTEMPT", "ROUTING KEY", "ERROR OR BODY")
        echo_table(headings, rows, right=frozenset({"ID", "CREATED", "ATTEMPT"}))
        more = ", more available: raise --limit" if answer["next"] else ""
        echo(f"\n{counted(len(rows), 'message')}{more}.")
    else:
        echo("No messages match.")


@deliveries.command("show", cls=Command)
@click.argument("id_", metavar="ID")
@_reveal
@json_output
@with_client
async def show_delivery(client: Client, id_: str, *, as_json: bool, reveal: bool) -> None:
    """Shows a message in a queue, why it waits, and what happens next."""
    found = await client.get(f"/deliveries/{quote(id_, safe='')}", reveal=reveal or None)
    if as_json:
        echo_json(found)
        return
    holder = found["leased_by"]
    echo(styled(f"Delivery {found['id']}", bold=True), f", {found['state'].replace('_', ' ')}")
    echo(f"  {one_line(found['reason'])}")
    echo_facts(
        [
            ("hint", in_commands(found["hint"] or "")),
            ("queue", one_line(found["queue"])),
            ("routing key", one_line(found["routing_key"])),
            ("message id", found["message_id"]),
            ("trace", found["trace_id"] or ""),
            ("ordering key", one_line(found["ordering_key"] or "")),
            ("created", time_and_age(found["created_at"])),
            ("due", time_and_age(found["due_at"])),
            ("attempt", str(found["attempt"])),
            ("worker", "" if holder is None else f"{holder['name']} ({holder['host']}, process {holder['process_id']})"),
            ("begins in", duration(found["begins_in_seconds"])),
            ("content type", f"{found['content_type'] or 'unknown'}, {found['size']:,} bytes"),
        ]
    )
    if found["failures"]:
        echo_heading("Failed attempts")
        rows = [
            (str(each["attempt"]), age(each["failed_at"]), each["error"]["type"], one_line(each["error"]["message"]))
            for each in found["failures"]
        ]
        echo_table(("ATTEMPT", "FAILED", "ERROR", "MESSAGE"), rows, right=frozenset({"ATTEMPT", "FAILED"}))
        if traceback := found["failures"][-1]["error"]["traceback"]:
            echo()
            echo(indented(traceback))
    _echo_payload(found, reveal=reveal)


@deliveries.command("retry", cls=Command)
@_selecting_deliveries
@with_client
async def retry_deliveries(client: Client, **given: Any) -> int:
    """Makes messages due now that wait for a retry."""
    return await _change_messages(client, "/deliveries/retry", "retry", {}, given)


@deliveries.command("move", cls=Command)
@click.option("--to", type=click.Choice(["front", "back"]), required=True, help="Before or after all messages that are due.")
@_selecting_deliveries
@with_client
async def move_deliveries(client: Client, **given: Any) -> int:
    """Moves messages to the front or the back of their queue."""
    return await _change_messages(client, "/deliveries/move", "move", {"to": given.pop("to")}, given)


@deliveries.command("dead-letter", cls=Command)
@_selecting_deliveries
@with_client
async def dead_letter_deliveries(client: Client, **given: Any) -> int:
    """Dead-letters messages in a queue without another attempt."""
    return await _change_messages(client, "/deliveries/dead-letter", "dead-letter", {}, given)


async def _change_messages(client: Client, path: str, verb: str, change: Mapping[str, Any], given: dict[str, Any]) -> int:
    """Asks for confirmation where needed, makes the change, and prints the outcome. Returns the exit code."""
    ids, as_json, reason = given["ids"], given["as_json"], given["reason"]
    wanted = {name: given[name] for name in _FILTER if given.get(name) is not None}
    if bool(ids) == bool(wanted):
        raise click.UsageError("select messages by ids or by a filter")
    request = {"selector": {"ids": list(ids)} if ids else {"filter": wanted}, "max_items": given["max_items"], **change}
    if given["dry_run"] or not ids:
        plan = await client.post(path, {**request, "dry_run": True})
        if given["dry_run"]:
            echo_json(plan) if as_json else _echo_plan(plan, verb)
            return 0
        if not given["yes"]:
            prompt = "send them now" if verb == "send now" else None
            confirm(verb, plan["count"], "message", lambda: _echo_plan(plan, verb), prompt=prompt)
        request["confirm_token"] = plan["confirm_token"]
    answer = await client.post(path, {**request, "reason": reason})
    if as_json:
        echo_json(answer)
    else:
        for item in answer["items"]:
            if item["outcome"] != "done":
                echo(f"{item['id']}  {item['outcome'].replace('_', ' ')}: {one_line(item['reason'])}")
        echo(f"{counted(answer['counts'].get('done', 0), 'message')} changed.")
    return 0 if answer["counts"].keys() <= {"done"} else 1


def _echo_plan(plan: Mapping[str, Any], verb: str) -> None:
    echo(styled(f"{verb.capitalize()}: {counted(plan['count'], 'message')}", bold=True))
    if plan["sample"]:
        echo(f"  {', '.join(plan['sample'])}{' …' if plan['count'] > len(plan['sample']) else ''}")


def _local(time: str | None) -> str:
    found = parse_time(time)
    return "" if found is None else f"{found.astimezone():%Y-%m-%d %H:%M:%S}"


def _echo_message(message: Mapping[str, Any], *, reveal: bool) -> None:
    echo(styled(f"Message {message['id']}", bold=True), f", {message['state']}")
    echo(f"  {one_line(message['reason'])}")
    echo_facts(
        [
            ("hint", in_commands(message["hint"] or "")),
            ("routing key", one_line(message["routing_key"])),
            ("target queue", one_line(message["target_queue"] or "")),
            ("message id", message["message_id"] or "none yet"),
            ("chain", " → ".join(message["tracking_ids"]) if len(message["tracking_ids"]) > 1 else ""),
            ("trace", message["trace_id"] or ""),
            ("ordering key", one_line(message["ordering_key"] or "")),
            ("created", time_and_age(message["created_at"])),
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
    _echo_payload(message, reveal=reveal)


def _echo_payload(found: Mapping[str, Any], *, reveal: bool) -> None:
    if found["headers"]:
        echo_heading("Headers")
        echo_facts([(one_line(name), one_line(str(value))) for name, value in found["headers"].items()])
    echo_heading("Body" if reveal else "Body, masked (--reveal shows all values)")
    echo(indented(found["body"] or found["body_base64"] or f"<{found['size']:,} bytes, not text>"))
