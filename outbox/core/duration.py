"""Parses and formats durations such as `1m30s` and `500ms`."""

import re
from collections.abc import Iterable, Set
from datetime import timedelta

from outbox.errors import DurationError

_FORM = re.compile(r"(?:(?P<m>[1-9]|[1-5][0-9])m)?(?:(?P<s>[1-9]|[1-5][0-9])s)?(?:(?P<ms>[1-9][0-9]{0,2})ms)?", re.ASCII)
_DAYS_OR_HOURS = re.compile(r"(?P<number>[1-9][0-9]{0,5})(?P<unit>[dh])", re.ASCII)
_ZERO = frozenset({"0", "0m", "0s", "0ms"})


def parse_duration(text: str) -> timedelta:
    """Parses a duration such as `1m30s`.

    Accepts `0 0m 0s 0ms` and minutes (1-59), seconds (1-59), milliseconds (1-999) in that order, each optional and without
    leading zeros. Raises `DurationError` for anything else.
    """
    if not isinstance(text, str):
        raise DurationError(f"a duration must be a string such as '1m30s', not {text!r}")
    if text in _ZERO:
        return timedelta(0)
    match = _FORM.fullmatch(text)
    if match is None or not text:
        raise DurationError(
            f"{text!r} is not a duration: write minutes (1-59), seconds (1-59) and milliseconds (1-999) "
            f"in that order, such as '1m30s' or '500ms', or '0'{_advice(text)}"
        )
    minutes, seconds, milliseconds = (int(match[unit] or 0) for unit in ("m", "s", "ms"))
    return timedelta(minutes=minutes, seconds=seconds, milliseconds=milliseconds)


def _advice(text: str) -> str:
    """How to write the duration that `text` means, such as `90s`; empty if it cannot be written."""
    match = re.fullmatch(r"(?P<number>[0-9]{1,7})(?P<unit>m|s|ms)", text, re.ASCII)
    milliseconds = int(match["number"]) * {"m": 60_000, "s": 1_000, "ms": 1}[match["unit"]] if match else 0
    if not 0 < milliseconds < 3_600_000:
        return ""
    seconds, milliseconds = divmod(milliseconds, 1_000)
    parts = ((seconds // 60, "m"), (seconds % 60, "s"), (milliseconds, "ms"))
    return f"; write {text!r} as '{''.join(f'{number}{unit}' for number, unit in parts if number)}'"


def as_delay(value: str | float | timedelta) -> timedelta:
    """Parses a retry delay: a duration string, seconds, or a timedelta. Raises `DurationError` if it is negative or invalid."""
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        raise DurationError(f"a delay must be a duration such as '1m30s' or a number of seconds, not {value!r}")
    try:
        delay = value if isinstance(value, timedelta) else timedelta(seconds=value)
    except (OverflowError, ValueError) as error:
        raise DurationError(f"{value!r} seconds is not a delay") from error
    if delay < timedelta(0):
        raise DurationError(f"a delay must not be negative: {delay.total_seconds():g} seconds")
    return delay


def as_delays(values: Iterable[str | float | timedelta]) -> tuple[timedelta, ...]:
    """Parses retry delays, in order. Refuses a single delay, and a string, whose letters would be the delays; and a set."""
    if isinstance(values, str | bytes | int | float | timedelta):
        raise DurationError(f"retry_delays must be a sequence of durations: write ({values!r},) instead of {values!r}")
    if not isinstance(values, Iterable) or isinstance(values, Set):
        raise DurationError(f"retry_delays must be a sequence of durations, in order, such as ('1s', '1m'), not {values!r}")
    return tuple(as_delay(value) for value in values)


def as_retention(value: str | float | timedelta) -> timedelta:
    """Parses a retention time: `30d`, `12h`, or a value that `as_delay` accepts. Raises `DurationError`."""
    match = _DAYS_OR_HOURS.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        try:
            return as_delay(value)
        except DurationError as error:
            if not isinstance(value, str):
                raise
            raise DurationError(f"{error}; or days or hours, such as '30d' or '12h'") from None
    number = int(match["number"])
    return timedelta(days=number) if match["unit"] == "d" else timedelta(hours=number)


def format_duration(delay: timedelta) -> str:
    """Formats a delay for the name of a queue: whole seconds as `60s`, others as `1500ms`."""
    milliseconds = round(delay / timedelta(milliseconds=1))
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"
