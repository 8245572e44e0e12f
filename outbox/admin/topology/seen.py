"""Reads the topology from whichever broker there is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from outbox.admin.brokers import BrokerKind, DeclaredConsumer, declared
from outbox.admin.store.backlog import HeldKey, QueueCounts, Subscribed, held_keys, subscriptions
from outbox.errors import BrokerUnavailableError
from outbox.postgres.relays import KnownRelay, known_relays
from outbox.reporting.components import recent_components

if TYPE_CHECKING:
    from outbox.admin.admin import Admin
    from outbox.transports.rabbitmq.overview import Overview


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenQueue:
    """A queue; None for what is not known. `settings` are arguments and policies combined, without `x-`."""

    name: str
    there: bool = True
    queued: int | None = None
    retrying: int | None = None
    consumers: int | None = None
    settings: Mapping[str, Any] | None = None

    @property
    def waiting(self) -> int:
        """How many messages are known to be in it that nobody has in hand."""
        return (self.queued or 0) + (self.retrying or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was found. `bindings` None: they cannot be known; `problem`: why nothing is known of the broker."""

    broker: BrokerKind
    exchange: str
    consumers: Sequence[DeclaredConsumer]
    held: Sequence[HeldKey]
    missing_exchanges: frozenset[str] = frozenset()
    queues: Mapping[str, SeenQueue] = field(default_factory=dict)
    bindings: Sequence[Subscribed] | None = None
    problem: str | None = None
    relays: Sequence[KnownRelay] = ()


async def look(admin: "Admin", broker: BrokerKind, rabbitmq: "Overview | None", depths: Sequence[QueueCounts]) -> Seen:
    """Looks at the database, and at RabbitMQ if that is the broker; `depths` are those of queues in the database."""
    async with admin.reading("looking at the topology") as connection:
        consumers = declared(await recent_components(connection, schema=admin.table.schema))
        held = await held_keys(connection, admin.table)
        relays = await known_relays(connection, admin.table)
        subscribed = await subscriptions(connection, admin.table) if broker is BrokerKind.POSTGRESQL else []
    seen = Seen(broker=broker, exchange=admin.exchange_name, consumers=consumers, held=held, relays=relays)
    if broker is BrokerKind.POSTGRESQL:
        living = [consumer.queue for consumer in consumers if consumer.living]
        counts = {each.queue: (each.queued.value, each.retrying.value) for each in depths}
        queues = {}
        for name in sorted({binding.queue for binding in subscribed} | counts.keys()):
            queued, retrying = counts.get(name, (None, None))
            queues[name] = SeenQueue(name=name, queued=queued, retrying=retrying, consumers=living.count(name))
        return replace(seen, queues=queues, bindings=subscribed)
    if rabbitmq is None:
        return seen
    try:
        return await _with_rabbitmq(seen, rabbitmq)
    except BrokerUnavailableError as error:
        return replace(seen, problem=str(error))


async def _with_rabbitmq(seen: Seen, rabbitmq: "Overview") -> Seen:
    from outbox.transports.rabbitmq.topology import dead_letter_exchange, dead_letter_queue, delay_resource

    named = {consumer.queue for consumer in seen.consumers}
    delays = {delay_resource(seen.exchange, delay) for consumer in seen.consumers for delay in consumer.delays}
    exchanges = [seen.exchange, *([dead_letter_exchange(seen.exchange)] if named else []), *sorted(delays)]
    missing = frozenset([name for name in exchanges if not await rabbitmq.has_exchange(name)])
    bound = await rabbitmq.bindings(seen.exchange)
    found = await rabbitmq.queues({*named, *map(dead_letter_queue, named), *delays})
    ours = {*named, *(binding.queue for binding in bound or ())}
    shown = {*ours, *map(dead_letter_queue, ours), *delays}
    queues = {
        queue.name: SeenQueue(
            name=queue.name,
            there=queue.there,
            queued=queue.ready,
            consumers=queue.consumers,
            settings=queue.settings,
        )
        for queue in found
        if queue.name in shown or queue.name.startswith(f"{seen.exchange}.delay_")
    }
    bindings = None if bound is None else [Subscribed(each.exchange, each.queue, each.key) for each in bound]
    return replace(seen, missing_exchanges=missing, queues=queues, bindings=bindings)
