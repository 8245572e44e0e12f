"""A relay to Redis: nothing is lost and nothing is spent while streams or the server are missing, and order is kept."""

import re
import signal
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from outbox import Consumer, MessageRelay
from outbox.core.message import OutboxMessage
from outbox.doctor import Installation, examine
from outbox.errors import ConfigurationError, TopologyError
from tests.servers.redis import Redis
from tests.support import eventually
from tests.support.processes import running as running_process
from tests.support.streams import collecting, is_empty, numbered, publish, relaying

pytestmark = pytest.mark.redis


async def test_messages_for_a_missing_stream_are_held_and_sent_once_it_exists(
    database: str, connection: asyncpg.Connection, redis: Redis
) -> None:
    redis.create_stream("there")
    await publish(connection, *numbered("late", 3), OutboxMessage("there", b"at once"))
    async with relaying(database, redis.url):
        held = "select count(*) = 3 from outbox_table where routing_key = 'late' and held_at is not null and attempts = 0"
        await eventually(lambda: connection.fetchval(held))
        assert [fields["body"] for fields in redis.read("there")] == [b"at once"]
        redis.create_stream("late")
        await eventually(lambda: is_empty(connection))
    assert sorted(fields["body"] for fields in redis.read("late")) == [b"0", b"1", b"2"]


