"""Messages of one ordering key leave in the order of their ids, whatever becomes of one of them."""

from collections.abc import Callable, Sequence
from datetime import timedelta

import asyncpg

from outbox.message import Message
from outbox.outcome import Failure
from outbox.ports import CONFIRMED, Refused, SendResult
from tests.relay.support import ScriptedTransport, policy, relaying
from tests.relay.test_relay import rows_are
from tests.support.eventually import eventually

REFUSED = Refused(Failure("TooLarge", "no way"))
SOON = timedelta(milliseconds=300)


async def publish(connection: asyncpg.Connection, key: str, *names: str) -> None:
    for name in names:
        await connection.execute("insert into outbox_table (routing_key, body, ordering_key) values ($1, '', $2)", name, key)


def refusing(*names: str) -> Callable[[Message], SendResult]:
    return lambda message: REFUSED if message.routing_key in names else CONFIRMED


def without(names: Sequence[str], *left_out: str) -> list[str]:
    return [name for name in names if name not in left_out]


async def test_a_key_leaves_in_order_though_it_fills_many_batches(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, ordering_key, send_after) "
        "select i::text, '', 'k' || i % 3, now() - random() * interval '1 h' from generate_series(1, 1500) i"
    )
    transport = ScriptedTransport()
    async with relaying(url, transport):
        await eventually(lambda: rows_are(connection, 0), timeout=20)
    for key in range(3):
        assert [int(name) for name in transport.routing_keys if int(name) % 3 == key] == [
            number for number in range(1, 1501) if number % 3 == key
        ]
    assert len(transport.sent) == 1500


async def test_within_a_batch_a_message_follows_when_its_predecessor_is_confirmed(
    url: str, connection: asyncpg.Connection
) -> None:
    await publish(connection, "a", "a1", "a2", "a3")
    await publish(connection, "b", "b1", "b2")
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1):
        await eventually(lambda: rows_are(connection, 0))
    assert [sorted(message.routing_key for message in batch) for batch in transport.batches] == [
        ["a1", "b1"],
        ["a2", "b2"],
        ["a3"],
    ]


async def test_block_a_refused_message_holds_back_its_key_and_no_other(url: str, connection: asyncpg.Connection) -> None:
    await publish(connection, "a", "a1", "bad", "a3", "a4")
    await publish(connection, "b", "b1", "b2")
    transport = ScriptedTransport(refusing("bad"))
    async with relaying(url, transport, sending=policy(backoff=SOON)):
        await eventually(lambda: transport.routing_keys.count("bad") == 3)
        assert sorted(without(transport.routing_keys, "bad")) == ["a1", "b1", "b2"]
        transport.answer = lambda message: CONFIRMED
        await eventually(lambda: rows_are(connection, 0))
    assert transport.routing_keys[-3:] == ["bad", "a3", "a4"]


async def test_block_a_parked_message_holds_back_its_key_until_it_is_requeued_in_place(
    url: str, connection: asyncpg.Connection
) -> None:
    await publish(connection, "a", "bad", "a2", "a3")
    transport = ScriptedTransport(refusing("bad"))
    async with relaying(url, transport, sending=policy(max_attempts=1)):
        await eventually(lambda: rows_are(connection, 2, "last_error = 'blocked' and send_after = 'infinity'"))
        await publish(connection, "a", "a4")
        await eventually(lambda: rows_are(connection, 3, "last_error = 'blocked'"))
        transport.answer = lambda message: CONFIRMED
        await connection.execute(
            "update outbox_table set failed_at = null, last_error = null, attempts = 0, send_after = now() "
            "where failed_at is not null"
        )
        await connection.execute("insert into outbox_table (routing_key, body) values ('bell', '')")
        await eventually(lambda: rows_are(connection, 0))
    assert without(transport.routing_keys, "bell") == ["bad", "bad", "a2", "a3", "a4"]
