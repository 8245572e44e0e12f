"""`outbox dlq operations`, `pause`, `resume` and `cancel`, and the progress display of an operation."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from outbox.cli.client import Client, UnavailableError, in_commands, with_client
from outbox.cli.command import CliError, Command
from outbox.cli.options import json_output
from outbox.cli.output import age, counted, echo, echo_facts, echo_json, echo_table, overwrite, parse_time, time_and_age
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError

OUTCOMES = (
    "pending",
    "requeued",
    "discarded",
    "restored",
    "purged",
    "skipped",
    "refused",
    "not_found",
    "failed_again",
)
"""Outcomes of a dead letter in a change, in the order of the summary."""
_DONE = frozenset({"requeued", "discarded", "restored", "purged"})
_FAILED = frozenset({"refused", "not_found", "failed_again"})
_NOT_DONE = frozenset({"stopped", "cancelled", "paused"})
"""States of an operation that did not finish its work."""
_WORDS = {"failed_again": "failed again", "not_found": "not found"}
_STATES = {"stopped": "stopped", "cancelled": "was cancelled"}
_PLAIN_EVERY = timedelta(seconds=10)
_MOST_ITEMS = 20
_BAR = 24
"""Width of the progress bar in characters."""

_NUMBERS = click.IntRange(1, 2**63 - 1)
_number = click.argument("number", type=_NUMBERS, metavar="NUMBER")


@click.command(cls=Command)
@click.argument("number", type=_NUMBERS, metavar="[NUMBER]", required=False)
@click.option("--active", is_flag=True, help="Only operations that have not ended.")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="With NUMBER: only dead letters with this outcome.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of lines.")
@json_output
@with_client
async def operations(
    client: Client, number: int | None, *, active: bool, outcome: str | None, limit: int, as_json: bool
) -> None:
    """Lists bulk operations, or shows one.

    The newest come first. With NUMBER, lists each dead letter that was not done, with the reason.
    """
    if number is not None:
        await _show(client, number, outcome, limit, as_json=as_json)
        return
    page = await client.page("/operations", limit=limit, active=active or None)
    if as_json:
        echo_json(page)
        return
    if not page["items"]:
        echo("No active operations." if active else "No operations.")
        return
    rows = []
    for operation in page["items"]:
        counts, results = operation["counts"], operation["results"]
        # A requeued message that failed again has another outcome by now, so requeues count messages sent, not outcomes.
        done = (results and results["sent"]) or sum(number for outcome, number in counts.items() if outcome in _DONE)
        rows.append(
            (
                operation["id"],
                operation["action"],
                operation["state"],
                age(operation["created_at"]),
                f"{operation['item_count']:,}",
                f"{counts.get('pending', 0):,}",
                f"{done:,}",
                # Only a requeue sends messages, so other actions have no results.
                *(f"{results[name]:,}" if results else "-" for name in ("handled", "retrying", "failed_again")),
                operation["requested_by"] or "-",
                operation["stop_reason"] or operation["reason"] or "",
            )
        )
    numbers = ("TOTAL", "LEFT", "DONE", "HANDLED", "RETRYING", "FAILED AGAIN")
    headings = ("NUMBER", "ACTION", "STATE", "CREATED", *numbers, "BY", "REASON")
    echo_table(headings, rows, right=frozenset({"NUMBER", "CREATED", *numbers}))
    if page["next"]:
        echo(f"\n{len(rows):,} shown: raise --limit to see more.")


@click.command(cls=Command)
@_number
@json_output
@with_client
async def pause(client: Client, number: int, *, as_json: bool) -> None:
    """Pauses an operation.

    No process starts another batch of it until it is resumed.
    """
    _echo_changed(await client.post(f"/operations/{number}/pause"), as_json=as_json)


@click.command(cls=Command)
@_number
@click.option("--detach", is_flag=True, help="Let maintenance run it instead of this process.")
@json_output
@with_client
async def resume(client: Client, number: int, *, detach: bool, as_json: bool) -> int:
    """Resumes an operation that was paused, or whose process ended.

    With a database, this process runs batches of it. Other processes may run batches at the same time.
    """
    operation = await client.find(f"/operations/{number}")
    if operation is None or operation["state"] != "running":
        operation = await client.post(f"/operations/{number}/resume")
    if not detach:
        operation = await follow(client, operation, quiet=as_json)
    return await conclude(client, operation, as_json=as_json)


@click.command(cls=Command)
@_number
@json_output
@with_client
async def cancel(client: Client, number: int, *, as_json: bool) -> None:
    """Cancels an operation.

    Completed changes stay, and the other dead letters are unchanged.
    """
    _echo_changed(await client.post(f"/operations/{number}/cancel"), as_json=as_json)


# --- one operation, and lists of them ------------------------------------------------------------------------------------


async def _show(client: Client, number: int, outcome: str | None, limit: int, *, as_json: bool) -> None:
    operation = await client.find(f"/operations/{number}")
    if operation is None:
        raise CliError(f"no operation {number}")
    page = await client.page(f"/operations/{number}/items", limit=limit, outcome=outcome)
    # Failures come first in the list, so that the limit does not cut them off.
    wanted = [item for item in page["items"] if outcome or item["outcome"] not in (*_DONE, "pending")]
    items = sorted(wanted, key=lambda item: item["position"])
    if as_json:
        echo_json(operation | {"items": items})
        return
    _echo_operation(operation)
    selector, options = operation["selector"], dict(operation["options"])
    if "filter" in selector:
        letters = ", ".join(f"{name} {value}" for name, value in selector["filter"].items()) or "all"
    else:
        more = selector["count"] - len(selector["ids"])
        letters = ", ".join(selector["ids"]) + (f" and {more:,} more" if more > 0 else "")
    if canary := options.pop("canary"):
        options["canary"] = f"{canary['count']:,} for {canary['wait_seconds']:g} s"
    given = [name.replace("_", " ") + ("" if value is True else f" {value}") for name, value in options.items() if value]
    echo_facts(
        [
            ("created", time_and_age(operation["created_at"])),
            ("by", operation["requested_by"] or ""),
            ("reason", operation["reason"] or ""),
            ("dead letters", letters),
            ("options", ", ".join(given)),
            ("ended", time_and_age(operation["finished_at"])),
        ]
    )
    if items:
        echo()
        rows = [
            (item["id"], _word(item["outcome"]), _word(item["result"] or "-"), in_commands(item["reason"])) for item in items
        ]
        echo_table(("ID", "OUTCOME", "RESULT", "REASON"), rows)
    if page["next"] and len(items) == len(page["items"]):
        echo(f"\n{len(items):,} shown: raise --limit to see more.")


def _echo_changed(operation: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        echo_json(operation)
    else:
        _echo_operation(operation)


def _echo_operation(operation: Mapping[str, Any]) -> None:
    """Prints the state and the results of an operation."""
    number = operation["id"]
    because = f", because {operation['stop_reason']}" if operation["stop_reason"] else ""
    state = _STATES.get(operation["state"], f"is {operation['state']}")
    starts_at = parse_time(operation["options"]["starts_at"]) if operation["state"] == "running" else None
    if is_later := starts_at is not None and starts_at > datetime.now(UTC):
        state = f"starts at {starts_at.astimezone():%Y-%m-%d %H:%M:%S %z}"
    echo(f"Operation {number} {state}{because}: {_sentence(operation['counts'])}.")
    if (results := operation["results"]) and results["sent"]:
        words = {
            "handled": "handled",
            "waiting": "waiting",
            "retrying": "being retried",
            "failed_again": "dead-lettered or parked again",
            "unknown": "unknown",
        }
        parts = [
            f"{results[name]:,} {'is' if results[name] == 1 else 'are'} {word}" for name, word in words.items() if results[name]
        ]
        echo(f"Of {counted(results['sent'], 'requeued message')}, {', '.join(parts)}.")
    if operation["state"] == "running" and not is_later:
        echo(f"Maintenance continues it. `outbox dlq resume {number}` runs it here.")


def _sentence(counts: Mapping[str, int]) -> str:
    """Formats counts: `28 requeued, 2 not found`."""
    parts = [f"{counts[outcome]:,} {_word(outcome)}" for outcome in OUTCOMES if counts.get(outcome)]
    return ", ".join(parts) or "nothing to do"


def _word(outcome: str) -> str:
    return _WORDS.get(outcome, outcome.replace("_", " "))


# --- progress and outcome ------------------------------------------------------------------------------------------------


async def follow(client: Client, operation: Mapping[str, Any], *, quiet: bool) -> Mapping[str, Any]:
    """Shows the progress of `operation` until it ends or is paused; with a database, runs batches of it in this process.

    Retries while the service, database or broker is unavailable. Cancellation, as by Ctrl-C, leaves the operation running.
    """
    progress = Progress(quiet=quiet)
    progress.begin(operation)
    try:
        while operation["state"] == "running":
            worked = 0
            try:
                worked = await client.run_batch(int(operation["id"]))
                operation = await client.get(f"/operations/{operation['id']}")
            except (BrokerUnavailableError, DatabaseUnavailableError, UnavailableError) as error:
                progress.waiting_for(error)
            progress.show(operation)
            if not worked and operation["state"] == "running":
                await asyncio.sleep(client.poll_interval.total_seconds())
    except asyncio.CancelledError:
        progress.leave(operation)
        raise
    progress.end()
    return operation


async def conclude(client: Client, answer: Mapping[str, Any], *, as_json: bool) -> int:
    """Prints the outcome of an immediate change or an operation. Returns the exit code."""
    is_operation = "state" in answer
    failed = any(answer["counts"].get(outcome) for outcome in _FAILED)
    if answer["counts"].get("skipped") and not failed:
        items = (
            (await client.page(f"/operations/{answer['id']}/items", outcome="skipped", limit=answer["item_count"]))["items"]
            if is_operation
            else [item for item in answer["items"] if item["outcome"] == "skipped"]
        )
        failed = not all(item.get("done_already") for item in items)
    if as_json:
        echo_json(answer)
    elif is_operation:
        _echo_operation(answer)
        if failed or answer["counts"].get("skipped"):
            echo(f"`outbox dlq operations {answer['id']}` shows the reasons.")
    else:
        items = answer["items"]
        if len(items) > _MOST_ITEMS:  # of a long list, only the items that were not done
            items = [item for item in items if item["outcome"] not in _DONE]
        if items:
            echo_table(
                ("ID", "OUTCOME", "REASON"),
                [(item["id"], _word(item["outcome"]), in_commands(item["reason"])) for item in items],
            )
            echo()
        echo(f"{_sentence(Counter(item['outcome'] for item in answer['items']))}.")
    return 1 if failed or (is_operation and answer["state"] in _NOT_DONE) else 0


class Progress:
    """Prints progress to standard error: a bar in a terminal, otherwise a line every ten seconds."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._printed_at = time.monotonic()
        self._printed: set[str] = set()

    def begin(self, operation: Mapping[str, Any]) -> None:
        """Prints the operation and how to stop it."""
        number, total = operation["id"], counted(operation["item_count"], "dead letter")
        self._line(
            f"Operation {number}: {operation['action']} of {total}. "
            f"`outbox dlq pause {number}` pauses it; Ctrl-C leaves it to maintenance."
        )

    def show(self, operation: Mapping[str, Any]) -> None:
        """Prints the progress."""
        share, speed = operation["progress"], operation["items_per_second"]
        text = f"{share:4.0%}  {operation['settled_count']:,} of {operation['item_count']:,}"
        if speed and operation["canary_started_at"] is None:
            text += f"  {speed:,.0f}/s"
        until, failed = parse_time(operation["canary_ends_at"]), operation["results"]["failed"] if operation["results"] else 0
        left = 0.0 if until is None else (until - datetime.now(UTC)).total_seconds()
        if left > 0:
            text += f"  waiting for the canary's results, {left:.0f} s at most"
        if failed:
            text += f"  {failed:,} failed"
        if self._terminal and not self._quiet:
            overwrite(f"[{'#' * int(share * _BAR):.<{_BAR}}] {text}")
        elif time.monotonic() - self._printed_at >= _PLAIN_EVERY.total_seconds():
            self._printed_at = time.monotonic()
            self._line(text)

    def waiting_for(self, error: Exception) -> None:
        """Prints the error that the operation waits for; each error once."""
        if str(error) not in self._printed:
            self._printed.add(str(error))
            self.end()
            self._line(f"waiting: {error}")

    def leave(self, operation: Mapping[str, Any]) -> None:
        """Prints that the operation continues without this process."""
        self.end()
        number = operation["id"]
        self._line(f"Operation {number} is still running. Maintenance continues it; `outbox dlq resume {number}` runs it here.")

    def end(self) -> None:
        """Clears the bar."""
        if self._terminal and not self._quiet:
            overwrite("")

    def _line(self, text: str) -> None:
        if not self._quiet:
            echo(text, err=True)
