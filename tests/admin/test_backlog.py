"""`GET /backlog`: counts, estimates, rates and queue depths."""

import asyncio
from datetime import timedelta
from time import monotonic
from typing import Any

import asyncpg
import httpx
import pytest

from outbox.admin import Admin, Role
from outbox.admin import backlog as view
from outbox.admin import backlog_reader as counting
from outbox.admin import cache as snapshots
from outbox.admin.backlog import Intake, drained_in
from outbox.admin.backlog_reader import BacklogReader, subscriptions
from outbox.admin.brokers import BrokerView, Depths
from outbox.postgres.schema.objects import outbox_table
from tests.admin.rows import insert, insert_each
from tests.admin.support import client_of, serving
from tests.postgres_transport.support import explained, rows_read
from tests.servers.postgres import OwnPostgres
from tests.servers.rabbitmq import OwnRabbitMQ
from tests.support import eventually
from tests.support.rabbit_admin import RabbitAdmin


async def read_backlog(client: httpx.AsyncClient, **parameters: Any) -> dict[str, Any]:
    answer = await client.get("/backlog", params=parameters)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def shown(client: httpx.AsyncClient, **parameters: Any) -> dict[str, Any]:
    """The complete backlog. On a busy machine the first responses may be estimates."""
    found: dict[str, Any] | None = await eventually(lambda: _whole(client, **parameters))
    assert found is not None
    return found


async def _whole(client: httpx.AsyncClient, **parameters: Any) -> dict[str, Any] | None:
    backlog = await read_backlog(client, **parameters)
    return backlog if backlog["complete"] else None


def values(counts: dict[str, Any]) -> dict[str, int]:
    return {name: count["value"] for name, count in counts.items() if isinstance(count, dict)}


