"""Chains: the whole tree for any id in it, from the history and the other tables."""

import asyncio
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from click.testing import CliRunner

from outbox import BoundPublisher, Consumer, MessageRelay, Reject, Worker
from outbox.chains import AttemptError, Chain, ChainState, chain, recent
from outbox.chains import traces as chains
from outbox.chains.traces import ChainReader
from outbox.cli import main
from outbox.errors import ConfigurationError
from outbox.postgres.history import ensure_partitions
from outbox.postgres.queries import TableName
from tests.reporting.support import at_work, published
from tests.support import eventually

FACT = """
    insert into outbox_history (at, fact, message_id, root_id, parent_id, routing_key, queue, attempt, waited, ran, component)
    values (now() - make_interval(secs => $1), $2, $3, $4, $5, $6, $7, 1, interval '2 ms', interval '3 ms', 'test')
"""


async def _fact(
    connection: asyncpg.Connection, ago: float, fact: str, id_: str, root: str, parent: str | None, queue: str | None = None
) -> None:
    await connection.execute(FACT, ago, fact, id_, root, parent, f"event.{id_}", queue)


def _tree(found: Chain) -> list[tuple[int, str, str]]:
    return [(node.depth, node.routing_key, node.state.value) for node in found.nodes]


@pytest.fixture
async def orders(connection: asyncpg.Connection, database_url: str) -> str:
    """The id of an order that was placed, paid at the second attempt, and whose mail was rejected."""
    attempts = 0

    async def take_payment(body: dict[str, Any], publisher: BoundPublisher[Any]) -> None:
        await publisher.publish("payment.taken", {"order": body["order"]})

    async def reserve(body: dict[str, Any], publisher: BoundPublisher[Any]) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ConnectionError("the warehouse does not answer")
        await publisher.publish("stock.reserved", {"order": body["order"]})

    async def mail(body: dict[str, Any]) -> None:
        raise Reject("no such address")

    consumers = [
        Consumer("order.placed", take_payment, queue="payments"),
        Consumer("order.placed", reserve, queue="stock", retry_delays=("100ms",)),
        Consumer("payment.taken", mail, queue="mail"),
    ]
    relay = MessageRelay(database_url, broker=database_url, name="relay-1")
    worker = Worker(broker=database_url, db_engine_url=database_url, consumers=consumers, name="worker-1")
    async with at_work(relay, worker):
        await eventually(lambda: connection.fetchval("select count(*) = 3 from outbox_subscription"))
        id_ = await published(connection, "order.placed", {"order": 7})
        ended = "select count(*) filter (where fact = 'sent') = 2 and count(*) filter (where fact = 'died') = 1"
        ended += " and count(*) filter (where fact = 'processed') = 2 from outbox_history"
        await eventually(lambda: connection.fetchval(ended))
    return id_


async def test_any_id_gives_the_whole_tree_with_times_attempts_and_states(
    orders: str, connection: asyncpg.Connection, database_url: str
) -> None:
    found = await chain(connection, orders)
    assert _tree(found) == [
        (0, "order.placed", "processed"),
        (1, "payment.taken", "dead"),
        (1, "stock.reserved", "held"),
    ]
    for node in found.nodes:
        assert await chain(database_url, node.id) == found
    placed, paid, reserved = found.nodes
    assert {node.parent_id for node in (paid, reserved)} == {orders}
    assert placed.relay == "relay-1"
    assert placed.waited is not None
    deliveries = {each.queue: each for each in placed.deliveries}
    assert set(deliveries) == {"payments", "stock"}
    assert (deliveries["stock"].attempt_count, deliveries["stock"].state) == (2, ChainState.PROCESSED)
    assert [each.outcome for each in deliveries["stock"].attempts] == ["retried", "processed"]
    assert deliveries["stock"].attempts[0].error == AttemptError(
        type="ConnectionError", message="the warehouse does not answer"
    )
    assert deliveries["stock"].waited is not None
    assert deliveries["stock"].handling is not None
    [mail] = paid.deliveries
    assert (mail.queue, mail.state, mail.attempt_count) == ("mail", ChainState.DEAD, 1)
    assert mail.last is not None
    assert mail.last.error == AttemptError(type="outbox.errors.Reject", message="no such address")
    assert mail.last.component == "worker-1"
    assert reserved.last_error == "unroutable"
    assert placed.held_at is None
    assert reserved.held_at == await connection.fetchval("select held_at from outbox_table where held_at is not null")


