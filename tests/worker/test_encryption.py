"""Encrypted bodies from a publisher through brokers, dead letters and a requeue to handlers, which see the plain body."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import psycopg
import psycopg2
import pytest
from pydantic import BaseModel

from outbox import Archiver, Consumer, DeadLetters, MessageRelay, OutboxMessage, Publisher, Worker, consume
from outbox.contracts import Event
from outbox.dead_letters import DeadLetter, Edit
from outbox.encryption import Encryption, StaticKeys
from tests.dead_letters.repairs import DONE, at_once
from tests.support import eventually

OLD, NEW = os.urandom(32), os.urandom(32)
BEFORE = Encryption(StaticKeys({"2026-05": OLD}, current="2026-05"))
AFTER = Encryption(StaticKeys({"2026-05": OLD, "2026-11": NEW}, current="2026-11"))
QUEUE = "mail"
SECRET = "ada@example.com"


class Order(BaseModel):
    email: str


order_placed = Event("order.placed", Order)


@pytest.fixture(params=["postgres", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def broker(request: pytest.FixtureRequest, database: str) -> str:
    """Address of each broker."""
    if request.param == "postgres":
        return database
    url: str = request.getfixturevalue("broker_url")
    return url


@asynccontextmanager
async def running(database: str, broker: str, *consumers: Consumer, **options: Any) -> AsyncIterator[None]:
    """Runs a worker with these options, a relay without keys, and with RabbitMQ an archiver without keys."""
    parts: list[Any] = [
        Worker(broker=broker, db_engine_url=database, consumers=consumers, enable_metrics=False, **options),
        MessageRelay(db_engine_url=database, broker=broker, enable_metrics=False, index_keys=["$.email"]),
    ]
    if broker != database:
        parts.append(Archiver(database, broker=broker, queues=[QUEUE], enable_metrics=False))
    tasks = [asyncio.create_task(part.run(handle_signals=False)) for part in parts]
    try:
        yield
    finally:
        for part in parts:
            part.stop()
        await asyncio.gather(*tasks)


async def open_letters(dead_letters: DeadLetters, count: int = 1) -> list[DeadLetter]:
    async def look() -> list[DeadLetter]:
        found = [letter for letter in await dead_letters.list() if letter.status == "open"]
        assert len(found) == count
        return found

    found: list[DeadLetter] = await eventually(look)
    return found


async def test_a_body_stays_encrypted_from_its_publisher_through_retries_and_a_requeue_to_its_handler(
    database: str, broker: str, connection: asyncpg.Connection
) -> None:
    seen: list[tuple[str, int]] = []
    fails = True

    @consume(order_placed, QUEUE, ("0s",))
    async def handle(order: Order, attempt_count: int) -> None:
        seen.append((order.email, attempt_count))
        if fails:
            raise ValueError("not yet")

    async with running(database, broker, handle, encryption=AFTER), DeadLetters(database, broker=broker) as dead_letters:
        async with connection.transaction():
            await Publisher(encryption=BEFORE).publish(connection, order_placed, Order(email=SECRET))
        [letter] = await open_letters(dead_letters)
        assert seen == [(SECRET, 1), (SECRET, 2)]
        assert letter.preview.startswith("<encrypted JSON, ")
        found = await dead_letters.get(letter.id)
        assert found is not None
        assert SECRET.encode() not in found.body
        assert found.headers["x-encryption"].startswith("v=1;alg=A256GCM;kid=2026-05;")
        with_secret = "select count(*) from outbox_dead_letter as letter where position($1 in letter::text) > 0"
        assert await connection.fetchval(with_secret, SECRET) == 0
        fails = False
        assert at_once(await dead_letters.requeue(letter.id)) == {letter.id: DONE}
        await eventually(lambda: seen[-1] == (SECRET, 1) and len(seen) == 3)


async def test_an_edited_body_is_encrypted_with_the_current_key_and_refused_without_keys(
    database: str, broker: str, connection: asyncpg.Connection
) -> None:
    seen: list[str] = []

    @consume(order_placed, QUEUE, ())
    async def handle(order: Order) -> None:
        seen.append(order.email)
        if order.email == SECRET:
            raise ValueError("not yet")

    async with running(database, broker, handle, encryption=AFTER):
        async with DeadLetters(database, broker=broker) as without:
            async with connection.transaction():
                await Publisher(encryption=BEFORE).publish(connection, order_placed, Order(email=SECRET))
            [letter] = await open_letters(without)
            edit = Edit(version=letter.version, body={"email": "b@example.com"}, headers={"tenant": "b"})
            repaired: Any = await without.requeue(letter.id, edit=edit)
            [item] = repaired.items
            assert (item.outcome, "the body is encrypted, and this process has no keys" in item.reason) == ("refused", True)
            [unchanged] = await open_letters(without)
            assert unchanged.version == letter.version
        async with DeadLetters(database, broker=broker, encryption=AFTER) as dead_letters:
            assert at_once(await dead_letters.requeue(letter.id, edit=edit)) == {letter.id: DONE}
            await eventually(lambda: seen == [SECRET, "b@example.com"])
            found = await dead_letters.get(letter.id)
    assert found is not None
    assert (found.headers["tenant"], found.letter.preview) == ("b", "<encrypted JSON, 42 B>")
    assert found.headers["x-encryption"].startswith("v=1;alg=A256GCM;kid=2026-11;")
    [edition] = found.editions
    assert edition.headers is not None
    assert edition.headers["x-encryption"].startswith("v=1;alg=A256GCM;kid=2026-05;")
    everything = "select count(*) from outbox_dead_letter as letter where position('b@example.com' in letter::text) > 0"
    assert await connection.fetchval(everything) == 0


@pytest.mark.parametrize("encryption", [None, BEFORE])
async def test_a_worker_without_the_key_retries_and_the_next_one_with_it_handles_the_message(
    database: str, broker: str, connection: asyncpg.Connection, encryption: Encryption | None
) -> None:
    seen: list[Any] = []

    @consume("order.placed", QUEUE, ("0s",))
    async def handle(body: object) -> None:
        seen.append(body)

    async with DeadLetters(database, broker=broker) as dead_letters:
        async with running(database, broker, handle, encryption=encryption):
            async with connection.transaction():
                await Publisher(encryption=AFTER).publish(connection, "order.placed", {"email": SECRET})
            [letter] = await open_letters(dead_letters)
        assert (letter.exception_type, letter.cause) == ("outbox.errors.UnknownKeyError", "exhausted")
        assert letter.attempt == 2
        assert seen == []
        async with running(database, broker, handle, encryption=AFTER):
            assert at_once(await dead_letters.requeue(letter.id)) == {letter.id: DONE}
            await eventually(lambda: seen == [{"email": SECRET}])


class FailingKeys(StaticKeys):
    """Keys of a service that answers once with something else than JSON, which is a `ValueError`."""

    calls = 0

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        self.calls += 1
        if self.calls == 1:
            json.loads("<html>")
        return super().unwrap(key_id, wrapped)


async def test_an_error_of_the_key_provider_is_a_failed_attempt(database: str, connection: asyncpg.Connection) -> None:
    keys = FailingKeys({"2026-11": NEW}, current="2026-11")
    seen: list[Any] = []

    @consume("order.placed", QUEUE, ("0s",))
    async def handle(body: object) -> None:
        seen.append(body)

    async with connection.transaction():
        await Publisher(encryption=Encryption(keys)).publish(connection, "order.placed", {"email": SECRET})
    async with running(database, database, handle, encryption=Encryption(keys)):
        await eventually(lambda: seen == [{"email": SECRET}])
    assert await connection.fetchval("select count(*) from outbox_dead_letter") == 0


async def test_a_body_that_was_changed_or_moved_is_dead_at_once(
    database: str, broker: str, connection: asyncpg.Connection
) -> None:
    seen: list[Any] = []

    @consume("order.placed", QUEUE, ("0s",) * 5)
    async def handle(body: object) -> None:
        seen.append(body)

    async with connection.transaction():
        for number in range(3):
            await Publisher(encryption=AFTER).publish(connection, "order.placed", number)
        # The third message gets the body and the header of the first.
        await connection.execute(
            "update outbox_table as moved set body = first.body, headers = first.headers from outbox_table as first "
            "where moved.id = 3 and first.id = 1"
        )
        await connection.execute("update outbox_table set body = set_byte(body, 0, 255 - get_byte(body, 0)) where id = 2")
    async with running(database, broker, handle, encryption=AFTER), DeadLetters(database, broker=broker) as dead_letters:
        letters = await open_letters(dead_letters, 2)
        await eventually(lambda: seen == [0])
    assert {(letter.exception_type, letter.cause, letter.attempt) for letter in letters} == {
        ("outbox.errors.DecryptionError", "undecodable", 1)
    }


async def test_the_dead_letter_of_a_body_that_does_not_fit_its_model_quotes_no_value(
    database: str, broker: str, connection: asyncpg.Connection
) -> None:
    @consume(order_placed, QUEUE, ())
    async def handle(order: Order) -> None: ...

    async with connection.transaction():
        await Publisher(encryption=AFTER).publish(connection, "order.placed", {"mail": SECRET})
    async with running(database, broker, handle, encryption=AFTER), DeadLetters(database, broker=broker) as dead_letters:
        [letter] = await open_letters(dead_letters)
    assert (letter.cause, letter.exception_message) == ("undecodable", "the body is no Order: email: Field required")
    for table in ("outbox_dead_letter", "outbox_history"):
        assert not await connection.fetchval(f"select exists (select from {table} as row where row::text like '%{SECRET}%')")


@pytest.mark.parametrize("batch", [False, True])
async def test_sync_publishers_and_bulk_encrypt_and_sync_and_batch_handlers_read(database: str, batch: bool) -> None:
    publisher = Publisher(encryption=AFTER)
    with psycopg.connect(database) as one:
        publisher.publish(one, order_placed, Order(email="1"))
        publisher.bulk_publish(one, [order_placed.message(Order(email="2")), OutboxMessage("order.placed", b'{"email": "3"}')])
    plain = psycopg2.connect(database)
    with plain:
        publisher.publish(plain, order_placed, Order(email="4"))
        Publisher().publish(plain, "order.placed", {"email": "5"})  # one that is not encrypted yet
    plain.close()
    seen: list[str] = []

    def handle(order: Order) -> None:
        seen.append(order.email)

    def handle_all(orders: list[Order]) -> None:
        seen.extend(order.email for order in orders)

    consumer = consume(order_placed, QUEUE, batch=batch)(handle_all if batch else handle)
    async with running(database, database, consumer, encryption=AFTER):
        await eventually(lambda: sorted(seen) == ["1", "2", "3", "4", "5"])


async def test_what_a_handler_publishes_is_encrypted_and_no_index_keys_are_recorded(
    database: str, connection: asyncpg.Connection
) -> None:
    seen: list[Any] = []

    @consume("order.placed", QUEUE, inbox=True)
    async def handle(order: Order, publisher: Any) -> None:
        await publisher.publish("order.confirmed", {"email": order.email})

    @consume("order.confirmed", "later")
    async def confirmed(body: bytes, message: Any) -> None:
        row = await connection.fetchval("select body from outbox_delivery where queue = 'later'")
        seen.append((body, SECRET.encode() in row))

    async with running(database, database, handle, confirmed, encryption=AFTER, index_keys=["$.email"]):
        async with connection.transaction():
            await Publisher(encryption=AFTER).publish(connection, order_placed, Order(email=SECRET))
        await eventually(lambda: seen)
    assert seen == [(b'{"email": "ada@example.com"}', False)]
    facts = await connection.fetch("select fact::text from outbox_history as fact")
    assert facts
    assert not [fact for (fact,) in facts if SECRET in fact]
