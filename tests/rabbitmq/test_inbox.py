"""Messages of other programs for consumers with an inbox."""

import asyncpg

from outbox import Consumer, Worker, ensure_outbox_schema_async
from outbox.transports.rabbitmq import RabbitBroker
from tests.contract.harness import Recorder
from tests.contract.support import existing
from tests.support import RabbitAdmin, eventually
from tests.worker.support import SOON, running


async def test_a_message_without_an_id_is_a_dead_letter_and_one_with_a_foreign_id_is_marked(
    broker_url: str, broker_admin: RabbitAdmin, database_url: str
) -> None:
    await ensure_outbox_schema_async(database_url)
    calls: list[bytes] = []

    async def handle(body: bytes) -> None:
        calls.append(body)

    consumer = Consumer("order.*", handle, queue="mail", inbox=True)
    worker = Worker(
        broker=broker_url, db_engine_url=database_url, consumers=[consumer], exchange_name="shop", enable_metrics=False
    )
    await existing(RabbitBroker(broker_url, exchange_name="shop", observer=Recorder()), "mail", "order.*")
    async with running(worker):
        await broker_admin.publish("shop", "order.placed", b"nameless")
        await broker_admin.publish("shop", "order.placed", b"named", properties={"message_id": "order 7"})
        await broker_admin.publish("shop", "order.placed", b"named", properties={"message_id": "order 7"})
        await eventually(lambda: calls == [b"named"], timeout=SOON)
        await eventually(lambda: broker_admin.depth("mail.dlq"), timeout=SOON)
        [dead] = await broker_admin.get("mail.dlq")
    assert "has no id" in dead["properties"]["headers"]["x-outbox-exception-message"]
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("select message_id from outbox_inbox where queue = 'mail'") == "order 7"
    await connection.close()
    assert calls == [b"named"]
