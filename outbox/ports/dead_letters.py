"""Ports to dead letters: where a broker keeps dead messages, and the archive that they go to."""

import asyncio
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from outbox.core.failures import FailedAttempt
from outbox.core.message import NO_HEADERS
from outbox.core.outcome import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadMessage:
    """A message that died at a broker, as far as what the broker keeps of it can be read.

    `queue` is where it died, and `message_id` None if it never had one. `headers` are the application's own, as JSON, and
    `header_types` what JSON does not tell of them; `properties` is everything else that came with it, for whoever wants to
    know. `by_broker`: no worker of ours gave it up. `trail` are its failures, oldest first, of which `failure` is the last.
    """

    queue: str
    exchange: str
    message_id: str | None
    routing_key: str
    body: bytes
    cause: str
    failure: Failure
    by_broker: bool
    content_type: str | None = None
    headers: Mapping[str, Any] = field(default_factory=lambda: NO_HEADERS)
    header_types: Mapping[str, Any] = field(default_factory=lambda: NO_HEADERS)
    properties: Mapping[str, Any] = field(default_factory=lambda: NO_HEADERS)
    tracking_ids: tuple[str, ...] = ()
    ordering_key: str | None = None
    hlc: int | None = None
    created_at: datetime | None = None
    died_at: datetime | None = None
    attempt: int = 1
    requeue_count: int = 0
    trail: Sequence[FailedAttempt] = ()


class DeadDelivery(Protocol):
    """A dead message in hand, to be let go of once it is recorded elsewhere."""

    @property
    def dead(self) -> DeadMessage:
        """What can be read of it. Never raises: what cannot be read is left out."""
        ...

    def ack(self) -> None:
        """The broker may forget it. Raises `StaleDeliveryError` if it is no longer ours; then it comes again."""
        ...


ReceiveDead = Callable[[DeadDelivery], None]


class DeadLetterQueues(Protocol):
    """Where a broker keeps dead messages until somebody takes them away."""

    def collect(
        self, queue: str, receive: ReceiveDead, *, prefetch_count: int, max_bytes: int
    ) -> AbstractAsyncContextManager[asyncio.Event]:
        """Within the block `receive` is called for each dead message of `queue`, never with more in hand than `prefetch_count`.

        Their bodies have at most about `max_bytes` together, unless a single one has more.

        Entering raises `BrokerUnavailableError` while the broker is away, and `TopologyError` if `queue` has no queue of dead
        letters or it may not be read; nothing is declared. The event is set when nothing more will come: leave the block, and
        enter another. Leaving it gives back, in order, what was not acknowledged.
        """
        ...

    async def count(self, queue: str) -> int:
        """How many dead letters of `queue` the broker has. Raises `BrokerUnavailableError` if nobody can say now."""
        ...

    async def close(self) -> None:
        """Gives back everything that was taken. Idempotent."""
        ...


class Archive(Protocol):
    """Where dead letters are kept. Every method raises `DatabaseUnavailableError` while it is away."""

    async def record(self, dead: Sequence[DeadMessage]) -> None:
        """Records all of them, durably, or none. What was recorded before is not recorded again."""
        ...

    async def known_queues(self) -> Set[str]:
        """The queues that somebody consumes from, as far as the database knows."""
        ...

    async def count_open(self, queue: str) -> int:
        """How many dead letters of `queue` nobody has requeued or discarded."""
        ...
