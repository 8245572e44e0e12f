"""Large bodies from a publisher through a store to handlers, which see them as if they had been in the message."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from outbox import Archiver, Consumer, DeadLetters, Maintenance, MessageRelay, OutboxMessage, Publisher, Worker, consume
from outbox.core.codec import decode_stored
from outbox.dead_letters import DeadLetter, Edit
from outbox.encryption import Encryption, StaticKeys
from outbox.errors import BodyStoreUnavailableError, ConfigurationError
from outbox.large_bodies import FileStore, LargeBodies
from outbox.maintenance import sweep_large_bodies
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import open_pool
from tests.dead_letters.failed_messages import TABLE, dead
from tests.dead_letters.repairs import DONE, at_once
from tests.large_bodies.stores import MemoryStore
from tests.support import eventually

ENCRYPTION = Encryption(StaticKeys({"2026-11": os.urandom(32)}, current="2026-11"))
QUEUE = "reports"
TEXT = "x" * 2_000
DAY = timedelta(days=1)


@pytest.fixture
def store() -> MemoryStore:
    """An empty store."""
    return MemoryStore()


@pytest.fixture
def bodies(store: MemoryStore) -> LargeBodies:
    """Stores bodies of more than 1,000 bytes."""
    return LargeBodies(store, above=1_000)


@asynccontextmanager
async def running(database: str, *consumers: Consumer, broker: str = "", **options: Any) -> AsyncIterator[None]:
    """Runs a worker with these options, a relay without a store, and with RabbitMQ an archiver without one."""
    parts: list[Any] = [
        Worker(broker=broker or database, db_engine_url=database, consumers=consumers, enable_metrics=False, **options),
        MessageRelay(db_engine_url=database, broker=broker or database, enable_metrics=False),
    ]
    if broker:
        parts.append(Archiver(database, broker=broker, queues=[QUEUE], enable_metrics=False))
    tasks = [asyncio.create_task(part.run(handle_signals=False)) for part in parts]
    try:
        yield
    finally:
        for part in parts:
            part.stop()
        await asyncio.gather(*tasks)


async def open_letter(dead_letters: DeadLetters) -> DeadLetter:
    async def look() -> DeadLetter:
        found = [letter for letter in await dead_letters.list() if letter.status == "open"]
        assert len(found) == 1
        return found[0]

    found: DeadLetter = await eventually(look)
    return found


@pytest.mark.parametrize("broker", ["", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
async def test_a_body_stays_in_the_store_through_retries_and_a_requeue_encrypted_if_the_others_are(
    request: pytest.FixtureRequest, database: str, connection: asyncpg.Connection, tmp_path: Path, broker: str
) -> None:
    bodies = LargeBodies(FileStore(tmp_path), above=1_000)
    publisher = Publisher(encryption=ENCRYPTION, large_bodies=bodies)
    seen: list[tuple[str, int]] = []
    fails = True

    @consume("report.*", QUEUE, ("0s",))
    async def handle(body: dict[str, str], attempt_count: int) -> None:
        seen.append((body["text"], attempt_count))
        if fails and body["text"] == TEXT:
            raise ValueError("not yet")

    url = request.getfixturevalue("broker_url") if broker else ""
    async with (
        running(database, handle, broker=url, encryption=ENCRYPTION, large_bodies=bodies),
        DeadLetters(database, broker=url or database) as dead_letters,
    ):
        async with connection.transaction():
            await publisher.publish(connection, "report.made", {"text": "small"})
            await publisher.publish(connection, "report.made", {"text": TEXT}, headers={"tenant": "a"})
            [row] = await connection.fetch("select body, headers ->> 'tenant' as tenant from outbox_table where id = 2")
            assert (row["body"], row["tenant"]) == (b"", "a")
        letter = await open_letter(dead_letters)
        assert sorted(seen) == [("small", 1), (TEXT, 1), (TEXT, 2)]
        assert letter.preview == "<encrypted stored JSON, 2 kB>"
        found = await dead_letters.get(letter.id)
        assert found is not None
        assert (found.body, found.headers["tenant"]) == (b"", "a")
        [path] = [each for each in tmp_path.rglob("*") if each.is_file()]
        assert TEXT.encode() not in path.read_bytes()
        fails = False
        assert at_once(await dead_letters.requeue(letter.id)) == {letter.id: DONE}
        await eventually(lambda: seen[3:] == [(TEXT, 1)])


@pytest.mark.parametrize("batch", [False, True])
async def test_every_publisher_stores_and_batch_and_sync_handlers_read(
    database: str, store: MemoryStore, bodies: LargeBodies, batch: bool
) -> None:
    publisher = Publisher(large_bodies=bodies)
    with psycopg.connect(database) as plain:
        publisher.publish(plain, "report.made", b"1" * 1_001)
        publisher.bulk_publish(plain, [OutboxMessage("report.made", str(number).encode() * 2_000) for number in (2, 3)])
    engine = create_engine(database.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session, session.begin():  # a loop runs in this thread meanwhile
        publisher.publish(session, "report.made", b"4" * 1_000)
        publisher.publish(session, "report.made", b"5" * 3_000)
    engine.dispose()
    assert sorted(len(content) for content, _ in store.objects.values()) == [1_001, 2_000, 2_000, 3_000]
    seen: list[bytes] = []

    def handle(body: bytes) -> None:
        seen.append(body)

    def handle_all(found: list[bytes]) -> None:
        seen.extend(found)

    consumer = consume("report.*", QUEUE, batch=batch)(handle_all if batch else handle)
    async with running(database, consumer, large_bodies=bodies):
        await eventually(lambda: len(seen) == 5)
    assert sorted((body[:1], len(body)) for body in seen) == [
        (b"1", 1_001), (b"2", 2_000), (b"3", 2_000), (b"4", 1_000), (b"5", 3_000)
    ]  # fmt: skip


async def test_a_message_that_is_refused_leaves_nothing_in_the_store(
    connection: asyncpg.Connection, store: MemoryStore, bodies: LargeBodies
) -> None:
    publisher = Publisher(large_bodies=bodies)
    large = OutboxMessage("report.made", b"1" * 2_000)
    async with connection.transaction():
        with pytest.raises(ConfigurationError, match="a destination has up to 30"):
            await publisher.bulk_publish(connection, [large, replace(large, destination="Kafka")])
    assert store.objects == {}


async def test_while_the_store_is_away_publishing_fails_and_writes_nothing(
    connection: asyncpg.Connection, database: str, store: MemoryStore, bodies: LargeBodies
) -> None:
    publisher = Publisher(large_bodies=bodies)
    store.away = 2
    async with connection.transaction():
        with pytest.raises(BodyStoreUnavailableError):
            await publisher.publish(connection, "report.made", TEXT)
        await publisher.publish(connection, "report.made", "small")
    with psycopg.connect(database) as plain, pytest.raises(BodyStoreUnavailableError):
        publisher.publish(plain, "report.made", TEXT)
    assert await connection.fetchval("select count(*) from outbox_table") == 1


@pytest.mark.parametrize("batch", [False, True])
async def test_a_message_spends_no_attempt_while_the_store_is_away(
    connection: asyncpg.Connection, database: str, store: MemoryStore, bodies: LargeBodies, batch: bool
) -> None:
    seen: list[Any] = []

    @consume("report.*", QUEUE, ())
    async def handle(body: str, attempt_count: int) -> None:
        seen.append((body, attempt_count))

    @consume("report.*", QUEUE, (), batch=True)
    async def handle_all(found: list[str]) -> None:
        seen.extend((body, 1) for body in found)

    async with connection.transaction():
        await Publisher(large_bodies=bodies).publish(connection, "report.made", TEXT)
    store.away = 3
    async with running(database, handle_all if batch else handle, large_bodies=bodies):
        await eventually(lambda: seen == [(TEXT, 1)])
    assert store.away == 0
    assert await connection.fetchval("select count(*) from outbox_dead_letter") == 0


async def test_a_worker_that_stops_while_the_store_is_away_returns_the_message(
    connection: asyncpg.Connection, database: str, store: MemoryStore, bodies: LargeBodies
) -> None:
    @consume("report.*", QUEUE, ())
    async def handle(body: str) -> None:
        raise AssertionError("there is no body to handle")

    async with connection.transaction():
        await Publisher(large_bodies=bodies).publish(connection, "report.made", TEXT)
    store.away = always = 1_000_000
    async with running(database, handle, large_bodies=bodies):
        await eventually(lambda: store.away < always)
    [delivery] = await connection.fetch("select attempt, lease_token from outbox_delivery")
    assert (delivery["attempt"], delivery["lease_token"]) == (1, None)


async def test_a_body_that_is_gone_is_a_dead_letter_at_once_and_handled_after_it_was_restored(
    connection: asyncpg.Connection, database: str, store: MemoryStore, bodies: LargeBodies
) -> None:
    seen: list[Any] = []

    @consume("report.*", QUEUE, ("0s",) * 5)
    async def handle(body: str) -> None:
        seen.append(body)

    async with connection.transaction():
        await Publisher(large_bodies=bodies).publish(connection, "report.made", TEXT)
    saved, store.objects = store.objects, {}
    async with running(database, handle, large_bodies=bodies), DeadLetters(database) as dead_letters:
        letter = await open_letter(dead_letters)
        assert (letter.exception_type, letter.cause, letter.attempt) == ("outbox.errors.StoredBodyError", "undecodable", 1)
        store.objects = saved
        assert at_once(await dead_letters.requeue(letter.id)) == {letter.id: DONE}
        await eventually(lambda: seen == [TEXT])


class FailingStore(MemoryStore):
    """A store of the application that raises an error of its own once."""

    calls = 0

    async def get(self, name: str) -> bytes:
        self.calls += 1
        if self.calls == 1:
            raise ValueError("no JSON")
        return await super().get(name)


async def test_another_error_of_a_store_is_a_failed_attempt(database: str, connection: asyncpg.Connection) -> None:
    bodies = LargeBodies(FailingStore(), above=1_000)
    seen: list[Any] = []

    @consume("report.made", QUEUE, ("0s",))
    async def handle(report: object) -> None:
        seen.append(report)

    async with connection.transaction():
        await Publisher(large_bodies=bodies).publish(connection, "report.made", TEXT)
    async with running(database, handle, large_bodies=bodies):
        await eventually(lambda: seen == [TEXT])
    assert await connection.fetchval("select count(*) from outbox_dead_letter") == 0


async def test_a_worker_without_a_store_retries_and_never_sees_an_empty_body(
    connection: asyncpg.Connection, database: str, bodies: LargeBodies
) -> None:
    seen: list[Any] = []

    @consume("report.*", QUEUE, ("0s",))
    async def handle(body: bytes) -> None:
        seen.append(body)

    async with connection.transaction():
        await Publisher(large_bodies=bodies).publish(connection, "report.made", TEXT)
    async with running(database, handle), DeadLetters(database) as dead_letters:
        letter = await open_letter(dead_letters)
    assert (letter.exception_type, letter.attempt) == ("outbox.errors.BodyStoreUnavailableError", 2)
    assert seen == []


async def test_an_edit_stores_a_new_body_and_the_old_one_stays_for_its_edition(
    connection: asyncpg.Connection, database: str, store: MemoryStore, bodies: LargeBodies
) -> None:
    seen: list[Any] = []

    @consume("report.*", QUEUE, ())
    async def handle(body: str) -> None:
        seen.append(body)
        if body == TEXT:
            raise ValueError("too many x")

    async with connection.transaction():
        await Publisher(large_bodies=bodies, encryption=ENCRYPTION).publish(connection, "report.made", TEXT)
    async with running(database, handle, large_bodies=bodies, encryption=ENCRYPTION):
        async with DeadLetters(database) as without:
            letter = await open_letter(without)
            edit = Edit(version=letter.version, body="y" * 2_000)
            [item] = at_once_items(await without.requeue(letter.id, edit=edit))
            assert (item.outcome, "the body is encrypted, and this process has no keys" in item.reason) == ("refused", True)
        async with DeadLetters(database, encryption=ENCRYPTION) as keys_only:
            [item] = at_once_items(await keys_only.requeue(letter.id, edit=edit))
            assert (item.outcome, "in a store of large bodies" in item.reason) == ("refused", True)
        async with DeadLetters(database, large_bodies=bodies, encryption=ENCRYPTION) as dead_letters:
            assert at_once(await dead_letters.requeue(letter.id, edit=edit)) == {letter.id: DONE}
        await eventually(lambda: seen == [TEXT, "y" * 2_000])
    assert len(store.objects) == 2
    store.age(2 * DAY)
    await sweep_large_bodies(bodies, database)
    assert not [name for name in store.objects if name.endswith(".unreferenced")]


def at_once_items(result: Any) -> Any:
    return result.items


async def test_a_sweep_keeps_what_any_table_refers_to_and_maintenance_sweeps(
    connection: asyncpg.Connection, database: str, store: MemoryStore
) -> None:
    bodies = LargeBodies(store, above=10, retention=DAY)
    publisher = Publisher(large_bodies=bodies)
    rolled_back = connection.transaction()
    await rolled_back.start()
    await publisher.publish(connection, "report.made", TEXT)
    await rolled_back.rollback()
    async with connection.transaction():
        await publisher.publish(connection, "report.made", TEXT)
    delivery, letter = await bodies.put(b"in a queue"), await bodies.put(b"dead")
    await connection.execute(
        """
        insert into outbox_delivery (queue, exchange, message_id, routing_key, body, headers, tracking_ids)
        select 'reports', 'outbox', 'm', routing_key, body, jsonb_build_object('x-body-store', $1::text), tracking_ids
        from outbox_table
        """,
        delivery,
    )
    pool = await open_pool(database, size=1, application_name="tests")
    await PostgresArchive(pool, TABLE).record([replace(dead("m1", b""), headers={"x-body-store": letter})])
    await pool.close()
    with pytest.raises(ConfigurationError, match="give all databases"):
        await sweep_large_bodies(bodies)
    store.age(2 * DAY)
    assert await sweep_large_bodies(bodies, database) == 0
    store.age(2 * DAY)
    maintenance = Maintenance(database, large_bodies=bodies, enable_metrics=False)
    task = asyncio.create_task(maintenance.run(handle_signals=False))
    await eventually(lambda: len(store.objects) == 3)
    maintenance.stop()
    await task
    row = await connection.fetchval("select headers ->> 'x-body-store' from outbox_table")
    assert sorted(store.objects) == sorted(stored.key for each in (row, delivery, letter) if (stored := decode_stored(each)))
