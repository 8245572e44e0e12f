"""Builds adapters from the broker argument: a URL, a connection, or an adapter object."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias, cast

from outbox.core.arguments import exactly_one
from outbox.core.byte_limits import ByteLimits
from outbox.core.urls import ServerKind, amqp_url, postgres_url, server_address, server_kind
from outbox.errors import ConfigurationError, DatabaseUnavailableError, MissingExtraError

if TYPE_CHECKING:
    import asyncio

    from aio_pika.abc import AbstractConnection

    from outbox.core.message import Message
    from outbox.engine.consumer import Consumer
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
        Source,
        Subscription,
        Transport,
    )
    from outbox.postgres.pool import Pool
    from outbox.postgres.queries import TableName

    BrokerSource: TypeAlias = str | AbstractConnection | Transport
    ConsumableSource: TypeAlias = str | AbstractConnection | Broker | Source
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
        if server_kind(broker, argument="broker") is ServerKind.AMQP:
            _require_aio_pika()
        elif stored_label(broker) is not None:
            _open_sender(broker)  # checks the URL, and connects to nothing yet
        return broker
    if broker is None or not all(callable(getattr(broker, method, None)) for method in ("open", "send", "close")):
        raise ConfigurationError(
            "broker must be an amqp://, postgresql://, kafka://, nats://, redis://, sqs:// or sns:// URL, or an object that "
            f"implements outbox.ports.Transport, not {type(broker).__name__}"
        )
    return broker


def require_one_consumable_broker(
    *,
    rmq_connection: "AbstractConnection | None",
    rmq_connection_url: str | None,
    broker: "str | Broker | Source | None",
) -> "ConsumableSource":
    """Like `require_one_broker`, for a broker that a worker can consume from."""
    if is_source(broker):
        exactly_one(rmq_connection=rmq_connection, rmq_connection_url=rmq_connection_url, broker=broker)
        return cast("Source", broker)
    source = require_one_broker(
        rmq_connection=rmq_connection, rmq_connection_url=rmq_connection_url, broker=cast("str | Transport | None", broker)
    )
    if isinstance(source, str) and stored_label(source) is not None:
        _open_source(source)  # as an argument, a topic, subject or stream may have to name more than for a relay
    if source is broker and not isinstance(broker, str) and not callable(getattr(broker, "subscribe", None)):
        raise ConfigurationError(
            f"{type(broker).__name__} cannot be consumed from: it implements neither outbox.ports.Broker nor Source"
        )
    return source  # type: ignore[return-value]  # as just checked


def require_one_dead_letter_source(
    *,
    rmq_connection: "AbstractConnection | None",
    rmq_connection_url: str | None,
    broker: "str | DeadLetterQueues | None",
) -> "DeadLetterSource":
    """Like `require_one_broker`, for a broker that keeps dead letters in queues, which an archiver needs."""
    exactly_one(rmq_connection=rmq_connection, rmq_connection_url=rmq_connection_url, broker=broker)
    if (label := stored_label(broker)) is not None:
        raise ConfigurationError(
            f"an archiver needs RabbitMQ; with {label}, workers record dead letters in their database, and none are to be moved"
        )
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


def open_transport(
    source: "BrokerSource", *, exchange_name: str, table: "TableName", observer: "Observer", pool: "Pool | None" = None
) -> "Transport":
    """Returns a transport to send with. `close` closes a connection that it opened, not a connection or object passed in.

    `pool` is the outbox's database, whose queues get the messages for single queues if the broker has no queues.
    """
    transport: Transport
    if isinstance(source, str) and stored_label(source) is not None:
        transport = _open_sender(source)
    elif isinstance(source, str):
        transport = _from_url(source, exchange_name=exchange_name, table=table, observer=observer)
    elif hasattr(source, "send"):
        transport = _BorrowedTransport(cast("Transport", source))
    else:
        transport = _over_connection(source, exchange_name=exchange_name, observer=observer)
    if pool is None or (label := stored_label(source)) is None:
        return transport
    from outbox.transports.postgres import PostgresBroker
    from outbox.transports.stored import QueueTransport

    return QueueTransport(transport, PostgresBroker(pool=pool, table=table, exchange_name=label, observer=observer))


def open_broker(
    source: "ConsumableSource",
    *,
    exchange_name: str,
    table: "TableName",
    observer: "Observer",
    masking: "Masking | None" = None,
    byte_limits: ByteLimits = ByteLimits(),  # noqa: B008  a frozen value
    db_engine_url: str | None = None,
    db_pool: "Pool | None" = None,
) -> "Broker":
    """Returns a broker to send to and consume from. `masking` applies to dead letters that the broker itself records.

    Exactly one of `db_engine_url` and `db_pool` is needed for a source whose messages are stored in the database.
    """
    if (label := stored_label(source)) is not None:
        from outbox.transports.postgres import PostgresBroker
        from outbox.transports.stored import StoredBroker

        database = PostgresBroker(
            db_engine_url,
            pool=db_pool,
            table=table,
            exchange_name=label,
            observer=observer,
            masking=masking,
            byte_limits=byte_limits,
            of_source=True,
        )
        reading = _open_source(source) if isinstance(source, str) else _BorrowedSource(cast("Source", source))
        return StoredBroker(reading, database, observer=observer)
    if isinstance(source, str):
        return _from_url(
            source, exchange_name=exchange_name, table=table, observer=observer, masking=masking, byte_limits=byte_limits
        )
    if hasattr(source, "subscribe"):
        return _BorrowedBroker(cast("Broker", source))
    return _over_connection(cast("AbstractConnection", source), exchange_name=exchange_name, observer=observer)


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


def is_source(broker: object) -> bool:
    """Whether `broker` is an object that implements `outbox.ports.Source`."""
    methods = [callable(getattr(broker, method, None)) for method in ("read", "close", "subscribe")]
    return methods == [True, True, False]


def stored_label(source: object) -> str | None:
    """Returns the exchange of messages that workers store in their database, because `source` keeps no state for each.

    None for a broker that has queues. The label is a word for the kind of broker, the same for sending and for reading.
    """
    if isinstance(source, str):
        kind = server_kind(source, argument="broker")
        return kind.value if kind in _STREAMS else None
    label = None if hasattr(source, "subscribe") else getattr(source, "label", None)
    if isinstance(label, str):
        return label
    return "source" if is_source(source) else None


_STREAMS: Mapping[ServerKind, tuple[str, str]] = {
    ServerKind.KAFKA: ("outbox.transports.kafka:KafkaTransport", "outbox.transports.kafka_source:KafkaSource"),
    ServerKind.NATS: ("outbox.transports.nats:NatsTransport", "outbox.transports.nats_source:NatsSource"),
    ServerKind.REDIS: ("outbox.transports.redis:RedisTransport", "outbox.transports.redis:RedisSource"),
    ServerKind.AWS: ("outbox.transports.aws:AwsTransport", "outbox.transports.aws:AwsSource"),
}
"""What sends to brokers that keep no state for each message, and what reads from them, by the kind of their URL."""


def refuse_stored_label(source: "BrokerSource", exchange_name: str) -> None:
    """Raises `ConfigurationError` for a relay to PostgreSQL whose exchange is the label of messages that workers store.

    It would hand its messages over to the queues of workers on that broker.
    """
    is_postgres = isinstance(source, str) and server_kind(source, argument="broker") is ServerKind.POSTGRES
    if is_postgres and exchange_name in {kind.value for kind in _STREAMS}:
        raise ConfigurationError(
            f"the exchange name {exchange_name!r} is reserved in PostgreSQL, for what workers on {exchange_name} store there: "
            "choose another one"
        )


def _open_sender(url: str) -> "Transport":
    """Returns a transport to send with. Raises `ConfigurationError`, and `MissingExtraError` without the broker's library."""
    module, _, name = _STREAMS[server_kind(url, argument="broker")][0].partition(":")
    transport: Transport = getattr(import_module(module), name)(url)
    return transport


