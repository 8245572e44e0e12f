"""The one policy that decides between another attempt and the end, and the strategies that it asks for delays.

A consumer takes one with `retry=`: `delays`, `constant`, `linear`, `exponential`, or a callable of its own. `attempts` counts
the first attempt, too; None means that there is no last one.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Protocol

from outbox.core.duration import as_delay, as_delays
from outbox.core.outcome import MESSAGE_LIMIT, Cause, Dead, Failure, Retry
from outbox.errors import ConfigurationError, DurationError

MOST_ANNOUNCED = 16
"""Delays of a computed strategy that are announced; one with more announces none."""

Delay = str | float | timedelta
"""A duration such as `"1m30s"`, seconds, or a timedelta."""
Choose = Callable[[int, BaseException], Delay | None]
"""The delay after attempt number so and so (from 1) failed with this error; None when it was the last."""


class Attempts(Protocol):
    """How long to wait after a failed attempt, or that there is no other."""

    def delay_after(self, attempt: int, error: BaseException | None = None) -> timedelta | None:
        """The delay after attempt number `attempt` (from 1) failed with `error`; None when it was the last."""
        ...


class Strategy(Attempts, Protocol):
    """What a consumer's `retry` is: `announced` are delays that it is known to ask for, so that a broker can prepare them."""

    @property
    def announced(self) -> tuple[timedelta, ...]: ...


@dataclass(frozen=True, slots=True)
class Delays:
    """One delay after another, in the order given, then no more: what `retry_delays` means."""

    delays: Sequence[timedelta]

    @property
    def announced(self) -> tuple[timedelta, ...]:
        return tuple(self.delays)

    def delay_after(self, attempt: int, error: BaseException | None = None) -> timedelta | None:  # noqa: ARG002
        return self.delays[attempt - 1] if attempt <= len(self.delays) else None


def delays(*delays: Delay) -> Strategy:
    """One delay after another, then no more: `delays("1s", "10s", "1m")` makes four attempts."""
    return Delays(as_delays(delays))


def constant(delay: Delay, *, attempts: int | None, jitter: float = 0.0) -> Strategy:
    """Always the same delay."""
    return _Computed(first=as_delay(delay), cap=timedelta.max, attempts=_attempts(attempts), jitter=_jitter(jitter))


def linear(first: Delay, *, step: Delay, cap: Delay = "5m", attempts: int | None, jitter: float = 0.0) -> Strategy:
    """`first`, and `step` longer each time, up to `cap`."""
    return _Computed(
        first=as_delay(first), step=as_delay(step), cap=_cap(cap, first), attempts=_attempts(attempts), jitter=_jitter(jitter)
    )


def exponential(first: Delay, *, factor: float = 2, cap: Delay = "5m", attempts: int | None, jitter: float = 0.0) -> Strategy:
    """`first`, and `factor` times as long each time, up to `cap`.

    `jitter` moves each delay at random by up to that part of itself, never beyond `cap`: 0.1 by a tenth at most. On RabbitMQ
    each distinct delay is a queue, so that 0, which is the default, is best unless many messages fail in the same moment.
    """
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not (1 <= factor < math.inf):
        raise ConfigurationError(f"factor is a number from 1, such as 2, not {factor!r}")
    return _Computed(
        first=as_delay(first),
        factor=float(factor),
        cap=_cap(cap, first),
        attempts=_attempts(attempts),
        jitter=_jitter(jitter),
    )


