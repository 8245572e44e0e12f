"""Hand-overs of messages with ordering keys: in order, whatever the outcome of one of them, and with their history."""

from datetime import timedelta

import pytest

from outbox.core.events import HistoryLost
from outbox.engine.ordering import OrderingRules
from outbox.postgres.history import SentFacts
from outbox.postgres.ordering import Lanes
from outbox.postgres.pool import Pool
from outbox.transports.postgres.handover import HandoverState, PostgresHandover, handover_queries
from tests.contract.harness import EXCHANGE, Recorder
from tests.postgres_transport.support import TABLE, TABLES, bind, deliveries, explained, insert, rows_read
from tests.relay.plans import explained_as_kept, keep_plan

BLOCKED = "last_error = 'blocked' and send_after = 'infinity'"


def handover(pool: Pool, policy: str = "block", *, facts: SentFacts | None = None, keep_sent: bool = False) -> PostgresHandover:
    return PostgresHandover(
        pool, TABLE, exchange_name=EXCHANGE, keep_sent=keep_sent, ordering=OrderingRules.of(policy), facts=facts
    )


async def publish(pool: Pool, key: str, *bodies: str, routing_key: str = "order.placed") -> None:
    for body in bodies:
        await insert(pool, routing_key, body.encode(), ordering_key=key)


async def arrived(pool: Pool) -> list[str]:
    return [row["body"].decode() for row in await deliveries(pool, "mail")]


async def count(pool: Pool, where: str = "true") -> int:
    number: int = await pool.fetchval(f"select count(*) from outbox_table where {where}")
    return number


@pytest.fixture(autouse=True)
async def bound(pool: Pool) -> None:
    await bind(pool, "mail", "order.*")


async def test_a_key_is_handed_over_in_the_order_of_its_ids(pool: Pool) -> None:
    await pool.execute(
        "insert into outbox_table (routing_key, body, ordering_key, send_after) "
        "select 'order.placed', convert_to(i::text, 'utf8'), 'k' || i % 3, now() - random() * interval '1 h' "
        "from generate_series(1, 1500) i"
    )
    handing = handover(pool)
    while (await handing.hand_over(50)).messages:
        pass
    numbers = [int(body) for body in await arrived(pool)]
    for key in range(3):
        assert [number for number in numbers if number % 3 == key] == [n for n in range(1, 1501) if n % 3 == key]


async def test_rows_without_keys_are_handed_over_together_with_those_that_have_one(pool: Pool) -> None:
    await insert(pool, "order.placed", b"plain")
    await publish(pool, "a", "a1", "a2")
    handed = await handover(pool).hand_over(10)
    assert [message.ordered for message in handed.messages] == [False, True, True]
    assert await arrived(pool) == ["plain", "a1", "a2"]


@pytest.mark.parametrize("policy", ["block", "park"])
async def test_messages_behind_an_unroutable_one_stay(pool: Pool, policy: str) -> None:
    await publish(pool, "a", "a1")
    await publish(pool, "a", "lost", routing_key="unbound")
    await publish(pool, "a", "a3")
    await publish(pool, "b", "b1")
    handing = handover(pool, policy)
    handed = await handing.hand_over(10)
    assert sorted(await arrived(pool)) == ["a1", "b1"]
    assert [message.state for message in handed.messages].count(HandoverState.HELD) == 1
    assert (await handing.hand_over(10)).messages == []
    assert await count(pool, BLOCKED) == 1
    await bind(pool, "mail", "unbound")
    await pool.execute("update outbox_table set send_after = now() where last_error = 'unroutable'")
    while (await handing.hand_over(10)).messages:
        pass
    assert [body for body in await arrived(pool) if body != "b1"] == ["a1", "lost", "a3"]


async def test_skip_an_unroutable_message_is_passed_over(pool: Pool) -> None:
    await publish(pool, "a", "lost", routing_key="unbound")
    await publish(pool, "a", "a2", "a3")
    await handover(pool, "skip").hand_over(10)
    assert await arrived(pool) == ["a2", "a3"]
    assert await count(pool) == 1


async def test_park_messages_behind_a_parked_one_are_parked_as_well(pool: Pool) -> None:
    await publish(pool, "a", "bad", routing_key="x" * 1001)
    await publish(pool, "a", *(f"a{number}" for number in range(2, 30)))
    handing = handover(pool, "park")
    for _ in range(3):
        await handing.hand_over(10)
    assert await arrived(pool) == []
    assert await count(pool, "failed_at is not null") == 29
    head = await pool.fetchval("select min(id) from outbox_table")
    assert await count(pool, f"last_error = 'parked: behind outbox-{head}, an earlier message of its ordering key'") == 28


