"""Servers that come and go: told when one is lost, and why, and when it answers again; and how long to wait meanwhile."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from outbox.core.events import Dependency, DependencyLost, DependencyRestored
from outbox.engine.backoff import Pauses
from outbox.engine.lifecycle import Stopping
from outbox.errors import BrokerUnavailableError, DatabaseUnavailableError, OutboxError, StatementTimeoutError
from outbox.ports import Observer

LONGEST_PAUSE = {Dependency.BROKER: timedelta(seconds=5), Dependency.DATABASE: timedelta(seconds=1)}
"""How long to wait at most before a lost server is tried again."""
MOST_REASONS = 10
"""How many different reasons of one outage are told, each once."""


class Outage:
    """Whether one server answers."""

    def __init__(self, dependency: Dependency, observer: Observer) -> None:
        self._dependency = dependency
        self._observer = observer
        self._pauses = Pauses(longest=LONGEST_PAUSE[dependency])
        self._reasons: set[str] = set()

    def lost(self, error: OutboxError) -> timedelta:
        """Notes that the server is away, refuses or takes too long; how long to wait before trying it again.

        A reason that is new is told: what began as an outage may go on as a missing table or right, which somebody must mend.
        """
        reason = str(error)
        if reason not in self._reasons and len(self._reasons) < MOST_REASONS:
            self._reasons.add(reason)
            timed_out = isinstance(error, StatementTimeoutError)
            self._observer.notify(DependencyLost(dependency=self._dependency, reason=reason, timed_out=timed_out))
        return self._pauses.next()

    def answers(self) -> None:
        """Notes that the server answers."""
        if self._reasons:
            self._reasons.clear()
            self._observer.notify(DependencyRestored(dependency=self._dependency))
        self._pauses.reset()


async def until_it_answers(attempt: Callable[[], Awaitable[None]], stopping: Stopping, observer: Observer) -> bool:
    """Makes `attempt` until nothing is unavailable any more; False if `stopping` was requested before that.

    Whatever else `attempt` raises is raised: waiting would not mend it.
    """
    outages = {dependency: Outage(dependency, observer) for dependency in Dependency}
    while not stopping.requested:
        try:
            await attempt()
        except DatabaseUnavailableError as error:
            await stopping.wait(outages[Dependency.DATABASE].lost(error))
        except BrokerUnavailableError as error:
            await stopping.wait(outages[Dependency.BROKER].lost(error))
        else:
            for outage in outages.values():
                outage.answers()
            return True
    return False
