"""Sending into queues of a database: a batch is one statement, and a message that PostgreSQL cannot take fails alone."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import asyncpg

from outbox.core.codec import encode_tracking_ids
from outbox.core.message import Message
from outbox.core.outcome import Failure
from outbox.errors import DatabaseUnavailableError
from outbox.ports import CONFIRMED, UNROUTABLE, NotSent, Refused, SendResult
from outbox.postgres.pool import unavailable_errors
from outbox.transports.postgres.statements import Statements

LARGEST_BODY = 128 * 1024 * 1024
"""A larger body is refused, in bytes: PostgreSQL could hold it, but no worker could claim it together with others."""
LARGEST_BATCH = 16 * 1024 * 1024
"""A statement ends after the message whose body takes it over this many bytes."""
LONGEST_STATEMENT = timedelta(seconds=60)
"""Longest wait for one statement, whatever the caller's timeout."""

_REFUSALS = (asyncpg.DataError, asyncpg.ProgramLimitExceededError, asyncpg.IntegrityConstraintViolationError)
"""What PostgreSQL, or the driver, says of values and not of itself."""

_Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Sending:
    """Puts messages into the queues of an exchange."""

    statements: Statements
    statement: str
    exchange_name: str

    async def send(self, messages: Sequence[Message], results: list[SendResult | None]) -> None:
        """Fills `results`, one for each message, as answers come."""
        rows: list[tuple[int, _Row]] = []
        for place, message in enumerate(messages):
            try:
                rows.append((place, _row(message)))
            except (TypeError, ValueError, RecursionError) as error:
                results[place] = Refused(Failure.of(error))
        for part in _parts(rows):
            try:
                await self._send(part, results)
            except DatabaseUnavailableError as error:
                failure = Failure.of(error)
                for place, _ in part:
                    results[place] = results[place] or NotSent(failure)

    async def _send(self, rows: Sequence[tuple[int, _Row]], results: list[SendResult | None]) -> None:
        """Sends all or none; if some cannot be taken, by halves until the culprit stands alone."""
        try:
            unroutable = await self._insert([row for _, row in rows])
        except _REFUSALS as error:
            if len(rows) == 1:
                results[rows[0][0]] = Refused(Failure.of(error))
                return
            middle = len(rows) // 2
            await self._send(rows[:middle], results)
            await self._send(rows[middle:], results)
            return
        for number, (place, _) in enumerate(rows, start=1):
            results[place] = UNROUTABLE if number in unroutable else CONFIRMED

    async def _insert(self, rows: Sequence[_Row]) -> set[int]:
        columns = map(list, zip(*rows, strict=True))
        with unavailable_errors("sending", limit=LONGEST_STATEMENT):
            try:
                answer = await self.statements.fetch(self.statement, self.exchange_name, *columns, timeout=LONGEST_STATEMENT)
            except _REFUSALS as error:
                refusal = error
            else:
                return {row["number"] for row in answer}
        raise refusal


def _row(message: Message) -> _Row:
    if len(message.body) > LARGEST_BODY:
        raise ValueError(f"the body has {len(message.body)} bytes, more than the {LARGEST_BODY} that are accepted")
    return (
        message.id,
        message.routing_key,
        message.body,
        message.content_type,
        json.dumps(dict(message.headers), allow_nan=False) if message.headers else None,
        encode_tracking_ids(message.tracking_ids),
        message.ordering_key,
        message.created_at,
        message.expires_at,
        None if message.expiration is None else min(message.expiration, timedelta(days=1_000_000)),
        message.target_queue,
        message.hlc,
        message.requeue_count,
    )


def _parts(rows: Sequence[tuple[int, _Row]]) -> Iterator[Sequence[tuple[int, _Row]]]:
    part: list[tuple[int, _Row]] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row[1][2])  # type: ignore[arg-type]  # the body
        if size > LARGEST_BATCH:
            yield part
            part, size = [], 0
    if part:
        yield part
