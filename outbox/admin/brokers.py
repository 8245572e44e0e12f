"""What the admin reads from the broker: its kind, queue depths, declared consumers."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from outbox.errors import BrokerUnavailableError
from outbox.reporting.components import ComponentKind, ComponentStatus, KnownComponent
from outbox.runtime.brokers import keeps_dead_letters

if TYPE_CHECKING:
    from outbox.admin.admin import Admin
    from outbox.transports.rabbitmq.overview import Overview, QueueState


class BrokerKind(StrEnum):
    """What holds the queues; `other`: an object of the host, which reports none."""

    POSTGRESQL = "postgresql"
    RABBITMQ = "rabbitmq"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Depths:
    """RabbitMQ's queues, or why nothing is known of them."""

    queues: "Sequence[QueueState]" = ()
    problem: str | None = None


class BrokerView:
    """Looks at the broker of an admin; a connection to RabbitMQ is opened when it is first needed."""

    def __init__(self, admin: "Admin") -> None:
        self.kind = BrokerKind.POSTGRESQL
        self.rabbitmq: Overview | None = None
        if isinstance(admin.broker, str) and keeps_dead_letters(admin.broker):
            from outbox.transports.rabbitmq import overview

            self.kind = BrokerKind.RABBITMQ
            self.rabbitmq = overview.Overview(admin.broker, management_url=admin.management_url)
        elif not isinstance(admin.broker, str | None):
            self.kind = BrokerKind.OTHER

    async def depths(self, named: Collection[str]) -> Depths:
        """How full RabbitMQ's queues are; none with any other broker. Raises nothing."""
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


_LIVING = (ComponentStatus.ALIVE, ComponentStatus.LATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredConsumer:
    """A consumer of a queue at one worker; `delays` are those of its retries that are known beforehand."""

    queue: str
    binding_key: str
    worker: str
    living: bool
    ordered: bool
    delays: Sequence[timedelta]


def declared(components: Iterable[KnownComponent]) -> Sequence[DeclaredConsumer]:
    """The consumers of all workers, those that ended included."""
    # Heartbeats may be those of another release: what is not of the expected form is left out.
    return [
        DeclaredConsumer(
            queue=consumer["queue"],
            binding_key=str(consumer.get("binding_key", "")),
            worker=component.name,
            living=component.condition in _LIVING,
            ordered=bool(consumer.get("ordered")),
            delays=[timedelta(seconds=seconds) for seconds in (consumer.get("retry") or {}).get("delays_seconds", ())],
        )
        for component in components
        if component.kind is ComponentKind.WORKER
        for consumer in component.consumers
        if isinstance(consumer, Mapping) and isinstance(consumer.get("queue"), str)
    ]
