"""The hybrid logical clock: stamps that follow time as long as it follows causes and effects, and these always."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.core.clock import DatabaseClock, HybridClock, as_clock
from outbox.errors import ConfigurationError

NOON = 1_700_000_000_000_000
SECOND = 1_000_000


class WallClock:
    """Stands where it was set."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def test_a_stamp_is_the_time_in_microseconds() -> None:
    assert HybridClock(wall_clock=WallClock(NOON)).next() == NOON


def test_the_wall_clock_of_the_machine_is_followed_by_default() -> None:
    assert 1_700_000_000_000_000 < HybridClock().next() < 10_000_000_000_000_000


def test_stamps_of_one_microsecond_differ() -> None:
    clock = HybridClock(wall_clock=WallClock(NOON))
    assert [clock.next(), clock.next(), clock.next()] == [NOON, NOON + 1, NOON + 2]


def test_stamps_go_on_where_the_wall_clock_runs_backwards() -> None:
    wall = WallClock(NOON)
    clock = HybridClock(wall_clock=wall)
    clock.next()
    wall.now -= 3600 * SECOND
    assert clock.next() == NOON + 1


def test_an_effect_s_stamp_is_above_its_cause_s() -> None:
    clock = HybridClock(wall_clock=WallClock(NOON))
    clock.observe(NOON + 3 * SECOND)
    assert clock.next() == NOON + 3 * SECOND + 1


def test_a_stamp_of_the_past_changes_nothing() -> None:
    clock = HybridClock(wall_clock=WallClock(NOON))
    clock.next()
    clock.observe(NOON - 3 * SECOND)
    assert clock.next() == NOON + 1


@pytest.mark.parametrize(("ahead", "followed"), [(5 * SECOND, True), (5 * SECOND + 1, False)])
def test_a_stamp_is_followed_up_to_the_tolerance(ahead: int, followed: bool) -> None:
    clock = HybridClock(wall_clock=WallClock(NOON))
    clock.observe(NOON + ahead)
    assert clock.next() == (NOON + ahead + 1 if followed else NOON)
    assert clock.ignored == (0 if followed else 1)


def test_the_tolerance_can_be_chosen() -> None:
    clock = HybridClock(tolerance=timedelta(minutes=1), wall_clock=WallClock(NOON))
    clock.observe(NOON + 50 * SECOND)
    assert clock.next() == NOON + 50 * SECOND + 1


def test_many_stamps_within_the_tolerance_do_not_add_up_beyond_it() -> None:
    wall = WallClock(NOON)
    here, there = HybridClock(wall_clock=wall), HybridClock(wall_clock=wall)
    here.observe(NOON + 4 * SECOND)
    for _ in range(1000):
        there.observe(here.next())
        here.observe(there.next())
    assert here.next() < NOON + 5 * SECOND


def test_stamps_too_far_ahead_are_counted_and_warned_of_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    wall = WallClock(NOON)
    clock = HybridClock(wall_clock=wall)
    with caplog.at_level(logging.WARNING, "outbox"):
        for _ in range(100):
            clock.observe(wall.now + 3600 * SECOND)
        wall.now += 61 * SECOND
        clock.observe(wall.now + 3600 * SECOND)

    assert clock.ignored == 101
    first, second = (record.getMessage() for record in caplog.records)
    assert "3600.000 s ahead" in first
    assert "(1 so far)" in first
    assert "(101 so far)" in second


@given(st.lists(st.one_of(st.integers(0, 2 * NOON), st.none()), max_size=60), st.integers(0, 20 * SECOND))
def test_stamps_rise_whatever_the_wall_clock_and_others_do(events: Sequence[int | None], tolerance: int) -> None:
    """A number sets the wall clock, or is the timestamp of another clock; None makes a timestamp."""
    wall = WallClock(NOON)
    clock = HybridClock(tolerance=timedelta(microseconds=tolerance), wall_clock=wall)
    stamps: list[int] = []
    for position, event in enumerate(events):
        if event is None:
            stamps.append(clock.next())
        elif position % 2:
            wall.now = event
        else:
            clock.observe(event)
            if event - wall.now <= tolerance:
                assert clock.next() > event
    assert stamps == sorted(set(stamps))


Machines = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)
Offsets = st.lists(st.integers(-2_400_000, 2_400_000), min_size=4, max_size=4)


