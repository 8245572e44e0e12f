"""`outbox dlq list`, `show`, `groups`, `group`, `mark` and `policy`, and the filter options for dead letters."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import click

from outbox.cli import options
from outbox.cli.client import Client, with_client
from outbox.cli.command import CliError, Command
from outbox.cli.options import PAST_TIME, json_output
from outbox.cli.output import (
    age,
    count,
    counted,
    echo,
    echo_bytes,
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
from outbox.core.destinations import DEFAULT
from outbox.dead_letters import DeadLetterStatus, Source
from outbox.dead_letters.policies import MOST_PER_HOUR
from outbox.dead_letters.reader import GroupStatus

_BODY_LIMIT = 4_000
"""Maximum number of characters of a body that `show` prints; `--body` prints all."""
_HIDDEN = "<hidden: too large or binary, so it cannot be masked>"

filter_options = options.combine(
    click.option("--queue", help="Only of this queue."),
    click.option("--routing-key", help="Only with this routing key."),
    click.option(
        "--exception", "exception_type", metavar="TYPE", help="Only with this exception type, as `outbox dlq list` prints it."
    ),
    click.option("--group", "group_id", metavar="ID", help="Only of this group; `outbox dlq groups` lists the ids."),
    click.option("--source", type=click.Choice([each.value for each in Source]), help="Only dead-lettered by this component."),
    click.option("--status", type=click.Choice([each.value for each in DeadLetterStatus]), help="Only with this status."),
    click.option("--tracking-id", metavar="ID", help="Only of the chain that contains this id."),
    click.option("--message-id", metavar="ID", help="Only with this message id."),
    click.option("--failed-after", type=PAST_TIME, help="Only failed at or after this time: 2030-01-31T12:00Z, or 2h (ago)."),
    click.option("--failed-before", type=PAST_TIME, help="Only failed before this time."),
    click.option("--min-failures", type=click.IntRange(min=1), help="Only with at least this many failures."),
    click.option("--destination", metavar="NAME", help="Only parked by a relay of this destination, such as default."),
    click.option("--search", "q", metavar="WORDS", help='Only with these words in error or body; "phrases", or, -not.'),
)
"""One option for each filter of the API. Each parameter has the name of the API's filter."""
_FILTERS = (
    "queue", "routing_key", "exception_type", "group_id", "source", "status", "tracking_id", "message_id", "failed_after",
    "failed_before", "min_failures", "destination", "q",
)  # fmt: skip


def take_filter(given: dict[str, Any]) -> Mapping[str, Any]:
    """Removes the options of `filter_options` from `given` and returns them as a filter of the API."""
    values = {name: given.pop(name) for name in _FILTERS}
    return {name: value for name, value in values.items() if value is not None}


@click.command(name="list", cls=Command)
@filter_options
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="Maximum number of dead letters.")
@click.option("--oldest", is_flag=True, help="List the oldest failures first.")
@json_output
@with_client
async def list_(client: Client, *, limit: int, oldest: bool, as_json: bool, **given: Any) -> None:
    """Lists dead letters and parked messages.

    The latest failures come first. Only open ones are listed, unless --status is given. FAILURES counts failed attempts.
    """
    wanted = take_filter(given)
    page = await client.page("/dlq", limit=limit, sort="oldest" if oldest else "newest", total=True, **wanted)
    if as_json:
        echo_json(page)
        return
    if not page["items"]:
        filtered = " match the filter" if wanted.keys() - {"status"} else ""
        echo(f"No {wanted.get('status', DeadLetterStatus.OPEN)} dead letters{filtered}.")
        return
    headings = ("ID", "STATUS", "FAILED", "FAILURES", "QUEUE", "ROUTING KEY", "ERROR")
    rows = [
        (
            letter["id"],
            letter["status"],
            age(letter["failed_at"]),
            f"{letter['failure_count']:,}",
            letter["queue"] or "-",
            letter["routing_key"],
            _error(letter["error"]),
        )
        for letter in page["items"]
    ]
    echo_table(headings, rows, right=frozenset({"FAILURES", "FAILED"}))
    total, shown = page["total"], len(page["items"])
    noun = "dead letter" if total["value"] == 1 else "dead letters"
    echo(f"\n{count(total).capitalize()} {noun}{f', {shown:,} shown: raise --limit to see more' if page['next'] else ''}.")


