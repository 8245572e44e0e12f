"""Hand-overs within the database: atomic, each row once, and a bad row does not affect others."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import pytest

from outbox.errors import DatabaseUnavailableError, SchemaError
from outbox.postgres.history import SentFacts
from outbox.postgres.pool import Pool, open_pool
from outbox.postgres.queries import TableName
from outbox.transports.postgres.handover import HandoverState, PostgresHandover, same_database
from tests.contract.harness import EXCHANGE, Recorder
from tests.postgres_transport.support import TABLE, a_session_waits, bind, deliveries, handover, insert
from tests.servers.postgres import OwnPostgres
from tests.support import eventually

GATE = 42
"""An advisory lock that stops a statement in the middle."""


async def outbox(pool: Pool) -> list[asyncpg.Record]:
    return await pool.fetch("select * from outbox_table order by id")


async def test_a_row_moves_to_every_bound_queue_and_keeps_everything(pool: Pool) -> None:
    await bind(pool, "mail", "order.placed")
    await bind(pool, "stock", "order.*")
    await bind(pool, "other", "invoice.#")
    row_id = await insert(
        pool,
        "order.placed",
        b'{"id": 7}',
        tracking_ids='["root", "me"]',
        headers='{"tenant": "acme"}',
        content_type="application/json",
        ordering_key="customer-7",
    )
    created_at = await pool.fetchval("select created_at from outbox_table")

    handed = await handover(pool).hand_over(10)

    [message] = handed.messages
    assert (message.row_id, message.id, message.routing_key) == (row_id, "me", "order.placed")
    assert (message.state, message.was_held) == (HandoverState.SENT, False)
    assert timedelta(0) <= message.age < timedelta(seconds=10)
    assert await outbox(pool) == []
    rows = await deliveries(pool)
    assert sorted(row["queue"] for row in rows) == ["mail", "stock"]
    for row in rows:
        assert (row["exchange"], row["message_id"], row["routing_key"], row["body"]) == (
            EXCHANGE,
            "me",
            "order.placed",
            b'{"id": 7}',
        )
        assert json.loads(row["tracking_ids"]) == ["root", "me"]
        assert json.loads(row["headers"]) == {"tenant": "acme"}
        assert (row["content_type"], row["ordering_key"], row["created_at"]) == ("application/json", "customer-7", created_at)
        assert (row["attempt"], row["crashes"], row["expires_at"], row["lease_token"]) == (1, 0, None, None)


async def test_two_bindings_of_one_queue_that_match_give_one_delivery(pool: Pool) -> None:
    for binding_key in ("order.placed", "order.*", "#"):
        await bind(pool, "mail", binding_key)
    await insert(pool, "order.placed")
    await handover(pool).hand_over(10)
    assert len(await deliveries(pool)) == 1


async def test_bindings_of_another_exchange_do_not_count(pool: Pool) -> None:
    await bind(pool, "mail", "#", exchange="another")
    await insert(pool, "order.placed")
    [message] = (await handover(pool).hand_over(10)).messages
    assert message.state is HandoverState.HELD


async def test_rows_move_in_the_order_in_which_they_are_due(pool: Pool) -> None:
    await bind(pool, "mail", "#")
    for seconds in (30, 10, 20):
        await insert(pool, str(seconds))
        await pool.execute(
            "update outbox_table set send_after = now() - make_interval(secs => routing_key::float8) where routing_key = $1",
            str(seconds),
        )
    first = await handover(pool).hand_over(2)
    assert [message.routing_key for message in first.messages] == ["30", "20"]
    await handover(pool).hand_over(2)
    assert [row["routing_key"] for row in await deliveries(pool)] == ["30", "20", "10"]


async def test_rows_that_are_not_due_or_not_pending_stay(pool: Pool) -> None:
    await bind(pool, "mail", "#")
    await insert(pool, "later")
    await pool.execute("update outbox_table set send_after = now() + interval '1 hour'")
    await insert(pool, "sent")
    await pool.execute("update outbox_table set sent_at = now() where routing_key = 'sent'")
    await insert(pool, "parked")
    await pool.execute("update outbox_table set failed_at = now(), last_error = 'x' where routing_key = 'parked'")
    assert len(await handover(pool).hand_over(10)) == 0
    assert len(await outbox(pool)) == 3
    assert await deliveries(pool) == []


async def test_sent_rows_are_kept_where_asked(pool: Pool) -> None:
    await bind(pool, "mail", "#")
    await insert(pool, "order.placed", last_error="unroutable")
    [message] = (await handover(pool, keep_sent=True).hand_over(10)).messages
    assert (message.state, message.was_held) == (HandoverState.SENT, True)
    [row] = await outbox(pool)
    assert row["sent_at"] is not None
    assert row["last_error"] is None
    assert len(await handover(pool, keep_sent=True).hand_over(10)) == 0
    assert len(await deliveries(pool)) == 1


async def test_unroutable_rows_are_held_with_one_probe_for_each_key_and_nothing_spent(pool: Pool) -> None:
    for routing_key in ("a.b", "c.d", "a.b", "a.b", "c.d"):
        await insert(pool, routing_key)
    handed = await handover(pool).hand_over(10, probe_delays={"c.d": timedelta(seconds=80)}, first_probe=timedelta(seconds=40))
    assert {message.state for message in handed.messages} == {HandoverState.HELD}
    rows = await pool.fetch(
        "select *, send_after = 'infinity' as for_ever, "
        "extract(epoch from nullif(send_after, 'infinity') - now()) as seconds from outbox_table order by id"
    )
    assert {(row["last_error"], row["attempts"], row["failed_at"]) for row in rows} == {("unroutable", 0, None)}
    assert [row["for_ever"] for row in rows] == [False, False, True, True, True]
    assert 0 < rows[0]["seconds"] <= 40 < rows[1]["seconds"] <= 80


async def test_a_key_that_is_probed_already_gets_no_second_probe(pool: Pool) -> None:
    await insert(pool, "a.b")
    await handover(pool).hand_over(10, first_probe=timedelta(hours=1))
    await insert(pool, "a.b")
    await handover(pool).hand_over(10)
    assert await pool.fetchval("select count(*) from outbox_table where send_after < 'infinity'") == 1


async def test_a_probe_that_fails_goes_on_probing(pool: Pool) -> None:
    await insert(pool, "a.b")
    await insert(pool, "a.b")
    await handover(pool).hand_over(10, first_probe=timedelta(0))
    [again] = (await handover(pool).hand_over(10)).messages
    assert (again.state, again.was_held) == (HandoverState.HELD, True)
    assert await pool.fetchval("select count(*) from outbox_table where send_after < 'infinity'") == 1


async def test_rows_for_a_missing_queue_have_a_separate_probe_and_wait_for_no_other_rows(pool: Pool) -> None:
    for queue in ("gone", "gone", None, None):
        await insert(pool, "a.b", target_queue=queue)
    await handover(pool).hand_over(10)
    rows = await pool.fetch(
        "select send_after < now() + interval '6 seconds' as probes, send_after = 'infinity' as for_ever "
        "from outbox_table order by id"
    )
    assert [(row["probes"], row["for_ever"]) for row in rows] == [(True, False), (False, False), (True, False), (False, True)]
    await pool.execute("update outbox_table set send_after = now() where id = (select min(id) from outbox_table)")
    [again] = (await handover(pool).hand_over(10)).messages
    assert (again.queue, again.state) == ("gone", HandoverState.HELD)
    probing = "select count(*) = 1 from outbox_table where target_queue = 'gone' and send_after < now() + interval '6 seconds'"
    assert await pool.fetchval(probing)


async def test_a_held_row_moves_when_its_queue_exists(pool: Pool) -> None:
    await insert(pool, "a.b")
    await handover(pool).hand_over(10, first_probe=timedelta(0))
    await bind(pool, "mail", "a.*")
    [message] = (await handover(pool).hand_over(10)).messages
    assert (message.state, message.was_held) == (HandoverState.SENT, True)
    assert len(await deliveries(pool)) == 1


async def test_unroutable_rows_are_dropped_where_asked(pool: Pool) -> None:
    await bind(pool, "mail", "a.b")
    await insert(pool, "unbound.key")
    await insert(pool, "a.b")
    handed = await handover(pool, drop=True).hand_over(10)
    assert [message.state for message in handed.messages] == [HandoverState.DROPPED, HandoverState.SENT]
    assert await outbox(pool) == []
    assert len(await deliveries(pool)) == 1


async def test_a_row_with_a_target_queue_goes_only_there(pool: Pool) -> None:
    await bind(pool, "mail", "order.placed")
    await bind(pool, "stock", "order.placed")
    await insert(pool, "order.placed", target_queue="stock")
    await insert(pool, "order.placed", target_queue="gone")
    handed = await handover(pool).hand_over(10)
    assert [message.state for message in handed.messages] == [HandoverState.SENT, HandoverState.HELD]
    assert [row["queue"] for row in await deliveries(pool)] == ["stock"]


async def test_the_expiration_counts_from_the_hand_over(pool: Pool) -> None:
    await bind(pool, "mail", "#")
    await insert(pool, "own", expiration=timedelta(hours=2))
    await insert(pool, "default")
    await insert(pool, "endless", expiration=timedelta(days=900_000_000))
    await pool.execute("update outbox_table set created_at = now() - interval '1 day'")
    await handover(pool, expiration=timedelta(hours=5)).hand_over(10)
    rows = await pool.fetch(
        "select routing_key, extract(epoch from expires_at - now()) / 3600 as hours from outbox_delivery order by id"
    )
    assert [(row["routing_key"], row["hours"] and round(row["hours"])) for row in rows] == [
        ("own", 2),
        ("default", 5),
        ("endless", None),
    ]


@pytest.mark.parametrize("tracking_ids", ['[1, "a"]', '["a", null]', '[["a"]]', '["a", {}]'])
async def test_unreadable_tracking_ids_get_a_stable_id_and_stop_no_other_row(pool: Pool, tracking_ids: str) -> None:
    await insert(pool, "bad", tracking_ids=tracking_ids)
    await insert(pool, "good", tracking_ids='["root", "me"]')
    [held, good] = (await handover(pool).hand_over(10, first_probe=timedelta(0))).messages
    await bind(pool, "mail", "#")
    [sent, _] = (await handover(pool).hand_over(10)).messages
    assert good.id == "me"
    assert sent.id == held.id
    assert len(sent.id) == 36
    [row, _] = await deliveries(pool)
    assert (row["message_id"], json.loads(row["tracking_ids"])) == (sent.id, [sent.id])


async def test_rows_at_the_limits_of_their_types_stop_no_other_row(pool: Pool) -> None:
    await bind(pool, "mail", "#")
    await insert(pool, "x" * 100_000)
    await insert(pool, "")
    await insert(pool, "old")
    await pool.execute("update outbox_table set created_at = '-infinity', send_after = '-infinity' where routing_key = 'old'")
    await insert(pool, "late")
    await pool.execute("update outbox_table set created_at = 'infinity' where routing_key = 'late'")
    handed = await handover(pool).hand_over(10)
    assert [message.state for message in handed.messages] == [HandoverState.SENT] * 4
    assert len(await deliveries(pool)) == 4


async def test_an_unroutable_key_too_long_to_be_held_is_parked_and_stops_no_other_row(pool: Pool) -> None:
    noise = "".join(str(number) for number in range(5_000))
    await insert(pool, noise)
    await insert(pool, "short")
    handed = await handover(pool).hand_over(10)
    assert [message.state for message in handed.messages] == [HandoverState.PARKED, HandoverState.HELD]
    [parked, held] = await outbox(pool)
    assert parked["failed_at"] is not None
    assert parked["attempts"] == 1
    assert "too long" in parked["last_error"] or "longer than" in parked["last_error"]
    assert held["failed_at"] is None


async def test_an_attempt_count_at_its_limit_stops_no_other_row(pool: Pool) -> None:
    await insert(pool, "x" * 2_000, attempts=2**31 - 1)
    handed = await handover(pool).hand_over(10)
    assert [message.state for message in handed.messages] == [HandoverState.PARKED]


async def test_concurrent_hand_overs_move_each_row_once(pool: Pool) -> None:
    await bind(pool, "mail", "#")
    await pool.execute(
        "insert into outbox_table (routing_key, body) select 'k.' || n % 7, n::text::bytea from generate_series(1, 3000) as n"
    )

    async def drain() -> int:
        moved, mover = 0, handover(pool)
        while handed := (await mover.hand_over(50)).messages:
            moved += len(handed)
        return moved

    assert sum(await asyncio.gather(*(drain() for _ in range(4)))) == 3000
    bodies = [int(row["body"]) for row in await deliveries(pool)]
    assert sorted(bodies) == list(range(1, 3001))
    assert await outbox(pool) == []


async def test_a_row_that_changes_between_our_snapshot_and_our_lock_moves_once_and_as_it_is_then(pool: Pool) -> None:
    await bind(pool, "mail", "#")
    await insert(pool, "order.placed", b"old")
    mover = handover(pool)
    # The statement has its snapshot when it looks at the first row, and stops there until the change is committed.
    stopping = f"where (select pg_advisory_xact_lock({GATE})::text) is not null and sent_at is null"
    mover._sql = {**mover._sql, "hand_over": mover._sql["hand_over"].replace("where sent_at is null", stopping, 1)}
    async with closed_gate(pool):
        moving = asyncio.create_task(mover.hand_over(10))
        await eventually(lambda: a_session_waits(pool))
        await pool.execute("update outbox_table set body = 'new'")
    assert len(await moving) == 1
    assert [row["body"] for row in await deliveries(pool)] == [b"new"]
    assert await outbox(pool) == []


@pytest.mark.parametrize("with_history", [False, True], ids=["alone", "with a history"])
async def test_a_hand_over_whose_backend_is_killed_in_the_middle_has_not_happened(
    pool: Pool, database: str, with_history: bool
) -> None:
    facts = SentFacts(TABLE, "relay-1", Recorder()) if with_history else None
    if facts is not None:
        async with pool.acquire() as connection:
            await facts.look(connection)
    await bind(pool, "mail", "#")
    await bind(pool, "stock", "#")
    for number in range(20):
        await insert(pool, "order.placed", str(number).encode())
    await pool.execute(
        f"""
        create function stop_in_the_middle() returns trigger language plpgsql as $$
        begin
            if new.body = '10' then
                perform pg_advisory_xact_lock({GATE});
            end if;
            return new;
        end $$;
        create trigger stop_in_the_middle before insert on outbox_delivery for each row execute function stop_in_the_middle()
        """
    )
    single = await open_pool(database, size=1, application_name="victim")
    async with closed_gate(pool):
        mover = PostgresHandover(single, TABLE, exchange_name=EXCHANGE, keep_sent=False, facts=facts)
        moving = asyncio.create_task(mover.hand_over(100))
        await eventually(lambda: a_session_waits(pool))
        await pool.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'victim'")
        with pytest.raises(DatabaseUnavailableError):
            await moving
        assert len(await outbox(pool)) == 20
        assert await deliveries(pool) == []
    assert len(await mover.hand_over(100)) == 20
    assert len(await deliveries(pool)) == 40
    assert await pool.fetchval("select count(*) from outbox_history") == (20 if with_history else 0)
    await single.close()


@asynccontextmanager
async def closed_gate(pool: Pool) -> AsyncIterator[None]:
    """Holds the lock of the gate within the block."""
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("select pg_advisory_xact_lock($1)", GATE)
        yield


@pytest.mark.parametrize("pause", [0.0, 0.002, 0.005, 0.01, 0.02])
async def test_killing_the_server_at_any_moment_loses_and_doubles_nothing(own_postgres: OwnPostgres, pause: float) -> None:
    from outbox import ensure_outbox_schema_async

    await ensure_outbox_schema_async(own_postgres.url)
    pool = await open_pool(own_postgres.url, size=4, application_name="tests")
    await bind(pool, "mail", "#")
    await pool.execute(
        "insert into outbox_table (routing_key, body) select 'k', n::text::bytea from generate_series(1, 2000) as n"
    )

    async def drain() -> None:
        mover = handover(pool)
        while (await mover.hand_over(100)).messages:
            pass

    moving = asyncio.gather(drain(), drain(), return_exceptions=True)
    await asyncio.sleep(pause)
    await asyncio.to_thread(own_postgres.kill)
    await moving
    await asyncio.to_thread(own_postgres.start)
    await drain()
    assert sorted(int(row["body"]) for row in await deliveries(pool)) == list(range(1, 2001))
    pool.terminate()


async def test_a_hand_over_wakes_sleeping_workers(pool: Pool) -> None:
    from outbox.postgres.queries import BellName

    bell = BellName.of("public", "outbox_delivery")
    rung = asyncio.Event()
    async with pool.acquire() as sleeper:
        await sleeper.add_listener(bell.channel, lambda *_: rung.set())
        await sleeper.execute("select pg_advisory_lock($1)", bell.lock_key)
        await bind(pool, "mail", "#")
        await insert(pool, "order.placed")
        await handover(pool).hand_over(10)
        async with asyncio.timeout(30):
            await rung.wait()
        await sleeper.execute("select pg_advisory_unlock_all()")
        await sleeper.reset()


async def test_missing_tables_are_named(database_url: str) -> None:
    pool = await open_pool(database_url, size=2, application_name="tests")
    with pytest.raises(SchemaError, match="outbox_delivery"):
        await handover(pool).check()
    await pool.close()


async def test_tables_in_another_schema_are_found_next_to_their_outbox(database_url: str) -> None:
    from outbox import ensure_outbox_schema_async

    pool = await open_pool(database_url, size=2, application_name="tests")
    await pool.execute("create schema shop")
    await ensure_outbox_schema_async(database_url, schema="shop")
    await pool.execute("insert into shop.outbox_subscription (exchange, queue, binding_key) values ('shop', 'mail', 'a.b')")
    await pool.execute("insert into shop.outbox_table (routing_key, body) values ('a.b', '')")
    mover = PostgresHandover(pool, TableName("outbox_table", "shop"), exchange_name="shop", keep_sent=False)
    await mover.check()
    [message] = (await mover.hand_over(10)).messages
    assert message.state is HandoverState.SENT
    assert await pool.fetchval("select count(*) from shop.outbox_delivery") == 1
    await pool.close()


async def test_two_pools_on_one_database_are_recognised_and_on_two_distinguished(
    database_url: str, own_postgres: OwnPostgres
) -> None:
    one = await open_pool(database_url, size=1, application_name="one")
    same = await open_pool(database_url.replace("postgresql://", "postgres://", 1), size=1, application_name="same")
    neighbour = await open_pool(database_url.rpartition("/")[0] + "/postgres", size=1, application_name="neighbour")
    elsewhere = await open_pool(own_postgres.url, size=1, application_name="elsewhere")
    try:
        assert await same_database(one, one)
        assert await same_database(one, same)
        assert not await same_database(one, neighbour)
        assert not await same_database(one, elsewhere)
    finally:
        for pool in (one, same, neighbour, elsewhere):
            await pool.close()


async def test_a_row_that_was_replaced_is_dropped_also_behind_a_long_backlog_of_plain_ones(pool: Pool) -> None:
    await bind(pool, "mail", "#")
    await pool.execute("insert into outbox_table (routing_key, body) select 'plain', '' from generate_series(1, 50)")
    await pool.execute(
        "insert into outbox_table (routing_key, body, dedup_key, last_error) values ('older', '', 'd', 'unroutable')"
    )
    await pool.execute("insert into outbox_table (routing_key, body, dedup_key) values ('newer', '', 'd')")
    handing = handover(pool)
    keys: list[str] = []
    while messages := (await handing.hand_over(10)).messages:
        keys += [message.routing_key for message in messages]
    assert keys == ["plain"] * 50 + ["newer"]
    assert await outbox(pool) == []


@pytest.mark.parametrize("ordering_key", [None, "customer-7"])
async def test_a_message_that_was_scheduled_is_as_late_as_it_was_due(pool: Pool, ordering_key: str | None) -> None:
    await bind(pool, "mail", "#")
    for last_error in (None, "refused"):  # after a failure the row is due when it is tried again
        await pool.execute(
            "insert into outbox_table (routing_key, body, ordering_key, created_at, send_after, last_error) "
            "values ('timer', '', $1, now() - interval '1 h', now() - interval '5 s', $2)",
            ordering_key,
            last_error,
        )
    first, second = (await handover(pool).hand_over(10)).messages
    assert first.scheduled == timedelta(hours=1) - timedelta(seconds=5)
    assert second.scheduled == timedelta(0)
    assert first.age >= timedelta(hours=1)
