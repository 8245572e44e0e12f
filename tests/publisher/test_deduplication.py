"""A dedup key names one logical event or timer: while a message with it is pending, another is ignored or takes its place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from outbox import BoundPublisher, OutboxMessage, Publisher
from outbox.errors import ConfigurationError, TransactionRequiredError, UnsupportedHandleError
from tests.publisher.onlooker import Onlooker
from tests.publisher.ways import Way, asyncpg_connection, done

pytestmark = pytest.mark.slow

publisher = Publisher()


async def _committed(way: Way, url: str, *args: Any, **keywords: Any) -> str | None:
    async with way(url) as opened:
        answer: str | None = await done(publisher.publish(opened.handle, *args, **keywords))
        await done(opened.commit())
    return answer


async def _cancelled(way: Way, url: str, dedup_key: str) -> bool:
    async with way(url) as opened:
        answer: bool = await done(publisher.cancel(opened.handle, dedup_key))
        await done(opened.commit())
    return answer


@asynccontextmanager
async def in_flight(url: str, where: str = "true") -> AsyncIterator[None]:
    """Rows that are locked, as by a relay that waits for its broker."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute(f"select from outbox_table where {where} for update")
            yield
    finally:
        await connection.close()


# --- ignore ------------------------------------------------------------------------------------------------------------


async def test_while_one_is_pending_another_is_ignored_and_has_no_id(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    first = await _committed(way, outbox_url, "reminder", {"n": 1}, dedup_key="reminder 7", eta=60_000)
    second = await _committed(way, outbox_url, "reminder", {"n": 2}, dedup_key="reminder 7")
    other = await _committed(way, outbox_url, "reminder", {"n": 3}, dedup_key="reminder 8")

    assert second is None
    assert await onlooker.ids() == [first, other]
    assert [row["dedup_key"] for row in await onlooker.rows()] == ["reminder 7", "reminder 8"]


# --- replace -----------------------------------------------------------------------------------------------------------


async def test_one_that_replaces_takes_the_place_of_the_pending_one(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    first = await _committed(way, outbox_url, "saved", {"n": 1}, dedup_key="document", eta=60_000, headers={"a": 1})
    second = await _committed(way, outbox_url, "saved.again", b"2", dedup_key="document", on_conflict="replace", eta=120_000)

    row = await onlooker.row()
    assert second is not None
    assert second != first
    assert row["tracking_ids"] == [second]
    assert (row["routing_key"], row["body"], row["headers"]) == ("saved.again", b"2", None)
    assert row["send_after"] - row["created_at"] >= timedelta(seconds=120)


async def test_nothing_pending_needs_no_replacing(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    only = await _committed(way, outbox_url, "saved", {}, dedup_key="document", on_conflict="replace")

    assert await onlooker.ids() == [only]


# --- cancel ------------------------------------------------------------------------------------------------------------


async def test_cancelling_withdraws_what_is_pending_and_says_so(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    await _committed(way, outbox_url, "reminder", {}, dedup_key="reminder 7", eta=60_000)
    kept = await _committed(way, outbox_url, "reminder", {}, dedup_key="reminder 8", eta=60_000)

    assert await _cancelled(way, outbox_url, "reminder 7") is True
    assert await _cancelled(way, outbox_url, "reminder 7") is False
    assert await onlooker.ids() == [kept]


# --- in one call -------------------------------------------------------------------------------------------------------


def _entry(number: int, key: str | None, on_conflict: Any = "ignore") -> OutboxMessage:
    return OutboxMessage("saved", {"n": number}, dedup_key=key, on_conflict=on_conflict)


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize(
    "entries",
    [
        ["ignore", "ignore"],
        ["replace", "ignore"],
        ["ignore", "replace"],
        ["replace", "replace", "ignore"],
        ["ignore", "replace", "ignore", "replace", "ignore"],
    ],
)
async def test_a_bulk_leaves_and_answers_what_one_after_another_would(
    pending: bool, entries: list[Any], outbox_url: str, onlooker: Onlooker
) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        handle, left = opened.handle, []
        for bulk in (False, True):
            await opened.execute("delete from outbox_table")
            if pending:
                await publisher.publish(handle, "saved", {"n": -1}, dedup_key="document")
            messages = [_entry(number, "document", on_conflict) for number, on_conflict in enumerate(entries)]
            messages.insert(1, _entry(100, None))
            messages.append(_entry(101, "another document"))
            if bulk:
                ids = await publisher.bulk_publish(handle, messages)
            else:
                ids = [(await publisher.bulk_publish(handle, [message]))[0] for message in messages]
            bodies = await handle.fetch("select convert_from(body, 'utf8') from outbox_table order by id")
            left.append(([id_ is None for id_ in ids], [body for (body,) in bodies]))

    one_by_one, in_bulk = left
    assert in_bulk == one_by_one


async def test_a_bulk_with_dedup_keys_keeps_its_order(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="5", eta=60_000)
    messages = [_entry(number, str(number), "replace" if number % 2 else "ignore") for number in range(200)]
    messages[100] = _entry(100, None)
    async with way(outbox_url) as opened:
        ids = await done(publisher.bulk_publish(opened.handle, messages))
        await done(opened.commit())

    assert await onlooker.ids() == ids
    assert [row["body"] for row in await onlooker.rows()] == [b'{"n": %d}' % number for number in range(200)]


# --- what is pending, and what is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    ["sent_at = now()", "failed_at = now(), last_error = 'too large'"],
    ids=["sent and kept", "parked"],
)
async def test_what_was_sent_or_parked_is_not_pending(change: str, outbox_url: str, onlooker: Onlooker) -> None:
    old = await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="document")
    await onlooker.connection.execute(f"update outbox_table set {change}")

    assert await _cancelled(asyncpg_connection, outbox_url, "document") is False
    new = await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="document")
    newer = await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="document", on_conflict="replace")

    assert new is not None
    assert await onlooker.ids() == [old, newer]


