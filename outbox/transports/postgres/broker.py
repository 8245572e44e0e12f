"""PostgreSQL as a Transport and a Broker, for programs without RabbitMQ."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

import asyncpg

from outbox.core.byte_limits import ByteLimits
from outbox.core.codec import encode_tracking_ids
from outbox.core.events import Dependency, DependencyLost, DependencyRestored
from outbox.core.message import Message
from outbox.core.outcome import Failure
from outbox.core.urls import postgres_url
from outbox.engine.tasks import ungrouped
from outbox.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    DatabaseUnavailableError,
    SchemaError,
    StatementTimeoutError,
    TopologyError,
)
from outbox.masking import Masking
from outbox.ports import (
    CONFIRMED,
    UNROUTABLE,
    Intake,
    NotSent,
    Observer,
    QueueDepth,
    Receive,
    Refused,
    SendResult,
    Subscription,
)
from outbox.postgres.deaths import DeadLetterWriter, Storable
from outbox.postgres.doorbell import PostgresDoorbell, bell_of
from outbox.postgres.index_positions import ScanStart
from outbox.postgres.pool import Pool, Preparing, borrow_from, connect_to, open_pool, unavailable_errors
from outbox.postgres.queries import BellName, TableName
from outbox.postgres.schema import check_transport_tables
from outbox.transports.postgres.subscription import LEAVING_TIMEOUT, PostgresIntake, SecondsUntilDue, Waking
from outbox.transports.postgres.tables import Call, Statements, TransportTables, borrowed, pattern_of

LARGEST_BODY = 128 * 1024 * 1024
"""A larger body is refused, in bytes: PostgreSQL could hold it, but no worker could claim it together with others."""
LARGEST_BATCH = 16 * 1024 * 1024
"""A statement ends after the message whose body takes it over this many bytes."""
LONGEST_STATEMENT = timedelta(seconds=60)
"""Longest wait for one statement, whatever the caller's timeout."""

_REFUSALS = (asyncpg.DataError, asyncpg.ProgramLimitExceededError, asyncpg.IntegrityConstraintViolationError)
"""What PostgreSQL, or the driver, says of values and not of itself."""

_Row = tuple[object, ...]


LEASE = timedelta(seconds=30)
"""How long a delivery is a worker's without a sign of life; renewed every third of it."""
POLL_INTERVAL = timedelta(seconds=1)
"""How often idle queues are looked at where LISTEN does not deliver."""
POOL_SIZE = 8
"""Most connections of a pool of our own; the doorbell has two more."""
SMALLEST_POOL = 4
"""A given pool must have room for the doorbell's two, a claim, and outcomes."""
DEPTH_COUNTED = 10_000
"""Due deliveries of a queue that are counted one by one; of more, a part of the table is looked at."""
DEPTH_PAGES = 500
STATEMENT_TIMEOUT = timedelta(seconds=20)
"""Longest wait for any single statement of a worker. Shorter than a lease, so that it can be tried again."""

_NAME = "outbox broker"
_log = logging.getLogger("outbox")


