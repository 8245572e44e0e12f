"""A handler's session, connection and publisher: one transaction, committed before its message is settled."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_connection
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from outbox import Consumer, Reject, Worker, ensure_outbox_schema_async
from outbox.engine import transactions
from outbox.errors import DatabaseUnavailableError, TransactionRequiredError
from outbox.ports import Statement
from outbox.postgres import handler_connections, unit_of_work
from outbox.postgres.handler_connections import HandlerConnection
from outbox.postgres.inbox import Inbox
from outbox.postgres.pool import give_back
from outbox.postgres.queries import TableName
from outbox.postgres.unit_of_work import PostgresUnitsOfWork
from outbox.publisher import BoundPublisher
from outbox.transports.memory import MemoryBroker
from tests.contract.support import existing, message
from tests.support import eventually
from tests.worker.support import SOON, TIMEOUT, running

Connection = Any


@pytest.fixture
async def shop(database_url: str) -> str:
    """A database with every table, one of the business among them; its constraint is checked at the commit."""
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute("create table sale (id int, constraint one_each unique (id) deferrable initially deferred)")
    await connection.close()
    return database_url


@pytest.fixture
async def db(shop: str) -> AsyncIterator[Connection]:
    """A connection that sees what is committed."""
    connection = await asyncpg.connect(shop)
    yield connection
    await connection.close()


class Shop:
    """Has one consumer handle one message, and keeps what became of it."""

    def __init__(self, url: str | None, **options: Any) -> None:
        self.broker = MemoryBroker(exchange_name="shop")
        self.options: dict[str, Any] = {"enable_metrics": False, "exchange_name": "shop", **options}
        if url is not None:
            self.options["db_engine_url"] = url

    async def handle(self, callback: Any, *, retry_delays: tuple[str, ...] = ()) -> Any:
        """What was sent, after it was handled."""
        consumer = Consumer("order.*", callback, queue="mail", retry_delays=retry_delays)
        worker = Worker(broker=self.broker, consumers=[consumer], **self.options)
        await existing(self.broker, "mail", "order.*")
        sent = message("order.placed", b'{"id": 7}')
        async with running(worker) as task:
            await self.broker.send([sent], timeout=TIMEOUT)
            await eventually(lambda: task.done() or self.broker.is_idle("mail"), timeout=SOON)
        return sent

    @property
    def failure(self) -> str:
        [dead] = self.broker.dead_letters("mail")
        return dead.failure.type


async def _sales(db: Connection) -> int:
    return int(await db.fetchval("select count(*) from sale"))


async def _events(db: Connection) -> list[Any]:
    return list(await db.fetch("select routing_key, body, tracking_ids from outbox_table order by id"))


# --- what is committed -------------------------------------------------------------------------------------------------


async def test_what_session_connection_and_publisher_wrote_is_committed_together(shop: str, db: Connection) -> None:
    seen: list[object] = []

    async def handle(
        order: dict[str, int], session: AsyncSession, connection: Connection, publisher: BoundPublisher[Any]
    ) -> None:
        assert isinstance(connection, asyncpg.Connection)
        await connection.execute("insert into sale values (1)")
        await session.execute(text("insert into sale values (2)"))
        await publisher.publish("order.paid", order)
        transaction = "select txid_current_if_assigned()"
        seen.append(await connection.fetchval(transaction) == await session.scalar(text(transaction)))
        seen.append((await _sales(db), await _events(db)))

    sent = await Shop(shop).handle(handle)
    assert seen == [True, (0, [])]
    assert await _sales(db) == 2
    [event] = await _events(db)
    assert (event["routing_key"], event["body"]) == ("order.paid", b'{"id": 7}')
    assert json.loads(event["tracking_ids"])[:-1] == list(sent.tracking_ids)


async def test_a_connection_used_first_is_in_the_sessions_transaction(shop: str, db: Connection) -> None:
    async def handle(body: bytes, session: AsyncSession, connection: Connection) -> None:
        await connection.execute("insert into sale values (1)")
        raise Reject("no")

    await Shop(shop).handle(handle)
    assert await _sales(db) == 0


@pytest.mark.parametrize("given", ["url", "pool"])
async def test_without_a_session_the_connection_comes_from_a_pool(shop: str, db: Connection, given: str) -> None:
    async def handle(body: bytes, connection: Connection, publisher: BoundPublisher[Any]) -> None:
        await connection.execute("insert into sale values (1)")
        async with connection.transaction():
            await publisher.publish("order.paid", {})
        assert await _sales(db) == 0

    async with asyncpg.create_pool(shop, min_size=0, max_size=2) as pool:
        place = Shop(shop) if given == "url" else Shop(None, db_pool=pool)
        await place.handle(handle)
        assert not place.broker.dead_letters("mail")
        assert await pool.fetchval("select 1") == 1
    assert await _sales(db) == 1
    assert len(await _events(db)) == 1


@pytest.mark.parametrize("wanted", ["session", "connection", "publisher"])
async def test_the_publisher_of_a_handler_ends_with_it_and_says_so(shop: str, db: Connection, wanted: str) -> None:
    kept: list[BoundPublisher[Any]] = []
    begun: list[Any] = []

    def note(publisher: BoundPublisher[Any]) -> None:
        kept.append(publisher)
        begun.append(publisher.publish("order.paid", {}))  # as in a task that does not run before the handler has returned

    async def with_session(body: bytes, session: AsyncSession, publisher: BoundPublisher[Any]) -> None:
        note(publisher)

    async def with_connection(body: bytes, connection: Connection, publisher: BoundPublisher[Any]) -> None:
        note(publisher)

    async def with_publisher(body: bytes, publisher: BoundPublisher[Any]) -> None:
        note(publisher)

    handlers = {"session": with_session, "connection": with_connection, "publisher": with_publisher}
    await Shop(shop).handle(handlers[wanted])
    with pytest.raises(TransactionRequiredError, match="has ended with its request or its handler"):
        await kept[0].publish("order.paid", {})
    with pytest.raises(TransactionRequiredError):
        await begun[0]
    assert await _events(db) == []


async def test_a_session_alone_and_a_publisher_alone_commit(shop: str, db: Connection) -> None:
    async def with_session(body: bytes, session: AsyncSession) -> None:
        await session.execute(text("insert into sale values (1)"))

    async def with_publisher(body: bytes, publisher: BoundPublisher[Any]) -> None:
        await publisher.publish("order.paid", {})

    await Shop(shop).handle(with_session)
    await Shop(shop).handle(with_publisher)
    assert (await _sales(db), len(await _events(db))) == (1, 1)


async def test_a_handler_may_commit_in_between(shop: str, db: Connection) -> None:
    async def handle(body: bytes, session: AsyncSession, publisher: BoundPublisher[Any]) -> None:
        await session.execute(text("insert into sale values (1)"))
        await session.commit()
        assert await _sales(db) == 1
        await publisher.publish("order.paid", {})

    place = Shop(shop)
    await place.handle(handle)
    assert not place.broker.dead_letters("mail")
    assert len(await _events(db)) == 1


async def test_the_commit_comes_before_the_message_is_settled(shop: str, db: Connection) -> None:
    place = Shop(shop)
    calls: list[bytes] = []

    async def handle(body: bytes, connection: Connection) -> None:
        calls.append(body)
        await connection.execute("insert into sale values ($1)", len(calls))
        if len(calls) == 1:
            place.broker.crash("mail")

    await place.handle(handle)
    # The first delivery was lost before it could be settled, so the message came again; what was written then, stays.
    assert (len(calls), await _sales(db)) == (2, 2)


# --- what is rolled back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_session", [True, False])
async def test_a_failing_handler_leaves_nothing(shop: str, db: Connection, with_session: bool) -> None:
    async def in_session(body: bytes, session: AsyncSession, publisher: BoundPublisher[Any]) -> None:
        await session.execute(text("insert into sale values (1)"))
        await publisher.publish("order.paid", {})
        raise LookupError("no such customer")

    async def in_connection(body: bytes, connection: Connection, publisher: BoundPublisher[Any]) -> None:
        await connection.execute("insert into sale values (1)")
        await publisher.publish("order.paid", {})
        raise LookupError("no such customer")

    place = Shop(shop)
    await place.handle(in_session if with_session else in_connection)
    assert place.failure == "LookupError"
    assert (await _sales(db), await _events(db)) == (0, [])


@pytest.mark.parametrize("with_session", [True, False])
async def test_a_failed_commit_is_a_failed_attempt(shop: str, db: Connection, with_session: bool) -> None:
    attempts: list[int] = []

    async def in_session(body: bytes, session: AsyncSession, attempt_count: int) -> None:
        attempts.append(attempt_count)
        await session.execute(text("insert into sale values (1)"))
        await session.execute(text("insert into sale values (:id)"), {"id": attempt_count})

    async def in_connection(body: bytes, connection: Connection, attempt_count: int) -> None:
        attempts.append(attempt_count)
        await connection.execute("insert into sale values (1)")
        await connection.execute("insert into sale values ($1)", attempt_count)

    place = Shop(shop)
    await place.handle(in_session if with_session else in_connection, retry_delays=("0",))
    assert attempts == [1, 2]
    assert await _sales(db) == 2
    assert not place.broker.dead_letters("mail")


@pytest.mark.parametrize("with_session", [True, False])
async def test_a_failed_statement_that_the_handler_ignored_is_a_failed_attempt(
    shop: str, db: Connection, with_session: bool
) -> None:
    """PostgreSQL answers the commit of such a transaction with a rollback, and no error."""

    async def in_session(body: bytes, session: AsyncSession, publisher: BoundPublisher[Any]) -> None:
        await publisher.publish("order.paid", {})
        try:
            await session.execute(text("insert into sale select 1 from pg_sleep(0) where 1 / 0 = 1"))
        except DBAPIError:
            return

    async def in_connection(body: bytes, connection: Connection, publisher: BoundPublisher[Any]) -> None:
        await publisher.publish("order.paid", {})
        try:
            await connection.execute("select 1 / 0")
        except asyncpg.DivisionByZeroError:
            return

    place = Shop(shop)
    await place.handle(in_session if with_session else in_connection)
    assert "InFailedSQLTransaction" in place.failure
    assert await _events(db) == []


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("inbox", [False, True])
async def test_a_statement_that_outlives_its_handler_costs_no_other_message(
    shop: str, db: Connection, inbox: bool, connected: bool
) -> None:
    """`gather` raises the first error, and leaves the others running."""

    async def fail() -> None:
        raise ValueError("the card was declined")

    async def handle(order: dict[str, int], session: AsyncSession) -> None:
        if order["id"]:
            await session.execute(text("insert into sale values (:id)"), order)
            return
        if connected:
            await session.execute(text("select 1"))
        await asyncio.gather(session.execute(text("select pg_sleep(60)")), fail())

    broker = MemoryBroker(exchange_name="shop")
    consumer = Consumer("order.*", handle, queue="mail", retry_delays=(), inbox=inbox)
    worker = Worker(
        broker=broker, consumers=[consumer], db_engine_url=shop, exchange_name="shop", prefetch_count=1, enable_metrics=False
    )
    await existing(broker, "mail", "order.*")
    async with running(worker):
        for id_ in (0, 1, 0, 2, 3):
            await broker.send([message("order.placed", json.dumps({"id": id_}).encode())], timeout=TIMEOUT)
        await eventually(lambda: broker.is_idle("mail"), timeout=SOON)
    assert [dead.failure.type for dead in broker.dead_letters("mail")] == ["ValueError", "ValueError"]
    assert await _sales(db) == 3


async def test_a_session_is_unusable_after_its_handler_has_ended(shop: str, db: Connection) -> None:
    kept: list[AsyncSession] = []

    async def handle(order: object, session: AsyncSession) -> None:
        kept.append(session)

    await Shop(shop).handle(handle)
    with pytest.raises(TransactionRequiredError, match="a session of its own"):
        await kept[0].execute(text("insert into sale values (1)"))
    assert await _sales(db) == 0


async def test_a_connection_is_unusable_after_its_handler_has_ended(shop: str, db: Connection) -> None:
    kept: list[Any] = []

    async def handle(body: bytes, connection: Connection) -> None:
        kept.append(connection)

    await Shop(shop).handle(handle)
    with pytest.raises(asyncpg.InterfaceError):
        await kept[0].execute("insert into sale values (1)")


async def test_unused_connections_of_handlers_go_back_to_the_pool(
    shop: str, db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of handlers that publish, which are kept for the next one."""
    monkeypatch.setattr(unit_of_work, "SPARE_FOR", 0.05)
    given_back = asyncio.Event()

    async def noted(*arguments: Any) -> None:
        await give_back(*arguments)
        given_back.set()

    monkeypatch.setattr(unit_of_work, "give_back", noted)

    async def handle(body: bytes, publisher: BoundPublisher[Any]) -> None:
        await publisher.publish("order.paid", {})

    place = Shop(shop)
    worker = Worker(
        broker=place.broker, consumers=[Consumer("order.*", handle, queue="mail", retry_delays=())], **place.options
    )
    await existing(place.broker, "mail", "order.*")
    async with running(worker):
        for count in (1, 2):
            given_back.clear()
            await place.broker.send([message("order.placed", b"{}")], timeout=TIMEOUT)
            await asyncio.wait_for(given_back.wait(), SOON)
            assert len(await _events(db)) == count


