"""docs/migrating.md is true: programs as the predecessor's documentation has them run on this library."""

import asyncio
import importlib
import logging
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aio_pika
import asyncpg
import psycopg2
import pytest
from pydantic import BaseModel
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from outbox import (
    Archiver,
    Consumer,
    MessageRelay,
    OutboxMessage,
    Publisher,
    Reject,
    Worker,
    consume,
    ensure_outbox_schema_async,
    get_tracking_ids,
    tracking,
)
from outbox.utils import ensure_outbox_table_async, ensure_outbox_table_sync
from tests.schema.predecessors import make
from tests.support import RabbitAdmin, eventually

PAGE = (Path(__file__).parent.parent / "docs" / "migrating.md").read_text()
USER = {"id": 123, "username": "johndoe"}
QUICKLY = ("100ms",)


class User(BaseModel):
    """A body with a model."""

    id: int
    username: str


# --- imports ------------------------------------------------------------------------------------------------------------


def moved() -> list[tuple[str, str]]:
    """What the page's table of imports says: what was written, and what is written now."""
    table = PAGE.partition("\n## Imports\n")[2].partition("\n## ")[0]
    return [(row[0], row[1]) for row in re.findall(r"^\| (`from .*?) \| (.*) \|$", table, re.MULTILINE)]


def statements(cell: str) -> list[str]:
    """One import for each name."""
    found = [re.fullmatch(r"from (\S+) import (.*)", code) for code in re.findall(r"`([^`]*)`", cell)]
    return [f"from {match[1]} import {name}" for match in found if match for name in match[2].split(", ")]


@pytest.mark.parametrize("statement", [each for then, now in moved() if now.startswith("work") for each in statements(then)])
def test_imports_of_which_the_page_says_so_work(statement: str) -> None:
    exec(statement, {})


@pytest.mark.parametrize(
    ("statement", "now"), [(each, now) for then, now in moved() if not now.startswith("work") for each in statements(then)]
)
def test_what_moved_is_an_import_error_that_names_the_new_place(statement: str, now: str) -> None:
    with pytest.raises(ImportError) as caught:
        exec(statement, {})
    message = str(caught.value)
    assert "no longer exists" in message
    names = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", now)))) - {"from", "import", "outbox", "ids"}
    assert any(name in message for name in names), (message, names)


def test_modules_that_are_there_say_of_other_names_what_python_says() -> None:
    for module in ("outbox.utils", "outbox.worker"):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            _ = importlib.import_module(module).nothing


# --- numbers ------------------------------------------------------------------------------------------------------------


def test_the_page_begins_with_numbers_for_eta() -> None:
    first = PAGE.partition("\n\n")[2].partition("\n\n")[0]
    assert "`eta` that is a number" in first
    assert "milliseconds" in first
    assert "seconds" in first


async def test_a_number_for_eta_is_milliseconds_and_a_small_one_is_warned_of(
    connection: asyncpg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    for eta, waits in ((60, timedelta(milliseconds=60)), (60_000, timedelta(seconds=60)), (timedelta(seconds=60), None)):
        await Publisher().publish(connection, "timer", {}, eta=eta)
        row = await connection.fetchrow("select send_after - created_at as waits from outbox_table order by id desc limit 1")
        assert row is not None
        assert abs(row["waits"] - (waits or timedelta(seconds=60))) < timedelta(seconds=5 if waits is None else 2)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING and "eta" in record.msg]
    assert [("milliseconds" in text, "timedelta(seconds=60)" in text) for text in warnings] == [(True, True)]


async def test_a_number_for_expiration_is_seconds(connection: asyncpg.Connection) -> None:
    await Publisher(expiration=3600).publish(connection, "a", {})
    await Publisher().publish(connection, "a", {}, expiration=60)
    stored = [row["expiration"] for row in await connection.fetch("select expiration from outbox_table order by id")]
    assert stored == [timedelta(hours=1), timedelta(minutes=1)]


