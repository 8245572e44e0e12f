"""Ordering keys, priorities, stamps: what a row gets of them, and that a row without any costs what it did."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from outbox import HybridClock, OutboxMessage, Publisher
from outbox.postgres.handles import insert
from tests.publisher.onlooker import Onlooker
from tests.publisher.ways import Way, asyncpg_connection, done

HARD_KEY = "ключ.{a,b}.\"quoted\".'single'.\\back\\slash.null.NULL.%s.:name.$1.\n\ttab.😀"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def statements_of(connection: Any) -> list[str]:
    """What is executed on the outbox table from now on, the driver's own questions about types aside."""
    executed: list[str] = []

    def note(record: Any) -> None:
        if "outbox_table" in record.query:
            executed.append(record.query)

    connection.add_query_logger(note)
    return executed


async def _published(way: Way, url: str, publisher: Publisher, messages: list[OutboxMessage]) -> list[str | None]:
    async with way(url) as opened:
        ids: list[str | None] = await done(publisher.bulk_publish(opened.handle, messages))
        await done(opened.commit())
    return ids


# --- rows --------------------------------------------------------------------------------------------------------------


async def test_keys_priorities_and_stamps_survive_every_driver(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    stamp = int(time.time() * 1e6) + 3_600_000_000
    messages = [
        OutboxMessage("plain", b"\x00\xff"),
        OutboxMessage("ordered", {}, ordering_key=HARD_KEY, headers={"a": HARD_KEY}, expiration=1.5),
        OutboxMessage("urgent", {}, priority=9),
        OutboxMessage("both", {}, ordering_key="k" * 10_000, dedup_key=HARD_KEY, on_conflict="replace", eta=timedelta(days=1)),
    ]
    ids = await _published(way, outbox_url, Publisher(clock=HybridClock(wall_clock=lambda: stamp)), messages)

    rows = await onlooker.rows()
    assert [row["tracking_ids"] for row in rows] == [[id_] for id_ in ids]
    assert [row["routing_key"] for row in rows] == ["plain", "ordered", "urgent", "both"]
    assert [row["body"] for row in rows] == [b"\x00\xff", b"{}", b"{}", b"{}"]
    assert [row["headers"] for row in rows] == [None, {"a": HARD_KEY}, None, None]
    assert [row["expiration"] for row in rows] == [None, timedelta(seconds=1.5), None, None]
    assert [row["ordering_key"] for row in rows] == [None, HARD_KEY, None, "k" * 10_000]
    assert [row["dedup_key"] for row in rows] == [None, None, None, HARD_KEY]
    assert [row["priority"] for row in rows] == [0, 0, 9, 0]
    assert [row["hlc"] for row in rows] == [stamp, stamp + 1, stamp + 2, stamp + 3]


async def test_one_message_takes_the_same_options(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    publisher = Publisher()
    async with way(outbox_url) as opened:
        await done(publisher.publish(opened.handle, "urgent", {}, priority=3, dedup_key="d", on_conflict="replace"))
        await done(publisher.publish(opened.handle, "ordered", {}, ordering_key="k"))
        await done(opened.commit())

    urgent, ordered = await onlooker.rows()
    assert (urgent["priority"], urgent["dedup_key"], urgent["ordering_key"], urgent["hlc"]) == (3, "d", None, None)
    assert (ordered["priority"], ordered["dedup_key"], ordered["ordering_key"], ordered["hlc"]) == (0, None, "k", None)


async def test_a_stamped_message_is_not_due_before_its_stamp_s_time(outbox_url: str, onlooker: Onlooker) -> None:
    ahead = int(time.time() * 1e6) + 3_600_000_000
    behind = ahead - 7_200_000_000
    for now in (ahead, behind):
        publisher = Publisher(clock=HybridClock(wall_clock=lambda now=now: now))  # type: ignore[misc]
        await _published(
            asyncpg_connection, outbox_url, publisher, [OutboxMessage("a", {}), OutboxMessage("b", {}, eta=86_400_000)]
        )

    ahead_row, ahead_and_late, behind_row, behind_and_late = await onlooker.rows()
    assert ahead_row["send_after"] == EPOCH + timedelta(microseconds=ahead)
    assert ahead_and_late["send_after"] - ahead_and_late["created_at"] >= timedelta(days=1)
    assert behind_row["send_after"] == behind_row["created_at"]
    assert behind_and_late["send_after"] - behind_and_late["created_at"] >= timedelta(days=1)


async def test_what_is_refused_takes_no_stamp(outbox_url: str) -> None:
    clock = HybridClock(wall_clock=lambda: 1_000)
    async with asyncpg_connection(outbox_url) as opened:
        with pytest.raises(ValueError, match="cannot be serialised"):
            await Publisher(clock=clock).bulk_publish(opened.handle, [OutboxMessage("a", {}), OutboxMessage("b", object())])
    assert clock.next() == 1_000


async def test_more_than_a_statement_can_carry_is_split_under_the_same_locks(
    way: Way, outbox_url: str, onlooker: Onlooker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(insert, "STATEMENT_SIZE", 2500)
    messages = [
        OutboxMessage("key", b"x" * 1000, ordering_key="k", dedup_key=f"{number % 5}", on_conflict="replace")
        for number in range(20)
    ]
    ids = await _published(way, outbox_url, Publisher(serialize=True), messages)
    assert await onlooker.ids() == ids[15:]


# --- statements --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "keywords", "expected"),
    [
        ({}, {}, ["insert into"]),
        ({"serialize": True}, {}, ["insert into"]),
        ({}, {"ordering_key": "k"}, ["insert into"]),
        ({}, {"priority": 1}, ["insert into"]),
        ({"clock": "hlc"}, {}, ["insert into"]),
        ({"serialize": True}, {"ordering_key": "k"}, ["pg_advisory_xact_lock", "insert into"]),
        ({}, {"dedup_key": "d"}, ["pg_advisory_xact_lock", "insert into"]),
        ({"serialize": True}, {"ordering_key": "k", "dedup_key": "d"}, ["pg_advisory_xact_lock", "insert into"]),
    ],
)
async def test_an_option_costs_no_more_statements_than_it_needs(
    options: Any, keywords: Any, expected: list[str], outbox_url: str
) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        executed = statements_of(opened.handle)
        await Publisher(**options).bulk_publish(opened.handle, [OutboxMessage("a", {}, **keywords)] * 3)

    assert len(executed) == len(expected)
    assert all(part in statement for part, statement in zip(expected, executed, strict=True))


async def test_a_message_without_options_is_inserted_by_the_statement_without_them(outbox_url: str) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        executed = statements_of(opened.handle)
        await Publisher(serialize=True).publish(opened.handle, "a", {}, headers={"a": 1}, expiration=1, eta=5)

    (statement,) = executed
    assert statement.startswith(
        'insert into "outbox_table" (routing_key, body, content_type, tracking_ids, headers, expiration, send_after)\nselect\n'
    )


# --- serialize ---------------------------------------------------------------------------------------------------------


async def _insert_in_turn(outbox_url: str, publisher: Publisher, isolation: str) -> tuple[list[str], list[str]]:
    """Two transactions that publish with one key, the later one begun before the first has ended; who got on, and their ids."""
    first, second = await asyncpg.connect(outbox_url), await asyncpg.connect(outbox_url)
    order: list[str] = []

    async def later() -> None:
        async with second.transaction(isolation=isolation):  # type: ignore[arg-type]
            await second.execute("select 1 from outbox_table")
            await publisher.publish(second, "second", {}, ordering_key="k")
            order.append("second")

    async with first.transaction():
        await publisher.publish(first, "first", {}, ordering_key="k")
        task = asyncio.create_task(later())
        await asyncio.wait_for(_until_it_waits_or_is_done(first, second, task), 30)
        await publisher.publish(first, "first again", {}, ordering_key="k")
        order.append("first")
    await task
    rows = await first.fetch("select routing_key from outbox_table order by id")
    await first.close()
    await second.close()
    return order, [row["routing_key"] for row in rows]


async def _until_it_waits_or_is_done(onlooker: Any, other: Any, task: "asyncio.Task[None]") -> None:
    waiting = "select exists (select from pg_locks where pid = $1 and not granted)"
    while not task.done() and not await onlooker.fetchval(waiting, other.get_server_pid()):
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read", "serializable"])
async def test_ids_of_one_key_follow_commits_where_publishers_are_serialised(
    isolation: str, outbox_url: str, onlooker: Onlooker
) -> None:
    order, keys = await _insert_in_turn(outbox_url, Publisher(serialize=True), isolation)
    assert order == ["first", "second"]
    assert keys == ["first", "first again", "second"]


async def test_publishers_of_one_key_do_not_wait_for_each_other_unless_asked(outbox_url: str, onlooker: Onlooker) -> None:
    order, keys = await _insert_in_turn(outbox_url, Publisher(), "read_committed")
    assert order == ["second", "first"]
    assert keys == ["first", "second", "first again"]


async def test_publishers_of_different_keys_or_tables_do_not_wait_for_each_other(outbox_url: str, onlooker: Onlooker) -> None:
    await onlooker.connection.execute(
        "create schema if not exists other; create table other.outbox_table (like outbox_table including all)"
    )
    publishers = [Publisher(serialize=True), Publisher(serialize=True, table_name="other.outbox_table")]
    try:
        async with asyncpg_connection(outbox_url) as one, asyncpg_connection(outbox_url) as other:
            await publishers[0].publish(one.handle, "a", {}, ordering_key="k", dedup_key="d")
            await asyncio.wait_for(publishers[1].publish(other.handle, "a", {}, ordering_key="k", dedup_key="d"), 30)
            await asyncio.wait_for(publishers[0].publish(other.handle, "a", {}, ordering_key="d", dedup_key="k"), 30)
    finally:
        await onlooker.connection.execute("drop schema other cascade")


async def test_batches_with_the_same_ordering_keys_in_any_order_do_not_wait_in_a_circle(
    outbox_url: str, onlooker: Onlooker
) -> None:
    publisher, keys = Publisher(serialize=True), [f"k{number}" for number in range(30)]
    async with asyncpg.create_pool(outbox_url, min_size=8, max_size=8) as pool:

        async def write(turn: int) -> None:
            async with pool.acquire() as connection, connection.transaction():
                order = keys[turn:] + keys[:turn]
                await publisher.bulk_publish(connection, [OutboxMessage("a", {}, ordering_key=key) for key in order])

        await asyncio.gather(*(write(turn) for turn in range(24)))

    assert len(await onlooker.rows()) == 24 * 30
