"""`outbox dlq list`, `show` and `groups`."""

from dataclasses import replace
from typing import Any

import click

from outbox.cli.command import Command, Sentence
from outbox.cli.dlq.encoding import detail_json, echo_json
from outbox.cli.dlq.filters import filter_of, filtering, json_output, places
from outbox.cli.dlq.places import run
from outbox.cli.dlq.port import Letters
from outbox.cli.dlq.showing import echo_detail
from outbox.cli.dlq.tables import ago, counted, echo_table
from outbox.cli.printing import echo, echo_bytes, one_line
from outbox.dead_letters import DeadLetter, DeadLetterDetail, DeadLetterFilter, DeadLetterStatus, Group, GroupBy


@click.command(name="list", cls=Command)
@filtering
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="How many lines.")
@click.option("--oldest", is_flag=True, help="Those that failed first come first, instead of last.")
@json_output
@places
def list_(*, limit: int, oldest: bool, as_json: bool, **given: Any) -> None:
    """Lists dead letters and parked messages.

    Those that failed last come first; only open ones, unless --status says otherwise. TIMES is how many attempts failed.
    """
    wanted = filter_of(given)
    wanted = wanted if wanted.status is not None else replace(wanted, status=DeadLetterStatus.OPEN)

    async def read(dead_letters: Letters) -> tuple[list[DeadLetter], int, bool]:
        found = await dead_letters.list(wanted, limit=limit, sort="oldest" if oldest else "newest")
        count = await dead_letters.count(wanted)
        return list(found), count, count == dead_letters.counts_to

    found, count, at_least = run(given, read)
    if as_json:
        echo_json(found)
    elif found:
        _echo_lines(found)
        rest = f", {len(found):,} shown: --limit shows more" if len(found) < count else ""
        echo(f"\n{'At least ' if at_least else ''}{counted(count, 'dead letter')}{rest}.")
    else:
        echo(f"No {wanted.status} dead letters{' that fit' if wanted != DeadLetterFilter(status=wanted.status) else ''}.")


@click.command(cls=Command)
@click.argument("id_", metavar="ID")
@click.option("--reveal", is_flag=True, help="Show what is masked otherwise.")
@click.option("--body", "only_body", is_flag=True, help="Print the body as it is and nothing else, to be edited and requeued.")
@json_output
@places
def show(id_: str, *, reveal: bool, only_body: bool, as_json: bool, **given: Any) -> None:
    """Shows everything about one dead letter.

    What it carries, with secrets masked, and every failure that is on record.
    """

    async def read(dead_letters: Letters) -> DeadLetterDetail | bytes | None:
        return await dead_letters.body(id_) if only_body else await dead_letters.show(id_, reveal=reveal)

    found = run(given, read)
    if found is None:
        raise Sentence(f"there is no dead letter {id_}: it was purged, or sent, or never was")
    if isinstance(found, bytes):
        echo_bytes(found)
    elif as_json:
        echo_json(detail_json(found))
    else:
        echo_detail(found, reveal=reveal)


@click.command(cls=Command)
@click.option(
    "--by",
    type=click.Choice(["fingerprint", "queue", "routing_key"]),
    default="fingerprint",
    show_default=True,
    help="What they have in common.",
)
@filtering
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="How many groups.")
@json_output
@places
def groups(*, by: GroupBy, limit: int, as_json: bool, **given: Any) -> None:
    """Counts dead letters that failed alike.

    The largest group comes first; only open ones count, unless --status says otherwise.

    REQUEUED is when one of a group was requeued last, SINCE how many of it died after that.
    """
    wanted = filter_of(given)
    wanted = wanted if wanted.status is not None else replace(wanted, status=DeadLetterStatus.OPEN)

    async def read(dead_letters: Letters) -> list[Group]:
        return list(await dead_letters.groups(by, wanted, limit=limit))

    found = run(given, read)
    if as_json:
        echo_json(found)
    elif found:
        _echo_groups(found, by)
    else:
        echo(f"No {wanted.status} dead letters.")


def _echo_lines(found: list[DeadLetter]) -> None:
    rows = [
        (
            letter.id,
            letter.status.value,
            ago(letter.failed_at),
            str(letter.failures),
            letter.queue or "-",
            letter.routing_key,
            one_line(f"{letter.exception_type.rpartition('.')[2]}: {letter.exception_message}"),
        )
        for letter in found
    ]
    echo_table(("ID", "STATUS", "FAILED", "TIMES", "QUEUE", "ROUTING KEY", "ERROR"), rows, right=frozenset({"TIMES", "FAILED"}))


def _echo_groups(found: list[Group], by: GroupBy) -> None:
    rows = [
        (
            group.id or "-",
            f"{group.count:,}",
            ago(group.first_seen),
            ago(group.last_seen),
            ago(group.last_requeued_at) or "never",
            f"{group.since_requeue:,}",
            *([one_line(group.title)] if by == "fingerprint" else []),
        )
        for group in found
    ]
    numbers = ("COUNT", "FIRST", "LAST", "REQUEUED", "SINCE")
    headings = ("GROUP", *numbers, "WHAT THEY SHARE") if by == "fingerprint" else (by.replace("_", " ").upper(), *numbers)
    echo_table(headings, rows, right=frozenset(numbers))