# --- publishing ---------------------------------------------------------------------------------------------------------


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a database with the table, as the predecessor's documentation makes it."""
    await ensure_outbox_table_async(database_url)
    await asyncio.to_thread(ensure_outbox_table_sync, database_url)
    opened = await asyncpg.connect(database_url)
    await opened.execute("create table users (id int, username text)")
    yield opened
    await opened.close()


async def rows(connection: asyncpg.Connection) -> list[tuple[str, bytes]]:
    return [(row["routing_key"], row["body"]) for row in await connection.fetch("select * from outbox_table order by id")]


async def test_sessions_publish_in_their_transactions(connection: asyncpg.Connection, database_url: str) -> None:
    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://"))
    publisher = Publisher()
    insert = text("insert into users values (123, 'johndoe')")
    async with AsyncSession(engine) as session, session.begin():
        await session.execute(insert)
        await publisher.publish(session, "user.created", USER)
    async with AsyncSession(engine) as session:
        await publisher.publish(session, "user.created", User(id=1, username="ada"), eta=datetime.now() + timedelta(minutes=5))  # noqa: DTZ005  as documented
        await session.commit()
    async with AsyncSession(engine) as session, session.begin():
        await publisher.bulk_publish(
            session,
            [
                OutboxMessage(routing_key="user.created", body={"id": 1}),
                OutboxMessage(routing_key="order.placed", body=b"bytes", expiration=60),
            ],
        )
    await engine.dispose()

    def of_a_legacy_program() -> None:
        sync_engine = create_engine(database_url.replace("postgresql://", "postgresql+psycopg2://"))
        with Session(sync_engine) as session, session.begin():
            session.execute(insert)
            publisher.publish(session, "user.created", USER)
        sync_engine.dispose()

    await asyncio.to_thread(of_a_legacy_program)
    assert await rows(connection) == [
        ("user.created", b'{"id": 123, "username": "johndoe"}'),
        ("user.created", b'{"id":1,"username":"ada"}'),
        ("user.created", b'{"id": 1}'),
        ("order.placed", b"bytes"),
        ("user.created", b'{"id": 123, "username": "johndoe"}'),
    ]


async def test_plain_connections_and_cursors_publish_in_their_transactions(
    connection: asyncpg.Connection, database_url: str
) -> None:
    publisher = Publisher()
    async with connection.transaction():
        await publisher.publish(connection, "by.connection", USER)
    pool = await asyncpg.create_pool(database_url, min_size=1, max_size=1)
    async with pool.acquire() as borrowed, borrowed.transaction():
        await publisher.publish_async(borrowed, "by.pool", USER)
    await pool.close()

    def sync() -> None:
        opened = psycopg2.connect(database_url)
        with opened, opened.cursor() as cursor:
            publisher.publish_sync(opened, "by.psycopg2", USER)
            publisher.publish_sync(cursor, "by.cursor", USER)
            publisher.bulk_publish_sync(cursor, [OutboxMessage("in.bulk", USER), OutboxMessage("in.bulk", USER)])
        opened.close()

    await asyncio.to_thread(sync)
    assert [key for key, _ in await rows(connection)] == [
        "by.connection", "by.pool", "by.psycopg2", "by.cursor", "in.bulk", "in.bulk"
    ]  # fmt: skip


async def test_what_cannot_be_serialised_is_a_value_error(connection: asyncpg.Connection) -> None:
    with pytest.raises(ValueError, match=r"'user\.created'"):
        await Publisher().publish(connection, "user.created", object())


# --- relay and worker ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def running(
    database_url: str, broker_url: str, broker_admin: RabbitAdmin, consumers: Sequence[Consumer], **worker: Any
) -> AsyncIterator[None]:
    """The predecessor's two processes, in this one. All queues are bound: what is published now reaches each of them."""

    async def all_bound() -> bool:
        return {binding["destination"] for binding in await broker_admin.bindings()} >= {each.queue for each in consumers}

    relay = MessageRelay(
        db_engine_url=database_url.replace("postgresql://", "postgresql+asyncpg://"), rmq_connection_url=broker_url
    )
    handling = Worker(rmq_connection_url=broker_url, consumers=consumers, **worker)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(relay.run())
        tasks.create_task(handling.run())
        await eventually(all_bound)
        yield
        relay.stop()
        handling.stop()


