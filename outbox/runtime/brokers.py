"""Builds adapters from the broker argument: a URL, a connection, or an adapter object."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias, cast

from outbox.core.arguments import exactly_one
from outbox.core.byte_limits import ByteLimits
from outbox.core.urls import ServerKind, amqp_url, kafka_topic, postgres_url, server_address, server_kind
from outbox.errors import ConfigurationError, DatabaseUnavailableError, MissingExtraError

if TYPE_CHECKING:
    import asyncio

    from aio_pika.abc import AbstractConnection

    from outbox.core.message import Message
    from outbox.masking import Masking
    from outbox.ports import (
        Archive,
        Broker,
        DeadLetterQueues,
        Intake,
        Observer,
        QueueDepth,
        Receive,
        ReceiveDead,
        SendResult,
        Subscription,
        Transport,
    )
    from outbox.postgres.queries import TableName
    from outbox.transports.kafka import KafkaTransport

    BrokerSource: TypeAlias = str | AbstractConnection | Transport
    ConsumableSource: TypeAlias = str | AbstractConnection | Broker
    DeadLetterSource: TypeAlias = str | AbstractConnection | DeadLetterQueues


def require_one_broker(
    *,
    rmq_connection: "AbstractConnection | None",
    rmq_connection_url: str | None,
    broker: "str | Transport | None",
) -> "BrokerSource":
    """Returns the broker argument that is set, as a source for `open_transport`.

    Raises `ConfigurationError` unless exactly one is set, of a supported kind, and `MissingExtraError` without its library.
    """
    exactly_one(rmq_connection=rmq_connection, rmq_connection_url=rmq_connection_url, broker=broker)
    if rmq_connection_url is not None:
        _require_aio_pika()
        return amqp_url(rmq_connection_url)
    if rmq_connection is not None:
        _require_aio_pika()
        from aio_pika.abc import AbstractConnection

        if not isinstance(rmq_connection, AbstractConnection):
            raise ConfigurationError(
                f"rmq_connection must be an aio-pika connection, such as aio_pika.connect_robust() returns, "
                f"not {type(rmq_connection).__name__}; pass other objects as broker"
            )
        return rmq_connection
    if isinstance(broker, str):
        kind = server_kind(broker, argument="broker")
        if kind is ServerKind.AMQP:
            _require_aio_pika()
        elif kind is ServerKind.KAFKA:
            open_kafka(broker)  # checks the URL, and connects to nothing yet
        return broker
    if broker is None or not all(callable(getattr(broker, method, None)) for method in ("open", "send", "close")):
        raise ConfigurationError(
            "broker must be an amqp:// URL, a postgresql:// URL, for a relay a kafka:// URL, or an object that implements "
            f"outbox.ports.Transport, not {type(broker).__name__}"
        )
    return broker


def require_one_consumable_broker(
    *,
    rmq_connection: "AbstractConnection | None",
    rmq_connection_url: str | None,
    broker: "str | Broker | None",
) -> "ConsumableSource":
    """Like `require_one_broker`, for a broker that a worker can consume from."""
    if is_kafka(broker):
        raise ConfigurationError(
            "Kafka cannot be consumed from: Outbox only relays to it. Read the topics with a Kafka client, and give workers "
            "an amqp:// or postgresql:// URL"
        )
    source = require_one_broker(rmq_connection=rmq_connection, rmq_connection_url=rmq_connection_url, broker=broker)
    if source is broker and not isinstance(broker, str) and not callable(getattr(broker, "subscribe", None)):
        raise ConfigurationError(f"{type(broker).__name__} cannot be consumed from: it does not implement outbox.ports.Broker")
    return source  # type: ignore[return-value]  # as just checked


def require_one_dead_letter_source(
    *,
    rmq_connection: "AbstractConnection | None",
    rmq_connection_url: str | None,
    broker: "str | DeadLetterQueues | None",
) -> "DeadLetterSource":
    """Like `require_one_broker`, for a broker that keeps dead letters in queues, which an archiver needs."""
    exactly_one(rmq_connection=rmq_connection, rmq_connection_url=rmq_connection_url, broker=broker)
    if is_kafka(broker):
        raise ConfigurationError("an archiver needs RabbitMQ: Outbox only relays to Kafka, which has no dead letters to move")
    if broker is None or isinstance(broker, str):
        source = require_one_broker(rmq_connection=rmq_connection, rmq_connection_url=rmq_connection_url, broker=broker)
        if isinstance(source, str) and server_kind(source, argument="broker") is not ServerKind.AMQP:
            raise ConfigurationError(
                "an archiver needs RabbitMQ; with the Postgres transport dead letters are in the database already"
            )
        return source  # type: ignore[return-value]  # a URL or a connection
    if not callable(getattr(broker, "collect", None)):
        raise ConfigurationError(
            "broker must be an amqp:// URL, or an object that implements outbox.ports.DeadLetterQueues, "
            f"not {type(broker).__name__}"
        )
    return broker


def open_dead_letter_queues(source: "DeadLetterSource") -> "DeadLetterQueues":
    """Returns an adapter for dead-letter queues. `close` closes a connection that the adapter opened, not one passed in."""
    if hasattr(source, "collect"):
        return _BorrowedDeadLetterQueues(cast("DeadLetterQueues", source))
    from outbox.transports.rabbitmq.dead_letters import RabbitDeadLetterQueues

    return RabbitDeadLetterQueues(source) if isinstance(source, str) else RabbitDeadLetterQueues(connection=source)


def open_transport(source: "BrokerSource", *, exchange_name: str, table: "TableName", observer: "Observer") -> "Transport":
    """Returns a transport to send with. `close` closes a connection that it opened, not a connection or object passed in."""
    if isinstance(source, str):
        if is_kafka(source):
            return open_kafka(source)
        return _from_url(source, exchange_name=exchange_name, table=table, observer=observer)
    if hasattr(source, "send"):
        return _BorrowedTransport(cast("Transport", source))
    return _over_connection(source, exchange_name=exchange_name, observer=observer)


def open_broker(
    source: "ConsumableSource",
    *,
    exchange_name: str,
    table: "TableName",
    observer: "Observer",
    masking: "Masking | None" = None,
    byte_limits: ByteLimits = ByteLimits(),  # noqa: B008  a frozen value
) -> "Broker":
    """Returns a broker to send to and consume from. `masking` applies to dead letters that the broker itself records."""
    if isinstance(source, str):
        return _from_url(
            source, exchange_name=exchange_name, table=table, observer=observer, masking=masking, byte_limits=byte_limits
        )
    if hasattr(source, "subscribe"):
        return _BorrowedBroker(cast("Broker", source))
    return _over_connection(source, exchange_name=exchange_name, observer=observer)


def _from_url(
    url: str,
    *,
    exchange_name: str,
    table: "TableName",
    observer: "Observer",
    masking: "Masking | None" = None,
    byte_limits: ByteLimits = ByteLimits(),  # noqa: B008  a frozen value
) -> "Broker":
    if server_kind(url, argument="broker") is ServerKind.AMQP:
        from outbox.transports.rabbitmq import RabbitBroker

        return RabbitBroker(url, exchange_name=exchange_name, observer=observer)
    from outbox.transports.postgres import PostgresBroker

    return PostgresBroker(
        postgres_url(url, argument="broker"),
        table=table,
        exchange_name=exchange_name,
        observer=observer,
        masking=masking,
        byte_limits=byte_limits,
    )


def _over_connection(connection: "AbstractConnection", *, exchange_name: str, observer: "Observer") -> "Broker":
    from outbox.transports.rabbitmq import RabbitBroker

    return RabbitBroker(connection=connection, exchange_name=exchange_name, observer=observer)


def is_kafka(source: object) -> bool:
    """Whether `source` is the URL of a Kafka cluster, which can be sent to and not consumed from."""
    return isinstance(source, str) and server_kind(source, argument="broker") is ServerKind.KAFKA


async def has_no_queue(queue: str) -> bool:  # noqa: ARG001  the signature of `Broker.has_queue`
    """Returns False: a broker such as Kafka has no queue that a message could be for."""
    return False


def open_kafka(url: str) -> "KafkaTransport":
    """Returns a transport to send with. Raises `ConfigurationError`, and `MissingExtraError` without Kafka's library."""
    from outbox.transports.kafka import KafkaTransport

    return KafkaTransport(url)