@pytest.mark.parametrize(
    "change",
    [
        "send_after = 'infinity', last_error = 'unroutable'",
        "send_after = now() + interval '1 minute', attempts = 3, last_error = 'nacked'",
    ],
    ids=["held", "backing off"],
)
async def test_what_waits_to_be_sent_again_is_pending(change: str, outbox_url: str, onlooker: Onlooker) -> None:
    await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="document")
    await onlooker.connection.execute(f"update outbox_table set {change}")

    assert await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="document") is None
    new = await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="document", on_conflict="replace")
    row = await onlooker.row()
    assert (row["tracking_ids"], row["attempts"], row["last_error"]) == ([new], 0, None)


async def test_duplicates_that_other_producers_inserted_are_replaced_together(outbox_url: str, onlooker: Onlooker) -> None:
    insert = "insert into outbox_table (routing_key, body, dedup_key) select 'saved', '', 'document' from generate_series(1, 3)"
    await onlooker.connection.execute(insert)
    new = await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="document", on_conflict="replace")
    assert await onlooker.ids() == [new]

    await onlooker.connection.execute(insert)
    assert await _cancelled(asyncpg_connection, outbox_url, "document") is True
    assert await onlooker.rows() == []


# --- transactions ------------------------------------------------------------------------------------------------------


async def test_a_rollback_gives_back_what_was_replaced_or_cancelled(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    replaced = await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="replaced")
    cancelled = await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="cancelled")
    async with way(outbox_url) as opened:
        await done(publisher.publish(opened.handle, "saved", {}, dedup_key="replaced", on_conflict="replace"))
        assert await done(publisher.cancel(opened.handle, "cancelled")) is True
        await done(opened.rollback())

    assert await onlooker.ids() == [replaced, cancelled]


async def test_a_savepoint_gives_back_what_was_replaced_or_cancelled_in_it(
    way: Way, outbox_url: str, onlooker: Onlooker
) -> None:
    cancelled = await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="cancelled")
    async with way(outbox_url) as opened:
        kept = await done(publisher.publish(opened.handle, "saved", {}, dedup_key="replaced"))
        await done(opened.execute("savepoint attempt"))
        await done(publisher.publish(opened.handle, "saved", {}, dedup_key="replaced", on_conflict="replace"))
        assert await done(publisher.cancel(opened.handle, "cancelled")) is True
        await done(opened.execute("rollback to savepoint attempt"))
        assert await done(publisher.publish(opened.handle, "saved", {}, dedup_key="replaced")) is None
        await done(opened.commit())

    assert await onlooker.ids() == [cancelled, kept]


async def test_a_transaction_replaces_and_cancels_what_it_published_itself(outbox_url: str, onlooker: Onlooker) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        bound = BoundPublisher(publisher, opened.handle)
        await bound.publish("saved", {"n": 1}, dedup_key="document")
        second = await bound.publish("saved", {"n": 2}, dedup_key="document", on_conflict="replace")
        assert second is not None
        assert await bound.cancel("document") is True
        third = await bound.publish("saved", {"n": 3}, dedup_key="document")
        await done(opened.commit())

    assert await onlooker.ids() == [third]


