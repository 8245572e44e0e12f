"""Batches on Kafka: one result for each message, whatever happens to other messages or to the cluster."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from outbox.core.message import Message
from outbox.errors import BrokerUnavailableError
from outbox.ports import CONFIRMED, UNROUTABLE, NotSent, Refused, SendResult, Unconfirmed
from outbox.transports.kafka import KafkaTransport
from tests.contract.support import TIMEOUT, message
from tests.servers.kafka import PRODUCE, Kafka, KafkaError, MockKafka
from tests.support import eventually

SHORT = timedelta(seconds=1)


async def sent(transport: KafkaTransport, *messages: Message, timeout: timedelta = TIMEOUT) -> list[SendResult]:
    return list(await transport.send(messages, timeout=timeout))


def headers(record: Any) -> dict[str, bytes | None]:
    return dict(record.headers())


# --- what a record carries -------------------------------------------------------------------------------------------------


async def test_a_record_carries_the_body_the_key_and_the_headers(kafka: Kafka, transport: KafkaTransport) -> None:
    topic = kafka.new_topic()
    created = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    before = datetime.now(UTC)
    full = replace(
        message(topic, b'{"id": 7}'),
        headers={"tenant": "acme", "size": 3, "nested": {"a": [1, "ż"]}, "none": None, "x-outbox-amqp": {"types": {}}},
        id="7",
        tracking_ids=("root", "7"),
        created_at=created,
        ordering_key="customer-1",
        hlc=1_780_000_000_000_001,
        requeue_count=2,
        expires_at=datetime(2036, 5, 4, 3, 2, 1, tzinfo=UTC),
    )
    assert await sent(transport, full) == [CONFIRMED]
    [record] = await kafka.read(topic, 1)
    assert (record.key(), record.value()) == (b"customer-1", b'{"id": 7}')
    assert headers(record) == {
        "x-outbox-message-id": b"7",
        "x-outbox-routing-key": topic.encode(),
        "x-outbox-tracking-ids": b'["root", "7"]',
        "x-outbox-created-at": b"2026-05-04T03:02:01+00:00",
        "x-outbox-expires-at": b"2036-05-04T03:02:01+00:00",
        "x-outbox-hlc": b"1780000000000001",
        "x-outbox-requeue-count": b"2",
        "content-type": b"application/json",
        "tenant": b"acme",
        "size": b"3",
        "nested": '{"a": [1, "ż"]}'.encode(),
        "x-outbox-json-headers": b'["size", "nested"]',
        "none": None,
    }
    # Kafka deletes by the timestamp, so it is that of sending.
    assert datetime.fromtimestamp(record.timestamp()[1] / 1000, UTC) >= before.replace(microsecond=0)


async def test_a_plain_message_has_no_key_and_no_further_headers(kafka: Kafka, transport: KafkaTransport) -> None:
    topic = kafka.new_topic()
    assert await sent(transport, message(topic, headers={"content-type": "text/plain"})) == [CONFIRMED]
    [record] = await kafka.read(topic, 1)
    assert record.key() is None
    assert set(headers(record)) == {
        "x-outbox-message-id",
        "x-outbox-routing-key",
        "x-outbox-tracking-ids",
        "x-outbox-created-at",
        "content-type",
    }
    assert headers(record)["content-type"] == b"text/plain"


async def test_a_key_goes_to_the_partition_that_java_chooses(kafka: Kafka, transport: KafkaTransport) -> None:
    # Of Kafka's own test of its hash: murmur2 of each key, without the sign, modulo the number of partitions.
    hashes = {
        "21": -973932308,
        "foobar": -790332482,
        "a-little-bit-long-string": -985981536,
        "a-little-bit-longer-string": -1486304829,
        "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        "abc": 479470107,
    }
    topic = kafka.new_topic(partitions=7)
    assert await sent(transport, *(message(topic, ordering_key=key) for key in hashes)) == [CONFIRMED] * len(hashes)
    found = {record.key().decode(): record.partition() for record in await kafka.read(topic, len(hashes))}
    assert found == {key: (number & 0x7FFFFFFF) % 7 for key, number in hashes.items()}


async def test_records_of_a_key_stay_in_order_over_many_batches(kafka: Kafka, transport: KafkaTransport) -> None:
    topic = kafka.new_topic()
    for batch in range(10):
        numbers = range(batch * 20, batch * 20 + 20)
        assert await sent(transport, *(message(topic, str(n).encode(), ordering_key=f"key {n % 3}") for n in numbers)) == [
            CONFIRMED
        ] * len(numbers)
    seen: dict[str, list[int]] = {}
    for record in await kafka.read(topic, 200):
        seen.setdefault(record.key().decode(), []).append(int(record.value()))
    assert seen == {f"key {key}": list(range(key, 200, 3)) for key in range(3)}


async def test_a_template_or_a_function_names_the_topic(kafka: Kafka) -> None:
    topic = kafka.new_topic()
    prefix, _, rest = topic.partition(".")
    for transport, key in (
        (KafkaTransport(f"{kafka.url}?topic={topic}"), "order.placed"),
        (KafkaTransport(f"{kafka.url}?topic={prefix}.{{routing_key}}"), rest),
        (KafkaTransport(kafka.url, topic=lambda key: key.split("/")[1]), f"orders/{topic}"),
    ):
        assert await sent(transport, message(key)) == [CONFIRMED]
        await transport.close()
    keys = {headers(record)["x-outbox-routing-key"] for record in await kafka.read(topic, 3)}
    assert keys == {b"order.placed", rest.encode(), f"orders/{topic}".encode()}


# --- bad messages ----------------------------------------------------------------------------------------------------------


async def test_a_message_without_a_topic_is_unroutable_and_others_are_not(kafka: Kafka, transport: KafkaTransport) -> None:
    topic = kafka.new_topic()
    batch = [message("unbound.key"), message(topic, b"1"), message("nor.here"), message(topic, b"2", target_queue="mail")]
    assert await sent(transport, *batch) == [UNROUTABLE, CONFIRMED, UNROUTABLE, UNROUTABLE]
    assert [record.value() for record in await kafka.read(topic, 1)] == [b"1"]


async def test_a_topic_that_appears_is_found_by_the_same_producer(kafka: Kafka, transport: KafkaTransport) -> None:
    topic = f"{kafka.new_topic()}.late"
    assert await sent(transport, message(topic)) == [UNROUTABLE]
    kafka.create_topic(topic)

    async def found() -> bool:
        return await sent(transport, message(topic)) == [CONFIRMED]

    await eventually(found)


async def test_bad_messages_are_refused_and_do_not_affect_others(kafka: Kafka) -> None:
    topic = kafka.new_topic()
    topics: dict[str, Any] = {"illegal": "a/b", "long": "x" * 250, "dots": "..", "number": 7, "big": topic, "fine": topic}
    transport = KafkaTransport(kafka.url, topic=lambda key: topics[key])
    bad = [
        message("illegal"),
        message("long"),
        message("dots"),
        message("number"),
        message("raises"),
        message("big", b"x" * 2_000_000),
    ]
    results = await sent(transport, *bad, message("fine"))
    await transport.close()
    types = [result.failure.type for result in results if isinstance(result, Refused)]
    assert types == ["unsendable"] * 5 + ["kafka MSG_SIZE_TOO_LARGE"]
    assert results[6] == CONFIRMED
    assert len(await kafka.read(topic, 1)) == 1


# --- a cluster in trouble --------------------------------------------------------------------------------------------------


async def test_a_batch_that_is_refused_as_one_is_sent_again_in_halves(mock: MockKafka) -> None:
    topic = mock.new_topic(partitions=1)
    transport = KafkaTransport(mock.url)
    # Five records, then two and three, then the first of the two, and the second.
    mock.fail_produce(KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD)
    results = await sent(transport, *(message(topic, str(number).encode()) for number in range(5)))
    await transport.close()
    assert [type(result) for result in results] == [Refused, *[type(CONFIRMED)] * 4]
    assert sorted(record.value() for record in await mock.read(topic, 4)) == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("error", [KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.REQUEST_TIMED_OUT])
async def test_a_passing_error_is_retried_within_the_timeout_and_nothing_is_stored_twice(
    mock: MockKafka, error: KafkaError
) -> None:
    topic = mock.new_topic(partitions=1)
    transport = KafkaTransport(mock.url)
    mock.fail_produce(error, error)
    assert await sent(transport, *(message(topic, str(number).encode()) for number in range(5))) == [CONFIRMED] * 5
    await transport.close()
    assert [record.value() for record in await mock.read(topic, 5)] == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (KafkaError.NOT_ENOUGH_REPLICAS, Unconfirmed),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, Unconfirmed),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, NotSent),
        (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, NotSent),
    ],
)
async def test_a_lasting_error_is_not_the_messages_fault_and_the_next_batch_is_sent(
    mock: MockKafka, error: KafkaError, kind: type
) -> None:
    topic, other = mock.new_topic(partitions=1), mock.new_topic(partitions=1)
    transport = KafkaTransport(mock.url)
    mock.fail_produce(*[error] * 1_000)
    results = await sent(transport, message(topic), timeout=SHORT)
    assert [type(result) for result in results] == [kind]
    mock.stop_failing()
    assert await sent(transport, message(other, b"after")) == [CONFIRMED]
    await transport.close()


async def test_a_cluster_that_is_away_is_not_the_messages_fault(mock: MockKafka) -> None:
    topic = mock.new_topic()
    transport = KafkaTransport(mock.url)
    await transport.open()
    mock.set_down()
    [result] = await sent(transport, message(topic), timeout=SHORT)
    assert isinstance(result, NotSent)
    assert "Connection refused" in result.failure.message or "closed by peer" in result.failure.message
    mock.set_up()
    await transport.open()
    assert await sent(transport, message(topic)) == [CONFIRMED]
    await transport.close()


async def test_opening_fails_while_the_cluster_is_away(mock: MockKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.transports.kafka.CONNECT_TIMEOUT", timedelta(milliseconds=300))
    mock.set_down()
    transport = KafkaTransport(mock.url)
    with pytest.raises(BrokerUnavailableError, match=r"Kafka does not answer: .*Connection refused"):
        await transport.open()
    mock.set_up()
    await transport.open()
    # An idle transport notices the loss, too, so that a relay claims nothing that it cannot send.
    mock.set_down()

    async def noticed() -> bool:
        try:
            await transport.open()
        except BrokerUnavailableError:
            return True
        return False

    await eventually(noticed)
    await transport.close()


async def test_what_was_not_confirmed_in_time_cannot_arrive_later(mock: MockKafka) -> None:
    topic = mock.new_topic(partitions=1)
    transport = KafkaTransport(mock.url)
    assert await sent(transport, message(topic, b"0", ordering_key="key")) == [CONFIRMED]
    # The first request fails, and librdkafka would repeat it for minutes.
    mock.fail_produce(*[KafkaError.NOT_ENOUGH_REPLICAS] * 1_000)
    [first] = await sent(transport, message(topic, b"1", ordering_key="key"), timeout=SHORT)
    assert isinstance(first, Unconfirmed)
    mock.stop_failing()
    assert await sent(transport, message(topic, b"1 again", ordering_key="key")) == [CONFIRMED]
    assert await sent(transport, message(topic, b"2", ordering_key="key")) == [CONFIRMED]
    await transport.close()
    assert [record.value() for record in await mock.read(topic, 3)] == [b"0", b"1 again", b"2"]


async def test_a_cancelled_batch_ends_at_once_and_is_purged(mock: MockKafka) -> None:
    topic = mock.new_topic(partitions=1)
    transport = KafkaTransport(mock.url)
    mock.fail_produce(*[KafkaError.NOT_ENOUGH_REPLICAS] * 1_000)
    sending = asyncio.create_task(sent(transport, message(topic, b"cancelled"), timeout=timedelta(minutes=10)))
    await eventually(lambda: mock.requests(PRODUCE) > 0)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    # Waits for the thread, which would otherwise last for the ten minutes.
    threads = transport._threads
    assert threads is not None
    async with asyncio.timeout(30):
        await asyncio.to_thread(threads.shutdown)
    transport._threads = None
    mock.stop_failing()
    assert await sent(transport, message(topic, b"next")) == [CONFIRMED]
    await transport.close()
    assert [record.value() for record in await mock.read(topic, 1)] == [b"next"]


async def test_a_full_queue_of_the_producer_delays_and_loses_nothing(mock: MockKafka) -> None:
    topic = mock.new_topic()
    transport = KafkaTransport(mock.url, properties={"queue.buffering.max.messages": 10})
    assert await sent(transport, *(message(topic) for _ in range(100))) == [CONFIRMED] * 100
    await transport.close()
    assert len(await mock.read(topic, 100)) == 100


async def test_batches_run_at_the_same_time_and_one_that_hangs_does_not_stop_others(mock: MockKafka) -> None:
    topic, other = mock.new_topic(partitions=1), mock.new_topic(partitions=1)
    transport = KafkaTransport(mock.url)
    mock.remove_leader(topic)
    stuck = asyncio.create_task(sent(transport, message(topic), message(other, b"1"), timeout=SHORT * 3))
    assert await sent(transport, message(other, b"2")) == [CONFIRMED]
    assert not stuck.done()
    first, second = await stuck
    assert (type(first), second) == (Unconfirmed, CONFIRMED)
    await transport.close()
    assert sorted(record.value() for record in await mock.read(other, 2)) == [b"1", b"2"]