async def test_without_history_a_chain_has_what_the_tables_hold_and_says_what_is_unknown(
    orders: str, connection: asyncpg.Connection
) -> None:
    await connection.execute("truncate outbox_history")
    found = await chain(connection, orders)
    assert _tree(found) == [(0, "", "unknown"), (1, "payment.taken", "dead"), (1, "stock.reserved", "held")]
    assert any("not in the history" in sentence for sentence in found.unknown)
    dead = found.nodes[1]
    assert dead.deliveries[0].attempts[-1].error == AttemptError(type="outbox.errors.Reject", message="no such address")


async def test_messages_on_their_way_show_where_they_wait(connection: asyncpg.Connection) -> None:
    pending = await published(connection)
    scheduled = await published(connection)
    await connection.execute(
        "update outbox_table set send_after = now() + interval '1 hour' where tracking_ids ->> 0 = $1", scheduled
    )
    await connection.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, lease_token, leased_until)"
        " values ('outbox', 'a', 'm', 'order.placed', '', '[\"m\"]', null, null),"
        " ('outbox', 'b', 'm', 'order.placed', '', '[\"m\"]', gen_random_uuid(), now() + interval '1 minute')"
    )
    assert _tree(await chain(connection, pending)) == [(0, "order.placed", "pending")]
    assert _tree(await chain(connection, scheduled)) == [(0, "order.placed", "scheduled")]
    [node] = (await chain(connection, "m")).nodes
    assert [(each.queue, each.state.value) for each in node.deliveries] == [("a", "queued"), ("b", "in_flight")]


async def test_an_unknown_id_has_no_chain(connection: asyncpg.Connection) -> None:
    found = await chain(connection, "unknown")
    assert not found.found
    assert found.nodes == ()
    with pytest.raises(ConfigurationError):
        await chain(connection, "a\0b")


async def test_orphans_are_children_of_their_named_parent_and_cycles_end(connection: asyncpg.Connection) -> None:
    await _fact(connection, 9, "sent", "r", "r", None)
    await _fact(connection, 8, "sent", "orphan", "r", "lost")
    await _fact(connection, 7, "sent", "x", "r", "y")
    await _fact(connection, 6, "sent", "y", "r", "x")
    await _fact(connection, 5, "sent", "self", "r", "self")
    found = await chain(connection, "y")
    assert [(node.depth, node.id) for node in found.nodes] == [
        (0, "r"), (1, "lost"), (2, "orphan"), (0, "self"), (0, "x"), (1, "y"),
    ]  # fmt: skip
    assert found.nodes[1].state is ChainState.UNKNOWN


async def test_a_chain_that_is_too_long_is_truncated_and_says_so(connection: asyncpg.Connection) -> None:
    for number in range(30):
        await _fact(connection, 60 - number, "sent", str(number), "0", str(number - 1) if number else None)
    found = await chain(connection, "25", max_nodes=10)
    assert found.truncated
    assert [node.id for node in found.nodes] == [str(number) for number in range(10)]
    assert not (await chain(connection, "25")).truncated


async def test_ids_of_any_length_have_chains(connection: asyncpg.Connection) -> None:
    long = "é" * 5_000
    await _fact(connection, 1, "sent", long, long, None)
    assert (await chain(connection, long)).root_id == long


async def test_the_most_recent_chains_are_listed(orders: str, connection: asyncpg.Connection) -> None:
    await _fact(connection, -1, "sent", "later", "later", None)
    first, second = await recent(connection, 5)
    assert (first.root_id, first.dead_letter_count) == ("later", 0)
    assert (second.root_id, second.routing_key, second.dead_letter_count) == (orders, "order.placed", 1)


async def test_the_command_prints_the_tree(orders: str, database_url: str) -> None:
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["chain", *arguments, "--database-url", database_url])

    shown = await asyncio.to_thread(run, orders)
    assert shown.exit_code == 0
    lines = shown.output.splitlines()
    assert lines[0].split() == ["EVENT", "QUEUE", "PUBLISHED", "OUTBOX", "BROKER", "HANDLER", "ATTEMPTS", "STATE", "BY", "ID"]
    assert lines[1].startswith("order.placed ")
    assert any(line.startswith("├─ payment.taken") for line in lines)
    assert any(line.startswith("└─ stock.reserved") for line in lines)
    assert "outbox.errors.Reject: no such address" in shown.output
    printed = json.loads((await asyncio.to_thread(run, orders, "--json")).output)
    assert printed["root_id"] == orders
    assert printed["duration_seconds"] > 0
    assert [node["depth"] for node in printed["nodes"]] == [0, 1, 1]
    assert printed["nodes"][1]["deliveries"][0]["attempts"][0]["error"]["message"] == "no such address"
    unknown = await asyncio.to_thread(run, "unknown")
    assert unknown.exit_code == 1


