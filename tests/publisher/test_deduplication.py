"""A dedup key names one logical event or timer: while a message with it is pending, another is ignored or takes its place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from outbox import BoundPublisher, OutboxMessage, Publisher
from outbox.errors import ConfigurationError, UnsupportedHandleError
from tests.publisher.onlooker import Onlooker
from tests.publisher.ways import Opened, Way, asyncpg_connection, done, psycopg2_connection

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
    """Rows that somebody has locked, as a relay that is waiting for its broker has."""
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
