"""What maintenance keeps in order, and what it leaves alone."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import pytest

from outbox.dead_letters import DeadLetterFilter, DeadLetters
from outbox.errors import ConfigurationError, SchemaError
from outbox.maintenance import Maintenance
from outbox.schema import ensure_outbox_schema_async
from tests.servers.rabbitmq import OwnRabbitMQ
from tests.support import eventually

_LETTER = """
    insert into outbox_dead_letter (source, exchange, queue, routing_key, body, tracking_ids, created_at, attempt, cause,
        exception_type, exception_message, exception_traceback, status, resolved_at)
    values ('worker', 'e', 'q', $1, '', '["a"]', now(), 1, 'rejected', 'E', '', '', $2, now() - $3::interval)
"""
_COMPONENT = """
    insert into outbox_component (id, kind, name, host, process_id, version, seen_at, every)
    values ($1, 'worker', 'w', 'h', 1, '1', now() - $2::interval, interval '5 s')
"""


@asynccontextmanager
async def maintained(database_url: str, **options: object) -> AsyncIterator[Maintenance]:
    maintenance = Maintenance(database_url, enable_metrics=False, **options)  # type: ignore[arg-type]
    running = asyncio.create_task(maintenance.run(handle_signals=False))
    try:
        yield maintenance
    finally:
        maintenance.stop()
        await running


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def test_old_marks_are_pruned_in_batches_and_young_ones_stay(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute("""
        insert into outbox_inbox (queue, message_id, processed_at)
        select 'q', n::text, now() - interval '31 days' from generate_series(1, 2500) as n
        union all
        select 'q', 'young', now() - interval '29 days'
    """)
    async with maintained(database_url):
        await eventually(lambda: _is(connection, "select count(*) from outbox_inbox", 1))
    assert await connection.fetchval("select message_id from outbox_inbox") == "young"


async def test_old_resolved_dead_letters_and_lost_components_are_pruned(
    connection: asyncpg.Connection, database_url: str
) -> None:
    old, young = timedelta(days=91), timedelta(days=89)
    for name, status, age in (("a", "requeued", old), ("b", "discarded", old), ("c", "discarded", young), ("d", "open", old)):
        await connection.execute(_LETTER, name, status, age)
    await connection.execute(_COMPONENT, "lost", timedelta(days=2))
    await connection.execute(_COMPONENT, "alive", timedelta(seconds=3))
    await connection.execute("insert into outbox_control (scope, until) values ('relay', now() - interval '2 days')")
    async with maintained(database_url):
        await eventually(lambda: _is(connection, "select count(*) from outbox_dead_letter", 2))
        await eventually(lambda: _is(connection, "select count(*) from outbox_component where id in ('lost', 'alive')", 1))
        await eventually(lambda: _is(connection, "select count(*) from outbox_control", 0))
    kept = await connection.fetch("select routing_key from outbox_dead_letter order by 1")
    assert [row[0] for row in kept] == ["c", "d"]


async def test_resolved_dead_letters_are_kept_forever_if_asked(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute(_LETTER, "a", "discarded", timedelta(days=1_000))
    await connection.execute("insert into outbox_control (scope, until) values ('relay', now() - interval '2 days')")
    async with maintained(database_url, dead_letter_retention=None):
        await eventually(lambda: _is(connection, "select count(*) from outbox_control", 0))
    assert await connection.fetchval("select count(*) from outbox_dead_letter") == 1


async def test_partitions_of_the_history_are_made_ahead_and_dropped_when_they_are_old(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await connection.execute("""
        create table outbox_history_p20200101 partition of outbox_history
        for values from ('2020-01-01 00:00:00+00') to ('2020-01-02 00:00:00+00')
    """)
    query = "select count(*) from pg_inherits where inhparent = 'outbox_history'::regclass"
    async with maintained(database_url):
        await eventually(lambda: _is(connection, query, 5))  # today, three days ahead, the default
    assert await connection.fetchval("select to_regclass('outbox_history_p20200101')") is None


async def test_an_unavailable_broker_is_reported_once_and_its_return_too(
    connection: asyncpg.Connection, database_url: str, own_rabbitmq: OwnRabbitMQ, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "outbox")
    await connection.execute(_LETTER, "a", "open", timedelta(days=1))
    own_rabbitmq.stop()
    async with DeadLetters(database_url, broker=own_rabbitmq.url) as letters:
        await letters.requeue(DeadLetterFilter(), force=True)

    def count_logged(text: str) -> int:
        return sum(text in record.getMessage() for record in caplog.records)

    async with maintained(database_url, broker=own_rabbitmq.url):
        postponed = "select count(*) from outbox_operation where finished_at is null and continue_at > now()"
        await eventually(lambda: _is(connection, postponed, 1))
        await connection.execute("update outbox_operation set continue_at = now()")
        await eventually(lambda: _is(connection, postponed, 1))
        assert (count_logged("lost the broker"), count_logged("operations failed")) == (1, 0)
        own_rabbitmq.start()
        await connection.execute("update outbox_operation set continue_at = now()")
        await eventually(lambda: count_logged("the broker is back") == 1)
    assert count_logged("lost the broker") == 1


async def test_what_it_does_is_seen_among_the_components(connection: asyncpg.Connection, database_url: str) -> None:
    async with maintained(database_url, name="janitor"):
        query = "select count(*) from outbox_component where kind = 'maintenance' and name = 'janitor' and stopped_at is null"
        await eventually(lambda: _is(connection, query, 1))
        await eventually(lambda: _is(connection, "select count(*) from outbox_lease where holder = 'janitor'", 1))
        state = "select count(*) from outbox_component where activity->>'state' = "
        await eventually(lambda: _is(connection, f"{state} 'running'", 1))
        async with maintained(database_url, name="another"):
            await eventually(lambda: _is(connection, f"{state} 'standing by'", 1))
    assert await connection.fetchval("select stopped_at from outbox_component") is not None


async def test_missing_tables_need_nothing(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute(
        "drop table outbox_history, outbox_stats, outbox_component, outbox_operation_item, outbox_operation"
    )
    await connection.execute("""
        insert into outbox_inbox (queue, message_id, processed_at) values ('q', '1', now() - interval '31 days')
    """)
    async with maintained(database_url):
        await eventually(lambda: _is(connection, "select count(*) from outbox_inbox", 0))


async def test_without_the_outbox_table_it_says_what_to_do(database_url: str) -> None:
    with pytest.raises(SchemaError, match="outbox migrate"):
        await Maintenance(database_url, enable_metrics=False).run(handle_signals=False)


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ConfigurationError):
        Maintenance()
    with pytest.raises(ConfigurationError, match="inbox_retention"):
        Maintenance("postgresql://db/", inbox_retention=-1)


async def _is(connection: asyncpg.Connection, query: str, expected: int) -> bool:
    return bool(await connection.fetchval(query) == expected)