async def test_messages_are_counted_by_state(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await insert_each(connection)
    backlog = await shown(viewer)
    assert values(backlog["states"]) == {
        "pending": 1, "scheduled": 1, "held": 1, "stalled": 1, "blocked": 1, "retrying": 1, "parked": 1,
    }  # fmt: skip
    assert {count["relation"] for count in backlog["states"].values()} == {"eq"}
    assert backlog["sent_kept"] == {"value": 1, "relation": "eq"}
    assert 60 <= backlog["oldest_pending_age_seconds"] < 600
    assert (backlog["complete"], backlog["degraded"], backlog["broker"]) == (True, [], "postgresql")


async def test_messages_that_were_moved_to_infinity_by_hand_are_counted(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    await insert_each(connection)
    moved = "update outbox_table set send_after = 'infinity' where sent_at is null and failed_at is null and last_error"
    await connection.execute(f"{moved} is null or last_error not in ('unroutable', 'stalled', 'blocked')")
    assert values((await shown(viewer))["states"]) == {
        "pending": 0, "scheduled": 2, "held": 1, "stalled": 1, "blocked": 1, "retrying": 1, "parked": 1,
    }  # fmt: skip


async def test_routing_keys_are_ranked_and_the_others_are_summed(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    for key, count in (("a", 3), ("b", 2), ("c", 1), ("d", 1)):
        for _ in range(count):
            await insert(connection, routing_key=key)
    backlog = await shown(viewer, routing_keys=2)
    assert [(key["routing_key"], key["pending"]["value"]) for key in backlog["routing_keys"]] == [("a", 3), ("b", 2)]
    assert backlog["other_routing_keys"] == {"routing_key_count": 2, "total": {"value": 2, "relation": "eq"}}


async def test_concurrent_requests_count_once(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0
    count = counting.BacklogReader.figures

    async def counting_figures(*arguments: Any, **options: Any) -> Any:
        nonlocal counted
        counted += 1
        return await count(*arguments, **options)

    monkeypatch.setattr(counting.BacklogReader, "figures", counting_figures)
    monkeypatch.setattr(view, "MAX_AGE", timedelta(hours=1))
    async with serving(Admin(database)) as app, client_of(app, Role.VIEWER) as client:
        answers = await asyncio.gather(*(shown(client) for _ in range(20)))
    assert counted == 1
    assert len({answer["as_of"] for answer in answers}) == 1


async def test_counts_above_the_limit_are_estimated(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "COUNT_LIMIT", 100)
    monkeypatch.setattr(counting, "SAMPLED_PAGES", 40)
    await connection.execute(
        "insert into outbox_table (routing_key, body) "
        "select 'key.' || n % 4, repeat('x', 100)::bytea from generate_series(1, 20000) n"
    )
    backlog = await shown(viewer)
    pending = backlog["states"]["pending"]
    assert pending["relation"] == "about"
    assert 10_000 < pending["value"] < 40_000
    assert {key["routing_key"] for key in backlog["routing_keys"]} == {"key.0", "key.1", "key.2", "key.3"}
    assert backlog["states"]["held"] == {"value": 0, "relation": "eq"}


async def test_estimates_distinguish_scheduled_and_retrying_messages(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "COUNT_LIMIT", 100)
    monkeypatch.setattr(counting, "SAMPLED_PAGES", 40)
    await connection.execute(
        "insert into outbox_table (routing_key, body, send_after, attempts) "
        "select 'key', repeat('x', 100)::bytea, now() + interval '1 hour', 1 from generate_series(1, 20000) n"
    )
    backlog = await shown(viewer)
    assert backlog["states"]["scheduled"] == {"value": 0, "relation": "about"}
    assert (backlog["routing_keys"][0]["scheduled"], backlog["states"]["held"]) == (
        {"value": 0, "relation": "about"},
        {"value": 0, "relation": "eq"},
    )
    assert 10_000 < backlog["states"]["retrying"]["value"] < 40_000


async def test_an_estimate_is_returned_while_counting_takes_long(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    count, may_count = counting.BacklogReader.figures, asyncio.Event()

    async def counting_slowly(*arguments: Any, **options: Any) -> Any:
        await may_count.wait()
        return await count(*arguments, **options)

    monkeypatch.setattr(counting.BacklogReader, "figures", counting_slowly)
    connection = await asyncpg.connect(database)
    await insert(connection)
    await connection.close()
    async with serving(Admin(database)) as app, client_of(app, Role.VIEWER) as client:
        backlog = await read_backlog(client)
        assert (backlog["complete"], backlog["queues"], backlog["states"]["pending"]["value"]) == (False, None, 1)
        may_count.set()
        assert (await shown(client))["queues"] == []


async def test_old_figures_are_not_returned_as_current_after_a_quiet_time(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, may_count, later = counting.BacklogReader.figures, asyncio.Event(), 0.0
    may_count.set()

    async def counting_slowly(*arguments: Any, **options: Any) -> Any:
        await may_count.wait()
        return await count(*arguments, **options)

    monkeypatch.setattr(counting.BacklogReader, "figures", counting_slowly)
    monkeypatch.setattr(snapshots, "monotonic", lambda: monotonic() + later)
    connection = await asyncpg.connect(database)
    async with serving(Admin(database)) as app, client_of(app, Role.VIEWER) as client:
        before = await shown(client)
        assert before["states"]["pending"]["value"] == 0
        await insert(connection)
        may_count.clear()
        later = 300.0
        after = await read_backlog(client)
        assert (after["complete"], after["states"]["pending"]["value"]) == (False, 1)
        assert after["as_of"] > before["as_of"]
        may_count.set()
        assert (await shown(client))["states"]["pending"] == {"value": 1, "relation": "eq"}
    await connection.close()


async def test_postgresql_queues_are_counted_by_state(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await connection.execute("""
        insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'idle', 'a');
        insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, attempt, available_at,
            lease_token, leased_until)
        values ('outbox', 'mail', '1', 'a', '', '[]', 1, now() - interval '1 minute', null, null),
            ('outbox', 'mail', '2', 'a', '', '[]', 1, now(), null, null),
            ('outbox', 'mail', '3', 'a', '', '[]', 2, now() + interval '1 hour', null, null),
            ('outbox', 'mail', '4', 'a', '', '[]', 1, now() + interval '30 s', gen_random_uuid(), now() + interval '30 s')
    """)
    idle, mail = (await shown(viewer))["queues"]
    assert (idle["queue"], values(idle)) == ("idle", {"queued": 0, "in_flight": 0, "retrying": 0})
    assert (mail["queue"], values(mail)) == ("mail", {"queued": 2, "in_flight": 1, "retrying": 1})
    assert 60 <= mail["oldest_age_seconds"] < 600


async def test_rates_come_from_assigned_ids_and_from_relays(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await connection.execute("""
        insert into outbox_component (id, kind, name, host, process_id, version, every, activity)
        values ('1', 'relay', 'a', 'h', 1, '1', '1 hour', '{"per_second": {"sent": 30.5}}'),
            ('2', 'relay', 'b', 'h', 1, '1', '1 hour', '{"per_second": {"sent": 10}}'),
            ('3', 'relay', 'c', 'h', 1, '1', '1 hour', '{"per_second": {}}')
    """)
    assert (await shown(viewer))["per_second"] == {"incoming": None, "outgoing": 40.5}


async def test_the_rate_of_the_last_minutes_counts_only_while_a_relay_is_alive(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    await connection.execute("""
        insert into outbox_stats (starts_at, seconds, routing_key, queue, sent)
        values (date_trunc('minute', now()) - interval '2 minutes', 60, 'a', '', 600);
        insert into outbox_component (id, kind, name, host, process_id, version, every, activity)
        values ('1', 'relay', 'a', 'h', 1, '1', '1 hour', '{}')
    """)
    assert (await shown(viewer))["per_second"]["outgoing"] == 10
    await connection.execute("update outbox_component set stopped_at = now()")

    async def unknown() -> bool:
        return (await shown(viewer))["per_second"]["outgoing"] is None

    await eventually(unknown)


def test_the_time_to_drain_needs_an_outgoing_rate_above_the_incoming_one() -> None:
    assert drained_in(0, incoming=None, outgoing=None) == 0
    assert drained_in(100, incoming=5.0, outgoing=15.0) == 10
    assert drained_in(100, incoming=15.0, outgoing=15.0) is None
    assert drained_in(100, incoming=None, outgoing=15.0) is None


def test_the_incoming_rate_covers_the_last_minutes() -> None:
    intake = Intake()
    for at, inserted in ((0.0, 0), (100.0, 1_000), (200.0, 1_500), (450.0, 1_500)):
        intake.add(at, inserted)
    assert intake.per_second == pytest.approx(500 / 350)
    intake.add(460.0, 3)
    assert intake.per_second is None


async def test_an_unavailable_broker_affects_only_its_part_of_the_response(database: str, own_rabbitmq: OwnRabbitMQ) -> None:
    connection = await asyncpg.connect(database)
    await insert_each(connection)
    await connection.close()
    own_rabbitmq.stop()
    async with serving(Admin(database, broker=own_rabbitmq.url)) as app, client_of(app, Role.VIEWER) as client:

        async def has_reason() -> bool:
            backlog = await shown(client)
            assert (backlog["degraded"], backlog["queues"], backlog["broker"]) == (["broker"], None, "rabbitmq")
            assert backlog["states"]["pending"]["value"] == 1
            return "not answered" not in backlog["broker_error"]["message"]

        await eventually(has_reason)
        own_rabbitmq.start()

        async def well() -> bool:
            return bool((await shown(client))["degraded"] == [])

        await eventually(well)


async def test_old_depths_of_a_hanging_broker_expire(database: str, broker_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = False

    async def depths(*_: object) -> Depths:
        if hangs:
            await asyncio.Event().wait()
        return Depths()

    monkeypatch.setattr(BrokerView, "depths", depths)
    monkeypatch.setattr(view, "MAX_AGE", timedelta(0))
    async with serving(Admin(database, broker=broker_url)) as app, client_of(app, Role.VIEWER) as client:
        assert (await shown(client))["degraded"] == []
        hangs = True
        monkeypatch.setattr(view, "BROKER_TIMEOUT", timedelta(milliseconds=200))

        async def degraded() -> bool:
            backlog = await shown(client)
            unarchived = (await client.get("/dlq")).json()
            return (backlog["degraded"], backlog["queues"], unarchived["degraded"]) == (["broker"], None, ["broker"])

        await eventually(degraded)


@pytest.mark.parametrize("with_management", [False, True])
async def test_queues_that_workers_report_are_read_from_rabbitmq(
    database: str, broker_url: str, broker_admin: RabbitAdmin, rabbitmq_server: Any, *, with_management: bool
) -> None:
    import aio_pika

    connection = await asyncpg.connect(database)
    await connection.execute("""
        insert into outbox_component (id, kind, name, host, process_id, version, every, consumers)
        values ('1', 'worker', 'w', 'h', 1, '1', '1 hour', '[{"queue": "mail"}, {"queue": "gone"}]')
    """)
    await connection.close()
    async with await aio_pika.connect(broker_url) as rabbit:
        channel = await rabbit.channel()
        await channel.declare_queue("mail", durable=True, arguments={"x-queue-type": "quorum"})
        for _ in range(3):
            await channel.default_exchange.publish(aio_pika.Message(b"x"), "mail")
    management = rabbitmq_server.admin_url if with_management else None
    admin = Admin(database, broker=broker_url, management_url=management)
    async with serving(admin) as app, client_of(app, Role.VIEWER) as client:

        async def seen() -> bool:
            queues = {queue["queue"]: queue for queue in (await shown(client))["queues"] or ()}
            if not queues or queues["mail"]["queued"] is None:
                return False
            assert (queues["gone"]["exists"], queues["gone.dlq"]["exists"]) == (False, False)
            return bool(queues["mail"]["queued"]["value"] == 3)

        await eventually(seen)


async def test_an_unavailable_database_leaves_the_last_figures_marked_as_degraded(
    own_postgres: OwnPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    from outbox import ensure_outbox_schema_async

    await ensure_outbox_schema_async(own_postgres.url)
    async with serving(Admin(own_postgres.url)) as app, client_of(app, Role.VIEWER) as client:
        before = await shown(client)
        own_postgres.stop()

        async def stale() -> bool:
            backlog = await shown(client)
            assert backlog["as_of"] == before["as_of"]
            return bool(backlog["degraded"] == ["database"])

        await eventually(stale)
        own_postgres.start()


async def test_no_count_reads_more_rows_than_its_limit(connection: asyncpg.Connection) -> None:
    await connection.execute("alter table outbox_table set (autovacuum_enabled = off)")
    for columns, chosen in (
        ("routing_key", "'k'"),
        ("routing_key, ordering_key", "'k', 'key ' || n % 100"),
        ("routing_key, last_error, send_after", "'k', 'unroutable', timestamptz 'infinity'"),
        ("routing_key, sent_at", "'k', now()"),
        ("routing_key, failed_at, last_error", "'k', now(), 'no'"),
    ):
        await connection.execute(
            f"insert into outbox_table (body, {columns}) select 'x', {chosen} from generate_series(1, 10000) as n"
        )
    await connection.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids) "
        "select 'outbox', 'queue ' || n % 3, n::text, 'k', 'x', '[]' from generate_series(1, 20000) as n"
    )
    sql, most = counting.backlog_queries(outbox_table("outbox_table")), 500
    async with connection.transaction():
        await connection.execute(sql["settings"])
        for name, arguments in (("counted", [most]), ("oldest", []), ("deliveries", [3 * most])):
            for node in await explained(connection, sql[name], *arguments):
                assert node["Node Type"] not in ("Seq Scan", "Bitmap Heap Scan"), (name, node)
                if node["Node Type"].startswith("Index"):
                    assert rows_read(node) <= 3 * most, (name, node)


READS = {
    "deliveries": lambda connection, table: BacklogReader(table).figures(connection, deliveries=True),
    "subscriptions": subscriptions,
}


@pytest.mark.parametrize("name", READS)
async def test_what_the_role_may_not_read_is_an_error_and_not_an_empty_list(name: str, connection: asyncpg.Connection) -> None:
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("create role reader; grant select on outbox_table to reader; set local role reader")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await READS[name](connection, outbox_table("outbox_table"))
    await transaction.rollback()
