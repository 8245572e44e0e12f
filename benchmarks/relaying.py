"""How fast one relay empties the table: into a quorum queue, the queues of its own database, Kafka, NATS, and Redis."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from benchmarks.measuring import timed
from benchmarks.servers import BODY, Servers, execute, filled_outbox, running, until_empty
from benchmarks.working import declared_queue
from outbox import MessageRelay
from outbox.core.message import Message
from outbox.engine.relay import LARGEST_BATCH
from outbox.ports import CONFIRMED, Transport
from tests.servers.kafka import mock_kafka
from tests.servers.nats import running_nats
from tests.servers.redis import ensure_redis, running_redis
from tests.servers.session_folder import session_folder

KEYS = 200
"""Ordering keys that messages with a key are spread over."""


async def relay_to_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second, confirmed by a quorum queue, persistent and mandatory."""
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        return await drained("relay to RabbitMQ", url, broker, count)


async def relay_to_postgres(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second, handed over to one queue in the outbox's database."""
    async with servers.fresh_database() as url:
        return await drained("relay to PostgreSQL", url, url, count)


async def relay_to_kafka(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second, stored by a mock broker: by a relay, by its transport alone, and by a bare producer."""
    with mock_kafka(brokers=1) as cluster:
        cluster.create_topic("bench.event")
        async with servers.fresh_database() as url:
            await filled_outbox(url, count)
            figures = await _emptied("relay to Kafka", url, cluster.url, count)
        from outbox.transports.kafka import KafkaTransport

        figures |= await _transport_alone("transport to Kafka", KafkaTransport(cluster.url), count)
        return figures | await asyncio.to_thread(_bare_producer, cluster.url, count)


async def relay_to_nats(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second, stored by a stream in files: by a relay, by its transport alone, and by a bare client."""
    from outbox.transports.nats import NatsTransport

    with session_folder() as folder, running_nats(folder / "nats") as server:
        await server.create_stream("bench", "bench.>")
        async with servers.fresh_database() as url:
            await filled_outbox(url, count)
            figures = await _emptied("relay to NATS", url, server.url, count)
        figures |= await _transport_alone("transport to NATS", NatsTransport(server.url), count)
        return figures | await _bare_client_of_nats(server.url, count)


async def _bare_client_of_nats(url: str, count: int) -> dict[str, float]:
    """With as many publishes in flight as the transport has: two batches."""
    import nats

    from outbox.transports.nats import encode

    events = [_event() for _ in range(count)]
    lines = [encode(event, "{routing_key}")[1].decode().split("\r\n")[1:-2] for event in events]
    encoded = [(event.body, dict(line.split(": ", 1) for line in each)) for event, each in zip(events, lines, strict=True)]
    async with await nats.connect(url) as client:
        jetstream = client.jetstream(publish_async_max_pending=2 * LARGEST_BATCH)
        with timed() as watch:
            for body, headers in encoded:
                await jetstream.publish_async("bench.event", body, headers=headers)
            await jetstream.publish_async_completed()
    return watch.rates("bare client of NATS", count)


def _event() -> Message:
    id_ = str(uuid4())
    return Message(id=id_, routing_key="bench.event", body=BODY, created_at=datetime.now(UTC), tracking_ids=(id_,))


async def relay_to_redis(servers: Servers, count: int) -> dict[str, float]:
    """Messages per second, stored by a Redis that waits for its disk: by a relay, its transport alone, and a bare client."""
    ensure_redis()
    with session_folder() as folder, running_redis(folder / "redis") as redis:
        redis.create_stream("bench.event")
        async with servers.fresh_database() as url:
            await filled_outbox(url, count)
            figures = await _emptied("relay to Redis", url, redis.url, count)
        from outbox.transports.redis import RedisTransport

        figures |= await _transport_alone("transport to Redis", RedisTransport(redis.url), count)
        return figures | await _bare_redis(redis.url, count)


async def _bare_redis(url: str, count: int) -> dict[str, float]:
    from redis.asyncio import Redis

    from outbox.transports.redis.entries import entry_of

    parts = entry_of(_event())
    fields: dict[Any, Any] = dict(zip(parts[::2], parts[1::2], strict=True))
    batches = iter(range(count // LARGEST_BATCH))

    async def lane(client: "Redis") -> None:
        for _ in batches:
            pipeline = client.pipeline(transaction=False)
            for _ in range(LARGEST_BATCH):
                pipeline.xadd("bench.event", fields, nomkstream=True)
            assert None not in await pipeline.execute()

    async with Redis.from_url(url) as client:
        with timed() as watch:
            await asyncio.gather(lane(client), lane(client))
    return watch.rates("bare client of Redis", count // LARGEST_BATCH * LARGEST_BATCH)


async def _transport_alone(name: str, transport: Transport, count: int) -> dict[str, float]:
    await transport.open()
    batches = iter([[_event() for _ in range(LARGEST_BATCH)] for _ in range(count // LARGEST_BATCH)])

    async def lane() -> None:
        for batch in batches:
            assert set(await transport.send(batch, timeout=timedelta(minutes=1))) == {CONFIRMED}

    with timed() as watch:
        await asyncio.gather(lane(), lane())
    await transport.close()
    return watch.rates(name, count // LARGEST_BATCH * LARGEST_BATCH)


def _bare_producer(url: str, count: int) -> dict[str, float]:
    from confluent_kafka import Producer

    from outbox.transports.kafka import producer_properties, record_of

    record = record_of(_event(), "{routing_key}")
    stored = 0

    def note(error: object, _record: object) -> None:
        nonlocal stored
        stored += error is None

    producer = Producer(producer_properties(url))
    producer.list_topics("bench.event", timeout=10)
    with timed() as watch:
        for _ in range(count):
            producer.produce(record.topic, record.value, record.key, headers=record.headers, on_delivery=note)
            producer.poll(0)
        producer.flush(60)
    assert stored == count
    return watch.rates("bare producer of Kafka", count)


async def relay_variants_to_rabbitmq(servers: Servers, count: int) -> dict[str, float]:
    """The same without history; and a quarter of as many messages with `KEYS` ordering keys."""
    async with servers.fresh_database() as url, servers.fresh_vhost() as broker:
        return await _variants("RabbitMQ", url, broker, count)


async def relay_variants_to_postgres(servers: Servers, count: int) -> dict[str, float]:
    """The same within the database."""
    async with servers.fresh_database() as url:
        return await _variants("PostgreSQL", url, url, count)


async def _variants(name: str, url: str, broker: str, count: int) -> dict[str, float]:
    figures = await drained(f"relay to {name}, history", url, broker, count)
    figures |= await drained(f"relay to {name}, no history", url, broker, count, history=False)
    return figures | await drained(f"relay to {name}, {KEYS} keys", url, broker, count // 4, keys=KEYS)


async def drained(
    name: str,
    url: str,
    broker: str,
    count: int,
    *,
    keys: int | None = None,
    body_bytes: int | None = None,
    count_by: int = 1,
    **options: Any,
) -> dict[str, float]:
    """The rate and own cost of a relay with `options` that empties a table of `count / count_by` messages."""
    await declared_queue(url, broker)
    await filled_outbox(url, count // count_by)
    if keys is not None:
        await execute(url, "update outbox_table set ordering_key = 'key-' || id % $1", keys)
    if body_bytes is not None:
        await execute(url, "update outbox_table set body = decode(repeat('ab', $1), 'hex')", body_bytes)
    if keys is not None or body_bytes is not None:
        await execute(url, "vacuum analyze outbox_table")
    return await _emptied(name, url, broker, count // count_by, **options)


async def _emptied(name: str, url: str, broker: str, count: int, **options: Any) -> dict[str, float]:
    relay = MessageRelay(db_engine_url=url, broker=broker, enable_metrics=False, **options)
    with timed() as watch:
        async with running(relay):
            await until_empty(url, "outbox_table")
    return watch.rates(name, count)