@pytest.mark.rabbitmq
async def test_consumers_of_every_form_get_what_they_ask_for(
    connection: asyncpg.Connection, database_url: str, broker_url: str, broker_admin: RabbitAdmin
) -> None:
    seen: dict[str, Any] = {}

    @consume(binding_key="user.created", queue="on_user_created")
    async def on_user_created(user):  # type: ignore[no-untyped-def]
        seen["decorated"] = user

    @consume(binding_key="user.created", queue="with_model")
    async def with_model(user: User) -> None:
        seen["model"] = user

    @consume(binding_key="user.*", queue="with_arguments")
    async def with_arguments(
        routing_key: str, message: Any, tracking_ids: Sequence[str], attempt_count: int, user: Any
    ) -> None:
        seen["arguments"] = (routing_key, message.body, len(tracking_ids), attempt_count, user)

    @consume("user.created", "in_a_thread", QUICKLY)
    def in_a_thread(user: Any) -> None:
        seen["thread"] = user

    async def plain(user: Any) -> None:
        seen["plain"] = user

    consumers = [
        on_user_created,
        with_model,
        with_arguments,
        in_a_thread,
        Consumer(binding_key="user.created", queue="by_keyword", callback=plain),
    ]
    async with running(database_url, broker_url, broker_admin, consumers):
        await Publisher().publish(connection, "user.created", USER)
        await eventually(lambda: len(seen) == 5)
    body = b'{"id": 123, "username": "johndoe"}'
    assert seen == {
        "decorated": USER,
        "model": User(id=123, username="johndoe"),
        "arguments": ("user.created", body, 1, 1, USER),
        "thread": USER,
        "plain": USER,
    }
    assert await on_user_created(USER) is None  # it stays callable, for tests


@pytest.mark.rabbitmq
async def test_chains_grow_from_the_entrypoint_on(
    connection: asyncpg.Connection, database_url: str, broker_url: str, broker_admin: RabbitAdmin
) -> None:
    chains: dict[str, tuple[str, ...]] = {}

    @consume(binding_key="user.created", queue="on_user_created")
    async def on_user_created(user: Any, tracking_ids: Sequence[str]) -> None:
        chains["created"] = tuple(tracking_ids)
        assert get_tracking_ids() == tuple(tracking_ids)
        own = await asyncpg.connect(database_url)
        await Publisher().publish(own, "user.welcome_email", {"id": user["id"]})
        await own.close()

    @consume(binding_key="user.welcome_email", queue="on_user_welcome_email")
    async def on_user_welcome_email(user: Any, tracking_ids: Sequence[str]) -> None:
        del user
        chains["welcome"] = tuple(tracking_ids)

    async with running(database_url, broker_url, broker_admin, [on_user_created, on_user_welcome_email]):
        with tracking():
            await Publisher().publish(connection, "user.created", USER)
        await eventually(lambda: len(chains) == 2)
    assert len(chains["created"]) == 2
    assert chains["welcome"][:2] == chains["created"]
    assert len(chains["welcome"]) == 3


