"""A handler's transaction ends its delivery, when both are in the same database."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from outbox import Consumer, Worker
from outbox.engine import transactions
from outbox.ports import Statement
from outbox.postgres.handler_connections import HandlerConnection
from outbox.postgres.pool import Pool
from outbox.publisher import BoundPublisher
from outbox.transports.postgres import PostgresBroker
from tests.contract.harness import EXCHANGE
from tests.postgres_transport.support import TABLES, bind, fill_deliveries, new_broker
from tests.support import eventually
from tests.worker.support import SOON, running

Connection = Any
COUNT = 5
WRITTEN = ("outbox_table", "outbox_inbox", "outbox_delivery")


@pytest.fixture
async def sales(pool: Pool) -> Callable[[], Awaitable[list[int]]]:
    """For each sale that was committed, how many deliveries its own transaction left of its message."""
    await pool.execute(
        """
        create table sale (id bigint generated always as identity, message_id text, left_over bigint);
        create function note_left_over() returns trigger language plpgsql as $$
        begin
            update sale
            set left_over = (select count(*) from outbox_delivery as delivery where delivery.message_id = new.message_id)
            where id = new.id;
            return null;
        end $$;
        create constraint trigger at_commit after insert on sale deferrable initially deferred
            for each row execute function note_left_over();
        """
    )

    async def left_over() -> list[int]:
        return [row["left_over"] for row in await pool.fetch("select left_over from sale order by id")]

    return left_over


INSERT = "insert into sale (message_id) values ('%s')"


def handlers(then: Callable[[], Awaitable[object]]) -> dict[str, Any]:
    """Handlers that sell something, each through what it takes, and then do something else."""

    async def in_session(body: bytes, tracking_ids: list[str], session: AsyncSession) -> None:
        await session.execute(text(INSERT % tracking_ids[-1]))
        await then()

    async def in_connection(body: bytes, tracking_ids: list[str], connection: Connection) -> None:
        await connection.execute(INSERT % tracking_ids[-1])
        await then()

    async def published(body: bytes, tracking_ids: list[str], publisher: BoundPublisher[Connection]) -> None:
        await publisher.publish("order.paid", tracking_ids[-1])
        await then()

    return {"session": in_session, "connection": in_connection, "publisher": published}


async def nothing() -> None:
    pass


def worker(url: str, callback: Any, **options: Any) -> Worker:
    consumer = Consumer("order.*", callback, queue="mail", **options)
    return Worker(broker=url, db_engine_url=url, consumers=[consumer], exchange_name=EXCHANGE, enable_metrics=False)


async def is_empty(pool: Pool) -> bool:
    return not await pool.fetchval("select exists(select from outbox_delivery)")


@pytest.mark.parametrize("inbox", [True, False])
@pytest.mark.parametrize("takes", ["session", "connection"])
async def test_the_end_of_a_delivery_is_committed_with_what_its_handler_wrote(
    database: str, pool: Pool, sales: Callable[[], Awaitable[list[int]]], takes: str, inbox: bool
) -> None:
    await bind(pool, "mail", "order.*")
    await fill_deliveries(pool, "mail", COUNT)
    async with running(worker(database, handlers(nothing)[takes], inbox=inbox)):
        await eventually(lambda: is_empty(pool), timeout=SOON)
    assert await sales() == [0] * COUNT


@pytest.mark.parametrize("inbox", [True, False])
@pytest.mark.parametrize("takes", ["session", "connection", "publisher"])
async def test_a_handler_that_lost_its_delivery_meanwhile_changes_nothing(
    database: str, pool: Pool, sales: Callable[[], Awaitable[list[int]]], takes: str, inbox: bool
) -> None:
    """Its worker was frozen for longer than a lease, and another one has the message: what it wrote must not count."""
    await bind(pool, "mail", "order.*")
    await fill_deliveries(pool, "mail", 1)
    lost: list[object] = []

    async def lose_lease() -> None:
        sql = "update outbox_delivery set lease_token = $1, leased_until = now() + interval '1 hour'"
        lost.append(await pool.execute(sql, uuid4()))

    running_worker = worker(database, handlers(lose_lease)[takes], inbox=inbox)
    async with running(running_worker):
        await eventually(lambda: bool(lost), timeout=SOON)
    assert lost == ["UPDATE 1"]
    assert await sales() == []
    counts = [await pool.fetchval(f"select count(*) from {table}") for table in WRITTEN]
    assert counts == [0, 0, 1]


@pytest.mark.parametrize("inbox", [True, False])
async def test_a_commit_whose_answer_is_lost_has_ended_its_delivery(
    database: str, pool: Pool, sales: Callable[[], Awaitable[list[int]]], monkeypatch: pytest.MonkeyPatch, inbox: bool
) -> None:
    """No other worker gets the message, and this one knows it from the mark, or finds nothing left to retry."""
    await bind(pool, "mail", "order.*")
    await fill_deliveries(pool, "mail", 1)
    execute, calls = HandlerConnection.execute, []

    async def lose_answer(self: HandlerConnection, query: str, *arguments: Any, **options: Any) -> str:
        status = await execute(self, query, *arguments, **options)
        if query == "COMMIT;":
            calls.append(status)
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        return status

    monkeypatch.setattr(HandlerConnection, "execute", lose_answer)
    async with running(worker(database, handlers(nothing)["connection"], inbox=inbox, retry_delays=("10ms",))):
        await eventually(lambda: bool(calls), timeout=SOON)
        await eventually(lambda: is_empty(pool), timeout=SOON)
    assert (await sales(), calls) == ([0], ["COMMIT"])
    assert await pool.fetchval("select count(*) from outbox_dead_letter") == 0


@pytest.mark.parametrize("autocommit", [False, True])
async def test_a_handler_that_commits_by_itself_settles_its_delivery_afterwards(
    database: str, pool: Pool, sales: Callable[[], Awaitable[list[int]]], autocommit: bool
) -> None:
    await bind(pool, "mail", "order.*")
    await fill_deliveries(pool, "mail", 1)

    async def handle(body: bytes, tracking_ids: list[str], session: AsyncSession) -> None:
        if autocommit:
            await session.connection(execution_options={"isolation_level": "AUTOCOMMIT"})
        await session.execute(text(INSERT % tracking_ids[-1]))
        if not autocommit:
            await session.commit()

    async with running(worker(database, handle)):
        await eventually(lambda: is_empty(pool), timeout=SOON)
    assert await sales() == [1]


async def test_a_renewal_before_the_answer_to_the_commit_does_not_lose_the_delivery(
    database: str,
    pool: Pool,
    sales: Callable[[], Awaitable[list[int]]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It finds no row to renew, because the handler's transaction has deleted it."""
    await bind(pool, "mail", "order.*")
    await fill_deliveries(pool, "mail", 1)
    execute, fetch, renewed = HandlerConnection.execute, PostgresBroker._fetch, asyncio.Event()

    async def delay_answer(self: HandlerConnection, query: str, *arguments: Any, **options: Any) -> str:
        status = await execute(self, query, *arguments, **options)
        if query == "COMMIT;":
            renewed.clear()
            await asyncio.wait_for(renewed.wait(), SOON)
        return status

    async def watch(self: PostgresBroker, name: str, *arguments: Any) -> Any:
        rows = await fetch(self, name, *arguments)
        if name == "renew" and not rows:
            renewed.set()
        return rows

    monkeypatch.setattr(HandlerConnection, "execute", delay_answer)
    monkeypatch.setattr(PostgresBroker, "_fetch", watch)
    broker = new_broker(database, lease=timedelta(seconds=1))
    consumer = Consumer("order.*", handlers(nothing)["connection"], queue="mail")
    running_worker = Worker(
        broker=broker, db_engine_url=database, consumers=[consumer], exchange_name=EXCHANGE, enable_metrics=False
    )
    caplog.set_level("INFO", "outbox")
    async with running(running_worker):
        await eventually(lambda: "processed" in caplog.text, timeout=SOON)
    await broker.close()
    assert await sales() == [0]
    assert "not recorded" not in caplog.text


