"""A held row shows since when it is unroutable: since the first time, until it is no longer held."""

from datetime import datetime, timedelta

import asyncpg
import pytest

from outbox.core.message import Message
from outbox.core.outcome import Failure
from outbox.ports import CONFIRMED, UNROUTABLE, Refused, SendResult
from tests.relay.support import INSERT, ScriptedTransport, by, facts_on, policy, publish, relaying, rows_are
from tests.support.eventually import eventually

HELD = "last_error = 'unroutable' and held_at is not null"
REFUSED = Refused(Failure("Nacked", "no"))


async def times(connection: asyncpg.Connection) -> list[datetime | None]:
    return [row["held_at"] for row in await connection.fetch("select held_at from outbox_table order by id")]


async def clock(connection: asyncpg.Connection) -> datetime:
    now: datetime = await connection.fetchval("select clock_timestamp()")
    return now


async def test_the_time_is_that_of_the_first_refusal_however_often_the_probe_fails(
    url: str, connection: asyncpg.Connection
) -> None:
    transport = ScriptedTransport(lambda message: UNROUTABLE)
    await connection.execute(INSERT, "k")
    await connection.execute("update outbox_table set created_at = now() - interval '1 day'")
    before = await clock(connection)
    async with relaying(url, transport):
        await connection.execute(INSERT, "k")
        await eventually(lambda: rows_are(connection, 2, HELD))
        first = await times(connection)
        after = await clock(connection)
        await eventually(lambda: transport.routing_keys.count("k") >= 4)
        assert await times(connection) == first
    assert all(time is not None and before <= time <= after for time in first)


@pytest.mark.parametrize("has_history", [False, True], ids=["alone", "with a history"])
async def test_a_message_that_was_sent_and_is_kept_is_not_held_any_more(
    url: str, connection: asyncpg.Connection, has_history: bool
) -> None:
    transport = ScriptedTransport(lambda message: UNROUTABLE)
    facts = await facts_on(connection) if has_history else None
    async with relaying(url, transport, keep_sent=True, facts=facts):
        await connection.execute("insert into outbox_table (routing_key, body) select 'k', '' from generate_series(1, 5)")
        await eventually(lambda: rows_are(connection, 5, HELD))
        transport.answer = lambda message: CONFIRMED
        await eventually(lambda: rows_are(connection, 5, "sent_at is not null"))
    assert await times(connection) == [None] * 5


async def test_released_and_unroutable_again_it_is_held_since_then(url: str, connection: asyncpg.Connection) -> None:
    """The probe finds the queue, and those that it releases come too late."""
    transport = ScriptedTransport(lambda message: UNROUTABLE)

    def found(message: Message) -> SendResult:
        transport.may_answer.clear()
        return CONFIRMED

    async with relaying(url, transport):
        await connection.execute("insert into outbox_table (routing_key, body) select 'k', '' from generate_series(1, 3)")
        await eventually(lambda: rows_are(connection, 3, HELD))
        transport.answer = found
        await eventually(lambda: rows_are(connection, 2, "last_error is null"))
        assert await times(connection) == [None, None]
        released = await clock(connection)
        transport.answer = lambda message: UNROUTABLE
        transport.may_answer.set()
        await eventually(lambda: rows_are(connection, 2, f"{HELD} and held_at > '{released}'"))


@pytest.mark.parametrize(("attempts", "state"), [(20, "attempts = 1 and failed_at is null"), (1, "failed_at is not null")])
async def test_a_message_that_the_broker_refuses_is_not_held_any_more(
    url: str, connection: asyncpg.Connection, attempts: int, state: str
) -> None:
    transport = ScriptedTransport(lambda message: UNROUTABLE)
    sending = policy(max_attempts=attempts, backoff=timedelta(minutes=1))
    async with relaying(url, transport, sending=sending):
        await connection.execute(INSERT, "k")
        await eventually(lambda: rows_are(connection, 1, HELD))
        transport.answer = lambda message: REFUSED
        await eventually(lambda: rows_are(connection, 1, state))
    assert await times(connection) == [None]


@pytest.mark.parametrize(("policy", "state"), [("block", "last_error = 'blocked'"), ("park", "failed_at is not null")])
async def test_a_message_that_is_behind_one_of_its_key_again_is_not_held_any_more(
    url: str, connection: asyncpg.Connection, policy: str, state: str
) -> None:
    await publish(connection, "a", "parked", "held")
    await connection.execute("update outbox_table set failed_at = now(), last_error = 'no' where routing_key = 'parked'")
    await connection.execute("update outbox_table set held_at = now(), last_error = 'unroutable' where routing_key = 'held'")
    async with relaying(url, ScriptedTransport(), ordering=by(rest=policy)):
        await eventually(lambda: rows_are(connection, 1, f"routing_key = 'held' and {state}"))
    assert await times(connection) == [None, None]
