"""The one policy that decides between another attempt and the end."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from outbox.outcome import Cause, Dead, Failure, Retry


class Attempts(Protocol):
    """How long to wait after a failed attempt, or that there is no other."""

    def delay_after(self, attempt: int) -> timedelta | None:
        """The delay after attempt number `attempt` (from 1) failed; None when it was the last."""
        ...


@dataclass(frozen=True, slots=True)
class Delays:
    """One delay after another, in the order given, then no more: what `retry_delays` means."""

    delays: Sequence[timedelta]

    def delay_after(self, attempt: int) -> timedelta | None:
        return self.delays[attempt - 1] if attempt <= len(self.delays) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """`first`, doubling up to `longest`, each moved by up to `jitter` of itself, at most `max_attempts` in all."""

    first: timedelta
    longest: timedelta
    max_attempts: int
    jitter: float = 0.25
    random: random.Random

    def delay_after(self, attempt: int) -> timedelta | None:
        if attempt >= self.max_attempts:
            return None
        doublings = min(attempt - 1, 30)
        delay: timedelta = min(self.first * 2**doublings, self.longest)
        return delay * (1 + self.random.uniform(-self.jitter, self.jitter))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Chooses between `Retry` and `Dead` after a failure, within the message's deadline."""

    attempts: Attempts
    exhausted: Cause = Cause.EXHAUSTED

    def decide(
        self,
        failure: Failure,
        *,
        attempt: int,
        now: datetime,
        expires_at: datetime | None,
        delay: timedelta | None = None,
    ) -> Retry | Dead:
        """What follows a failed attempt number `attempt`.

        A `delay` that the handler asked for (`RetryAfter`) replaces the policy's, also after its last one. A retry that
        would be due after `expires_at` dies as expired instead.
        """
        chosen = self.attempts.delay_after(attempt) if delay is None else delay
        if chosen is None:
            return Dead(self.exhausted, failure)
        if expires_at is not None and chosen >= expires_at - now:
            return Dead(Cause.EXPIRED, failure)
        return Retry(chosen, failure)
