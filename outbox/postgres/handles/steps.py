"""What a Publisher executes, statement by statement, whether it has to await the answers or not."""

from collections.abc import Generator, Iterable, Sequence
from typing import Any, TypeVar

from outbox.engine.deduplicating import candidates, published_ids
from outbox.engine.publishing import Row
from outbox.postgres.handles.insert import Statements, extended_values, parts, plain_values
from outbox.postgres.handles.statement import Statement, Values
from outbox.postgres.handles.writers import AsyncWriter, SyncWriter

AnswerT = TypeVar("AnswerT")
Steps = Generator[tuple[Statement, Values], Sequence[Any], AnswerT]
"""Yields a statement with its values, is sent the first column of its rows, and returns what came of them all."""


def publishing(rows: Sequence[Row], on: Statements, *, serialize: bool) -> Steps[list[str | None]]:
    """Inserts `rows` and returns their ids, None for what met a pending message.

    Rows without extras take one statement for as many as it can carry. `serialize`: the locks of ordering keys are taken first.
    """
    extras = [row.extras for row in rows if row.extras is not None]
    if not extras:
        for part in parts(rows):
            yield on.insert, plain_values(part)
        return [row.id for row in rows]
    dedup_keys = _distinct(extra.dedup_key for extra in extras)
    ordering_keys = _distinct(extra.ordering_key for extra in extras) if serialize else []
    if dedup_keys or ordering_keys:
        yield on.lock, (ordering_keys, dedup_keys)
    pending: set[str] = set()
    insert = on.insert_unique if dedup_keys else on.insert_extended
    for part in parts(candidates(rows)):
        pending.update((yield insert, extended_values(part)))
    return published_ids(rows, pending)


def cancelling(dedup_key: str, on: Statements) -> Steps[bool]:
    """Withdraws what is pending with `dedup_key`; whether there was anything."""
    yield on.lock, ([], [dedup_key])
    withdrawn = yield on.cancel, ([dedup_key],)
    if any(withdrawn):
        yield on.ring, ()
    return bool(withdrawn)


def execute_sync(writer: SyncWriter, steps: Steps[AnswerT]) -> AnswerT:
    """Goes through `steps` with a sync handle."""
    try:
        statement, values = next(steps)
        while True:
            statement, values = steps.send(writer.execute(statement, values))
    except StopIteration as end:
        answer: AnswerT = end.value
        return answer


async def execute_async(writer: AsyncWriter, steps: Steps[AnswerT]) -> AnswerT:
    """Goes through `steps` with an async handle."""
    try:
        statement, values = next(steps)
        while True:
            statement, values = steps.send(await writer.execute(statement, values))
    except StopIteration as end:
        answer: AnswerT = end.value
        return answer


def _distinct(keys: Iterable[str | None]) -> list[str]:
    return list({key for key in keys if key is not None})
