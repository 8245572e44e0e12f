"""What the admin wrote down is deleted when it is of no use any more, and not before."""

from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from outbox import ensure_outbox_schema_async
from outbox.postgres.pool import Pool, open_pool
from outbox.postgres.pruning import Pruning
from outbox.postgres.queries import TableName

DAY = timedelta(days=1)
FILL = """
insert into outbox_audit (at, actor, role, action, outcome)
select now() - n * interval '1 day', 'alice', 'operator', 'x', 'done' from generate_series(0, 9) as n;
insert into outbox_session (token_hash, login_hash, name, expires_at)
select decode(md5(n::text), 'hex'), '', 'alice', now() + (n - 4.5) * interval '1 hour' from generate_series(0, 9) as n;
insert into outbox_login_failure (bucket, window_ends_at, failures)
select n::text, now() + (n - 4.5) * interval '1 hour', 1 from generate_series(0, 9) as n;
insert into outbox_confirmation (token_hash, actor, request_hash, total, expires_at)
select decode(md5(n::text), 'hex'), 'alice', '', 1, now() + (n - 4.5) * interval '1 hour' from generate_series(0, 9) as n;
insert into outbox_idempotency (actor, key, request_hash, token, held_until, created_at)
select 'alice', n::text, '', gen_random_uuid(), now() + (n - 8.5) * interval '1 hour', now() - n * interval '1 day'
from generate_series(0, 9) as n;
"""


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    await ensure_outbox_schema_async(database_url)
    pool = await open_pool(database_url, size=2, application_name="test")
    await pool.execute(FILL)
    yield pool
    await pool.close()


@pytest.fixture
def pruning(pool: Pool) -> Pruning:
    return Pruning(pool, TableName("outbox_table"))


async def test_the_audit_log_is_kept_for_its_retention(pool: Pool, pruning: Pruning) -> None:
    assert await pruning.audit(4.5 * DAY, 3) == 3
    assert await pruning.audit(4.5 * DAY, 100) == 2
    assert await pool.fetchval("select count(*) from outbox_audit where at > now() - interval '4 days 1 hour'") == 5


@pytest.mark.parametrize("name", ["sessions", "login_failures", "confirmations"])
async def test_ended_rows_are_deleted_and_others_stay(pruning: Pruning, name: str) -> None:
    prune = getattr(pruning, name)
    assert [await prune(timedelta(0), 3), await prune(timedelta(0), 100), await prune(timedelta(0), 100)] == [3, 2, 0]


async def test_old_keys_go_but_not_those_that_are_held(pool: Pool, pruning: Pruning) -> None:
    assert await pruning.idempotency_keys(4.5 * DAY, 100) == 4
    rest: list[asyncpg.Record] = await pool.fetch("select key from outbox_idempotency order by key::int")
    assert [row["key"] for row in rest] == ["0", "1", "2", "3", "4", "9"]


async def test_a_missing_table_has_nothing_to_delete(pool: Pool, pruning: Pruning) -> None:
    await pool.execute("drop table outbox_audit, outbox_session, outbox_login_failure, outbox_confirmation, outbox_idempotency")
    prunings = (pruning.audit, pruning.sessions, pruning.login_failures, pruning.confirmations, pruning.idempotency_keys)
    assert [await prune(DAY, 1) for prune in prunings] == [0, 0, 0, 0, 0]


async def test_alerts_that_are_over_are_kept_as_long_as_the_audit_and_open_ones_longer(pool: Pool, pruning: Pruning) -> None:
    await pool.execute(
        "insert into outbox_alert (code, subject, severity, summary, fired_at, resolved_at) values "
        "('paused', 'old', 'warning', '', now() - interval '3 days', now() - interval '2 days'), "
        "('paused', 'ended late', 'warning', '', now() - interval '3 days', now() - interval '1 hour'), "
        "('paused', 'open', 'warning', '', now() - interval '3 days', null); "
        "insert into outbox_alert_delivery (alert_id, event, target, body) select id, 'fired', 'hooks', '{}' from outbox_alert"
    )
    assert await pruning.alerts(timedelta(days=1), 100) == 1
    rows = await pool.fetch(
        "select subject from outbox_alert join outbox_alert_delivery on alert_id = outbox_alert.id order by subject"
    )
    assert [row["subject"] for row in rows] == ["ended late", "open"]
