"""One process relays several databases of a server: each is relayed, and one that is sick delays no other."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from outbox import Archiver, Databases, Maintenance, MessageRelay, Worker, ensure_outbox_schema_async
from outbox.core.message import Message
from outbox.ports import CONFIRMED, SendResult
from outbox.postgres import pool
from outbox.runtime import supervision
from tests.relay.support import INSERT, ScriptedTransport
from tests.reporting.support import Box
from tests.servers.postgres import PostgresServer, fresh_database, with_database
from tests.support import eventually
from tests.support.processes import running

NAMES = ("a", "b", "c")
PAGE = (Path(__file__).parents[2] / "docs" / "several-databases.md").read_text()


class Tenants:
    """Databases with tables on one server, and a transport for the relay of each."""

    def __init__(self, urls: dict[str, str], admin_url: str) -> None:
        self.urls = urls
        self.admin_url = admin_url
        self.transports = {name: ScriptedTransport() for name in urls}

    def make(self, name: str, url: str, **options: Any) -> MessageRelay:
        return MessageRelay(url, broker=self.transports[name], enable_metrics=False, poll_interval=3600, **options)

    async def execute(self, name: str, statement: str, *arguments: object) -> Any:
        """Executes a statement in a database, and returns the first value of its result."""
        connection = await asyncpg.connect(self.urls[name])
        try:
            return await connection.fetchval(statement, *arguments)
        finally:
            await connection.close()

    async def is_settled(self, name: str) -> bool:
        return not await self.execute(name, "select exists (select from outbox_table)")

    async def publish(self, name: str, routing_key: str) -> None:
        await self.execute(name, INSERT, routing_key)

    def sent(self) -> dict[str, list[str]]:
        """The routing keys that each relay has sent."""
        return {name: transport.routing_keys for name, transport in self.transports.items()}

    def has_sent(self, name: str, routing_key: str) -> bool:
        return routing_key in self.sent()[name]

    async def refuse_connections(self, name: str, *, refuse: bool) -> None:
        """Makes the server refuse a database, as if it were restored or moved, and end its sessions."""
        database = self.urls[name].rpartition("/")[2]
        connection = await asyncpg.connect(self.admin_url)
        try:
            await connection.execute(f"alter database {database} with allow_connections {not refuse}")
            if refuse:
                await connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", database)
        finally:
            await connection.close()


@pytest.fixture
def tenants(postgres_server: PostgresServer) -> Iterator[Tenants]:
    with ExitStack() as stack:
        names = {name: stack.enter_context(fresh_database(postgres_server.url, tables=True)) for name in NAMES}
        urls = {name: with_database(postgres_server.url, database) for name, database in names.items()}
        yield Tenants(urls, postgres_server.url)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", supervision.FIRST_PAUSE / 20)


@asynccontextmanager
async def serving(databases: Databases) -> AsyncIterator[Callable[[str], bool]]:
    """Runs them; yields a function that says whether a database has a state, as "a ok"."""
    task = asyncio.create_task(databases.run(handle_signals=False))
    try:
        yield lambda expected: databases.states().get(expected.split()[0]) == expected.split()[1]
    finally:
        databases.stop()
        await task


async def test_messages_of_each_database_are_relayed_while_one_refuses_connections_and_recovers(tenants: Tenants) -> None:
    async with serving(Databases(tenants.urls, tenants.make, longest_pause=0.05)) as is_:
        for name in NAMES:
            await tenants.publish(name, f"of.{name}")
        await eventually(lambda: tenants.sent() == {name: [f"of.{name}"] for name in NAMES})
        # What is sent, but not settled when its session ends, would be sent again.
        await eventually(partial(tenants.is_settled, "a"))
        await tenants.refuse_connections("a", refuse=True)
        await eventually(lambda: is_("a unavailable"))
        await tenants.publish("b", "meanwhile")
        await eventually(lambda: tenants.sent()["b"] == ["of.b", "meanwhile"])
        assert is_("b ok")
        assert is_("a unavailable")
        await tenants.refuse_connections("a", refuse=False)
        await tenants.publish("a", "afterwards")
        await eventually(lambda: tenants.sent()["a"] == ["of.a", "afterwards"])
        await eventually(lambda: is_("a ok"))


async def test_a_long_backlog_of_one_database_holds_up_no_other(tenants: Tenants) -> None:
    """Each gets its share of the processor: the others' messages are sent long before the backlog is."""
    await tenants.execute("a", "insert into outbox_table (routing_key, body) select 'many', '' from generate_series(1, 50000)")
    async with serving(Databases(tenants.urls, tenants.make)):
        await eventually(lambda: tenants.has_sent("a", "many"))
        for name in ("b", "c"):
            await tenants.publish(name, "meanwhile")
            await eventually(partial(tenants.has_sent, name, "meanwhile"))
        assert not await tenants.is_settled("a")


