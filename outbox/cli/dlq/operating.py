"""`outbox dlq operations`, `pause`, `resume` and `cancel`."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from outbox.cli.command import Command, Sentence
from outbox.cli.dlq.encoding import as_json as encoded
from outbox.cli.dlq.encoding import echo_json
from outbox.cli.dlq.filters import json_output, places
from outbox.cli.dlq.following import conclude, echo_outcome, follow
from outbox.cli.dlq.places import run
from outbox.cli.dlq.port import Letters
from outbox.cli.dlq.tables import ago, at, echo_facts, echo_table
from outbox.cli.printing import echo, one_line
from outbox.dead_letters import Action, ItemOutcome, Operation, OperationItem, OperationState
from outbox.dead_letters.actions import encode_options

_NUMBERS = click.IntRange(1, 2**63 - 1)
_number = click.argument("number", type=_NUMBERS, metavar="NUMBER")


@click.command(cls=Command)
@click.argument("number", type=_NUMBERS, metavar="[NUMBER]", required=False)
@click.option("--going-on", is_flag=True, help="Only those that have not ended.")
@click.option(
    "--outcome", type=click.Choice([outcome.value for outcome in ItemOutcome]), help="With NUMBER: only these letters."
)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many lines.")
@json_output
@places
def operations(number: int | None, *, going_on: bool, outcome: str | None, limit: int, as_json: bool, **given: Any) -> None:
    """Lists operations, or shows one of them.

    The newest come first. Of one it shows what came of its letters, of those that were not simply done.
    """
    if number is not None:
        _one(number, None if outcome is None else ItemOutcome(outcome), limit, given, as_json=as_json)
        return

    async def read(dead_letters: Letters) -> Sequence[Operation]:
        return await dead_letters.operations(going_on=going_on, limit=limit)

    found = run(given, read)
    if as_json:
        echo_json(found)
    elif found:
        _echo_lines(found)
    else:
        echo("No operations go on." if going_on else "There were no operations.")


@click.command(cls=Command)
@_number
@json_output
@places
def pause(number: int, *, as_json: bool, **given: Any) -> None:
    """Holds an operation.

    No further batch of it begins, wherever it is run, until it is resumed.
    """

    async def hold(dead_letters: Letters) -> Operation:
        return await dead_letters.pause(number)

    _say(run(given, hold), as_json=as_json)


@click.command(cls=Command)
@_number
@click.option("--detach", is_flag=True, help="Leave it to maintenance instead of doing it here.")
@json_output
@places
def resume(number: int, *, detach: bool, as_json: bool, **given: Any) -> None:
    """Goes on with an operation.

    With one that was paused, or whose process has ended. It is done here, batch by batch, beside whoever else does it.
    """

    async def go_on(dead_letters: Letters) -> Operation:
        found = await dead_letters.operation(number)
        if found is None or found.state is not OperationState.RUNNING:
            found = await dead_letters.resume(number)
        return found if detach else await follow(dead_letters, found, quiet=as_json)

    sys.exit(conclude(run(given, go_on), as_json=as_json))


@click.command(cls=Command)
@_number
@json_output
@places
def cancel(number: int, *, as_json: bool, **given: Any) -> None:
    """Ends an operation.

    What is done stays done, and the rest is as it was.
    """

    async def end(dead_letters: Letters) -> Operation:
        return await dead_letters.cancel(number)

    _say(run(given, end), as_json=as_json)


def _one(number: int, outcome: ItemOutcome | None, limit: int, given: dict[str, Any], *, as_json: bool) -> None:
    async def read(dead_letters: Letters) -> tuple[Operation | None, Sequence[OperationItem]]:
        wanted = [outcome] if outcome else [each for each in ItemOutcome if each not in (ItemOutcome.DONE, ItemOutcome.PENDING)]
        items = [item for each in wanted for item in await dead_letters.operation_items(number, outcome=each, limit=limit)]
        return await dead_letters.operation(number), sorted(items, key=lambda item: item.position)[:limit]

    found, items = run(given, read)
    if found is None:
        raise Sentence(f"there is no operation {number}")
    if as_json:
        echo_json(encoded(found) | {"items": [encoded(item.item) | _result(item) for item in items]})
        return
    echo_outcome(found)
    echo_facts(_facts(found))
    if items:
        echo()
        rows = [(item.item.id, item.item.outcome.value, item.result or "-", one_line(item.item.reason)) for item in items]
        echo_table(("ID", "OUTCOME", "RESULT", "WHY"), rows)


def _result(item: OperationItem) -> dict[str, Any]:
    return {"result": item.result, "failed_attempts": item.failed_attempts}


def _facts(operation: Operation) -> list[tuple[str, str]]:
    return [
        ("asked for", at(operation.created_at)),
        ("by", operation.requested_by or ""),
        ("reason", operation.reason or ""),
        ("letters", _words(operation.selector)),
        ("options", encode_options(operation.options)),
        ("ended", at(operation.finished_at)),
    ]


def _words(selector: Any) -> str:
    if "filter" in selector:
        return ", ".join(f"{name} {value}" for name, value in selector["filter"].items()) or "all"
    named = ", ".join(selector["ids"])
    more = selector["count"] - len(selector["ids"])
    return f"{named} and {more:,} more" if more > 0 else named


def _echo_lines(found: Sequence[Operation]) -> None:
    rows = [
        (
            str(operation.id),
            operation.action.value,
            operation.state.value,
            ago(operation.created_at),
            f"{operation.total:,}",
            f"{operation.pending:,}",
            f"{operation.results.sent or operation.counts.get(ItemOutcome.DONE, 0):,}",
            *_results(operation),
            operation.requested_by or "-",
            operation.stopped_because or operation.reason or "",
        )
        for operation in found
    ]
    numbers = ("LETTERS", "LEFT", "DONE", "HANDLED", "RETRYING", "FAILED AGAIN")
    headings = ("NO", "ACTION", "STATE", "ASKED FOR", *numbers, "BY", "WHY")
    echo_table(headings, rows, right=frozenset({"NO", "ASKED FOR", *numbers}))


def _results(operation: Operation) -> Sequence[str]:
    """What became of what was sent again; of other actions nothing becomes anything."""
    results = operation.results
    if operation.action is not Action.REQUEUE:
        return ("-", "-", "-")
    return [f"{count:,}" for count in (results.handled, results.retrying, results.failed_again)]


def _say(operation: Operation, *, as_json: bool) -> None:
    if as_json:
        echo_json(operation)
    else:
        echo_outcome(operation)