def _require_aio_pika() -> None:
    if find_spec("aio_pika") is None:
        raise MissingExtraError(purpose="RabbitMQ", extra="rabbitmq")


def destination_of(source: "BrokerSource", *, exchange_name: str) -> str:
    """Describes the destination of messages, without secrets. Sources with the same destination get the same text.

    A transport may describe it by an attribute `destination`.
    """
    if isinstance(source, str) and is_kafka(source):
        return f"{server_address(source)}, topic {kafka_topic(source)}"
    if isinstance(described := getattr(source, "destination", None), str):
        return described
    url = source if isinstance(source, str) else getattr(source, "url", None)  # a connection of aio-pika has one
    if url is None or hasattr(source, "send"):
        where = f"{type(source).__module__}.{type(source).__qualname__}"
    else:
        where = server_address(str(url))
    return f"{where}, exchange {exchange_name}"


def own_database(*, exchange_name: str) -> str:
    """The destination of messages that stay in the database of their outbox."""
    return f"PostgreSQL, the outbox's own database, exchange {exchange_name}"


def keeps_dead_letters(source: "ConsumableSource") -> bool:
    """Whether dead letters stay at the broker until an archiver moves them."""
    if isinstance(source, str):
        return server_kind(source, argument="broker") is ServerKind.AMQP
    return not hasattr(source, "subscribe")


