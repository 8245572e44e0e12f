"""What a consumer can ask for beyond its messages: each option checked, and brought into the form used inside."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from outbox.core.arguments import LONGEST_TIME, at_least_one, seconds
from outbox.core.duration import as_delay, as_delays
from outbox.errors import ConfigurationError, DurationError, Reject, RetryAfter
from outbox.retry import Delays, Strategy, as_strategy

PAUSE_AFTER = 5
PAUSE_FOR = "30s"
LONGEST_PAUSE = timedelta(days=1)
_NEVER_FAILURES = (KeyboardInterrupt,)
"""They end the process, and no attempt."""

Errors = type[BaseException] | Sequence[type[BaseException]]
Time = str | float | timedelta
"""A duration such as `"1m30s"`, seconds, or a timedelta."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pausing:
    """After `failures` of these `kinds` without a success between them, a consumer pauses for `pause`."""

    kinds: tuple[type[BaseException], ...]
    failures: int
    pause: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms on which a callback is called: all options that are about failures and time, in the form used inside.

    `strategy` None is the worker's; `timeout` None is no limit; `pausing` None is no pause.
    """

    strategy: Strategy | None
    dead_on: tuple[type[BaseException], ...]
    timeout: timedelta | None
    pausing: Pausing | None

    @property
    def pause_on(self) -> tuple[type[BaseException], ...]:
        """The exceptions that the consumer pauses on."""
        return () if self.pausing is None else self.pausing.kinds


def terms(
    *,
    retry_delays: Sequence[Time] | None,
    retry: object,
    dead_on: Errors,
    timeout: Time | None,
    pause_on: Errors,
    pause_after: int,
    pause_for: Time,
) -> Terms:
    """What these options of a consumer mean together. Raises `ConfigurationError` if that makes no sense."""
    if retry is not None and retry_delays is not None:
        raise ConfigurationError("give retry or retry_delays, not both: retry=delays('1s', '1m') is retry_delays=('1s', '1m')")
    own_delays = None if retry_delays is None else Delays(as_delays(retry_delays))
    return Terms(
        strategy=own_delays if retry is None else as_strategy(retry),
        dead_on=dead_on_errors(dead_on),
        timeout=None if timeout is None else positive_time("timeout", timeout),
        pausing=pausing(pause_on_errors(pause_on), pause_after, pause_for),
    )


def positive_time(name: str, value: Time, *, most: timedelta = LONGEST_TIME, because: str = "") -> timedelta:
    """A time that is longer than zero, and not absurd."""
    try:
        time = as_delay(value)
    except DurationError as error:
        raise DurationError(f"{name}: {error}") from None
    return seconds(name, time, most=most, because=because)


def dead_on_errors(value: Errors) -> tuple[type[BaseException], ...]:
    """The exceptions that are permanent. Those with which a handler chooses the outcome itself cannot be among them."""
    return _error_types("dead_on", value, refused=(Reject, RetryAfter))


def pause_on_errors(value: Errors) -> tuple[type[BaseException], ...]:
    """The exceptions that say that something is away. `RetryAfter` may be one of them, `Reject` says nothing of the kind."""
    return _error_types("pause_on", value, refused=(Reject,))


def pausing(kinds: tuple[type[BaseException], ...], failures: int, pause: Time) -> Pausing | None:
    """The rule that three options make together; None without `pause_on`, and then the others must not be given."""
    because = "nothing is handled meanwhile, and no success can end it sooner"
    length = positive_time("pause_for", pause, most=LONGEST_PAUSE, because=because)
    rule = Pausing(kinds=kinds, failures=at_least_one("pause_after", failures), pause=length)
    if kinds:
        return rule
    if (rule.failures, rule.pause) != (PAUSE_AFTER, as_delay(PAUSE_FOR)):
        raise ConfigurationError("pause_after and pause_for say nothing without pause_on: name the exceptions to pause on")
    return None


def _error_types(name: str, value: Errors, *, refused: tuple[type[BaseException], ...]) -> tuple[type[BaseException], ...]:
    types = (value,) if isinstance(value, type) else tuple(value)
    for type_ in types:
        if not isinstance(type_, type) or not issubclass(type_, BaseException):
            raise ConfigurationError(f"{name} takes types of exceptions, such as (ConnectionError,), not {type_!r}")
        if issubclass(type_, _NEVER_FAILURES):
            raise ConfigurationError(f"{name} cannot take {type_.__name__}, which ends more than an attempt")
        if issubclass(type_, refused):
            raise ConfigurationError(f"{name} cannot take {type_.__name__}, with which a handler chooses the outcome itself")
    return types