def _open_source(url: str) -> "Source":
    """Returns a source to read from. Raises the errors of `_open_sender`."""
    module, _, name = _STREAMS[server_kind(url, argument="broker")][1].partition(":")
    source: Source = getattr(import_module(module), name)(url)
    return source


def unkept(source: "ConsumableSource", consumers: "Iterable[Consumer]") -> list[str]:
    """Describes each consumer that needs what its broker does not guarantee.

    Raises the errors of `_open_sender` for a URL that a worker cannot read from.
    """
    from outbox.ports import Guarantees

    if isinstance(source, str) and stored_label(source) is not None:
        source = _open_source(source)
    guarantees: Guarantees = getattr(source, "guarantees", Guarantees())
    broker = getattr(source, "destination", type(source).__name__)
    found = []
    for consumer in consumers:
        if consumer.ordered and not guarantees.ordered:
            found.append(
                f"the consumer of {consumer.queue!r} is ordered, and {broker} guarantees no order: leave ordered out, or with "
                "AWS use a queue or topic whose name ends in .fifo"
            )
        if not guarantees.patterns and ("*" in consumer.binding_key or "#" in consumer.binding_key):
            found.append(
                f"the binding key {consumer.binding_key!r} of the queue {consumer.queue!r} has wildcards, which {broker} "
                "cannot match: name whole routing keys, or send all of them to one place, in Redis as ?stream=events, in SQS "
                "as ?queue=events, or by a topic of SNS"
            )
    return found


def _require_aio_pika() -> None:
    if find_spec("aio_pika") is None:
        raise MissingExtraError(purpose="RabbitMQ", extra="rabbitmq")


def destination_of(source: "BrokerSource", *, exchange_name: str) -> str:
    """Describes the destination of messages, without secrets. Sources with the same destination get the same text.

    A transport may describe it by an attribute `destination`.
    """
    if isinstance(source, str) and stored_label(source) is not None:
        source = _open_sender(source)
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
    return not hasattr(source, "subscribe") and not is_source(source)


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


class _BorrowedSource:
    """A source that the caller owns."""

    def __init__(self, source: "Source") -> None:
        self.read = source.read

    async def close(self) -> None:
        """Does nothing: the caller closes the source."""


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