def as_strategy(value: object) -> Strategy:
    """What a consumer was given as `retry`. Raises `ConfigurationError` for what is neither a strategy nor a callable."""
    if isinstance(value, Delays | _Computed | _Chosen):
        return value
    if isinstance(value, type) or not callable(value):
        raise ConfigurationError(
            f"retry is one of outbox.retry's delays, constant, linear and exponential, such as delays('1s', '1m'), "
            f"or a callable of attempt and error, not {value!r}"
        )
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None)):  # noqa: B004
        raise ConfigurationError("a retry strategy is asked, not awaited: write def, not async def")
    try:
        inspect.signature(value).bind(1, ValueError())
    except ValueError:  # its parameters are not known
        pass
    except TypeError as error:
        raise ConfigurationError(f"a retry strategy is called with attempt and error: {error}") from error
    return _Chosen(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """`first`, doubling up to `longest`, each moved by up to `jitter` of itself, at most `max_attempts` in all."""

    first: timedelta
    longest: timedelta
    max_attempts: int
    jitter: float = 0.25
    random: Random

    def delay_after(self, attempt: int, error: BaseException | None = None) -> timedelta | None:  # noqa: ARG002
        if attempt >= self.max_attempts:
            return None
        doublings = min(attempt - 1, 30)
        delay: timedelta = min(self.first * 2**doublings, self.longest)
        return delay * (1 + self.random.uniform(-self.jitter, self.jitter))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Chooses between `Retry` and `Dead` after a failure, within the message's deadline.

    `describe` makes a failure of what a strategy raises.
    """

    attempts: Attempts
    exhausted: Cause = Cause.EXHAUSTED
    describe: Callable[[BaseException], Failure] = Failure.of

    def decide(
        self,
        failure: Failure,
        *,
        attempt: int,
        now: datetime,
        expires_at: datetime | None,
        delay: timedelta | None = None,
        error: BaseException | None = None,
    ) -> Retry | Dead:
        """What follows a failed attempt number `attempt`.

        A `delay` that the handler asked for (`RetryAfter`) replaces the policy's, also after its last one. A retry that
        would be due after `expires_at` dies as expired instead. So does, as exhausted, a message whose strategy raises or
        answers what is no delay: the failure says so.
        """
        try:
            chosen = self.attempts.delay_after(attempt, error) if delay is None else delay
        except KeyboardInterrupt:
            raise
        except BaseException as broken:  # noqa: BLE001  a strategy may be anybody's code, and the message must not stall for it
            note = f" (not tried again: its retry strategy failed with {self.describe(broken)})"[:MESSAGE_LIMIT]
            return Dead(self.exhausted, replace(failure, message=failure.message[: MESSAGE_LIMIT - len(note)] + note))
        if chosen is None:
            return Dead(self.exhausted, failure)
        if expires_at is not None and chosen >= expires_at - now:
            return Dead(Cause.EXPIRED, failure)
        return Retry(chosen, failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Computed:
    """`first`, with each attempt `step` longer or `factor` times as long, up to `cap`; then moved by `jitter`."""

    first: timedelta
    step: timedelta = timedelta(0)
    factor: float = 1.0
    cap: timedelta
    attempts: int | None
    jitter: float
    random: Random = field(default_factory=Random, repr=False, compare=False)

    @property
    def announced(self) -> tuple[timedelta, ...]:
        """All of them, if they are few and not left to chance."""
        if self.jitter:
            return ()
        distinct: dict[timedelta, None] = {}
        for attempt in range(1, MOST_ANNOUNCED + 2):
            if self.attempts is None or attempt < self.attempts:
                distinct[self.plain(attempt)] = None
        return tuple(distinct) if len(distinct) <= MOST_ANNOUNCED else ()

    def delay_after(self, attempt: int, error: BaseException | None = None) -> timedelta | None:  # noqa: ARG002
        if self.attempts is not None and attempt >= self.attempts:
            return None
        delay = self.plain(attempt)
        if not self.jitter:
            return delay
        return min(delay * (1 + self.random.uniform(-self.jitter, self.jitter)), self.cap)

    def plain(self, attempt: int) -> timedelta:
        """Without jitter; what is beyond the largest number, or the longest time, is beyond the cap."""
        try:
            grown = self.first * self.factor ** (attempt - 1) if self.first else self.first  # nothing stays nothing
            delay = grown + self.step * (attempt - 1)
        except OverflowError:
            return self.cap
        return min(delay, self.cap)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Delays that a callable chooses."""

    choose: Choose

    @property
    def announced(self) -> tuple[timedelta, ...]:
        return ()

    def delay_after(self, attempt: int, error: BaseException | None = None) -> timedelta | None:
        if error is None:
            return None
        chosen = self.choose(attempt, error)
        return None if chosen is None else as_delay(chosen)


# --- checks ------------------------------------------------------------------------------------------------------------


def _attempts(value: int | None) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"attempts must be a whole number from 1, the first attempt included, or None, not {value!r}")
    return value


def _jitter(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigurationError(f"jitter is a part of the delay from 0 to 1, such as 0.1, not {value!r}")
    return float(value)


def _cap(value: Delay, first: Delay) -> timedelta:
    cap = as_delay(value)
    if cap < as_delay(first):
        raise DurationError(f"the first delay, {first!r}, is longer than the cap, {value!r}: give a longer cap")
    return cap
