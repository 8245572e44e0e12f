"""In a long backlog most claims go on where the last one ended; what came to lie before that is not left there."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import asyncpg
import pytest

from outbox import ensure_outbox_schema_async
from outbox.core.outcome import DONE, RETURNED
from outbox.postgres.claiming import FAIR_EVERY
from outbox.postgres.history import SentFacts
from outbox.postgres.index_positions import FRONT, ScanCursor
from outbox.postgres.pool import Pool, open_pool
from outbox.postgres.store import PostgresStore
from outbox.transports.postgres.handover import PostgresHandover
from outbox.transports.postgres.tables import TransportTables, pattern_of
from tests.relay.support import TABLE, Recorder, entries_read

BATCH = 100
ROUNDS = 3 * FAIR_EVERY


@pytest.fixture(autouse=True)
def _no_claim_counts_as_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is: all claims that are not lean begin at the front."""
    monkeypatch.setattr("outbox.postgres.index_positions.SLOW_SECONDS", math.inf)


Take = Callable[[], Awaitable[list[str]]]
"""Sends a batch; the routing keys of what was sent."""


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """With one connection, so that its statistics are complete before they are read."""
    await ensure_outbox_schema_async(database_url)
    pool = await open_pool(database_url, size=1, application_name="tests")
    await pool.execute("alter table outbox_table set (autovacuum_enabled = off)")
    bind = TransportTables(TABLE).queries("delivery.sql")["bind"]
    await pool.execute(bind, "outbox", "everything", "#", pattern_of("#"))
    yield pool
    await pool.close()


def handing_over(pool: Pool) -> Take:
    handover = PostgresHandover(pool, TABLE, exchange_name="outbox", keep_sent=False)

    async def take() -> list[str]:
        return [message.routing_key for message in (await handover.hand_over(BATCH)).messages]

    return take


def relaying(pool: Pool) -> Take:
    return take_from(PostgresStore(pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10)))


def relaying_with_history(pool: Pool) -> Take:
    facts = SentFacts(TABLE, "relay-1", Recorder())
    take = take_from(PostgresStore(pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10), facts=facts))

    async def look_and_take() -> list[str]:
        async with pool.acquire() as connection:
            await facts.look(connection)
        return await take()

    return look_and_take


def take_from(store: PostgresStore) -> Take:
    async def take() -> list[str]:
        claim = await store.claim(BATCH)
        if claim is None:
            return []
        async with claim:
            await claim.settle([DONE] * len(claim.messages))
        return [pending.message.routing_key for pending in claim.messages]

    return take


both = pytest.mark.parametrize("sending", [handing_over, relaying])


@both
async def test_only_fair_claims_read_past_what_is_gone(sending: Callable[[Pool], Take], pool: Pool, database_url: str) -> None:
    """While a transaction elsewhere keeps the dead rows in the index."""
    await fill(pool, ROUNDS * BATCH)
    take, reads = sending(pool), []
    old_snapshot = await asyncpg.connect(database_url)
    try:
        async with old_snapshot.transaction(isolation="repeatable_read"):
            await old_snapshot.execute("select from outbox_table limit 1")
            for _ in range(ROUNDS):
                before = await entries_read(pool, "outbox_table_due_idx")
                assert len(await take()) == BATCH
                reads.append(await entries_read(pool, "outbox_table_due_idx") - before)
    finally:
        await old_snapshot.close()
    lean = [read for number, read in enumerate(reads[1:], 2) if number % FAIR_EVERY]
    assert max(lean) <= 2 * BATCH
    assert reads[-1] >= (ROUNDS - 1) * BATCH


@pytest.mark.parametrize("sending", [handing_over, relaying, relaying_with_history])
async def test_a_fair_claim_reads_past_what_is_gone_only_once(sending: Callable[[Pool], Take], pool: Pool) -> None:
    """While no transaction elsewhere is older: the index notes which of its entries are dead, and the next claims skip them."""
    await fill(pool, ROUNDS * BATCH)
    take, reads = sending(pool), []
    for _ in range(ROUNDS):
        before = await entries_read(pool, "outbox_table_due_idx")
        assert len(await take()) == BATCH
        reads.append(await entries_read(pool, "outbox_table_due_idx") - before)
    assert max(reads) <= 2 * FAIR_EVERY * BATCH


@both
async def test_what_is_inserted_before_the_cursor_is_sent_by_the_next_fair_claim(
    sending: Callable[[Pool], Take], pool: Pool
) -> None:
    await fill(pool, ROUNDS * BATCH)
    take = sending(pool)
    await take()
    await pool.execute(
        "insert into outbox_table (routing_key, body, send_after) values ('late', '', now() - interval '1 hour')"
    )
    assert "late" in [key for _ in range(FAIR_EVERY) for key in await take()]


@both
async def test_what_is_more_important_is_sent_by_the_next_claim(sending: Callable[[Pool], Take], pool: Pool) -> None:
    await fill(pool, ROUNDS * BATCH)
    take = sending(pool)
    await take()
    await pool.execute("insert into outbox_table (routing_key, body, priority) values ('urgent', '', 9)")
    assert "urgent" in await take()


async def test_what_a_claim_gives_back_is_taken_again_before_the_backlog_ends(pool: Pool) -> None:
    await fill(pool, ROUNDS * BATCH)
    store = PostgresStore(pool, TABLE, keep_sent=False, longest_send=timedelta(seconds=10))
    given_back: set[int] = set()
    for number in range(1 + FAIR_EVERY):
        claim = await store.claim(BATCH)
        assert claim is not None
        taken = {pending.row_id for pending in claim.messages}
        if number == 1:
            given_back = taken
        async with claim:
            await claim.settle([RETURNED if number == 1 else DONE] * BATCH)
        if number > 1 and taken & given_back:
            return
    pytest.fail("it was not taken again")


def test_a_cursor_is_the_last_row_of_each_priority() -> None:
    cursor = ScanCursor(3)
    cursor.advance(2, 50.0, 7)
    cursor.advance(0, 40.0, 9)
    cursor.advance(2, 50.0, 8)
    assert cursor.position == ([40.0, FRONT, 50.0], [9, 0, 8])
    cursor.reset()
    assert cursor.position == ([FRONT] * 3, [0] * 3)


async def fill(pool: Pool, count: int) -> None:
    await pool.execute("insert into outbox_table (routing_key, body) select 'k', '' from generate_series(1, $1)", count)
    await pool.execute("analyze outbox_table")
