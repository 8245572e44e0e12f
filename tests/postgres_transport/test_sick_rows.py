"""A row that cannot be handed over, takes too long or is too large does not stop other rows."""

from collections.abc import AsyncIterator
from datetime import timedelta
from random import Random
from typing import Any, ClassVar

import asyncpg
import pytest

from outbox import ensure_outbox_schema_async
from outbox.core.byte_limits import ByteLimits
from outbox.core.outcome import Dead, Retry
from outbox.errors import DatabaseUnavailableError, StatementTimeoutError
from outbox.postgres.pool import Pool, open_pool
from outbox.retry import Backoff, RetryPolicy
from outbox.transports.postgres.handover import HandedMessage, HandoverRounds, HandoverState, PostgresHandover
from tests.contract.harness import EXCHANGE
from tests.postgres_transport.support import TABLE, bind, deliveries, insert
from tests.support import eventually

MIB = 1024 * 1024
GATE = 42
"""An advisory lock that stops the hand-over of a row."""


def handover(pool: Pool, *, max_attempts: int = 1, **options: object) -> PostgresHandover:
    backoff = Backoff(first=timedelta(hours=1), longest=timedelta(hours=1), max_attempts=max_attempts, random=Random(1))
    return PostgresHandover(
        pool,
        TABLE,
        exchange_name=EXCHANGE,
        keep_sent=False,
        retry=RetryPolicy(backoff),
        **options,  # type: ignore[arg-type]
    )


async def everything(moving: PostgresHandover, limit: int = 100) -> list[HandedMessage]:
    """Returns the results of hand-overs until one does nothing."""
    handed: list[HandedMessage] = []
    while step := (await moving.hand_over(limit)).messages:
        handed += step
    return handed


async def sizes(pool: Pool) -> list[int]:
    return [row["size"] for row in await pool.fetch("select octet_length(body) as size from outbox_table order by id")]


@pytest.fixture(autouse=True)
async def bound(pool: Pool) -> None:
    await bind(pool, "mail", "order.*")


@pytest.fixture
async def ascii_pool(database_url: str) -> AsyncIterator[Pool]:
    """A database with the encoding SQL_ASCII, which accepts any bytes as text."""
    outer = await asyncpg.connect(database_url)
    name = await outer.fetchval("select current_database() || '_ascii'")
    await outer.execute(f"create database {name} encoding 'SQL_ASCII' locale 'C' template template0")
    url = database_url.rpartition("/")[0] + f"/{name}"
    await ensure_outbox_schema_async(url)
    pool = await open_pool(url, size=5, application_name="tests")
    await bind(pool, "mail", "order.*")
    yield pool
    await pool.close()
    await outer.execute(f"drop database {name}")
    await outer.close()


class WithoutLimit(asyncpg.Connection):
    """Records the statements that would wait for ever for a server that vanished."""

    statements: ClassVar[list[str]] = []

    async def execute(self, query: str, *arguments: Any, timeout: float | None = None) -> str:
        if timeout is None:
            self.statements.append(query)
        return await super().execute(query, *arguments, timeout=timeout)

    async def fetch(self, query: str, *arguments: Any, timeout: float | None = None, **options: Any) -> Any:
        if timeout is None:
            self.statements.append(query)
        return await super().fetch(query, *arguments, timeout=timeout, **options)


async def test_every_statement_about_a_sick_row_has_a_time_limit_of_its_own(pool: Pool, database: str) -> None:
    """A given pool may have none."""
    await pool.execute(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$"
    )
    await pool.execute("create trigger refuse before insert on outbox_delivery for each row execute function refuse()")
    for ordering_key in (None, "1"):
        await insert(pool, "order.placed", ordering_key=ordering_key)
    WithoutLimit.statements.clear()
    async with asyncpg.create_pool(database, min_size=0, max_size=2, connection_class=WithoutLimit) as given:
        for max_attempts in (2, 1):
            await pool.execute("update outbox_table set send_after = now()")
            handed = await everything(handover(given, max_attempts=max_attempts))
            assert {message.state for message in handed} == {HandoverState.REFUSED}
    assert [each for each in WithoutLimit.statements if "pg_advisory_unlock_all" not in each] == []


