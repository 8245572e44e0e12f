"""What follows when a handler raised: another attempt after a delay, or the end."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from outbox.core.message import Message
from outbox.core.outcome import Cause, Dead, Failure, Retry
from outbox.errors import Reject, RetryAfter

if TYPE_CHECKING:
    from outbox.engine.consuming import Consumer
    from outbox.retry import RetryPolicy

ErrorTypes = tuple[type[BaseException], ...]


class Judging:
    """Turns what the handler of one consumer raised into an outcome. `describe` puts an error into storable words."""

    def __init__(
        self,
        consumer: "Consumer",
        policy: "RetryPolicy",
        *,
        describe: Callable[[BaseException], Failure],
        now: Callable[[], datetime],
    ) -> None:
        self._dead_on = consumer.terms.dead_on
        self._pause_on = consumer.terms.pause_on
        self._policy = policy
        self._describe = describe
        self._now = now

    def outcome_of(self, error: BaseException, *, message: Message, attempt: int) -> Retry | Dead:
        """What becomes of `message`, whose attempt number `attempt` ended with `error`."""
        failure = self._describe(error)
        if isinstance(error, Reject) or (not isinstance(error, RetryAfter) and is_any_of(error, self._dead_on)):
            return Dead(Cause.REJECTED, failure)
        return self._policy.decide(
            failure,
            attempt=attempt,
            now=self._now(),
            expires_at=message.expires_at,
            delay=error.delay if isinstance(error, RetryAfter) else None,
            error=error,
        )

    def is_trouble(self, error: BaseException) -> bool:
        """Whether `error` is of a kind that its consumer pauses on."""
        return is_any_of(error, self._pause_on)


def is_any_of(error: BaseException, types: Sequence[type[BaseException]]) -> bool:
    """Whether `error` is of one of `types`, or is a group that holds one that is, at whatever depth."""
    return bool(types) and any(isinstance(part, tuple(types)) for part in _parts(error))


def _parts(error: BaseException) -> Iterator[BaseException]:
    yield error
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _parts(part)
