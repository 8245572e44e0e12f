"""Reads queues, depths and bindings from the management API, or over AMQP where there is none."""

import asyncio
import base64
import json
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from outbox.core.urls import amqp_url
from outbox.errors import BrokerUnavailableError, ConfigurationError
from outbox.transports.rabbitmq.connection import CONNECT_TIMEOUT, OwnedConnection
from outbox.transports.rabbitmq.limits import settings_in_force
from outbox.transports.rabbitmq.topology import Exchange, Inquiry, NotAllowed, NotThere, inquiry_on, is_there

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel


TIMEOUT = timedelta(seconds=10)
"""Longest wait for one answer."""
MOST_QUEUES = 5_000
"""Queues of a virtual host that are looked at."""
_PAGE = 500
_COLUMNS = "name,type,messages_ready,messages_unacknowledged,consumers,arguments,effective_policy_definition,delivery_limit"


class Management:
    """Questions about one virtual host, over `http(s)://user:password@host:15672`."""

    def __init__(self, url: str, *, virtual_host: str) -> None:
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ConfigurationError("management_url is an http(s):// address, such as http://user:password@rabbit:15672")
        self._base = address._replace(netloc=address.netloc.rpartition("@")[2]).geturl().rstrip("/")
        credentials = f"{unquote(address.username or 'guest')}:{unquote(address.password or 'guest')}"
        self._authorization = f"Basic {base64.b64encode(credentials.encode()).decode()}"
        self._host = quote(virtual_host, safe="")

    async def queue(self, name: str) -> dict[str, Any] | None:
        """What the broker knows of a queue, its effective policy included; None if there is none."""
        found = await self._get(f"queues/{self._host}/{quote(name, safe='')}")
        return found if isinstance(found, dict) else None

    async def bindings(self, queue: str) -> list[dict[str, Any]]:
        """The bindings of a queue."""
        found = await self._get(f"queues/{self._host}/{quote(queue, safe='')}/bindings")
        return found if isinstance(found, list) else []

    async def exchange(self, name: str) -> dict[str, Any] | None:
        """What the broker knows of an exchange; None if there is none."""
        found = await self._get(f"exchanges/{self._host}/{quote(name, safe='')}")
        return found if isinstance(found, dict) else None

    async def bindings_from(self, exchange: str) -> list[dict[str, Any]]:
        """What an exchange gives its messages to."""
        found = await self._get(f"exchanges/{self._host}/{quote(exchange, safe='')}/bindings/source")
        return found if isinstance(found, list) else []

    async def queues(self) -> list[dict[str, Any]]:
        """All queues, the first `MOST_QUEUES` of them, with what is in them."""
        queues: list[dict[str, Any]] = []
        for page in range(1, MOST_QUEUES // _PAGE + 1):
            found = await self._get(f"queues/{self._host}?page={page}&page_size={_PAGE}&columns={_COLUMNS}")
            if not isinstance(found, dict):
                break
            queues += found.get("items", [])
            if page >= found.get("page_count", 0):
                break
        return queues

    async def _get(self, path: str) -> Any:
        return await asyncio.to_thread(self._get_now, path)

    def _get_now(self, path: str) -> Any:
        request = urllib.request.Request(f"{self._base}/api/{path}", headers={"Authorization": self._authorization})  # noqa: S310  its scheme was checked
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT.total_seconds()) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            if refusal.code == 404:
                return None
            raise BrokerUnavailableError(f"the management API refuses: {refusal.code} {refusal.reason}") from None
        except (OSError, ValueError) as failure:
            raise BrokerUnavailableError(f"the management API does not answer: {failure}") from None


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
        self._link = OwnedConnection(address, purpose="outbox admin", connect_timeout=CONNECT_TIMEOUT)
        host = unquote(urlsplit(url).path.removeprefix("/")) or "/"
        self._management = None if management_url is None else Management(management_url, virtual_host=host)

    @property
    def sees_all(self) -> bool:
        """Whether it knows of bindings, and of queues that were not named."""
        return self._management is not None

    async def queues(self, named: Collection[str]) -> Sequence[QueueSeen]:
        """The queues of these names, whether or not they are there; if it sees all, every other one as well."""
        if self._management is None:
            async with inquiry_on(self._link) as inquiry:
                return [await _asked(inquiry, name) for name in sorted(named)]
        found = {
            queue["name"]: QueueSeen(
                name=queue["name"],
                ready=queue.get("messages_ready"),
                unacked=queue.get("messages_unacknowledged"),
                consumers=queue.get("consumers"),
                settings=settings_in_force(queue),
            )
            for queue in await self._management.queues()
        }
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
