"""What the admin reads about the broker: its kind, queue depths, and the consumers that workers report."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from outbox.errors import BrokerUnavailableError
from outbox.reporting.components import ComponentKind, ComponentStatus, KnownComponent
from outbox.runtime.brokers import keeps_dead_letters, stored_label

if TYPE_CHECKING:
    from outbox.admin.admin import Admin
    from outbox.transports.rabbitmq.overview import Overview, QueueState


class BrokerKind(StrEnum):
    """The broker that holds the queues: with Kafka, Redis or SQS PostgreSQL. `other`: an object of the host without them."""

    POSTGRESQL = "postgresql"
    RABBITMQ = "rabbitmq"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Depths:
    """RabbitMQ's queues, or the error that made them unavailable."""

    queues: "Sequence[QueueState]" = ()
    problem: str | None = None


class BrokerView:
    """Reads from the broker of an admin. Connects to RabbitMQ on first use."""

    def __init__(self, admin: "Admin") -> None:
        self.kind = BrokerKind.POSTGRESQL
        self.rabbitmq: Overview | None = None
        if isinstance(admin.broker, str) and keeps_dead_letters(admin.broker):
            # Imported here: the admin works without the library of RabbitMQ where there is none.
            from outbox.transports.rabbitmq import overview

            self.kind = BrokerKind.RABBITMQ
            self.rabbitmq = overview.Overview(admin.broker, management_url=admin.management_url)
        elif not isinstance(admin.broker, str | None) and stored_label(admin.broker) is None:
            self.kind = BrokerKind.OTHER

    async def depths(self, named: Collection[str]) -> Depths:
        """Returns the depths of RabbitMQ's queues; empty with any other broker. Never raises: an error is in the result."""
        if self.rabbitmq is None:
            return Depths()
        try:
            return Depths(await self.rabbitmq.queues(named))
        except BrokerUnavailableError as error:
            return Depths(problem=str(error))

    async def close(self) -> None:
        """Closes the connection."""
        if self.rabbitmq is not None:
            await self.rabbitmq.close()


def route_hint(routing_key: str, *, label: str | None, exchange_name: str) -> str:
    """Suggests how held messages of `routing_key` get a route; `label` is that of a broker without queues."""
    if label is not None:
        return f"create a topic, stream or queue for {routing_key!r} in {label}"
    return f"bind a queue to the exchange {exchange_name!r} with a key that matches {routing_key!r}, or start its consumer"


_ALIVE = (ComponentStatus.ALIVE, ComponentStatus.LATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredConsumer:
    """A consumer of a queue at one worker. `delays` are the fixed retry delays."""

    queue: str
    binding_key: str
    worker: str
    is_alive: bool
    is_paused: bool
    ordered: bool
    delays: Sequence[timedelta]


def declared_consumers(components: Iterable[KnownComponent]) -> Sequence[DeclaredConsumer]:
    """Lists the consumers of all workers, including lost and stopped ones."""
    declared: list[DeclaredConsumer] = []
    for component in components:
        for consumer in component.consumers if component.kind is ComponentKind.WORKER else ():
            # A heartbeat may come from another release: what has an unexpected form is skipped.
            if "queue" not in consumer:
                continue
            retry = consumer.get("retry")
            found = retry.get("delays_seconds") if isinstance(retry, Mapping) else None
            delays = found if isinstance(found, list) else []
            declared.append(
                DeclaredConsumer(
                    queue=consumer["queue"],
                    binding_key=str(consumer.get("binding_key", "")),
                    worker=component.name,
                    is_alive=component.condition in _ALIVE,
                    is_paused=component.has_paused(consumer["queue"]),
                    ordered=bool(consumer.get("ordered")),
                    delays=[timedelta(seconds=each) for each in delays if isinstance(each, int | float)],
                )
            )
    return declared
