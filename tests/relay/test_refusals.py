"""A database that answers, and refuses: reported once for each reason, tried again with pauses, and recovered without help."""

import asyncio
import time
from datetime import timedelta

import asyncpg

from outbox.core.events import Dependency, DependencyLost, DependencyRestored
from tests.relay.support import INSERT, RunningRelay, ScriptedTransport, relaying, rows_are
from tests.support.eventually import eventually


def reasons(relay: RunningRelay) -> list[str]:
    lost = relay.recorder.of(DependencyLost)
    return [event.reason for event in lost if isinstance(event, DependencyLost) and event.dependency is Dependency.DATABASE]


async def test_a_table_that_is_gone_is_named_and_when_it_is_back_all_goes_on(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport()
    async with relaying(url, transport, longest_nap=timedelta(milliseconds=100)) as relay:
        await connection.execute("alter table outbox_table rename to elsewhere")
        await eventually(lambda: any('relation "outbox_table" does not exist' in reason for reason in reasons(relay)))
        await connection.execute("alter table elsewhere rename to outbox_table")
        await connection.execute(INSERT, "after")
        await eventually(lambda: transport.routing_keys == ["after"])


async def test_each_reason_is_said_once_in_an_outage(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport()
    async with relaying(url, transport, longest_nap=timedelta(milliseconds=100), lanes=1) as relay:
        await connection.execute("alter table outbox_table rename to elsewhere")
        await eventually(lambda: any("UndefinedTable" in reason for reason in reasons(relay)))
        await connection.execute(
            "alter table elsewhere rename column body to corpus; alter table elsewhere rename to outbox_table"
        )
        await eventually(lambda: any("UndefinedColumn" in reason for reason in reasons(relay)))
        assert len(set(reasons(relay))) == len(reasons(relay))
        await connection.execute("alter table outbox_table rename column corpus to body")
        await eventually(lambda: relay.recorder.of(DependencyRestored))


async def test_outcomes_that_cannot_be_recorded_are_not_sent_again_and_again_without_pause(
    url: str, connection: asyncpg.Connection
) -> None:
    """Every claim succeeds and every settling fails: that the database answered the one does not excuse the other."""
    await connection.execute(
        "create function stubborn() returns trigger language plpgsql as 'begin raise exception ''no''; end'; "
        "create trigger stubborn before delete on outbox_table for each row execute function stubborn()"
    )
    transport = ScriptedTransport()
    await connection.execute(INSERT, "a")
    async with relaying(url, transport) as relay:
        await eventually(lambda: any("RaiseError: no" in reason for reason in reasons(relay)))
        await asyncio.sleep(3)
        assert len(transport.sent) < 15
        assert len(reasons(relay)) == 1
        assert relay.recorder.of(DependencyRestored) == []
        await connection.execute("drop trigger stubborn on outbox_table")
        await eventually(lambda: rows_are(connection, 0))
        await eventually(lambda: relay.recorder.of(DependencyRestored))


async def test_idle_relays_leave_the_database_alone_and_one_another_too(url: str, connection: asyncpg.Connection) -> None:
    """Each wants the lock of the bell; none may wake the others for it over and over."""
    async with relaying(url, ScriptedTransport()), relaying(url, ScriptedTransport()), relaying(url, ScriptedTransport()):
        await connection.execute(INSERT, "a")
        await eventually(lambda: rows_are(connection, 0))
        await asyncio.sleep(1)
        before, began = await transactions(url), time.monotonic()
        await asyncio.sleep(4)
        # A busy machine stretches the time, and housekeeping, every 15 seconds, may fall into it. Waking others: hundreds.
        assert await transactions(url) - before < 3 * (time.monotonic() - began + 10)


async def transactions(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        await asyncio.sleep(1.2)  # sessions report what they did a second later
        count: int = await connection.fetchval(
            "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"
        )
        return count
    finally:
        await connection.close()
