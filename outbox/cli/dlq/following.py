"""How an action ends: batches of its operation done in the foreground, a line that tells the progress, what came of it."""

import asyncio
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from outbox.cli.api.client import Unreachable
from outbox.cli.dlq.encoding import echo_json
from outbox.cli.dlq.port import Letters
from outbox.cli.dlq.tables import counted, echo_table
from outbox.cli.printing import echo, overwrite
from outbox.dead_letters import Action, Item, ItemOutcome, Operation, OperationState, Repaired, Results
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError

DONE = {
    Action.REQUEUE: "requeued",
    Action.DISCARD: "discarded",
    Action.RESTORE: "restored",
    Action.PURGE: "purged",
}
_STATES = {OperationState.STOPPED: "has stopped itself", OperationState.CANCELLED: "was cancelled"}
_PLAIN_EVERY = timedelta(seconds=10)
_MOST_ITEMS = 20
_BAD = frozenset({ItemOutcome.REFUSED, ItemOutcome.NOT_FOUND, ItemOutcome.DIED_AGAIN})
_NOT_DONE = frozenset({OperationState.STOPPED, OperationState.CANCELLED, OperationState.PAUSED})
_BAR = 24
"""Characters of the bar."""


async def follow(dead_letters: Letters, operation: Operation, *, quiet: bool) -> Operation:
    """Does batches of `operation` until it ends or is paused, perhaps beside others. Interrupted, it leaves it running."""
    progress = Progress(quiet=quiet)
    progress.begin(operation)
    try:
        while operation.state is OperationState.RUNNING:
            worked, operation = await _one_batch(dead_letters, operation, progress)
            progress.show(operation)
            if not worked and operation.state is OperationState.RUNNING:
                await asyncio.sleep(dead_letters.look_again.total_seconds())
    except asyncio.CancelledError:
        progress.leave(operation)
        raise
    progress.end()
    return operation


def conclude(answer: Repaired | Operation, *, as_json: bool) -> int:
    """Prints what came of it; the exit code."""
    if as_json:
        echo_json(answer)
    elif isinstance(answer, Repaired):
        _echo_items(answer.action, answer.items)
        echo(f"{_sentence(answer.action, _counts(answer.items))}.")
    else:
        echo_outcome(answer)
        if any(answer.counts.get(outcome) for outcome in (*_BAD, ItemOutcome.SKIPPED)):
            echo(f"`outbox dlq operations {answer.id}` says what came of each.")
    counts = _counts(answer.items) if isinstance(answer, Repaired) else answer.counts
    stopped = isinstance(answer, Operation) and answer.state in _NOT_DONE
    return 1 if stopped or any(counts.get(outcome) for outcome in _BAD) else 0


def echo_outcome(operation: Operation) -> None:
    """Prints how far an operation is, or how it ended."""
    because = f", because {operation.stopped_because}" if operation.stopped_because else ""
    state = _STATES.get(operation.state, f"is {operation.state}")
    echo(f"Operation {operation.id} {state}{because}: {_sentence(operation.action, operation.counts)}.")
    if operation.results.sent:
        echo(f"Of {operation.results.sent:,} sent again, {results_sentence(operation.results)}.")
    if operation.state is OperationState.RUNNING:
        echo(f"Maintenance goes on with it, or `outbox dlq resume {operation.id}`.")


def results_sentence(results: Results) -> str:
    """How many came to which result: `28 are handled, 2 are being retried`."""
    named = {
        "handled": results.handled,
        "waiting": results.waiting,
        "being retried": results.retrying,
        "dead or parked once more": results.failed_again,
        "unknown": results.unknown,
    }
    return ", ".join(f"{count:,} {'is' if count == 1 else 'are'} {name}" for name, count in named.items() if count)


