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

from outbox.core.urls import redacted

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
        # The reasons go to the log, once; the public answer only names the part.
        for name, problem in found.items():
            before = self._problems.pop(name, None)
            if problem is not None:
                self._problems[name] = problem
                if before != problem:
                    logger.warning("Not ready: %s: %s", name, problem)
            elif before is not None:
                logger.info("Ready again: %s", name)
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
    from outbox.postgres.pool import open_pool
    from outbox.postgres.queries import TableName
    from outbox.postgres.schema import check_outbox_table
    from outbox.runtime.brokers import open_broker
    from outbox.runtime.observing import build_observer

    table = TableName.parse(table_name)
    checks: dict[str, Check] = {}
    async with AsyncExitStack() as stack:
        if database_url is not None:
            # Two connections, so that a check that took too long does not stand in the way of the next.
            pool = await open_pool(database_url, size=2, application_name="outbox health")
            stack.callback(pool.terminate)

            async def answers() -> None:
                async with pool.acquire() as connection:
                    await connection.execute("select 1")

            async def has_tables() -> None:
                async with pool.acquire() as connection:
                    await check_outbox_table(connection, table)

            checks |= {"database": answers, "schema": has_tables}
        if broker_url is not None:
            silent = build_observer(enable_metrics=False)
            transport = open_broker(broker_url, exchange_name=exchange_name, table=table, observer=silent)
            stack.push_async_callback(transport.close)
            # `open` is the check: it returns at once while the connection stands, and connects again when it does not.
            checks["broker"] = transport.open
        with health.including(checks):
            yield
