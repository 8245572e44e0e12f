"""What handlers with an inbox and handlers of batches leave behind, over real brokers."""

import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import asyncpg
import pytest
from pydantic import BaseModel

from outbox import BoundPublisher, Consumer, Worker, ensure_outbox_schema_async
from outbox.ports import Broker
from tests.contract.harness import EXCHANGE, Harness
from tests.contract.support import existing, message, send
from tests.servers.proxy import Proxy
from tests.support import eventually
from tests.worker.support import running

SOON = 30.0
RETRIES = ("0",) * 20
"""A cut in the middle of a handler costs an attempt; here they are many."""


class Transfer(BaseModel):
    account: int
    amount: int


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Any]:
    """A bank with four accounts, next to all tables of Outbox."""
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "create table account (id int primary key, balance int not null default 0);"
        "insert into account (id) select generate_series(0, 3)"
    )
    yield connection
    await connection.close()


@pytest.fixture
def broker_to_cut(request: pytest.FixtureRequest, harness: Harness, proxied: Callable[[str], Proxy]) -> Proxy:
    """A proxy in front of the harness's server."""
    return proxied(request.getfixturevalue("broker_url" if harness.name == "rabbitmq" else "database_url"))


async def _transfer(transfer: Transfer, connection: Any, publisher: BoundPublisher[Any]) -> None:
    await connection.execute("update account set balance = balance + $2 where id = $1", transfer.account, transfer.amount)
    await publisher.publish("transfer.booked", transfer)


async def _transfers(transfers: list[Transfer], connection: Any, publisher: BoundPublisher[Any]) -> None:
    for transfer in transfers:
        await _transfer(transfer, connection, publisher)


@pytest.mark.parametrize("harness", ["postgres", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)], indirect=True)
@pytest.mark.parametrize("batch", [False, True])
async def test_the_balance_is_exact_although_everything_comes_twice_and_connections_are_cut(
    harness: Harness,
    broker: Broker,
    db: Any,
    database_url: str,
    broker_to_cut: Proxy,
    request: pytest.FixtureRequest,
    proxied: Callable[[str], Proxy],
    batch: bool,
) -> None:
    amounts = range(1, 161)
    sent = [message("transfer.ordered", json.dumps({"account": amount % 4, "amount": amount}).encode()) for amount in amounts]
    consumer = Consumer(
        "transfer.ordered", _transfers if batch else _transfer, queue="bank", inbox=True, batch=batch, retry_delays=RETRIES
    )
    await existing(broker, "bank", "transfer.ordered")
    await send(broker, *sent, *reversed(sent))
    database = proxied(database_url)
    worker = Worker(
        broker=broker_to_cut.url,
        db_engine_url=database.url,
        consumers=[consumer],
        exchange_name=EXCHANGE,
        enable_metrics=False,
        reporting=False,
    )

    async def until_marked(count: int) -> None:
        async def marked() -> bool:
            return bool(await db.fetchval("select count(*) >= $1 from outbox_inbox", count))

        await eventually(marked, timeout=SOON, interval=0.005)

    async with running(worker):
        for part in (20, 60, 100):
            await until_marked(part)
            broker_to_cut.cut()
            await until_marked(part + 20)
            database.cut()
        await until_marked(len(sent))
        await eventually(partial(_is_empty, harness, request, db), timeout=SOON)
    balances = [row["balance"] for row in await db.fetch("select balance from account order by id")]
    assert balances == [sum(amount for amount in amounts if amount % 4 == account) for account in range(4)]
    assert await db.fetchval("select count(*) from outbox_table where routing_key = 'transfer.booked'") == len(sent)
    assert await harness.dead_letters("bank") == []


async def _is_empty(harness: Harness, request: pytest.FixtureRequest, db: Any) -> bool:
    if harness.name == "rabbitmq":
        return bool(await request.getfixturevalue("broker_admin").depth("bank") == 0)
    return bool(await db.fetchval("select count(*) = 0 from outbox_delivery"))


async def test_a_batch_is_settled_message_by_message(harness: Harness, broker: Broker) -> None:
    sums: list[int] = []

    async def handle(transfers: list[Transfer]) -> None:
        if any(transfer.amount == 13 for transfer in transfers):
            raise LookupError("no such account")
        sums.append(sum(transfer.amount for transfer in transfers))

    consumer = Consumer("transfer.*", handle, queue="bank", batch=True, retry_delays=("0",))
    bodies = [b"broken", *(json.dumps({"account": 1, "amount": amount}).encode() for amount in range(40))]
    await existing(broker, "bank", "transfer.*")
    await send(broker, *(message("transfer.ordered", body) for body in bodies))
    worker = Worker(broker=broker, consumers=[consumer], exchange_name=EXCHANGE, enable_metrics=False)
    async with running(worker):
        await eventually(lambda: sum(sums) == sum(range(40)) - 13, timeout=SOON)
        await eventually(partial(_both_dead, harness), timeout=SOON)
    dead = await harness.dead_letters("bank")
    assert {letter.body for letter in dead} == {b"broken", b'{"account": 1, "amount": 13}'}
    again = Worker(broker=broker, consumers=[consumer], exchange_name=EXCHANGE, enable_metrics=False)
    async with running(again):
        await send(broker, message("transfer.ordered", b'{"account": 1, "amount": 1000}'))
        await eventually(lambda: sums[-1:] == [1000], timeout=SOON)
    assert sum(sums) == sum(range(40)) - 13 + 1000


async def _both_dead(harness: Harness) -> bool:
    return len(await harness.dead_letters("bank")) == 2
