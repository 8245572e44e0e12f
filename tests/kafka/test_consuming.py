"""Workers on Kafka: nothing is lost, each consumer's promises hold, and records of any producer are handled."""

import asyncio
import re
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from outbox import Consumer, Worker, get_tracking_ids
from outbox.core.message import OutboxMessage
from outbox.errors import BrokerUnavailableError, ConfigurationError
from outbox.ports import Received, Subscription
from outbox.transports.kafka_source import KafkaReader, KafkaSource, topics_of
from tests.servers.kafka import HEARTBEAT, KafkaError, MockKafka, mock_kafka
from tests.servers.proxy import Proxy
from tests.support import eventually
from tests.support.processes import forks
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
from tests.worker.support import running


async def test_a_published_event_reaches_its_handler_through_kafka(
    database: str, connection: asyncpg.Connection, mock: MockKafka
) -> None:
    mock.create_topic("order.placed")
    seen: list[Any] = []

    async def handle(order: dict[str, int], routing_key: str, message: Any, attempt_count: int) -> None:
        seen.append((order, routing_key, message, attempt_count, get_tracking_ids()))

    headers = {"tenant": "acme", "size": 3, "nested": {"a": [1, None]}, "none": None}
    sent = OutboxMessage("order.placed", {"id": 7}, headers=headers, ordering_key="customer 1", expiration=3_600)
    async with (
        relaying(database, mock.url),
        working(database, mock.consuming_url, Consumer("order.placed", handle, queue="mail")),
    ):
        await publish(connection, sent)
        await eventually(lambda: seen)
        [(order, routing_key, message, attempt, tracking)] = seen
        assert (order, routing_key, attempt) == ({"id": 7}, "order.placed", 1)
        assert {name: value for name, value in message.headers.items() if name in headers} == headers
        assert (message.content_type, message.exchange) == ("application/json", "kafka")
        assert message.headers["x-outbox-ordering-key"] == "customer 1"
        assert 3_500 < message.expiration <= 3_600
        assert tracking == (message.message_id,)
        await eventually(lambda: is_drained(connection))
        await eventually(lambda: mock.committed("mail", "order.placed") == 1)


async def test_a_failing_message_is_retried_dead_lettered_and_requeued_to_its_queue_alone(
    database: str, connection: asyncpg.Connection, mock: MockKafka
) -> None:
    mock.create_topic("order.placed")
    await fail_and_requeue(database, connection, relay_to=mock.url, read_from=mock.consuming_url, exchange="kafka")


async def test_an_ordered_consumer_keeps_the_order_of_each_key_while_messages_fail(
    database: str, connection: asyncpg.Connection, mock: MockKafka
) -> None:
    mock.create_topic("order.placed")
    await keep_the_order_of_each_key(
        database, connection, relay_to=mock.url, read_from=mock.consuming_url, count=100, workers=2
    )


async def test_binding_keys_choose_topics_and_routing_keys(database: str, mock: MockKafka) -> None:
    for topic in ("order", "order.placed", "order.placed.eu", "invoice.placed", "__internal", "shared"):
        mock.create_topic(topic, partitions=1)
        mock.produce(topic, topic.encode())
    mock.produce("shared", {"value": b"routed", "headers": {"x-outbox-routing-key": "order.paid"}})
    found: dict[str, list[bytes]] = {key: [] for key in ("order.*", "order.#", "order.placed", "#")}
    consumers = [collecting(bodies, key, queue=f"queue {key}") for key, bodies in found.items()]
    expected = {
        "order.*": [b"order.placed"],
        "order.#": [b"order", b"order.placed", b"order.placed.eu"],
        "order.placed": [b"order.placed"],
        "#": [b"invoice.placed", b"order", b"order.placed", b"order.placed.eu", b"routed", b"shared"],
    }
    async with working(database, mock.consuming_url, *consumers):
        await eventually(lambda: {key: sorted(bodies) for key, bodies in found.items()} == expected)
    of_one_topic: list[bytes] = []
    source = KafkaSource(f"{mock.consuming_url}&topic=shared")
    consumer = collecting(of_one_topic, "order.*", queue="one topic")
    async with (
        asyncpg.create_pool(database, min_size=0, max_size=5) as pool,
        running(Worker(broker=source, db_pool=pool, consumers=[consumer], **OPTIONS)),
    ):
        await eventually(lambda: mock.committed("one topic", "shared", partitions=1) == 2)
        await eventually(lambda: of_one_topic == [b"routed"])


