"""Workers on SQS and SNS: nothing is lost, each consumer's promises hold, and messages of any program are handled."""

import asyncio
import json
import re
import signal
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from botocore.exceptions import ClientError

from outbox import Consumer, Worker, get_tracking_ids
from outbox.core.message import OutboxMessage
from outbox.errors import BrokerUnavailableError, TopologyError
from outbox.ports import Received, Subscription
from outbox.transports.aws import AwsSource, AwsTransport
from outbox.transports.aws.source import AwsReader
from tests.aws.canned import CannedAws
from tests.contract.support import TIMEOUT, message
from tests.servers.moto import ACCOUNT, CREDENTIALS, Moto
from tests.servers.proxy import Proxy
from tests.support import eventually
from tests.support.processes import running as running_process
from tests.support.streams import (
    OPTIONS,
    collecting,
    fail_and_requeue,
    is_drained,
    keep_the_order_of_each_key,
    publish,
    relaying,
    working,
)


def is_read(moto: Moto, queue: str) -> bool:
    """Whether all messages of the queue are deleted."""
    return moto.counts(queue) == (0, 0)


async def test_an_event_reaches_its_handler_through_a_fifo_topic(
    database: str, connection: asyncpg.Connection, moto: Moto
) -> None:
    seen: list[Any] = []

    async def handle(order: dict[str, int], routing_key: str, message: Any, attempt_count: int) -> None:
        seen.append((order, routing_key, message, attempt_count, get_tracking_ids()))

    headers = {"tenant": "acme", "size": 3, "nested": {"a": [1, None]}, "none": None}
    sent = OutboxMessage("order.placed", {"id": 7}, headers=headers, ordering_key="customer 1", expiration=3_600)
    consumer = Consumer("order.placed", handle, queue="mail", ordered=True)
    url = moto.sns("orders.fifo")
    # The worker creates the topic, the queue and the subscription; the relay creates nothing.
    async with relaying(database, url), working(database, url, consumer):
        await publish(connection, sent)
        await eventually(lambda: seen)
        [(order, routing_key, message, attempt, tracking)] = seen
        assert (order, routing_key, attempt) == ({"id": 7}, "order.placed", 1)
        assert {name: value for name, value in message.headers.items() if name in headers} == headers
        assert (message.content_type, message.exchange) == ("application/json", "aws")
        assert message.headers["x-outbox-ordering-key"] == "customer 1"
        assert 3_500 < message.expiration <= 3_600
        assert tracking == (message.message_id,)
        await eventually(lambda: is_drained(connection))
        await eventually(lambda: is_read(moto, "mail.fifo"))


async def test_a_failing_message_is_retried_dead_lettered_and_requeued_to_its_queue_alone(
    database: str, connection: asyncpg.Connection, moto: Moto
) -> None:
    await fail_and_requeue(database, connection, relay_to=moto.sns("orders"), read_from=moto.sns("orders"), exchange="aws")


async def test_ordered_consumers_of_several_workers_keep_the_order_of_each_key(
    database: str, connection: asyncpg.Connection, moto: Moto
) -> None:
    url = moto.sns("orders.fifo")
    await keep_the_order_of_each_key(database, connection, relay_to=url, read_from=url, count=60, workers=2)


async def test_what_cannot_be_read_completely_is_refused_at_the_start(database: str, moto: Moto) -> None:
    def worker(url: str, *consumers: Consumer) -> Worker:
        return Worker(broker=url, db_engine_url=database, consumers=consumers, **OPTIONS)

    for url, consumers, complaint in (
        (moto.sqs(), [collecting([], "order.placed")], "write queue='order-placed' in the consumer"),
        (moto.sns("orders", create="false"), [collecting([])], "SQS has no queue 'mail': create it"),
        (
            moto.sns("orders", account="1" * 12),
            [collecting([])],
            "cannot prepare the queue 'mail'|has no topic 'orders' in the acc",
        ),
        (f"{moto.sqs(account=ACCOUNT)}&queue=mail", [collecting([], "#")], "SQS has no queue 'mail': create it"),
        (moto.sns("orders"), [collecting([], queue="a.b"), collecting([], queue="a-b")], "have the same name in SQS, 'a-b'"),
    ):
        with pytest.raises(TopologyError, match=complaint):
            await worker(url, *consumers).run(handle_signals=False)