async def test_of_twenty_writers_with_one_key_one_message_is_left(outbox_url: str, onlooker: Onlooker) -> None:
    async with asyncpg.create_pool(outbox_url, min_size=20, max_size=20) as pool:

        async def write(number: int) -> str | None:
            async with pool.acquire() as connection, connection.transaction():
                return await publisher.publish(
                    connection, "saved", {"n": number}, dedup_key="document", on_conflict="replace" if number % 2 else "ignore"
                )

        ids = await asyncio.gather(*(write(number) for number in range(20)))

    (left,) = await onlooker.ids()
    assert left in ids
    assert ids.count(None) <= 10


async def test_of_twenty_writers_who_ignore_conflicts_one_has_published(outbox_url: str, onlooker: Onlooker) -> None:
    async with asyncpg.create_pool(outbox_url, min_size=20, max_size=20) as pool:

        async def write(number: int) -> str | None:
            async with pool.acquire() as connection, connection.transaction():
                return await publisher.publish(connection, "saved", {"n": number}, dedup_key="document")

        ids = await asyncio.gather(*(write(number) for number in range(20)))

    assert [id_ for id_ in ids if id_ is not None] == await onlooker.ids()
    assert len(await onlooker.ids()) == 1


async def test_batches_with_the_same_keys_in_any_order_do_not_wait_for_each_other_in_a_circle(
    outbox_url: str, onlooker: Onlooker
) -> None:
    keys = [f"document {number}" for number in range(30)]
    async with asyncpg.create_pool(outbox_url, min_size=8, max_size=8) as pool:

        async def write(turn: int) -> None:
            order = keys[turn:] + keys[:turn]
            async with pool.acquire() as connection, connection.transaction():
                await publisher.bulk_publish(connection, [_entry(turn, key, "replace") for key in order])

        await asyncio.gather(*(write(turn) for turn in range(24)))

    assert sorted(row["dedup_key"] for row in await onlooker.rows()) == sorted(keys)


async def test_what_met_a_pending_message_keeps_it_from_being_sent_before_the_commit(
    outbox_url: str, onlooker: Onlooker
) -> None:
    """Otherwise its handler could read the database before the second caller commits, without noticing."""
    await _committed(asyncpg_connection, outbox_url, "changed", {}, dedup_key="document")
    claim = "select id from outbox_table for update skip locked"
    async with asyncpg_connection(outbox_url) as opened:
        assert await publisher.publish(opened.handle, "changed", {}, dedup_key="document") is None
        assert await onlooker.connection.fetch(claim) == []
        await done(opened.commit())
    assert len(await onlooker.connection.fetch(claim)) == 1


# --- in flight ---------------------------------------------------------------------------------------------------------


async def test_a_message_in_flight_is_not_pending_and_is_not_waited_for(way: Way, outbox_url: str, onlooker: Onlooker) -> None:
    flying = await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="document")
    async with in_flight(outbox_url):
        assert await _cancelled(way, outbox_url, "document") is False
        first = await _committed(way, outbox_url, "saved", {}, dedup_key="document")
        second = await _committed(way, outbox_url, "saved", {}, dedup_key="document")
        third = await _committed(way, outbox_url, "saved", {}, dedup_key="document", on_conflict="replace")
        assert first is not None
        assert second is None
        assert await onlooker.ids() == [flying, third]
        assert await _cancelled(way, outbox_url, "document") is True
    assert await onlooker.ids() == [flying]


# --- with an ordering key ----------------------------------------------------------------------------------------------


LANE = """
    insert into outbox_table (routing_key, body, ordering_key, dedup_key, send_after, last_error) values
        ('timer', '0', 'other', null, 'infinity', 'blocked'),
        ('timer', '1', 'k', 'd', now() + interval '1 hour', null),
        ('timer', '2', 'k', null, 'infinity', 'blocked'),
        ('timer', '3', 'k', null, 'infinity', 'blocked')
"""


async def _blocked(onlooker: Onlooker) -> list[bytes]:
    return [row["body"] for row in await onlooker.rows() if row["last_error"] == "blocked"]


