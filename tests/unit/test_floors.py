"""Claims from the front, until that has become slow."""

from outbox.postgres.floors import FRONT, MARGIN_SECONDS, Floor


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_as_long_as_it_is_quick_every_claim_begins_at_the_front() -> None:
    floor = Floor(Clock())
    assert floor.due == FRONT
    floor.claimed(since=FRONT, seconds=0.002, first=5.0)
    assert floor.due == FRONT
    assert floor.seconds_left == 0


def test_after_a_slow_claim_the_next_ones_begin_at_its_first_row_for_ten_times_as_long() -> None:
    clock = Clock()
    floor = Floor(clock)
    floor.claimed(since=FRONT, seconds=0.5, first=5.0)
    assert floor.due == 5.0 - MARGIN_SECONDS
    clock.now += 4.9
    assert floor.due == 5.0 - MARGIN_SECONDS
    clock.now += 0.2
    assert floor.due == FRONT


def test_the_floor_follows_what_is_claimed_from_it() -> None:
    clock = Clock()
    floor = Floor(clock)
    floor.claimed(since=FRONT, seconds=0.5, first=5.0)
    floor.claimed(since=floor.due, seconds=0.001, first=7.0)
    assert floor.due == 7.0 - MARGIN_SECONDS
    floor.claimed(since=floor.due, seconds=0.001, first=None)
    assert floor.due == 7.0 - MARGIN_SECONDS
    assert 4.9 < floor.seconds_left <= 5.0


def test_when_the_front_is_quick_again_claims_begin_there_again() -> None:
    clock = Clock()
    floor = Floor(clock)
    floor.claimed(since=FRONT, seconds=0.5, first=5.0)
    clock.now += 6
    floor.claimed(since=FRONT, seconds=0.001, first=9.0)
    assert floor.due == FRONT
