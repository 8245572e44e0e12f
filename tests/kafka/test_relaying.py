"""A relay to Kafka: nothing is lost and nothing is spent while topics or brokers are missing, and order is kept."""

import re
import signal
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from outbox import Consumer, MessageRelay
from outbox.core.message import OutboxMessage
from outbox.doctor import Installation, examine
from outbox.errors import ConfigurationError
from tests.servers.kafka import Kafka, KafkaError, MockKafka
from tests.support import eventually
from tests.support.processes import running as running_process
from tests.support.streams import is_empty, numbered, publish, relaying


async def test_messages_for_a_missing_topic_are_held_and_sent_once_it_exists(
    database: str, connection: asyncpg.Connection, kafka: Kafka
) -> None:
    there = kafka.new_topic()
    late = f"{there}.late"
    await publish(connection, *numbered(late, 3), OutboxMessage(there, b"at once"))
    async with relaying(database, kafka.url):
        await eventually(
            lambda: connection.fetchval(
                "select count(*) = 3 from outbox_table where routing_key = $1 and held_at is not null and attempts = 0", late
            )
        )
        assert [record.value() for record in await kafka.read(there, 1)] == [b"at once"]
        kafka.create_topic(late)
        await eventually(lambda: is_empty(connection))
    assert sorted(record.value() for record in await kafka.read(late, 3)) == [b"0", b"1", b"2"]


async def test_a_message_that_is_too_large_is_parked_and_others_are_sent(
    database: str, connection: asyncpg.Connection, kafka: Kafka
) -> None:
    topic = kafka.new_topic()
    await publish(connection, OutboxMessage(topic, b"x" * 2_000_000), *numbered(topic, 3))
    async with relaying(database, kafka.url, max_attempts=1):
        [parked] = await eventually(lambda: connection.fetch("select last_error from outbox_table where failed_at is not null"))
        assert "MSG_SIZE_TOO_LARGE" in parked["last_error"]
        assert sorted(record.value() for record in await kafka.read(topic, 3)) == [b"0", b"1", b"2"]