async def test_a_check_that_no_commit_followed_is_not_that_of_the_next_transaction(database_url: str) -> None:
    connection = await asyncpg.connect(database_url, connection_class=HandlerConnection)
    try:
        connection.check_before_commit([Statement("select 1 / 0")])
        async with connection.transaction():
            await connection.execute("create table sale (id int)")
        assert await connection.fetchval("select count(*) from sale") == 0
    finally:
        await connection.close()


@pytest.mark.parametrize("with_session", [True, False])
@pytest.mark.parametrize("inbox", [True, False])
async def test_a_migration_between_two_messages_spends_no_attempt(
    shop: str, db: Connection, monkeypatch: pytest.MonkeyPatch, with_session: bool, inbox: bool
) -> None:
    """The second one uses a statement that was prepared before its table changed; it is prepared again."""
    monkeypatch.setattr(transactions, "HELD_PAUSE", timedelta(0))
    columns: list[int] = []

    async def in_session(body: bytes, session: AsyncSession) -> None:
        await session.execute(text("insert into sale (id) select count(*) from sale"))
        columns.append(len((await session.execute(text("select * from sale"))).keys()))

    async def in_connection(body: bytes, connection: Connection) -> None:
        await connection.execute("insert into sale (id) select count(*) from sale where $1", True)
        columns.append(len((await connection.fetch("select * from sale"))[0]))

    place = Shop(shop)
    callback: Any = in_session if with_session else in_connection
    consumer = Consumer("order.*", callback, queue="mail", retry_delays=(), inbox=inbox)
    worker = Worker(broker=place.broker, consumers=[consumer], **place.options, reporting=False)
    await existing(place.broker, "mail", "order.*")
    async with running(worker):
        for _ in range(2):
            await place.broker.send([message("order.placed", b"{}")], timeout=TIMEOUT)
            await eventually(lambda: place.broker.is_idle("mail"), timeout=SOON)
            await db.execute(f"alter table sale add column note_{len(columns)} text")
    assert (columns, await _sales(db)) == ([1, 2], 2)
    assert not place.broker.dead_letters("mail")