async def test_messages_of_other_programs_and_of_other_subscriptions_are_handled(database: str, moto: Moto) -> None:
    seen: list[tuple[str, bytes]] = []

    async def handle(body: bytes, routing_key: str) -> None:
        seen.append((routing_key, body))

    # All of it exists already, and its subscription is not raw.
    moto.create_queue("mail")
    topic = moto.create_topic("orders")
    moto.subscribe(topic, "mail")
    url = moto.sns("orders", create="false")
    transport = AwsTransport(url)
    results = await transport.send([message("order.placed", b"\xff"), message("invoice.sent")], timeout=TIMEOUT)
    await transport.close()
    assert len(results) == 2
    moto.publish(topic, "by sns")
    moto.send("mail", "by sqs")
    async with working(database, url, Consumer("order.*", handle, queue="mail")):
        await eventually(lambda: len(seen) == 3)
        await eventually(lambda: is_read(moto, "mail"))
    assert sorted(seen) == [("mail", b"by sns"), ("mail", b"by sqs"), ("order.placed", b"\xff")]


async def test_an_aws_that_is_away_or_has_lost_everything_stops_no_worker(
    database: str, moto: Moto, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "outbox")
    found: list[bytes] = []
    moto.create_queue("mail")
    async with working(database, f"{moto.sqs()}&queue=mail", collecting(found, "#")):
        moto.send("mail", *map(str, range(25)))
        # What was in an answer that did not arrive is hidden for half a minute.
        await eventually(lambda: len(found) == 25, timeout=60)
        moto.kill()
        await eventually(lambda: "lost the broker, trying again: AWS is unavailable" in caplog.text)
        moto.start()
        await eventually(lambda: moto.has_queue("mail"))
        moto.send("mail", "after")
        await eventually(lambda: b"after" in found, timeout=60)
        await eventually(lambda: "the broker is back" in caplog.text)