@pytest.mark.parametrize("ordering_key", ["null", "i::text"])
async def test_a_row_with_invalid_text_is_parked_and_the_others_are_handed_over(ascii_pool: Pool, ordering_key: str) -> None:
    rows = f"insert into outbox_table (routing_key, body, ordering_key) select 'order.a', '', {ordering_key} "
    await ascii_pool.execute(f"{rows} from generate_series(1, 70) i")
    sick = await ascii_pool.fetchval(
        "insert into outbox_table (routing_key, body, ordering_key) select 'order.' || convert_from('\\xff', 'SQL_ASCII'), '', "
        f"{ordering_key} from generate_series(71, 71) i returning id"
    )
    await ascii_pool.execute(f"{rows} from generate_series(72, 150) i")
    handed = await everything(handover(ascii_pool))
    assert len(await ascii_pool.fetch("select from outbox_delivery")) == 149
    [refused] = [message for message in handed if message.state is HandoverState.REFUSED]
    assert (refused.row_id, isinstance(refused.refused, Dead)) == (sick, True)
    [row] = await ascii_pool.fetch("select id, attempts, failed_at is not null as parked, last_error from outbox_table")
    assert (row["id"], row["attempts"], row["parked"]) == (sick, 1, True)
    assert "invalid byte sequence" in row["last_error"]


async def refuse(pool: Pool, condition: str) -> None:
    """Creates a trigger that refuses deliveries."""
    await pool.execute(
        "create function refuse() returns trigger language plpgsql as "
        f"$$ begin if {condition} then raise exception 'not this one'; end if; return new; end $$"
    )
    await pool.execute("create trigger refuse before insert on outbox_delivery for each row execute function refuse()")


async def test_a_row_that_is_refused_backs_off_as_with_any_broker(pool: Pool) -> None:
    await refuse(pool, "new.routing_key = 'order.bad'")
    for routing_key in ("order.a", "order.bad", "order.b"):
        await insert(pool, routing_key)
    handed = await everything(handover(pool, max_attempts=2))
    assert [row["routing_key"] for row in await deliveries(pool)] == ["order.a", "order.b"]
    assert [type(message.refused) for message in handed if message.refused] == [Retry]
    row = await pool.fetchrow("select *, send_after > now() + interval '30 minutes' as later from outbox_table")
    assert row is not None
    assert (row["attempts"], row["failed_at"], row["later"], row["last_error"]) == (1, None, True, "RaiseError: not this one")
    await pool.execute("update outbox_table set send_after = now()")
    report = await (await HandoverRounds(handover(pool, max_attempts=2), exchange_name=EXCHANGE).start(10)).finish()  # type: ignore[union-attr]
    [failed] = report.failed
    assert (failed.type, isinstance(failed.outcome, Dead)) == ("refused", True)
    assert await pool.fetchval("select failed_at is not null from outbox_table")


async def test_a_row_that_is_refused_holds_up_its_key_and_no_other(pool: Pool) -> None:
    await refuse(pool, "new.routing_key = 'order.bad'")
    for key in ("a", "b", "c"):
        await insert(pool, "order.bad" if key == "b" else "order.a", ordering_key=key)
        await insert(pool, "order.b", ordering_key=key)
    await everything(handover(pool, max_attempts=2))
    assert sorted(row["ordering_key"] for row in await deliveries(pool)) == ["a", "a", "c", "c"]
    assert sorted(row["routing_key"] for row in await pool.fetch("select routing_key from outbox_table")) == [
        "order.b",
        "order.bad",
    ]


@pytest.mark.slow
async def test_many_enormous_routing_keys_are_handed_over_a_few_at_a_time(pool: Pool) -> None:
    """Together they exceed the size of a JSON object in PostgreSQL."""
    await pool.execute(
        "insert into outbox_table (routing_key, body) "
        "select 'order.' || i || repeat('x', 6000000), '' from generate_series(1, 50) i"
    )
    await insert(pool, "order.small")
    await everything(handover(pool, byte_limits=ByteLimits(batch=1024 * MIB)))
    assert await sizes(pool) == []
    assert len(await pool.fetch("select from outbox_delivery")) == 51


