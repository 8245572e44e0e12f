"""Messages of one ordering key leave in the order of their ids, whatever becomes of one of them."""

from collections.abc import Callable, Sequence
from datetime import timedelta

import asyncpg
import pytest

from outbox.core.message import Message
from outbox.core.outcome import Failure
from outbox.engine.ordering import OrderingRules
from outbox.ports import CONFIRMED, UNROUTABLE, NotSent, Refused, SendResult
from tests.relay.support import ScriptedTransport, by, policy, publish, relaying, rows, rows_are
from tests.support.eventually import eventually

REFUSED = Refused(Failure("TooLarge", "no way"))
SOON = timedelta(milliseconds=300)


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
        await eventually(lambda: rows_are(connection, 0))
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
        await eventually(lambda: transport.routing_keys.count("bad") >= 3)
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


BLOCKED = "last_error = 'blocked' and send_after = 'infinity'"
REQUEUE = "update outbox_table set failed_at = null, last_error = null, attempts = 0, send_after = now() where routing_key = $1"
RING = "insert into outbox_table (routing_key, body) values ('bell', '')"


async def test_park_messages_behind_a_parked_one_are_parked_with_it(url: str, connection: asyncpg.Connection) -> None:
    await publish(connection, "a", "a1", "bad", *(f"a{number}" for number in range(3, 150)))
    transport = ScriptedTransport(refusing("bad"))
    async with relaying(url, transport, ordering=by(rest="park"), sending=policy(max_attempts=2, backoff=SOON)):
        await eventually(lambda: rows_are(connection, 148, "failed_at is not null"))
        await publish(connection, "a", "late")
        await publish(connection, "b", "b1")
        await eventually(lambda: rows_are(connection, 149, "failed_at is not null"))
        head = await connection.fetchval("select id from outbox_table where routing_key = 'bad'")
        behind = f"parked: behind outbox-{head}, an earlier message of its ordering key"
        assert await rows(connection, f"last_error = '{behind}' and attempts = 0") == 148
        transport.answer = lambda message: CONFIRMED
        for name in ("bad", "a3"):
            await connection.execute(REQUEUE, name)
            await connection.execute(RING)
            await eventually(lambda: transport.routing_keys[-1] == name or name in transport.routing_keys[-3:])  # noqa: B023  awaited here
    sent = without(transport.routing_keys, "bell", "b1")
    assert sent == ["a1", "bad", "bad", "bad", "a3"]


async def test_park_a_message_that_may_still_succeed_only_holds_back_its_key(url: str, connection: asyncpg.Connection) -> None:
    await publish(connection, "a", "bad", "a2")
    transport = ScriptedTransport(refusing("bad"))
    async with relaying(url, transport, ordering=by(rest="park"), sending=policy(backoff=SOON)):
        await eventually(lambda: transport.routing_keys.count("bad") >= 2)
        assert await rows(connection, "failed_at is not null") == 0
        transport.answer = lambda message: CONFIRMED
        await eventually(lambda: rows_are(connection, 0))
    assert transport.routing_keys[-2:] == ["bad", "a2"]


async def test_skip_a_refused_held_or_scheduled_message_is_set_aside_alone(url: str, connection: asyncpg.Connection) -> None:
    await publish(connection, "a", "a1", "bad", "unbound", "later", "a5", "a6")
    await connection.execute("update outbox_table set send_after = now() + interval '1 h' where routing_key = 'later'")
    answers: dict[str, SendResult] = {"bad": REFUSED, "unbound": UNROUTABLE}
    transport = ScriptedTransport(lambda message: answers.get(message.routing_key, CONFIRMED))
    async with relaying(url, transport, ordering=by(rest="skip"), sending=policy(max_attempts=1)):
        await eventually(lambda: rows_are(connection, 3))
        await publish(connection, "a", "a7")
        await eventually(lambda: "a7" in transport.routing_keys)
        assert await rows(connection, BLOCKED) == 0
    assert without(transport.routing_keys, "bad", "unbound") == ["a1", "a5", "a6", "a7"]


async def test_the_longest_prefix_of_a_key_decides(url: str, connection: asyncpg.Connection) -> None:
    for key in ("x", "orders:1", "orders:eu:1"):
        await publish(connection, key, f"bad {key}", f"good {key}")
    transport = ScriptedTransport(lambda message: REFUSED if message.routing_key.startswith("bad") else CONFIRMED)
    rules = OrderingRules.of("skip,orders:=block,orders:eu:=park")
    async with relaying(url, transport, ordering=rules, sending=policy(max_attempts=1)):
        await eventually(lambda: rows_are(connection, 1, BLOCKED))
        await eventually(lambda: rows_are(connection, 4, "failed_at is not null"))
        assert await rows(connection, f"routing_key = 'good orders:1' and {BLOCKED}") == 1
        assert await rows(connection, "routing_key = 'good orders:eu:1' and failed_at is not null") == 1
    assert [name for name in transport.routing_keys if name.startswith("good")] == ["good x"]


async def test_block_a_message_that_is_due_later_holds_back_its_key_until_it_is_due(
    url: str, connection: asyncpg.Connection
) -> None:
    await publish(connection, "a", "a1", "later", "a3")
    await connection.execute("update outbox_table set send_after = now() + interval '1 s' where routing_key = 'later'")
    transport = ScriptedTransport()
    async with relaying(url, transport):
        await eventually(lambda: rows_are(connection, 1, BLOCKED))
        assert transport.routing_keys == ["a1"]
        await eventually(lambda: rows_are(connection, 0))
    assert transport.routing_keys == ["a1", "later", "a3"]


