"""What the contract suite needs of a transport beyond the ports: looking into it, and doing it harm.

A transport joins the suite with one class here and one line in `conftest.py`.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from outbox.core import codec
from outbox.core.events import Event
from outbox.core.failures import FailedAttempt, decode_failures
from outbox.ports import Broker, Observer
from outbox.transports.memory import MemoryBroker
from tests.support import RabbitAdmin

EXCHANGE = "shop"
PROGRAM_LIMIT_SECONDS = 60.0


class Recorder:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def notify(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDeadLetter:
    """A dead letter, as an operator sees it."""

    message_id: str
    routing_key: str
    body: bytes
    headers: Mapping[str, Any]
    cause: str
    exception_type: str
    exception_message: str
    exception_traceback: str
    failures: Sequence[FailedAttempt]


class Harness(Protocol):
    """One transport under test, empty at the beginning."""

    name: str
    lease: timedelta
    """How long the broker may take to notice that a worker was killed."""

    def broker(self, observer: Observer | None = None) -> Broker:
        """An adapter of its own; in memory it is always the same."""
        ...

    async def dead_letters(self, queue: str) -> Sequence[StoredDeadLetter]:
        """The dead letters of `queue`, oldest first; looking changes nothing that counts."""
        ...

    async def put_malformed(self, queue: str) -> None:
        """Puts a message with the body `broken` into `queue`, whose tracking ids cannot be read."""
        ...

    async def die_with_message(self, queue: str, binding_key: str, *, isolated: bool) -> None:
        """A worker takes one message of `queue`, isolates it if asked, and crashes."""
        ...


class MemoryHarness:
    """The broker in memory."""

    name = "memory"
    lease = timedelta(0)

    def __init__(self) -> None:
        self._broker = MemoryBroker(exchange_name=EXCHANGE)

    def broker(self, observer: Observer | None = None) -> Broker:
        return self._broker

    async def dead_letters(self, queue: str) -> Sequence[StoredDeadLetter]:
        return [
            StoredDeadLetter(
                message_id=letter.message.id,
                routing_key=letter.message.routing_key,
                body=letter.message.body,
                headers=letter.message.headers,
                cause=letter.cause,
                exception_type=letter.failure.type,
                exception_message=letter.failure.message,
                exception_traceback=letter.failure.traceback,
                failures=letter.failures,
            )
            for letter in self._broker.dead_letters(queue)
        ]

    async def put_malformed(self, queue: str) -> None:
        from tests.contract.support import message

        self._broker.put_malformed(queue, message("broken.thing", b"broken"), reason="x-outbox-tracking-ids is not JSON")

    async def die_with_message(self, queue: str, binding_key: str, *, isolated: bool) -> None:
        from tests.contract.support import taking

        async with taking(self._broker, queue, binding_key) as taken:
            delivery = await taken.next()
            if isolated:
                assert await delivery.isolate()
            self._broker.crash(queue)


class RabbitHarness:
    """A virtual host of its own on a real RabbitMQ."""

    name = "rabbitmq"
    lease = timedelta(seconds=5)

    def __init__(self, url: str, admin: RabbitAdmin) -> None:
        self._url = url
        self._admin = admin

    def broker(self, observer: Observer | None = None) -> Broker:
        from outbox.transports.rabbitmq import RabbitBroker

        return RabbitBroker(self._url, exchange_name=EXCHANGE, observer=observer or Recorder())

    async def dead_letters(self, queue: str) -> Sequence[StoredDeadLetter]:
        if await self._admin.queue(f"{queue}.dlq") is None:
            return []
        return [_stored_in_rabbit(dead) for dead in await self._admin.get(f"{queue}.dlq", count=100, requeue=True)]

    async def put_malformed(self, queue: str) -> None:
        await self._admin.publish(
            "", queue, b"broken", headers={codec.TRACKING_IDS: "no JSON", codec.ROUTING_KEY: "broken.thing"}
        )

    async def die_with_message(self, queue: str, binding_key: str, *, isolated: bool) -> None:
        await _dying_worker("rabbitmq", self._url, queue, binding_key, isolated=isolated)


def _stored_in_rabbit(dead: Mapping[str, Any]) -> StoredDeadLetter:
    properties = dead["properties"]
    headers = dict(properties.get("headers", {}))
    return StoredDeadLetter(
        message_id=properties.get("message_id", ""),
        routing_key=headers.get(codec.ROUTING_KEY, dead["routing_key"]),
        body=dead["body"],
        headers={key: value for key, value in headers.items() if not key.startswith(("x-outbox-", "x-"))},
        cause=_cause_in_rabbit(headers),
        exception_type=headers.get(codec.EXCEPTION_TYPE, ""),
        exception_message=headers.get(codec.EXCEPTION_MESSAGE, ""),
        exception_traceback=headers.get(codec.EXCEPTION_TRACEBACK, ""),
        failures=decode_failures(headers.get(codec.FAILURES)),
    )


def _cause_in_rabbit(headers: Mapping[str, Any]) -> str:
    """The broker itself says `expired` in a header of its own when the message expired while it waited."""
    return str(headers.get("x-outbox-cause") or headers.get("x-first-death-reason") or "")


class PostgresHarness:
    """A database of its own on a real PostgreSQL."""

    name = "postgres"
    lease = timedelta(seconds=30)

    def __init__(self, url: str, exchange: str = EXCHANGE) -> None:
        self._url = url
        self._exchange = exchange

    def broker(self, observer: Observer | None = None) -> Broker:
        from outbox.postgres.queries import TableName
        from outbox.transports.postgres import PostgresBroker

        table = TableName.parse("outbox_table")
        return PostgresBroker(self._url, table=table, exchange_name=self._exchange, observer=observer or Recorder())

    async def dead_letters(self, queue: str) -> Sequence[StoredDeadLetter]:
        rows = await self._fetch("select * from outbox_dead_letter where queue = $1 order by id", queue)
        return [
            StoredDeadLetter(
                message_id=row["message_id"],
                routing_key=row["routing_key"],
                body=row["body"],
                headers=json.loads(row["headers"] or "{}"),
                cause=row["cause"],
                exception_type=row["exception_type"],
                exception_message=row["exception_message"],
                exception_traceback=row["exception_traceback"],
                failures=decode_failures(row["failures"]),
            )
            for row in rows
        ]

    async def put_malformed(self, queue: str) -> None:
        await self._fetch(
            "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids)"
            " values ($1, $2, 'broken-' || gen_random_uuid(), 'broken.thing', 'broken', '{}')",
            self._exchange,
            queue,
        )

    async def die_with_message(self, queue: str, binding_key: str, *, isolated: bool) -> None:
        await _dying_worker(self._exchange, self._url, queue, binding_key, isolated=isolated)
        # Time passes: the lease of the dead worker runs out.
        await self._fetch(
            "update outbox_delivery set leased_until = now(), available_at = now()"
            " where queue = $1 and lease_token is not null",
            queue,
        )

    async def _fetch(self, statement: str, *arguments: object) -> list[Any]:
        import asyncpg

        connection = await asyncpg.connect(self._url)
        try:
            return await connection.fetch(statement, *arguments)
        finally:
            await connection.close()


async def _dying_worker(transport: str, url: str, queue: str, binding_key: str, *, isolated: bool) -> None:
    """Runs `dying_worker.py` until it has killed itself."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("dying_worker.py")),
        *(transport, url, queue, binding_key, "isolated" if isolated else "ordinary"),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, errors = await asyncio.wait_for(process.communicate(), PROGRAM_LIMIT_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == -9, errors.decode()