@pytest.mark.parametrize("ordering_key", [None, "key"])
async def test_a_message_above_the_limit_is_parked_and_the_others_are_handed_over(pool: Pool, ordering_key: str | None) -> None:
    large = await insert(pool, "order.large", b"x" * 5_000, ordering_key=ordering_key)
    await insert(pool, "order.small", b"x", ordering_key=ordering_key and "another key")
    moving = handover(pool, byte_limits=ByteLimits(batch=1_000, body=4_000))
    report = await (await HandoverRounds(moving, exchange_name=EXCHANGE).start(10)).finish()  # type: ignore[union-attr]
    await everything(moving)
    assert [row["routing_key"] for row in await deliveries(pool)] == ["order.small"]
    why = "too large: the message has more than the 4000 bytes of max_body_bytes"
    [row] = await pool.fetch("select id, last_error from outbox_table where failed_at is not null")
    assert (row["id"], row["last_error"]) == (large, why)
    assert [(failed.type, str(failed.failure), type(failed.outcome)) for failed in report.failed] == [("refused", why, Dead)]


@pytest.mark.parametrize("ordering_key", [None, "key"])
async def test_a_hand_over_ends_before_the_message_that_would_exceed_its_bytes(pool: Pool, ordering_key: str | None) -> None:
    for size in (400, 400, 400, 1_500, 100):
        await insert(pool, "order.a", b"x" * size, ordering_key=ordering_key)
    moving = handover(pool, byte_limits=ByteLimits(batch=1_000, body=4_000))
    counts = []
    while handed := (await moving.hand_over(100)).messages:
        counts.append(len(handed))
    assert counts == [2, 1, 1, 1]
    assert [len(row["body"]) for row in await deliveries(pool)] == [400, 400, 400, 1_500, 100]


async def slow_down(pool: Pool) -> None:
    """Makes each delivery take a tenth of a second."""
    await pool.execute(
        "create function slow_down() returns trigger language plpgsql as $$ begin perform pg_sleep(0.1); return new; end $$"
    )
    await pool.execute("create trigger slow before insert on outbox_delivery for each row execute function slow_down()")


@pytest.mark.parametrize("ordering_key", ["null", "i::text"])
async def test_a_hand_over_that_takes_too_long_is_rolled_back_and_smaller_ones_follow(
    pool: Pool, caplog: pytest.LogCaptureFixture, ordering_key: str
) -> None:
    await slow_down(pool)
    await pool.execute(
        f"insert into outbox_table (routing_key, body, ordering_key) select 'order.a', '', {ordering_key} "
        "from generate_series(1, 64) i"
    )
    moving = handover(pool, longest_statement=timedelta(seconds=1))
    assert (await moving.hand_over(64)).messages == []
    assert len(await sizes(pool)) == 64
    assert await deliveries(pool) == []
    counts = []
    while len(await deliveries(pool)) < 64:
        counts.append(len((await moving.hand_over(64)).messages))
    assert max(counts) <= 10
    assert len(counts) <= 40
    assert "took too long and was rolled back" in caplog.text


async def test_a_hand_over_that_takes_too_long_never_commits_late(pool: Pool) -> None:
    """The server has stopped the statement when the hand-over returns."""
    await pool.execute(
        "create function wait() returns trigger language plpgsql as "
        f"$$ begin perform pg_advisory_xact_lock_shared({GATE}); return new; end $$"
    )
    await pool.execute("create trigger wait before insert on outbox_delivery for each row execute function wait()")
    await insert(pool, "order.a")
    moving = handover(pool, longest_statement=timedelta(seconds=1))
    async with pool.acquire() as gate, gate.transaction():
        await gate.execute(f"select pg_advisory_xact_lock({GATE})")
        assert (await moving.hand_over(10)).messages == []
        assert await pool.fetchval("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") == 0
    assert await deliveries(pool) == []
    await eventually(lambda: _handed_over(moving))
    assert len(await deliveries(pool)) == 1


async def _handed_over(moving: PostgresHandover) -> bool:
    return bool((await moving.hand_over(10)).messages)