async def test_block_an_unroutable_message_holds_back_its_key_until_its_queue_appears(
    url: str, connection: asyncpg.Connection
) -> None:
    await publish(connection, "a", "unbound", "a2")
    await publish(connection, "b", "unbound", "b2")
    transport = ScriptedTransport(lambda message: UNROUTABLE if message.routing_key == "unbound" else CONFIRMED)
    async with relaying(url, transport):
        await eventually(lambda: rows_are(connection, 2, "last_error = 'unroutable'"))
        await eventually(lambda: rows_are(connection, 2, BLOCKED))
        transport.answer = lambda message: CONFIRMED
        await eventually(lambda: rows_are(connection, 0))
    assert sorted(transport.routing_keys[-4:]) == ["a2", "b2", "unbound", "unbound"]
    assert transport.routing_keys.index("a2") > transport.routing_keys.index("unbound")


async def test_what_comes_after_a_message_that_may_have_arrived_waits_for_its_second_sending(
    url: str, connection: asyncpg.Connection
) -> None:
    await publish(connection, "a", "a1", "a2", "a3")
    away = NotSent(Failure("Gone", "away"))
    transport = ScriptedTransport(lambda message: away if message.routing_key == "a2" else CONFIRMED)
    async with relaying(url, transport):
        await eventually(lambda: transport.routing_keys.count("a2") >= 2)
        transport.answer = lambda message: CONFIRMED
        await eventually(lambda: rows_are(connection, 0))
    assert list(dict.fromkeys(transport.routing_keys)) == ["a1", "a2", "a3"]
    assert transport.routing_keys[-1] == "a3"
    assert transport.routing_keys.count("a3") == 1


@pytest.mark.parametrize(
    "removal",
    ["delete from outbox_table where id = $1", "update outbox_table set sent_at = now(), failed_at = null where id = $1"],
)
async def test_a_key_whose_first_message_was_taken_away_by_hand_goes_on(
    url: str, connection: asyncpg.Connection, removal: str
) -> None:
    await publish(connection, "a", "bad", "a2", "a3")
    head = await connection.fetchval("select min(id) from outbox_table")
    transport = ScriptedTransport(refusing("bad"))
    async with relaying(url, transport, sending=policy(max_attempts=1)):
        await eventually(lambda: rows_are(connection, 2, BLOCKED))
    await connection.execute(removal, head)
    async with relaying(url, transport):  # looks after what was orphaned when it starts, and every few seconds
        await eventually(lambda: transport.routing_keys == ["bad", "a2", "a3"])


async def test_keys_that_must_wait_do_not_hide_those_that_need_not(url: str, connection: asyncpg.Connection) -> None:
    """More than a claim looks at, of one key that is stuck and of one that is merely long, and behind them all the others."""
    await publish(connection, "stuck", "bad")
    await connection.execute(
        "insert into outbox_table (routing_key, body, ordering_key) select 'no', '', 'stuck' from generate_series(1, 8000)"
    )
    await connection.execute(
        "insert into outbox_table (routing_key, body, ordering_key) select 'long', '', 'long' from generate_series(1, 8000)"
    )
    await connection.execute(
        "insert into outbox_table (routing_key, body, ordering_key) select 'short', '', i::text from generate_series(1, 300) i"
    )
    transport = ScriptedTransport(refusing("bad"))
    async with relaying(url, transport, sending=policy(max_attempts=1)):
        await eventually(lambda: transport.routing_keys.count("short") == 300)
        assert transport.routing_keys.count("long") < 4000
    assert "no" not in transport.routing_keys


async def test_rows_with_keys_and_without_share_a_busy_relay(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_table (routing_key, body) select 'plain', '' from generate_series(1, 5000)")
    await connection.execute(
        "insert into outbox_table (routing_key, body, ordering_key) select 'keyed', '', i::text from generate_series(1, 300) i"
    )
    transport = ScriptedTransport()
    async with relaying(url, transport, batch_size=50):
        await eventually(lambda: rows_are(connection, 0))
    keyed = [place for place, name in enumerate(transport.routing_keys) if name == "keyed"]
    assert keyed[0] < 200
    assert keyed[-1] < 1500


async def test_two_relays_share_the_keys_and_keep_each_in_order(url: str, connection: asyncpg.Connection) -> None:
    order: list[int] = []
    transports = [ScriptedTransport(), ScriptedTransport()]
    for transport in transports:
        transport.answer = lambda message: order.append(int(message.routing_key)) or CONFIRMED  # type: ignore[func-returns-value]
    async with relaying(url, transports[0]), relaying(url, transports[1]):
        await connection.execute(
            "insert into outbox_table (routing_key, body, ordering_key) "
            "select i::text, '', 'k' || i % 20 from generate_series(1, 4000) i"
        )
        await eventually(lambda: rows_are(connection, 0))
    for key in range(20):
        assert [number for number in order if number % 20 == key] == [n for n in range(1, 4001) if n % 20 == key]
    assert all(transport.sent for transport in transports)
