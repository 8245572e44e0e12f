"""One queue name with two exchanges in one schema is refused at startup, unless an operator has bound it to both."""

import asyncio
import logging
import re

import pytest

from outbox import MessageRelay, Worker, consume
from outbox.engine.consumer import Consumer
from outbox.errors import TopologyError
from outbox.ports import Subscription
from outbox.postgres.pool import Pool
from outbox.transports.postgres import PostgresBroker
from tests.contract.harness import EXCHANGE
from tests.contract.support import Taken, existing
from tests.postgres_transport.support import bind, insert
from tests.support import eventually
from tests.worker.support import running

OTHER = "billing"


def a_consumer(handled: list[int]) -> Consumer:
    @consume("order.placed", queue="mail")
    async def handle(order: int) -> None:
        handled.append(order)

    return handle


def a_worker(database: str, exchange_name: str, handled: list[int]) -> Worker:
    return Worker(
        broker=database, consumers=[a_consumer(handled)], exchange_name=exchange_name, enable_metrics=False, reporting=False
    )


async def bindings(pool: Pool) -> set[tuple[str, str]]:
    return {(row["exchange"], row["queue"]) for row in await pool.fetch("select * from outbox_subscription")}


async def test_a_worker_of_another_exchange_does_not_start_on_a_queue_that_is_bound(database: str, pool: Pool) -> None:
    mine: list[int] = []
    foreign: list[int] = []
    async with running(a_worker(database, EXCHANGE, mine)):
        await eventually(lambda: _is_bound(pool))
        with pytest.raises(TopologyError, match="the queue 'mail' is bound to 'shop' in this schema") as refusal:
            await asyncio.wait_for(a_worker(database, OTHER, foreign).run(handle_signals=False), 30)
        relay = MessageRelay(db_engine_url=database, broker=database, exchange_name=EXCHANGE, enable_metrics=False)
        relaying = asyncio.create_task(relay.run(handle_signals=False))
        for number in range(20):
            await insert(pool, "order.placed", str(number).encode())
        await eventually(lambda: len(mine) == 20)
        relay.stop()
        await relaying
    assert (sorted(mine), foreign) == (list(range(20)), [])
    assert await bindings(pool) == {(EXCHANGE, "mail")}
    assert "Rename the queue" in str(refusal.value)


async def _is_bound(pool: Pool) -> bool:
    return await bindings(pool) == {(EXCHANGE, "mail")}


async def test_of_two_exchanges_that_bind_one_queue_at_the_same_moment_one_is_refused(
    broker: PostgresBroker, other_broker: PostgresBroker, pool: Pool
) -> None:
    queues = [f"mail-{number}" for number in range(20)]
    for queue in queues:
        results = await asyncio.gather(
            _starts(broker, queue, "order.*"), _starts(other_broker, queue, "order.*", exchange=OTHER)
        )
        assert sorted(results) == [False, True]
    assert len(await bindings(pool)) == len(queues)


async def test_the_binding_of_a_removed_application_is_removed_as_the_error_says(broker: PostgresBroker, pool: Pool) -> None:
    await bind(pool, "mail", "order.*", exchange=OTHER)
    with pytest.raises(TopologyError) as refusal:
        await existing(broker, "mail", "order.*")
    [statement] = re.findall(r"delete from .*?(?=\. )", str(refusal.value))
    await pool.execute(statement)
    assert await _starts(broker, "mail", "order.*")


async def test_a_queue_that_an_operator_binds_to_two_exchanges_serves_both(
    broker: PostgresBroker, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    await bind(pool, "it's mail", "order.*", exchange=OTHER)
    with pytest.raises(TopologyError) as refusal:
        await existing(broker, "it's mail", "order.*")
    [statement] = re.findall(r"insert into .*", str(refusal.value))
    await pool.execute(statement)
    with caplog.at_level(logging.WARNING, "outbox"):
        assert await _starts(broker, "it's mail", "order.*")
    assert "the queue it's mail of the exchange shop is also bound to billing" in caplog.text
    assert await _starts(broker, "it's mail", "invoice.*"), "another key of an exchange that fills the queue already"


async def _starts(broker: PostgresBroker, queue: str, binding_key: str, *, exchange: str = EXCHANGE) -> bool:
    subscription = Subscription(queue=queue, binding_key=binding_key, exchange_name=exchange, prefetch_count=1, retry_delays=())
    try:
        async with broker.subscribe(subscription, Taken().receive):
            return True
    except TopologyError:
        return False
