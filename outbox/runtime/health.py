"""Readiness of a process: named checks that run concurrently, with a time limit.

`HealthChecks` runs the checks; `checking` adds those of the database, the schema and the broker.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta

from outbox.core.urls import redacted
from outbox.runtime.tracer import silenced

logger = logging.getLogger("outbox")

Check = Callable[[], Awaitable[None]]
"""Returns if the part is available; otherwise raises an exception, whose message is logged."""

OK = "ok"
UNAVAILABLE = "unavailable"
STARTING = "starting"


@dataclass(frozen=True, slots=True)
class Health:
    """Result of the checks: `ok` or `unavailable` for each part, without details, because the endpoint is public.

    `databases` are the states of the databases of a process that serves several. They do not count for `ready`.
    """

    parts: Mapping[str, str]
    databases: Mapping[str, str] | None = None

    @property
    def ready(self) -> bool:
        """Whether every part is available."""
        return all(state == OK for state in self.parts.values())

    def as_json(self) -> dict[str, object]:
        """The body of the readiness endpoint."""
        report: dict[str, object] = {"status": "ready" if self.ready else "not_ready", "parts": dict(self.parts)}
        return report if self.databases is None else report | {"databases": dict(self.databases)}


class HealthChecks:
    """The checks of one process. Callers share reports, so that checks run at most once per `kept_for`.

    Args:
        checks: the check of each part, by the part's name.
        timeout: a check that takes longer counts as failed.
        kept_for: maximum age of a report.
        databases: returns the states of the databases of a process that serves several.
    """

    def __init__(
        self,
        checks: Mapping[str, Check] | None = None,
        *,
        timeout: timedelta = timedelta(seconds=3),
        kept_for: timedelta = timedelta(seconds=1),
        databases: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        self._checks = dict(checks or {})
        self._timeout = timeout
        self._kept_for = kept_for
        self._databases = databases
        self._problems: dict[str, str] = {}
        self._last: Health | None = None
        self._expires = 0.0
        self._running: asyncio.Task[Health] | None = None

    @contextmanager
    def including(self, checks: Mapping[str, Check]) -> Iterator[None]:
        """Adds checks for the duration of the block."""
        self._checks.update(checks)
        self._last = None
        try:
            yield
        finally:
            for name in checks:
                self._checks.pop(name, None)
            self._last = None

    async def report(self) -> Health:
        """Returns a report that is at most `kept_for` old, within `timeout`."""
        if self._last is not None and time.monotonic() < self._expires:
            return self._last
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(silenced(self._run_checks)())
        # Cancelling one caller must not cancel the checks that other callers wait for.
        return await asyncio.shield(self._running)

    async def _run_checks(self) -> Health:
        names = list(self._checks)
        problems = await asyncio.gather(*(self._run_check(self._checks[name]) for name in names))
        found = dict(zip(names, problems, strict=True))
        # The endpoint is public, so it only names the part. The reason is logged, once per change.
        for name, problem in found.items():
            before = self._problems.pop(name, None)
            if problem is not None:
                self._problems[name] = problem
                if before != problem:
                    logger.warning("Not ready: %s: %s", name, problem)
            elif before is not None:
                logger.info("Ready again: %s", name)
        databases = None if self._databases is None else self._databases()
        self._last = Health({name: UNAVAILABLE if problem else OK for name, problem in found.items()}, databases)
        self._expires = time.monotonic() + self._kept_for.total_seconds()
        return self._last

    async def _run_check(self, check: Check) -> str | None:
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                await check()
        except TimeoutError:
            return f"no response within {self._timeout.total_seconds():g} s"
        except Exception as error:  # noqa: BLE001 — any exception means that the part is unavailable
            return redacted(str(error)) or type(error).__name__
        return None


@asynccontextmanager
async def checking(
    health: HealthChecks,
    *,
    database_url: str | None = None,
    broker_url: str | None = None,
    exchange_name: str = "outbox",
    table_name: str = "outbox_table",
) -> AsyncIterator[None]:
    """Adds checks of the given servers to `health` for the duration of the block, over separate connections."""
    from outbox.postgres.pool import open_pool
    from outbox.postgres.queries import TableName
    from outbox.postgres.schema import check_outbox_table
    from outbox.runtime.brokers import open_transport
    from outbox.runtime.observing import build_observer

    table = TableName.parse(table_name)
    checks: dict[str, Check] = {}
    async with AsyncExitStack() as stack:
        if database_url is not None:
            # Two connections, so that a check that timed out does not block the next one.
            pool = await open_pool(database_url, size=2, application_name="outbox health")
            # Not `close`, which would wait for a check that hangs.
            stack.callback(pool.terminate)

            async def responds() -> None:
                async with pool.acquire() as connection:
                    await connection.execute("select 1")

            async def has_schema() -> None:
                async with pool.acquire() as connection:
                    await check_outbox_table(connection, table)

            checks |= {"database": responds, "schema": has_schema}
        if broker_url is not None:
            silent = build_observer(enable_metrics=False)
            transport = open_transport(broker_url, exchange_name=exchange_name, table=table, observer=silent)
            stack.push_async_callback(transport.close)
            # `open` serves as the check: it returns immediately while connected, and reconnects otherwise.
            checks["broker"] = transport.open
        with health.including(checks):
            yield