async def test_databases_that_do_not_exist_or_have_no_tables_at_the_start_are_served_once_they_do(tenants: Tenants) -> None:
    missing = f"{tenants.urls['b'].rpartition('/')[2]}_missing"
    urls = tenants.urls | {"b": with_database(tenants.admin_url, missing)}
    await tenants.execute("c", "drop table outbox_table")
    databases = Databases(urls, tenants.make, longest_pause=0.05)
    async with serving(databases):
        await tenants.publish("a", "first")
        await eventually(lambda: tenants.sent() == {"a": ["first"], "b": [], "c": []})
        await eventually(lambda: databases.states() == {"a": "ok", "b": "unavailable", "c": "unavailable"})
        await databases.check()
        admin = await asyncpg.connect(tenants.admin_url)
        try:
            await admin.execute(f"create database {missing}")
            for name in ("b", "c"):
                await ensure_outbox_schema_async(urls[name])
            tenants.urls = urls
            await tenants.publish("b", "second")
            await tenants.publish("c", "third")
            await eventually(lambda: tenants.sent() == {"a": ["first"], "b": ["second"], "c": ["third"]})
            databases.stop()
            await eventually(lambda: databases._tasks == {})
        finally:
            await admin.execute(f"drop database {missing} with (force)")
            await admin.close()


async def test_a_broker_that_does_not_answer_delays_no_other_database(tenants: Tenants) -> None:
    tenants.transports["a"].may_answer.clear()
    async with serving(Databases(tenants.urls, tenants.make)):
        for number in range(3):
            await tenants.publish("a", f"stuck.{number}")
        await eventually(lambda: "stuck.0" in tenants.sent()["a"])
        for number in range(3):
            await tenants.publish("b", f"flows.{number}")
            await eventually(partial(tenants.has_sent, "b", f"flows.{number}"))
        tenants.transports["a"].may_answer.set()
        await eventually(lambda: len(tenants.sent()["a"]) == 3)


async def test_messages_of_the_others_pass_the_backlog_of_one_database(tenants: Tenants) -> None:
    count, batch = 600, 20
    insert = "insert into outbox_table (routing_key, body) select 'backlog', '' from generate_series(1, $1)"
    await tenants.execute("a", insert, count)
    a_when_b_was_sent: list[int] = []

    class PublishesToB(ScriptedTransport):
        has_published = False

        async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
            if len(self.batches) >= 3 and not self.has_published:
                self.has_published = True
                await eventually(lambda: databases.states()["b"] == "ok")
                await tenants.publish("b", "single")
            return await super().send(messages, timeout=timeout)

    def answer(_message: Message) -> SendResult:
        a_when_b_was_sent.append(len(tenants.sent()["a"]))
        return CONFIRMED

    tenants.transports |= {"a": PublishesToB(), "b": ScriptedTransport(answer)}
    databases = Databases(tenants.urls, partial(tenants.make, batch_size=batch))
    async with serving(databases):
        await eventually(lambda: len(tenants.sent()["a"]) == count and tenants.sent()["b"] == ["single"])
    assert a_when_b_was_sent[0] < count


async def test_a_database_that_leaves_the_file_finishes_what_is_in_flight(tenants: Tenants, tmp_path: Path) -> None:
    path = tmp_path / "databases"

    def write(*names: str) -> None:
        path.with_suffix(".new").write_text("".join(f"{name}={tenants.urls[name]}\n" for name in names))
        path.with_suffix(".new").rename(path)

    write("a", "b")
    databases = Databases(path, tenants.make, refresh=0.02)
    async with serving(databases) as is_:
        await eventually(lambda: is_("a ok"))
        tenants.transports["a"].may_answer.clear()
        await tenants.publish("a", "in.flight")
        await eventually(lambda: tenants.sent()["a"] == ["in.flight"])
        write("b", "c")
        await eventually(lambda: is_("c ok") and "a" not in databases.states())
        await tenants.publish("a", "for the next")
        tenants.transports["a"].may_answer.set()
        await eventually(lambda: "a" not in databases._tasks)
        assert await tenants.execute("a", "select array_agg(routing_key) from outbox_table") == ["for the next"]
        assert await tenants.execute("a", "select count(*) from outbox_component where stopped_at is null") == 0
        write("a", "b", "c")
        await eventually(lambda: tenants.sent()["a"] == ["in.flight", "for the next"])
    for name in ("b", "c"):
        assert not tenants.sent()[name]