@pytest.mark.parametrize("takes", ["session", "connection", "publisher"])
async def test_a_handler_is_not_given_a_connection_that_was_lost_meanwhile(
    shop: str, db: Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, takes: str
) -> None:
    """The server said so: neither the handler nor its transaction fails of it."""

    async def in_session(body: bytes, session: AsyncSession) -> None:
        await session.execute(text("insert into sale select count(*) from sale"))

    async def in_connection(body: bytes, connection: Connection) -> None:
        await connection.execute("insert into sale select count(*) from sale")

    async def published(body: bytes, publisher: BoundPublisher[Any]) -> None:
        await publisher.publish("order.paid", {})

    callbacks: dict[str, Any] = {"session": in_session, "connection": in_connection, "publisher": published}
    place = Shop(shop)
    cut = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'outbox worker'"
    opened: list[HandlerConnection] = []
    construct = HandlerConnection.__init__

    def remember(self: HandlerConnection, *arguments: Any) -> None:
        construct(self, *arguments)
        opened.append(self)

    monkeypatch.setattr(HandlerConnection, "__init__", remember)
    consumer = Consumer("order.*", callbacks[takes], queue="mail", retry_delays=())
    worker = Worker(broker=place.broker, consumers=[consumer], **place.options, reporting=False)
    await existing(place.broker, "mail", "order.*")
    async with running(worker):
        for _ in range(2):
            await place.broker.send([message("order.placed", b"{}")], timeout=TIMEOUT)
            await eventually(lambda: place.broker.is_idle("mail"), timeout=SOON)
            assert await db.fetchval(cut)
            # The server has closed the connection; the worker's event loop must have read that.
            await eventually(lambda: all(connection.is_closed() for connection in opened), timeout=SOON)
    assert len(opened) >= 2
    assert len(await _events(db)) + await _sales(db) == 2
    assert not place.broker.dead_letters("mail")
    assert "lost the database" not in caplog.text


