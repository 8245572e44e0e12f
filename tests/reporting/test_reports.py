"""Reports of relays and workers to the database."""

import json
import logging
from datetime import timedelta

import asyncpg
import pytest
from pydantic import BaseModel

from outbox import Consumer, MessageRelay, Worker
from outbox.chains import ChainState, chain
from outbox.postgres.pool import connect_to
from outbox.postgres.queries import TableName
from outbox.reporting import reporter
from outbox.reporting.components import ComponentKind, ComponentStatus, components
from outbox.reporting.facts import Fact
from outbox.reporting.tables import ReportingTables, as_json
from tests.reporting.support import Box, at_work, published
from tests.support import eventually


class Order(BaseModel):
    """A body."""

    sku: str
    quantity: int


async def test_a_worker_writes_the_outcome_of_each_message(connection: asyncpg.Connection, database_url: str) -> None:
    async def handle(body: dict[str, str]) -> None:
        if body["sku"] == "bad":
            raise ValueError("no such sku")

    consumer = Consumer("order.*", handle, queue="stock", retry_delays=("0s",))
    relay = MessageRelay(database_url, broker=database_url)
    worker = Worker(broker=database_url, consumers=[consumer], name="stock-1")
    async with at_work(relay, worker):
        await eventually(lambda: connection.fetchval("select exists(select from outbox_subscription)"))
        good = await published(connection, body={"sku": "good"})
        bad = await published(connection, body={"sku": "bad"})
        await eventually(lambda: connection.fetchval("select count(*) = 3 from outbox_history where fact <> 'sent'"))
    rows = await connection.fetch("select * from outbox_history where queue is not null order by at")
    facts = [(row["message_id"], row["fact"], row["attempt"], row["queue"], row["component"]) for row in rows]
    assert sorted(facts) == sorted(
        [
            (good, "processed", 1, "stock", "stock-1"),
            (bad, "retried", 1, "stock", "stock-1"),
            (bad, "died", 2, "stock", "stock-1"),
        ]
    )
    assert [row["root_id"] for row in rows] == [row["message_id"] for row in rows]
    assert {row["error_message"] for row in rows if row["message_id"] == bad} == {"no such sku"}
    assert all(row["ran"] is not None and row["waited"] is not None for row in rows)
    sent = await connection.fetch("select message_id, root_id, parent_id from outbox_history where fact = 'sent'")
    assert sorted(map(tuple, sent)) == sorted([(good, good, None), (bad, bad, None)])


ROOT = Fact(0.0, "processed", "a", "a", None, "order.placed", "mail", 1, 2.0, 3.0, None, None)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param([ROOT], id="one"),
        pytest.param([ROOT, ROOT._replace(message_id="b", root_id="b")], id="roots with equal columns"),
        pytest.param([ROOT, ROOT._replace(message_id="b", parent_id="a")], id="a root and its child"),
        pytest.param(
            [
                ROOT._replace(fact="retried", error_type="E", error_message="m", keys='{"k=1"}', trace_id="0a"),
                ROOT._replace(routing_key="order.paid", queue="stock", attempt=2),
                ROOT._replace(message_id="b", root_id="r", parent_id="p", error_message="n"),
            ],
            id="all columns differ",
        ),
    ],
)
async def test_facts_are_stored_as_they_are(facts: list[Fact], connection: asyncpg.Connection) -> None:
    await ReportingTables(TableName("outbox_table")).write_history(connection, facts, component="c", clock=0.0)
    names = [name for name in Fact._fields if name not in ("at", "waited", "ran", "keys")]
    rows = await connection.fetch(
        f"select {', '.join(names)}, extract(epoch from waited)::float8 as waited, extract(epoch from ran)::float8 as ran, "
        "keys::text as keys, component from outbox_history order by ctid"
    )
    assert [Fact(at=0.0, **{name: value for name, value in row.items() if name != "component"}) for row in rows] == [
        fact._replace(keys=None if fact.keys is None else "{k=1}") for fact in facts
    ]
    assert {row["component"] for row in rows} == {"c"}


