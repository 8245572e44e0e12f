"""Claims from the front, until that has become slow."""

from outbox.postgres.index_positions import FRONT, ScanStart


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_as_long_as_it_is_quick_every_claim_begins_at_the_front() -> None:
    scan_start = ScanStart(2, Clock())
    assert scan_start.due_times == (FRONT, FRONT)
    scan_start.record_claim(since=scan_start.due_times, seconds=0.002, firsts={0: 50.0})
    assert scan_start.due_times == (FRONT, FRONT)
    assert scan_start.seconds_left == 0


def test_after_a_slow_claim_the_next_ones_begin_before_its_first_row_for_ten_times_as_long() -> None:
    clock = Clock()
    scan_start = ScanStart(2, clock)
    scan_start.record_claim(since=scan_start.due_times, seconds=0.5, firsts={1: 50.0})
    assert scan_start.due_times == (FRONT, 49.0)
    clock.now += 4.9
    assert scan_start.due_times == (FRONT, 49.0)
    clock.now += 0.2
    assert scan_start.due_times == (FRONT, FRONT)


def test_the_start_follows_what_is_claimed_from_it() -> None:
    clock = Clock()
    scan_start = ScanStart(1, clock)
    scan_start.record_claim(since=scan_start.due_times, seconds=0.5, firsts={0: 50.0})
    scan_start.record_claim(since=scan_start.due_times, seconds=0.001, firsts={0: 70.0})
    assert scan_start.due_times == (69.0,)
    scan_start.record_claim(since=scan_start.due_times, seconds=0.001, firsts={})
    assert scan_start.due_times == (69.0,)
    assert scan_start.seconds_left == 5.0


def test_a_stretch_that_nothing_was_found_in_does_not_make_slow_what_is_not() -> None:
    clock = Clock()
    scan_start = ScanStart(2, clock)
    scan_start.record_claim(since=scan_start.due_times, seconds=0.5, firsts={1: 50.0})
    scan_start.record_claim(since=scan_start.due_times, seconds=0.6, firsts={})
    assert scan_start.seconds_left == 5.0


def test_when_the_front_is_quick_again_claims_begin_there_again() -> None:
    clock = Clock()
    scan_start = ScanStart(1, clock)
    scan_start.record_claim(since=scan_start.due_times, seconds=0.5, firsts={0: 50.0})
    clock.now += 6
    scan_start.record_claim(since=scan_start.due_times, seconds=0.001, firsts={0: 90.0})
    assert scan_start.due_times == (FRONT,)


def test_a_row_that_is_due_since_the_beginning_of_time_leaves_the_start_at_the_front() -> None:
    scan_start = ScanStart(2, Clock())
    beginning_of_time = -210_866_803_200.0  # in PostgreSQL, which knows no second before it
    scan_start.record_claim(since=scan_start.due_times, seconds=0.5, firsts={0: beginning_of_time, 1: FRONT})
    assert scan_start.due_times == (FRONT, FRONT)
