"""Recording publishers validate like the real ones, and record what was published."""

import asyncio
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel

from outbox import OutboxMessage, Publisher, consume
from outbox.errors import ConfigurationError, EncodingError
from outbox.publisher import BoundPublisher
from outbox.schema import ensure_outbox_schema_async, ensure_outbox_table_async
from outbox.testing import MemoryBroker, RecordingPublisher, recorded, work_off
from tests.support import eventually

ROOT = Path(__file__).parent.parent.parent


class User(BaseModel):
    name: str
    roles: list[str] = []


async def test_published_messages_are_found_by_key_and_body() -> None:
    publisher = RecordingPublisher()
    id_ = await publisher.publish("user.created", User(name="ada", roles=["admin"]), headers={"tenant": "a"})
    await publisher.bulk_publish([OutboxMessage("user.created", {"name": "bob"}), OutboxMessage("file.stored", b"\0\1")])
    assert publisher.assert_published("user.*", {"name": "ada"}).id == id_
    assert publisher.assert_published("user.created", User(name="ada", roles=["admin"])).message.headers == {"tenant": "a"}
    assert publisher.assert_published("file.stored", b"\0\1").body == b"\0\1"
    assert len(publisher.of("user.#")) == 2
    publisher.assert_not_published("user.deleted")
    publisher.assert_published("user.created", times=2)


async def test_true_is_not_the_number_one() -> None:
    publisher = RecordingPublisher()
    await publisher.publish("user.created", {"admin": True, "badges": [{"count": 1, "gold": False}], "karma": 1})
    for body in ({"admin": 1}, {"karma": True}, {"badges": [{"count": 1, "gold": 0}]}, {"badges": [{"count": 1}]}):
        publisher.assert_not_published("user.created", body)
    publisher.assert_published("user.created", {"admin": True, "badges": [{"count": 1, "gold": False}], "karma": 1.0})


async def test_an_assertion_that_fails_lists_what_was_published_instead() -> None:
    publisher = RecordingPublisher()
    with pytest.raises(AssertionError, match="Nothing was published"):
        publisher.assert_published("user.created")
    await publisher.publish("user.deleted", {"name": "ada"})
    with pytest.raises(AssertionError, match=r"was not published.\nPublished was:\n  'user.deleted' {'name': 'ada'}"):
        publisher.assert_published("user.deleted", {"name": "bob"})
    with pytest.raises(AssertionError, match="was not published 2 times, but 1"):
        publisher.assert_published("user.deleted", times=2)
    with pytest.raises(AssertionError, match="was published"):
        publisher.assert_not_published()
    with pytest.raises(AssertionError, match=r"'user\.\*' with {'name': 'ada'} was published"):
        publisher.assert_not_published("user.*", {"name": "ada"})
    publisher.assert_not_published("user.*", {"name": "bob"})


def test_no_times_are_refused_with_the_assertion_to_use() -> None:
    with pytest.raises(ConfigurationError, match=r"times must be a whole number from 1 .*, not 0: assert_not_published"):
        RecordingPublisher().assert_published("user.created", times=0)


async def test_what_is_no_message_is_refused_as_by_the_publisher(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    publisher = recorded(BoundPublisher(Publisher(), connection))
    with pytest.raises(ConfigurationError, match="only an OutboxMessage can be published in bulk, not tuple"):
        await publisher.bulk_publish([("user.created", {})])
    await connection.close()


async def test_messages_that_a_real_publisher_refuses_are_refused() -> None:
    publisher = RecordingPublisher()
    with pytest.raises(EncodingError, match=r"user\.created"):
        await publisher.publish("user.created", object())
    with pytest.raises(ConfigurationError, match="exclude each other"):
        await publisher.publish("user.created", {}, priority=3, ordering_key="a")
    with pytest.raises(TypeError, match="colour"):
        await publisher.publish("user.created", {}, colour="red")  # type: ignore[call-overload]
    with pytest.raises(ConfigurationError, match="destination"):
        await publisher.publish("user.created", {}, destination="Kafka!")
    with pytest.raises(ConfigurationError, match="not str"):
        await publisher.bulk_publish("user.created")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="routing key"):
        await publisher.bulk_publish([OutboxMessage("user.created", {}), OutboxMessage("", {})])
    publisher.assert_not_published()