@pytest.mark.parametrize(
    ("binding_key", "topic", "expected"),
    [
        ("order.placed", "{routing_key}", "order.placed"),
        ("order.placed", "events", "events"),
        ("order.*", "events", "events"),
        ("order.placed", "events.{routing_key}", "events.order.placed"),
        ("order.*", "events.{routing_key}-v1", r"^events\.order\.[^.]*-v1$"),
        ("#", "{routing_key}", "^.*$"),
        ("#.*", "{routing_key}", r"^([^.]*\.)*[^.]*$"),
        ("order.#.eu", "{routing_key}", r"^order(\.[^.]*)*\.eu$"),
        ("order.*", lambda key: key.split(".")[0], "order"),
        ("order.*", lambda key: f"^{key.split('.')[0]}-", "^order-"),
    ],
)
def test_a_binding_key_names_the_topics_to_read(binding_key: str, topic: Any, expected: str) -> None:
    assert topics_of(binding_key, topic) == expected


def test_a_binding_key_that_names_no_topic_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'order placed' leads to 'order placed', which is not the name of a topic"):
        topics_of("order placed", "{routing_key}")


async def test_records_of_other_producers_are_messages(database: str, mock: MockKafka) -> None:
    mock.create_topic("order.placed", partitions=1)
    seen: list[Any] = []

    async def handle(body: bytes, message: Any) -> None:
        seen.append((body, message, get_tracking_ids()))

    sent = datetime(2026, 5, 17, 12, tzinfo=UTC)
    unreadable = {
        "x-outbox-message-id": "m-1",
        "x-outbox-tracking-ids": "no JSON",
        "x-outbox-created-at": "yesterday",
        "x-outbox-expires-at": b"\xff",
        "x-outbox-hlc": "soon",
        "x-outbox-requeue-count": "-1",
        "x-outbox-json-headers": '["size", 3]',
        "size": "{",
        "content-type": "text/plain",
        "raw": b"\xff\x00",
    }
    mock.produce(
        "order.placed",
        {"value": b"plain", "timestamp": int(sent.timestamp() * 1_000)},
        {"value": None, "key": b"customer \xc5\xbc"},
        {"value": b"odd", "key": b"\xff\x00", "headers": unreadable},
        {"value": b"twice", "headers": [("tenant", "a"), ("tenant", "b"), ("none", None)]},
    )
    consumer = Consumer("order.placed", handle, queue="mail")
    async with working(database, mock.consuming_url, consumer, prefetch_count=1):
        await eventually(lambda: len(seen) == 4)
    (plain, first, tracking), (tombstone, second, _), (_, odd, odd_tracking), (_, twice, _) = seen
    assert (plain, first.message_id, tracking) == (b"plain", "kafka:order.placed:0:0", ("kafka:order.placed:0:0",))
    assert (first.routing_key, first.timestamp, first.content_type) == ("order.placed", sent, None)
    assert (tombstone, second.headers["x-outbox-ordering-key"]) == (b"", "customer ż")
    assert (odd.message_id, odd_tracking, odd.content_type) == ("m-1", ("m-1",), "text/plain")
    assert odd.headers["x-outbox-ordering-key"] == "ff00"
    assert (odd.headers["raw"], odd.headers["size"], odd.expiration) == ("/wA=", "{", None)
    assert abs(odd.timestamp - datetime.now(UTC)) < timedelta(minutes=5)
    assert {name: value for name, value in twice.headers.items() if not name.startswith("x-")} == {"tenant": "b", "none": None}


