"""The policy that chooses between another attempt and a dead letter, and the strategies that compute the delays.

A consumer's `retry=` is one of `delays`, `constant`, `linear` and `exponential`, or a callable. `attempts` includes the first
attempt; None means unlimited.
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
"""Most delays that a computed strategy announces. A strategy with more announces none."""

Delay = str | float | timedelta
"""A duration such as `"1m30s"`, seconds, or a timedelta."""
Choose = Callable[[int, BaseException], Delay | None]
"""Returns the delay after the given attempt (from 1) failed with the given error; None to stop retrying."""


class Attempts(Protocol):
    """Computes the delay after a failed attempt."""

    def delay_after(self, attempt: int, error: BaseException | None = None) -> timedelta | None:
        """Returns the delay after attempt number `attempt` (from 1) failed with `error`; None if it was the last."""
        ...


class Strategy(Attempts, Protocol):
    """The type of a consumer's `retry`. `announced` are the delays known in advance, which a broker can prepare."""

    @property
    def announced(self) -> tuple[timedelta, ...]: ...


@dataclass(frozen=True, slots=True)
class Delays:
    """Uses the given delays in order, then stops: the strategy for `retry_delays`."""

    delays: Sequence[timedelta]

    @property
    def announced(self) -> tuple[timedelta, ...]:
        return tuple(self.delays)

    def delay_after(self, attempt: int, error: BaseException | None = None) -> timedelta | None:  # noqa: ARG002
        return self.delays[attempt - 1] if attempt <= len(self.delays) else None


def delays(*delays: Delay) -> Strategy:
    """Uses the given delays in order, then stops: `delays("1s", "10s", "1m")` makes four attempts."""
    return Delays(as_delays(delays))


def constant(delay: Delay, *, attempts: int | None, jitter: float = 0.0) -> Strategy:
    """Uses the same delay each time."""
    return _Computed(first=as_delay(delay), cap=timedelta.max, attempts=_attempts(attempts), jitter=_jitter(jitter))


def linear(first: Delay, *, step: Delay, cap: Delay = "5m", attempts: int | None, jitter: float = 0.0) -> Strategy:
    """Starts with `first` and adds `step` each time, up to `cap`."""
    return _Computed(
        first=as_delay(first), step=as_delay(step), cap=_cap(cap, first), attempts=_attempts(attempts), jitter=_jitter(jitter)
    )


def exponential(first: Delay, *, factor: float = 2, cap: Delay = "5m", attempts: int | None, jitter: float = 0.0) -> Strategy:
    """Starts with `first` and multiplies by `factor` each time, up to `cap`.

    `jitter` changes each delay at random by up to that fraction, never beyond `cap`: 0.1 by at most a tenth. On RabbitMQ each
    distinct delay needs a queue, so keep the default of 0 unless many messages fail at the same moment.
    """
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not (1 <= factor < math.inf):
        raise ConfigurationError(f"factor must be a number from 1, such as 2, not {factor!r}")
    return _Computed(
        first=as_delay(first),
        factor=float(factor),
        cap=_cap(cap, first),
        attempts=_attempts(attempts),
        jitter=_jitter(jitter),
    )


def as_strategy(value: object) -> Strategy:
    """Converts a consumer's `retry` to a strategy. Raises `ConfigurationError` unless it is a strategy or a callable."""
    if isinstance(value, Delays | _Computed | _FromCallable):
        return value
    if isinstance(value, type) or not callable(value):
        raise ConfigurationError(
            f"retry must be one of outbox.retry's delays, constant, linear and exponential, such as delays('1s', '1m'), "
            f"or a callable that takes attempt and error, not {value!r}"
        )
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None)):  # noqa: B004
        raise ConfigurationError("a retry strategy must not be async: write def instead of async def")
    try:
        inspect.signature(value).bind(1, ValueError())
    except ValueError:  # a built-in without a readable signature
        pass
    except TypeError as error:
        raise ConfigurationError(f"a retry strategy is called with attempt and error: {error}") from error
    return _FromCallable(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Starts with `first` and doubles up to `longest`, ± the fraction `jitter`, for at most `max_attempts` attempts."""

    first: timedelta
    longest: timedelta
    max_attempts: int
    jitter: float = 0.25
    random: Random

    def delay_after(self, attempt: int, error: BaseException | None = None) -> timedelta | None:  # noqa: ARG002
        if attempt >= self.max_attempts:
            return None
        # A larger power could take the delay out of the range of `timedelta`.
        doublings = min(attempt - 1, 30)
        delay: timedelta = min(self.first * 2**doublings, self.longest)
        return delay * (1 + self.random.uniform(-self.jitter, self.jitter))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Chooses between `Retry` and `Dead` after a failure, within the message's deadline.

    `describe` turns an exception of a strategy into a failure.
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
        """Returns what follows the failed attempt number `attempt`.

        A `delay` that the handler requested (`RetryAfter`) replaces the strategy's, even after the last attempt. If the retry
        would be due after `expires_at`, the message is dead as expired. If the strategy raises, or returns an invalid delay,
        the message is dead as exhausted, and the failure says so.
        """
        try:
            chosen = self.attempts.delay_after(attempt, error) if delay is None else delay
        except KeyboardInterrupt:
            raise
        except BaseException as broken:  # noqa: BLE001  a faulty strategy must not keep its message in flight
            note = f" (not retried: its retry strategy failed with {self.describe(broken)})"[:MESSAGE_LIMIT]
            return Dead(self.exhausted, replace(failure, message=failure.message[: MESSAGE_LIMIT - len(note)] + note))
        if chosen is None:
            return Dead(self.exhausted, failure)
        # Not `now + chosen`, which a very long delay would take out of the range of `datetime`.
        if expires_at is not None and chosen >= expires_at - now:
            return Dead(Cause.EXPIRED, failure)
        return Retry(chosen, failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Computed:
    """Starts with `first`, then adds `step` or multiplies by `factor` each time, up to `cap`, and applies `jitter`."""

    first: timedelta
    step: timedelta = timedelta(0)
    factor: float = 1.0
    cap: timedelta
    attempts: int | None
    jitter: float
    random: Random = field(default_factory=Random, repr=False, compare=False)

    @property
    def announced(self) -> tuple[timedelta, ...]:
        """The distinct delays, if there are few and no jitter."""
        if self.jitter:
            return ()
        distinct: dict[timedelta, None] = {}
        # One more than may be announced, to see whether there are more.
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
        """Returns the delay without jitter."""
        try:
            grown = self.first * self.factor ** (attempt - 1) if self.first else self.first  # 0 * inf would be an error
            delay = grown + self.step * (attempt - 1)
        except OverflowError:
            return self.cap
        return min(delay, self.cap)


@dataclass(frozen=True, slots=True)
class _FromCallable:
    """Delays returned by a callable."""

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
        raise ConfigurationError(f"attempts must be a whole number from 1, including the first attempt, or None, not {value!r}")
    return value


def _jitter(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigurationError(f"jitter must be a fraction from 0 to 1, such as 0.1, not {value!r}")
    return float(value)


def _cap(value: Delay, first: Delay) -> timedelta:
    cap = as_delay(value)
    if cap < as_delay(first):
        raise DurationError(f"the first delay, {first!r}, is longer than the cap, {value!r}: set a longer cap")
    return cap