class Progress:
    """A bar that is written over in a terminal; elsewhere a line now and then. On standard error, out of the way of scripts."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._said_at = time.monotonic()
        self._troubles: set[str] = set()

    def begin(self, operation: Operation) -> None:
        """Says which operation it is, and how to stop it."""
        self._line(
            f"Operation {operation.id}: {operation.action} of {counted(operation.total, 'dead letter')}. "
            f"`outbox dlq pause {operation.id}` holds it, Ctrl-C leaves it to maintenance."
        )

    def show(self, operation: Operation) -> None:
        """Says how far it is."""
        settled = operation.settled
        share = settled / operation.total if operation.total else 1
        text = f"{share:4.0%}  {settled:,} of {operation.total:,}{_speed(operation, settled)}{_waiting(operation)}"
        if self._terminal and not self._quiet:
            overwrite(f"[{'#' * int(share * _BAR):.<{_BAR}}] {text}")
        elif time.monotonic() - self._said_at >= _PLAIN_EVERY.total_seconds():
            self._said_at = time.monotonic()
            self._line(text)

    def trouble(self, error: Exception) -> None:
        """Says, once, why it does not go on."""
        if str(error) not in self._troubles:
            self._troubles.add(str(error))
            self.end()
            self._line(f"waiting: {error}")

    def leave(self, operation: Operation) -> None:
        """Says that it is not over."""
        self.end()
        again = f"`outbox dlq resume {operation.id}`"
        self._line(f"Operation {operation.id} is left running: maintenance goes on with it, or {again}.")

    def end(self) -> None:
        """Leaves the line."""
        if self._terminal and not self._quiet:
            overwrite("")

    def _line(self, text: str) -> None:
        if not self._quiet:
            echo(text, err=True)


async def _one_batch(dead_letters: Letters, operation: Operation, progress: Progress) -> tuple[int, Operation]:
    """How many letters were done here, and how far the operation is now."""
    try:
        worked = await dead_letters.advance(operation.id)
        return worked, await dead_letters.operation(operation.id) or operation
    except (BrokerUnavailableError, DatabaseUnavailableError, Unreachable) as error:
        progress.trouble(error)
        return 0, operation


def _speed(operation: Operation, settled: int) -> str:
    seconds = (datetime.now(UTC) - operation.created_at).total_seconds()
    return f"  {settled / seconds:,.0f}/s" if seconds > 1 and operation.canary_since is None else ""


def _waiting(operation: Operation) -> str:
    failed = f"  {operation.results.failed:,} failed" if operation.results.failed else ""
    left = (operation.canary_until - datetime.now(UTC)).total_seconds() if operation.canary_until is not None else 0.0
    return f"  waiting for the canary's results, {left:.0f} s at most{failed}" if left > 0 else failed


def _sentence(action: Action, counts: Mapping[ItemOutcome, int]) -> str:
    words = {ItemOutcome.DONE: DONE[action], ItemOutcome.DIED_AGAIN: "came back dead", ItemOutcome.PENDING: "to be done"}
    parts = [f"{counts[outcome]:,} {words.get(outcome, outcome.value)}" for outcome in ItemOutcome if counts.get(outcome)]
    return ", ".join(parts) or "there was nothing to do"


def _counts(items: Iterable[Item]) -> Mapping[ItemOutcome, int]:
    counts: dict[ItemOutcome, int] = {}
    for item in items:
        counts[item.outcome] = counts.get(item.outcome, 0) + 1
    return counts


def _echo_items(action: Action, items: Iterable[Item]) -> None:
    """Each of a few; of many those that were not done."""
    shown = list(items)
    if len(shown) > _MOST_ITEMS:
        shown = [item for item in shown if item.outcome is not ItemOutcome.DONE]
    if shown:
        echo_table(("ID", "OUTCOME", "WHY"), [(item.id, _outcome(action, item), item.reason or "") for item in shown])
        echo()


def _outcome(action: Action, item: Item) -> str:
    return DONE[action] if item.outcome is ItemOutcome.DONE else item.outcome.value
