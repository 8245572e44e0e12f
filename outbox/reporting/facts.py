"""Facts for the history, buffered in memory up to a limit: writing them never delays a message."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from outbox.core.events import Processed
from outbox.core.outcome import Dead, Done, Failure, Retry
from outbox.engine.index_keys import IndexKeys
from outbox.postgres.rows import array_text

CAPACITY = 20_000
"""Maximum number of buffered facts; further ones are dropped."""
MOST_TYPE = 250
MOST_MESSAGE = 500
"""Maximum length of an error's type and message in the history."""


class Fact(NamedTuple):
    """One row of the history. Times are in seconds; `at` is a time of the process's monotonic clock."""

    at: float
    fact: str
    message_id: str
    root_id: str
    parent_id: str | None
    routing_key: str
    queue: str
    attempt: int
    waited: float
    ran: float
    error_type: str | None
    error_message: str | None
    keys: str | None = None
    """Index keys as a PostgreSQL array literal; None if there are none."""
    trace_id: str | None = None


class FactQueue:
    """Buffers facts without blocking, and returns them in batches."""

    def __init__(self, *, clock: Callable[[], float], now: Callable[[], float], capacity: int = CAPACITY) -> None:
        self._clock = clock
        self._now = now
        self._capacity = capacity
        self._facts: deque[Fact] = deque()
        self.lost = 0
        """Number of facts dropped because the buffer was full."""

    def __len__(self) -> int:
        return len(self._facts)

    def record(self, event: Processed, *, duplicate: bool = False, index_keys: IndexKeys | None = None) -> None:
        """Buffers the fact of `event`, or counts it as lost if the buffer is full."""
        if len(self._facts) >= self._capacity:
            self.lost += 1
            return
        fact = fact_of(event, at=self._clock(), now=self._now())
        if fact is None:
            return
        if duplicate:
            fact = fact._replace(fact="duplicate")
        if index_keys:
            fact = fact._replace(keys=array_text(index_keys.values(event.message)))
        self._facts.append(fact)

    def batch(self, most: int) -> list[Fact]:
        """Removes and returns up to `most` facts, oldest first."""
        return [self._facts.popleft() for _ in range(min(most, len(self._facts)))]

    def put_back(self, batch: Sequence[Fact]) -> None:
        """Returns facts that could not be written to the front of the queue. Drops the oldest if there is no room."""
        room = max(0, self._capacity - len(self._facts))
        kept = batch[len(batch) - room :] if room < len(batch) else batch
        self.lost += len(batch) - len(kept)
        self._facts.extendleft(reversed(kept))


def fact_of(event: Processed, *, at: float, now: float) -> Fact | None:
    """Converts an event that happened at `now` (seconds since 1970) to a fact; None if the history does not record it.

    `waited` is the time from the message's creation to the start of its handler, including earlier attempts.
    """
    failure: Failure | None = None
    match event.outcome:
        case Done():
            name = "processed"
        case Retry(_, failure):
            name = "retried"
        case Dead(_, failure):
            name = "died"
        case _:
            return None
    message, ran = event.message, event.duration.total_seconds()
    chain = message.tracking_ids
    return Fact(
        at,
        name,
        message.id,
        chain[0] if chain else message.id,
        chain[-2] if len(chain) > 1 else None,
        message.routing_key,
        event.queue,
        event.attempt,
        max(0.0, now - message.created_at.timestamp() - ran),
        ran,
        None if failure is None else failure.type[:MOST_TYPE],
        None if failure is None else failure.message[:MOST_MESSAGE],
        trace_id=None if event.span is None else event.span.trace_id,
    )