async def test_records_that_cannot_be_stored_or_are_too_large_are_dead_letters_and_others_are_handled(
    database: str, connection: asyncpg.Connection, mock: MockKafka
) -> None:
    mock.create_topic("order.placed", partitions=1)
    mock.produce(
        "order.placed",
        b"1",
        {"value": b"unstorable", "headers": {"na\0me": "x"}},
        {"value": b"x" * 300_000},
        {"value": b"broken", "headers": {"content-type": "application/json"}},
        b"2",
    )
    found: list[int] = []

    async def handle(number: int) -> None:
        found.append(number)

    consumer = Consumer("order.placed", handle, queue="mail")
    async with working(database, mock.consuming_url, consumer, max_body_bytes=100_000, max_batch_bytes=100_000):
        await eventually(lambda: sorted(found) == [1, 2])
        await eventually(lambda: connection.fetchval("select count(*) = 3 from outbox_dead_letter"))
    dead = await connection.fetch("select length(body) as size, cause, exception_type from outbox_dead_letter order by 1")
    assert [(row["size"], row["cause"]) for row in dead] == [(6, "undecodable"), (10, "undecodable"), (300_000, "undecodable")]
    assert mock.committed("mail", "order.placed", partitions=1) == 5


async def test_a_header_for_the_content_type_that_is_no_text_does_not_stop_the_queue(
    database: str, connection: asyncpg.Connection, mock: MockKafka
) -> None:
    mock.create_topic("order.placed", partitions=1)
    found: list[bytes] = []
    async with relaying(database, mock.url), working(database, mock.consuming_url, collecting(found)):
        odd = [OutboxMessage("order.placed", b"1", headers={"content-type": value}) for value in (5, {"a": None}, None)]
        await publish(connection, *odd, OutboxMessage("order.placed", b"2"))
        await eventually(lambda: sorted(found) == [b"1", b"1", b"1", b"2"])


async def test_a_topic_that_does_not_exist_yet_is_read_once_it_does(
    database: str, mock: MockKafka, caplog: pytest.LogCaptureFixture
) -> None:
    found: list[bytes] = []
    async with working(database, mock.consuming_url, collecting(found)):
        await eventually(lambda: "the queue mail waits for a topic" in caplog.text)
        mock.create_topic("order.placed")
        mock.produce("order.placed", b"1")
        await eventually(lambda: found == [b"1"])


async def test_a_topic_that_may_not_be_read_is_no_broker_that_comes_back(
    database: str, mock: MockKafka, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "outbox")
    for topic in ("order.placed", "order.paid"):
        mock.create_topic(topic)
    mock.fail_topic("order.paid", KafkaError.TOPIC_AUTHORIZATION_FAILED)
    found: list[bytes] = []
    async with working(database, mock.consuming_url, collecting(found, "order.*")):
        await eventually(lambda: "order.paid: Broker: Topic authorization failed" in caplog.text)
        mock.produce("order.placed", b"1")
        await eventually(lambda: found == [b"1"])
        assert "the queue mail waits for a topic" in caplog.text
        assert "the broker" not in caplog.text
        mock.fail_topic("order.paid", 0)
        mock.produce("order.paid", b"2")
        await eventually(lambda: found == [b"1", b"2"])


async def test_brokers_that_are_away_lose_nothing(
    database: str, connection: asyncpg.Connection, mock: MockKafka, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "outbox")
    mock.create_topic("order.placed")
    mock.produce("order.placed", *(str(n).encode() for n in range(10)))
    found: list[bytes] = []
    async with working(database, mock.consuming_url, collecting(found)):
        await eventually(lambda: len(found) == 10)
        mock.set_down()
        await eventually(lambda: "Kafka does not answer" in caplog.text)
        # What is stored is handled meanwhile.
        await connection.execute(
            "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids)"
            """ values ('kafka', 'mail', 'm', 'order.placed', 'stored', '["m"]')"""
        )
        await eventually(lambda: b"stored" in found)
        mock.set_up()
        mock.produce("order.placed", *(str(n).encode() for n in range(10, 20)))
        await eventually(lambda: {str(n).encode() for n in range(20)} <= set(found))
        await eventually(lambda: "the broker is back" in caplog.text)
        await eventually(lambda: mock.committed("mail", "order.placed") == 20)


