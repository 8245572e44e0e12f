"""What the cases of sending need of a transport: a way for one routing key, and the messages that arrive at its end."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from outbox.core.message import Message
from outbox.ports import Broker, Transport
from tests.contract.support import taking
from tests.servers.kafka import MockKafka


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