async def test_brokers_that_are_away_cost_no_attempt_and_order_is_kept(
    database: str,
    connection: asyncpg.Connection,
    mock: MockKafka,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outbox.transports.kafka.CONNECT_TIMEOUT", timedelta(milliseconds=300))
    topic = mock.new_topic()
    await publish(connection, *numbered(topic, 10, keys=2))
    async with relaying(database, mock.url, publish_timeout=2):
        await eventually(lambda: is_empty(connection))
        mock.set_down()
        await publish(connection, *(OutboxMessage(topic, str(n).encode(), ordering_key=f"key {n % 2}") for n in range(10, 30)))
        await eventually(lambda: "Kafka does not answer" in caplog.text)
        assert await connection.fetchval("select count(*) from outbox_table where attempts = 0") == 20
        mock.set_up()
        mock.fail_produce(*[KafkaError.NOT_ENOUGH_REPLICAS] * 3)
        await eventually(lambda: is_empty(connection))
    seen: dict[str, list[int]] = {}
    for record in await mock.read(topic, 30):
        seen.setdefault(record.key().decode(), []).append(int(record.value()))
    # A record may be there twice, but its second copy is not behind the one that follows.
    assert {key: list(dict.fromkeys(numbers)) for key, numbers in seen.items()} == {
        "key 0": list(range(0, 30, 2)),
        "key 1": list(range(1, 30, 2)),
    }
    assert all(numbers == sorted(numbers) for numbers in seen.values())


async def test_a_topic_that_stores_nothing_does_not_stop_others(
    database: str, connection: asyncpg.Connection, mock: MockKafka
) -> None:
    stuck, topic = mock.new_topic(partitions=1), mock.new_topic()
    mock.remove_leader(stuck)
    await publish(connection, *numbered(stuck, 5))
    async with relaying(database, mock.url, publish_timeout=0.5, lanes=1):
        await eventually(lambda: connection.fetchval("select count(*) from outbox_table where last_error is not null"))
        await publish(connection, *numbered(topic, 50))
        # Some may be there twice: the timeout is short, and a busy machine may exceed it.
        assert {int(record.value()) for record in await mock.read(topic, 50)} == set(range(50))
        waiting = await connection.fetch("select routing_key, attempts, failed_at from outbox_table")
        assert [tuple(row) for row in waiting] == [(stuck, 0, None)] * 5


async def test_a_relay_that_is_killed_loses_nothing(
    database: str, connection: asyncpg.Connection, mock: MockKafka, tmp_path: Path
) -> None:
    topic = mock.new_topic()
    await publish(connection, *numbered(topic, 3_000, keys=5), *numbered(topic, 1_000))
    mock.delay(5)  # so that requests are in flight at any time
    settings = {"OUTBOX_DATABASE_URL": database, "OUTBOX_BROKER_URL": mock.url, "OUTBOX_MONITORING_PORT": "0"}
    with running_process(["-m", "outbox.cli", "relay"], tmp_path, settings) as relay:
        await eventually(lambda: connection.fetchval("select count(*) between 1 and 3900 from outbox_table"))
        relay.send(signal.SIGKILL)
        relay.wait()
    assert not await is_empty(connection)
    mock.delay(0)
    async with relaying(database, mock.url):
        await eventually(lambda: is_empty(connection))
    records = await mock.read(topic, 4_000)
    assert {int(record.value()) for record in records if record.key() is None} == set(range(1_000))
    for key in range(5):
        numbers = [int(record.value()) for record in records if record.key() == f"key {key}".encode()]
        assert list(dict.fromkeys(numbers)) == list(range(key, 3_000, 5))


async def test_relays_to_other_topics_or_clusters_are_refused(
    database: str, connection: asyncpg.Connection, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.relay.RENEW_EVERY", timedelta(milliseconds=100))
    monkeypatch.setattr("outbox.relay.CHECK_AGAIN", timedelta(milliseconds=20))
    async with relaying(database, kafka.url, name="first"):
        await eventually(lambda: connection.fetchval("select count(*) from outbox_relay"))
        assert await connection.fetchval("select destination from outbox_relay") == (
            f"Kafka at {','.join(sorted(kafka.hosts.split(',')))}, topic {{routing_key}}"
        )
        with pytest.raises(ConfigurationError, match="topic events, but the relay first sends"):
            await MessageRelay(database, broker=f"{kafka.url}?topic=events", reporting=False, history=False).run(
                handle_signals=False
            )


async def test_the_doctor_asks_the_cluster_and_for_the_topics_that_it_can_name(database: str, mock: MockKafka) -> None:
    async def found(url: str, *keys: str) -> list[tuple[str, str]]:
        report = await examine(
            Installation(
                database_url=database,
                broker_url=url,
                consumer_timeout=timedelta(minutes=30),
                consumers=[Consumer(key, lambda body: None, queue=f"queue {key}") for key in keys],
            )
        )
        return [(each.severity, each.summary) for each in report.findings if each.check in ("broker", "topology")]

    topic, missing = mock.new_topic(), "missing.events"
    hosts = ",".join(sorted(mock.hosts.split(",")))
    assert await found(mock.url) == [("ok", f"Kafka at {hosts}, topic {{routing_key}}")]
    assert await found(f"{mock.url}?topic={topic}") == [("ok", f"Kafka at {hosts}, topic {topic}")]
    assert await found(f"{mock.url}?topic={missing}") == [("error", f"the topic '{missing}' is missing")]
    assert await found(mock.url, topic, "missing.#") == [("ok", f"Kafka at {hosts}, topic {{routing_key}}")]
    assert await found(mock.url, topic, missing) == [
        ("warning", f"the topic '{missing}' of the queue 'queue {missing}' is missing")
    ]


async def test_the_program_on_the_page_relays_to_its_topics(
    database: str, connection: asyncpg.Connection, mock: MockKafka, tmp_path: Path
) -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "kafka.md"
    [program] = re.findall(r"^```python\n(# to_kafka\.py\n.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "to_kafka.py"
    path.write_text(
        program.replace("postgresql://user:password@localhost/shop", database).replace("kafka://localhost:9092", mock.url)
    )
    mock.create_topic("order")
    await publish(connection, OutboxMessage("order.placed", b"1"), OutboxMessage("order.paid", b"2"))
    with running_process([str(path)], tmp_path) as relay:
        assert sorted(record.value() for record in await mock.read("order", 2)) == [b"1", b"2"]
        await eventually(lambda: is_empty(connection))
        relay.send(signal.SIGTERM)
        assert relay.wait() == 0
