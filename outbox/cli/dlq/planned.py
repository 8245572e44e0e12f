"""What would be done, shown before it is done, and a person's consent to it."""

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import click

from outbox.cli.dlq.tables import ago, counted, echo_facts, echo_table
from outbox.cli.printing import echo, one_line, styled
from outbox.dead_letters import Plan


def echo_plan(plan: Plan) -> None:
    """Prints how many, of what, the first of them, and the warnings."""
    echo(styled(f"{plan.action.capitalize()} of {counted(plan.count, 'dead letter')}", bold=True))
    echo_facts([("queues", _counts(plan.by_queue)), ("errors", _counts(plan.by_exception))])
    if plan.sample:
        echo()
        rows = [
            (letter.id, ago(letter.failed_at), letter.queue or "-", letter.routing_key, one_line(letter.preview))
            for letter in plan.sample
        ]
        echo_table(("THE OLDEST", "FAILED", "QUEUE", "ROUTING KEY", "BODY"), rows, right=frozenset({"FAILED"}))
    if plan.warnings:
        echo()
    for warning in plan.warnings:
        echo(styled("warning", fg="yellow"), f"  {warning}")


def confirm(plan: Plan) -> None:
    """Returns if a person types how many they mean; ends the command otherwise, also where nobody could be asked."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"{plan.action} of {counted(plan.count, 'dead letter')} would have to be confirmed, and there is no terminal: "
            "look at it with --dry-run, and add --yes"
        )
    echo_plan(plan)
    echo()
    if plan.count == 0:
        raise click.exceptions.Exit(0)
    with _interruptible():
        typed = click.prompt(
            f"Type {plan.count} to {plan.action} them, anything else to leave them", default="", show_default=False
        )
    if typed.replace(",", "").strip() != str(plan.count):
        echo("Nothing was changed.")
        raise click.exceptions.Exit(1)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Within the block Ctrl-C ends what waits for a person. An event loop would only note it, until the answer has come."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or 'none'} ({count:,})" for name, count in counts.items())
