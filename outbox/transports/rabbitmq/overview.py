"""Reads queues, depths and bindings from the management API, or over AMQP without one."""

import asyncio
import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from outbox.core.urls import amqp_url
from outbox.errors import BrokerUnavailableError, ConfigurationError
from outbox.transports.rabbitmq.connection import CONNECT_TIMEOUT, OwnedConnection
from outbox.transports.rabbitmq.limits import settings_in_force
from outbox.transports.rabbitmq.topology import AccessRefused, Exchange, Inquiry, NotFound, exists, inquiry_on

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel

T = TypeVar("T")

TIMEOUT = timedelta(seconds=10)
"""Longest wait for one answer, and for a part of it."""
MANAGEMENT_TIMEOUT = timedelta(seconds=4)
"""Longest wait for an answer of several parts before AMQP is asked instead; `backlog.BROKER_TIMEOUT` is for both."""
MANAGEMENT_RETRY = timedelta(seconds=30)
"""Interval after which a management API that failed is asked again."""
MOST_QUEUES = 5_000
"""Most queues of a virtual host that are read."""
_PAGE = 500
_PART = 64 * 1024
"""Bytes read at a time."""
_COLUMNS = "name,type,messages_ready,messages_unacknowledged,consumers,arguments,effective_policy_definition,delivery_limit"


