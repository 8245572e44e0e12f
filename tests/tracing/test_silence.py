"""With instrumentations active, Outbox's own work makes no spans, and a handler's work does."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from opentelemetry.instrumentation.aio_pika import AioPikaInstrumentor
from opentelemetry.instrumentation.asyncpg import AsyncPGInstrumentor
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor
from opentelemetry.instrumentation.utils import suppress_instrumentation
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from outbox import Archiver, Consumer, Maintenance
from outbox.admin import Admin
from outbox.admin.alerts import Alerting, AlertRules
from tests.relay.support import running as running_relay
from tests.support import eventually
from tests.tracing.support import Spans, is_child, new_relay, publish, system
from tests.worker.support import running


@pytest.fixture
def instrumented(database: str, spans: Spans) -> Iterator[None]:
    """Everything that Outbox uses is instrumented, after the database was made."""
    instrumentors = (
        AsyncPGInstrumentor(),  # type: ignore[no-untyped-call]
        SQLAlchemyInstrumentor(),
        PsycopgInstrumentor(),
        AioPikaInstrumentor(),
        FastAPIInstrumentor(),
    )
    for each in instrumentors:
        each.instrument(skip_dep_check=True)  # the one of SQLAlchemy does not know 2.1 yet
    yield
    for each in instrumentors:
        each.uninstrument()


@pytest.mark.usefixtures("instrumented")
async def test_idle_processes_make_no_spans(database: str, broker: str, spans: Spans) -> None:
    async def handle(body: int, session: AsyncSession) -> None:
        pass

    async def kinds() -> set[str]:
        """The kinds of components that have sent heartbeats for a while. Maintenance sends them too rarely to wait for."""
        with suppress_instrumentation():
            connection = await asyncpg.connect(database)
            try:
                rows = await connection.fetch(
                    "select kind from outbox_component where kind = 'maintenance' or seen_at > started_at + interval '0.5 s'"
                )
            finally:
                await connection.close()
        return {row["kind"] for row in rows}

    async with AsyncExitStack() as stack:
        consumer = Consumer("a", handle, queue="q", inbox=True)
        await stack.enter_async_context(system(database, broker, consumer, heartbeat_interval=0.05))
        relay = new_relay(database, broker, heartbeat_interval=0.05)
        await stack.enter_async_context(running_relay(relay))
        others: list[Any] = [Maintenance(database, enable_metrics=False)]
        if broker.startswith("amqp"):
            others.append(
                Archiver(
                    database, broker=broker, queues=["q"], discover_every=0.05, enable_metrics=False, heartbeat_interval=0.05
                )
            )
        for other in others:
            await stack.enter_async_context(running(other))
        rules = AlertRules(["slack+https://127.0.0.1:1/hooks"], after=timedelta(0), every=timedelta(milliseconds=50))
        admin = await stack.enter_async_context(Admin(db_engine_url=database, alerts=rules))
        alerting: Any = Alerting(admin, rules)
        await stack.enter_async_context(running(alerting))
        wanted = {"relay", "worker", "maintenance", *(["archiver"] if len(others) == 2 else [])}
        await eventually(lambda: _all_beat(kinds, wanted))
    assert [span.name for span in spans.all] == []


@pytest.mark.usefixtures("instrumented")
async def test_a_message_leaves_the_spans_of_its_publisher_and_its_handler_only(
    database: str, broker: str, spans: Spans
) -> None:
    async def handle(body: int, session: AsyncSession) -> None:
        await session.execute(text("select 1"))

    async def copy(body: int, connection: asyncpg.Connection) -> None:
        await connection.fetch("select 2")

    async with system(
        database, broker, Consumer("a", handle, queue="q", inbox=True), Consumer("a", copy, queue="r", inbox=True)
    ):
        await publish(database, "a")
        (process,) = await spans.ended("process q")
        (other,) = await spans.ended("process r")
        await spans.ended("send shop")
    (create,) = spans.named("create")
    inserts = [span for span in spans.all if span.name == "insert"]
    assert len(inserts) == 1
    assert is_child(inserts[0], create)
    ours = {"request", "create", "send shop", "process q", "process r"}
    theirs = [span for span in spans.all if span.name not in ours and span not in inserts]
    assert all(
        (span.name in ("BEGIN;", "COMMIT;") and is_child(span, spans.named("request")[0]))
        or span.name == "connect"
        or is_child(span, process)
        or is_child(span, other)
        for span in theirs
    ), [(span.name, span.attributes) for span in theirs]
    selects = [span for span in theirs if span.name.startswith("select")]
    assert len([span for span in selects if is_child(span, other)]) == 1
    assert len([span for span in selects if is_child(span, process)]) >= 1


async def _all_beat(kinds: Any, wanted: set[str]) -> bool:
    return bool(await kinds() >= wanted)
