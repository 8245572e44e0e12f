"""A client for the parts of RabbitMQ's management API that tests need."""

import base64
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import aio_pika
import httpx

Json = dict[str, Any]


class RabbitAdmin:
    """The management API, bound to one virtual host; `url` is that host's `amqp://` address.

    Each call opens a connection, so it works in any event loop and after a restart of the broker.
    """

    def __init__(self, management_url: str, url: str) -> None:
        self._management_url = management_url
        self._url = url
        self.vhost = unquote(urlsplit(url).path.removeprefix("/")) or "/"

    async def version(self) -> tuple[int, int]:
        """The broker's major and minor version."""
        major, minor, *_ = (await self._get("overview"))["rabbitmq_version"].split(".")
        return int(major), int(minor)

    # Virtual hosts, users, permissions, policies

    async def create_vhost(self, name: str) -> None:
        """Create a virtual host with permissions for this admin's user."""
        await self._put(f"vhosts/{_part(name)}")
        await self.permit(urlsplit(self._url).username or "guest", vhost=name)

    async def delete_vhost(self, name: str) -> None:
        """Delete a virtual host with everything in it."""
        await self._delete(f"vhosts/{_part(name)}")

    async def create_user(self, name: str, password: str, *, tags: str = "") -> str:
        """Create or change a user without permissions, and return the address of this virtual host for it."""
        await self._put(f"users/{_part(name)}", {"password": password, "tags": tags})
        address = urlsplit(self._url)
        netloc = f"{_part(name)}:{_part(password)}@{address.hostname}:{address.port}"
        return address._replace(netloc=netloc).geturl()

    async def delete_user(self, name: str) -> None:
        """Delete a user."""
        await self._delete(f"users/{_part(name)}")

    async def permit(
        self, user: str, *, configure: str = ".*", write: str = ".*", read: str = ".*", vhost: str | None = None
    ) -> None:
        """Set a user's permissions in this virtual host, as regular expressions."""
        await self._put(
            f"permissions/{_part(vhost or self.vhost)}/{_part(user)}",
            {"configure": configure, "write": write, "read": read},
        )

    async def set_policy(self, name: str, pattern: str, definition: Json, *, apply_to: str = "all") -> None:
        """Set a policy for names that match the pattern."""
        await self._put(
            f"policies/{self._host}/{_part(name)}",
            {"pattern": pattern, "definition": definition, "apply-to": apply_to},
        )

    async def delete_policy(self, name: str) -> None:
        """Delete a policy."""
        await self._delete(f"policies/{self._host}/{_part(name)}")

    # Topology

    async def queues(self) -> dict[str, Json]:
        """Every queue by name: `type`, `durable`, `arguments`, `policy` and more."""
        return {queue["name"]: queue for queue in await self._get(f"queues/{self._host}")}

    async def queue(self, name: str) -> Json | None:
        """Return a queue, or None if it does not exist."""
        return await self._get(f"queues/{self._host}/{_part(name)}", missing=None)  # type: ignore[no-any-return]

    async def exchanges(self) -> dict[str, Json]:
        """Every exchange by name, the broker's own included: `type`, `durable`, `arguments`."""
        return {exchange["name"]: exchange for exchange in await self._get(f"exchanges/{self._host}")}

    async def bindings(self, *, queue: str | None = None) -> list[Json]:
        """The bindings (of one queue): `source`, `destination`, `routing_key`. The default exchange's are left out."""
        path = f"bindings/{self._host}" if queue is None else f"queues/{self._host}/{_part(queue)}/bindings"
        return [binding for binding in await self._get(path) if binding["source"]]

    async def declare_queue(self, name: str, *, arguments: Json | None = None, quorum: bool = True) -> None:
        """Declare a durable queue, by default a quorum queue."""
        kind = {"x-queue-type": "quorum"} if quorum else {}
        body = {"durable": True, "auto_delete": False, "arguments": kind | (arguments or {})}
        await self._put(f"queues/{self._host}/{_part(name)}", body)

    async def delete_queue(self, name: str) -> None:
        """Delete a queue and its messages."""
        await self._delete(f"queues/{self._host}/{_part(name)}")

    async def purge(self, name: str) -> None:
        """Delete a queue's ready messages."""
        await self._delete(f"queues/{self._host}/{_part(name)}/contents")

    async def declare_exchange(self, name: str, kind: str = "topic", *, arguments: Json | None = None) -> None:
        """Declare a durable exchange."""
        body = {"type": kind, "durable": True, "auto_delete": False, "internal": False, "arguments": arguments or {}}
        await self._put(f"exchanges/{self._host}/{_part(name)}", body)

    async def delete_exchange(self, name: str) -> None:
        """Delete an exchange."""
        await self._delete(f"exchanges/{self._host}/{_part(name)}")

    async def bind(self, exchange: str, queue: str, routing_key: str) -> None:
        """Bind a queue to an exchange."""
        await self._post(f"bindings/{self._host}/e/{_part(exchange)}/q/{_part(queue)}", {"routing_key": routing_key})

    async def unbind(self, exchange: str, queue: str, routing_key: str) -> None:
        """Delete a binding."""
        await self._delete(f"bindings/{self._host}/e/{_part(exchange)}/q/{_part(queue)}/{_part(routing_key)}")

    # Messages

    async def depth(self, queue: str) -> int:
        """Return the number of ready messages, from the queue itself instead of the delayed statistics.

        Not exact immediately after a restart, while the queue replays its log.
        """
        connection = await aio_pika.connect(self._url)
        async with connection, connection.channel() as channel:
            declared = await channel.declare_queue(queue, passive=True)
            return declared.declaration_result.message_count or 0

    async def publish(
        self, exchange: str, routing_key: str, body: bytes, *, properties: Json | None = None, headers: Json | None = None
    ) -> bool:
        """Publish a persistent message; return whether it was routed to a queue. `""` is the default exchange."""
        answer = await self._post(
            f"exchanges/{self._host}/{_part(exchange or 'amq.default')}/publish",
            {
                "routing_key": routing_key,
                "properties": {"delivery_mode": 2, "headers": headers or {}} | (properties or {}),
                "payload": base64.b64encode(body).decode(),
                "payload_encoding": "base64",
            },
        )
        return bool(answer["routed"])

    async def get(self, queue: str, *, count: int = 1, requeue: bool = False) -> list[Json]:
        """Take up to `count` messages: `body` (bytes), `properties` with `headers`, `exchange`, `routing_key`,
        `redelivered`. They are gone afterwards unless requeued, which marks them as redelivered."""
        mode = "ack_requeue_true" if requeue else "ack_requeue_false"
        messages = await self._post(
            f"queues/{self._host}/{_part(queue)}/get", {"count": count, "ackmode": mode, "encoding": "base64"}
        )
        for message in messages:
            message["body"] = base64.b64decode(message.pop("payload"))
        return messages  # type: ignore[no-any-return]

    # Connections

    async def connections(self) -> list[Json]:
        """The open client connections of this virtual host; statistics lag by about a second."""
        return await self._get(f"vhosts/{self._host}/connections")  # type: ignore[no-any-return]

    async def close_connections(self, *, user: str | None = None, reason: str = "closed by a test") -> int:
        """Close every client connection of this virtual host, or those of a user; return how many there were."""
        # Without `user`, one that was opened a moment ago may be missing from the list while another one is in it.
        open_now = [each for each in await self.connections() if user in (None, each.get("user"))]
        for connection in open_now:
            await self._request(
                "DELETE", f"connections/{_part(connection['name'])}", headers={"X-Reason": reason}, missing=None
            )
        return len(open_now)

    @property
    def _host(self) -> str:
        return _part(self.vhost)

    async def _get(self, path: str, **options: Any) -> Any:
        return await self._request("GET", path, **options)

    async def _put(self, path: str, body: Json | None = None) -> None:
        await self._request("PUT", path, json=body or {})

    async def _post(self, path: str, body: Json) -> Any:
        return await self._request("POST", path, json=body)

    async def _delete(self, path: str) -> None:
        await self._request("DELETE", path)

    async def _request(self, method: str, path: str, *, missing: Any = ..., **options: Any) -> Any:
        async with httpx.AsyncClient(base_url=self._management_url, timeout=30, verify=False) as client:
            answer = await client.request(method, f"/api/{path}", **options)
        if missing is not ... and answer.status_code == httpx.codes.NOT_FOUND:
            return missing
        if answer.is_error:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None


def _part(name: str) -> str:
    return quote(name, safe="")
