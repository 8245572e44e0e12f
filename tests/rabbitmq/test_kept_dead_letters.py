"""A worker that cannot publish dead letters for a while reports that once, goes on, and stops on request."""

import asyncio
import logging
from collections import Counter

import pytest

from outbox import Consumer, Reject, Worker
from tests.rabbitmq.support import EXCHANGE, MakeBroker
from tests.support import RabbitAdmin, eventually


async def test_a_worker_that_may_not_publish_dead_letters_keeps_messages_reports_it_once_and_stops_on_request(
    make_broker: MakeBroker, broker_admin: RabbitAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    calls: Counter[bytes] = Counter()

    async def pay(body: bytes) -> None:
        calls[body] += 1
        if body == b"declined":
            raise Reject("the card was declined")

    url = await broker_admin.create_user("demoted", "s3cret")
    await broker_admin.permit("demoted")
    await broker_admin.declare_queue("mail", quorum=False)
    broker = make_broker(url)
    consumers = [Consumer("order.*", pay, "mail", ())]
    worker = Worker(broker=broker, consumers=consumers, exchange_name=EXCHANGE, enable_metrics=False)
    caplog.set_level(logging.WARNING, logger="outbox")
    running = asyncio.create_task(worker.run(handle_signals=False))
    try:
        await eventually(lambda: broker_admin.queue("mail.dlq"))
        await eventually(lambda: broker._pipeline._idle)
        await broker_admin.permit("demoted", write="^$")
        broker._pipeline.close()  # the broker remembers for a minute what a channel was allowed to do
        await broker_admin.publish("", "mail", b"declined")
        await eventually(lambda: _logged(caplog))
        await broker_admin.publish("", "mail", b"paid")
        await eventually(lambda: calls[b"paid"])
    finally:
        worker.stop()
        await asyncio.wait_for(running, 60)
    assert len(_logged(caplog)) == 1
    assert calls == {b"declined": 1, b"paid": 1}
    await eventually(lambda: _waiting(broker_admin))


def _logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if "the message is kept" in text]


async def _waiting(admin: RabbitAdmin) -> bool:
    return await admin.depth("mail") == 1
