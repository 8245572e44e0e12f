"""`outbox dlq requeue`, `discard`, `restore` and `purge`: dry run, confirmation, and change."""

import base64
import json
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import IO, Any

import click

from outbox.cli import options
from outbox.cli.client import ApiError, Client, in_commands, with_client
from outbox.cli.command import CliError, Command
from outbox.cli.dlq.letters import filter_options, take_filter
from outbox.cli.dlq.operations import conclude, follow
from outbox.cli.options import FUTURE_TIME, RETENTION, SECONDS, json_output, setting
from outbox.cli.output import age, counted, echo, echo_facts, echo_json, echo_table, styled
from outbox.dead_letters import CANARY_WAIT

_DRY_RUNS = 5
"""Maximum dry runs for a change with `--yes`. New dead letters invalidate the confirmation token of the previous one."""

_common = options.combine(
    click.argument("ids", nargs=-1, metavar="[ID]..."),
    filter_options,
    click.option("--all", "everything", is_flag=True, help="Select every dead letter to which this can be done."),
    click.option("--max-items", type=click.IntRange(min=1), help="Maximum number of dead letters; the oldest are selected."),
    click.option("--reason", help="Reason, recorded in the audit log."),
    click.option("--by", "actor", help="With a database: your name in the audit log.  [default: your user name]"),
    click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing."),
    click.option("--yes", is_flag=True, help="Do not ask for confirmation."),
    click.option("--detach", is_flag=True, help="Let maintenance run the operation instead of this process."),
    json_output,
)


@click.command(cls=Command)
@click.option("--to-queue", metavar="QUEUE", help="Send to this existing queue instead of the original queue.")
@click.option("--original-routing", is_flag=True, help="Publish by routing key to all queues bound now.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Messages per second.")
@click.option("--canary", type=click.IntRange(min=1), help="Requeue this many first, the rest after they were handled.")
@click.option(
    "--canary-wait",
    type=SECONDS,
    default=f"{CANARY_WAIT.total_seconds():g}",
    show_default=True,
    help="Maximum wait for the canary's results.",
)
@click.option(
    "--stop-ratio",
    type=click.FloatRange(0, 1),
    help="Stop above this failure rate; 1: never.  [default: 0.1; a canary stops at its first failure]",
)
@click.option(
    "--at",
    "starts_at",
    type=FUTURE_TIME,
    help="Start time, up to 30 days ahead: 2030-01-31T12:00Z, or 2h for two hours from now.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Include messages older than the deduplication window (may run twice), and an edit that consumers would reject.",
)
@setting("inbox_retention", type=RETENTION, default="30d", help="Deduplication window: how long inboxes remember messages.")
@click.option("--body", type=click.File("rb"), help="For one dead letter: file with the new body; - reads standard input.")
@click.option("--headers", type=click.File("r"), help="For one dead letter: file with the new headers, a JSON object.")
@click.option("--version", type=click.IntRange(min=1), help="With --body or --headers: the version that you edited.")
@_common
@with_client
async def requeue(client: Client, **given: Any) -> int:
    """Requeues dead letters.

    They keep their ids and go through the outbox to their original queue.

    Up to 100 ids are requeued immediately. More ids, and filters, create a bulk operation. This process runs it in batches;
    other processes can pause and cancel it. If this process ends, maintenance or `outbox dlq resume` continues it.
    """
    queue, canary = given.pop("to_queue"), given.pop("canary")
    wait, original_routing = given.pop("canary_wait"), given.pop("original_routing")
    if queue is not None and original_routing:
        raise click.UsageError("--to-queue and --original-routing cannot be combined: use one of them")
    if given["starts_at"] is not None and given["starts_at"] < datetime.now(UTC):
        raise click.UsageError("--at has passed: leave it out to start now")
    change = {
        "destination": "original_routing" if original_routing else None if queue is None else {"queue": queue},
        "edit": _edit(given.pop("body"), given.pop("headers"), given.pop("version"), given["ids"]),
        "rate_per_second": given.pop("rate"),
        "canary": None if canary is None else {"count": canary, "wait_seconds": wait.total_seconds()},
        "stop_on_failure_ratio": given.pop("stop_ratio"),
        "starts_at": given.pop("starts_at"),
        "force": given.pop("force") or None,
    }
    return await _repair(client, "/requeue", change, given)


@click.command(cls=Command)
@_common
@with_client
async def discard(client: Client, **given: Any) -> int:
    """Discards dead letters.

    They are kept but not sent again. `outbox dlq restore` reopens them.
    """
    return await _repair(client, "/discard", {}, given)


@click.command(cls=Command)
@_common
@with_client
async def restore(client: Client, **given: Any) -> int:
    """Reopens discarded dead letters."""
    return await _repair(client, "/restore", {}, given)


@click.command(cls=Command)
@click.option("--force", is_flag=True, help="Include dead letters that were not discarded.")
@_common
@with_client
async def purge(client: Client, **given: Any) -> int:
    """Deletes discarded dead letters.

    The dead letters and their history are deleted permanently. --reason is required.
    """
    return await _repair(client, "/discard", {"purge": True, "force": given.pop("force") or None}, given)