class Management:
    """Reads one virtual host through the management API at `http(s)://user:password@host:15672`."""

    def __init__(self, url: str, *, virtual_host: str) -> None:
        address = urlsplit(url)
        try:
            usable = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
        except ValueError:  # the port is no number
            usable = False
        if not usable:
            raise ConfigurationError("management_url must be an http(s):// URL, such as http://user:password@rabbit:15672")
        self._base = address._replace(netloc=address.netloc.rpartition("@")[2]).geturl().rstrip("/")
        # Reading the authorities takes some 40 ms. `urllib` does it for each request, from Python 3.12 on once in a process.
        self._context = ssl.create_default_context() if address.scheme == "https" else None
        credentials = f"{unquote(address.username or 'guest')}:{unquote(address.password or 'guest')}"
        self._authorization = f"Basic {base64.b64encode(credentials.encode()).decode()}"
        self._host = quote(virtual_host, safe="")

    async def problem_with(self, exchange: str) -> str | None:
        """Returns why an exchange that exists cannot be read; None if it can. Does not raise."""
        try:
            found = await self.exchange(exchange)
        except BrokerUnavailableError as failure:
            return str(failure)
        if found is None:
            return f"the management API does not know the exchange {exchange!r}: it is not that of this broker"
        return None

    async def queue(self, name: str) -> dict[str, Any] | None:
        """Returns a queue with its effective policy; None if it does not exist."""
        found = await self._get(f"queues/{self._host}/{quote(name, safe='')}")
        return found if isinstance(found, dict) else None

    async def bindings(self, queue: str) -> list[dict[str, Any]]:
        """Returns the bindings of a queue."""
        return _objects(await self._get(f"queues/{self._host}/{quote(queue, safe='')}/bindings"), routing_key=str)

    async def exchange(self, name: str) -> dict[str, Any] | None:
        """Returns an exchange; None if it does not exist."""
        found = await self._get(f"exchanges/{self._host}/{quote(name, safe='')}")
        return found if isinstance(found, dict) else None

    async def bindings_from(self, exchange: str) -> list[dict[str, Any]]:
        """Returns the bindings from an exchange."""
        found = await self._get(f"exchanges/{self._host}/{quote(exchange, safe='')}/bindings/source")
        return _objects(found, destination=str, routing_key=str)

    async def queues(self) -> list[dict[str, Any]]:
        """Returns the first `MOST_QUEUES` queues with their message counts."""
        queues: list[dict[str, Any]] = []
        for page in range(1, MOST_QUEUES // _PAGE + 1):
            found = await self._get(f"queues/{self._host}?page={page}&page_size={_PAGE}&columns={_COLUMNS}")
            # Only a virtual host that does not exist has no list. Without this, each queue would be said to be missing.
            if found is None:
                raise BrokerUnavailableError(f"the management API does not know the virtual host {unquote(self._host)!r}")
            [answer] = _objects([found], items=list, page_count=int)
            queues += _objects(answer["items"], name=str)
            if page >= answer["page_count"]:
                break
        return queues

    async def _get(self, path: str) -> Any:
        # urllib blocks, so it runs in a thread. The API is read too rarely for a dependency on an HTTP client library.
        return await asyncio.to_thread(self._get_blocking, path)

    def _get_blocking(self, path: str) -> Any:
        request = urllib.request.Request(f"{self._base}/api/{path}", headers={"Authorization": self._authorization})  # noqa: S310  its scheme was checked
        try:
            deadline = monotonic() + TIMEOUT.total_seconds()
            content = bytearray()
            with urllib.request.urlopen(request, timeout=TIMEOUT.total_seconds(), context=self._context) as answer:  # noqa: S310
                # An answer that trickles in would otherwise keep this thread, of which there are few, for ever.
                while part := answer.read1(_PART):
                    content += part
                    if monotonic() > deadline:
                        raise TimeoutError(f"it takes longer than {TIMEOUT.total_seconds():g} s")
            return json.loads(content)
        except urllib.error.HTTPError as refusal:
            with refusal:  # it has the connection
                if refusal.code == 404:
                    return None
                error = f"the management API refused the request: {refusal.code} {refusal.reason}"
                raise BrokerUnavailableError(error) from None
        except (OSError, ValueError, RecursionError, http.client.HTTPException) as failure:
            reason = str(failure) or type(failure).__name__
            raise BrokerUnavailableError(f"the management API does not answer: {reason}") from None


def _objects(found: Any, **fields: type) -> list[dict[str, Any]]:
    """Returns a list of objects, each with these fields; empty for null. Raises `BrokerUnavailableError` for other values."""
    items = [] if found is None else found
    if isinstance(items, list) and all(
        isinstance(item, dict) and all(isinstance(item.get(name), kind) for name, kind in fields.items()) for item in items
    ):
        return items
    raise BrokerUnavailableError("the management API gives other answers than RabbitMQ: check its address")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """A queue as the broker reports it; None for what it does not report. `settings` combine arguments and policy."""

    name: str
    there: bool = True
    ready: int | None = None
    unacked: int | None = None
    consumers: int | None = None
    settings: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding of a queue to an exchange."""

    exchange: str
    queue: str
    key: str


class Overview:
    """Reads one virtual host and changes nothing. Its methods raise `BrokerUnavailableError`.

    While the management API cannot be read, answers are those of AMQP, as without it; `management_problem` has the reason.
    """

    def __init__(self, url: str, *, management_url: str | None) -> None:
        address = amqp_url(url, argument="broker")
        self._link = OwnedConnection(address, purpose="outbox admin", connect_timeout=CONNECT_TIMEOUT)
        host = unquote(urlsplit(url).path.removeprefix("/")) or "/"
        self._management = None if management_url is None else Management(management_url, virtual_host=host)
        self._ask_again_at = 0.0
        self.management_problem: str | None = None

    async def queues(self, named: Collection[str]) -> Sequence[QueueState]:
        """Returns the queues of these names, missing ones included; with the management API, all other queues as well."""
        listed = await self._managed(lambda management: management.queues())
        if listed is None:
            async with self._inquiry() as inquiry:
                return [await _read_queue(inquiry, name) for name in sorted(named)]
        found = {
            queue["name"]: QueueState(
                name=queue["name"],
                ready=queue.get("messages_ready"),
                unacked=queue.get("messages_unacknowledged"),
                consumers=queue.get("consumers"),
                settings=settings_in_force(queue),
            )
            for queue in listed
        }
        missing = {name: QueueState(name=name, there=False) for name in named if name not in found}
        return sorted((found | missing).values(), key=lambda queue: queue.name)

    async def has_exchange(self, name: str) -> bool:
        """Whether an exchange of that name exists."""

        async def look(management: Management) -> bool:
            return await management.exchange(name) is not None

        found = await self._managed(look)
        if found is not None:
            return found
        async with self._inquiry() as inquiry:
            return await exists(inquiry, Exchange(name, "topic"))

    async def bindings(self, exchange: str) -> Sequence[Binding] | None:
        """Returns the bindings of queues to an exchange; None without the management API."""
        found = await self._managed(lambda management: management.bindings_from(exchange))
        if found is None:
            return None
        queues = [binding for binding in found if binding.get("destination_type") == "queue"]
        return [Binding(exchange, binding["destination"], binding["routing_key"]) for binding in queues]

    async def close(self) -> None:
        """Closes the connection."""
        await self._link.close()

    async def _managed(self, read: Callable[[Management], Awaitable[T]]) -> T | None:
        """Reads from the management API. None without it, and while it has a problem."""
        if self._management is None or monotonic() < self._ask_again_at:
            return None
        try:
            async with asyncio.timeout(MANAGEMENT_TIMEOUT.total_seconds()):
                answer = await read(self._management)
        except TimeoutError:
            self.management_problem = f"the management API takes longer than {MANAGEMENT_TIMEOUT.total_seconds():g} s"
        except BrokerUnavailableError as failure:
            self.management_problem = str(failure)
        else:
            self.management_problem = None
            return answer
        # Each of several questions in a row would wait for it, and leave AMQP no time.
        self._ask_again_at = monotonic() + MANAGEMENT_RETRY.total_seconds()
        return None

    @asynccontextmanager
    async def _inquiry(self) -> AsyncIterator[Inquiry]:
        try:
            async with inquiry_on(self._link) as inquiry:
                yield inquiry
        except BrokerUnavailableError as failure:
            also = "" if self.management_problem is None else f"; {self.management_problem}"
            raise BrokerUnavailableError(f"{failure}{also}") from None


async def _read_queue(inquiry: Inquiry, name: str) -> QueueState:
    async def look(channel: "AbstractChannel") -> Any:
        return await channel.queue_declare(name, passive=True)

    # A passive declaration returns the counts of a queue, and is the only way of AMQP to read them.
    try:
        found = await inquiry.ask(look)
    except NotFound:
        return QueueState(name=name, there=False)
    except AccessRefused:
        return QueueState(name=name)
    return QueueState(name=name, ready=found.message_count, consumers=found.consumer_count)