def one_by_one(database: str, consumer: Consumer) -> Worker:
    """A worker that handles one message after another."""
    options: dict[str, Any] = {"exchange_name": EXCHANGE, "prefetch_count": 1, "enable_metrics": False}
    return Worker(broker=database, db_engine_url=database, consumers=[consumer], **options)


async def test_a_handler_that_deallocates_the_workers_statements_loses_nothing(
    database: str, pool: Pool, sales: Callable[[], Awaitable[list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit of the second message fails, and spends no attempt. After that the connection keeps no statements."""
    monkeypatch.setattr(transactions, "HELD_PAUSE", timedelta(0))
    await bind(pool, "mail", "order.*")
    await fill_deliveries(pool, "mail", COUNT)
    calls: list[str] = []

    async def handle(body: bytes, tracking_ids: list[str], connection: Connection) -> None:
        await connection.execute(INSERT % tracking_ids[-1])
        if calls:
            await connection.execute("deallocate all")
        calls.append(tracking_ids[-1])

    consumer = Consumer("order.*", handle, queue="mail", inbox=True, retry_delays=())
    async with running(one_by_one(database, consumer)):
        await eventually(lambda: is_empty(pool), timeout=SOON)
    assert await sales() == [0] * COUNT
    assert len(calls) == COUNT + 1
    assert await pool.fetchval("select count(*) from outbox_dead_letter") == 0


@pytest.mark.parametrize("inbox", [False, True])
async def test_a_handler_that_deallocates_the_statements_of_its_session_keeps_no_other_waiting(
    database: str, pool: Pool, sales: Callable[[], Awaitable[list[int]]], monkeypatch: pytest.MonkeyPatch, inbox: bool
) -> None:
    monkeypatch.setattr(transactions, "HELD_PAUSE", timedelta(0))
    await bind(pool, "mail", "order.*")
    await fill_deliveries(pool, "mail", COUNT)
    calls: list[str] = []

    async def handle(body: bytes, tracking_ids: list[str], session: AsyncSession) -> None:
        await session.execute(text(INSERT % tracking_ids[-1]))
        calls.append(tracking_ids[-1])
        if len(calls) == 2:
            await session.execute(text("deallocate all"))

    consumer = Consumer("order.*", handle, queue="mail", inbox=inbox, retry_delays=(timedelta(0),))
    async with running(one_by_one(database, consumer)):
        await eventually(lambda: is_empty(pool), timeout=SOON)
    assert sorted(await sales()) == [0] * COUNT
    assert await pool.fetchval("select count(*) from outbox_dead_letter") == 0


async def test_a_handler_that_deallocates_the_statements_of_its_connection_fails_no_message_for_good(
    database: str, pool: Pool, sales: Callable[[], Awaitable[list[int]]]
) -> None:
    await bind(pool, "mail", "order.*")
    await fill_deliveries(pool, "mail", COUNT)
    calls: list[str] = []

    async def handle(body: bytes, tracking_ids: list[str], connection: Connection) -> None:
        await connection.execute("insert into sale (message_id) values ($1)", tracking_ids[-1])
        calls.append(tracking_ids[-1])
        if len(calls) == 2:
            await connection.execute("deallocate all")

    consumer = Consumer("order.*", handle, queue="mail", retry_delays=(timedelta(0),))
    async with running(one_by_one(database, consumer)):
        await eventually(lambda: is_empty(pool), timeout=SOON)
    assert sorted(await sales()) == [0] * COUNT
    assert await pool.fetchval("select count(*) from outbox_dead_letter") == 0


@pytest.mark.parametrize("inbox", [False, True])
@pytest.mark.parametrize("takes", ["session", "connection"])
async def test_what_a_handler_sets_ends_with_its_message(database: str, pool: Pool, takes: str, inbox: bool) -> None:
    await bind(pool, "mail", "order.*")
    await fill_deliveries(pool, "mail", COUNT)
    await pool.execute("grant all on all tables in schema public to pg_database_owner")
    seen: list[str] = []
    show = "select current_setting('statement_timeout') || current_setting('lock_timeout') || (current_user = session_user)"
    statements = (
        "select set_config('statement_timeout', '1h', false)",
        "-- one\n/* or * two */ set lock_timeout = '1h'",
        "set role pg_database_owner",
    )

    async def in_session(body: bytes, session: AsyncSession) -> None:
        seen.append((await session.execute(text(show))).scalar_one())
        for each in statements:
            await session.execute(text(each))

    async def in_connection(body: bytes, connection: Connection) -> None:
        seen.append(await connection.fetchval(show))
        for each in statements:
            await connection.execute(each)

    callback = in_session if takes == "session" else in_connection
    async with running(one_by_one(database, Consumer("order.*", callback, queue="mail", inbox=inbox, retry_delays=()))):
        await eventually(lambda: is_empty(pool), timeout=SOON)
    assert seen == ["00true"] * COUNT


@pytest.mark.parametrize("takes", ["session", "connection"])
async def test_what_ends_with_the_transaction_costs_no_round_trip(
    database: str, pool: Pool, takes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bind(pool, "mail", "order.*")
    await fill_deliveries(pool, "mail", COUNT)
    change, resets, reset = "select set_config('shop.tenant', '7', true)", [], HandlerConnection.reset_settings

    async def noted(connection: HandlerConnection) -> None:
        resets.append(connection)
        await reset(connection)

    async def in_session(body: bytes, session: AsyncSession) -> None:
        await session.execute(text("set local statement_timeout = '1h'"))
        await session.execute(text(change))

    async def in_connection(body: bytes, connection: Connection) -> None:
        await connection.execute("set local statement_timeout = '1h'")
        await connection.execute(change)

    monkeypatch.setattr(HandlerConnection, "reset_settings", noted)
    callback = in_session if takes == "session" else in_connection
    async with running(one_by_one(database, Consumer("order.*", callback, queue="mail", inbox=True, retry_delays=()))):
        await eventually(lambda: is_empty(pool), timeout=SOON)
    assert not resets


@pytest.mark.filterwarnings("ignore::asyncpg.exceptions.InterfaceWarning")
async def test_what_a_handler_listens_to_ends_with_its_message(database: str, pool: Pool) -> None:
    await bind(pool, "mail", "order.*")
    await fill_deliveries(pool, "mail", COUNT)
    seen: list[int] = []

    async def handle(body: bytes, connection: Connection) -> None:
        seen.append(await connection.fetchval("select count(*) from pg_listening_channels()"))
        await connection.add_listener("news", lambda *_: None)

    async with running(one_by_one(database, Consumer("order.*", handle, queue="mail", retry_delays=()))):
        await eventually(lambda: is_empty(pool), timeout=SOON)
    assert seen == [0] * COUNT


async def test_a_delivery_is_found_by_its_index_whatever_the_size_of_the_table_was(database: str, pool: Pool) -> None:
    """The server keeps the plan that it made while the table was small, and would read all of it."""
    await bind(pool, "mail", "order.*")
    token = uuid4()
    await fill_deliveries(pool, "mail", 1)
    id_ = await pool.fetchval(
        "update outbox_delivery set lease_token = $1, leased_until = now() + interval '1 hour' returning id", token
    )
    await pool.execute("vacuum analyze outbox_delivery")
    template = TABLES.queries("delivery.sql")["done_in_transaction"]
    statement = Statement(template, "bigint, uuid, boolean", (str(id_), f"'{token}'", "false"), needs_index=True)
    scans = "select seq_scan from pg_stat_xact_user_tables where relname = 'outbox_delivery'"
    connection = await asyncpg.connect(database, connection_class=HandlerConnection)
    try:
        for _ in range(10):  # more often than the server plans before it keeps a plan
            await connection.send("begin;", statement)
            assert await connection.fetchval(scans) == 0
            await connection.send("rollback;")
        assert await connection.fetchval("select generic_plans from pg_prepared_statements where name = 'outbox_1'") > 0
    finally:
        await connection.close()