async def test_messages_are_deleted_only_after_they_are_stored(
    database: str, connection: asyncpg.Connection, moto: Moto, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(database)
    found: list[bytes] = []
    moto.create_queue("mail")
    async with working(proxy.url, f"{moto.sqs()}&queue=mail", collecting(found, "#")):
        moto.send("mail", "first")
        await eventually(lambda: found == [b"first"])
        await eventually(lambda: is_read(moto, "mail"))
        await eventually(lambda: is_drained(connection))
        proxy.refuse()
        proxy.cut()
        moto.send("mail", *map(str, range(30)))
        await eventually(lambda: moto.counts("mail")[1] > 0)
        assert sum(moto.counts("mail")) == 30
        proxy.accept()
        await eventually(lambda: {b"%d" % n for n in range(30)} <= set(found))
        await eventually(lambda: is_read(moto, "mail"))


# --- a reader by itself ------------------------------------------------------------------------------------------------------


def subscription(key: str = "#") -> Subscription:
    return Subscription(queue="mail", binding_key=key, exchange_name="aws", prefetch_count=10, retry_delays=())


async def fetched(reader: AwsReader, count: int) -> list[Received]:
    """So many messages, in as many fetches as that takes."""
    received: list[Received] = []
    async with asyncio.timeout(30):
        while len(received) < count:
            received += await reader.fetch(count - len(received))
    return received


def bodies(received: Sequence[Received]) -> list[bytes]:
    return sorted(each.message.body for each in received)


async def test_what_was_not_acknowledged_goes_to_another_reader_at_once_when_the_first_one_ends(moto: Moto) -> None:
    source = AwsSource(f"{moto.sqs(wait_time='5')}&queue=mail")
    async with source.read(subscription()) as reader:
        moto.send("mail", *map(str, range(25)))
        received = await fetched(reader, 25)
        assert len(await reader.fetch(500)) == 0
        await reader.acknowledge(received[:22])
        # The request of a fetch that was cancelled gets a message.
        fetching = asyncio.create_task(reader.fetch(10))
        await asyncio.wait([fetching], timeout=0.05)
        fetching.cancel()
        await asyncio.wait([fetching])
        moto.send("mail", "late")
        await eventually(lambda: moto.counts("mail") == (0, 4))
    assert moto.counts("mail") == (4, 0)
    async with source.read(subscription()) as reader:
        again = await fetched(reader, 4)
        assert bodies(again) == sorted([b"late", *bodies(received[22:])])
        await reader.acknowledge(again)
        await reader.acknowledge(again)
    assert is_read(moto, "mail")
    await source.close()


async def test_a_reader_whose_end_is_cancelled_leaves_no_open_request(moto: Moto) -> None:
    source = AwsSource(f"{moto.sqs(wait_time='5')}&queue=mail")
    before = asyncio.all_tasks()
    reading = source.read(subscription())
    reader = await reading.__aenter__()
    assert await reader.fetch(10) == []
    ending = asyncio.create_task(reader.close())
    await asyncio.sleep(0)  # it begins to wait for the open request
    ending.cancel()
    await eventually(lambda: len(asyncio.all_tasks() - before) == 1, timeout=2)  # that of the heartbeat
    await reading.__aexit__(None, None, None)
    await source.close()


async def test_a_reader_ends_soon_while_aws_does_not_answer(
    moto: Moto, proxied: Callable[[str], Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.aws.source.CLOSE_PATIENCE", timedelta(milliseconds=200))
    proxy = proxied(moto.endpoint)
    source = AwsSource(f"{moto.sqs(endpoint_url=proxy.url, wait_time='20')}&queue=mail")
    async with asyncio.timeout(30) as limit:
        async with source.read(subscription()) as reader:
            moto.send("mail", "1")
            await fetched(reader, 1)
            proxy.pause()
            limit.reschedule(asyncio.get_running_loop().time() + 15)
        await source.close()


async def test_a_reader_that_ends_returns_all_that_it_has_at_once(canned: CannedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for it does not depend on the number of messages: each request waits for the other one."""
    both, answer = threading.Barrier(2), canned.answer

    def answer_both(action: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if action == "ChangeMessageVisibilityBatch":
            both.wait(timeout=30)
        return answer(action, request)

    monkeypatch.setattr(canned, "answer", answer_both)
    receipts = [f"{batch}{n}" for batch in "ab" for n in range(10)]
    many = [{"MessageId": receipt, "ReceiptHandle": receipt, "Body": "1", "Attributes": {}} for receipt in receipts]
    canned.answers["ReceiveMessage"] = [(200, {"Messages": many[:10]}), (200, {"Messages": many[10:]}), *[(200, {})] * 20]
    canned.answers["ChangeMessageVisibilityBatch"] = [(200, {})] * 2
    source = AwsSource(canned.url)
    async with source.read(subscription()) as reader, asyncio.timeout(30):
        assert len(await fetched(reader, 20)) == 20
    await source.close()
    returned = [entry["ReceiptHandle"] for each in canned.of("ChangeMessageVisibilityBatch") for entry in each["Entries"]]
    assert sorted(returned) == receipts


async def test_messages_stay_with_their_reader_while_it_lives_and_arrive_again_when_it_does_not(moto: Moto) -> None:
    source = AwsSource(moto.sns("orders", visibility_timeout="2", wait_time="2"))
    async with source.read(subscription("order.#")) as reader, source.read(subscription("order.#")) as other:
        moto.send("mail", "1", "2")
        received = await fetched(reader, 2)
        # The visibility timeout is over twice in this time.
        for _ in range(4):
            assert await other.fetch(10) == []
        reader._held.clear()  # as if its process were dead: it sends no heartbeats any more
        again = await fetched(other, 2)
        assert bodies(again) == bodies(received) == [b"1", b"2"]
        await other.acknowledge(again)
        await reader.acknowledge(received)
    assert is_read(moto, "mail")
    await source.close()


async def test_a_request_to_a_fifo_queue_whose_answer_was_lost_is_repeated_as_the_same_one(canned: CannedAws) -> None:
    canned.answers["ReceiveMessage"] = [(503, {"__type": "ServiceUnavailable"}), *[(200, {})] * 10]
    source = AwsSource(f"{canned.url}.fifo")
    async with source.read(subscription()) as reader, asyncio.timeout(30):
        with pytest.raises(BrokerUnavailableError):
            await fetched(reader, 1)
        while len(canned.of("ReceiveMessage")) < 4:
            await reader.fetch(1)
    await source.close()
    lost, repeated, *others = [request["ReceiveRequestAttemptId"] for request in canned.of("ReceiveMessage")]
    assert lost == repeated  # SQS gives the messages of the lost answer again, though they are invisible
    assert len({lost, *others}) == 1 + len(others)


async def test_a_second_request_whose_answer_was_lost_is_repeated_though_the_first_brings_few(canned: CannedAws) -> None:
    many = [{"MessageId": str(n), "ReceiptHandle": str(n), "Body": "1", "Attributes": {}} for n in range(10)]
    lost = (503, {"__type": "ServiceUnavailable"})
    canned.answers["ReceiveMessage"] = [(200, {"Messages": many}), lost, *[(200, {})] * 20]
    canned.answers["ChangeMessageVisibilityBatch"] = [(200, {})]
    source = AwsSource(f"{canned.url}.fifo")
    async with source.read(subscription()) as reader, asyncio.timeout(30):
        while len(canned.of("ReceiveMessage")) < 6:
            await reader.fetch(20)
    await source.close()
    ids = [request["ReceiveRequestAttemptId"] for request in canned.of("ReceiveMessage")]
    assert ids[1] in ids[2:4]
    assert len(set(ids)) == len(ids) - 1


async def test_a_changed_binding_key_changes_the_subscription(moto: Moto) -> None:
    moto.create_topic("orders")
    source, transport = AwsSource(moto.sns("orders", account=ACCOUNT)), AwsTransport(moto.sns("orders"))
    batch = [message("order.placed", b"1"), message("order.placed.eu", b"2"), message("invoice.sent", b"3")]
    for key, expected in (("order.placed", [b"1"]), ("order.*", [b"1"]), ("order.#", [b"1", b"2"]), ("#", [b"1", b"2", b"3"])):
        async with source.read(subscription(key)) as reader:
            await transport.send(batch, timeout=TIMEOUT)
            received = await fetched(reader, len(expected))
            assert bodies(received) == expected
            await reader.acknowledge(received)
            assert is_read(moto, "mail")
    await source.close()
    await transport.close()


async def test_a_policy_for_a_topic_with_a_longer_name_does_not_let_this_one_send(moto: Moto) -> None:
    for topic in ("orders-new", "orders", "orders"):
        source = AwsSource(moto.sns(topic))
        async with source.read(subscription("order.placed")):
            pass
        await source.close()
    answer = moto.call("GetQueueAttributes", QueueUrl=moto.url_of("mail"), AttributeNames=["Policy"])
    allowed = json.loads(answer["Attributes"]["Policy"])["Statement"]
    topics = [each["Condition"]["ArnEquals"]["aws:SourceArn"].rpartition(":")[2] for each in allowed]
    assert topics == ["orders-new", "orders"]


async def test_a_subscription_with_other_attributes_is_found_and_changed(moto: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    source = AwsSource(moto.sns("orders"))
    call = source._aws.call

    async def refuse(service: str, operation: str, **parameters: Any) -> Any:
        if operation == "subscribe":  # as SNS does, and moto does not
            text = "Invalid parameter: Attributes Reason: Subscription already exists with different attributes"
            raise ClientError({"Error": {"Code": "InvalidParameter", "Message": text}}, "Subscribe")
        return await call(service, operation, **parameters)

    topic = moto.create_topic("orders")
    moto.create_queue("other")
    moto.subscribe(topic, "other")
    moto.create_queue("mail")
    moto.subscribe(topic, "mail")
    monkeypatch.setattr(source._aws, "call", refuse)
    transport = AwsTransport(moto.sns("orders"))
    async with source.read(subscription("order.placed")) as reader:
        await transport.send([message("order.paid"), message("order.placed", b"1")], timeout=TIMEOUT)
        assert bodies(await fetched(reader, 1)) == [b"1"]
    await source.close()
    await transport.close()
    # Filtered, and raw: the attributes are those of SQS.
    assert [each["MessageAttributes"]["routing_key"]["StringValue"] for each in moto.receive("mail")] == ["order.placed"]


# --- in processes of their own -----------------------------------------------------------------------------------------------

WORKER = """
import os, signal
from outbox import Consumer
from outbox.transports.aws.source import AwsReader

async def deposit(number: int, connection) -> None:
    await connection.execute("insert into deposit (number) values ($1)", number)

async def die(reader, received) -> None:
    os.kill(os.getpid(), signal.SIGKILL)

if "DIES" in os.environ:
    AwsReader.acknowledge = die
consumers = [Consumer("#", deposit, queue="bank", inbox=True)]
"""


async def test_a_worker_that_is_killed_between_storing_and_deleting_loses_nothing_and_an_inbox_handles_each_message_once(
    database: str, connection: asyncpg.Connection, moto: Moto, tmp_path: Path
) -> None:
    await connection.execute("create table deposit (number int not null)")
    (tmp_path / "bank.py").write_text(WORKER)
    moto.create_queue("bank")
    moto.send("bank", *map(str, range(30)))
    settings = {
        "OUTBOX_DATABASE_URL": database,
        "OUTBOX_BROKER_URL": f"{moto.sqs(visibility_timeout='1')}&queue=bank",
        "OUTBOX_MONITORING_PORT": "0",
        "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}",
        **CREDENTIALS,
    }
    arguments = ["-m", "outbox.cli", "worker", "bank:consumers"]
    with running_process(arguments, tmp_path, {**settings, "DIES": "1"}, name="first") as worker:
        assert worker.wait() == -signal.SIGKILL
    stored = await connection.fetchval("select (select count(*) from outbox_delivery) + (select count(*) from deposit)")
    assert stored > 0
    assert sum(moto.counts("bank")) == 30
    # The lease of the dead worker runs out.
    await connection.execute(
        "update outbox_delivery set leased_until = now(), available_at = now() where lease_token is not null"
    )
    with running_process(arguments, tmp_path, settings, name="last") as worker:
        await eventually(lambda: connection.fetchval("select count(distinct number) = 30 from deposit"), timeout=60)
        await eventually(lambda: is_read(moto, "bank"))
        await eventually(lambda: is_drained(connection))
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    assert await connection.fetchval("select count(*) from deposit") == 30


async def test_the_consumer_on_the_page_prints_a_receipt(
    database: str, connection: asyncpg.Connection, moto: Moto, tmp_path: Path
) -> None:
    page = Path(__file__).parents[2] / "docs" / "aws.md"
    [program] = re.findall(r"^```python\n(# mail\.py\n.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    [insert] = re.findall(r"^```sql\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    [url] = re.findall(r"^export OUTBOX_BROKER_URL='(.*)'$", page.read_text(), re.MULTILINE)
    (tmp_path / "mail.py").write_text(program)
    settings = {
        "OUTBOX_DATABASE_URL": database,
        "OUTBOX_BROKER_URL": url.replace("http://localhost:5000", moto.endpoint),
        "OUTBOX_MONITORING_PORT": "0",
        "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}",
        "PYTHONUNBUFFERED": "1",
        **CREDENTIALS,
    }
    await connection.execute(insert)
    with (
        running_process(["-m", "outbox.cli", "worker", "mail:consumers"], tmp_path, settings, name="worker") as worker,
        running_process(["-m", "outbox.cli", "relay"], tmp_path, settings, name="relay"),
    ):
        worker.says("receipt for order 7")
