"""What the cases of sending need of a transport: a way for one routing key, and the messages that arrive at its end."""

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from outbox.core.message import Message
from outbox.ports import Broker, Transport
from tests.contract.support import taking
from tests.servers.kafka import MockKafka
from tests.servers.moto import Moto
from tests.servers.nats import Nats
from tests.servers.redis import Redis
from tests.support import eventually


@dataclass(frozen=True, slots=True)
class Route:
    """A transport, and a function that returns the next messages that arrive through it."""

    transport: Transport
    arrived: Callable[[int], Awaitable[Sequence[Message]]]


@asynccontextmanager
async def broker_route(broker: Broker, routing_key: str) -> AsyncIterator[Route]:
    """A route to a queue, which is consumed from."""
    try:
        async with taking(broker, "mail", routing_key) as taken:

            async def arrived(count: int) -> Sequence[Message]:
                return [delivery.message for delivery in await taken.several(count)]

            yield Route(broker, arrived)
    finally:
        await broker.close()


@asynccontextmanager
async def kafka_route(cluster: MockKafka, topic: str) -> AsyncIterator[Route]:
    """A route to a topic, which is read by a Kafka client."""
    from outbox.transports.kafka import KafkaTransport

    transport = KafkaTransport(cluster.url)

    async def arrived(count: int) -> Sequence[Message]:
        return [_message_of(record) for record in await cluster.read(topic, count)]

    try:
        yield Route(transport, arrived)
    finally:
        await transport.close()


@asynccontextmanager
async def redis_route(server: Redis, stream: str) -> AsyncIterator[Route]:
    """A route to a stream, which is read by a Redis client."""
    from outbox.transports.redis import RedisTransport

    transport = RedisTransport(server.url)

    async def arrived(count: int) -> Sequence[Message]:
        await eventually(lambda: len(server.read(stream)) >= count)
        return [_message_of_entry(fields) for fields in server.read(stream)]

    try:
        yield Route(transport, arrived)
    finally:
        await transport.close()


@asynccontextmanager
async def sqs_route(server: Moto, queue: str) -> AsyncIterator[Route]:
    """A route to a queue of SQS, which is read by a client of SQS."""
    from outbox.transports.aws import AwsTransport

    transport = AwsTransport(server.sqs())

    async def arrived(count: int) -> Sequence[Message]:
        return [_message_of_attributes(each["MessageAttributes"], each["Body"]) for each in server.receive(queue, count)]

    try:
        yield Route(transport, arrived)
    finally:
        await transport.close()


@asynccontextmanager
async def nats_route(server: Nats, routing_key: str) -> AsyncIterator[Route]:
    """A route to a stream of one subject, which is read by a client of NATS."""
    from outbox.transports.nats import NatsTransport

    word = f"test-{uuid4()}"
    await server.create_stream(word, f"{word}.{routing_key}")
    transport = NatsTransport(server.url, subject=f"{word}.{{routing_key}}")
    read = 0

    async def arrived(count: int) -> Sequence[Message]:
        nonlocal read
        stored = await server.read(word)
        read += count
        return [_message_of_headers(each.headers or {}, each.data) for each in stored[read - count : read]]

    try:
        yield Route(transport, arrived)
    finally:
        await transport.close()


def _message_of_entry(fields: Mapping[str, bytes]) -> Message:
    texts = {name: value.decode() for name, value in fields.items() if name != "body"}
    return Message(
        id=texts["x-outbox-message-id"],
        routing_key=texts["x-outbox-routing-key"],
        body=fields["body"],
        created_at=datetime.fromisoformat(texts["x-outbox-created-at"]),
        tracking_ids=tuple(json.loads(texts["x-outbox-tracking-ids"])),
        content_type=texts.get("content-type"),
        ordering_key=texts.get("x-outbox-ordering-key"),
        hlc=int(texts.get("x-outbox-hlc", 0)) or None,
        requeue_count=int(texts.get("x-outbox-requeue-count", 0)),
        headers=json.loads(texts.get("headers", "{}")),
    )


def _message_of_attributes(attributes: Mapping[str, Mapping[str, str]], body: str) -> Message:
    texts = {name: each["StringValue"] for name, each in attributes.items()}
    headers = json.loads(texts.get("headers", "{}"))
    return Message(
        id=texts["x-outbox-message-id"],
        routing_key=texts["routing_key"],
        body=base64.b64decode(body) if texts.get("x-outbox-encoding") == "base64" else body.encode(),
        created_at=datetime.fromisoformat(texts["x-outbox-created-at"]),
        tracking_ids=tuple(json.loads(texts["x-outbox-tracking-ids"])),
        content_type=texts.get("content-type"),
        ordering_key=texts.get("x-outbox-ordering-key"),
        hlc=int(headers.pop("x-outbox-hlc", 0)) or None,
        requeue_count=int(headers.pop("x-outbox-requeue-count", 0)),
        headers=headers,
    )


def _message_of_headers(headers: dict[str, str], body: bytes) -> Message:
    assert headers.pop("Nats-Msg-Id")
    return Message(
        id=headers.pop("x-outbox-message-id"),
        routing_key=headers.pop("x-outbox-routing-key"),
        body=body,
        created_at=datetime.fromisoformat(headers.pop("x-outbox-created-at")),
        tracking_ids=tuple(json.loads(headers.pop("x-outbox-tracking-ids"))),
        content_type=headers.pop("content-type", None),
        ordering_key=headers.pop("x-outbox-ordering-key", None),
        hlc=int(headers.pop("x-outbox-hlc", 0)) or None,
        requeue_count=int(headers.pop("x-outbox-requeue-count", 0)),
        headers=headers,
    )


def _message_of(record: Any) -> Message:
    headers = {name: value.decode() for name, value in record.headers()}
    key = record.key()
    return Message(
        id=headers.pop("x-outbox-message-id"),
        routing_key=headers.pop("x-outbox-routing-key"),
        body=record.value() or b"",
        created_at=datetime.fromisoformat(headers.pop("x-outbox-created-at")),
        tracking_ids=tuple(json.loads(headers.pop("x-outbox-tracking-ids"))),
        content_type=headers.pop("content-type", None),
        ordering_key=None if key is None else key.decode(),
        hlc=int(headers.pop("x-outbox-hlc", 0)) or None,
        requeue_count=int(headers.pop("x-outbox-requeue-count", 0)),
        headers=headers,
    )