async def _repair(client: Client, path: str, change: Mapping[str, Any], given: dict[str, Any]) -> int:
    """Asks for confirmation where needed, makes the change, follows it, and prints the outcome. Returns the exit code."""
    selector = _selector(given)
    # The API requires a dry run first where a mistake is easy or final: for filters, and for purges.
    needs_token = "filter" in selector or bool(change.get("purge"))
    reason, as_json = given["reason"], given["as_json"]
    if change.get("purge") and not given["dry_run"] and not (reason or "").strip():
        raise CliError("purge requires a reason: give --reason")
    change = {"selector": selector, "max_items": given["max_items"], **change}
    answer: Any
    if given["dry_run"]:
        plan = await client.post(path, {**change, "dry_run": True})
        echo_json(plan) if as_json else _echo_plan(plan)
        return 0
    if not needs_token:
        answer = await client.post(path, {**change, "reason": reason})
    elif given["yes"]:
        answer = await _repair_without_prompt(client, path, change, reason)
        if answer.get("count") == 0:
            echo_json(answer) if as_json else echo("No dead letter matches. Nothing was changed.")
            return 0
    else:
        plan = await client.post(path, {**change, "dry_run": True})
        confirm(plan["action"], plan["count"], "dead letter", lambda: _echo_plan(plan))
        answer = await client.post(path, {**change, "reason": reason, "confirm_token": plan["confirm_token"]})
    if "state" in answer and not given["detach"] and not change.get("starts_at"):
        answer = await follow(client, answer, quiet=as_json)
    return await conclude(client, answer, as_json=as_json)


async def _repair_without_prompt(client: Client, path: str, change: Mapping[str, Any], reason: str | None) -> Any:
    """Makes a change that requires a dry run without showing the dry run, which is the answer if a filter matches nothing."""
    for left in reversed(range(_DRY_RUNS)):
        plan = await client.post(path, {**change, "dry_run": True})
        if plan["count"] == 0 and "filter" in change["selector"]:
            return plan
        try:
            return await client.post(path, {**change, "reason": reason, "confirm_token": plan["confirm_token"]})
        except ApiError as error:
            # More messages may have failed between the dry run and the change. `--yes` means these as well.
            if error.code != "count_drifted" or not left:
                raise
    raise AssertionError("the last attempt returns or raises")


def _selector(given: dict[str, Any]) -> Mapping[str, Any]:
    """Builds the API's selector from the options. Raises a usage error unless they make exactly one selection."""
    ids, everything, wanted = given["ids"], given["everything"], take_filter(given)
    if ids and (wanted or everything):
        raise click.UsageError("select dead letters by ids or by a filter, not both")
    if everything and wanted:
        raise click.UsageError("--all cannot be combined with a filter")
    if not ids and not wanted and not everything:
        raise click.UsageError("nothing selected: give ids such as 17 or outbox-17, a filter such as --group, or --all")
    return {"ids": list(ids)} if ids else {"filter": wanted}


def _edit(body: IO[bytes] | None, headers: IO[str] | None, version: int | None, ids: tuple[str, ...]) -> Any:
    if body is None and headers is None:
        if version is not None:
            raise click.UsageError("--version requires --body or --headers")
        return None
    if version is None:
        raise click.UsageError("--body and --headers require --version, which `outbox dlq show` prints")
    if len(ids) != 1:
        raise click.UsageError("--body and --headers require exactly one id")
    edit: dict[str, Any] = {"version": version}
    if body is not None:
        # In base64, so that bytes which are not text survive in JSON.
        edit |= {"body": base64.b64encode(body.read()).decode(), "encoding": "base64"}
    if headers is not None:
        edit["headers"] = read_headers(headers)
    return edit


def read_headers(file: IO[str]) -> dict[str, Any]:
    """Reads headers from a file. Raises a usage error if it is not a JSON object."""
    try:
        headers = json.load(file)
        json.dumps(headers, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--headers is not JSON: {error}") from error
    if not isinstance(headers, dict):
        raise click.UsageError("--headers must be a JSON object of names and values")
    return headers


# --- dry runs ------------------------------------------------------------------------------------------------------------


def _echo_plan(plan: Mapping[str, Any]) -> None:
    echo(styled(f"{plan['action'].capitalize()} of {counted(plan['count'], 'dead letter')}", bold=True))
    echo_facts([("queues", _counts(plan["by_queue"])), ("errors", _counts(plan["by_exception"]))])
    if plan["sample"]:
        echo()
        rows = [
            (letter["id"], age(letter["failed_at"]), letter["queue"] or "-", letter["routing_key"], letter["preview"])
            for letter in plan["sample"]
        ]
        echo_table(("OLDEST", "FAILED", "QUEUE", "ROUTING KEY", "BODY"), rows, right=frozenset({"FAILED"}))
    if plan["warnings"]:
        echo()
    for warning in plan["warnings"]:
        echo(styled("warning", fg="yellow"), f"  {in_commands(warning)}")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or 'none'} ({number:,})" for name, number in counts.items())


def confirm(action: str, number: int, noun: str, show: Callable[[], None], *, prompt: str | None = None) -> None:
    """Asks the user to type the number of items. Ends the command if the answer differs or there is no terminal."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"{action} of {counted(number, noun)} needs confirmation, and there is no terminal: "
            "review it with --dry-run, then add --yes"
        )
    show()
    echo()
    if number == 0:
        raise click.exceptions.Exit(0)
    # asyncio.run replaces the SIGINT handler by one that only cancels the task, which cannot interrupt a blocking prompt.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        typed = click.prompt(
            f"Type {number} to {prompt or f'{action} them'}, anything else to cancel", default="", show_default=False
        )
    finally:
        signal.signal(signal.SIGINT, before)
    if typed.replace(",", "").strip() != str(number):
        echo("Nothing was changed.")
        raise click.exceptions.Exit(1)
