"""Which handles are taken, which are refused and how, and what the odd ones among them need."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import psycopg2.pool
import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker
from sqlalchemy.pool import NullPool

from outbox import OutboxMessage, Publisher
from outbox.errors import ConfigurationError, TransactionRequiredError, UnsupportedHandleError
from outbox.publisher import BoundPublisher
from tests.publisher.onlooker import Onlooker
from tests.publisher.ways import Opened, Way, asyncpg_connection, done, psycopg2_connection, session

publisher = Publisher()


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)


@pytest.fixture
def engine(outbox_url: str) -> Iterator[Engine]:
    engine = create_engine(outbox_url.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


@pytest.fixture
async def async_engine(outbox_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(outbox_url.replace("postgresql://", "postgresql+asyncpg://"))
    yield engine
    await engine.dispose()


# --- sync and async ----------------------------------------------------------------------------------------------------


async def test_publish_sync_works_for_sync_handles_and_refuses_async_ones(sync_way: Way, outbox_url: str) -> None:
    async with sync_way(outbox_url) as opened:
        assert isinstance(publisher.publish_sync(opened.handle, "key", {}), str)
        assert len(publisher.bulk_publish_sync(opened.handle, [OutboxMessage("key", {})])) == 1
        with pytest.raises(UnsupportedHandleError, match="is not an async handle: call publish or publish_sync"):
            await publisher.publish_async(opened.handle, "key", {})


async def test_publish_async_works_for_async_handles_and_refuses_sync_ones(async_way: Way, outbox_url: str) -> None:
    async with async_way(outbox_url) as opened:
        assert isinstance(await publisher.publish_async(opened.handle, "key", {}), str)
        assert len(await publisher.bulk_publish_async(opened.handle, [OutboxMessage("key", {})])) == 1
        with pytest.raises(UnsupportedHandleError, match="is an async handle: await publish or publish_async"):
            publisher.publish_sync(opened.handle, "key", {})


async def test_an_async_publish_that_is_not_awaited_warns(outbox_url: str) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        with pytest.warns(RuntimeWarning, match=r"Publisher\.publish_async' was never awaited"):
            publisher.publish(opened.handle, "key", {})


async def test_a_sync_session_inside_run_sync_publishes(async_engine: AsyncEngine, onlooker: Onlooker) -> None:
    def place_order(session: Session) -> None:
        publisher.publish(session, "order.placed", {})

    async with AsyncSession(async_engine) as session, session.begin():
        await session.run_sync(place_order)

    assert len(await onlooker.rows()) == 1


async def test_a_bound_publisher_needs_no_handle(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    async with way(outbox_url) as opened:
        bound = BoundPublisher(Publisher(expiration=60), opened.handle)
        first = await done(bound.publish("order.placed", {"id": 1}, headers={"a": "b"}))
        others = await done(bound.bulk_publish([OutboxMessage("order.paid", {}), OutboxMessage("order.packed", {})]))
        await done(opened.commit())

    assert await onlooker.ids() == [first, *others]
    assert (await onlooker.rows())[0]["headers"] == {"a": "b"}


# --- no transaction ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def bare_asyncpg_connection(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


@asynccontextmanager
async def autocommit_session(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"), isolation_level="AUTOCOMMIT")
    async with AsyncSession(engine) as session:
        yield session
    await engine.dispose()


def autocommit_connection(driver: str) -> Callable[[str], Any]:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Any]:
        engine = create_engine(url.replace("postgresql://", f"postgresql+{driver}://"))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            yield connection
        engine.dispose()

    return opened


@asynccontextmanager
async def psycopg2_autocommit(url: str) -> AsyncIterator[Any]:
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        yield connection


@asynccontextmanager
async def psycopg_autocommit(url: str) -> AsyncIterator[Any]:
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        yield connection.cursor()


@asynccontextmanager
async def psycopg_async_autocommit(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture(
    params=[
        bare_asyncpg_connection,
        autocommit_session,
        autocommit_connection("psycopg"),
        autocommit_connection("psycopg2"),
        psycopg2_autocommit,
        psycopg_autocommit,
        psycopg_async_autocommit,
    ]
)
async def handle_without_transaction(request: pytest.FixtureRequest, outbox_url: str) -> AsyncIterator[Any]:
    async with request.param(outbox_url) as handle:
        yield handle


async def test_without_a_transaction_it_publishes_with_one_warning(
    handle_without_transaction: Any, onlooker: Onlooker, caplog: pytest.LogCaptureFixture
) -> None:
    message_id = await done(publisher.publish(handle_without_transaction, "order.placed", {"secret": 1}))

    assert await onlooker.ids() == [message_id]
    (record,) = [record for record in caplog.records if record.name == "outbox"]
    assert record.levelno == logging.WARNING
    assert str(message_id) in record.getMessage()
    assert "order.placed" in record.getMessage()
    assert "secret" not in record.getMessage()


async def test_a_bulk_without_a_transaction_warns_once(
    handle_without_transaction: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await done(publisher.bulk_publish(handle_without_transaction, [OutboxMessage("key", {})] * 3))

    (record,) = [record for record in caplog.records if record.name == "outbox"]
    assert "3 messages" in record.getMessage()


async def test_a_publisher_that_insists_on_a_transaction_writes_nothing_without(
    handle_without_transaction: Any, onlooker: Onlooker
) -> None:
    strict = Publisher(require_transaction=True)
    with pytest.raises(TransactionRequiredError, match="no open transaction"):
        await done(strict.publish(handle_without_transaction, "order.placed", {}))
    with pytest.raises(TransactionRequiredError):
        await done(strict.bulk_publish(handle_without_transaction, [OutboxMessage("order.placed", {})]))

    assert await onlooker.rows() == []


async def test_with_a_transaction_there_is_neither_a_warning_nor_an_error(
    way: Way, outbox_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with way(outbox_url) as opened:
        await done(Publisher(require_transaction=True).publish(opened.handle, "key", {}))
        await done(publisher.publish(opened.handle, "key", {}))

    assert [record for record in caplog.records if record.name == "outbox"] == []


async def test_a_transaction_begun_by_hand_counts_in_autocommit_mode(outbox_url: str, onlooker: Onlooker) -> None:
    strict = Publisher(require_transaction=True)
    async with bare_asyncpg_connection(outbox_url) as connection:
        await connection.execute("begin")
        await strict.publish(connection, "key", {})
        await connection.execute("rollback")
    async with psycopg2_autocommit(outbox_url) as connection:
        connection.cursor().execute("begin")
        strict.publish(connection, "key", {})
        connection.cursor().execute("rollback")
        with suppress(ZeroDivisionError), connection:  # which begins with the first statement
            strict.publish(connection, "key", {})
            raise ZeroDivisionError
    async with psycopg_autocommit(outbox_url) as cursor:
        with cursor.connection.transaction(force_rollback=True):
            strict.publish(cursor, "key", {})

    assert await onlooker.rows() == []


# --- what is refused ---------------------------------------------------------------------------------------------------


async def test_anything_else_is_refused_with_a_list_of_what_is_accepted() -> None:
    for handle in (None, "postgresql://localhost/db", object(), {}):
        with pytest.raises(UnsupportedHandleError, match=r"AsyncSession.*Session.*Connection.*asyncpg.*psycopg2") as refusal:
            publisher.publish(handle, "key", {})  # type: ignore[call-overload]
        assert isinstance(refusal.value, TypeError)


async def test_swapped_arguments_are_named_for_what_they_are(outbox_url: str) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        with pytest.raises(UnsupportedHandleError, match="cannot publish through str"):
            publisher.publish("order.placed", opened.handle, {})  # type: ignore[call-overload]


async def test_what_makes_handles_is_refused_with_advice(outbox_url: str, engine: Engine, async_engine: AsyncEngine) -> None:
    pool = asyncpg.create_pool(outbox_url, min_size=0)
    old_pool = psycopg2.pool.ThreadedConnectionPool(0, 1, outbox_url)

    async def forgotten() -> None: ...

    coroutine = forgotten()
    for handle, advice in (
        (engine, r"Open a transaction: with engine\.begin\(\) as connection"),
        (async_engine, r"Open a transaction: async with engine\.begin\(\) as connection"),
        (sessionmaker(engine), r"with sessionmaker\.begin\(\) as session"),
        (async_sessionmaker(async_engine), r"async with sessionmaker\.begin\(\) as session"),
        (pool, r"async with pool\.acquire\(\) as connection"),
        (old_pool, r"pool\.getconn\(\)"),
        (coroutine, "Await it first"),
    ):
        with pytest.raises(UnsupportedHandleError, match=advice):
            publisher.publish(handle, "key", {})  # type: ignore[arg-type]
    coroutine.close()
    old_pool.closeall()


def test_a_session_on_another_database_is_refused_by_name(caplog: pytest.LogCaptureFixture) -> None:
    engine = create_engine("sqlite://")
    with Session(engine) as session, pytest.raises(UnsupportedHandleError, match=r"bound to sqlite\+pysqlite"):
        publisher.publish(session, "key", {})
    engine.dispose()
    assert caplog.records == []


def test_a_psycopg2_connection_in_asynchronous_mode_is_refused(outbox_url: str) -> None:
    connection = psycopg2.connect(outbox_url, async_=True)
    psycopg2.extras.wait_select(connection)
    with pytest.raises(UnsupportedHandleError, match="asynchronous mode"):
        publisher.publish(connection, "key", {})
    connection.close()


async def test_a_routing_key_that_no_table_can_hold_is_refused_before_writing(
    way: Way, outbox_url: str, onlooker: Onlooker
) -> None:
    bad_keys: tuple[Any, ...] = (None, 7, b"bytes", "nul\0inside", "half a pair \ud800")
    async with way(outbox_url) as opened:
        for routing_key in bad_keys:
            with pytest.raises(ConfigurationError, match="routing key"):
                await done(publisher.publish(opened.handle, routing_key, {}))
        message_id = await done(publisher.publish(opened.handle, "good", {}))
        await done(opened.commit())

    assert await onlooker.ids() == [message_id]


# --- SQLAlchemy --------------------------------------------------------------------------------------------------------


async def test_a_session_that_routes_by_statement_is_asked_where_it_would_insert(
    engine: Engine, database_url: str, onlooker: Onlooker
) -> None:
    read_only = create_engine(database_url.replace("postgresql://", "postgresql+psycopg2://"))

    class RoutingSession(Session):
        def get_bind(self, mapper: Any = None, *, clause: Any = None, **_: Any) -> Engine:
            return engine if self._flushing or getattr(clause, "is_dml", False) else read_only

    with RoutingSession() as session, session.begin():
        publisher.publish(session, "order.placed", {})
    read_only.dispose()

    assert len(await onlooker.rows()) == 1


async def test_a_session_with_several_binds_and_none_for_the_outbox_says_what_to_hand_over(
    engine: Engine, onlooker: Onlooker
) -> None:
    Base.metadata.create_all(engine)
    with Session(binds={Order: engine}) as session:
        with pytest.raises(ConfigurationError, match=r"session\.connection\(bind_arguments="):
            publisher.publish(session, "order.placed", {})
        session.add(Order(id=1))
        publisher.publish(session.connection(bind_arguments={"mapper": Order}), "order.placed", {})
        session.commit()

    assert await onlooker.connection.fetchval("select o.xmin = m.xmin from orders o, outbox_table m")


async def test_a_session_without_an_engine_says_so() -> None:
    for unbound in (Session(), AsyncSession()):
        with pytest.raises(ConfigurationError, match="the session has no bind for outbox_table: bind it to an engine"):
            await done(publisher.publish(unbound, "order.placed", {}))


def test_a_session_that_must_be_begun_by_hand_is_not_begun_for_it(engine: Engine) -> None:
    with Session(engine, autobegin=False) as session:
        with pytest.raises(Exception, match=r"Autobegin is disabled"):
            publisher.publish(session, "key", {})
        with session.begin():
            assert publisher.publish(session, "key", {})


async def test_statement_parameters_are_hidden_where_the_engine_hides_them(outbox_url: str, onlooker: Onlooker) -> None:
    engine = create_engine(outbox_url.replace("postgresql://", "postgresql+psycopg://"), hide_parameters=True)
    await onlooker.connection.execute("alter table outbox_table add constraint never check (routing_key <> 'never')")
    with Session(engine) as session, pytest.raises(Exception, match="never") as failure:
        publisher.publish(session, "never", {"card": "4111"})
    await onlooker.connection.execute("alter table outbox_table drop constraint never")
    engine.dispose()
    assert "4111" not in str(failure.value)


# --- drivers -----------------------------------------------------------------------------------------------------------


async def test_publishing_leaves_the_rows_alone_that_a_cursor_has_left_to_fetch(outbox_url: str, onlooker: Onlooker) -> None:
    with closing(psycopg.connect(outbox_url)) as connection, connection.cursor() as cursor:
        for (number,) in cursor.execute("select generate_series(1, 3)"):
            publisher.publish(cursor, "key", {"number": number})
        connection.commit()
    with closing(psycopg2.connect(outbox_url)) as old_connection, old_connection.cursor() as old_cursor:
        old_cursor.execute("select generate_series(4, 6)")
        for (number,) in old_cursor:
            publisher.publish(old_cursor, "key", {"number": number})
        old_connection.commit()

    assert [row["body"] for row in await onlooker.rows()] == [b'{"number": %d}' % number for number in range(1, 7)]


async def test_a_named_cursor_stands_for_its_connection(outbox_url: str, onlooker: Onlooker) -> None:
    with closing(psycopg.connect(outbox_url)) as connection, connection.cursor(name="reading") as cursor:
        publisher.publish(cursor, "key", {})
        connection.commit()
    with closing(psycopg2.connect(outbox_url)) as old_connection, old_connection.cursor(name="reading") as old_cursor:
        publisher.publish(old_cursor, "key", {})
        old_connection.commit()

    assert len(await onlooker.rows()) == 2


async def test_cursors_of_other_kinds_do(outbox_url: str, onlooker: Onlooker) -> None:
    with closing(psycopg2.connect(outbox_url, cursor_factory=psycopg2.extras.RealDictCursor)) as connection:
        publisher.publish(connection, "key", {})
        connection.commit()
    with closing(psycopg.connect(outbox_url, row_factory=psycopg.rows.dict_row)) as dict_connection:
        publisher.publish(dict_connection, "key", {})
        dict_connection.commit()

    assert len(await onlooker.rows()) == 2


@pytest.mark.parametrize("autocommit", [False, True])
async def test_publishing_in_a_pipeline_waits_for_nothing(autocommit: bool, outbox_url: str, onlooker: Onlooker) -> None:
    strict = Publisher(require_transaction=True)
    async with (
        await psycopg.AsyncConnection.connect(outbox_url, autocommit=autocommit) as connection,
        connection.pipeline(),
        connection.transaction(),
    ):
        ids = [await strict.publish(connection, "key", {"number": number}) for number in range(20)]

    assert await onlooker.ids() == ids


async def test_a_pipeline_learns_whether_a_message_was_pending(outbox_url: str, onlooker: Onlooker) -> None:
    async with (
        await psycopg.AsyncConnection.connect(outbox_url) as connection,
        connection.pipeline(),
        connection.transaction(),
    ):
        first = await publisher.publish(connection, "key", {}, dedup_key="once")
        assert await publisher.publish(connection, "key", {}, dedup_key="once") is None
        assert await publisher.cancel(connection, "once")
        assert not await publisher.cancel(connection, "once")
    with psycopg.connect(outbox_url) as sync_connection, sync_connection.pipeline():
        second = publisher.publish(sync_connection, "key", {}, dedup_key="once")
        assert publisher.publish(sync_connection, "key", {}, dedup_key="once") is None

    assert first is not None
    assert await onlooker.ids() == [second]


@pytest.mark.parametrize("prepare_threshold", [0, 5, None])
async def test_publishing_again_and_again_works_prepared_and_unprepared(
    prepare_threshold: int | None, outbox_url: str, onlooker: Onlooker
) -> None:
    with closing(psycopg.connect(outbox_url, prepare_threshold=prepare_threshold)) as connection:
        for number in range(20):
            publisher.publish(connection, "key", {}, headers={"number": number} if number % 3 else None)
        connection.commit()

    assert len(await onlooker.rows()) == 20


async def test_a_connection_without_statement_cache_publishes(outbox_url: str, onlooker: Onlooker) -> None:
    connection = await asyncpg.connect(outbox_url, statement_cache_size=0)
    async with connection.transaction():
        for _ in range(3):
            await publisher.publish(connection, "key", {})
    await connection.close()

    assert len(await onlooker.rows()) == 3


async def test_a_connection_given_back_to_its_pool_publishes_no_more(outbox_url: str) -> None:
    async with asyncpg.create_pool(outbox_url, min_size=0, max_size=1) as pool:
        async with pool.acquire() as connection:
            pass
        with pytest.raises(asyncpg.InterfaceError, match="released"):
            await publisher.publish(connection, "key", {})


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
async def test_engines_without_a_pool_publish(driver: str, outbox_url: str, onlooker: Onlooker) -> None:
    engine = create_engine(outbox_url.replace("postgresql://", f"postgresql+{driver}://"), poolclass=NullPool)
    with Session(engine) as session:
        publisher.publish(session, "key", {})
        session.commit()

    assert len(await onlooker.rows()) == 1


async def test_a_role_that_may_only_insert_publishes(outbox_url: str, onlooker: Onlooker) -> None:
    connection = onlooker.connection
    await connection.execute("create role producer; grant insert on outbox_table to producer")
    opened: Opened
    for way in (asyncpg_connection, psycopg2_connection, session("psycopg")):
        async with way(outbox_url) as opened:
            await done(opened.execute("set role producer"))
            await done(publisher.publish(opened.handle, "key", {}))
            await done(opened.commit())
    await connection.execute("drop owned by producer; drop role producer")

    assert len(await onlooker.rows()) == 3