async def test_a_server_that_dies_loses_nothing_costs_no_attempt_and_order_is_kept(
    database: str, connection: asyncpg.Connection, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis.create_stream("order.placed")
    await publish(connection, *numbered("order.placed", 1_500, keys=5), *numbered("order.placed", 500))
    async with relaying(database, redis.url, publish_timeout=2, batch_size=50):
        await eventually(lambda: connection.fetchval("select count(*) between 1 and 1900 from outbox_table"))
        redis.kill()
        await eventually(lambda: "Redis is unavailable" in caplog.text)
        assert await connection.fetchval("select count(*) > 0 and max(attempts) = 0 from outbox_table")
        redis.start()
        await eventually(lambda: is_empty(connection))
    _assert_all_arrived(redis)


def _assert_all_arrived(redis: Redis) -> None:
    """Each message is there at least once, those of each key in their order apart from copies."""
    entries = redis.read("order.placed")
    assert {int(fields["body"]) for fields in entries if "x-outbox-ordering-key" not in fields} == set(range(500))
    for key in range(5):
        ours = [int(fields["body"]) for fields in entries if fields.get("x-outbox-ordering-key") == f"key {key}".encode()]
        assert list(dict.fromkeys(ours)) == list(range(key, 1_500, 5))


async def test_a_relay_that_is_killed_loses_nothing(
    database: str, connection: asyncpg.Connection, redis: Redis, tmp_path: Path
) -> None:
    redis.create_stream("order.placed")
    await publish(connection, *numbered("order.placed", 1_500, keys=5), *numbered("order.placed", 500))
    settings = {"OUTBOX_DATABASE_URL": database, "OUTBOX_BROKER_URL": redis.url, "OUTBOX_MONITORING_PORT": "0"}
    with running_process(["-m", "outbox.cli", "relay"], tmp_path, settings) as relay:
        await eventually(lambda: connection.fetchval("select count(*) between 1 and 1900 from outbox_table"))
        relay.send(signal.SIGKILL)
        relay.wait()
    assert not await is_empty(connection)
    async with relaying(database, redis.url):
        await eventually(lambda: is_empty(connection))
    _assert_all_arrived(redis)


async def test_what_is_no_stream_does_not_stop_others(database: str, connection: asyncpg.Connection, redis: Redis) -> None:
    redis.client.set("wrong", "no stream")
    redis.create_stream("order.placed")
    await publish(connection, *numbered("wrong", 3))
    async with relaying(database, redis.url, publish_timeout=0.5, lanes=1):
        await eventually(lambda: connection.fetchval("select count(*) from outbox_table where last_error is not null"))
        await publish(connection, *numbered("order.placed", 50))
        await eventually(lambda: len(redis.read("order.placed")) == 50)
        await eventually(lambda: connection.fetchval("select count(*) = 3 from outbox_table"))
        waiting = await connection.fetch("select routing_key, attempts, failed_at from outbox_table")
        assert [tuple(row) for row in waiting] == [("wrong", 0, None)] * 3
        redis.client.delete("wrong")
        redis.create_stream("wrong")
        await eventually(lambda: is_empty(connection))


async def test_a_relay_does_not_start_if_the_server_may_lose_messages(
    database: str, connection: asyncpg.Connection, redis: Redis
) -> None:
    redis.configure(appendfsync="everysec")
    redis.create_stream("order.placed")
    await publish(connection, *numbered("order.placed", 1))
    with pytest.raises(TopologyError, match=r"appendfsync is everysec\. Set appendonly yes"):
        await MessageRelay(database, broker=redis.url, reporting=False, history=False).run(handle_signals=False)
    assert redis.read("order.placed") == []
    async with relaying(database, f"{redis.url}?durability=lossy"):
        await eventually(lambda: is_empty(connection))


async def test_relays_to_other_streams_or_servers_are_refused(
    database: str, connection: asyncpg.Connection, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.relay.RENEW_EVERY", timedelta(milliseconds=100))
    monkeypatch.setattr("outbox.relay.CHECK_AGAIN", timedelta(milliseconds=20))
    async with relaying(database, redis.url, name="first"):
        await eventually(lambda: connection.fetchval("select count(*) from outbox_relay"))
        assert await connection.fetchval("select destination from outbox_relay") == (
            f"Redis at 127.0.0.1:{redis.port}, database 0, stream {{routing_key}}"
        )
        with pytest.raises(ConfigurationError, match="stream events, but the relay first sends"):
            await MessageRelay(database, broker=f"{redis.url}?stream=events", reporting=False, history=False).run(
                handle_signals=False
            )


async def test_the_doctor_looks_at_the_server_its_one_stream_and_what_loses_messages(database: str, redis: Redis) -> None:
    async def found(query: str, *consumers: Consumer) -> list[tuple[str, str]]:
        report = await examine(
            Installation(
                database_url=database,
                broker_url=f"{redis.url}{query}",
                consumer_timeout=timedelta(minutes=30),
                exchange_name="outbox",
                consumers=consumers,
            )
        )
        return [(each.severity, each.summary) for each in report.findings if each.check in ("broker", "topology")]

    where = f"Redis at 127.0.0.1:{redis.port}, database 0, stream"
    assert await found("") == [("ok", f"{where} {{routing_key}}")]
    assert await found("?stream=events") == [("ok", f"{where} events"), ("error", "the stream 'events' is missing")]
    redis.create_stream("events")
    assert await found("?stream=events&maxlen=1000") == [
        ("ok", f"{where} events"),
        ("warning", "maxlen=1000 can delete messages that no worker has read"),
    ]
    _, (severity, summary) = await found("", collecting([], "order.*"))
    assert (severity, "the binding key 'order.*' of the queue 'mail' has wildcards" in summary) == ("error", True)
    assert await found("?stream=events", collecting([], "order.*")) == [("ok", f"{where} events")]
    redis.configure(appendfsync="no")
    [(severity, summary)] = await found("")
    assert (severity, "may lose messages that it has confirmed: appendfsync is no" in summary) == ("error", True)
    assert ("warning", "durability=lossy: the server may lose messages that it has confirmed") in await found(
        "?durability=lossy"
    )


async def test_the_program_on_the_page_relays_to_its_streams(
    database: str, connection: asyncpg.Connection, redis: Redis, tmp_path: Path
) -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "redis.md"
    [program] = re.findall(r"^```python\n(# to_redis\.py\n.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "to_redis.py"
    path.write_text(
        program.replace("postgresql://user:password@localhost/shop", database).replace("redis://localhost:6379/0", redis.url)
    )
    redis.create_stream("order")
    await publish(connection, OutboxMessage("order.placed", b"1"), OutboxMessage("order.paid", b"2"))
    with running_process([str(path)], tmp_path) as relay:
        await eventually(lambda: sorted(fields["body"] for fields in redis.read("order")) == [b"1", b"2"])
        await eventually(lambda: is_empty(connection))
        relay.send(signal.SIGTERM)
        assert relay.wait() == 0