async def test_withdrawing_the_first_of_an_ordering_key_lets_the_next_one_go(
    way: Way, outbox_url: str, onlooker: Onlooker
) -> None:
    await onlooker.connection.execute(LANE)
    async with onlooker.asleep() as rings:
        assert await _cancelled(way, outbox_url, "d") is True
        assert await asyncio.wait_for(rings.get(), 30) == ""

    assert await _blocked(onlooker) == [b"0", b"3"]
    assert await onlooker.connection.fetchval(
        "select send_after <= now() and last_error is null from outbox_table where body = '2'"
    )


async def test_replacing_the_first_of_an_ordering_key_lets_the_next_one_go_and_comes_last(
    way: Way, outbox_url: str, onlooker: Onlooker
) -> None:
    await onlooker.connection.execute(LANE)
    await _committed(way, outbox_url, "timer", b"4", dedup_key="d", ordering_key="k", on_conflict="replace")

    assert await _blocked(onlooker) == [b"0", b"3"]
    assert [row["body"] for row in await onlooker.rows()] == [b"0", b"2", b"3", b"4"]


@pytest.mark.parametrize(
    "first",
    ["failed_at = now(), last_error = 'too large'", "send_after = now() + interval '1 minute'"],
    ids=["parked", "scheduled"],
)
async def test_what_waits_for_another_one_too_goes_on_waiting(first: str, outbox_url: str, onlooker: Onlooker) -> None:
    await onlooker.connection.execute(LANE)
    await onlooker.connection.execute(f"update outbox_table set dedup_key = null, {first} where body = '1'")
    await onlooker.connection.execute("update outbox_table set dedup_key = 'd' where body = '2'")

    assert await _cancelled(asyncpg_connection, outbox_url, "d") is True
    assert await _blocked(onlooker) == [b"0", b"3"]


# --- the doorbell ------------------------------------------------------------------------------------------------------


async def test_replacing_wakes_a_sleeper(outbox_url: str, onlooker: Onlooker) -> None:
    await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="document", eta=600_000)
    async with onlooker.asleep() as rings:
        await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="document", on_conflict="replace")
        assert await asyncio.wait_for(rings.get(), 30) == ""


# --- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dedup_key", ["", "a\0b", "ü" * 501, "\ud800", 7, None])
async def test_cancelling_refuses_what_is_no_key(dedup_key: Any, outbox_url: str) -> None:
    async with asyncpg_connection(outbox_url) as opened:
        with pytest.raises(ConfigurationError, match="dedup_key"):
            await publisher.cancel(opened.handle, dedup_key)
        assert await publisher.cancel(opened.handle, "document") is False


async def test_cancel_sync_works_for_sync_handles_and_refuses_async_ones(sync_way: Way, outbox_url: str) -> None:
    async with sync_way(outbox_url) as opened:
        assert publisher.cancel_sync(opened.handle, "document") is False
        with pytest.raises(UnsupportedHandleError, match="is not an async handle"):
            await publisher.cancel_async(opened.handle, "document")


async def test_cancel_async_works_for_async_handles_and_refuses_sync_ones(async_way: Way, outbox_url: str) -> None:
    async with async_way(outbox_url) as opened:
        assert await publisher.cancel_async(opened.handle, "document") is False
        with pytest.raises(UnsupportedHandleError, match="is an async handle"):
            publisher.cancel_sync(opened.handle, "document")


async def test_without_a_transaction_the_warning_names_the_locks(
    outbox_url: str, onlooker: Onlooker, caplog: pytest.LogCaptureFixture
) -> None:
    connection = await asyncpg.connect(outbox_url)
    await publisher.publish(connection, "saved", {}, dedup_key="document", eta=60_000)
    assert await publisher.cancel(connection, "document") is True
    await connection.close()

    warned_of_publishing, warned_of_cancelling = (record.getMessage() for record in caplog.records)
    assert warned_of_publishing.startswith("publishing ")
    assert warned_of_publishing.endswith("the locks of its keys are released at once, too, and protect nothing")
    assert warned_of_cancelling.startswith(
        "cancelling 'document' through asyncpg.connection.Connection without an open transaction"
    )


async def test_without_a_transaction_that_it_insists_on_nothing_is_cancelled(outbox_url: str, onlooker: Onlooker) -> None:
    id_ = await _committed(asyncpg_connection, outbox_url, "saved", {}, dedup_key="document", eta=60_000)
    connection = await asyncpg.connect(outbox_url)
    with pytest.raises(TransactionRequiredError, match="nothing was written"):
        await Publisher(require_transaction=True).cancel(connection, "document")
    await connection.close()
    assert await onlooker.ids() == [id_]
