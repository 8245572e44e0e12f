"""Shutdown under load by real signals: running handlers finish within the grace period, other messages return to the queue."""

import asyncio
import signal
from pathlib import Path

import asyncpg
import pytest

from outbox import Publisher
from outbox.core.message import OutboxMessage
from outbox.schema import ensure_outbox_schema_async
from tests.app.support import Service
from tests.support import eventually, eventually_sync
from tests.support.processes import free_port, running

pytestmark = [pytest.mark.slow]

CLI = ["-m", "outbox.cli"]
MESSAGES = 40
CONSUMERS = "tests.cli.slow_consumers:consumers"
STUBBORN = "tests.cli.stubborn_consumers"


@pytest.fixture(params=["postgresql", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def settings(request: pytest.FixtureRequest, database_url: str) -> dict[str, str]:
    asyncio.run(_prepare(database_url))
    common = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_MONITORING_PORT": "0", "OUTBOX_GRACE_PERIOD": "300"}
    return common | ({"OUTBOX_BROKER_URL": request.getfixturevalue("broker_url")} if request.param == "rabbitmq" else {})


async def _prepare(url: str) -> None:
    await ensure_outbox_schema_async(url)
    connection = await asyncpg.connect(url)
    await connection.execute("create table marks (what text, number integer)")
    await connection.close()


async def _publish(url: str, count: int = MESSAGES) -> None:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await Publisher().bulk_publish(connection, [OutboxMessage("work.item", number) for number in range(count)])
    finally:
        await connection.close()


async def _marks(url: str) -> tuple[list[int], list[int]]:
    """Returns the numbers of started and of ended runs, with repetitions."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch("select what, number from marks order by number")
    finally:
        await connection.close()
    return [n for what, n in rows if what == "begun"], [n for what, n in rows if what == "ended"]


async def _unsent(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        count: int = await connection.fetchval("select count(*) from outbox_table")
        return count
    finally:
        await connection.close()


async def test_on_sigterm_a_worker_finishes_running_handlers_and_returns_other_messages(
    settings: dict[str, str], database_url: str, tmp_path: Path
) -> None:
    await _publish(database_url)
    with running([*CLI, "relay"], tmp_path, settings, name="relay"):
        with running([*CLI, "worker", CONSUMERS], tmp_path, settings, name="worker") as worker:
            await eventually(lambda: _begun_at_least(database_url, 5), timeout=120)
            worker.send(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait) == 0, "long before the grace period is over"
        begun, ended = await _marks(database_url)
        assert begun == ended, "what had begun was finished, once"
        assert len(begun) < MESSAGES, "the rest was not begun"
        with running([*CLI, "worker", CONSUMERS], tmp_path, settings, name="another"):
            await eventually(lambda: _all_ended(database_url), timeout=90)
    begun, ended = await _marks(database_url)
    assert begun == ended == list(range(MESSAGES)), "each was handled once"


async def _begun_at_least(url: str, count: int) -> bool:
    return len((await _marks(url))[0]) >= count


async def _all_ended(url: str) -> bool:
    return len((await _marks(url))[1]) >= MESSAGES


@pytest.mark.parametrize("handler", ["swallow", "hang", "hang_elsewhere"])
async def test_a_worker_exits_although_a_handler_hangs_and_the_message_is_redelivered(
    settings: dict[str, str], database_url: str, tmp_path: Path, handler: str
) -> None:
    stubborn, obedient = f"{STUBBORN}:{handler}", f"{STUBBORN}:obey"
    await _publish(database_url, 1)
    impatient = settings | {"OUTBOX_GRACE_PERIOD": "1"}
    with running([*CLI, "relay"], tmp_path, settings, name="relay"):
        with running([*CLI, "worker", stubborn], tmp_path, impatient, name="worker") as worker:
            await asyncio.to_thread(worker.says, "begun 0")
            worker.send(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait) == 70, worker.output
            assert " ERROR " in worker.output
            assert handler == "hang_elsewhere" or f"stubborn_consumers.{handler} of queue tests.work" in worker.output
        with running([*CLI, "worker", obedient], tmp_path, settings, name="another") as another:
            await asyncio.to_thread(another.says, "handled 0", timeout=60)


async def test_on_sigterm_a_relay_settles_messages_in_flight(
    settings: dict[str, str], database_url: str, tmp_path: Path
) -> None:
    """Messages that the relay has sent before the signal are settled, so each message arrives once."""
    count = 30_000
    with running([*CLI, "worker", CONSUMERS, "--log-level", "DEBUG"], tmp_path, settings, name="worker") as worker:
        await asyncio.to_thread(worker.says, "consumes queue tests.work")
        worker.send(signal.SIGTERM)  # its queue stays, and keeps what the relay sends
        await asyncio.to_thread(worker.wait)
    await _publish(database_url, count)
    slow = settings | {"OUTBOX_BATCH_SIZE": "20"}  # so that it is not done when it is stopped
    with running([*CLI, "relay"], tmp_path, slow, name="relay") as relay:
        await eventually(lambda: _left(database_url, count - 1000))
        relay.send(signal.SIGTERM)
        assert await asyncio.to_thread(relay.wait) == 0
        left = await _unsent(database_url)
    assert 0 < left < count
    await _in_queue(settings, database_url, count - left)


async def _left(url: str, at_most: int) -> bool:
    return await _unsent(url) <= at_most


async def _in_queue(settings: dict[str, str], url: str, count: int) -> None:
    if "OUTBOX_BROKER_URL" not in settings:
        connection = await asyncpg.connect(url)
        try:
            assert await connection.fetchval("select count(*) from outbox_delivery") == count
        finally:
            await connection.close()
        return
    import aio_pika

    async with await aio_pika.connect(settings["OUTBOX_BROKER_URL"]) as broker:
        channel = await broker.channel()
        queue = await channel.declare_queue("tests.work", passive=True)
        assert queue.declaration_result.message_count == count


def test_on_sigterm_to_uvicorn_running_handlers_finish(settings: dict[str, str], database_url: str, tmp_path: Path) -> None:
    port = free_port()
    ours = {key: value for key, value in settings.items() if key != "OUTBOX_MONITORING_PORT"}
    ours |= {"OUTBOX_MIGRATE": "true", "OUTBOX_CONSUMERS": CONSUMERS}
    command = ["-m", "uvicorn", "app:main", "--port", str(port)]
    with running(command, tmp_path, ours) as process:
        service = Service(process, f"http://127.0.0.1:{port}")
        process.says("Uvicorn running on")
        service.is_ready()
        asyncio.run(_publish(database_url))
        eventually_sync(lambda: len(asyncio.run(_marks(database_url))[0]) >= 5)
        process.send(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM, "uvicorn ends by the signal"
        assert "Traceback" not in process.output
    begun, ended = asyncio.run(_marks(database_url))
    assert begun == ended
    assert len(begun) < MESSAGES


def test_on_sigterm_uvicorn_exits_although_a_handler_hangs(settings: dict[str, str], database_url: str, tmp_path: Path) -> None:
    port = free_port()
    ours = {key: value for key, value in settings.items() if key != "OUTBOX_MONITORING_PORT"}
    ours |= {"OUTBOX_MIGRATE": "true", "OUTBOX_CONSUMERS": f"{STUBBORN}:swallow", "OUTBOX_GRACE_PERIOD": "1"}
    command = ["-m", "uvicorn", "app:main", "--port", str(port)]
    with running(command, tmp_path, ours) as process:
        service = Service(process, f"http://127.0.0.1:{port}")
        process.says("Uvicorn running on", timeout=90)
        service.is_ready()
        asyncio.run(_publish(database_url, 1))
        process.says("begun 0", timeout=90)
        process.send(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM, "uvicorn ends by the signal"
        assert "stubborn_consumers.swallow of queue tests.work" in process.output
