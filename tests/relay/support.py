"""A relay at work on a real database, with a transport that answers as the test configures it."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import asyncpg

from outbox import MessageRelay
from outbox.core.byte_limits import ByteLimits
from outbox.core.events import Event
from outbox.core.message import Message
from outbox.core.outcome import Cause
from outbox.engine.lifecycle import Stopping
from outbox.engine.ordering import OrderingRules
from outbox.engine.relay import Relay, RelaySettings
from outbox.engine.rounds import SendingPolicy, SendingRounds
from outbox.errors import BrokerUnavailableError
from outbox.ports import CONFIRMED, SendResult, Transport
from outbox.postgres.doorbell import PostgresDoorbell, bell_of
from outbox.postgres.history import SentFacts
from outbox.postgres.pool import Pool, connect_to, open_pool
from outbox.postgres.queries import TableName
from outbox.postgres.store import PostgresStore
from outbox.retry import Backoff, RetryPolicy
from tests.support.eventually import eventually

INSERT = "insert into outbox_table (routing_key, body) values ($1, '')"
TABLE = TableName("outbox_table")


class ScriptedTransport:
    """Answers each message by `answer`, and keeps what it was asked to send, batch by batch."""

    def __init__(self, answer: Callable[[Message], SendResult] = lambda message: CONFIRMED) -> None:
        self.answer = answer
        self.batches: list[list[Message]] = []
        self.away = False
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    @property
    def sent(self) -> list[Message]:
        return [message for batch in self.batches for message in batch]

    @property
    def routing_keys(self) -> list[str]:
        return [message.routing_key for message in self.sent]

    async def open(self) -> None:
        if self.away:
            raise BrokerUnavailableError("the script says so")

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        self.batches.append(list(messages))
        await self.may_answer.wait()
        return [self.answer(message) for message in messages]

    async def close(self) -> None:
        return


E = TypeVar("E")


@dataclass
class Recorder:
    """Keeps the events."""

    events: list[Event] = field(default_factory=list)

    def notify(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


SETTINGS = RelaySettings(
    exchange_name="ex",
    table="outbox_table",
    batch_size=None,
    lanes=2,
    longest_nap=timedelta(hours=1),
    poll_interval=timedelta(hours=1),
    retention=None,
)
"""Naps and polls longer than any test: whatever arrives in time was rung for."""


def policy(
    *, max_attempts: int = 20, backoff: timedelta = timedelta(seconds=1), drop_unroutable: bool = False
) -> SendingPolicy:
    """A relay's policy; by default the one of the public relay."""
    return SendingPolicy(
        exchange_name="ex",
        retry=RetryPolicy(
            Backoff(first=backoff, longest=timedelta(minutes=5), max_attempts=max_attempts, random=random.Random(1)),
            exhausted=Cause.REFUSED,
        ),
        publish_timeout=timedelta(seconds=10),
        expiration=None,
        drop_unroutable=drop_unroutable,
        now=lambda: datetime.now(UTC),
    )


@dataclass
class RunningRelay:
    """What a test can do to a relay at work."""

    stopping: Stopping
    task: asyncio.Task[None]
    recorder: Recorder
    doorbell: PostgresDoorbell

    async def stopped(self) -> None:
        self.stopping.request()
        async with asyncio.timeout(30):
            await self.task


@asynccontextmanager
async def relaying(
    url: str,
    transport: Transport,
    *,
    table: str = "outbox_table",
    keep_sent: bool = False,
    sending: SendingPolicy | None = None,
    ordering: OrderingRules = OrderingRules(),  # noqa: B008  a frozen value
    facts: SentFacts | None = None,
    byte_limits: ByteLimits = ByteLimits(),  # noqa: B008  a frozen value
    **settings: object,
) -> AsyncIterator[RunningRelay]:
    """A relay from `table` to `transport` that listens; drained at the end."""
    name = TableName.parse(table)
    recorder = Recorder()
    chosen = replace(SETTINGS, table=table, **settings)  # type: ignore[arg-type]
    pool = await open_pool(url, size=chosen.lanes + 3, application_name="relay")
    doorbell = PostgresDoorbell(connect_to(url, application_name="relay bell"), bell_of(name), observer=recorder)
    store = PostgresStore(
        pool,
        name,
        keep_sent=keep_sent,
        longest_send=timedelta(seconds=10),
        ordering=ordering,
        facts=facts,
        byte_limits=byte_limits,
    )
    stopping = Stopping()
    relay = Relay(SendingRounds(store, transport, sending or policy()), store, doorbell, recorder, chosen)
    listening = asyncio.create_task(doorbell.run())
    await eventually(lambda: doorbell.longest_nap is None)
    running = RunningRelay(stopping, asyncio.create_task(relay.run(stopping)), recorder, doorbell)
    try:
        yield running
        await running.stopped()
    finally:
        listening.cancel()
        running.task.cancel()
        await asyncio.gather(listening, running.task, return_exceptions=True)
        await pool.close()


async def rows(connection: asyncpg.Connection, where: str = "true") -> int:
    count: int = await connection.fetchval(f"select count(*) from outbox_table where {where}")
    return count


async def rows_are(connection: asyncpg.Connection, count: int, where: str = "true") -> bool:
    return await rows(connection, where) == count


@asynccontextmanager
async def running(relay: MessageRelay) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(relay.run(handle_signals=False))
    try:
        yield task
        relay.stop()
        async with asyncio.timeout(30):
            await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def publish(connection: asyncpg.Connection, key: str, *names: str) -> None:
    for name in names:
        await connection.execute("insert into outbox_table (routing_key, body, ordering_key) values ($1, '', $2)", name, key)


def by(**policies: str) -> OrderingRules:
    """The policy of all keys as `rest`, others by prefix."""
    return OrderingRules.of({"" if prefix == "rest" else prefix: policy for prefix, policy in policies.items()})


async def facts_on(connection: asyncpg.Connection, recorder: Recorder | None = None) -> SentFacts:
    facts = SentFacts(TABLE, "relay-1", recorder or Recorder())
    await facts.look(connection)
    return facts


async def entries_read(pool: Pool, index: str) -> int:
    await pool.execute("select pg_stat_force_next_flush()")
    return int(await pool.fetchval("select idx_tup_read from pg_stat_user_indexes where indexrelname = $1", index))