async def test_a_cancellation_that_a_real_publisher_refuses_is_refused() -> None:
    publisher = RecordingPublisher()
    await publisher.publish("user.created", {})
    with pytest.raises(ConfigurationError, match="dedup_key"):
        await publisher.cancel(None)  # type: ignore[arg-type]
    publisher.assert_published("user.created", times=1)


@pytest.mark.parametrize(
    ("body", "content_type", "recorded_body"),
    [
        ({"name": "ada"}, "application/json; charset=utf-8", {"name": "ada"}),
        (b'{"name": "ada"}', "application/cloudevents+json", {"name": "ada"}),
        (b"not JSON", "application/json", b"not JSON"),
        (b'{"name": "ada"}', None, b'{"name": "ada"}'),
    ],
)
async def test_a_body_is_recorded_by_its_content_type(body: object, content_type: str | None, recorded_body: object) -> None:
    publisher = RecordingPublisher()
    await publisher.publish("user.created", body, content_type=content_type)
    assert publisher.assert_published("user.created", recorded_body).body == recorded_body


def test_code_that_does_not_await_has_a_publisher_too() -> None:
    publisher = RecordingPublisher(sync=True)
    assert isinstance(publisher.publish("user.created", {}), str)
    assert len(publisher.bulk_publish([OutboxMessage("user.created", {})])) == 1
    assert publisher.cancel("nothing") is False


async def test_a_dedup_key_is_ignored_replaced_and_cancelled_as_in_the_table() -> None:
    publisher = RecordingPublisher()
    first = await publisher.publish("remind", 1, dedup_key="a")
    assert await publisher.publish("remind", 2, dedup_key="a") is None
    second = await publisher.publish("remind", 3, dedup_key="a", on_conflict="replace")
    assert [published.body for published in publisher.published] == [3]
    assert second != first
    assert await publisher.cancel("a") is True
    assert await publisher.cancel("a") is False
    publisher.assert_not_published()


async def test_a_dedup_key_is_pending_in_each_destination_by_itself() -> None:
    publisher = RecordingPublisher()
    assert await publisher.publish("remind", 1, dedup_key="a", destination="kafka")
    assert await publisher.publish("remind", 2, dedup_key="a")
    assert await publisher.publish("remind", 3, dedup_key="a", destination=["default", "kafka"]) is None
    assert await publisher.publish("remind", 4, dedup_key="a", destination=["kafka", "sns"], on_conflict="replace")
    assert [published.body for published in publisher.published] == [2, 4]
    assert await publisher.cancel("a") is True
    assert await publisher.cancel("a") is False
    publisher.assert_not_published()


async def test_what_is_sent_to_a_broker_is_no_longer_pending() -> None:
    publisher, broker = RecordingPublisher(), MemoryBroker()
    handled: list[int] = []

    @consume("remind", queue="reminders")
    async def remind(number: int) -> None:
        handled.append(number)

    @consume("forget", queue="memory")
    async def forget(number: int) -> None:
        handled.append(number)

    await work_off(broker, [remind])
    await publisher.publish("forget", 1)
    await publisher.publish("remind", 2, dedup_key="a")
    with pytest.raises(AssertionError, match="'forget' 1 could not be sent"):
        await publisher.send_to(broker)
    assert await publisher.cancel("a") is False
    # Without a queue it was not sent, and is as soon as there is one.
    await work_off(broker, [forget])
    await publisher.send_to(broker)
    await work_off(broker, [remind, forget])
    assert sorted(handled) == [1, 2]