@pytest.mark.parametrize("ordering_key", [None, "key"])
async def test_a_row_that_takes_too_long_alone_is_parked(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, ordering_key: str | None
) -> None:
    monkeypatch.setattr("outbox.postgres.claiming.ALONE_TIMEOUT", timedelta(seconds=2))
    await pool.execute(
        "create function wait() returns trigger language plpgsql as "
        "$$ begin if new.routing_key = 'order.slow' then perform pg_sleep(60); end if; return new; end $$"
    )
    await pool.execute("create trigger wait before insert on outbox_delivery for each row execute function wait()")
    for number in range(8):
        await insert(pool, "order.slow" if number == 3 else "order.a", ordering_key=ordering_key and f"{ordering_key} {number}")
    moving = handover(pool, longest_statement=timedelta(seconds=1))

    async def all_but_one() -> bool:
        await moving.hand_over(8)
        return len(await deliveries(pool)) == 7 and bool(await pool.fetchval("select failed_at is not null from outbox_table"))

    await eventually(all_but_one, timeout=60)
    assert "took too long" in await pool.fetchval("select last_error from outbox_table")


@pytest.mark.parametrize("ordering_key", [None, "key"])
async def test_no_row_is_parked_because_another_session_has_locked_the_queues(
    pool: Pool, database: str, monkeypatch: pytest.MonkeyPatch, ordering_key: str | None
) -> None:
    monkeypatch.setattr("outbox.postgres.claiming.LOCK_TIMEOUT", timedelta(seconds=1))
    for number in range(8):
        await insert(pool, f"order.{number}", ordering_key=ordering_key and f"{ordering_key} {number}")
    await pool.execute(f"alter database {database.rpartition('/')[2]} set statement_timeout = '300ms'")
    impatient = await open_pool(database, size=3, application_name="tests")
    moving = handover(impatient)

    async def refused() -> bool:
        try:
            await moving.hand_over(8)
        except DatabaseUnavailableError as error:
            return "lock_timeout" in str(error)
        return False

    async with pool.acquire() as other, other.transaction():
        await other.execute("lock table outbox_delivery in share mode")
        for _ in range(2):
            await eventually(refused)
    assert await pool.fetchval("select count(*) from outbox_table where failed_at is null and attempts = 0") == 8
    await eventually(lambda: _all_handed_over(moving, pool, 8))
    await impatient.close()


@pytest.mark.parametrize("ordering_key", [None, "key"])
async def test_locked_queues_are_reported_by_the_first_hand_over_that_waits_for_them(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, ordering_key: str | None
) -> None:
    monkeypatch.setattr("outbox.postgres.claiming.LOCK_TIMEOUT", timedelta(seconds=1))
    for number in range(8):
        await insert(pool, f"order.{number}", ordering_key=ordering_key and f"{ordering_key} {number}")
    moving = handover(pool, longest_statement=timedelta(seconds=0.5))
    async with pool.acquire() as other, other.transaction():
        await other.execute("lock table outbox_delivery in share mode")
        with pytest.raises(StatementTimeoutError, match="lock_timeout"):
            await moving.hand_over(8)
    # Batches are as large as before: the messages are not what took long.
    assert len((await moving.hand_over(8)).messages) == 8


async def _all_handed_over(moving: PostgresHandover, pool: Pool, count: int) -> bool:
    await moving.hand_over(count)
    return len(await deliveries(pool)) == count


@pytest.mark.parametrize("ordering_key", [None, "key"])
async def test_a_row_that_is_refused_and_then_takes_too_long_is_given_more_time(pool: Pool, ordering_key: str | None) -> None:
    """It is refused in a batch and alone, and is slow in the transaction that has it locked."""
    await pool.execute("create sequence calls")
    await pool.execute(
        "create function wait() returns trigger language plpgsql as $$ begin if new.routing_key = 'order.slow' then "
        "if nextval('calls') <= 2 then raise exception 'not yet'; end if; perform pg_sleep(2); end if; return new; end $$"
    )
    await pool.execute("create trigger wait before insert on outbox_delivery for each row execute function wait()")
    for routing_key in ("order.slow", "order.a"):
        await insert(pool, routing_key, ordering_key=ordering_key and f"{ordering_key} {routing_key}")
    moving = handover(pool, longest_statement=timedelta(seconds=1))
    assert (await moving.hand_over(2)).messages == []
    handed = await everything(moving, 2)
    assert sorted(message.routing_key for message in handed) == ["order.a", "order.slow"]
    assert await sizes(pool) == []
