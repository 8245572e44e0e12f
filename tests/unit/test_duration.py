"""Durations: accepted and refused texts."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.core.duration import as_delay, parse_duration
from outbox.errors import DurationError

ACCEPTED = {
    "0": timedelta(0),
    "0m": timedelta(0),
    "0s": timedelta(0),
    "0ms": timedelta(0),
    "1m": timedelta(minutes=1),
    "59m": timedelta(minutes=59),
    "30s": timedelta(seconds=30),
    "59s": timedelta(seconds=59),
    "1ms": timedelta(milliseconds=1),
    "500ms": timedelta(milliseconds=500),
    "999ms": timedelta(milliseconds=999),
    "1m30s": timedelta(seconds=90),
    "1m500ms": timedelta(seconds=60.5),
    "30s500ms": timedelta(seconds=30.5),
    "1m30s500ms": timedelta(seconds=90.5),
    "59m59s999ms": timedelta(minutes=59, seconds=59, milliseconds=999),
}
REFUSED = [
    "",
    " ",
    "5",
    "-5s",
    "+5s",
    "1h",
    "60m",
    "60s",
    "1000ms",
    "01m",
    "00m",
    "00",
    "0h",
    "0m0s",
    "1m0s",
    "0m30s",
    "30s1m",
    "500ms1s",
    "1m1m",
    "1.5s",
    "1,5s",
    "1 m",
    " 1m",
    "1m ",
    "1m\n",
    "1M",
    "1S",
    "1MS",
    "m",
    "s",
    "ms",
    "1d",
    "1us",
    "1m 30s",
    "1_0s",
    "\u0661s",
    "²s",
    "1e1s",
]


@pytest.mark.parametrize(("text", "duration"), ACCEPTED.items())
def test_an_accepted_duration_means_what_it_says(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", REFUSED)
def test_anything_else_is_refused_with_the_text_in_the_message(text: str) -> None:
    with pytest.raises(DurationError) as refusal:
        parse_duration(text)
    assert repr(text) in str(refusal.value)
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize(
    ("text", "written"), [("60s", "1m"), ("90s", "1m30s"), ("1500ms", "1s500ms"), ("05s", "5s"), ("3599s", "59m59s")]
)
def test_the_refusal_says_how_the_duration_is_written(text: str, written: str) -> None:
    with pytest.raises(DurationError, match=rf"; write '{text}' as '{written}'$"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["60m", "3600s", "1h", "00s", "1m60s", "9999999s"])
def test_the_refusal_of_what_cannot_be_written_has_no_example_of_it(text: str) -> None:
    with pytest.raises(DurationError, match=r"or '0'$"):
        parse_duration(text)


@pytest.mark.parametrize("value", [None, 5, 1.5, b"1m", timedelta(seconds=1), ["1m"]])
def test_what_is_not_text_is_refused_too(value: object) -> None:
    with pytest.raises(DurationError, match="must be a string such as '1m30s'"):
        parse_duration(value)  # type: ignore[arg-type]


@given(minutes=st.integers(0, 59), seconds=st.integers(0, 59), milliseconds=st.integers(0, 999))
def test_what_is_written_in_the_accepted_form_is_read_back(minutes: int, seconds: int, milliseconds: int) -> None:
    parts = [f"{number}{unit}" for number, unit in ((minutes, "m"), (seconds, "s"), (milliseconds, "ms")) if number]
    expected = timedelta(minutes=minutes, seconds=seconds, milliseconds=milliseconds)
    assert parse_duration("".join(parts) or "0") == expected


@given(st.text(alphabet="0123456789msh-+. ", max_size=8))
def test_no_text_is_read_as_a_negative_or_an_hour_long_duration(text: str) -> None:
    try:
        duration = parse_duration(text)
    except DurationError:
        return
    assert timedelta(0) <= duration < timedelta(hours=1)


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("1m", timedelta(minutes=1)),
        ("0", timedelta(0)),
        (0, timedelta(0)),
        (60, timedelta(minutes=1)),
        (7200, timedelta(hours=2)),
        (0.25, timedelta(milliseconds=250)),
        (timedelta(days=3), timedelta(days=3)),
    ],
)
def test_a_delay_is_a_duration_seconds_or_a_timedelta(value: str | float | timedelta, delay: timedelta) -> None:
    assert as_delay(value) == delay


@pytest.mark.parametrize(
    "value", [-1, -0.001, timedelta(seconds=-1), float("nan"), float("inf"), 1e300, True, None, "1h", b"1m"]
)
def test_a_delay_that_makes_no_sense_is_refused(value: object) -> None:
    with pytest.raises(DurationError):
        as_delay(value)  # type: ignore[arg-type]