async def test_headers_are_those_of_the_moment_of_publishing() -> None:
    publisher, broker = RecordingPublisher(), MemoryBroker()
    handled: list[Any] = []

    @consume("remind", queue="reminders")
    async def remind(number: int, message: Any) -> None:
        handled.append((number, message.headers["number"], message.headers["tags"]))

    await work_off(broker, [remind])
    headers: dict[str, Any] = {"tags": ("a", "b")}
    for number in (1, 2):
        headers["number"] = number
        await publisher.publish("remind", number, headers=headers)
    assert [published.message.headers for published in publisher.published] == [
        {"number": 1, "tags": ["a", "b"]},
        {"number": 2, "tags": ["a", "b"]},
    ]
    await publisher.send_to(broker)
    await work_off(broker, [remind])
    assert handled == [(1, 1, ["a", "b"]), (2, 2, ["a", "b"])]


async def test_a_message_expires_as_one_that_a_relay_sends() -> None:
    publisher, broker = RecordingPublisher(), MemoryBroker()
    handled: list[Any] = []

    @consume("remind", queue="reminders")
    async def remind(number: int) -> None:
        handled.append(number)

    await work_off(broker, [remind])
    await publisher.publish("remind", 1, expiration=timedelta(microseconds=1))
    await publisher.publish("remind", 2, expiration=60)
    await publisher.send_to(broker)
    await work_off(broker, [remind])
    assert handled == [2]
    assert [letter.cause for letter in broker.dead_letters("reminders")] == ["expired"]


async def test_a_recorded_message_has_the_default_expiration_of_its_publisher(database_url: str) -> None:
    await ensure_outbox_table_async(database_url)
    connection, broker, handled = await asyncpg.connect(database_url), MemoryBroker(), list[int]()

    @consume("remind", queue="reminders")
    async def remind(number: int) -> None:
        handled.append(number)

    try:
        await work_off(broker, [remind])
        async with connection.transaction():
            publisher = recorded(Publisher(expiration=timedelta(microseconds=1)))
            await publisher.publish(connection, "remind", 1)
            await publisher.publish(connection, "remind", 2, expiration=60)
            bound = recorded(BoundPublisher(Publisher(expiration=timedelta(microseconds=1)), connection))
            await bound.publish("remind", 3)
        await publisher.send_to(broker)
        await bound.send_to(broker)
        await work_off(broker, [remind])
    finally:
        await connection.close()
    assert handled == [2]
    assert len(broker.dead_letters("reminders")) == 2


async def test_a_handler_that_hangs_is_cancelled_after_the_patience() -> None:
    publisher, broker = RecordingPublisher(), MemoryBroker()

    @consume("remind", queue="reminders")
    async def hang(number: int) -> None:
        await asyncio.Event().wait()

    await work_off(broker, [hang])
    await publisher.publish("remind", 1)
    await publisher.send_to(broker)
    async with asyncio.timeout(15):
        with pytest.raises(AssertionError, match="messages are still waiting in reminders"):
            await work_off(broker, [hang], patience=timedelta(milliseconds=100))


