"""The policy that chooses between another attempt and a dead letter, and the retry strategies."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.core.outcome import Cause, Dead, Failure, Retry
from outbox.errors import ConfigurationError, RetryAfter
from outbox.retry import Backoff, Delays, RetryPolicy, Strategy, as_strategy, constant, delays, exponential, linear

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
def test_a_retry_due_after_the_deadline_is_dead_as_expired(left: timedelta, decision: Retry | Dead) -> None:
    policy = RetryPolicy(Delays([SECOND]))
    assert policy.decide(FAILURE, attempt=1, now=NOW, expires_at=NOW + left) == decision


def test_the_deadline_holds_for_the_handler_s_own_delay_too() -> None:
    decision = RetryPolicy(Delays(())).decide(FAILURE, attempt=1, now=NOW, expires_at=NOW + SECOND, delay=2 * SECOND)
    assert decision == Dead(Cause.EXPIRED, FAILURE)


def test_an_exhausted_message_is_dead_as_exhausted_even_if_it_has_expired() -> None:
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
    chosen = [backoff(jitter=0).delay_after(attempt) for attempt in range(1, 12)]
    assert [delay.total_seconds() for delay in chosen if delay] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


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


# --- strategies --------------------------------------------------------------------------------------------------------


class Flaky(Exception):
    """Errors of handlers."""


def waits(strategy: Strategy, limit: int = 30) -> list[float]:
    """The delays in seconds until the last attempt."""
    seconds = []
    for attempt in range(1, limit + 1):
        delay = strategy.delay_after(attempt, Flaky())
        if delay is None:
            break
        seconds.append(delay.total_seconds())
    return seconds


def test_each_strategy_spaces_its_attempts_as_it_says() -> None:
    assert waits(delays("1s", 10, timedelta(minutes=1))) == [1, 10, 60]
    assert waits(constant("500ms", attempts=4)) == [0.5, 0.5, 0.5]
    assert waits(linear("1s", step="5s", cap="12s", attempts=6)) == [1, 6, 11, 12, 12]
    assert waits(exponential("1s", cap="5s", attempts=6)) == [1, 2, 4, 5, 5]
    assert waits(exponential("100ms", factor=10, attempts=5)) == [0.1, 1, 10, 100]
    assert waits(as_strategy(lambda attempt, error: attempt * 2 if attempt < 3 else None)) == [2, 4]


def test_one_attempt_means_no_retry_and_none_means_no_last_one() -> None:
    assert waits(constant("1s", attempts=1)) == []
    assert waits(constant("1s", attempts=None), limit=500) == [1] * 500
    assert exponential("1s", attempts=None).delay_after(10**9, Flaky()) == timedelta(minutes=5)


durations = st.floats(min_value=0, max_value=600).map(lambda seconds: timedelta(seconds=seconds))
caps = st.floats(min_value=0, max_value=10_000).map(lambda seconds: timedelta(seconds=seconds))


@st.composite
def computed(draw: st.DrawFn, jitter: st.SearchStrategy[float]) -> tuple[Strategy, timedelta, int]:
    """A strategy, its cap, and how many attempts it makes."""
    first = draw(durations)
    cap = first + draw(caps)
    attempts = draw(st.integers(1, 60))
    options: dict[str, Any] = {"cap": cap, "attempts": attempts, "jitter": draw(jitter)}
    if draw(st.booleans()):
        return linear(first, step=draw(durations), **options), cap, attempts
    return exponential(first, factor=draw(st.floats(1, 1e6)), **options), cap, attempts


@given(computed(st.just(0.0)))
def test_without_jitter_delays_never_shrink_and_stay_within_the_cap(case: tuple[Strategy, timedelta, int]) -> None:
    strategy, cap, attempts = case
    seconds = waits(strategy, limit=100)
    assert len(seconds) == attempts - 1
    assert seconds == sorted(seconds)
    assert all(0 <= delay <= cap.total_seconds() for delay in seconds)


@given(computed(st.floats(0, 1)))
def test_with_jitter_delays_stay_within_the_cap_and_attempts_are_exact(case: tuple[Strategy, timedelta, int]) -> None:
    strategy, cap, attempts = case
    seconds = waits(strategy, limit=100)
    assert len(seconds) == attempts - 1
    assert all(0 <= delay <= cap.total_seconds() for delay in seconds)


@given(attempt=st.integers(1, 200), jitter=st.floats(0, 1))
def test_jitter_moves_a_delay_by_no_more_than_its_part(attempt: int, jitter: float) -> None:
    plain = exponential("1s", cap="5m", attempts=None).delay_after(attempt, Flaky())
    moved = exponential("1s", cap="5m", attempts=None, jitter=jitter).delay_after(attempt, Flaky())
    assert plain is not None
    assert moved is not None
    slack = timedelta(microseconds=1)
    assert plain * (1 - jitter) - slack <= moved <= min(plain * (1 + jitter) + slack, timedelta(minutes=5))


@given(
    case=computed(st.floats(0, 1)),
    attempt=st.integers(1, 80),
    left=st.floats(-10, 20_000).map(lambda seconds: timedelta(seconds=seconds)),
)
def test_no_retry_is_due_after_the_expiration(case: tuple[Strategy, timedelta, int], attempt: int, left: timedelta) -> None:
    strategy, _, attempts = case
    decision = RetryPolicy(strategy).decide(FAILURE, attempt=attempt, now=NOW, expires_at=NOW + left, error=Flaky())
    match decision:
        case Retry(delay):
            assert attempt < attempts
            assert delay < left
        case Dead(cause):
            assert cause is (Cause.EXHAUSTED if attempt >= attempts else Cause.EXPIRED)


def test_a_callable_gets_the_attempt_and_the_exception() -> None:
    asked: list[tuple[int, BaseException]] = []

    def choose(attempt: int, error: BaseException) -> str:
        asked.append((attempt, error))
        return "1m30s"

    error = Flaky("away")
    decision = RetryPolicy(as_strategy(choose)).decide(FAILURE, attempt=3, now=NOW, expires_at=None, error=error)
    assert decision == Retry(timedelta(seconds=90), FAILURE)
    assert asked == [(3, error)]


def failing(attempt: int, error: BaseException) -> float:
    raise ZeroDivisionError("nothing to divide by")


def leaving(attempt: int, error: BaseException) -> float:
    raise SystemExit(1)


@pytest.mark.parametrize(
    ("choose", "says"),
    [
        (failing, "ZeroDivisionError: nothing to divide by"),
        (leaving, "SystemExit: 1"),
        (lambda attempt, error: "1h", "'1h' is not a duration"),
        (lambda attempt, error: -1, "a delay must not be negative: -1"),
        (lambda attempt, error: True, "not True"),
        (lambda attempt, error: object(), "a delay must be a duration"),
        (lambda attempt, error: float("nan"), "nan seconds is not a delay"),
    ],
)
def test_an_invalid_delay_of_a_callable_makes_a_dead_letter_that_says_so(choose: Any, says: str) -> None:
    decision = RetryPolicy(as_strategy(choose)).decide(FAILURE, attempt=1, now=NOW, expires_at=None, error=Flaky())
    assert isinstance(decision, Dead)
    assert decision.cause is Cause.EXHAUSTED
    assert decision.failure.type == "ValueError"
    assert decision.failure.message.startswith("boom (not retried: its retry strategy failed with ")
    assert says in decision.failure.message


def test_the_error_of_a_faulty_strategy_fits_next_to_the_handler_s() -> None:
    def choose(attempt: int, error: BaseException) -> float:
        raise ValueError("y" * 10_000)

    policy = RetryPolicy(as_strategy(choose))
    decision = policy.decide(Failure("ValueError", "x" * 2_000), attempt=1, now=NOW, expires_at=None, error=Flaky())
    assert len(decision.failure.message) == 2_000
    assert "its retry strategy failed with ValueError: yyy" in decision.failure.message


@pytest.mark.parametrize(
    "make",
    [
        lambda: as_strategy(("1s", "10s")),
        lambda: as_strategy("1s"),
        lambda: as_strategy(ValueError),
        lambda: as_strategy(lambda attempt: 1),
        lambda: as_strategy(sleeping),
        lambda: constant("1h", attempts=3),
        lambda: constant(-1, attempts=3),
        lambda: constant("1s", attempts=0),
        lambda: constant("1s", attempts=True),
        lambda: constant("1s", attempts=2.5),  # type: ignore[arg-type]
        lambda: constant("1s", attempts=3, jitter=1.5),
        lambda: linear("10s", step="1s", cap="5s", attempts=3),
        lambda: linear("1s", step=-1, attempts=3),
        lambda: exponential("10m", attempts=3),
        lambda: exponential("1s", factor=0.5, attempts=3),
        lambda: exponential("1s", factor=float("inf"), attempts=3),
        lambda: delays("1s", "2x"),
    ],
)
def test_a_strategy_that_makes_no_sense_is_refused_when_it_is_built(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()


async def sleeping(attempt: int, error: BaseException) -> float:
    return 1.0


def test_what_is_known_beforehand_is_announced() -> None:
    assert delays("1s", "10s").announced == (SECOND, 10 * SECOND)
    assert constant("10s", attempts=None).announced == (10 * SECOND,)
    assert constant("10s", attempts=1).announced == ()
    assert linear("1s", step="1s", cap="3s", attempts=None).announced == (SECOND, 2 * SECOND, 3 * SECOND)
    assert [delay.total_seconds() for delay in exponential("1s", attempts=None).announced] == [
        *(1, 2, 4, 8, 16, 32, 64, 128, 256, 300)
    ]
    assert linear("1s", step="1s", attempts=None).announced == ()
    assert exponential("1s", attempts=5, jitter=0.1).announced == ()
    assert as_strategy(lambda attempt, error: 1).announced == ()


@given(computed(st.just(0.0)))
def test_no_other_delays_than_the_announced_are_used(case: tuple[Strategy, timedelta, int]) -> None:
    strategy, _, _ = case
    if strategy.announced:
        assert {delay.total_seconds() for delay in strategy.announced} == set(waits(strategy, limit=100))


def test_equal_strategies_are_equal_so_that_a_consumer_may_be_named_twice() -> None:
    assert exponential("1s", attempts=5, jitter=0.1) == exponential(1, attempts=5, jitter=0.1)
    assert hash(delays("1s")) == hash(delays(1))
    assert as_strategy(failing) == as_strategy(failing)


def test_no_delay_at_all_stays_none_however_often_it_is_multiplied() -> None:
    strategy = exponential("0", factor=1e300, cap="1s", attempts=5)
    assert {strategy.delay_after(attempt) for attempt in range(1, 5)} == {timedelta(0)}