async def test_a_session_is_not_given_a_connection_that_no_longer_answers(
    shop: str, db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a pause it is pinged: a firewall that forgot it says so only to who sends something."""
    monkeypatch.setattr(handler_connections, "PING_AFTER", 0.0)
    pinged: list[Any] = []

    def forgotten(connection: Any) -> None:
        pinged.append(connection.driver_connection)
        raise ConnectionResetError("the firewall has forgotten it")

    monkeypatch.setattr(AsyncAdapt_asyncpg_connection, "ping", forgotten)
    used: list[Any] = []

    async def handle(body: bytes, session: AsyncSession) -> None:
        used.append((await (await session.connection()).get_raw_connection()).driver_connection)

    place = Shop(shop)
    worker = Worker(
        broker=place.broker, consumers=[Consumer("order.*", handle, queue="mail", retry_delays=())], **place.options
    )
    await existing(place.broker, "mail", "order.*")
    async with running(worker):
        for _ in range(2):
            await place.broker.send([message("order.placed", b"{}")], timeout=TIMEOUT)
            await eventually(lambda: place.broker.is_idle("mail"), timeout=SOON)
    assert not place.broker.dead_letters("mail")
    assert (pinged, len(set(used))) == ([used[0]], 2)


async def test_a_rolled_back_savepoint_does_no_harm(shop: str, db: Connection) -> None:
    async def handle(body: bytes, session: AsyncSession, publisher: BoundPublisher[Any]) -> None:
        await session.execute(text("insert into sale values (1)"))
        try:
            async with session.begin_nested():
                await session.execute(text("set constraints all immediate"))
                await session.execute(text("insert into sale values (1)"))
        except IntegrityError:
            await publisher.publish("sale.refused", {})

    await Shop(shop).handle(handle)
    assert (await _sales(db), len(await _events(db))) == (1, 1)


@pytest.mark.parametrize("with_session", [True, False])
async def test_a_backend_that_is_terminated_while_a_handler_runs_costs_one_attempt(
    shop: str, db: Connection, with_session: bool
) -> None:
    attempts: list[int] = []

    async def in_session(body: bytes, session: AsyncSession, attempt_count: int) -> None:
        attempts.append(attempt_count)
        await session.execute(text("insert into sale values (1)"))
        if attempt_count == 1:
            await db.execute("select pg_terminate_backend($1)", await session.scalar(text("select pg_backend_pid()")))

    async def in_connection(body: bytes, connection: Connection, attempt_count: int) -> None:
        attempts.append(attempt_count)
        await connection.execute("insert into sale values (1)")
        if attempt_count == 1:
            await db.execute("select pg_terminate_backend($1)", connection.get_server_pid())

    place = Shop(shop)
    await place.handle(in_session if with_session else in_connection, retry_delays=("0",))
    assert attempts == [1, 2]
    assert await _sales(db) == 1


@pytest.mark.parametrize(
    "stumble", [asyncpg.InternalClientError("another operation is in progress"), AttributeError("no attribute of None")]
)
async def test_a_driver_error_before_the_handler_runs_uses_no_attempt(stumble: Exception) -> None:
    class Stumbling:
        def transaction(self) -> "Stumbling":
            return self

        async def start(self) -> None:
            raise stumble

        def is_in_transaction(self) -> bool:
            return False

    class Lending:
        async def acquire(self, **_: object) -> Stumbling:
            return Stumbling()

        async def release(self, *_: object, **__: object) -> None:
            raise stumble

    units = PostgresUnitsOfWork(
        pool=cast("Any", Lending()), engine=None, bind=lambda connection: connection, inbox=Inbox(TableName("outbox_inbox"))
    )
    with pytest.raises(DatabaseUnavailableError):
        async with units.begin(frozenset({"connection"})):
            pass


@pytest.mark.parametrize("with_session", [True, False])
async def test_backends_that_are_terminated_between_messages_cost_nothing(
    shop: str, db: Connection, with_session: bool
) -> None:
    attempts: list[int] = []

    async def in_session(body: bytes, session: AsyncSession, attempt_count: int) -> None:
        attempts.append(attempt_count)
        await session.execute(text("insert into sale values (1)"))

    async def in_connection(body: bytes, connection: Connection, attempt_count: int) -> None:
        attempts.append(attempt_count)
        await connection.execute("insert into sale values (1)")

    place = Shop(shop)
    consumer = Consumer("order.*", in_session if with_session else in_connection, queue="mail", retry_delays=())
    worker = Worker(broker=place.broker, consumers=[consumer], **place.options)
    await existing(place.broker, "mail", "order.*")
    async with running(worker):
        for count in (1, 2):
            await place.broker.send([message("order.placed")], timeout=TIMEOUT)
            await eventually(lambda: len(attempts) >= count and place.broker.is_idle("mail"), timeout=SOON)  # noqa: B023
            await db.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                " where pid <> pg_backend_pid() and datname = current_database() and backend_type = 'client backend'"
            )
            await db.execute("delete from sale")
    assert attempts == [1, 1]
    assert not place.broker.dead_letters("mail")


async def test_handlers_with_sessions_fill_the_prefetch_count(shop: str) -> None:
    """As many connections as handlers: none waits for another's."""
    together = asyncio.Barrier(12)
    place = Shop(shop, prefetch_count=12)

    async def handle(body: bytes, session: AsyncSession) -> None:
        await session.execute(text("select 1"))
        await together.wait()

    consumer = Consumer("order.*", handle, queue="mail")
    worker = Worker(broker=place.broker, consumers=[consumer], **place.options)
    await existing(place.broker, "mail", "order.*")
    async with running(worker):
        await place.broker.send([message("order.placed") for _ in range(12)], timeout=TIMEOUT)
        await eventually(lambda: place.broker.is_idle("mail"), timeout=SOON)
    assert not place.broker.dead_letters("mail")


async def test_the_database_is_not_back_while_a_handler_still_waits_for_a_connection(
    shop: str, db: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="outbox")
    role = f"crowded_{shop.rpartition('/')[2]}"
    await db.execute(
        f"create role {role} login password 'secret' connection limit 2; grant select on all tables in schema public to {role}"
    )
    begun: list[bytes] = []
    room = asyncio.Semaphore(0)

    async def handle(body: bytes, connection: Connection) -> None:
        begun.append(body)
        await room.acquire()

    place = Shop(urlunsplit(urlsplit(shop)._replace(netloc=f"{role}:secret@{shop.rpartition('@')[2].partition('/')[0]}")))
    consumer = Consumer("order.*", handle, queue="mail")
    worker = Worker(broker=place.broker, consumers=[consumer], reporting=False, history=False, **place.options)
    await existing(place.broker, "mail", "order.*")
    async with running(worker):
        await place.broker.send([message("order.placed") for _ in range(4)], timeout=TIMEOUT)
        await eventually(lambda: len(begun) == 2 and "lost the database" in caplog.text, timeout=SOON)
        room.release()
        await eventually(lambda: len(begun) == 3, timeout=SOON)
        was_back = "the database is back" in caplog.text
        for _ in range(3):
            room.release()
        await eventually(lambda: place.broker.is_idle("mail"), timeout=SOON)
    assert not was_back
    assert [record.message for record in caplog.records if "database" in record.message][1:] == ["the database is back"]
    await db.execute(f"drop owned by {role}; drop role {role}")
