"""What RabbitMQ holds now: queues with their depths, and bindings; by its management API, or as far as AMQP tells."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from outbox.core.urls import amqp_url
from outbox.transports.rabbitmq.connection import CONNECT_TIMEOUT, OwnLink
from outbox.transports.rabbitmq.inquiry import Inquiry, NotAllowed, NotThere, inquiry_on
from outbox.transports.rabbitmq.limits import settings_in_force
from outbox.transports.rabbitmq.management import Management
from outbox.transports.rabbitmq.topology import Exchange, is_there

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSeen:
    """A queue as the broker shows it; None for what it does not tell. `settings` are arguments and policy combined."""

    name: str
    there: bool = True
    ready: int | None = None
    unacked: int | None = None
    consumers: int | None = None
    settings: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class BindingSeen:
    """What brings messages from an exchange to a queue."""

    exchange: str
    queue: str
    key: str


class Overview:
    """Looks at one virtual host and changes nothing. Everything raises `BrokerUnavailableError`."""

    def __init__(self, url: str, *, management_url: str | None) -> None:
        address = amqp_url(url, argument="broker")
        self._link = OwnLink(address, purpose="outbox admin", connect_timeout=CONNECT_TIMEOUT)
        host = unquote(urlsplit(url).path.removeprefix("/")) or "/"
        self._management = None if management_url is None else Management(management_url, virtual_host=host)

    @property
    def sees_all(self) -> bool:
        """Whether it knows of bindings, and of queues that nobody named."""
        return self._management is not None

    async def queues(self, named: Collection[str]) -> Sequence[QueueSeen]:
        """The queues of these names, whether or not they are there; if it sees all, every other one as well."""
        if self._management is None:
            async with inquiry_on(self._link) as inquiry:
                return [await _asked(inquiry, name) for name in sorted(named)]
        found = {queue["name"]: _managed(queue) for queue in await self._management.queues()}
        missing = {name: QueueSeen(name=name, there=False) for name in named if name not in found}
        return sorted((found | missing).values(), key=lambda queue: queue.name)

    async def has_exchange(self, name: str) -> bool:
        """Whether there is an exchange of that name."""
        if self._management is not None:
            return await self._management.exchange(name) is not None
        async with inquiry_on(self._link) as inquiry:
            return await is_there(inquiry, Exchange(name, "topic"))

    async def bindings(self, exchange: str) -> Sequence[BindingSeen] | None:
        """The queues that are bound to an exchange; None if that cannot be known."""
        if self._management is None:
            return None
        found = await self._management.bindings_from(exchange)
        queues = [binding for binding in found if binding.get("destination_type") == "queue"]
        return [BindingSeen(exchange, binding["destination"], binding["routing_key"]) for binding in queues]

    async def close(self) -> None:
        """Closes the connection."""
        await self._link.close()


async def _asked(inquiry: Inquiry, name: str) -> QueueSeen:
    async def look(channel: "AbstractChannel") -> Any:
        return await channel.queue_declare(name, passive=True)

    try:
        found = await inquiry.ask(look)
    except NotThere:
        return QueueSeen(name=name, there=False)
    except NotAllowed:
        return QueueSeen(name=name)
    return QueueSeen(name=name, ready=found.message_count, consumers=found.consumer_count)


def _managed(queue: Mapping[str, Any]) -> QueueSeen:
    return QueueSeen(
        name=queue["name"],
        ready=queue.get("messages_ready"),
        unacked=queue.get("messages_unacknowledged"),
        consumers=queue.get("consumers"),
        settings=settings_in_force(queue),
    )
