"""The policy between another attempt and the end."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.errors import ConfigurationError, RetryAfter
from outbox.outcome import Cause, Dead, Failure, Retry
from outbox.retry import Backoff, Delays, RetryPolicy

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FAILURE = Failure("ValueError", "boom")
SECOND = timedelta(seconds=1)


def test_delays_are_used_one_after_another_and_then_no_more() -> None:
    policy = RetryPolicy(Delays([SECOND, 10 * SECOND]))
    decisions = [policy.decide(FAILURE, attempt=attempt, now=NOW, expires_at=None) for attempt in (1, 2, 3, 4)]
    assert decisions == [
        Retry(SECOND, FAILURE),
        Retry(10 * SECOND, FAILURE),
        Dead(Cause.EXHAUSTED, FAILURE),
        Dead(Cause.EXHAUSTED, FAILURE),
    ]


def test_no_delays_mean_no_retries() -> None:
    assert RetryPolicy(Delays(())).decide(FAILURE, attempt=1, now=NOW, expires_at=None) == Dead(Cause.EXHAUSTED, FAILURE)


def test_a_delay_of_zero_is_a_retry() -> None:
    policy = RetryPolicy(Delays([timedelta(0)]))
    assert policy.decide(FAILURE, attempt=1, now=NOW, expires_at=None) == Retry(timedelta(0), FAILURE)


def test_a_delay_that_the_handler_chose_replaces_the_policy_s_even_after_the_last() -> None:
    policy = RetryPolicy(Delays([SECOND]))
    for attempt in (1, 2, 50):
        decision = policy.decide(FAILURE, attempt=attempt, now=NOW, expires_at=None, delay=timedelta(hours=1))
        assert decision == Retry(timedelta(hours=1), FAILURE)


@pytest.mark.parametrize(
    ("left", "decision"),
    [
        (timedelta(seconds=2), Retry(SECOND, FAILURE)),
        (timedelta(seconds=1), Dead(Cause.EXPIRED, FAILURE)),
        (timedelta(seconds=0.5), Dead(Cause.EXPIRED, FAILURE)),
        (timedelta(seconds=-5), Dead(Cause.EXPIRED, FAILURE)),
    ],
)
def test_a_retry_due_after_the_deadline_dies_as_expired(left: timedelta, decision: Retry | Dead) -> None:
    policy = RetryPolicy(Delays([SECOND]))
    assert policy.decide(FAILURE, attempt=1, now=NOW, expires_at=NOW + left) == decision


def test_the_deadline_holds_for_the_handler_s_own_delay_too() -> None:
    decision = RetryPolicy(Delays(())).decide(FAILURE, attempt=1, now=NOW, expires_at=NOW + SECOND, delay=2 * SECOND)
    assert decision == Dead(Cause.EXPIRED, FAILURE)


def test_who_is_exhausted_dies_of_that_even_when_expired() -> None:
    decision = RetryPolicy(Delays(())).decide(FAILURE, attempt=1, now=NOW, expires_at=NOW - SECOND)
    assert decision == Dead(Cause.EXHAUSTED, FAILURE)


def test_a_policy_names_its_own_cause_of_exhaustion() -> None:
    decision = RetryPolicy(Delays(()), exhausted=Cause.REFUSED).decide(FAILURE, attempt=1, now=NOW, expires_at=None)
    assert decision == Dead(Cause.REFUSED, FAILURE)


def backoff(*, seed: int = 1, jitter: float = 0.25, max_attempts: int = 20) -> Backoff:
    return Backoff(
        first=SECOND,
        longest=timedelta(minutes=5),
        max_attempts=max_attempts,
        jitter=jitter,
        random=random.Random(seed),
    )


def test_backoff_doubles_up_to_its_longest() -> None:
    delays = [backoff(jitter=0).delay_after(attempt) for attempt in range(1, 12)]
    assert [delay.total_seconds() for delay in delays if delay] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_backoff_ends_with_the_last_attempt() -> None:
    assert backoff(max_attempts=3).delay_after(2) is not None
    assert backoff(max_attempts=3).delay_after(3) is None
    assert backoff(max_attempts=3).delay_after(4) is None


@given(attempt=st.integers(1, 10_000), seed=st.integers())
def test_jitter_stays_within_a_quarter(attempt: int, seed: int) -> None:
    plain = backoff(jitter=0, max_attempts=20_000).delay_after(attempt)
    moved = backoff(seed=seed, max_attempts=20_000).delay_after(attempt)
    assert plain is not None
    assert moved is not None
    assert plain * 0.75 <= moved <= plain * 1.25


def test_jitter_differs_between_messages() -> None:
    policy = backoff()
    assert len({policy.delay_after(5) for _ in range(20)}) > 10


@pytest.mark.parametrize("delay", [timedelta(seconds=-1), 60, "1m", None])
def test_retry_after_takes_a_timedelta_that_is_not_negative(delay: object) -> None:
    with pytest.raises(ConfigurationError, match="timedelta"):
        RetryAfter(delay)  # type: ignore[arg-type]


def test_a_delay_beyond_the_end_of_time_outlasts_every_deadline() -> None:
    policy = RetryPolicy(Delays(()))
    decision = policy.decide(FAILURE, attempt=1, now=NOW, expires_at=NOW + timedelta(hours=1), delay=timedelta.max)
    assert decision == Dead(Cause.EXPIRED, FAILURE)
