"""Pauses: set in the database, applied within a second, and acknowledged."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from click.testing import CliRunner

from outbox import Consumer, MessageRelay, Worker
from outbox.cli import main
from outbox.errors import ConfigurationError
from outbox.reporting.pauses import Pause, PauseScope, pause, pauses, resume
from tests.reporting.support import Box, at_work, published
from tests.support import eventually


async def _applied(connection: asyncpg.Connection, name: str) -> list[dict[str, str]]:
    text = await connection.fetchval("select applied from outbox_component where name = $1 and stopped_at is null", name)
    found: list[dict[str, str]] = json.loads(text or "[]")
    return found


async def test_a_paused_relay_takes_nothing_until_it_is_resumed(connection: asyncpg.Connection, database_url: str) -> None:
    box = Box()
    relay = MessageRelay(database_url, broker=database_url, name="relay-1", heartbeat_interval=0.1)
    worker = Worker(broker=database_url, consumers=[box.consumer], reporting=False)
    async with at_work(relay, worker):
        await published(connection, body=1)
        await eventually(lambda: box.bodies == [1])
        await pause(connection, Pause(scope=PauseScope.RELAY, reason="the broker is being moved"))
        await eventually(lambda: _applied(connection, "relay-1"))
        assert await _applied(connection, "relay-1") == [{"scope": "relay", "name": ""}]
        await published(connection, body=2)
        for _ in range(2):
            beat = await connection.fetchval("select seen_at from outbox_component")
            await eventually(lambda: connection.fetchval("select seen_at > $1 from outbox_component", beat))  # noqa: B023  awaited here
        assert await connection.fetchval("select activity ->> 'state' from outbox_component") == "paused"
        assert await connection.fetchval("select count(*) from outbox_table") == 1
        assert box.bodies == [1]
        assert await resume(connection, PauseScope.RELAY)
        await eventually(lambda: box.bodies == [1, 2])
        await eventually(lambda: _none_applied(connection, "relay-1"))


async def _none_applied(connection: asyncpg.Connection, name: str) -> bool:
    return await _applied(connection, name) == []


async def test_a_pause_by_name_affects_only_that_component(connection: asyncpg.Connection, database_url: str) -> None:
    relays = [MessageRelay(database_url, broker=database_url, name=name) for name in ("a", "b")]
    box = Box()
    worker = Worker(broker=database_url, consumers=[box.consumer])
    async with at_work(*relays, worker):
        await pause(connection, Pause(scope=PauseScope.RELAY, name="a"))
        await eventually(lambda: _applied(connection, "a"))
        await published(connection, body=1)
        await eventually(lambda: box.bodies == [1])
        assert await _applied(connection, "b") == []


async def test_a_paused_queue_finishes_running_handlers_and_other_queues_continue(
    connection: asyncpg.Connection, database_url: str
) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()
    done: list[int] = []

    async def slowly(body: int) -> None:
        began.set()
        await may_end.wait()
        done.append(body)

    box = Box("mail")
    worker = Worker(
        broker=database_url,
        consumers=[Consumer("order.*", slowly, queue="slow"), box.consumer],
        name="worker-1",
        prefetch_count=1,
    )
    async with at_work(MessageRelay(database_url, broker=database_url), worker):
        await eventually(lambda: connection.fetchval("select count(*) = 2 from outbox_subscription"))
        await published(connection, body=1)
        await began.wait()
        await pause(connection, Pause(scope=PauseScope.QUEUE, name="slow"))
        await eventually(
            lambda: connection.fetchval("select activity ? 'pending_pauses' from outbox_component where kind = 'worker'")
        )
        await published(connection, body=2)
        await eventually(lambda: box.bodies == [1, 2])
        assert await _applied(connection, "worker-1") == []
        may_end.set()
        await eventually(lambda: _applied(connection, "worker-1"))
        assert done == [1]
        assert (
            await connection.fetchval("select count(*) from outbox_delivery where queue = 'slow' and lease_token is null") == 1
        )
        await resume(connection, "queue", "slow")
        await eventually(lambda: done == [1, 2])


async def test_a_pause_expires_at_its_time(connection: asyncpg.Connection, database_url: str) -> None:
    box = Box()
    worker = Worker(broker=database_url, consumers=[box.consumer], name="worker-1")
    paused = Pause(scope=PauseScope.WORKER, name="worker-1", until=datetime.now(UTC) + timedelta(hours=1), requested_by="ada")
    await pause(connection, paused)
    async with at_work(MessageRelay(database_url, broker=database_url), worker):
        assert await eventually(lambda: _applied(connection, "worker-1")) == [{"scope": "worker", "name": "worker-1"}]
        assert await connection.fetchval("select not exists(select from outbox_subscription)")
        await published(connection, body=1)
        until = datetime.now(UTC) + timedelta(seconds=1)
        await pause(connection, replace(paused, until=until))
        await eventually(lambda: box.bodies == [1])
        assert datetime.now(UTC) >= until


async def test_pauses_are_listed_replaced_and_ended(connection: asyncpg.Connection) -> None:
    await pause(connection, Pause(scope=PauseScope.QUEUE, name="mail", reason="first"))
    await pause(connection, Pause(scope=PauseScope.QUEUE, name="mail", reason="second", requested_by="ada"))
    await pause(connection, Pause(scope=PauseScope.RELAY, until=datetime.now(UTC) - timedelta(seconds=1)))
    [found] = await pauses(connection)
    assert (found.scope, found.name, found.reason, found.requested_by) == (PauseScope.QUEUE, "mail", "second", "ada")
    assert await resume(connection, "queue", "mail")
    assert not await resume(connection, "queue", "mail")


@pytest.mark.parametrize(("scope", "name"), [("engine", ""), ("queue", ""), ("relay", "a\0b"), ("relay", "a" * 1001)])
async def test_an_invalid_pause_is_refused(connection: asyncpg.Connection, scope: str, name: str) -> None:
    with pytest.raises(ConfigurationError):
        await pause(connection, Pause(scope=scope, name=name))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        await resume(connection, scope, name)


async def test_a_stop_ends_a_paused_relay_and_worker_at_once_and_not_their_pause(
    connection: asyncpg.Connection, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="outbox")
    for scope in (PauseScope.RELAY, PauseScope.WORKER):
        await pause(connection, Pause(scope=scope))
    relay = MessageRelay(database_url, broker=database_url, name="relay-1")
    worker = Worker(broker=database_url, consumers=[Box().consumer], name="worker-1")
    async with asyncio.timeout(30), at_work(relay, worker):
        await eventually(lambda: _applied(connection, "relay-1"))
        await eventually(lambda: _applied(connection, "worker-1"))
    assert [line for line in sorted(caplog.messages) if "paused" in line or "resumed" in line] == [
        "paused: queue mail takes nothing new",
        "paused: the relay to exchange outbox takes nothing new",
        "stopped while paused: queue mail",
        "stopped while paused: the relay to exchange outbox",
    ]


async def test_the_commands_pause_list_and_resume(connection: asyncpg.Connection, database_url: str) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        answer = CliRunner().invoke(main, [*arguments, "--database-url", database_url])
        return answer.exit_code, answer.output

    async def call(*arguments: str) -> tuple[int, str]:
        return await asyncio.to_thread(run, *arguments)

    assert await call("pause") == (0, "Nothing is paused.\n")
    unmet = " No running component is affected.\n"
    assert await call("pause", "relay", "--reason", "moving") == (0, f"Paused every relay.{unmet}")
    status, text = await call("pause", "queue", "mail", "--until", "30m")
    assert status == 0
    assert text.startswith("Paused the queue mail until ")
    for time in ("1h", "2d"):
        status, text = await call("pause", "queue", "mail", "--until", time)
        assert (status, text[:29]) == (0, "Paused the queue mail until 2")
    _, listed = await call("pause")
    assert [line.split(",")[0] for line in listed.splitlines()] == ["the queue mail", "every relay"]
    assert listed.splitlines()[1].endswith(": moving")
    assert await call("resume", "relay") == (0, "Resumed every relay.\n")
    status, text = await call("resume", "relay")
    assert status == 1
    assert "no pause of exactly every relay" in text
    assert (await call("pause", "queue"))[0] == 1
    assert (await call("pause", "relay", "--until", "2030-01-01T00:00:00"))[0] == 2
    assert [(each.scope.value, each.name) for each in await pauses(connection)] == [("queue", "mail")]
