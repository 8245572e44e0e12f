"""The hand-over records since when a row is unroutable, as the relay does."""

from datetime import datetime, timedelta

import pytest

from outbox.postgres.pool import Pool
from tests.postgres_transport.support import bind, handover, insert

AT_ONCE = timedelta(0)


async def times(pool: Pool) -> list[datetime | None]:
    return [row["held_at"] for row in await pool.fetch("select held_at from outbox_table order by id")]


async def clock(pool: Pool) -> datetime:
    now: datetime = await pool.fetchval("select clock_timestamp()")
    return now


@pytest.mark.parametrize("queue", [None, "gone"])
async def test_the_time_is_that_of_the_first_refusal_however_often_the_probe_fails(pool: Pool, queue: str | None) -> None:
    before = await clock(pool)
    for _ in range(3):
        await insert(pool, "a.b", target_queue=queue)
    await pool.execute("update outbox_table set created_at = now() - interval '1 day'")
    await handover(pool).hand_over(10)
    first, after = await times(pool), await clock(pool)
    assert all(time is not None and before <= time <= after for time in first)
    for _ in range(2):
        await pool.execute("update outbox_table set send_after = now()")
        assert len(await handover(pool).hand_over(10)) == 3
        assert await times(pool) == first


async def test_a_message_that_was_sent_and_is_kept_is_not_held_any_more(pool: Pool) -> None:
    await insert(pool, "a.b")
    await handover(pool, keep_sent=True).hand_over(10, first_probe=AT_ONCE)
    assert None not in await times(pool)
    await bind(pool, "mail", "a.*")
    await handover(pool, keep_sent=True).hand_over(10)
    assert await times(pool) == [None]


async def test_held_again_it_is_held_since_then(pool: Pool) -> None:
    """A row whose last error is another one was released, by whichever process, and was not held just before."""
    await insert(pool, "a.b")
    await handover(pool).hand_over(10)
    await pool.execute("update outbox_table set last_error = null, send_after = now()")
    released = await clock(pool)
    await handover(pool).hand_over(10)
    [again] = await times(pool)
    assert again is not None
    assert again > released


async def test_a_row_that_was_held_by_a_release_that_kept_no_time_gets_none_that_is_wrong(pool: Pool) -> None:
    await insert(pool, "a.b", last_error="unroutable")
    await handover(pool).hand_over(10)
    assert await times(pool) == [None]