async def test_a_worker_on_rabbitmq_reports_to_the_database_that_it_was_given(
    connection: asyncpg.Connection, database_url: str, broker_url: str
) -> None:
    box = Box()
    relay = MessageRelay(database_url, broker=broker_url, name="relay-1")
    worker = Worker(broker=broker_url, db_engine_url=database_url, consumers=[box.consumer], name="worker-1")
    async with at_work(relay, worker):
        id_ = await published(connection, body=1)
        statement = "select fact, component from outbox_history where message_id = $1 order by fact desc"
        await eventually(lambda: connection.fetchval("select count(*) = 2 from outbox_history"))
        assert [tuple(row) for row in await connection.fetch(statement, id_)] == [
            ("sent", "relay-1"),
            ("processed", "worker-1"),
        ]
        [node] = (await chain(connection, id_)).nodes
    [delivery] = node.deliveries
    assert (node.state, delivery.queue, delivery.state) == (ChainState.PROCESSED, "mail", ChainState.PROCESSED)
    assert node.waited is not None
    assert delivery.waited is not None
    assert delivery.handling is not None


async def test_a_duplicate_is_reported_as_such(connection: asyncpg.Connection, database_url: str) -> None:
    box = Box(inbox=True)
    worker = Worker(broker=database_url, db_engine_url=database_url, consumers=[box.consumer])
    await connection.execute("insert into outbox_inbox (queue, message_id) values ('mail', 'm')")
    await connection.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids)"
        " values ('outbox', 'mail', 'm', 'order.placed', '1', '[\"m\"]')"
    )
    async with at_work(worker):
        await eventually(lambda: connection.fetchval("select exists(select from outbox_history)"))
    assert await connection.fetchval("select array_agg(fact) from outbox_history") == ["duplicate"]
    counted = await connection.fetchrow("select duplicates, processed from outbox_stats where routing_key <> ''")
    assert counted is not None
    assert tuple(counted) == (1, 0)
    assert box.bodies == []


async def test_a_worker_reports_its_consumers_with_the_schemas_of_their_bodies(
    connection: asyncpg.Connection, database_url: str
) -> None:
    async def take(order: Order) -> None: ...

    consumer = Consumer("order.*", take, queue="orders", retry_delays=("1s", "1m"), timeout="30s", ordered=True)
    async with at_work(Worker(broker=database_url, consumers=[consumer], name="worker-1", prefetch_count=7)):
        [component] = await eventually(lambda: components(connection))
    reported = dict(component.consumers[0])
    assert len(component.consumers) == 1
    assert reported["body"]["properties"].keys() == {"sku", "quantity"}
    del reported["body"]
    assert reported == {
        "queue": "orders",
        "handler": f"{__name__}.test_a_worker_reports_its_consumers_with_the_schemas_of_their_bodies.locals.take",
        "binding_key": "order.*",
        "retry": {"delays_seconds": [1.0, 60.0], "computed": False},
        "timeout_seconds": 30.0,
        "prefetch_count": 7,
        "max_deliveries": 10,
        "ordered": True,
        "inbox": False,
        "history": True,
        "batch": False,
    }


async def test_a_component_without_heartbeats_is_late_and_then_lost(connection: asyncpg.Connection, database_url: str) -> None:
    async with at_work(MessageRelay(database_url, broker=database_url)):
        await eventually(lambda: connection.fetchval("select exists(select from outbox_component)"))
    assert [each.condition for each in await components(connection)] == [ComponentStatus.STOPPED]
    for seconds, condition in ((1, ComponentStatus.ALIVE), (12, ComponentStatus.LATE), (60, ComponentStatus.LOST)):
        await connection.execute(
            "update outbox_component set stopped_at = null, seen_at = now() - make_interval(secs => $1)", seconds
        )
        assert [each.condition for each in await components(connection)] == [condition]


async def test_components_report_heartbeats_and_activity(connection: asyncpg.Connection, database_url: str) -> None:
    box = Box()
    relay = MessageRelay(database_url, broker=database_url, name="relay-1")
    worker = Worker(broker=database_url, consumers=[box.consumer], name="worker-1")
    async with at_work(relay, worker):
        rows = await eventually(lambda: _running(connection))
        assert rows is not None
        assert [(row["kind"], row["name"], row["stopped_at"]) for row in rows] == [
            ("relay", "relay-1", None),
            ("worker", "worker-1", None),
        ]
        [consumer] = json.loads(rows[1]["consumers"])
        assert (consumer["queue"], consumer["binding_key"]) == ("mail", "order.*")
    assert await connection.fetchval("select count(*) from outbox_component where stopped_at is not null") == 2


