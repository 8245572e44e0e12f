"""What the log says of a held message: that it is held, once, and when it leaves; not each probe."""

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta

import asyncpg
import pytest

from outbox import MessageRelay, Publisher, Worker, consume, ensure_outbox_schema_async
from tests.support import eventually


@pytest.fixture(params=["postgresql", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def broker(request: pytest.FixtureRequest, database_url: str) -> str:
    """Where events go."""
    return database_url if request.param == "postgresql" else str(request.getfixturevalue("broker_url"))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("outbox.engine.routes", "outbox.transports.postgres.handover"):
        monkeypatch.setattr(f"{module}.FIRST_PROBE", timedelta(milliseconds=50))


def lines(caplog: pytest.LogCaptureFixture, level: int, beginning: str) -> Iterator[str]:
    """What was logged at the level, or above it, and begins like this."""
    records = [record for record in caplog.records if record.name == "outbox" and record.levelno >= level]
    return (record.getMessage() for record in records if record.getMessage().startswith(beginning))


async def test_a_held_message_is_warned_of_once_however_often_it_probes(
    database_url: str, broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "outbox")
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    ids = [await Publisher().publish(connection, "order.placed", {"id": number}) for number in range(2)]
    relay = MessageRelay(db_engine_url=database_url, broker=broker)

    @consume("order.*", queue="orders")
    async def handle(order: dict[str, int]) -> None:
        del order

    worker = Worker(broker=broker, consumers=[handle])
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(relay.run())
            await eventually(lambda: len(list(lines(caplog, logging.DEBUG, "unroutable "))) >= 4)
            warned = list(lines(caplog, logging.WARNING, "unroutable "))
            tasks.create_task(worker.run())
            await eventually(lambda: len(list(lines(caplog, logging.INFO, "published "))) == 2)
            relay.stop()
            worker.stop()
    finally:
        await connection.close()
    assert len(warned) == 1
    assert any(str(id_) in warned[0] for id_ in ids)
    assert warned[0].endswith(", held until a queue is bound: no queue is bound for the routing key")