@click.command(cls=Command)
@click.option(
    "--by",
    "group_by",
    type=click.Choice(["fingerprint", "queue", "routing_key"]),
    default="fingerprint",
    show_default=True,
    help="What to group by.",
)
@click.option(
    "--group-status",
    type=click.Choice([each.value for each in GroupStatus]),
    multiple=True,
    help="Only groups with this status. May be repeated.",
)
@filter_options
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Maximum number of groups.")
@json_output
@with_client
async def groups(
    client: Client, *, group_by: str, group_status: Sequence[str], limit: int, as_json: bool, **given: Any
) -> None:
    """Counts dead letters with similar failures.

    The largest group comes first. Only open dead letters count, unless --status is given.

    REQUEUED is the time of the last requeue in the group, SINCE the number of dead letters that failed after it.
    """
    wanted = take_filter(given)
    statuses = list(group_status) or None
    answer = await client.get("/dlq/groups", by=group_by, limit=limit, group_status=statuses, **wanted)
    if as_json:
        echo_json(answer)
        return
    if not answer["items"]:
        echo(f"No {wanted.get('status', DeadLetterStatus.OPEN)} dead letters.")
        return
    numbers = ("COUNT", "FIRST", "LAST", "REQUEUED", "SINCE")
    by_error = group_by == "fingerprint"
    headings = ("GROUP", "STATUS", "QUEUE", *numbers, "ERROR") if by_error else (group_by.replace("_", " ").upper(), *numbers)
    rows = [
        (
            group["id"] or "-",
            *([group["status"], group["queue"] or "-"] if by_error else []),
            f"{group['count']:,}",
            age(group["first_seen_at"]),
            age(group["last_seen_at"]),
            age(group["last_requeued_at"]) or "never",
            f"{group['count_since_requeue']:,}",
            *([group["title"]] if by_error else []),
        )
        for group in answer["items"]
    ]
    echo_table(headings, rows, right=frozenset(numbers))
    if answer["truncated"]:
        echo(f"\n{len(rows):,} shown: raise --limit or narrow the filter to see more.")


@click.command(cls=Command)
@click.argument("id_", metavar="GROUP")
@json_output
@with_client
async def group(client: Client, id_: str, *, as_json: bool) -> None:
    """Shows a group of dead letters with similar failures.

    GROUP is an id that `outbox dlq groups` lists.
    """
    found = await client.find(f"/dlq/groups/{quote(id_, safe='')}")
    if found is None:
        raise CliError(f"no group {id_}, or all of its dead letters were deleted")
    if as_json:
        echo_json(found)
        return
    echo_facts(
        [
            ("group", found["id"]),
            ("error", found["title"]),
            ("status", _status_of(found)),
            ("requeue policy", _policy_of(found)),
            ("queue", found["queue"]),
            ("handler", ", ".join(found["handlers"])),
            ("dead letters", f"{found['count']:,}, {found['open_count']:,} open"),
            ("first seen", age(found["first_seen_at"])),
            ("last seen", age(found["last_seen_at"])),
            ("last requeued", age(found["last_requeued_at"])),
            ("sample", found["sample_id"]),
            ("note", (found["note"] or {}).get("text", "")),
        ]
    )
    rows = [
        (each["service_version"], f"{each['count']:,}", age(each["first_failed_at"]), age(each["last_failed_at"]))
        for each in found["versions"]
    ]
    if rows:
        echo()
        echo_table(("VERSION", "COUNT", "FIRST", "LAST"), rows, right=frozenset({"COUNT", "FIRST", "LAST"}))


def _policy_of(group: Mapping[str, Any]) -> str:
    policy = group["requeue_policy"]
    if policy is None:
        return ""
    said = f"up to {policy['per_hour']:,} per hour, set by {policy['set_by']} {age(policy['set_at'])}"
    if policy["stopped_at"] is not None:
        return f"stopped {age(policy['stopped_at'])}: {policy['stopped_because']}; was {said}"
    return said if policy["operation_id"] is None else f"{said}; operation {policy['operation_id']} {age(policy['started_at'])}"


def _status_of(group: Mapping[str, Any]) -> str:
    mark = group["mark"]
    if mark is None:
        return str(group["status"])
    said = f"fixed in {mark['fixed_in']}" if mark["fixed_in"] else str(mark["marked_as"])
    if mark["muted_above"] is not None:
        said += f" up to {mark['muted_above']:,} open"
    by = f"marked as {said} by {mark['marked_by']} {age(mark['marked_at'])}"
    since = f", {mark['count_since']:,} failed since" if mark["count_since"] else ""
    return f"{group['status']}: {by}{since}"


@click.command(cls=Command)
@click.argument("id_", metavar="GROUP")
@click.argument("status", type=click.Choice(["fixed", "muted", "open"]))
@click.option("--in", "fixed_in", metavar="VERSION", help="With fixed: the release of your service that contains the fix.")
@click.option("--above", "muted_above", type=click.IntRange(min=1), help="With muted: reopen above this number of open ones.")
@with_client
async def mark(client: Client, id_: str, status: str, *, fixed_in: str | None, muted_above: int | None) -> None:
    """Marks a group of dead letters as fixed or muted, or removes the mark.

    A fixed group is reopened by a new failure, and a muted group by more open dead letters than --above.
    """
    wanted: dict[str, Any] = {"id": id_, "status": status, "fixed_in": fixed_in, "muted_above": muted_above}
    await client.put("/dlq/groups/status", {name: value for name, value in wanted.items() if value is not None})
    echo(f"{id_} marked as {status}." if status != "open" else f"Mark of {id_} removed.")


