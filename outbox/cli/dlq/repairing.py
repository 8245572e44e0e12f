"""`outbox dlq requeue`, `discard`, `restore` and `purge`."""

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import IO, Any, TypeVar

import click

from outbox.cli import options
from outbox.cli.api.places import remote, typed
from outbox.cli.command import Command
from outbox.cli.dlq.encoding import echo_json
from outbox.cli.dlq.filters import filtering, json_output, places, selector_of
from outbox.cli.dlq.following import conclude, follow
from outbox.cli.dlq.places import run, somebody
from outbox.cli.dlq.planned import confirm, echo_plan
from outbox.cli.dlq.port import Letters
from outbox.cli.options import RETENTION, SECONDS, setting
from outbox.dead_letters import (
    CANARY_WAIT,
    ORIGINAL_ROUTING,
    Action,
    Canary,
    DeadLetterFilter,
    Destination,
    Edit,
    Operation,
    Repaired,
    ToQueue,
)

F = TypeVar("F", bound=Callable[..., Any])
Answer = Repaired | Operation

_common = options.together(
    click.argument("ids", nargs=-1, metavar="[ID]..."),
    filtering,
    click.option("--all", "everything", is_flag=True, help="Every dead letter that it can be done to."),
    click.option("--max-items", type=click.IntRange(min=1), help="At most so many, the oldest."),
    click.option("--reason", help="Why, for the record."),
    click.option("--by", default=somebody, help="Who does it, for the record.  [default: you]"),
    click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing."),
    click.option("--yes", is_flag=True, help="Do not ask."),
    click.option("--detach", is_flag=True, help="Leave an operation to maintenance instead of doing it here."),
    json_output,
    places,
)


@click.command(cls=Command)
@click.option("--to-queue", metavar="QUEUE", help="To this queue, which must exist, instead of the one that each died in.")
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
    help="Stop once a greater share fails; 1: never.  [default: 0.1, and a canary stops at the first]",
)
@click.option("--force", is_flag=True, help="Also those that are older than inboxes remember.")
@setting("inbox_retention", type=RETENTION, default="30d", help="How long inboxes remember messages.")
@click.option(
    "--body", type=click.File("rb"), help="One dead letter only: with the content of this file as its body; - reads it."
)
@click.option("--headers", type=click.File("r"), help="One dead letter only: with this file's JSON object as its headers.")
@click.option("--version", type=click.IntRange(min=1), help="With --body or --headers: the version that they were made from.")
@_common
def requeue(*, inbox_retention: timedelta, **given: Any) -> None:
    """Sends dead letters again.

    They go through the outbox, with their ids, to the queue that each died in.

    Up to 100 ids are done at once. More, and filters, become an operation, which is done here batch by batch, and can be paused
    and cancelled from elsewhere; if this process ends, maintenance goes on with it, or `outbox dlq resume`.
    """
    destination = _destination(given)
    canary = None if given["canary"] is None else Canary(given["canary"], given["canary_wait"])
    edit = _edit(given)

    async def ask(dead_letters: Letters, selector: Any) -> Answer:
        return await dead_letters.requeue(
            selector,
            destination=destination,
            edit=edit,
            rate=given["rate"],
            canary=canary,
            stop_ratio=given["stop_ratio"],
            reason=given["reason"],
            by=given["by"],
            force=given["force"],
            max_items=given["max_items"],
        )

    _do(Action.REQUEUE, ask, given, destination=destination, retention=inbox_retention)


@click.command(cls=Command)
@_common
def discard(**given: Any) -> None:
    """Puts dead letters aside.

    They stay, marked as not to be sent again, and `outbox dlq restore` opens them again.
    """

    async def ask(dead_letters: Letters, selector: Any) -> Answer:
        return await dead_letters.discard(selector, **_record(given))

    _do(Action.DISCARD, ask, given)


@click.command(cls=Command)
@_common
def restore(**given: Any) -> None:
    """Opens discarded dead letters again."""

    async def ask(dead_letters: Letters, selector: Any) -> Answer:
        return await dead_letters.restore(selector, **_record(given))

    _do(Action.RESTORE, ask, given)


@click.command(cls=Command)
@click.option("--force", is_flag=True, help="Also those that were not discarded.")
@_common
def purge(**given: Any) -> None:
    """Deletes discarded dead letters.

    They are gone for good, with everything that was known of them.
    """

    async def ask(dead_letters: Letters, selector: Any) -> Answer:
        return await dead_letters.purge(selector, force=given["force"], **_record(given))

    _do(Action.PURGE, ask, given)


def _do(
    action: Action,
    ask: Callable[[Letters, Any], Any],
    given: dict[str, Any],
    *,
    destination: Destination | None = None,
    retention: timedelta | None = None,
) -> None:
    """Asks what a person should be asked, does it, follows it to its end, and says what came of it."""
    selector = selector_of(given["ids"], given, everything=given["everything"])
    as_json, force = given["as_json"], given.get("force", False)
    if typed("by") and remote(given) is not None:
        raise click.UsageError("--by is for a database: a service knows who asks by the token")

    async def work(dead_letters: Letters) -> Answer | None:
        if given["dry_run"] or _must_ask(action, selector, given):
            plan = await dead_letters.plan(action, selector, destination=destination, force=force, max_items=given["max_items"])
            if given["dry_run"]:
                echo_json(plan) if as_json else echo_plan(plan)
                return None
            confirm(plan)
        answer: Answer = await ask(dead_letters, selector)
        if isinstance(answer, Operation) and not given["detach"]:
            return await follow(dead_letters, answer, quiet=as_json)
        return answer

    answer = run(given, work, retention=retention)
    if answer is not None:
        sys.exit(conclude(answer, as_json=as_json))


def _must_ask(action: Action, selector: Any, given: dict[str, Any]) -> bool:
    """Filters can mean more than one thinks, and what is purged is gone."""
    return not given["yes"] and (isinstance(selector, DeadLetterFilter) or action is Action.PURGE)


def _record(given: dict[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in ("reason", "by", "max_items")}


def _destination(given: dict[str, Any]) -> Destination | None:
    queue, routing = given["to_queue"], given["original_routing"]
    if queue is not None and routing:
        raise click.UsageError("--to-queue and --original-routing are two places: give one of them")
    if queue is not None:
        return ToQueue(queue)
    return ORIGINAL_ROUTING if routing else None


def _edit(given: dict[str, Any]) -> Edit | None:
    body, headers, version = given["body"], given["headers"], given["version"]
    if body is None and headers is None:
        if version is not None:
            raise click.UsageError("--version goes with --body or --headers")
        return None
    if version is None:
        raise click.UsageError("say with --version which version was edited; `outbox dlq show` names it")
    if len(given["ids"]) != 1:
        raise click.UsageError("--body and --headers are for one dead letter, named by its id")
    return Edit(
        version=version,
        body=None if body is None else body.read(),
        headers=None if headers is None else _headers(headers),
    )


def _headers(file: IO[str]) -> dict[str, Any]:
    try:
        headers = json.load(file)
        json.dumps(headers, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--headers is not JSON: {error}") from error
    if not isinstance(headers, dict):
        raise click.UsageError("--headers is a JSON object of names and values")
    return headers