async def test_a_worker_with_a_database_writes_what_it_did_before_it_ends(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await ensure_outbox_schema_async(database_url)
    publisher, broker = RecordingPublisher(), MemoryBroker()

    @consume("remind", queue="reminders", inbox=True)
    async def remind(number: int) -> None: ...

    await work_off(broker, [remind], db_engine_url=database_url)
    for number in range(100):
        await publisher.publish("remind", number)
    await publisher.send_to(broker)
    connection, locker = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    try:
        async with asyncio.TaskGroup() as tasks, locker.transaction():
            await locker.execute("lock table outbox_history in exclusive mode")
            tasks.create_task(work_off(broker, [remind], db_engine_url=database_url))
            waits = "wait_event_type = 'Lock' and clock_timestamp() - query_start > interval '0.5 seconds'"
            await eventually(lambda: connection.fetchval(f"select count(*) > 0 from pg_stat_activity where {waits}"))
        assert await connection.fetchval("select count(*) from outbox_history where fact = 'processed'") == 100
        assert await connection.fetchval("select count(*) from outbox_component where stopped_at is null") == 0
    finally:
        await connection.close()
        await locker.close()
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []


async def test_a_worker_that_does_not_begin_is_reported_as_such() -> None:
    @consume("remind", queue="reminders")
    async def remind(number: int, connection: asyncpg.Connection) -> None: ...

    nowhere = "postgresql://ada@127.0.0.1:1/orders"
    with pytest.raises(AssertionError, match="the worker does not consume; its log says why"):
        await work_off(MemoryBroker(), [remind], db_engine_url=nowhere, patience=timedelta(milliseconds=100))


async def test_a_real_publisher_publishes_and_its_messages_are_recorded(
    database_url: str,
) -> None:
    await ensure_outbox_table_async(database_url)
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            publisher = recorded(Publisher())
            call = publisher.publish(connection, "user.created", {"name": "ada"})
            with pytest.raises(AssertionError, match=r"publish\('user.created', …\) in .*test_recording.py, line"):
                publisher.assert_awaited()
            id_ = await call
            bound = recorded(BoundPublisher(Publisher(), connection))
            await bound.bulk_publish([OutboxMessage("user.deleted", {"name": "bob"})])
        assert publisher.assert_published("user.created", {"name": "ada"}).id == id_
        bound.assert_published("user.deleted", {"name": "bob"})
        rows = await connection.fetch("select routing_key, tracking_ids ->> -1 as id from outbox_table order by id")
        assert {tuple(row) for row in rows} == {
            ("user.created", id_),
            ("user.deleted", bound.published[0].id),
        }
    finally:
        await connection.close()


async def test_a_recorded_publisher_is_called_as_the_real_one_is(database_url: str) -> None:
    await ensure_outbox_table_async(database_url)
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            publisher = recorded(Publisher())
            await publisher.publish(handle=connection, routing_key="user.created", body={"name": "ada"}, dedup_key="ada")
            await publisher.publish_async(connection, "user.created", body={"name": "bob"})
            await publisher.bulk_publish_async(connection, messages=iter([OutboxMessage("user.created", {"name": "eve"})]))
            assert await publisher.cancel_async(connection, dedup_key="ada")
            with pytest.raises(TypeError, match="body"):
                publisher.publish(connection, "user.created")
        assert [each.body["name"] for each in publisher.published] == ["ada", "bob", "eve"]
        assert publisher.published[0].message.dedup_key == "ada"
        assert await connection.fetchval("select count(*) from outbox_table") == 2
    finally:
        await connection.close()


async def test_a_call_that_was_not_awaited_published_nothing_and_fails_every_assertion() -> None:
    publisher = RecordingPublisher()
    forgotten = [
        publisher.publish("user.created", {}),
        publisher.bulk_publish([OutboxMessage("user.created", {})]),
        publisher.cancel("a"),
    ]
    assert publisher.published == ()
    for check in (lambda: publisher.assert_published("#"), publisher.assert_not_published, publisher.assert_awaited):
        with pytest.raises(
            AssertionError, match=r"Without `await` .*\n  publish\('user.created', …\) in .*test_recording.py, line"
        ):
            check()
    with pytest.raises(AssertionError, match="Without `await`"):
        await publisher.send_to(MemoryBroker())
    publisher.clear()
    with pytest.raises(AssertionError, match="Without `await`"):
        publisher.assert_awaited()
    for call in forgotten:
        await call
    publisher.assert_published("user.created", times=2)


def test_with_the_fixture_a_forgotten_await_fails_the_test(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["outbox.testing.plugin"]\n')
    (tmp_path / "test_it.py").write_text(
        "def test_route(outbox_publisher):\n    outbox_publisher.publish('user.created', {}).close()\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60)
    assert "1 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "Without `await` nothing is published" in done.stdout
