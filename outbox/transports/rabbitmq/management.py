"""RabbitMQ's HTTP API, as far as an examination needs it: what AMQP does not tell of policies and bindings."""

import asyncio
import base64
import json
import urllib.error
import urllib.request
from datetime import timedelta
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from outbox.errors import BrokerUnavailableError, ConfigurationError

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
