"""Commands that serve several databases: options that conflict, and a relay and a worker as processes."""

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from click.testing import CliRunner

from outbox import Consumer, Databases, Publisher, consume
from outbox.cli import main
from outbox.databases import parse_databases
from tests.servers.postgres import PostgresServer, fresh_database, with_database
from tests.support import eventually_sync
from tests.support.processes import free_port, running

pytestmark = pytest.mark.usefixtures("no_settings_from_outside")

CLI = ["-m", "outbox.cli"]
A, B = "a=postgresql://db/a", "b=postgresql://db/b"
WORKER = ["worker", "tests.cli.test_several_databases:work"]


@consume("work.#", queue="tests.several")
async def work(number: int, connection: asyncpg.Connection) -> None:
    """Leaves a mark in the database of its message."""
    await connection.execute("insert into marks values ($1)", number)


assert isinstance(work, Consumer)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["relay", "--database", A, "--database", A], "database 2: the name a is used twice"),
        (["relay", "--database", "a=mysql://ada:hunter2@db/a"], "database 1: the database a must be a postgresql:// URL"),
        (["relay", "--database", A, "--databases", "nowhere"], "give either --database or --databases"),
        (["relay", "--database", A, "--database-url", "postgresql://db/b"], "--database-url is an address of one database"),
        (["relay", "--database", A, "--listen-url", "postgresql://db/b"], "--listen-url is an address of one database"),
        (["relay", "--databases", "nowhere"], "the file nowhere cannot be read: No such file or directory"),
        (["relay", "--database", A, "--table-name", "x; drop"], "cannot be a table name"),
        ([*WORKER, "--database", A, "--database", B, "--broker-url", "amqp://b/x"], "give each its own, as amqp://"),
        (["archiver", "--database", A, "--database", B, "--broker-url", "amqp://b/x"], "give each its own, as amqp://"),
        (["archiver", "--database", A], "no RabbitMQ configured"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(arguments: list[str], sentence: str) -> None:
    answer = CliRunner().invoke(main, [*arguments, "--monitoring-port", "0"])
    assert answer.exit_code == 1, answer.output
    assert sentence in answer.output
    assert len(answer.output.strip().splitlines()) == 1
    assert "hunter2" not in answer.output


async def _execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def _publish(urls: dict[str, str], number: int) -> None:
    for url in urls.values():
        connection = await asyncpg.connect(url)
        try:
            async with connection.transaction():
                await Publisher().publish(connection, "work.item", number)
        finally:
            await connection.close()


async def _marks(urls: dict[str, str]) -> dict[str, list[int]]:
    found = {}
    for name, url in urls.items():
        connection = await asyncpg.connect(url)
        try:
            found[name] = [row[0] for row in await connection.fetch("select number from marks order by 1")]
        finally:
            await connection.close()
    return found


@pytest.fixture
def urls(postgres_server: PostgresServer) -> Iterator[dict[str, str]]:
    """Two databases, and the address of one that does not exist."""
    with ExitStack() as stack:
        names = {name: stack.enter_context(fresh_database(postgres_server.url, tables=True)) for name in ("acme", "globex")}
        urls = {name: with_database(postgres_server.url, database) for name, database in names.items()}
        for url in urls.values():
            asyncio.run(_execute(url, "create table marks (number int)"))
        yield urls


@pytest.mark.slow
def test_relay_and_worker_serve_the_databases_of_a_file_through_a_kill(urls: dict[str, str], tmp_path: Path) -> None:
    path, ports = tmp_path / "databases", {"relay": free_port(), "worker": free_port()}
    missing = f"initech={urls['acme']}_missing\n"
    path.write_text("".join(f"{name}={url}\n" for name, url in urls.items()) + missing)
    common = {"OUTBOX_DATABASES_FILE": str(path), "OUTBOX_DATABASES_REFRESH": "0.05", "OUTBOX_LOG_FORMAT": "json"}

    def get(process: str, page: str) -> httpx.Response | None:
        try:
            return httpx.get(f"http://127.0.0.1:{ports[process]}{page}", timeout=60)
        except httpx.TransportError:
            return None

    def states(process: str) -> Any:
        answer = get(process, "/outbox/health/ready")
        return answer and answer.status_code == 200 and answer.json()

    def handled(*numbers: int) -> bool:
        return asyncio.run(_marks(urls)) == {name: list(numbers) for name in urls}

    relay, worker = ({**common, "OUTBOX_MONITORING_PORT": str(port)} for port in ports.values())
    expected = {
        "status": "ready",
        "parts": {"databases": "ok"},
        "databases": {"acme": "ok", "globex": "ok", "initech": "unavailable"},
    }
    with running([*CLI, *WORKER], tmp_path, worker, name="worker") as working:
        with running([*CLI, "relay"], tmp_path, relay, name="killed") as killed:
            for process in ports:
                eventually_sync(lambda process=process: states(process) == expected)  # type: ignore[misc]
            asyncio.run(_publish(urls, 1))
            eventually_sync(lambda: handled(1))
            killed.send(signal.SIGKILL)
            killed.wait()
        asyncio.run(_publish(urls, 2))
        with running([*CLI, "relay"], tmp_path, relay, name="relay") as relaying:
            eventually_sync(lambda: handled(1, 2))
            metrics = get("relay", "/metrics")
            assert metrics is not None
            for name in urls:
                assert f'outbox_messages_published_total{{database="{name}",exchange_name="outbox"}} 1.0' in metrics.text
                assert f'outbox_database_up{{database="{name}"}} 1.0' in metrics.text
            assert 'outbox_database_up{database="initech"} 0.0' in metrics.text
            path.write_text(f"globex={urls['globex']}\n")
            for process in ports:
                eventually_sync(lambda process=process: states(process)["databases"] == {"globex": "ok"})  # type: ignore[misc]
            eventually_sync(lambda: (page := get("relay", "/metrics")) and 'database="acme"' not in page.text)
            for each in (relaying, working):
                each.send(signal.SIGTERM)
                assert each.wait() == 0
    lines = [json.loads(line) for each in (relaying, working) for line in each.output.splitlines()]
    about = {(line["event"], line.get("database")) for line in lines if "event" in line}
    assert {("relay_started", "acme"), ("relay_stopped", "globex"), ("processed", "acme"), ("processed", "globex")} <= about
    assert not [line for line in lines if "event" in line and "database" not in line]


def test_the_name_of_a_database_is_put_into_the_url_of_its_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    from outbox.cli import processes

    asked = list[tuple[str, object]]()

    def worker(db_engine_url: str, broker: str, **_others: object) -> None:
        asked.append((db_engine_url, broker))

    class MakesOnly(Databases):
        async def run(self, *, handle_signals: bool = True) -> None:
            for name, url in parse_databases([A, B]).items():
                self._make(name, url)

    monkeypatch.setattr("outbox.worker.Worker", worker)
    monkeypatch.setattr(processes, "Databases", MakesOnly)
    broker = ["--broker-url", "amqp://ada@mq/{database}", "--monitoring-port", "0"]
    answer = CliRunner().invoke(main, [*WORKER, "--database", A, "--database", B, *broker])
    assert answer.exit_code == 0, answer.output
    assert asked == [("postgresql://db/a", "amqp://ada@mq/a"), ("postgresql://db/b", "amqp://ada@mq/b")]