class PostgresBroker:
    """Implements the Transport and Broker ports with the tables that stand next to the outbox table `table`.

    Give a `postgresql://` URL or a pool; a given pool is used and left open, and needs room for four connections. `lease` is
    how long a dead worker's deliveries wait for another one, `poll_interval` how often idle queues are looked at where
    notifications do not arrive. `masking` is for what is shown and searched of dead letters. `byte_limits` is how much a
    subscription has in memory at once, and what is too large for it: that is a dead letter.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        pool: Pool | None = None,
        table: TableName,
        exchange_name: str,
        observer: Observer,
        lease: timedelta = LEASE,
        poll_interval: timedelta = POLL_INTERVAL,
        masking: Masking | None = None,
        byte_limits: ByteLimits = ByteLimits(),  # noqa: B008  a frozen value
    ) -> None:
        if (url is None) == (pool is None):
            raise ConfigurationError("PostgresBroker takes exactly one of url and pool")
        if pool is not None and pool.get_max_size() < SMALLEST_POOL:
            raise ConfigurationError(f"the pool must have room for {SMALLEST_POOL} connections, not {pool.get_max_size()}")
        self._url = url
        self._given_pool = pool
        self._pool = pool
        self._tables = TransportTables(table)
        self._exchange_name = exchange_name
        self._observer = observer
        self._lease = lease
        self._poll_interval = poll_interval
        self._masking = masking or Masking()
        self._byte_limits = byte_limits
        self._storable = Storable()
        self._sql = self._tables.queries("delivery.sql")
        self._statements: Statements | None = None
        self._bell: BellName | None = None
        self._opening = asyncio.Lock()
        self._away = False
        self._waking: Waking | None = None
        self._waking_tasks: list[asyncio.Task[None]] = []
        self._sleepers = 0
        self._scan_starts: dict[str, ScanStart] = {}

    # --- sending

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`."""
        async with self._opening:
            if self._bell is not None:
                return
            if self._pool is None and self._url is not None:
                self._pool = await open_pool(self._url, size=POOL_SIZE, application_name=_NAME, preparing=Preparing())
            self._statements = Statements(self._opened_pool)
            try:
                with unavailable_errors("opening the broker in PostgreSQL"):
                    async with borrowed(self._opened_pool) as connection:
                        schema = await check_transport_tables(connection, self._tables.outbox)
                        self._storable = Storable(connection.get_settings().server_encoding)
            except DatabaseUnavailableError as error:
                raise BrokerUnavailableError(str(error)) from error
            except SchemaError as error:
                raise TopologyError(str(error)) from error
            # Set last: a task that finds it may rely on all tables being there.
            self._bell = BellName.of(schema, self._tables.delivery.name)

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """See `outbox.ports.Transport.send`. A batch is one statement: all that is routed arrives together."""
        results: list[SendResult | None] = [None] * len(messages)
        late = Failure(type="TimeoutError", message=f"the database did not answer within {timeout}")
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self.open()
                parts: list[list[tuple[int, _Row]]] = [[]]
                size = 0
                for position, message in enumerate(messages):
                    try:
                        parts[-1].append((position, _row(message)))
                    except (TypeError, ValueError, RecursionError) as error:
                        results[position] = Refused(Failure.of(error))
                        continue
                    size += len(message.body)
                    if size > LARGEST_BATCH:
                        parts.append([])
                        size = 0
                for part in filter(None, parts):
                    try:
                        await self._send(part, results)
                    except DatabaseUnavailableError as error:
                        failure = Failure.of(error)
                        for position, _ in part:
                            results[position] = results[position] or NotSent(failure)
        except (BrokerUnavailableError, TopologyError) as error:
            late = Failure.of(error)
        except TimeoutError:
            pass
        return [result or NotSent(late) for result in results]

    async def _send(self, rows: Sequence[tuple[int, _Row]], results: list[SendResult | None]) -> None:
        """Sends all or none, and fills `results`; if some cannot be taken, by halves until the culprit stands alone."""
        columns = map(list, zip(*(row for _, row in rows), strict=True))
        unroutable: set[int] = set()
        refusal: Exception | None = None
        with unavailable_errors("sending", limit=LONGEST_STATEMENT):
            # Caught within the block, which takes every error of the driver for an outage.
            try:
                statement, exchange = self._sql["send"], self._exchange_name
                answer = await self._opened_statements.fetch(statement, exchange, *columns, timeout=LONGEST_STATEMENT)
                unroutable = {row["number"] for row in answer}
            except _REFUSALS as error:
                refusal = error
        if refusal is None:
            for number, (position, _) in enumerate(rows, start=1):
                results[position] = UNROUTABLE if number in unroutable else CONFIRMED
        elif len(rows) == 1:
            results[rows[0][0]] = Refused(Failure.of(refusal))
        else:
            middle = len(rows) // 2
            await self._send(rows[:middle], results)
            await self._send(rows[middle:], results)

    async def close(self) -> None:
        """See `outbox.ports.Transport.close`."""
        self._bell = self._statements = None
        pool, self._pool = self._pool, self._given_pool
        if pool is not None and pool is not self._given_pool:
            try:
                async with asyncio.timeout(LEAVING_TIMEOUT.total_seconds()):
                    await pool.close()
            except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                pool.terminate()

    # --- consuming

    @asynccontextmanager
    async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator[Intake]:
        """See `outbox.ports.Broker.subscribe`."""
        await self.open()
        # Found out before a message is to be dead-lettered and cannot be.
        try:
            lacking = await self._fetch("lacking_rights")
        except DatabaseUnavailableError as error:
            raise BrokerUnavailableError(str(error)) from error
        if lacking:
            rights = ", ".join(row[0].replace('"', "") for row in lacking)
            raise TopologyError(f"this user cannot record dead letters: it lacks {rights}")
        await self._bind(subscription)
        with ungrouped():
            async with self._sleeping() as waking, asyncio.TaskGroup() as tasks:
                intake = PostgresIntake(
                    subscription,
                    receive,
                    fetch=self._fetch_watched,
                    fetch_bodies=self._fetch_bodies,
                    fetch_in_turn=self._fetch_in_turn,
                    ring=self._ring,
                    waking=waking,
                    lease=self._lease,
                    writer=DeadLetterWriter(self._masking, self._storable),
                    scan_start=self._scan_starts.setdefault(subscription.queue, ScanStart()),
                    byte_limits=self._byte_limits,
                    database=self._url and postgres_url(self._url, argument="url"),
                    done_in_transaction=self._sql["done_in_transaction"],
                )
                running = tasks.create_task(intake.run())
                try:
                    yield intake
                finally:
                    await intake.give_back()
                    await asyncio.wait([running], timeout=LEAVING_TIMEOUT.total_seconds())
                    running.cancel()

    async def queue_depth(self, queue: str) -> QueueDepth | None:
        """See `outbox.ports.MeasuresQueues.queue_depth`. More than `DEPTH_COUNTED` are estimated from a part of the table."""
        ready, oldest = await self._answer("queue_depth", queue, DEPTH_COUNTED)
        if ready == DEPTH_COUNTED:
            ready = max(ready, *await self._answer("queue_depth_estimated", queue, DEPTH_PAGES))
        return QueueDepth(ready, timedelta(seconds=max(oldest or 0.0, 0.0)))

    async def count_dead_letters(self, queue: str) -> int:
        """See `outbox.ports.Broker.count_dead_letters`."""
        [count] = await self._answer("count_dead_letters", queue)
        return int(count)

    async def has_queue(self, queue: str) -> bool:
        """See `outbox.ports.Broker.has_queue`."""
        if self._storable.text(queue) != queue:
            return False
        [has_it] = await self._answer("has_queue", queue)
        return bool(has_it)

    # --- helpers

    async def _answer(self, name: str, queue: str, *arguments: Any) -> Any:
        """The one row that a statement says of a queue."""
        await self.open()
        try:
            [row] = await self._fetch(name, queue, *arguments)
        except DatabaseUnavailableError as error:
            raise BrokerUnavailableError(f"nobody can say now what is with {queue!r}: {error}") from error
        return row

    @property
    def _opened_pool(self) -> Pool:
        if self._pool is None:
            raise BrokerUnavailableError("the broker was closed")
        return self._pool

    @property
    def _opened_statements(self) -> Statements:
        if self._statements is None:
            raise BrokerUnavailableError("the broker was closed")
        return self._statements

    async def _bind(self, subscription: Subscription) -> None:
        """Looks first, so that a worker without the right to bind can use what was provisioned.

        Deliveries are claimed by queue, as in RabbitMQ. So a queue of another exchange's worker is refused: each worker would
        take the other's messages. A binding that is there already was made on purpose.
        """
        exchange, queue, key = subscription.exchange_name, subscription.queue, subscription.binding_key
        binding = (exchange, queue, key, pattern_of(key))
        try:
            with unavailable_errors(f"binding {queue!r}"):
                async with borrowed(self._opened_pool) as connection:
                    [found] = await connection.fetch(self._sql["binding"], *binding)
                    if not found["bound"]:
                        async with connection.transaction(isolation="read_committed"):
                            # Looked at again under the lock: two workers that start together must not both find it free.
                            await connection.execute(self._sql["lock_bindings"])
                            [found] = await connection.fetch(self._sql["binding"], *binding)
                            if found["others"] and not found["known"]:
                                raise TopologyError(self._shared_queue(found["others"], *binding))
                            await connection.execute(self._sql["bind"], *binding)
        except DatabaseUnavailableError as error:
            match error.__cause__:
                case asyncpg.InsufficientPrivilegeError():
                    raise TopologyError(
                        f"the queue {queue!r} is not bound with {key!r} to the exchange {exchange!r}, and binding it needs the "
                        f"rights to insert into and to update {self._tables.subscription}: {error}"
                    ) from error
                case asyncpg.DataError() | asyncpg.ProgramLimitExceededError():
                    raise ConfigurationError(f"{queue!r} cannot be bound with {key!r}: {error}") from error
            raise BrokerUnavailableError(str(error)) from error
        if found["others"]:
            _log.warning(
                "the queue %s of the exchange %s is bound to %s as well: workers of each handle the messages of all",
                queue,
                exchange,
                ", ".join(found["others"]),
            )

    def _shared_queue(self, others: Sequence[str], *binding: str | None) -> str:
        exchange, queue, binding_key, pattern = binding
        table = self._tables.subscription.sql
        values = ", ".join("null" if value is None else _literal(value) for value in (exchange, queue, binding_key, pattern))
        return (
            f"the queue {queue!r} is bound to {', '.join(map(repr, others))} in this schema: a worker of the exchange "
            f"{exchange!r} would handle those messages, too. Rename the queue (consume(..., queue=...)), or give each exchange "
            f"a schema of its own. If no worker of {others[0]!r} is left, remove its binding: delete from {table} where "
            f"queue = {_literal(str(queue))} and exchange = {_literal(others[0])}. To share the queue on purpose, bind it by "
            f"hand: insert into {table} (exchange, queue, binding_key, pattern) values ({values})"
        )

    @asynccontextmanager
    async def _sleeping(self) -> AsyncIterator[Waking]:
        """The one sleeper of all subscriptions, which is there as long as any of them is."""
        if self._waking is None:
            doorbell = PostgresDoorbell(
                borrow_from(self._opened_pool) if self._url is None else connect_to(self._url, application_name=_NAME),
                bell_of(self._tables.delivery),
                observer=self._observer,
                poll_interval=self._poll_interval,
            )
            self._waking = Waking(doorbell, next_due=self._next_due)
            self._waking_tasks = [asyncio.create_task(doorbell.run()), asyncio.create_task(self._waking.run())]
            for task in self._waking_tasks:
                task.add_done_callback(_report)
        self._sleepers += 1
        try:
            yield self._waking
        finally:
            self._sleepers -= 1
            if not self._sleepers:
                tasks, self._waking_tasks, self._waking = self._waking_tasks, [], None
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    async def _next_due(self, queues: Sequence[str]) -> SecondsUntilDue:
        since = [due for queue in queues for due in self._scan_starts[queue].due_times]
        rows = await self._fetch_watched("next_due", queues, since)
        due: dict[str, float | None] = {}
        for row in rows:
            # Claims begin at the front again then, and may find what they have passed over; 0: they all begin there.
            front_in = self._scan_starts[row["queue"]].seconds_left or None
            due[row["queue"]] = min((seconds for seconds in (row["seconds"], front_in) if seconds is not None), default=None)
        return due

    async def _ring(self) -> None:
        if (bell := self._bell) is not None:
            await self._fetch_watched("ring", bell.channel, bell.lock_key, bell.asleep_keys[0])

    async def _fetch_watched(self, name: str, *arguments: Any) -> Sequence[asyncpg.Record]:
        """Fetches, and notifies observers when the database is lost and when it is back."""
        with self._watched():
            return await self._fetch(name, *arguments)

    async def _fetch_bodies(self, name: str, *arguments: Any) -> Sequence[asyncpg.Record]:
        """Fetches bodies. A statement that takes too long raises `TimeoutError`: large bodies may be the reason."""
        with self._watched():
            try:
                return await self._fetch(name, *arguments)
            except StatementTimeoutError as error:
                raise TimeoutError(str(error)) from error

    async def _fetch_in_turn(self, *calls: Call) -> Sequence[Sequence[asyncpg.Record]]:
        """Several statements in one transaction, likewise."""
        statements = [(self._sql[name], *arguments) for name, *arguments in calls]
        with self._watched(), unavailable_errors(f"{calls[0][0]} at the broker in PostgreSQL", limit=STATEMENT_TIMEOUT):
            return await self._opened_statements.fetch_in_turn(*statements, timeout=STATEMENT_TIMEOUT)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except DatabaseUnavailableError as error:
            if not self._away:
                self._away = True
                self._observer.notify(DependencyLost(dependency=Dependency.BROKER, reason=str(error)))
            raise
        if self._away:
            self._away = False
            self._observer.notify(DependencyRestored(dependency=Dependency.BROKER))

    async def _fetch(self, name: str, *arguments: Any) -> Sequence[asyncpg.Record]:
        with unavailable_errors(f"{name} at the broker in PostgreSQL", limit=STATEMENT_TIMEOUT):
            return await self._opened_statements.fetch(self._sql[name], *arguments, timeout=STATEMENT_TIMEOUT)


def _row(message: Message) -> _Row:
    if len(message.body) > LARGEST_BODY:
        raise ValueError(f"the body has {len(message.body)} bytes, more than the {LARGEST_BODY} that are accepted")
    return (
        message.id,
        message.routing_key,
        message.body,
        message.content_type,
        json.dumps(dict(message.headers), allow_nan=False) if message.headers else None,
        encode_tracking_ids(message.tracking_ids),
        message.ordering_key,
        message.created_at,
        message.expires_at,
        None if message.expiration is None else min(message.expiration, timedelta(days=1_000_000)),
        message.target_queue,
        message.hlc,
        message.requeue_count,
    )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _report(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("idle workers are not woken any more: %s", error, exc_info=error)