@pytest.mark.rabbitmq
async def test_what_fails_is_retried_after_its_delays_and_then_in_the_dead_letter_queue(
    connection: asyncpg.Connection, database_url: str, broker_url: str, broker_admin: RabbitAdmin
) -> None:
    attempts: dict[str, int] = {}

    def failing(name: str) -> Callable[..., Any]:
        async def handle(order: Any, attempt_count: int) -> None:
            del order
            attempts[name] = attempt_count
            raise Reject if name == "rejected" else RuntimeError

        return handle

    delays: dict[str, dict[str, Any]] = {
        "retried": {"retry_delays": ("100ms", "200ms")},
        "by_default": {},
        "never": {"retry_delays": ()},
        "rejected": {},
    }
    consumers = [
        Consumer(binding_key="order.created", queue=name, callback=failing(name), **given) for name, given in delays.items()
    ]
    async with running(database_url, broker_url, broker_admin, consumers, retry_delays=(0.1,), exchange_name="outbox"):
        await Publisher().publish(connection, "order.created", {"id": 1})

        async def all_dead() -> bool:
            return [await _depth(broker_url, f"{consumer.queue}.dlq") for consumer in consumers] == [1, 1, 1, 1]

        await eventually(all_dead)
    assert attempts == {"retried": 3, "by_default": 2, "never": 1, "rejected": 1}


async def _depth(broker_url: str, queue: str) -> int:
    async with await aio_pika.connect(broker_url) as opened, opened.channel() as channel:
        try:
            declared = await channel.declare_queue(queue, passive=True)
        except aio_pika.exceptions.ChannelNotFoundEntity:
            return 0
        return int(declared.declaration_result.message_count or 0)


# --- what was there before ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["IMMEDIATELY", "NEVER", timedelta(days=7)], ids=str)
async def test_sent_rows_that_were_kept_stay_unless_a_relay_limits_how_long(database_url: str, kept: Any) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        await make(connection, "latest")
        await connection.execute(
            "insert into outbox_table (routing_key, body, tracking_ids, send_after, sent_at) "
            "select 'old', '', '[\"x\"]', now() - n * interval '1 day', now() - n * interval '1 day' "
            "from unnest(array[1, 30]) as n"
        )
        before = await connection.fetchval("select count(*) from outbox_table where sent_at is not null")
        await ensure_outbox_schema_async(database_url)
        relay = MessageRelay(db_engine_url=database_url, broker=database_url, clean_up_after=kept)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(relay.run())
            await Publisher().publish(connection, "new", {})
            await eventually(lambda: _is_held(connection))

            async def old_are_gone() -> bool:
                return bool(await connection.fetchval("select exists (select from outbox_table where routing_key = 'old')"))

            if isinstance(kept, timedelta):
                await eventually(old_are_gone)
            relay.stop()
        after = await connection.fetchval("select count(*) from outbox_table where sent_at is not null")
        assert (after < before) == isinstance(kept, timedelta)
    finally:
        await connection.close()


async def _is_held(connection: asyncpg.Connection) -> bool:
    return bool(
        await connection.fetchval(
            "select exists (select from outbox_table where routing_key = 'new' and last_error = 'unroutable')"
        )
    )


@pytest.mark.rabbitmq
async def test_dead_letters_of_a_queue_without_a_worker_are_archived_when_it_is_named(
    database_url: str, broker_url: str
) -> None:
    await ensure_outbox_schema_async(database_url)
    async with await aio_pika.connect(broker_url) as opened, opened.channel() as channel:
        await channel.declare_queue("billing.dlq", durable=True, arguments={"x-queue-type": "quorum"})
        await channel.default_exchange.publish(
            aio_pika.Message(b'{"id": 7}', message_id="old", content_type="application/json"), "billing.dlq"
        )
    connection = await asyncpg.connect(database_url)
    archiver = Archiver(database_url, broker=broker_url, queues=["billing"])
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(archiver.run())

            async def is_archived() -> bool:
                return bool(await connection.fetchval("select exists (select from outbox_dead_letter where queue = 'billing')"))

            await eventually(is_archived)
            archiver.stop()
    finally:
        await connection.close()
    assert "--archive-queues" in PAGE


def test_the_time_zone_of_a_naive_eta_is_that_of_the_process() -> None:
    """The predecessor's example of a delay has no zone."""
    from outbox.engine.rows import rows_of

    naive = datetime(2030, 1, 31, 12)  # noqa: DTZ001  as documented
    (row,) = rows_of([OutboxMessage("a", {}, eta=naive)])
    assert row.due == naive.astimezone(UTC)