async def test_maintenance_and_archivers_start_in_each_database(tenants: Tenants) -> None:
    def archiver(_name: str, url: str) -> Archiver:
        return Archiver(url, broker=NoDeadLetters(), enable_metrics=False)

    for make in (lambda _, url: Maintenance(url, enable_metrics=False), archiver):
        async with serving(databases := Databases(tenants.urls, make)):
            await eventually(lambda databases=databases: databases.states() == dict.fromkeys(NAMES, "ok"))  # type: ignore[misc]


async def test_a_relay_that_becomes_idle_closes_connections(tenants: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "SPARE_LIFETIME", timedelta(seconds=2))
    open_now = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'outbox relay'"
    async with serving(Databases({"a": tenants.urls["a"]}, tenants.make)):
        await eventually(lambda: tenants.execute("a", f"select ({open_now}) > 1"))
        await eventually(lambda: tenants.execute("a", f"select ({open_now}) <= 1"))


async def test_an_idle_relay_or_worker_opens_no_new_connection(tenants: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("outbox.engine.relay.LOOK_EVERY", "outbox.engine.worker.MEASURE_EVERY"):
        *module, constant = name.split(".")
        assert getattr(import_module(".".join(module)), constant) < pool.SPARE_LIFETIME
        monkeypatch.setattr(name, timedelta(seconds=0.1))

    def make_worker(_: str, url: str) -> Worker:
        return Worker(broker=url, consumers=[Box().consumer], enable_metrics=False)

    makes: dict[str, Callable[[str, str], Any]] = {"outbox relay": tenants.make, "outbox broker": make_worker}
    for application, make in makes.items():
        async with serving(Databases(tenants.urls, make)):
            for name in NAMES:
                await eventually(partial(_rounds_on_the_same_connections, tenants.urls[name], application))


async def _rounds_on_the_same_connections(url: str, application: str, count: int = 10) -> bool:
    """Waits for statements of a pool. Returns whether `count` of them ran on the connections that were open before them."""
    watching = await asyncpg.connect(url)
    found = "select pid, query_start from pg_stat_activity where datname = current_database() and application_name = $1"
    try:
        at_first = {row["pid"] for row in await watching.fetch(found, application)}
        started: set[datetime] = set()
        while len(started) < count:
            rows = await watching.fetch(found, application)
            started |= {row["query_start"] for row in rows}
            if not at_first or not at_first.issuperset(row["pid"] for row in rows):
                return False
        return True
    finally:
        await watching.close()


async def test_the_file_on_the_page_is_valid(tenants: Tenants, tmp_path: Path) -> None:
    (lines,) = re.findall(r"```text\n(# name=url.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "databases"
    path.write_text(re.sub(r"postgresql://outbox:secret@db-.*", tenants.urls["a"], lines))
    databases = Databases(path, lambda _, url: tenants.make("a", url))
    async with serving(databases):
        await eventually(lambda: databases.states() == {"acme": "ok", "globex": "ok"})


@pytest.mark.slow
async def test_the_program_on_the_page_serves_the_tenants_of_a_table(tenants: Tenants, tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(# tenants\.py\n.*?)```", PAGE, re.DOTALL)
    await tenants.execute("c", "create table tenant (name text, url text, active boolean)")
    for name in ("a", "b"):
        await tenants.execute(name, "create table shop as select $1::text as title", f"shop {name}")
        await tenants.execute("c", "insert into tenant values ($1, $2, $3)", name, tenants.urls[name], name == "a")
    order = "insert into outbox_table (routing_key, body) values ('order.placed', $1)"
    with running(["-c", program], tmp_path, {"OUTBOX_DATABASE_URL": tenants.urls["c"]}) as process:
        await tenants.execute("a", order, b'{"id": 1}')
        await tenants.execute("b", order, b'{"id": 2}')
        await asyncio.to_thread(process.says, "shop a has order 1")
        assert "shop b" not in process.output
        await tenants.execute("c", "update tenant set active = true")
        await asyncio.to_thread(process.says, "shop b has order 2")
        process.send(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait) == 0


class NoDeadLetters:
    """A broker without dead letters."""

    @asynccontextmanager
    async def collect(self, *_arguments: object, **_limits: object) -> AsyncIterator[asyncio.Event]:
        yield asyncio.Event()

    async def count(self, queue: str) -> int:
        return 0

    async def close(self) -> None:
        return
