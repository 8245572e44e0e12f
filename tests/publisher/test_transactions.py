"""An event is committed or rolled back with its transaction, through every kind of handle."""

import asyncio

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError, PendingRollbackError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from outbox import OutboxMessage, Publisher
from outbox.errors import EncodingError
from tests.publisher.onlooker import Onlooker
from tests.publisher.ways import Way, done

publisher = Publisher()


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)


async def test_an_event_published_as_the_first_statement_is_there_after_commit(
    way: Way, outbox_url: str, onlooker: Onlooker
) -> None:
    async with way(outbox_url) as opened:
        message_id = await done(publisher.publish(opened.handle, "order.placed", {"id": 1}))
        assert await onlooker.rows() == []
        await done(opened.commit())

    row = await onlooker.row()
    assert row["tracking_ids"] == [message_id]
    assert row["routing_key"] == "order.placed"
    assert row["body"] == b'{"id": 1}'
    assert row["content_type"] == "application/json"
    assert row["headers"] is None
    assert row["expiration"] is None
    assert row["send_after"] == row["created_at"]


async def test_an_event_published_as_the_first_statement_and_rolled_back_leaves_nothing_and_wakes_no_sleeper(
    way: Way, outbox_url: str, onlooker: Onlooker
) -> None:
    async with way(outbox_url) as opened, onlooker.asleep() as rings:
        await done(publisher.publish(opened.handle, "order.placed", {"id": 1}))
        await done(publisher.bulk_publish(opened.handle, [OutboxMessage("order.placed", {"id": 2})]))
        await done(opened.rollback())
        assert await onlooker.rows() == []

        # Notifications come in the order of commits: what comes first was not preceded by another.
        await onlooker.ring_by_hand("first")
        assert await asyncio.wait_for(rings.get(), 30) == "first"


async def test_a_committed_event_wakes_a_sleeper(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    async with way(outbox_url) as opened, onlooker.asleep() as rings:
        await done(publisher.publish(opened.handle, "order.placed", {"id": 1}))
        await done(opened.commit())
        assert await asyncio.wait_for(rings.get(), 30) == ""


async def test_closing_a_handle_without_commit_leaves_nothing(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    async with way(outbox_url) as opened:
        await done(publisher.publish(opened.handle, "order.placed", {"id": 1}))

    assert await onlooker.rows() == []


async def test_a_savepoint_rolled_back_takes_its_own_events_only(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    async with way(outbox_url) as opened:
        kept = await done(publisher.publish(opened.handle, "order.placed", {"id": 1}))
        await done(opened.execute("savepoint attempt"))
        await done(publisher.publish(opened.handle, "order.paid", {"id": 1}))
        await done(opened.execute("rollback to savepoint attempt"))
        also_kept = await done(publisher.publish(opened.handle, "order.refused", {"id": 1}))
        await done(opened.commit())

    assert await onlooker.ids() == [kept, also_kept]


async def test_a_commit_that_fails_leaves_no_event(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    await onlooker.connection.execute("create table orders (id int unique deferrable initially deferred)")
    async with way(outbox_url) as opened:
        await done(publisher.publish(opened.handle, "order.placed", {"id": 1}))
        await done(opened.execute("insert into orders values (1), (1)"))
        with pytest.raises(Exception, match="duplicate key value violates unique constraint"):
            await done(opened.commit())

    assert await onlooker.rows() == []
    assert await onlooker.connection.fetch("select * from orders") == []


async def test_a_body_that_cannot_be_serialised_leaves_the_transaction_usable(
    way: Way, outbox_url: str, onlooker: Onlooker
) -> None:
    messages = [OutboxMessage("order.placed", {}), OutboxMessage("order.paid", {1, 2})]
    async with way(outbox_url) as opened:
        with pytest.raises(EncodingError, match=r"order\.placed"):
            await done(publisher.publish(opened.handle, "order.placed", object()))
        with pytest.raises(EncodingError, match=r"order\.paid"):
            await done(publisher.bulk_publish(opened.handle, messages))
        message_id = await done(publisher.publish(opened.handle, "order.placed", {"id": 1}))
        await done(opened.commit())

    assert await onlooker.ids() == [message_id]


async def test_business_rows_and_events_are_committed_together(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    await onlooker.connection.execute("create table orders (id int)")
    async with way(outbox_url) as opened:
        await done(opened.execute("insert into orders values (7)"))
        await done(publisher.publish(opened.handle, "order.placed", {"id": 7}))
        await done(opened.commit())

    assert await onlooker.connection.fetchval("select o.xmin = m.xmin from orders o, outbox_table m")


async def test_begin_nested_of_an_async_session_takes_its_events_along(outbox_url: str, onlooker: Onlooker) -> None:
    engine = create_async_engine(outbox_url.replace("postgresql://", "postgresql+asyncpg://"))
    async with AsyncSession(engine) as session, session.begin():
        async with session.begin_nested() as attempt:
            await publisher.publish(session, "order.paid", {"id": 1})
            await attempt.rollback()
        kept = await publisher.publish(session, "order.refused", {"id": 1})
    await engine.dispose()

    assert await onlooker.ids() == [kept]


async def test_an_event_of_a_failed_flush_is_gone_with_it(outbox_url: str, onlooker: Onlooker) -> None:
    engine = create_engine(outbox_url.replace("postgresql://", "postgresql+psycopg2://"))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        publisher.publish(session, "order.placed", {"id": 1})
        session.execute(text("insert into orders values (1)"))
        session.add(Order(id=1))
        with pytest.raises(IntegrityError):
            session.flush()
        with pytest.raises(PendingRollbackError):
            publisher.publish(session, "order.refused", {"id": 1})
        session.rollback()
        kept = publisher.publish(session, "order.refused", {"id": 1})
        session.commit()
    engine.dispose()

    assert await onlooker.ids() == [kept]


async def test_publishing_does_not_flush_the_session(outbox_url: str, onlooker: Onlooker) -> None:
    engine = create_engine(outbox_url.replace("postgresql://", "postgresql+psycopg://"))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        order = Order(id=1)
        session.add(order)
        publisher.publish(session, "order.placed", {"id": 1})
        assert order in session.new
        session.commit()
    engine.dispose()

    assert len(await onlooker.rows()) == 1


async def test_a_session_joined_into_a_connection_s_transaction_publishes_in_that(outbox_url: str, onlooker: Onlooker) -> None:
    engine = create_engine(outbox_url.replace("postgresql://", "postgresql+psycopg2://"))
    with engine.connect() as connection:
        transaction = connection.begin()
        with Session(connection, join_transaction_mode="create_savepoint") as session:
            publisher.publish(session, "order.placed", {"id": 1})
            session.commit()
        assert connection.execute(text("select count(*) from outbox_table")).scalar() == 1
        transaction.rollback()
    engine.dispose()

    assert await onlooker.rows() == []
