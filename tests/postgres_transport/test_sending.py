"""Sending to another database: one correct result per message."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from outbox.core.message import Message
from outbox.errors import BrokerUnavailableError, ConfigurationError, TopologyError
from outbox.ports import CONFIRMED, UNROUTABLE, NotSent, Refused
from outbox.postgres.pool import Pool, open_pool
from outbox.transports.postgres import PostgresBroker
from outbox.transports.postgres import broker as sending_module
from tests.contract.harness import EXCHANGE, Recorder
from tests.contract.support import TIMEOUT, existing, message, taking
from tests.postgres_transport.support import TABLE, bind, deliveries, new_broker
from tests.servers.postgres import OwnPostgres
from tests.servers.proxy import Proxy


async def test_a_batch_arrives_in_its_order(broker: PostgresBroker, pool: Pool) -> None:
    await bind(pool, "mail", "#")
    batch = [message("order.placed", str(number).encode()) for number in range(300)]
    assert list(await broker.send(batch, timeout=TIMEOUT)) == [CONFIRMED] * 300
    assert [row["body"] for row in await deliveries(pool)] == [sent.body for sent in batch]


async def test_a_message_that_a_trigger_refuses_is_refused_and_its_neighbours_are_not(
    broker: PostgresBroker, pool: Pool
) -> None:
    await bind(pool, "mail", "#")
    await pool.execute(
        "create function refuse() returns trigger language plpgsql as "
        "$$ begin if new.routing_key = 'bad' then raise exception 'not this one'; end if; return new; end $$"
    )
    await pool.execute("create trigger refuse before insert on outbox_delivery for each row execute function refuse()")
    first, bad, last = await broker.send([message("a"), message("bad"), message("b")], timeout=TIMEOUT)
    assert (first, last) == (CONFIRMED, CONFIRMED)
    assert isinstance(bad, Refused)
    assert "not this one" in str(bad.failure)


async def test_a_broker_leaves_a_server_that_is_a_standby_now(broker: PostgresBroker, pool: Pool, database: str) -> None:
    """A session keeps the setting with which it began, as a connection keeps the server to which its address led."""
    await bind(pool, "mail", "#")
    setting = f"alter database {database.rpartition('/')[2]} set default_transaction_read_only"
    await pool.execute(f"{setting} = on")
    [result] = await broker.send([message("order.placed")], timeout=TIMEOUT)
    assert isinstance(result, NotSent)
    assert "read-only" in str(result.failure)
    await pool.execute(f"{setting} = off")
    assert list(await broker.send([message("order.placed")], timeout=TIMEOUT)) == [CONFIRMED]


async def test_two_bindings_of_one_queue_that_match_give_one_delivery(broker: PostgresBroker, pool: Pool) -> None:
    for binding_key in ("order.placed", "order.*", "#"):
        await bind(pool, "mail", binding_key)
    assert list(await broker.send([message("order.placed")], timeout=TIMEOUT)) == [CONFIRMED]
    assert len(await deliveries(pool)) == 1


_SPOILED: dict[str, Callable[[Message], Message]] = {
    "a NUL in the routing key": lambda good: replace(good, routing_key="order.\0"),
    "a NUL in the id": lambda good: replace(good, id="\0"),
    "a NUL in a tracking id": lambda good: replace(good, tracking_ids=("\0", good.id)),
    "a NUL in a header": lambda good: replace(good, headers={"tenant": "\0"}),
    "half a surrogate pair": lambda good: replace(good, headers={"tenant": "\ud800"}),
    "half a pair in the routing key": lambda good: replace(good, routing_key="order.\udcff"),
    "a header that is not JSON": lambda good: replace(good, headers={"when": datetime.now(UTC)}),
    "a header that is not a number": lambda good: replace(good, headers={"size": float("nan")}),
    "a body that is too large": lambda good: replace(good, body=bytes(2_000_000)),
}


@pytest.mark.parametrize("spoil", _SPOILED.values(), ids=_SPOILED.keys())
async def test_a_message_that_cannot_be_taken_is_refused_and_its_neighbours_are_not(
    broker: PostgresBroker, pool: Pool, spoil: Callable[[Message], Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending_module, "LARGEST_BODY", 1_000_000)
    await bind(pool, "mail", "order.#")
    batch = [message("order.placed", str(number).encode()) for number in range(9)]
    batch[3] = spoil(batch[3])
    batch[5] = message("unbound.key")
    results = list(await broker.send(batch, timeout=TIMEOUT))
    assert isinstance(results[3], Refused)
    assert results[3].failure.message
    assert results[5] == UNROUTABLE
    assert [results[place] for place in (0, 1, 2, 4, 6, 7, 8)] == [CONFIRMED] * 7
    assert sorted(row["body"] for row in await deliveries(pool)) == [b"0", b"1", b"2", b"4", b"6", b"7", b"8"]


async def test_large_bodies_go_in_several_statements(broker: PostgresBroker, pool: Pool) -> None:
    await bind(pool, "mail", "#")
    batch = [message("order.placed", bytes(5_000_000)) for _ in range(6)]
    assert list(await broker.send(batch, timeout=timedelta(seconds=60))) == [CONFIRMED] * 6
    assert await pool.fetchval("select count(distinct xmin::text) from outbox_delivery") > 1


async def test_a_deadline_that_was_set_is_kept_and_an_expiration_counts_from_the_arrival(
    broker: PostgresBroker, pool: Pool
) -> None:
    await bind(pool, "mail", "#")
    deadline = datetime(2100, 1, 1, tzinfo=UTC)
    batch = [
        replace(message("a"), expires_at=deadline),
        replace(message("b"), expiration=timedelta(hours=3)),
        replace(message("c"), expiration=timedelta.max),
        message("d"),
    ]
    assert list(await broker.send(batch, timeout=TIMEOUT)) == [CONFIRMED] * 4
    a, b, c, d = [row["expires_at"] for row in await deliveries(pool)]
    assert (a, c, d) == (deadline, None, None)
    assert abs(b - datetime.now(UTC) - timedelta(hours=3)) < timedelta(minutes=1)


async def test_nothing_is_sent_while_the_database_is_away_and_everything_after(own_postgres: OwnPostgres) -> None:
    from outbox import ensure_outbox_schema_async

    await ensure_outbox_schema_async(own_postgres.url)
    broker = new_broker(own_postgres.url)
    await existing(broker, "mail", "#")
    await asyncio.to_thread(own_postgres.stop)
    [lost] = await broker.send([message("order.placed")], timeout=TIMEOUT)
    assert isinstance(lost, NotSent)
    await asyncio.to_thread(own_postgres.start)
    assert list(await broker.send([message("order.placed")], timeout=TIMEOUT)) == [CONFIRMED]
    await broker.close()


async def test_a_database_that_does_not_answer_costs_the_timeout_and_no_more(
    database: str, pool: Pool, proxied: Callable[[str], Proxy]
) -> None:
    await bind(pool, "mail", "#")
    proxy = proxied(database)
    broker = new_broker(proxy.url)
    assert list(await broker.send([message("order.placed")], timeout=TIMEOUT)) == [CONFIRMED]
    proxy.pause()
    async with asyncio.timeout(30):
        [lost] = await broker.send([message("order.placed")], timeout=timedelta(milliseconds=300))
    assert isinstance(lost, NotSent)
    proxy.resume()
    assert list(await broker.send([message("order.placed")], timeout=TIMEOUT)) == [CONFIRMED]
    await broker.close()


async def test_opening_says_that_the_database_is_away_or_what_is_missing(database_url: str) -> None:
    away = new_broker("postgresql://user:secret@127.0.0.1:1/nowhere")
    with pytest.raises(BrokerUnavailableError) as caught:
        await away.open()
    assert "secret" not in str(caught.value)
    await away.close()
    empty = new_broker(database_url)
    with pytest.raises(TopologyError, match="outbox"):
        await empty.open()
    await empty.close()


async def test_a_pool_that_is_given_is_used_and_left_open(database: str) -> None:
    pool = await open_pool(database, size=5, application_name="theirs")
    broker = PostgresBroker(pool=pool, table=TABLE, exchange_name=EXCHANGE, observer=Recorder())
    async with taking(broker, "mail", "#") as taken:
        assert list(await broker.send([message("order.placed")], timeout=TIMEOUT)) == [CONFIRMED]
        await taken.next()
    await broker.close()
    assert await pool.fetchval("select count(*) from outbox_delivery") == 1
    await pool.close()


async def test_a_pool_too_small_to_listen_claim_and_settle_is_refused(database: str) -> None:
    pool = await open_pool(database, size=3, application_name="small")
    with pytest.raises(ConfigurationError, match="4 connections"):
        PostgresBroker(pool=pool, table=TABLE, exchange_name=EXCHANGE, observer=Recorder())
    await pool.close()


async def test_exactly_one_of_url_and_pool_is_given(pool: Pool) -> None:
    with pytest.raises(ConfigurationError):
        PostgresBroker(table=TABLE, exchange_name=EXCHANGE, observer=Recorder())
    with pytest.raises(ConfigurationError):
        PostgresBroker("postgresql://x/y", pool=pool, table=TABLE, exchange_name=EXCHANGE, observer=Recorder())
