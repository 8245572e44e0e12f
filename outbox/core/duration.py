"""Durations as people write them: `1m30s`, `500ms`, or plain seconds."""

import re
from collections.abc import Iterable
from datetime import timedelta

from outbox.errors import DurationError

_FORM = re.compile(r"(?:(?P<m>[1-9]|[1-5][0-9])m)?(?:(?P<s>[1-9]|[1-5][0-9])s)?(?:(?P<ms>[1-9][0-9]{0,2})ms)?", re.ASCII)
_DAYS_OR_HOURS = re.compile(r"(?P<number>[1-9][0-9]{0,5})(?P<unit>[dh])", re.ASCII)
_ZERO = frozenset({"0", "0m", "0s", "0ms"})


def parse_duration(text: str) -> timedelta:
    """The duration that `text` names, for example `1m30s`.

    Accepts `0 0m 0s 0ms` and minutes (1-59), seconds (1-59), milliseconds (1-999) in that order, each optional, none with a
    leading zero. Raises `DurationError` for anything else.
    """
    if not isinstance(text, str):
        raise DurationError(f"a duration is a string such as '1m30s', not {text!r}")
    if text in _ZERO:
        return timedelta(0)
    match = _FORM.fullmatch(text)
    if match is None or not text:
        raise DurationError(
            f"{text!r} is not a duration: write minutes (1-59), seconds (1-59) and milliseconds (1-999) "
            f"in that order, such as '1m30s' or '500ms', or '0'"
        )
    minutes, seconds, milliseconds = (int(match[unit] or 0) for unit in ("m", "s", "ms"))
    return timedelta(minutes=minutes, seconds=seconds, milliseconds=milliseconds)


def as_delay(value: str | float | timedelta) -> timedelta:
    """A retry delay given as a duration string, as seconds, or as a timedelta. Raises `DurationError` if negative."""
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        raise DurationError(f"a delay is a duration such as '1m30s' or a number of seconds, not {value!r}")
    try:
        delay = value if isinstance(value, timedelta) else timedelta(seconds=value)
    except (OverflowError, ValueError) as error:
        raise DurationError(f"{value!r} seconds is not a delay") from error
    if delay < timedelta(0):
        raise DurationError(f"a delay cannot be negative: {value!r}")
    return delay


def as_delays(values: Iterable[str | float | timedelta]) -> tuple[timedelta, ...]:
    """Retry delays, in order. A single string is refused: `retry_delays="1s"` would mean its letters."""
    if isinstance(values, str | bytes):
        raise DurationError(f"retry_delays is a sequence of durations: write ({values!r},) instead of {values!r}")
    return tuple(as_delay(value) for value in values)


def as_retention(value: str | float | timedelta) -> timedelta:
    """How long something is kept: `30d`, `12h`, or what `as_delay` takes. Raises `DurationError`."""
    match = _DAYS_OR_HOURS.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return as_delay(value)
    number = int(match["number"])
    return timedelta(days=number) if match["unit"] == "d" else timedelta(hours=number)


def format_duration(delay: timedelta) -> str:
    """Whole seconds as `60s`, anything finer as `1500ms`: the name that a delay has in a topology."""
    milliseconds = round(delay / timedelta(milliseconds=1))
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"
