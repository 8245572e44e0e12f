"""Ports to the database: the outbox table, transactions, pauses, and observers."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from outbox.core.events import Event
from outbox.core.message import PendingMessage, Way
from outbox.core.outcome import RelayOutcome


class Claim(AbstractAsyncContextManager["Claim"], Protocol):
    """Messages that are ours until the block ends: left normally it commits, left by an exception it rolls back."""

    @property
    def messages(self) -> Sequence[PendingMessage]:
        """What was claimed, in the order in which it is due; never empty."""
        ...

    async def settle(self, outcomes: Sequence[RelayOutcome]) -> None:
        """Records one outcome for each message, in order, in few statements. Durable once the block is left."""
        ...


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many rows are unsent, and how long the oldest due one has been due (None: none is due)."""

    unsent: int
    oldest_due: timedelta | None


class Store(Protocol):
    """The outbox table, as the relay sees it. Every method raises `DatabaseUnavailableError` while it is away."""

    async def claim(self, limit: int) -> Claim | None:
        """Up to `limit` due messages that nobody else has claimed; None if there are none."""
        ...

    async def next_due(self) -> timedelta | None:
        """The time until the earliest unsent row is due, zero or less if it already is; None without any."""
        ...

    async def release_held(self, routing_key: str, queue: str | None, limit: int) -> int:
        """Makes up to `limit` held rows of `routing_key` due at once, those for `queue` alone; how many there were."""
        ...

    async def claim_stalled(self, wanted: Sequence[tuple[Way, int]]) -> Claim | None:
        """Of each route up to so many messages that wait because it is stalled, those first that were refused least often.

        Each claimed message is one that nothing of its ordering key goes before. None if there are none to be had.
        """
        ...

    async def release_stalled(self, way: Way, limit: int) -> int:
        """Makes up to `limit` messages that wait for the stalled route `way` due at once; how many there were."""
        ...

    async def stalled_ways(self, limit: int) -> Sequence[Way]:
        """Up to `limit` routes that messages wait for because they are stalled."""
        ...

    async def ensure_probes(self) -> int:
        """Sees to it that for each held routing key one row is due in finite time; how many were missing."""
        ...

    async def repair_lanes(self) -> int:
        """Makes messages due that wait for an earlier one of their ordering key which is not there any more; how many."""
        ...

    async def delete_sent(self, older_than: timedelta, limit: int) -> int:
        """Deletes up to `limit` rows sent longer ago than `older_than`; how many there were."""
        ...

    async def backlog(self) -> Backlog:
        """Counts what is unsent; an estimate will do for a large number, for this is asked often."""
        ...


class Nap(Protocol):
    """One sleeper's rest."""

    async def wait(self, timeout: timedelta) -> None:
        """Returns when it rang since the nap began, after `timeout` at the latest; where LISTEN does not deliver, sooner.

        May be called again after another look for rows: it still rings for every commit in between.
        """
        ...


class Doorbell(Protocol):
    """Tells sleepers that rows may have come. Any number may sleep at once."""

    def asleep(self) -> AbstractAsyncContextManager[Nap]:
        """Inside the block every commit of new rows rings. Look for rows once more after entering, then wait."""
        ...

    def ring(self) -> None:
        """Wakes every sleeper of this process."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Messages of one queue that a transaction marks as processed before anything else is done in it.

    Another transaction that marked one of them, and has not ended, is waited for, up to `patience`.
    """

    queue: str
    message_ids: Sequence[str]
    patience: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A transaction that has begun: what of it was wanted, by name, and which messages it marked that had no mark before."""

    resources: Mapping[str, object]
    marked: frozenset[str] = frozenset()


class UnitsOfWork(Protocol):
    """Transactions for handlers that write to the database."""

    def begin(self, wanted: frozenset[str], marks: Marks | None = None) -> AbstractAsyncContextManager[Unit]:
        """A transaction, and those of `session`, `connection` and `publisher` that are wanted, all of them in it.

        Left normally it commits, left by an exception it rolls back; a commit that fails raises, with marks always
        `CommitFailedError`. With marks it commits only together with them: a handler that committed by itself is refused.
        Entering raises `DatabaseUnavailableError` while the database is away, and `MarkHeldError` when another transaction
        holds one of the marks for too long. The latter is also raised at the end, and everything rolled back, if the handler
        had rolled back and somebody else took the marks before they were made again.
        """
        ...


class Gate(Protocol):
    """Whether somebody asked a part of the system to pause. What is in hand is finished; nothing new is taken."""

    @property
    def closed(self) -> bool:
        """Whether a pause is wanted now."""
        ...

    async def opened(self) -> None:
        """Returns once no pause is wanted."""
        ...

    async def closing(self) -> None:
        """Returns once a pause is wanted."""
        ...


class Observer(Protocol):
    """Is told of everything that happens."""

    def notify(self, event: Event) -> None:
        """Takes note of `event`, at once and without waiting. What it raises is logged and stops nothing."""
        ...
