"""Checks of constructor arguments. Each returns the parsed value, or raises `ConfigurationError` naming the argument."""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from outbox.core.byte_limits import ByteLimits
from outbox.errors import ConfigurationError

T = TypeVar("T")
LONGEST_TIME = timedelta(days=36_500)
"""A hundred years: adding it to a date must give a valid date."""
LARGEST_NUMBER = 2**31 - 1
EXCHANGE_NAME_LIMIT = 200
"""In bytes of UTF-8; AMQP allows 255, and delay exchanges append to the name."""
MOST_LANES = 64
LARGEST_BATCH_SIZE = 100_000
SHORTEST_INTERVAL = timedelta(milliseconds=10)
LONGEST_INTERVAL = timedelta(days=1)
LONGEST_GRACE_PERIOD = timedelta(days=1)
LONGEST_SEND = timedelta(hours=1)
SHORTEST_RETENTION = timedelta(minutes=1)


def seconds(
    name: str, value: float | timedelta, *, least: timedelta | None = None, most: timedelta = LONGEST_TIME, because: str = ""
) -> timedelta:
    """Parses a positive time from `least` to `most`, in seconds or as a timedelta. `because` is the reason for the limits."""
    if isinstance(value, timedelta):
        time = value
    elif isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigurationError(f"{name} must be a time in seconds, not {value!r}")
    else:
        try:
            time = timedelta(seconds=value)
        except OverflowError as error:
            raise ConfigurationError(f"{name} is too long: {value!r} seconds") from error
    given = f"{value.total_seconds():,.12g} seconds" if isinstance(value, timedelta) else repr(value)
    if time <= timedelta(0):
        raise ConfigurationError(f"{name} must be longer than zero, not {given}")
    if time > most:
        limit = "a hundred years" if most == LONGEST_TIME else f"{most.total_seconds():,.0f} seconds{_reason(because)}"
        raise ConfigurationError(f"{name} is too long: {given}; the limit is {limit}")
    if least is not None and time < least:
        raise ConfigurationError(f"{name} must be at least {least.total_seconds():g} seconds, not {given}{_reason(because)}")
    return time


def interval(name: str, value: float | timedelta) -> timedelta:
    """Parses an interval from 10 milliseconds to a day."""
    because = "a shorter interval would overload the database, and a longer one is as good as never"
    return seconds(name, value, least=SHORTEST_INTERVAL, most=LONGEST_INTERVAL, because=because)


def send_timeout(name: str, value: float | timedelta) -> timedelta:
    """Parses the time limit for sending a batch, from 10 milliseconds to an hour."""
    because = "a batch's rows are locked meanwhile, and in less time nothing would be confirmed"
    return seconds(name, value, least=SHORTEST_INTERVAL, most=LONGEST_SEND, because=because)


def grace_period(value: float | timedelta) -> timedelta:
    """Parses the time that a process may take to end, up to a day."""
    return seconds("grace_period", value, most=LONGEST_GRACE_PERIOD, because="a process that is asked to stop must stop")


def retention(name: str, value: float | timedelta) -> timedelta:
    """Parses a retention time from a minute to a hundred years."""
    return seconds(name, value, least=SHORTEST_RETENTION, because="data kept for less would be deleted before it is of use")


def lanes(value: int) -> int:
    """Checks the number of batches that a relay has in flight at once."""
    return at_least_one("lanes", value, most=MOST_LANES, because="each holds a connection, a transaction and a batch in memory")


def batch_size(value: int) -> int:
    """Checks the number of messages that a relay claims at once."""
    because = "a batch is one transaction, and is held in memory"
    return at_least_one("batch_size", value, most=LARGEST_BATCH_SIZE, because=because)


def at_least_one(name: str, value: int, *, most: int = LARGEST_NUMBER, because: str = "") -> int:
    """Checks a whole number from 1 to `most`, by default the largest 4-byte integer. `because` is the reason for the limit."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ConfigurationError(f"{name} must be a whole number from 1 to {most}, not {value!r}{_reason(because)}")
    return value


def byte_limits(*, max_batch_bytes: int, max_body_bytes: int) -> ByteLimits:
    """Checks two sizes in bytes, each at least one."""
    return ByteLimits(
        batch=at_least_one("max_batch_bytes", max_batch_bytes), body=at_least_one("max_body_bytes", max_body_bytes)
    )


def body_tools(*, encryption: object, large_bodies: object) -> None:
    """Checks what encrypts and stores bodies, by its methods: the classes need extras that may not be installed."""
    if encryption is not None and not callable(getattr(encryption, "decrypt", None)):
        # Without the value, which may be a key.
        raise ConfigurationError(f"encryption must be an outbox.encryption.Encryption, not {type(encryption).__name__}")
    if large_bodies is not None and not callable(getattr(large_bodies, "put_all", None)):
        raise ConfigurationError(f"large_bodies must be an outbox.large_bodies.LargeBodies, not {large_bodies!r:.80}")


def one_of(name: str, value: T, choices: Collection[T]) -> T:
    """Checks that the value is one of `choices`, which are text."""
    if value not in choices:
        raise ConfigurationError(f"{name} must be one of {', '.join(map(repr, map(str, choices)))}, not {value!r}")
    return value


def exactly_one(**alternatives: object) -> None:
    """Checks that exactly one of the arguments is given, that is, not None."""
    given = [name for name, value in alternatives.items() if value is not None]
    if len(given) != 1:
        names = ", ".join(alternatives)
        raise ConfigurationError(f"give exactly one of {names}; {' and '.join(given) or 'none'} was given")


def exchange_name(value: str) -> str:
    """Checks the name of an exchange."""
    try:
        is_short = isinstance(value, str) and 0 < len(value.encode()) <= EXCHANGE_NAME_LIMIT
    except UnicodeEncodeError:  # half of a surrogate pair
        is_short = False
    if not is_short or "\0" in value:
        raise ConfigurationError(f"exchange_name must be 1 to {EXCHANGE_NAME_LIMIT} bytes of text, not {value!r}")
    return value


def call_arguments(name: object, args: object, kwargs: object) -> tuple[list[Any], dict[str, Any]]:
    """Returns positional and named arguments for a call of the function `name` in another framework."""
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"the name of the function to call must be non-empty text, not {name!r}")
    # A string is a sequence, too, but `args="order 7"` would be seven arguments.
    if not isinstance(args, Sequence) or isinstance(args, str | bytes | bytearray):
        raise ConfigurationError(f"args of {name!r} must be a list or a tuple, not {type(args).__name__}")
    if not isinstance(kwargs, Mapping | None):
        raise ConfigurationError(f"kwargs of {name!r} must be a mapping, not {type(kwargs).__name__}")
    if unnamed := [key for key in kwargs or () if not isinstance(key, str)]:
        raise ConfigurationError(f"kwargs of {name!r} must have text as names, not {unnamed[0]!r}")
    return list(args), dict(kwargs or {})


def pool(value: T, *, size: int) -> T:
    """Checks an asyncpg pool with room for `size` connections, or None."""
    room = getattr(value, "get_max_size", None)
    if value is not None and not callable(room):
        raise ConfigurationError(f"db_pool must be an asyncpg pool, not {type(value).__name__}")
    if room is not None and room() < size:
        raise ConfigurationError(f"db_pool must have room for {size} connections, not {room()}")
    return value


def _reason(because: str) -> str:
    return f": {because}" if because else ""
