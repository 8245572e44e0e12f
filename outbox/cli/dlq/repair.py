"""`outbox dlq requeue`, `discard`, `restore` and `purge`: a dry run, a person's confirmation, and the change."""

import base64
import json
import signal
import sys
from collections.abc import Callable, Mapping
from typing import IO, Any

import click

from outbox.cli import options
from outbox.cli.client import ApiError, Client, with_client
from outbox.cli.command import CliError, Command
from outbox.cli.dlq.letters import filtering, take_filter
from outbox.cli.dlq.operations import conclude, follow
from outbox.cli.options import FUTURE_TIME, RETENTION, SECONDS, json_output, setting
from outbox.cli.output import age, counted, echo, echo_facts, echo_json, echo_table, styled
from outbox.dead_letters import CANARY_WAIT

_DRY_RUNS = 5
"""Dry runs for one change that no person looks at: dead letters that fail meanwhile make the one before outdated."""

_common = options.together(
    click.argument("ids", nargs=-1, metavar="[ID]..."),
    filtering,
    click.option("--all", "everything", is_flag=True, help="Every dead letter that it can be done to."),
    click.option("--max-items", type=click.IntRange(min=1), help="At most so many, the oldest."),
    click.option("--reason", help="Why, for the record."),
    click.option("--by", "actor", help="With a database: who does it, for the record.  [default: you]"),
    click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing."),
    click.option("--yes", is_flag=True, help="Do not ask."),
    click.option("--detach", is_flag=True, help="Leave an operation to maintenance instead of running it here."),
    json_output,
)