async def test_a_stop_waits_once_for_a_commit_that_hangs(
    database: str, mock: MockKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    mock.create_topic("order.placed")
    monkeypatch.setattr("outbox.transports.stored.CLOSE_TIMEOUT", timedelta(milliseconds=100))
    monkeypatch.setattr("outbox.transports.kafka_source.CLOSE_TIMEOUT", timedelta(minutes=5))
    hanging = asyncio.Event()
    acknowledge = KafkaReader.acknowledge

    async def freeze(reader: KafkaReader, received: Any) -> None:
        mock.delay(60_000)
        hanging.set()
        await acknowledge(reader, received)

    monkeypatch.setattr(KafkaReader, "acknowledge", freeze)
    async with asyncio.timeout(30), working(database, mock.consuming_url, collecting([])):
        mock.produce("order.placed", b"1")
        await hanging.wait()
    mock.delay(0)


async def test_a_database_that_is_away_loses_nothing(
    database: str, connection: asyncpg.Connection, mock: MockKafka, proxied: Callable[[str], Proxy]
) -> None:
    mock.create_topic("order.placed")
    proxy = proxied(database)
    found: list[bytes] = []
    async with working(proxy.url, mock.consuming_url, collecting(found)):
        mock.produce("order.placed", b"first")
        await eventually(lambda: found == [b"first"])
        proxy.refuse()
        proxy.cut()
        mock.produce("order.placed", *(str(n).encode() for n in range(1_000)))
        proxy.accept()
        await eventually(lambda: {str(n).encode() for n in range(1_000)} <= set(found))
    await eventually(lambda: is_drained(connection))


async def test_workers_share_the_partitions_and_a_rebalance_loses_nothing(database: str, mock: MockKafka) -> None:
    mock.create_topic("order.placed")
    found: list[list[bytes]] = [[], [], []]
    async with AsyncExitStack() as stack:
        sent = 0

        def produce() -> None:
            nonlocal sent
            mock.produce("order.placed", *({"value": str(n).encode(), "key": str(n).encode()} for n in range(sent, sent + 500)))
            sent += 500

        def is_complete() -> bool:
            return {int(body) for bodies in found for body in bodies} == set(range(sent))

        def is_shared() -> bool:
            # The first worker may handle all that there is before the second one gets its partitions.
            if is_complete() and not found[1]:
                produce()
            return is_complete() and len(found[1]) > 0

        await stack.enter_async_context(working(database, mock.consuming_url, collecting(found[0])))
        produce()
        async with working(database, mock.consuming_url, collecting(found[1])):
            produce()
            await eventually(is_shared)
            await stack.enter_async_context(working(database, mock.consuming_url, collecting(found[2])))
            produce()
        produce()
        await eventually(is_complete)
        await eventually(lambda: mock.committed("mail", "order.placed") == sent)


def reading(
    mock: MockKafka, *, queue: str = "mail", properties: dict[str, Any] | None = None
) -> AbstractAsyncContextManager[KafkaReader]:
    """A reader of `order.placed` for a queue."""
    subscription = Subscription(
        queue=queue, binding_key="order.placed", exchange_name="kafka", prefetch_count=1, retry_delays=()
    )
    return KafkaSource(mock.consuming_url, properties=properties).read(subscription)


async def fetched(reader: KafkaReader, count: int) -> list[Received]:
    found: list[Received] = []
    while len(found) < count:
        found += await reader.fetch(count - len(found))
    return found


async def test_a_fetch_that_is_cancelled_loses_nothing(mock: MockKafka) -> None:
    mock.create_topic("order.placed", partitions=1)
    async with reading(mock) as reader:
        mock.produce("order.placed", *(str(n).encode() for n in range(300)))
        found = await fetched(reader, 1)
        while len(found) < 300:
            cancelled = asyncio.create_task(reader.fetch(10))
            await asyncio.sleep(0)  # lets it begin
            cancelled.cancel()
            await asyncio.wait([cancelled])
            found += await reader.fetch(10)
        await reader.acknowledge(found)
    assert [int(each.message.body) for each in found] == list(range(300))
    assert mock.committed("mail", "order.placed", partitions=1) == 300


async def test_what_is_not_acknowledged_is_fetched_again_and_only_that(mock: MockKafka) -> None:
    mock.create_topic("order.placed", partitions=1)
    mock.produce("order.placed", *(str(n).encode() for n in range(5)))
    async with reading(mock) as reader:
        await reader.acknowledge((await fetched(reader, 5))[:2])
    async with reading(mock) as reader:
        assert [each.message.body for each in await fetched(reader, 3)] == [b"2", b"3", b"4"]


async def test_an_acknowledgement_after_the_partition_has_moved_changes_nothing(mock: MockKafka) -> None:
    mock.create_topic("order.placed", partitions=1)
    mock.produce("order.placed", *(str(n).encode() for n in range(5)))
    # A reader that is not asked for records for a second is excluded, before it keeps itself alive.
    async with reading(mock, properties={"max.poll.interval.ms": 1_000}) as reader:
        stale = await fetched(reader, 5)
        async with reading(mock) as other:
            await other.acknowledge((await fetched(other, 5))[:2])
            await reader.acknowledge(stale)
            assert mock.committed("mail", "order.placed", partitions=1) == 2
            await reader.fetch(1)  # learns that it has lost the partition
            await reader.acknowledge(stale)
            assert mock.committed("mail", "order.placed", partitions=1) == 2


async def test_a_topic_that_was_deleted_before_its_offsets_were_committed_does_not_stop_its_reader(mock: MockKafka) -> None:
    mock.create_topic("order.placed", partitions=1)
    mock.produce("order.placed", b"1")
    async with reading(mock) as reader:
        found = await fetched(reader, 1)
        mock.fail_commits(*[KafkaError.UNKNOWN_TOPIC_OR_PARTITION] * 100)
        await reader.acknowledge(found)
        # As from another topic: the mock brokers delete none.
        mock.produce("order.placed", b"2")
        assert [each.message.body for each in await fetched(reader, 1)] == [b"2"]


@pytest.mark.parametrize("error", [KafkaError.NOT_COORDINATOR, KafkaError.UNKNOWN_TOPIC_OR_PARTITION])
async def test_partitions_are_read_though_their_offsets_were_not_given_at_first(error: KafkaError, mock: MockKafka) -> None:
    mock.create_topic("order.placed", partitions=2)
    mock.produce("order.placed", *({"value": str(n).encode(), "partition": n % 2} for n in range(4)))
    async with reading(mock) as reader:
        first = await fetched(reader, 4)
        await reader.acknowledge(first[:3])
    mock.fail_offset_fetches(error)
    async with reading(mock) as reader, asyncio.timeout(30):
        found: list[Received] = []
        while not found:
            with suppress(BrokerUnavailableError):
                found += await reader.fetch(10)
        assert [each.message.body for each in found] == [first[3].message.body]


async def test_the_offsets_of_a_topic_that_was_created_again_are_committed(mock: MockKafka) -> None:
    mock.create_topic("order.placed", partitions=1)
    mock.produce("order.placed", *(str(n).encode() for n in range(5)))
    async with reading(mock) as reader:
        await reader.acknowledge(await fetched(reader, 5))
        # Sooner than its reader learns that it is gone.
        mock.delete_topic("order.placed")
        mock.create_topic("order.placed", partitions=1)
        mock.produce("order.placed", *(f"new {n}".encode() for n in range(3)))
        found = await fetched(reader, 3)
        assert [each.message.body for each in found] == [b"new 0", b"new 1", b"new 2"]
        await reader.acknowledge(found[:2])
        assert mock.committed("mail", "order.placed", partitions=1) == 2


async def test_a_reader_that_is_not_asked_stays_in_its_group(mock: MockKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.transports.kafka_source.KEEP_ALIVE", timedelta(milliseconds=50))
    mock.create_topic("order.placed", partitions=1)
    mock.produce("order.placed", *(str(n).encode() for n in range(5)))
    async with reading(mock, properties={"max.poll.interval.ms": 1_000}) as reader:
        first = await fetched(reader, 1)
        calls: list[None] = []
        polled = reader._keep_alive

        def count() -> None:
            calls.append(None)
            polled()

        monkeypatch.setattr(reader._thread, "_idle", count)
        await eventually(lambda: len(calls) >= 30)  # for longer than Kafka waits for a call
        await reader.acknowledge(first)
        assert mock.committed("mail", "order.placed", partitions=1) == 1
        assert [each.message.body for each in await fetched(reader, 4)] == [b"1", b"2", b"3", b"4"]


def test_a_reader_that_closes_while_an_assignment_waits_for_its_callback_does_not_stop_the_process() -> None:
    process = forks().Process(target=_close_with_assignments)
    process.start()
    process.join(60)
    if process.is_alive():
        process.kill()
        process.join()
    assert process.exitcode == 0


def _close_with_assignments() -> None:
    """Closes readers that have joined their group, and were not asked for records since, while the interpreter is busy."""
    sys.setswitchinterval(0.02)  # seconds for which a callback of librdkafka waits for the interpreter
    closing = threading.Event()
    threading.Thread(target=_be_busy, args=(closing,), daemon=True).start()
    asyncio.run(_close_readers(closing))


def _be_busy(closing: threading.Event) -> None:
    while closing.wait():
        while closing.is_set():
            pass


async def _close_readers(closing: threading.Event) -> None:
    with mock_kafka(brokers=1) as mock:
        mock.create_topic("order.placed", partitions=1)
        for number in range(20):
            joined = partial(_has_heartbeats, mock, beyond=mock.requests(HEARTBEAT))
            async with reading(mock, queue=f"mail {number}"):
                await eventually(joined)
                closing.set()
            closing.clear()


def _has_heartbeats(mock: MockKafka, *, beyond: int) -> bool:
    return mock.requests(HEARTBEAT) > beyond


WORKER = """
from outbox import Consumer

async def deposit(number: int, connection) -> None:
    await connection.execute("insert into deposit (number) values ($1)", number)

consumers = [Consumer("order.placed", deposit, queue="bank", inbox=True)]
"""


async def test_a_worker_that_is_killed_loses_nothing_and_an_inbox_handles_each_message_once(
    database: str, connection: asyncpg.Connection, mock: MockKafka, tmp_path: Path
) -> None:
    await connection.execute("create table deposit (number int not null)")
    (tmp_path / "bank.py").write_text(WORKER)
    mock.create_topic("order.placed")
    mock.produce("order.placed", *(str(n).encode() for n in range(1_500)))
    settings = {
        "OUTBOX_DATABASE_URL": database,
        "OUTBOX_BROKER_URL": mock.consuming_url,
        "OUTBOX_MONITORING_PORT": "0",
        "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}",
    }
    arguments = ["-m", "outbox.cli", "worker", "bank:consumers"]
    mock.delay(10)  # so that there is time between the storing of a batch and its acknowledgement
    for run in range(3):
        with running_process(arguments, tmp_path, settings, name=f"worker{run}") as worker:
            handled = await connection.fetchval("select count(*) from deposit")
            more = partial(connection.fetchval, "select count(*) > $1 from deposit", handled + 100)
            await eventually(more, message="the worker handles nothing")
            worker.send(signal.SIGKILL)
            worker.wait()
            # The lease of the dead worker runs out.
            await connection.execute(
                "update outbox_delivery set leased_until = now(), available_at = now() where lease_token is not null"
            )
    mock.delay(0)
    with running_process(arguments, tmp_path, settings, name="last") as worker:
        await eventually(lambda: _has_deposits(connection, 1_500), timeout=60)
        await eventually(lambda: mock.committed("bank", "order.placed") == 1_500)
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    assert await connection.fetchval("select count(*) from deposit") == 1_500


async def _has_deposits(connection: asyncpg.Connection, count: int) -> bool:
    return bool(await connection.fetchval("select count(distinct number) = $1 from deposit", count))


async def test_the_consumer_on_the_page_handles_an_event(
    database: str, connection: asyncpg.Connection, mock: MockKafka, tmp_path: Path
) -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "kafka.md"
    [consumer] = re.findall(r"^```python\n(# confirmations\.py\n.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    [insert] = re.findall(r"^```sql\n(insert .*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "confirmations.py").write_text(consumer)
    mock.create_topic("order.placed")
    settings = {
        "OUTBOX_DATABASE_URL": database,
        "OUTBOX_BROKER_URL": mock.url,
        "OUTBOX_MONITORING_PORT": "0",
        "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}",
    }
    outbox = ["-m", "outbox.cli"]
    with (
        running_process([*outbox, "relay"], tmp_path, settings, name="relay"),
        running_process([*outbox, "worker", "confirmations:confirm"], tmp_path, settings) as worker,
    ):
        await connection.execute(insert)
        worker.says("order 7 is confirmed")
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0


async def test_a_worker_without_a_database_is_refused(mock: MockKafka) -> None:
    with pytest.raises(ConfigurationError, match="stores the messages of kafka in its database"):
        Worker(broker=mock.url, consumers=[collecting([])])