@given(Machines, Offsets)
def test_along_any_path_of_messages_between_machines_stamps_rise(
    hops: Sequence[tuple[int, int]], offsets: Sequence[int]
) -> None:
    """Four machines, whose clocks differ by less than the tolerance, send each other messages."""
    time = NOON

    def wall_clock(offset: int) -> Callable[[], int]:
        return lambda: time + offset

    clocks = [HybridClock(wall_clock=wall_clock(offset)) for offset in offsets]
    known = [0, 0, 0, 0]
    for sender, receiver in hops:
        time += 1_000
        stamp = clocks[sender].next()
        assert stamp > known[sender]
        known[sender] = stamp
        clocks[receiver].observe(stamp)
        known[receiver] = max(known[receiver], stamp)
    assert all(clock.ignored == 0 for clock in clocks)


def test_threads_never_get_the_same_stamp() -> None:
    clock = HybridClock(wall_clock=WallClock(NOON))
    with ThreadPoolExecutor(8) as threads:
        stamps = [stamp for some in threads.map(lambda _: [clock.next() for _ in range(500)], range(8)) for stamp in some]
    assert len(set(stamps)) == 4000


def test_hlc_is_the_one_clock_of_the_process() -> None:
    own = HybridClock()
    assert as_clock("hlc") is as_clock("hlc")
    assert as_clock(own) is own
    assert as_clock(None) is None


@pytest.mark.parametrize("clock", ["HLC", True, 0])
def test_an_invalid_clock_is_refused(clock: object) -> None:
    with pytest.raises(ConfigurationError, match="clock must be"):
        as_clock(clock)  # type: ignore[arg-type]


@pytest.mark.parametrize("tolerance", [timedelta(microseconds=-1), 5, None])
def test_a_tolerance_is_a_time_that_is_not_negative(tolerance: object) -> None:
    with pytest.raises(ConfigurationError, match="tolerance"):
        HybridClock(tolerance=tolerance)  # type: ignore[arg-type]


# --- the database's clock


class Clocks:
    """A machine's two clocks, which a test moves by hand, and a database's that is right."""

    def __init__(self) -> None:
        self.wall = self.steady = self.database = 1_000.0
        self.clock = DatabaseClock(wall_clock=lambda: self.wall, steady_clock=lambda: self.steady)

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds
        self.database += seconds

    def measure(self, *, there: float = 0.001, back: float = 0.001) -> None:
        asked = self.steady
        self.pass_(there)
        said = self.database
        self.pass_(back)
        self.clock.measured(said, asked=asked)


def test_without_a_database_the_time_is_the_machine_s() -> None:
    clocks = Clocks()
    clocks.wall = 5_000.0
    assert clocks.clock.seconds() == 5_000.0
    assert clocks.clock.now() == datetime.fromtimestamp(5_000, UTC)


@pytest.mark.parametrize("wrong", [-3_600.0, 0.0, 3_600.0])
def test_with_a_database_the_time_is_the_database_s_also_when_the_machine_s_is_set_right(wrong: float) -> None:
    clocks = Clocks()
    clocks.wall += wrong
    clocks.measure()
    clocks.pass_(100)
    clocks.wall -= wrong
    clocks.pass_(100)
    assert clocks.clock.seconds() == pytest.approx(clocks.database, abs=0.01)


def test_an_answer_that_came_late_does_not_replace_a_better_one_before_that_is_old() -> None:
    clocks = Clocks()
    clocks.measure()
    clocks.measure(there=10.0, back=0.0)
    assert clocks.clock.seconds() == pytest.approx(clocks.database, abs=0.01)
    clocks.pass_(2_000)
    clocks.database += 70  # a failover to a server with another clock
    clocks.measure(there=10.0, back=0.0)
    assert clocks.clock.seconds() == pytest.approx(clocks.database, abs=5.01)


def test_a_difference_is_warned_of_once_and_again_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    caplog.set_level(logging.INFO, "outbox")

    def logged_after(change: float, **times: float) -> list[str]:
        caplog.clear()
        clocks.wall += change
        clocks.pass_(5_000)
        for _ in range(3):
            clocks.measure(**times)
        return [f"{record.levelname} {record.getMessage()}"[:60] for record in caplog.records]

    assert logged_after(0.9) == []
    assert logged_after(3_599.1) == ["WARNING this machine's clock is 3600.0 s ahead of the databa"]
    assert logged_after(0.5) == []
    assert logged_after(-7_200.5) == ["WARNING this machine's clock is 3600.0 s behind the database"]
    assert logged_after(3_600) == ["INFO this machine's clock and the database's agree again"]
    assert logged_after(0.0, there=0.1, back=5.0) == [], "the answer was too late to compare"