@click.command(cls=Command)
@click.argument("id_", metavar="GROUP")
@click.option("--per-hour", type=click.IntRange(1, MOST_PER_HOUR), help="Maximum number to requeue per hour.")
@click.option("--off", is_flag=True, help="Remove the policy.")
@with_client
async def policy(client: Client, id_: str, *, per_hour: int | None, off: bool) -> None:
    """Requeues the open dead letters of a group automatically, up to a limit per hour, until one fails again.

    Maintenance requeues once an hour, oldest first. It sends one message first, and the rest after that one was handled. If a
    message fails again, or the operation is cancelled, the policy stops. Set it again to restart it.
    """
    if off == (per_hour is not None):
        raise click.UsageError("give a limit, such as --per-hour 100, or --off")
    await client.put("/dlq/groups/policy", {"id": id_, "per_hour": per_hour})
    echo(f"Requeue policy of {id_} removed." if off else f"Up to {per_hour:,} dead letters of {id_} are requeued per hour.")


@click.command(cls=Command)
@click.argument("id_", metavar="ID")
@click.option("--reveal", is_flag=True, help="Show masked values. The audit log records it.")
@click.option("--body", "only_body", is_flag=True, help="Print only the unmasked body, for editing and requeueing.")
@json_output
@with_client
async def show(client: Client, id_: str, *, reveal: bool, only_body: bool, as_json: bool) -> None:
    """Shows a dead letter: its message, with secrets masked, and every recorded failure."""
    path = f"/dlq/{quote(id_, safe='')}"
    found: Any = await (client.download(f"{path}/body", reveal=True) if only_body else client.find(path, reveal=reveal or None))
    if found is None:
        raise CliError(f"no dead letter {id_}: it was purged or sent, or never existed")
    if only_body:
        echo_bytes(found)
        return
    if as_json:
        echo_json(found)
        return
    echo(styled(f"Dead letter {found['id']}", bold=True), f", {found['status']}, dead-lettered by the {found['source']}")
    echo_facts(_facts(found))
    echo_heading("Error")
    echo(indented(_error(found["error"])))
    if found["error"]["traceback"]:
        echo()
        echo(indented(found["error"]["traceback"]))
    if failures := found["failures"]:
        echo_heading(f"{counted(len(failures), 'failure')} on record{', oldest first' if len(failures) > 1 else ''}")
        for failure in failures:
            at = parse_time(failure["failed_at"])
            when = "" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}  "
            worker = f"  [{failure['worker']}]" if failure["worker"] else ""
            echo(f"  {when}attempt {failure['attempt']}  {one_line(_error(failure['error']))}{worker}")
    if found["headers"]:
        echo_heading("Headers")
        echo(indented(_pretty(found["headers"])))
    echo_heading("Body" if found["revealed"] else "Body, masked (--reveal shows all values)")
    echo(indented(_body(found["id"], found["body"])))


def _facts(letter: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    first, last = letter["first_failed_at"], letter["failed_at"]
    editions, tracking_ids = letter["editions"], letter["tracking_ids"]
    dead_lettered, requeues = letter["dead_letter_count"], letter["requeue_count"]
    history = f"dead-lettered {times(dead_lettered)}, requeued {times(max(requeues, dead_lettered - 1))}"
    by = f" by {letter['resolved_by']}" if letter["resolved_by"] else ""
    why = f": {letter['resolution_reason']}" if letter["resolution_reason"] else ""
    return [
        ("queue", letter["queue"]),
        ("routing key", letter["routing_key"]),
        ("destination", letter["destination"] if letter["destination"] not in (None, DEFAULT) else ""),
        ("message id", letter["message_id"] or "none"),
        ("chain", " → ".join(tracking_ids) if len(tracking_ids) > 1 else ""),
        ("trace", letter["trace_id"] or ""),
        ("ordering key", letter["ordering_key"] or ""),
        ("content type", f"{letter['content_type'] or 'unknown'}, {letter['size']:,} bytes"),
        ("created", time_and_age(letter["created_at"])),
        ("first failed", time_and_age(first) if first != last else ""),
        ("failed", time_and_age(last)),
        ("reason", f"{letter['reason']}, in attempt {letter['attempt']}"),
        ("worker", letter["worker"]),
        ("history", history if dead_lettered != 1 or requeues else ""),
        ("group", letter["group_id"]),
        ("version", f"{letter['version']}" + (f", {len(editions)} replaced by edits" if editions else "")),
        # An open dead letter with a time of resolution was requeued and failed again.
        (
            "requeued" if letter["status"] == "open" else letter["status"],
            f"{time_and_age(letter['resolved_at'])}{by}{why}" if letter["resolved_at"] else "",
        ),
    ]


def _error(error: Mapping[str, Any]) -> str:
    return f"{error['type']}: {error['message']}" if error["message"] else str(error["type"])


def _body(id_: str, body: Mapping[str, Any]) -> str:
    command = f"`outbox dlq show {id_} --body` prints"
    text = body["content"]
    if text is None:
        return _HIDDEN
    if body["encoding"] == "base64":
        return f"<{body['size']:,} bytes, not text: {command} them>"
    with suppress(ValueError, RecursionError):
        text = _pretty(json.loads(text))
    if len(text) <= _BODY_LIMIT:
        return text or "<empty>"
    return f"{text[:_BODY_LIMIT]}\n… and {len(text) - _BODY_LIMIT:,} more characters: {command} all"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