async def test_the_command_masks_error_texts(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute(
        "insert into outbox_history (fact, message_id, root_id, routing_key, queue, attempt, error_type, error_message)"
        " values ('died', 'm1', 'm1', 'e', 'q', 1, 'ValueError', 'password=hunter2')"
    )
    await connection.execute(
        "insert into outbox_table (routing_key, body, tracking_ids, failed_at, last_error)"
        """ values ('e', '', '["m1", "m2"]', now(), 'RefusedError: token=abcdef')"""
    )
    for form in ([], ["--json"]):
        arguments = ["chain", "m1", *form, "--database-url", database_url]
        shown = (await asyncio.to_thread(CliRunner().invoke, main, arguments)).output
        assert "password=***" in shown
        assert "token=***" in shown
        assert "hunter2" not in shown
        assert "abcdef" not in shown


async def test_a_bounded_read_finds_the_newest_parked_and_held_messages_and_says_what_it_omitted(
    connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "MOST_ROWS", 5)
    await connection.execute(
        "insert into outbox_table (routing_key, body, tracking_ids, failed_at, last_error, send_after) values"
        " ('parked', '', '[\"a\", \"parked\"]', now(), 'RefusedError', now()),"
        " ('held', '', '[\"a\", \"held\"]', null, 'unroutable', 'infinity'),"
        " ('old', '', '[\"a\", \"old\"]', null, null, now())"
    )
    await connection.execute("insert into outbox_table (routing_key, body) select 'e', '' from generate_series(1, 4)")
    everything = await chain(connection, "a", bounded=True)
    assert {node.id for node in everything.nodes} == {"a", "parked", "held", "old"}
    await connection.execute("insert into outbox_table (routing_key, body) select 'e', '' from generate_series(1, 4)")
    part = await chain(connection, "a", bounded=True)
    assert {node.id for node in part.nodes} == {"a", "parked", "held"}
    assert any("the outbox" in sentence and "newest 5" in sentence for sentence in part.unknown)
    assert {node.id for node in (await chain(connection, "a")).nodes} == {"a", "parked", "held", "old"}


NOW = datetime.now(UTC)
READING: Sequence[tuple[str, tuple[object, ...]]] = (
    ("facts", ("m500", 100)),
    ("root_in_history", ("m500",)),
    ("letters", ("m500", 100)),
    ("rows", ("m500", 100)),
    ("root_in_outbox", ("m500",)),
    ("deliveries", ("m500", 100)),
    ("root_in_deliveries", ("m500",)),
    ("more_rows", ()),
    ("more_deliveries", ()),
    ("beginnings", (None, None, None, None, 20)),
    ("beginnings", (NOW, 17, None, NOW, 20)),
    ("later_beginnings", (NOW - timedelta(days=1), 17, None, None, 20)),
    ("members", (["m1", "m2"], [NOW, NOW], [timedelta(0)] * 2, 200)),
    ("begun_before", (["m1", "m2"], [NOW, NOW])),
    ("resolved", (["m1", "m2"],)),
)


async def test_reading_uses_indexes(connection: asyncpg.Connection) -> None:
    await ensure_partitions(connection)
    await connection.execute(
        "insert into outbox_history (at, fact, message_id, root_id, routing_key)"
        # As many today, whatever the hour, as before there were partitions.
        " select date_trunc('day', now(), 'UTC') + make_interval(secs => 4 * (n - 20000)), 'sent', 'm' || n, 'm' || n, 'e'"
        " from generate_series(1, 40000) as n"
    )
    await connection.execute(
        "insert into outbox_dead_letter (source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at,"
        " attempt, cause, exception_type, exception_message, exception_traceback) select 'worker', 'o', 'q', 'm' || n, 'e', '',"
        " jsonb_build_array('m' || n), now(), 1, 'exhausted', '', '', '' from generate_series(1, 20000) as n"
    )
    await connection.execute("insert into outbox_table (routing_key, body) select 'e', '' from generate_series(1, 15000)")
    await connection.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids)"
        " select 'o', 'q', 'm' || n, 'e', '', jsonb_build_array('m' || n) from generate_series(1, 15000) as n"
    )
    await connection.execute(
        "analyze outbox_history; analyze outbox_dead_letter; analyze outbox_table; analyze outbox_delivery"
    )
    sql = ChainReader(connection, TableName("outbox_table"), bounded=True)._sql
    for name, arguments in READING:
        plan = [row[0] for row in await connection.fetch(f"explain {sql[name]}", *arguments)]
        # Days to come are empty: how they are read does not matter.
        scans = [line for line in plan if "Seq Scan on outbox_" in line and "cost=0.00..0.0" not in line]
        assert not scans, "\n".join((name, *plan))
        if name.endswith("beginnings"):
            assert not [line for line in plan if re.search(r"(^|->)\s*Sort  \(", line)], "\n".join((name, *plan))