async def test_a_heartbeat_holds_any_text_and_brings_back_a_row_that_was_deleted(
    connection: asyncpg.Connection, database_url: str
) -> None:
    name = await connection.fetchval("select current_database()")
    # A backslash in a plain literal means something else then.
    await connection.execute(f'alter database "{name}" set standard_conforming_strings = off')
    queue = "o'brien \\' {id} \N{LATIN SMALL LETTER E WITH ACUTE} \N{FIRE}; commit"
    tables, id_ = ReportingTables(TableName("outbox_table")), "relay-1' \\"
    async with connect_to(database_url, application_name="test")() as own:
        written = {"activity": as_json({"failing_queues": [queue]}), "applied": as_json([{"scope": "queue", "name": queue}])}
        assert not await tables.beat_again(own, id_, **written, stopped=False)
        every = timedelta(seconds=5)
        await tables.beat(own, id_, "relay", "relay-1", "host", 1, "1", None, every, "{}", "[]", "[]", False)
        assert await tables.beat_again(own, id_, **written, stopped=True)
        assert not own.is_in_transaction()
    [found] = await connection.fetch("select id, activity, applied, stopped_at from outbox_component")
    assert (found["id"], json.loads(found["activity"])["failing_queues"]) == (id_, [queue])
    assert (json.loads(found["applied"])[0]["name"], found["stopped_at"] is None) == (queue, False)


async def test_a_component_whose_row_was_deleted_reports_again(connection: asyncpg.Connection, database_url: str) -> None:
    async with at_work(MessageRelay(database_url, broker=database_url)):
        await eventually(lambda: connection.fetchval("select exists(select from outbox_component)"))
        await connection.execute("delete from outbox_component")
        await eventually(lambda: connection.fetchval("select exists(select from outbox_component)"), timeout=30)
    [found] = await components(connection)
    assert (found.kind, found.condition) == (ComponentKind.RELAY, ComponentStatus.STOPPED)


async def test_a_component_reports_again_after_its_database_was_read_only(
    connection: asyncpg.Connection, database_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection from that time stays read-only, and a component that kept it would count as lost while it works."""
    monkeypatch.setattr(reporter, "TABLE_CHECK_INTERVAL", timedelta(milliseconds=200))
    database = await connection.fetchval("select current_database()")
    async with at_work(MessageRelay(database_url, broker=database_url, heartbeat_interval=0.1)):
        await eventually(lambda: connection.fetchval("select exists(select from outbox_component)"))
        await connection.execute(f'alter database "{database}" set default_transaction_read_only = on')
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and application_name = 'outbox relay reports'"
        )
        await eventually(lambda: "reports: heartbeat: ReadOnlySQLTransactionError" in caplog.text)
        await connection.execute(f'alter database "{database}" reset default_transaction_read_only')
        writable_at = await connection.fetchval("select clock_timestamp()")
        await eventually(lambda: connection.fetchval("select seen_at > $1 from outbox_component", writable_at))


async def _running(connection: asyncpg.Connection) -> list[asyncpg.Record] | None:
    rows = await connection.fetch(
        "select * from outbox_component where activity ->> 'state' = 'running' and stopped_at is null order by kind"
    )
    return rows if len(rows) == 2 else None


async def test_the_history_keeps_index_keys_of_what_was_sent_and_handled(
    connection: asyncpg.Connection, database_url: str, broker_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(body: dict[str, object]) -> None: ...

    own = Consumer("order.*", handle, queue="own", index_keys=("$.customer",))
    usual = Consumer("order.*", handle, queue="usual")
    none = Consumer("order.*", handle, queue="none", index_keys=())
    relay = MessageRelay(database_url, broker=broker_url, index_keys=("$.order_id",))
    worker = Worker(broker=broker_url, db_engine_url=database_url, consumers=[own, usual, none], index_keys=("$.order_id",))
    caplog.set_level(logging.INFO, logger="outbox")
    async with at_work(worker):
        await eventually(lambda: caplog.text.count("consumes queue") == 3)  # a queue that is bound later gets no copy
        async with at_work(relay):
            await published(connection, body={"order_id": 4711, "customer": 'o"x\\'})
            await published(connection, body=["nothing"])
            await eventually(lambda: connection.fetchval("select count(*) = 8 from outbox_history"))
    rows = await connection.fetch("select queue, keys from outbox_history where keys is not null order by queue")
    assert [tuple(row) for row in rows] == [("own", ['o"x\\']), ("usual", ["4711"]), (None, ["4711"])]
