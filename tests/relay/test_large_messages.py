"""Large messages: what a relay has in memory is bounded, and what is too large for that is parked and hurts no other."""

from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from outbox import MessageRelay
from outbox.core.byte_limits import ByteLimits
from outbox.core.events import DependencyLost, SendFailed
from outbox.core.message import Way
from outbox.errors import ConfigurationError
from outbox.postgres.pool import open_pool
from outbox.postgres.queries import TableName
from outbox.postgres.store import PostgresStore
from tests.relay.support import INSERT, ScriptedTransport, relaying, rows_are
from tests.servers.proxy import Proxy, Towards
from tests.support import RabbitAdmin, eventually
from tests.support.processes import peak_memory, running

INSERT_OF_SIZE = (
    "insert into outbox_table (routing_key, body, ordering_key) values ($1, convert_to(repeat('x', $2), 'utf8'), $3)"
)
LIMITS = ByteLimits(batch=10_000, body=20_000)
MIB = 1024 * 1024


@pytest.mark.parametrize("ordering_key", [None, "key"])
async def test_a_message_above_the_limit_is_parked_and_the_others_go_on(
    url: str, connection: asyncpg.Connection, ordering_key: str | None
) -> None:
    await connection.execute(INSERT_OF_SIZE, "huge", 20_000, ordering_key)
    await connection.execute(INSERT_OF_SIZE, "small", 10, "another key" if ordering_key else None)
    transport = ScriptedTransport()
    async with relaying(url, transport, byte_limits=LIMITS) as relay:
        await eventually(lambda: rows_are(connection, 1))
        await eventually(lambda: rows_are(connection, 1, "failed_at is not null"))
        await eventually(lambda: relay.recorder.of(SendFailed))
    assert transport.routing_keys == ["small"]
    row = await connection.fetchrow("select attempts, last_error, octet_length(body) as size from outbox_table")
    assert row is not None
    assert dict(row) == {
        "attempts": 1,
        "last_error": "too large: the message has 20004 bytes, and max_body_bytes is 20000",
        "size": 20_000,
    }


async def test_a_routing_key_or_headers_can_be_too_large_too(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_table (routing_key, body) values (repeat('k', 30000), '')")
    await connection.execute(
        "insert into outbox_table (routing_key, body, headers, tracking_ids) "
        "values ('a', '', jsonb_build_object('h', repeat('x', 3000000)), jsonb_build_array('id'))"
    )
    async with relaying(url, ScriptedTransport(), byte_limits=LIMITS):
        await eventually(lambda: rows_are(connection, 2, "failed_at is not null and last_error like 'too large: %'"))


@pytest.mark.parametrize("ordering_key", [None, "key"])
async def test_a_batch_ends_before_the_message_that_would_take_it_over_its_bytes(
    url: str, connection: asyncpg.Connection, ordering_key: str | None
) -> None:
    for size in (4_000, 4_000, 4_000, 15_000, 1_000, 30_000, 9_500):
        await connection.execute(INSERT_OF_SIZE, "a", size, ordering_key and f"{ordering_key} {size}")
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1, byte_limits=LIMITS):
        await eventually(lambda: rows_are(connection, 1))
    sizes = [[len(message.body) for message in batch] for batch in transport.batches]
    assert sorted(size for batch in sizes for size in batch) == [1_000, 4_000, 4_000, 4_000, 9_500, 15_000]
    assert all(sum(batch) <= 10_000 or len(batch) == 1 for batch in sizes)


async def test_messages_with_and_without_a_key_share_the_bytes_of_a_batch(url: str, connection: asyncpg.Connection) -> None:
    for number in range(12):
        await connection.execute(INSERT_OF_SIZE, "keyed", 3_000, f"key {number}")
        await connection.execute(INSERT_OF_SIZE, "plain", 3_000, None)
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1, byte_limits=LIMITS):
        await eventually(lambda: rows_are(connection, 0))
    assert max(sum(len(message.body) for message in batch) for batch in transport.batches) <= 10_000
    first = transport.routing_keys[:12]
    assert set(first) == {"keyed", "plain"}  # neither waits for all of the others