@click.command(cls=Command)
@click.option("--to-queue", metavar="QUEUE", help="To this queue, which must exist, instead of the original one.")
@click.option("--original-routing", is_flag=True, help="By the routing key, to every queue that is bound for it now.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="So many a second.")
@click.option("--canary", type=click.IntRange(min=1), help="So many first; the rest only when all of those were handled.")
@click.option(
    "--canary-wait",
    type=SECONDS,
    default=f"{CANARY_WAIT.total_seconds():g}",
    show_default=True,
    help="How long to wait for the canary's results at most.",
)
@click.option(
    "--stop-ratio",
    type=click.FloatRange(0, 1),
    help="Stop at a greater failure rate; 1: never.  [default: 0.1, and a canary stops at the first failure]",
)
@click.option(
    "--at",
    "starts_at",
    type=FUTURE_TIME,
    help="Begin then, up to 30 days ahead: 2030-01-31T12:00Z, or 2h for two hours from now.",
)
@click.option("--force", is_flag=True, help="Include messages older than the deduplication window (may run twice).")
@setting("inbox_retention", type=RETENTION, default="30d", help="How long inboxes remember messages.")
@click.option(
    "--body", type=click.File("rb"), help="One dead letter only: with the content of this file as its body; - reads it."
)
@click.option("--headers", type=click.File("r"), help="One dead letter only: with this file's JSON object as its headers.")
@click.option("--version", type=click.IntRange(min=1), help="With --body or --headers: the version that they were made from.")
@_common
@with_client
async def requeue(client: Client, **given: Any) -> int:
    """Sends dead letters again.

    They go through the outbox, with their ids, to their original queue.

    Up to 100 ids are done at once. More, and filters, become an operation, which is run here batch by batch, and can be paused
    and cancelled from elsewhere; if this process ends, maintenance goes on with it, or `outbox dlq resume`.
    """
    queue, canary = given.pop("to_queue"), given.pop("canary")
    wait, original_routing = given.pop("canary_wait"), given.pop("original_routing")
    if queue is not None and original_routing:
        raise click.UsageError("--to-queue and --original-routing exclude each other: give one of them")
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

    They stay, marked as not to be sent again, and `outbox dlq restore` opens them again.
    """
    return await _repair(client, "/discard", {}, given)


@click.command(cls=Command)
@_common
@with_client
async def restore(client: Client, **given: Any) -> int:
    """Opens discarded dead letters again."""
    return await _repair(client, "/restore", {}, given)


@click.command(cls=Command)
@click.option("--force", is_flag=True, help="Also those that were not discarded.")
@_common
@with_client
async def purge(client: Client, **given: Any) -> int:
    """Deletes discarded dead letters.

    They are gone for good, with everything that was known of them. A reason must be given.
    """
    return await _repair(client, "/discard", {"purge": True, "force": given.pop("force") or None}, given)


async def _repair(client: Client, path: str, change: Mapping[str, Any], given: dict[str, Any]) -> int:
    """Asks what a person should be asked, makes the change, follows it to its end, and prints the outcome; the exit code."""
    selector = _selector(given)
    # A filter can mean more than one thinks, and what is purged is gone.
    needs_token = "filter" in selector or bool(change.get("purge"))
    reason, as_json = given["reason"], given["as_json"]
    if change.get("purge") and not given["dry_run"] and not (reason or "").strip():
        raise CliError("purging takes a reason: give one with --reason")
    change = {"selector": selector, "max_items": given["max_items"], **change}
    answer: Any
    if given["dry_run"]:
        plan = await client.post(path, {**change, "dry_run": True})
        echo_json(plan) if as_json else _echo_plan(plan)
        return 0
    if not needs_token:
        answer = await client.post(path, {**change, "reason": reason})
    elif given["yes"]:
        answer = await _repair_unseen(client, path, change, reason)
    else:
        plan = await client.post(path, {**change, "dry_run": True})
        confirm(plan["action"], plan["count"], "dead letter", lambda: _echo_plan(plan))
        answer = await client.post(path, {**change, "reason": reason, "confirm_token": plan["confirm_token"]})
    if "state" in answer and not given["detach"] and not change.get("starts_at"):
        answer = await follow(client, answer, quiet=as_json)
    return conclude(answer, as_json=as_json)


async def _repair_unseen(client: Client, path: str, change: Mapping[str, Any], reason: str | None) -> Any:
    """Makes the change that the API allows after a dry run only, whatever the dry run shows."""
    for left in reversed(range(_DRY_RUNS)):
        plan = await client.post(path, {**change, "dry_run": True})
        try:
            return await client.post(path, {**change, "reason": reason, "confirm_token": plan["confirm_token"]})
        except ApiError as error:
            if error.code != "count_drifted" or not left:
                raise
    raise AssertionError("the last one raises or returns")


def _selector(given: dict[str, Any]) -> Mapping[str, Any]:
    """The dead letters that the options select, as the API takes it. Raises a usage error for none, and for two selections."""
    ids, everything, wanted = given["ids"], given["everything"], take_filter(given)
    if ids and (wanted or everything):
        raise click.UsageError("name dead letters by their ids or by a filter, not by both")
    if everything and wanted:
        raise click.UsageError("--all means every one: leave it out, or the filter")
    if not ids and not wanted and not everything:
        raise click.UsageError("say which: ids such as 17 or outbox-17, a filter such as --group or --queue, or --all")
    return {"ids": list(ids)} if ids else {"filter": wanted}


def _edit(body: IO[bytes] | None, headers: IO[str] | None, version: int | None, ids: tuple[str, ...]) -> Any:
    if body is None and headers is None:
        if version is not None:
            raise click.UsageError("--version goes with --body or --headers")
        return None
    if version is None:
        raise click.UsageError("say with --version which version was edited; `outbox dlq show` names it")
    if len(ids) != 1:
        raise click.UsageError("--body and --headers are for one dead letter, named by its id")
    edit: dict[str, Any] = {"version": version}
    if body is not None:
        edit |= {"body": base64.b64encode(body.read()).decode(), "encoding": "base64"}
    if headers is not None:
        edit["headers"] = read_headers(headers)
    return edit


def read_headers(file: IO[str]) -> dict[str, Any]:
    """The headers in `file`. Raises a usage error for what is no JSON object."""
    try:
        headers = json.load(file)
        json.dumps(headers, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--headers is not JSON: {error}") from error
    if not isinstance(headers, dict):
        raise click.UsageError("--headers is a JSON object of names and values")
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
        echo_table(("THE OLDEST", "FAILED", "QUEUE", "ROUTING KEY", "BODY"), rows, right=frozenset({"FAILED"}))
    if plan["warnings"]:
        echo()
    for warning in plan["warnings"]:
        echo(styled("warning", fg="yellow"), f"  {warning}")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or 'none'} ({number:,})" for name, number in counts.items())


def confirm(action: str, number: int, noun: str, show: Callable[[], None], *, prompt: str | None = None) -> None:
    """Returns if a person types how many they mean; ends the command otherwise, also where there is no terminal to ask in."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"{action} of {counted(number, noun)} would have to be confirmed, and there is no terminal: "
            "look at it with --dry-run, and add --yes"
        )
    show()
    echo()
    if number == 0:
        raise click.exceptions.Exit(0)
    # Ctrl-C ends what waits for a person. An event loop would only note it, until the answer has come.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        typed = click.prompt(
            f"Type {number} to {prompt or f'{action} them'}, anything else to leave them", default="", show_default=False
        )
    finally:
        signal.signal(signal.SIGINT, before)
    if typed.replace(",", "").strip() != str(number):
        echo("Nothing was changed.")
        raise click.exceptions.Exit(1)
