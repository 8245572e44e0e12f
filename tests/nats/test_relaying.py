"""A relay to NATS: nothing is lost and nothing is spent while streams or the server are missing, and order is kept."""

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
from tests.servers.nats import Nats
from tests.support import eventually
from tests.support.processes import running as running_process
from tests.support.streams import is_empty, numbered, publish, relaying


async def test_messages_without_a_stream_are_held_and_sent_once_it_exists(
    database: str, connection: asyncpg.Connection, nats_server: Nats, stream: str
) -> None:
    late = f"late-{stream}"
    await publish(connection, *numbered(f"{late}.a", 3), OutboxMessage(f"{stream}.a", b"at once"))
    async with relaying(database, nats_server.url):
        await eventually(
            lambda: connection.fetchval(
                "select count(*) = 3 from outbox_table where routing_key = $1 and held_at is not null and attempts = 0",
                f"{late}.a",
            )
        )
        assert [each.data for each in await nats_server.read(stream)] == [b"at once"]
        await nats_server.create_stream(late, f"{late}.>")
        await eventually(lambda: is_empty(connection))
    assert sorted(each.data for each in await nats_server.read(late)) == [b"0", b"1", b"2"]


async def test_a_message_that_is_too_large_is_parked_and_others_are_sent(
    database: str, connection: asyncpg.Connection, nats_server: Nats, stream: str
) -> None:
    await publish(connection, OutboxMessage(f"{stream}.a", b"x" * 2_000_000), *numbered(f"{stream}.a", 3))
    async with relaying(database, nats_server.url, max_attempts=1):
        [parked] = await eventually(lambda: connection.fetch("select last_error from outbox_table where failed_at is not null"))
        assert "max_payload" in parked["last_error"]
        await eventually(lambda: connection.fetchval("select count(*) = 1 from outbox_table"))
    assert sorted(each.data for each in await nats_server.read(stream)) == [b"0", b"1", b"2"]


async def test_a_full_stream_does_not_stop_others_and_gets_its_messages_when_it_has_room(
    database: str, connection: asyncpg.Connection, nats_server: Nats, stream: str
) -> None:
    full = f"full-{stream}"
    await nats_server.create_stream(full, f"{full}.>", max_msgs=5, discard="new")
    await publish(connection, *numbered(f"{full}.a", 10))
    async with relaying(database, nats_server.url, publish_timeout=2):
        await eventually(lambda: connection.fetchval("select count(*) = 5 from outbox_table where last_error is not null"))
        await publish(connection, *numbered(f"{stream}.a", 50))
        await eventually(lambda: connection.fetchval("select count(*) = 5 from outbox_table"))
        assert await nats_server.count(stream) == 50
        await nats_server.create_stream(full, f"{full}.>", max_msgs=100, discard="new")
        await eventually(lambda: is_empty(connection))
    assert {each.data for each in await nats_server.read(full)} == {str(n).encode() for n in range(10)}


async def test_a_server_that_is_away_costs_no_attempt_and_order_is_kept(
    database: str, connection: asyncpg.Connection, own_nats: Nats, caplog: pytest.LogCaptureFixture
) -> None:
    await own_nats.create_stream("events", "events.>")
    await publish(connection, *numbered("events.a", 10, keys=2))
    async with relaying(database, own_nats.url, publish_timeout=2):
        await eventually(lambda: is_empty(connection))
        own_nats.kill()
        more = [OutboxMessage("events.a", str(n).encode(), ordering_key=f"key {n % 2}") for n in range(10, 30)]
        await publish(connection, *more)
        await eventually(lambda: "NATS is not available" in caplog.text)
        assert await connection.fetchval("select count(*) from outbox_table where attempts = 0") == 20
        own_nats.start()
        await eventually(lambda: is_empty(connection))
    numbers = [int(each.data) for each in await own_nats.read("events")]
    assert [n for n in numbers if n % 2 == 0] == list(range(0, 30, 2))
    assert [n for n in numbers if n % 2] == list(range(1, 30, 2))


