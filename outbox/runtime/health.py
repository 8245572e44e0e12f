"""Whether this process can do its work now: named checks, run together, with a limit on the time they take.

`HealthChecks` runs them; `checking` adds those of what a process of Outbox needs: the database, the schema, the broker.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from outbox.core.urls import redacted

if TYPE_CHECKING:
    from outbox.postgres.pool import Pool

logger = logging.getLogger("outbox")

Check = Callable[[], Awaitable[None]]
"""Returns when all is well; raises when it is not, with a message for the log."""

OK = "ok"
UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Health:
    """What the checks found: `ok` or `unavailable` for each part, and nothing that strangers should not read."""

    parts: Mapping[str, str]

    @property
    def ready(self) -> bool:
        """Whether every part is well."""
        return all(state == OK for state in self.parts.values())

    def as_json(self) -> dict[str, object]:
        """The body of the readiness endpoint."""
        return {"status": "ready" if self.ready else "not_ready", "parts": dict(self.parts)}


class HealthChecks:
    """The checks of one process. Reports are shared: however often it is asked, the parts are looked at once a second.

    Args:
        checks: by the name of the part that each looks at.
        timeout: what takes longer counts as not well.
        kept_for: how old a report may be.
    """

    def __init__(
        self,
        checks: Mapping[str, Check] | None = None,
        *,
        timeout: timedelta = timedelta(seconds=3),
        kept_for: timedelta = timedelta(seconds=1),
    ) -> None:
        self._checks = dict(checks or {})
        self._timeout = timeout
        self._kept_for = kept_for
        self._problems: dict[str, str] = {}
        self._last: Health | None = None
        self._expires = 0.0
        self._running: asyncio.Task[Health] | None = None

    @contextmanager
    def including(self, checks: Mapping[str, Check]) -> Iterator[None]:
        """Within the block these are checked too."""
        self._checks.update(checks)
        self._last = None
        try:
            yield
        finally:
            for name in checks:
                self._checks.pop(name, None)
            self._last = None

    async def report(self) -> Health:
        """How the parts are, at most `kept_for` old; returns within `timeout`."""
        if self._last is not None and time.monotonic() < self._expires:
            return self._last
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._look())
        # One caller going away must not end the look that others wait for.
        return await asyncio.shield(self._running)

    async def _look(self) -> Health:
        names = list(self._checks)
        problems = await asyncio.gather(*(self._problem(self._checks[name]) for name in names))
        found = dict(zip(names, problems, strict=True))
        self._log_changes(found)
        self._last = Health({name: UNAVAILABLE if problem else OK for name, problem in found.items()})
        self._expires = time.monotonic() + self._kept_for.total_seconds()
        return self._last

    async def _problem(self, check: Check) -> str | None:
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                await check()
        except TimeoutError:
            return f"no answer within {self._timeout.total_seconds():g} s"
        except Exception as error:  # noqa: BLE001 — whatever a check raises is its answer
            return redacted(str(error)) or type(error).__name__
        return None

    def _log_changes(self, found: Mapping[str, str | None]) -> None:
        """The reasons go to the log, once; the public answer only names the part."""
        for name, problem in found.items():
            before = self._problems.pop(name, None)
            if problem is not None:
                self._problems[name] = problem
                if before != problem:
                    logger.warning("Not ready: %s: %s", name, problem)
            elif before is not None:
                logger.info("Ready again: %s", name)


@asynccontextmanager
async def checking(
    health: HealthChecks,
    *,
    database_url: str | None = None,
    broker_url: str | None = None,
    exchange_name: str = "outbox",
    table_name: str = "outbox_table",
) -> AsyncIterator[None]:
    """Within the block `health` looks at what is named here, over one connection of its own to each server."""
    async with AsyncExitStack() as stack:
        checks: dict[str, Check] = {}
        if database_url is not None:
            pool = await _open_pool(database_url)
            stack.callback(pool.terminate)
            checks["database"] = _answers(pool)
            checks["schema"] = _has_tables(pool, table_name)
        if broker_url is not None:
            checks["broker"] = await stack.enter_async_context(_broker(broker_url, exchange_name, table_name))
        with health.including(checks):
            yield


async def _open_pool(url: str) -> "Pool":
    from outbox.postgres.pool import open_pool

    # Two, so that a check that was given up does not stand in the way of the next.
    return await open_pool(url, size=2, application_name="outbox health")


def _answers(pool: "Pool") -> Check:
    async def answers() -> None:
        async with pool.acquire() as connection:
            await connection.execute("select 1")

    return answers


def _has_tables(pool: "Pool", table_name: str) -> Check:
    from outbox.postgres.names import TableName
    from outbox.postgres.schema import check_outbox_table

    table = TableName.parse(table_name)

    async def has_tables() -> None:
        async with pool.acquire() as connection:
            await check_outbox_table(connection, table)

    return has_tables


@asynccontextmanager
async def _broker(url: str, exchange_name: str, table_name: str) -> AsyncIterator[Check]:
    """`open` is the check: it returns at once while the connection stands, and tries anew when it does not."""
    from outbox.postgres.names import TableName
    from outbox.runtime.brokers import open_broker
    from outbox.runtime.observing import build_observer

    transport = open_broker(
        url,
        exchange_name=exchange_name,
        table=TableName.parse(table_name),
        observer=build_observer(enable_metrics=False),
    )
    try:
        yield transport.open
    finally:
        await transport.close()
