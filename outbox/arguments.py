"""Checks of constructor arguments: each returns the value in the form used inside, or raises, naming the argument."""

import math
from collections.abc import Collection
from datetime import timedelta
from typing import TypeVar

from outbox.errors import ConfigurationError

T = TypeVar("T")
LONGEST_TIME = timedelta(days=36_500)
"""A hundred years: what is added to a date must be a date."""
LARGEST_NUMBER = 2**31 - 1
EXCHANGE_NAME_LIMIT = 200
"""In bytes of UTF-8; AMQP allows 255, and delay exchanges append to the name."""


def seconds(name: str, value: float | timedelta) -> timedelta:
    """A positive time of at most a hundred years, given in seconds or as a timedelta."""
    if isinstance(value, timedelta):
        time = value
    elif isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigurationError(f"{name} is a time in seconds, not {value!r}")
    else:
        try:
            time = timedelta(seconds=value)
        except OverflowError as error:
            raise ConfigurationError(f"{name} is too long: {value!r} seconds") from error
    if time <= timedelta(0):
        raise ConfigurationError(f"{name} must be longer than zero, not {value!r}")
    if time > LONGEST_TIME:
        raise ConfigurationError(f"{name} is too long: {value!r}; the limit is a hundred years")
    return time


def at_least_one(name: str, value: int) -> int:
    """A whole number from 1 to that which four bytes hold."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_NUMBER:
        raise ConfigurationError(f"{name} must be a whole number from 1 to {LARGEST_NUMBER}, not {value!r}")
    return value


def one_of(name: str, value: T, choices: Collection[T]) -> T:
    """One of a few values."""
    if value not in choices:
        raise ConfigurationError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def exactly_one(**alternatives: object) -> None:
    """Exactly one of the arguments is given, that is, is not None."""
    given = [name for name, value in alternatives.items() if value is not None]
    if len(given) != 1:
        names = ", ".join(alternatives)
        raise ConfigurationError(f"give exactly one of {names}; {' and '.join(given) or 'none'} was given")


def exchange_name(value: str) -> str:
    """A name that an exchange can have."""
    if not isinstance(value, str) or not value or "\0" in value or not _is_short(value):
        raise ConfigurationError(f"exchange_name must be 1 to {EXCHANGE_NAME_LIMIT} bytes of text, not {value!r}")
    return value


def _is_short(name: str) -> bool:
    try:
        return len(name.encode()) <= EXCHANGE_NAME_LIMIT
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