class _BorrowedTransport:
    """A transport that the caller owns: forwards every call except `close`."""

    def __init__(self, transport: "Transport") -> None:
        self._transport = transport

    async def open(self) -> None:
        await self._transport.open()

    async def send(self, messages: "Sequence[Message]", *, timeout: timedelta) -> "Sequence[SendResult]":
        return await self._transport.send(messages, timeout=timeout)

    async def close(self) -> None:
        """Does nothing: the caller closes the transport."""


class _BorrowedBroker(_BorrowedTransport):
    """A broker that the caller owns."""

    def __init__(self, broker: "Broker") -> None:
        super().__init__(broker)
        self._broker = broker

    def subscribe(self, subscription: "Subscription", receive: "Receive") -> "AbstractAsyncContextManager[Intake]":
        return self._broker.subscribe(subscription, receive)

    async def count_dead_letters(self, queue: str) -> int:
        return await self._broker.count_dead_letters(queue)

    async def has_queue(self, queue: str) -> bool:
        return await self._broker.has_queue(queue)

    async def queue_depth(self, queue: str) -> "QueueDepth | None":
        from outbox.ports import MeasuresQueues

        return await self._broker.queue_depth(queue) if isinstance(self._broker, MeasuresQueues) else None


class CountingArchived(_BorrowedBroker):
    """A broker that counts dead letters in its own queues and open ones in the archive."""

    def __init__(self, broker: "Broker", archive: "Archive") -> None:
        super().__init__(broker)
        self._archive = archive

    async def count_dead_letters(self, queue: str) -> int:
        count = await super().count_dead_letters(queue)
        # The worker's database may have no table of dead letters, so the count works without it.
        with suppress(DatabaseUnavailableError):
            count += await self._archive.count_open(queue)
        return count


class _BorrowedDeadLetterQueues:
    """Dead-letter queues that the caller owns."""

    def __init__(self, queues: "DeadLetterQueues") -> None:
        self._queues = queues

    def collect(
        self, queue: str, receive: "ReceiveDead", *, prefetch_count: int, max_bytes: int
    ) -> "AbstractAsyncContextManager[asyncio.Event]":
        return self._queues.collect(queue, receive, prefetch_count=prefetch_count, max_bytes=max_bytes)

    async def count(self, queue: str) -> int:
        return await self._queues.count(queue)

    async def close(self) -> None:
        """Does nothing: the caller closes them."""