@pytest.mark.parametrize("ordering_key", [None, "key"])
async def test_what_cannot_be_claimed_at_once_in_time_is_claimed_in_smaller_parts(
    url: str,
    connection: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    ordering_key: str | None,
) -> None:
    """Four messages of 2 MB, over a connection of 1 MB a second, with three seconds for a statement."""
    monkeypatch.setattr("outbox.postgres.claiming.COMMAND_TIMEOUT", timedelta(seconds=3))
    for number in range(4):
        await connection.execute(INSERT_OF_SIZE, "a", 2_000_000, ordering_key and f"{ordering_key} {number}")
    transport = ScriptedTransport()
    with Proxy(url) as proxy:
        proxy.limit(1_000_000, Towards.CLIENT)
        async with relaying(proxy.url, transport, lanes=1, batch_size=4) as relay:
            await eventually(lambda: rows_are(connection, 0), timeout=120)
        assert relay.recorder.of(DependencyLost) == []
    assert [len(batch) for batch in transport.batches] == [1, 1, 1, 1], "of two at once none arrives in time"
    assert "took too long and was rolled back" in caplog.text


async def test_what_waits_for_a_stalled_route_is_claimed_within_the_same_limits(
    url: str, connection: asyncpg.Connection
) -> None:
    for size in (4_000, 30_000, 4_000, 4_000, 15_000):
        await connection.execute(INSERT_OF_SIZE, "a", size, None)
    await connection.execute("update outbox_table set last_error = 'stalled', send_after = 'infinity'")
    pool = await open_pool(url, size=3, application_name="tests")
    store = PostgresStore(
        pool, TableName("outbox_table"), keep_sent=False, longest_send=timedelta(seconds=10), byte_limits=LIMITS
    )
    claim = await store.claim_stalled([(Way("a", None), 5)])
    assert claim is not None
    async with claim:
        claimed = [(len(pending.message.body), pending.too_large) for pending in claim.messages]
    await pool.close()
    assert claimed == [(4_000, False), (0, True), (4_000, False)]


@pytest.mark.parametrize("name", ["max_batch_bytes", "max_body_bytes"])
@pytest.mark.parametrize("value", [0, -1, 2**31, 1.5, "64 MiB", True])
def test_limits_are_positive_numbers_of_bytes(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=name):
        MessageRelay("postgresql://x/y", broker="postgresql://x/y", **{name: value})  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.rabbitmq
async def test_the_memory_of_a_relay_is_a_few_batches_whatever_stands_in_front(
    url: str, connection: asyncpg.Connection, broker_url: str, broker_admin: RabbitAdmin, tmp_path: Path
) -> None:
    """A row of 300 MB, which is more than it may ever hold, and then forty of 4 MB."""
    await broker_admin.declare_queue("large")
    await broker_admin.declare_exchange("outbox")
    await broker_admin.bind("outbox", "large", "a")
    await connection.execute(INSERT_OF_SIZE, "a", 300_000_000, None)
    for _ in range(40):
        await connection.execute(INSERT_OF_SIZE, "a", 4 * MIB, None)
    await connection.execute(INSERT, "a")
    settings = {"OUTBOX_DATABASE_URL": url, "OUTBOX_BROKER_URL": broker_url, "OUTBOX_MAX_BATCH_BYTES": str(16 * MIB)}
    with running(["-m", "outbox.cli", "relay", "--monitoring-port", "0"], tmp_path, settings) as relay:
        await eventually(lambda: rows_are(connection, 1), timeout=120, interval=0.2)
        await eventually(lambda: rows_are(connection, 1, "last_error like 'too large: %'"))
        assert peak_memory(relay.pid) < 100 * MIB + 2 * 4 * 16 * MIB
    assert await broker_admin.depth("large") == 41
