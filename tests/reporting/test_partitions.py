"""The history's partitions: created in advance, dropped when they are old, without blocking other work."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Self

import asyncpg
import pytest

from outbox import MessageRelay, Worker
from outbox.postgres import history
from outbox.postgres.history import drop_partitions, ensure_partitions
from outbox.postgres.pool import DRIVER_ERRORS
from tests.reporting.support import Box, at_work, published
from tests.support import eventually

_PARTS = """
    select relname, pg_get_expr(relpartbound, c.oid) as bound
    from pg_inherits join pg_class c on c.oid = inhrelid where inhparent = 'outbox_history'::regclass order by relname
"""

_DETACH = "alter table outbox_history detach partition outbox_history_default"


async def _wrote(connection: asyncpg.Connection, count: int, at: str = "now()") -> None:
    await connection.execute(
        "insert into outbox_history (at, fact, message_id, root_id, routing_key) "
        f"select {at}, 'sent', 'm' || number, 'm' || number, 'order.placed' from generate_series(1, {count}) as number"
    )


async def _where(connection: asyncpg.Connection) -> dict[str, int]:
    rows = await connection.fetch("select tableoid::regclass::text, count(*) from outbox_history group by 1")
    return dict(map(tuple, rows))


def _name(days: int) -> str:
    return f"outbox_history_p{datetime.now(UTC) + timedelta(days=days):%Y%m%d}"


async def test_partitions_are_made_ahead_and_once(connection: asyncpg.Connection) -> None:
    assert await ensure_partitions(connection, days_ahead=3) == 4
    assert await ensure_partitions(connection, days_ahead=3) == 0
    parts = dict(map(tuple, await connection.fetch(_PARTS)))
    assert sorted(parts) == sorted(["outbox_history_default", *(_name(days) for days in range(4))])
    await _wrote(connection, 3)
    await _wrote(connection, 2, "now() + interval '2 days'")
    await _wrote(connection, 1, "now() + interval '20 days'")
    assert await _where(connection) == {_name(0): 3, _name(2): 2, "outbox_history_default": 1}


async def test_a_partition_is_indexed_like_the_others(connection: asyncpg.Connection) -> None:
    await ensure_partitions(connection)
    valid = await connection.fetch(
        "select indexrelid::regclass::text, indisvalid from pg_index where indrelid = $1::regclass", _name(0)
    )
    assert len(valid) == 5
    assert all(row["indisvalid"] for row in valid)
    attached = "select count(*) from pg_inherits where inhparent = 'outbox_history_message_idx'::regclass"
    assert await connection.fetchval(attached) == 5


async def test_rows_of_the_default_partition_move_to_their_own_partitions(connection: asyncpg.Connection) -> None:
    await _wrote(connection, 5)
    await _wrote(connection, 2, "now() - interval '10 days'")
    assert await ensure_partitions(connection) == 4
    assert await _where(connection) == {_name(0): 5, "outbox_history_default": 2}


async def test_a_fact_that_is_written_while_its_day_gets_a_partition_waits_for_it(
    connection: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, watcher = [await asyncpg.connect(database_url) for _ in range(2)]
    writing: list[asyncio.Task[None]] = []

    async def run(self: history._Partitions, name: str, *arguments: Any) -> str:
        if name == "attach" and not writing:
            writing.append(asyncio.create_task(_wrote(writer, 3)))
            await eventually(lambda: watcher.fetchval("select exists(select from pg_locks where not granted)"))
        return await plain(self, name, *arguments)

    plain = history._Partitions._run
    monkeypatch.setattr(history._Partitions, "_run", run)
    try:
        assert await ensure_partitions(connection) == 4
        await asyncio.gather(*writing)
        assert await _where(connection) == {_name(0): 3}
    finally:
        await writer.close()
        await watcher.close()


@pytest.mark.parametrize("lost", ["drop table outbox_history_default", _DETACH])
@pytest.mark.parametrize("days_before", [0, 3])
async def test_a_default_partition_that_was_removed_by_hand_is_restored(
    connection: asyncpg.Connection, lost: str, days_before: int
) -> None:
    await ensure_partitions(connection, days_ahead=days_before)
    await _wrote(connection, 2, "now() - interval '10 days'")
    await connection.execute(lost)
    assert await ensure_partitions(connection) == 4 - days_before
    await _wrote(connection, 3)
    await _wrote(connection, 4, "now() + interval '20 days'")
    assert await _where(connection) == {_name(0): 3, "outbox_history_default": 4 + 2 * (lost == _DETACH)}
    assert await drop_partitions(connection, timedelta(days=1)) == (lost == _DETACH)
    indexes = "select count(*) from pg_inherits where inhparent = 'outbox_history_message_idx'::regclass"
    assert await connection.fetchval(indexes) == 5
    assert await connection.fetchval("select count(*) from pg_index where indrelid = 'outbox_history_default'::regclass") == 5


async def test_a_process_that_freezes_while_it_makes_a_partition_delays_writers_for_a_moment(
    connection: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "STATEMENT_TIMEOUT", timedelta(seconds=1))
    plain, locked, thawed = history._Partitions._run, asyncio.Event(), asyncio.Event()

    async def run(self: history._Partitions, name: str, *arguments: Any) -> str:
        if name == "attach":
            locked.set()
            await thawed.wait()
        return await plain(self, name, *arguments)

    monkeypatch.setattr(history._Partitions, "_run", run)
    writer = await asyncpg.connect(database_url)
    try:
        frozen = asyncio.create_task(ensure_partitions(connection))
        await locked.wait()
        await _wrote(writer, 3)
        thawed.set()
        with pytest.raises(DRIVER_ERRORS):
            await frozen
        assert await _where(writer) == {"outbox_history_default": 3}
    finally:
        await writer.close()


async def test_a_large_default_partition_becomes_one_of_its_own_without_being_copied(
    connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_STRAYS", 10)
    await _wrote(connection, 50)
    await _wrote(connection, 7, "now() + interval '1 day'")
    node = await connection.fetchval("select pg_relation_filenode('outbox_history_default')")
    assert await ensure_partitions(connection) == 5
    where = await _where(connection)
    [before] = [name for name in where if "before" in name]
    assert where == {before: 50, _name(1): 7}
    assert await connection.fetchval("select pg_relation_filenode($1::regclass)", before) == node
    await _wrote(connection, 1)
    assert (await _where(connection))[_name(0)] == 1
    assert await ensure_partitions(connection) == 0
    assert await drop_partitions(connection, timedelta(0)) == 1
    assert before not in await _where(connection)


@pytest.mark.parametrize("strays", [3, 50])
async def test_the_partition_of_today_is_attached_again_after_it_was_detached_by_hand(
    connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, strays: int
) -> None:
    monkeypatch.setattr(history, "MOST_STRAYS", 10)
    await ensure_partitions(connection)
    await _wrote(connection, 5)
    await connection.execute(f"alter table outbox_history detach partition {_name(0)}")
    await _wrote(connection, strays)
    await ensure_partitions(connection)
    where = await _where(connection)
    assert sum(where.values()) == 5 + strays
    assert "outbox_history_default" not in where
    await _wrote(connection, 1)
    assert _name(0) in await _where(connection)
    assert await ensure_partitions(connection) == 0


async def test_old_days_are_dropped_whole_and_old_strays_deleted(connection: asyncpg.Connection) -> None:
    await ensure_partitions(connection)
    await connection.execute(
        "create table outbox_history_p20200101 partition of outbox_history for values from ('2020-01-01Z') to ('2020-01-02Z')"
    )
    await _wrote(connection, 3, "timestamptz '2020-01-01 12:00Z'")
    await _wrote(connection, 2, "timestamptz '2020-02-01 12:00Z'")
    await _wrote(connection, 1)
    assert await drop_partitions(connection, timedelta(days=30)) == 2
    assert await drop_partitions(connection, timedelta(days=30)) == 0
    assert await _where(connection) == {_name(0): 1}


async def test_an_old_day_that_cannot_be_dropped_keeps_no_other_one(connection: asyncpg.Connection) -> None:
    for days in (-30, -29):
        day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=days)
        await connection.execute(
            f"create table {_name(days)} partition of outbox_history for values from ('{day}') to ('{day + timedelta(days=1)}')"
        )
    await _wrote(connection, 2 * history.BATCH, "now() - interval '40 days'")
    await connection.execute(f"create view report as select * from {_name(-30)}")
    assert await drop_partitions(connection, timedelta(days=14)) == 2
    assert await drop_partitions(connection, timedelta(days=14)) == 1
    with pytest.raises(asyncpg.DependentObjectsStillExistError, match=_name(-30)):
        await drop_partitions(connection, timedelta(days=14))
    assert [row["relname"] for row in await connection.fetch(_PARTS)] == ["outbox_history_default", _name(-30)]
    assert await _where(connection) == {}


async def test_a_wrong_clock_of_this_machine_drops_nothing(
    connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    class AMonthAhead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(days=30)

    await ensure_partitions(connection)
    await _wrote(connection, 3)
    monkeypatch.setattr(history, "datetime", AMonthAhead)
    assert await drop_partitions(connection, timedelta(days=14)) == 0
    assert await _where(connection) == {_name(0): 3}


@pytest.mark.parametrize("strays", [200, pytest.param(2_000_000, marks=[pytest.mark.chaos, pytest.mark.timeout(600)])])
async def test_publishing_relaying_and_reading_continue_while_partitions_change_next_to_a_long_reader(
    connection: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch, strays: int
) -> None:
    monkeypatch.setattr(history, "MOST_STRAYS", 100)
    await _wrote(connection, strays)
    reader, writer, watcher = [await asyncpg.connect(database_url) for _ in range(3)]
    relay = MessageRelay(database_url, broker=database_url, on_unroutable="drop")
    box = Box()
    try:
        async with at_work(relay, Worker(broker=database_url, consumers=[box.consumer])):
            await eventually(lambda: connection.fetchval("select exists(select from outbox_subscription)"))
            reading = reader.transaction()
            await reading.start()
            await reader.fetchval("select count(*) from outbox_history")
            put_off = await _alongside_writes(ensure_partitions(connection, days_ahead=1), writer, watcher, box)
            assert put_off == 0
            await reading.rollback()
            made = dropped = 0
            while made < 3:  # a vacuum of the large partition puts it off, too
                made += await _alongside_writes(ensure_partitions(connection, days_ahead=1), writer, watcher, box)
            while not dropped:
                dropped += await _alongside_writes(drop_partitions(connection, timedelta(0)), writer, watcher, box)
            assert made == 3
            assert not [name for name in await _where(connection) if "before" in name]
    finally:
        for each in (reader, writer, watcher):
            await each.close()


async def _alongside_writes(
    change: Coroutine[Any, Any, int], writer: asyncpg.Connection, watcher: asyncpg.Connection, box: Box
) -> int:
    """Returns the result of `change`. Meanwhile messages are published and handled, and no session waits long for a lock."""
    changing = asyncio.create_task(change)
    while True:
        done = changing.done()
        handled = len(box.bodies)
        await published(writer, body=handled)
        await eventually(lambda: len(box.bodies) > handled)  # noqa: B023  awaited here
        waits = "select max(clock_timestamp() - waitstart) from pg_locks where not granted and waitstart is not null"
        longest = await watcher.fetchval(waits)
        assert longest is None or longest < 10 * history.LOCK_TIMEOUT
        if done:
            return await changing


async def test_concurrent_processes_make_each_partition_once(connection: asyncpg.Connection, database_url: str) -> None:
    connections = [await asyncpg.connect(database_url) for _ in range(4)]
    try:
        made = await asyncio.gather(*(ensure_partitions(each) for each in connections), return_exceptions=True)
    finally:
        for each in connections:
            await each.close()
    assert sum(each for each in made if isinstance(each, int)) == 4
    assert not [error for error in made if not isinstance(error, int)]