async def test_a_relay_that_is_killed_loses_nothing_and_repeats_nothing(
    database: str, connection: asyncpg.Connection, nats_server: Nats, stream: str, tmp_path: Path
) -> None:
    count = 4_000
    await publish(connection, *numbered(f"{stream}.a", count))
    settings = {"OUTBOX_DATABASE_URL": database, "OUTBOX_BROKER_URL": nats_server.url, "OUTBOX_MONITORING_PORT": "0"}
    with running_process(["-m", "outbox.cli", "relay"], tmp_path, settings) as relay:
        await eventually(lambda: connection.fetchval("select count(*) < $1 from outbox_table", count), interval=0.001)
        relay.send(signal.SIGKILL)
        relay.wait()
    async with relaying(database, nats_server.url):
        await eventually(lambda: is_empty(connection))
    # What it had sent and not settled was sent again, within the duplicate window.
    assert sorted(int(each.data) for each in await nats_server.read(stream)) == list(range(count))


async def test_relays_to_other_subjects_are_refused(
    database: str, connection: asyncpg.Connection, nats_server: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.relay.RENEW_EVERY", timedelta(milliseconds=100))
    monkeypatch.setattr("outbox.relay.CHECK_AGAIN", timedelta(milliseconds=20))
    async with relaying(database, nats_server.url, name="first"):
        await eventually(lambda: connection.fetchval("select count(*) from outbox_relay"))
        assert await connection.fetchval("select destination from outbox_relay") == (
            f"NATS at 127.0.0.1:{nats_server.port}, subject {{routing_key}}"
        )
        with pytest.raises(ConfigurationError, match="subject events, but the relay first sends"):
            await MessageRelay(database, broker=f"{nats_server.url}?subject=events", reporting=False, history=False).run(
                handle_signals=False
            )


async def test_the_doctor_asks_for_jetstream_and_for_streams(
    database: str, nats_server: Nats, own_nats: Nats, stream: str
) -> None:
    async def found(url: str, *consumers: Consumer) -> list[tuple[str, str]]:
        report = await examine(
            Installation(
                database_url=database,
                broker_url=url,
                consumer_timeout=timedelta(minutes=30),
                exchange_name="outbox",
                consumers=consumers,
            )
        )
        return [(each.severity, each.summary) for each in report.findings if each.check in ("broker", "topology")]

    address = f"NATS at 127.0.0.1:{nats_server.port}"
    assert await found(nats_server.url) == [("ok", f"{address}, subject {{routing_key}}")]
    assert await found(f"{nats_server.url}?subject={stream}.a") == [("ok", f"{address}, subject {stream}.a")]
    assert await found(f"{nats_server.url}?subject=missing") == [("error", "no stream stores the subject 'missing'")]

    async def ignore(body: bytes) -> None: ...

    read, unread = (Consumer(key, ignore, queue=key) for key in (f"{stream}.#", "missing.#"))
    assert await found(nats_server.url, read, unread) == [
        ("warning", "no stream stores the subject 'missing.>' of the queue 'missing.#'")
    ]
    own_nats.stop()
    own_nats.start(jetstream=False)
    assert await found(own_nats.url) == [
        ("error", "cannot be reached: JetStream is not enabled on the server, or not for this user")
    ]


async def test_the_program_on_the_page_relays_to_its_subjects(
    database: str, connection: asyncpg.Connection, own_nats: Nats, tmp_path: Path
) -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "nats.md"
    [program] = re.findall(r"^```python\n(# to_nats\.py\n.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "to_nats.py"
    path.write_text(
        program.replace("postgresql://user:password@localhost/shop", database).replace("nats://localhost:4222", own_nats.url)
    )
    await own_nats.create_stream("shop", "shop.>")
    await publish(connection, OutboxMessage("order placed", b"1"), OutboxMessage("order.paid", b"2"))
    with running_process([str(path)], tmp_path) as relay:
        await eventually(lambda: is_empty(connection))
        relay.send(signal.SIGTERM)
        assert relay.wait() == 0
    assert sorted((each.subject, each.data) for each in await own_nats.read("shop")) == [
        ("shop.order.paid", b"2"),
        ("shop.order_placed", b"1"),
    ]
