"""Maintenance: recurring duties, done by the one process that holds the lease."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Protocol

from outbox.core.events import Dependency, DutyDone, DutyFailed, MaintenanceStarted, MaintenanceStopped
from outbox.core.outcome import Failure
from outbox.engine.lifecycle import Outage, Pauses, Stopping
from outbox.errors import DatabaseUnavailableError
from outbox.ports import Observer

LEASE = timedelta(seconds=30)
"""How long the lease of a process that crashed keeps others from taking over. It is renewed every third of that time."""
LONGEST_PAUSE = timedelta(minutes=1)
"""Longest pause before a failed duty is retried, unless its interval is longer."""
STANDBY = timedelta(seconds=5)
"""How often a process in standby checks whether the lease is free."""


class Lease(Protocol):
    """A lease that only one process holds at a time."""

    async def hold(self) -> bool:
        """Acquires or renews the lease for `LEASE`. Returns whether this process has it. Raises `DatabaseUnavailableError`."""
        ...

    async def release(self) -> None:
        """Releases the lease at once. Raises `DatabaseUnavailableError`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """A recurring duty. `work` does one small batch and returns how many rows it changed; it is repeated until that is 0.

    Two processes must be able to do it at the same time without harm: a lease may expire unnoticed. While there is nothing to
    do, the pause after `every` doubles up to `idle`.
    """

    name: str
    every: timedelta
    work: Callable[[], Awaitable[int]]
    idle: timedelta | None = None


class MaintenanceRunner:
    """Does duties while it holds the lease, and waits in standby while another process does."""

    def __init__(self, lease: Lease, duties: Sequence[Duty], observer: Observer, *, lasts: timedelta = LEASE) -> None:
        self._lease = lease
        self._duties = duties
        self._observer = observer
        self._lasts = lasts
        self._outage = Outage(Dependency.DATABASE, observer)

    async def run(self, stopping: Stopping) -> None:
        """Works until `stopping` is requested; then finishes the running batch and releases the lease."""
        while not stopping.requested:
            try:
                has_lease = await self._lease.hold()
                self._outage.answers()
                if not has_lease:
                    await stopping.wait(STANDBY)
                    continue
                self._observer.notify(MaintenanceStarted())
                lost = Stopping()
                # One request for both: duties end in the same way when the process stops and when another one has the lease.
                with stopping.listen(lost.request):
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(self._keep_lease(lost))
                        for duty in self._duties:
                            tasks.create_task(self._repeat(duty, lost))
                with suppress(DatabaseUnavailableError):  # it expires
                    await self._lease.release()
                self._observer.notify(MaintenanceStopped())
            except DatabaseUnavailableError as error:
                await stopping.wait(self._outage.lost(error))

    async def _keep_lease(self, lost: Stopping) -> None:
        """Renews the lease. Requests `lost` when another process has it, or when it may have expired."""
        held_until = monotonic() + self._lasts.total_seconds()
        pauses = Pauses()
        pause = self._lasts / 3
        while not await lost.wait(pause):
            # The lease began at the database after this: counting from here never assumes too late an end.
            renewal_began = monotonic()
            try:
                if not await self._lease.hold():
                    lost.request()
            except DatabaseUnavailableError as error:
                self._outage.lost(error)
                pause = pauses.next()
                if monotonic() + pause.total_seconds() >= held_until:
                    lost.request()
            else:
                self._outage.answers()
                held_until, pause = renewal_began + self._lasts.total_seconds(), self._lasts / 3
                pauses.reset()

    async def _repeat(self, duty: Duty, lost: Stopping) -> None:
        """Does the duty at its interval, each time until no work is left. Retries a failed one less and less often."""
        pauses = Pauses(first=duty.every, longest=max(duty.every, LONGEST_PAUSE))
        reported, pause = "", duty.every
        while not lost.requested:
            total = 0
            try:
                while changed := await duty.work():
                    total += changed
                    if lost.requested:
                        break
            except Exception as error:  # noqa: BLE001  one failing duty must not stop the others
                failure, pause = Failure.of(error), pauses.next()
                if str(failure) != reported:
                    self._observer.notify(DutyFailed(duty=duty.name, failure=failure))
                reported = str(failure)
            else:
                pauses.reset()
                reported = ""
                pause = duty.every if total else min(pause * 2, duty.idle or duty.every)
            if total:
                self._observer.notify(DutyDone(duty=duty.name, changed=total))
            await lost.wait(pause)
