"""With a database, its clock decides about expirations, not the clock of the machine."""

import logging
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import aio_pika
import asyncpg
import pytest

from outbox import Archiver, Consumer, MessageRelay, Publisher, Worker
from outbox.core import codec
from outbox.maintenance import Maintenance
from tests.reporting.support import at_work
from tests.support import eventually

HOUR = 3_600.0


class Box:
    """A consumer that fails once and records the second attempt: a retry must not have expired either."""

    def __init__(self) -> None:
        self.headers: list[dict[str, Any]] = []
        self.consumer = Consumer("order.*", self.handle, queue="mail", retry_delays=("1s",))

    async def handle(self, body: object, message: Any, attempt_count: int) -> None:
        del body
        if attempt_count == 1:
            raise ConnectionError("the mail server is away")
        self.headers.append(dict(message.headers))


def off_by(component: Any, seconds: float) -> Any:
    """Shifts the clock of `component`."""
    component._reports.clock.wall_clock = lambda: time.time() + seconds
    return component


async def published(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        await Publisher().publish_async(connection, "order.placed", {}, expiration=timedelta(minutes=2))


@pytest.mark.parametrize("reporting", [True, False])
async def test_a_worker_an_hour_ahead_handles_what_has_not_expired_in_postgresql(
    connection: asyncpg.Connection, database_url: str, caplog: pytest.LogCaptureFixture, reporting: bool
) -> None:
    box = Box()
    relay = MessageRelay(database_url, broker=database_url, reporting=reporting)
    worker = off_by(Worker(broker=database_url, consumers=[box.consumer], reporting=reporting), HOUR)
    with caplog.at_level(logging.WARNING, "outbox"):
        async with at_work(relay, worker):
            await eventually(lambda: connection.fetchval("select exists(select from outbox_subscription)"))
            await published(connection)
            await eventually(lambda: box.headers)
    assert await connection.fetchval("select count(*) from outbox_dead_letter") == 0
    assert len([record for record in caplog.records if _says_an_hour(record.getMessage(), "ahead of the database's")]) == 1


@pytest.mark.parametrize("reporting", [True, False])
async def test_relay_and_worker_hours_apart_agree_by_the_database_on_what_expires_in_rabbitmq(
    connection: asyncpg.Connection, database_url: str, broker_url: str, reporting: bool
) -> None:
    box = Box()
    options: dict[str, Any] = {"broker": broker_url, "db_engine_url": database_url, "reporting": reporting}
    relay = off_by(MessageRelay(**options), -HOUR)
    worker = off_by(Worker(consumers=[box.consumer], **options), HOUR)
    async with at_work(relay, worker):
        await eventually(lambda: _is_consumed(broker_url))
        await published(connection)
        await eventually(lambda: box.headers)
    [headers] = box.headers
    expires_at = codec.decode_instant(headers[codec.EXPIRES_AT], source="the header")
    assert timedelta(0) < expires_at - datetime.now(UTC) <= timedelta(minutes=2)


async def test_archiver_and_maintenance_warn_of_their_clocks_too(
    connection: asyncpg.Connection, database_url: str, broker_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    archiver = off_by(Archiver(database_url, broker=broker_url), -HOUR)
    maintenance = off_by(Maintenance(database_url), HOUR)
    with caplog.at_level(logging.WARNING, "outbox"):
        async with at_work(archiver, maintenance):
            await eventually(lambda: _says_an_hour(caplog.text, "behind the") and _says_an_hour(caplog.text, "ahead of the"))


def _says_an_hour(text: str, direction: str) -> bool:
    """Tolerates half a second: on a busy machine one direction of the round trip may take that long."""
    return re.search(rf"(3599\.[5-9]|3600\.[0-5]) s {direction}", text) is not None


async def _is_consumed(broker_url: str) -> bool:
    async with await aio_pika.connect(broker_url) as broker:
        try:
            queue = await (await broker.channel()).declare_queue("mail", passive=True)
        except aio_pika.exceptions.ChannelNotFoundEntity:
            return False
        return bool(queue.declaration_result.consumer_count)
