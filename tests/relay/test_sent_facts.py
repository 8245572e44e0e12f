"""Sent messages are recorded in the history in the transaction that settles them. A failing history stops nothing."""

import logging

import asyncpg
import pytest

from outbox import MessageRelay
from outbox.core.events import HistoryLost
from outbox.ports import CONFIRMED, UNROUTABLE
from outbox.postgres.queries import TableName
from tests.relay.support import INSERT, Recorder, ScriptedTransport, facts_on, policy, relaying, rows_are, running
from tests.support.eventually import eventually

TABLE = TableName("outbox_table")


async def history(connection: asyncpg.Connection) -> list[tuple[object, ...]]:
    rows = await connection.fetch(
        "select fact, message_id, root_id, parent_id, routing_key, component, "
        "waited between interval '0' and interval '1 min' as waited from outbox_history order by message_id"
    )
    return [tuple(row) for row in rows]


@pytest.mark.parametrize("keep_sent", [False, True])
async def test_each_sent_message_is_a_fact(url: str, connection: asyncpg.Connection, keep_sent: bool) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, tracking_ids, ordering_key) values "
        """('a', '', '["root", "parent", "me"]', null), ('b', '', '["alone"]', 'k')"""
    )
    async with relaying(url, ScriptedTransport(), facts=await facts_on(connection), keep_sent=keep_sent):
        await eventually(lambda: rows_are(connection, 0, "sent_at is null"))
    assert await history(connection) == [
        ("sent", "alone", "alone", None, "b", "relay-1", True),
        ("sent", "me", "root", "parent", "a", "relay-1", True),
    ]


async def test_messages_that_are_all_roots_are_their_own_roots(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, tracking_ids) "
        """values ('a', '', '["first"]'), ('a', '', '["second"]')"""
    )
    async with relaying(url, ScriptedTransport(), facts=await facts_on(connection)):
        await eventually(lambda: rows_are(connection, 0))
    assert [row[1:4] for row in await history(connection)] == [("first", "first", None), ("second", "second", None)]


async def test_a_dropped_message_is_not_recorded_as_sent(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute(INSERT, "unbound")
    await connection.execute(INSERT, "bound")
    transport = ScriptedTransport(lambda message: UNROUTABLE if message.routing_key == "unbound" else CONFIRMED)
    async with relaying(url, transport, facts=await facts_on(connection), sending=policy(drop_unroutable=True)):
        await eventually(lambda: rows_are(connection, 0))
    assert [row[4] for row in await history(connection)] == ["bound"]


async def test_a_creation_time_that_has_no_age_is_no_obstacle(url: str, connection: asyncpg.Connection) -> None:
    for time in ("infinity", "-infinity", "4713-01-01 BC"):
        await connection.execute(
            "insert into outbox_table (routing_key, body, created_at) values ('a', '', $1::text::timestamptz)", time
        )
    async with relaying(url, ScriptedTransport(), facts=await facts_on(connection)):
        await eventually(lambda: rows_are(connection, 0))
    assert len(await history(connection)) == 3


async def test_a_history_that_is_gone_costs_no_message_and_no_second_sending(url: str, connection: asyncpg.Connection) -> None:
    recorder = Recorder()
    facts = await facts_on(connection, recorder)
    await connection.execute("drop table outbox_history")
    await connection.execute("insert into outbox_table (routing_key, body) select i::text, '' from generate_series(1, 120) i")
    transport = ScriptedTransport()
    async with relaying(url, transport, facts=facts, lanes=1):
        await eventually(lambda: rows_are(connection, 0))
    assert len(transport.sent) == 120
    assert [event.count for event in recorder.of(HistoryLost)] == [50]


async def test_a_relay_finds_the_history_or_says_that_there_is_none(
    url: str, connection: asyncpg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(MessageRelay(url, broker=ScriptedTransport(), name="the relay")):
        await connection.execute(INSERT, "a")
        await eventually(lambda: rows_are(connection, 0))
    assert [row[5] for row in await history(connection)] == ["the relay"]
    await connection.execute("drop table outbox_history")
    with caplog.at_level(logging.INFO, logger="outbox"):
        async with running(MessageRelay(url, broker=ScriptedTransport())):
            await connection.execute(INSERT, "a")
            await eventually(lambda: rows_are(connection, 0))
    assert len([record for record in caplog.records if "no history of sent messages" in record.message]) == 1
    assert not [record for record in caplog.records if record.levelno > logging.WARNING]


async def test_without_history_nothing_is_written(url: str, connection: asyncpg.Connection) -> None:
    async with running(MessageRelay(url, broker=ScriptedTransport(), history=False)):
        await connection.execute(INSERT, "a")
        await eventually(lambda: rows_are(connection, 0))
    assert await history(connection) == []