@pytest.mark.parametrize("keep_sent", [False, True])
async def test_blocked_rows_follow_when_their_head_leaves(pool: Pool, keep_sent: bool) -> None:
    await publish(pool, "a", *(f"{number:03}" for number in range(250)))
    await pool.execute(
        "update outbox_table set last_error = 'blocked', send_after = 'infinity' where id > (select min(id) from outbox_table)"
    )
    handing = handover(pool, keep_sent=keep_sent)
    for _ in range(3):
        await handing.hand_over(500)
    assert await arrived(pool) == [f"{number:03}" for number in range(250)]


async def test_two_hand_overs_never_take_one_key_at_once(pool: Pool) -> None:
    await publish(pool, "a", "a1", "a2")
    async with pool.acquire() as other, other.transaction():
        await other.execute("select from outbox_table where body = 'a1' for update")
        assert (await handover(pool).hand_over(10)).messages == []
    assert len((await handover(pool).hand_over(10)).messages) == 2


async def test_the_history_records_what_was_handed_over(pool: Pool) -> None:
    facts = SentFacts(TABLE, "relay-1", Recorder())
    async with pool.acquire() as connection:
        await facts.look(connection)
    await insert(pool, "order.placed", tracking_ids='["root", "parent", "me"]')
    await insert(pool, "order.placed", tracking_ids='["alone"]', ordering_key="a")
    await insert(pool, "unbound", tracking_ids='["lost"]')
    await handover(pool, facts=facts).hand_over(10)
    rows = await pool.fetch(
        "select fact, message_id, root_id, parent_id, routing_key, component, waited > interval '0' as waited "
        "from outbox_history order by message_id"
    )
    assert [tuple(row) for row in rows] == [
        ("sent", "alone", "alone", None, "order.placed", "relay-1", True),
        ("sent", "me", "root", "parent", "order.placed", "relay-1", True),
    ]


async def test_a_history_that_cannot_be_written_stops_no_hand_over(pool: Pool) -> None:
    recorder = Recorder()
    facts = SentFacts(TABLE, "relay-1", recorder)
    async with pool.acquire() as connection:
        await facts.look(connection)
    await pool.execute("drop table outbox_history")
    await insert(pool, "order.placed")
    await publish(pool, "a", "a1", "a2")
    handing = handover(pool, facts=facts)
    assert len((await handing.hand_over(10)).messages) == 3
    assert [event.count for event in recorder.events if isinstance(event, HistoryLost)] == [3]
    await insert(pool, "order.placed")
    assert len((await handing.hand_over(10)).messages) == 1


@pytest.mark.slow
async def test_a_hand_over_of_keys_reads_no_more_than_it_takes(pool: Pool) -> None:
    await pool.execute("alter table outbox_table set (autovacuum_enabled = off)")
    statement = handover_queries(TABLES)["hand_over_keyed"]
    begin = Lanes(TABLE, OrderingRules()).sql["begin_keeping_plans"]
    connection = await pool.acquire()
    await keep_plan(connection, "planned when empty", statement, begin=begin)
    await pool.execute(
        "insert into outbox_table (routing_key, body, ordering_key, send_after, last_error) "
        "select 'order.placed', '', 'k' || i % 5000, 'infinity', 'blocked' from generate_series(1, 200000) i"
    )
    await pool.execute(
        "insert into outbox_table (routing_key, body, ordering_key) "
        "select 'order.placed', '', 'd' || i % 500 from generate_series(1, 2000) i"
    )
    lanes = [
        row["lane"]
        for row in await pool.fetch(
            "select distinct hashtextextended(ordering_key, 0) as lane from outbox_table where send_after < 'infinity'"
        )
    ]
    arguments: tuple[object, ...] = (
        EXCHANGE,
        500,
        False,
        False,
        [],
        [],
        timedelta(seconds=1),
        None,
        10**6,
        None,
        10**6,
        lanes,
        ["block"] * 500,
        4,
    )
    planned_now = await explained(connection, statement, *arguments)
    planned_before = await explained_as_kept(connection, "planned when empty", *arguments, begin=begin)
    await pool.release(connection)
    for nodes in (planned_now, planned_before):
        for node in nodes:
            seen = f"{node['Node Type']} on {node.get('Relation Name')} read {rows_read(node)} rows"
            assert not (node["Node Type"] == "Seq Scan" and node["Relation Name"] == "outbox_table"), seen
            assert rows_read(node) <= 10_000, seen
