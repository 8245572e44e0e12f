"""A relay to SQS: nothing is lost and nothing is spent while queues or AWS are missing, and the doctor says what is wrong."""

from datetime import timedelta

import asyncpg
import pytest

from outbox import Consumer
from outbox.core.message import OutboxMessage
from outbox.doctor import Installation, examine
from tests.servers.moto import Moto
from tests.support import eventually
from tests.support.streams import is_empty, numbered, publish, relaying


async def test_messages_wait_for_their_queue_and_for_aws(
    database: str, connection: asyncpg.Connection, moto: Moto, caplog: pytest.LogCaptureFixture
) -> None:
    moto.create_queue("there")
    await publish(connection, *numbered("late", 3), OutboxMessage("there", b"at once"))
    async with relaying(database, moto.sqs(), publish_timeout=5):
        held = "select count(*) = 3 from outbox_table where routing_key = 'late' and held_at is not null and attempts = 0"
        await eventually(lambda: connection.fetchval(held))
        assert [each["Body"] for each in moto.receive("there")] == ["at once"]
        moto.create_queue("late")
        await eventually(lambda: is_empty(connection))
        assert sorted(each["Body"] for each in moto.receive("late")) == ["0", "1", "2"]
        moto.kill()
        await publish(connection, *numbered("late", 25))
        await eventually(lambda: "AWS is unavailable" in caplog.text)
        assert await connection.fetchval("select count(*) = 25 and max(attempts) = 0 from outbox_table")
        # It has lost the queue, too: the relay looks for it again.
        moto.start()
        moto.create_queue("late")
        await eventually(lambda: is_empty(connection))
    assert sorted(int(each["Body"]) for each in moto.receive("late")) == list(range(25))


async def test_an_ordering_key_keeps_its_order_through_an_outage(
    database: str, connection: asyncpg.Connection, moto: Moto
) -> None:
    moto.create_queue("mail.fifo")
    await publish(connection, *numbered("order.placed", 60, keys=3))
    async with relaying(database, f"{moto.sqs()}&queue=mail.fifo", publish_timeout=2):
        await eventually(lambda: connection.fetchval("select count(*) between 1 and 50 from outbox_table"))
        moto.freeze()
        try:
            await publish(connection, *numbered("order.placed", 6, keys=3))
        finally:
            moto.thaw()
        await eventually(lambda: is_empty(connection))
    found: dict[str, list[int]] = {}
    while messages := moto.take("mail.fifo"):
        for each in messages:
            found.setdefault(each["Attributes"]["MessageGroupId"], []).append(int(each["Body"]))
    expected = [[*range(key, 60, 3), *range(key, 6, 3)] for key in range(3)]
    assert sorted(found.values()) == expected


async def test_the_doctor_looks_at_aws_its_topic_and_its_queues(database: str, moto: Moto) -> None:
    async def handle(body: bytes) -> None: ...

    async def found(url: str, *consumers: Consumer) -> list[tuple[str, str]]:
        report = await examine(
            Installation(
                database_url=database,
                broker_url=url,
                consumers=consumers,
                consumer_timeout=timedelta(minutes=30),
                exchange_name="outbox",
            )
        )
        return [(each.severity, each.summary) for each in report.findings if each.check in ("broker", "topology")]

    where = f"eu-west-1, topic orders, at {moto.endpoint}"
    assert await found(moto.sns("orders")) == [("ok", f"SNS in {where}"), ("error", "the topic 'orders' is missing")]
    topic = moto.create_topic("orders")
    mail = Consumer("order.*", handle, queue="mail")
    assert await found(moto.sns("orders"), mail) == [
        ("ok", f"SNS in {where}"),
        ("error", "the topic 'orders' has no subscription"),
        ("warning", "the queue 'mail' is missing in SQS"),
    ]
    moto.create_queue("mail")
    moto.subscribe(topic, "mail")
    assert await found(moto.sns("orders"), mail) == [("ok", f"SNS in {where}")]
    where = f"at {moto.endpoint}"
    assert await found(f"{moto.sqs()}&queue=events") == [
        ("ok", f"SQS in eu-west-1, queue events, {where}"),
        ("error", "the queue 'events' is missing"),
    ]
    [fine, (severity, summary)] = await found(moto.sqs(), mail)
    assert (fine[0], severity, "has wildcards" in summary) == ("ok", "error", True)
    [(severity, summary)] = await found("sqs://eu-west-1?endpoint_url=http://127.0.0.1:1")
    assert (severity, "cannot be reached: AWS is unavailable" in summary) == ("error", True)
