"""PostgreSQL as a Transport and a Broker, for programs without RabbitMQ."""

import asyncio
import json
import logging
import math
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
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
    DeadMessage,
    Guarantees,
    Intake,
    NotSent,
    Observer,
    QueueDepth,
    Receive,
    Refused,
    SendResult,
    Subscription,
)
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.dead_letter_writer import DeadLetterWriter, Storable
from outbox.postgres.doorbell import PostgresDoorbell, bell_of
from outbox.postgres.index_positions import ScanStart
from outbox.postgres.pool import (
    REFUSALS,
    Connector,
    Pool,
    borrow_from,
    close_pool,
    connect_to,
    open_pool,
    optional_tables,
    unavailable_errors,
)
from outbox.postgres.queries import BellName, TableName
from outbox.postgres.schema import check_transport_tables
from outbox.transports.postgres.subscription import CLOSE_TIMEOUT, PostgresIntake, SecondsUntilDue, Waker
from outbox.transports.postgres.tables import Call, Statements, TransportTables, borrow, pattern_of

LARGEST_BODY = 128 * 1024 * 1024
"""Largest body in bytes. PostgreSQL can store more, but no worker could claim it together with others."""
LARGEST_BATCH = 16 * 1024 * 1024
"""Bytes of bodies after which `send` begins another statement."""
LONGEST_STATEMENT = timedelta(seconds=60)
"""Longest wait for one statement, whatever timeout the caller gives."""

_Row = tuple[object, ...]


LEASE = timedelta(seconds=30)
"""How long a worker holds a delivery without renewing it. Leases are renewed after a third of this time."""
POLL_INTERVAL = timedelta(seconds=1)
"""Pause between two looks at idle queues where LISTEN does not work."""
POOL_SIZE = 8
"""Most connections of a pool that the broker opens itself; the doorbell has two more."""
SMALLEST_POOL = 4
"""Least size of a given pool: two connections for the doorbell, one for claims, one for outcomes."""
DEPTH_COUNTED = 10_000
"""Due deliveries of a queue that are counted exactly; more are estimated from a sample of the table."""
DEPTH_PAGES = 500
"""Pages of that sample."""
STATEMENT_TIMEOUT = timedelta(seconds=20)
"""Longest wait for one statement of a worker. Shorter than a lease, so that there is time for another attempt."""
CROWDED_FOR = timedelta(seconds=10)
"""How long the server must not have refused a connection as one too many before the broker is reported as back."""

_NAME = "outbox broker"
_log = logging.getLogger("outbox")


class PostgresBroker:
    """Implements `outbox.ports.Transport` and `outbox.ports.Broker` with tables next to the outbox table `table`.

    Takes a `postgresql://` URL or a pool. A given pool is left open and needs room for four connections. `lease` is how long
    the deliveries of a crashed worker wait before another worker gets them. `poll_interval` is the pause between looks at idle
    queues where notifications do not arrive. `masking` applies to what is displayed and searched of dead letters. `byte_limits`
    limits the bytes that a subscription has in memory at once; a message that exceeds the limit for one is a dead letter.
    `of_source`: the queues are filled by a source, such as Kafka, and not by relays.
    """

    guarantees = Guarantees()

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
        of_source: bool = False,
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
        self._of_source = of_source
        self._storable = Storable()
        self._sql = self._tables.queries("delivery.sql")
        self._statements: Statements | None = None
        self._bell: BellName | None = None
        self._opening = asyncio.Lock()
        self._is_away = False
        self._crowded_at = -math.inf
        self._waker: Waker | None = None
        self._waker_tasks: list[asyncio.Task[None]] = []
        self._waker_users = 0
        self._scan_starts: dict[str, ScanStart] = {}

    @property
    def exchange_name(self) -> str:
        """The exchange that `send` sends to. A subscription names its own."""
        return self._exchange_name

    # --- sending

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`."""
        async with self._opening:
            if self._bell is not None:
                return
            if self._pool is None and self._url is not None:
                self._pool = await open_pool(self._url, size=POOL_SIZE, application_name=_NAME, connector=Connector())
            self._statements = Statements(self._opened_pool)
            try:
                with unavailable_errors("opening the broker in PostgreSQL"):
                    async with borrow(self._opened_pool) as connection:
                        schema = await check_transport_tables(connection, self._tables.outbox)
                        self._storable = Storable(connection.get_settings().server_encoding)
            except DatabaseUnavailableError as error:
                raise BrokerUnavailableError(str(error)) from error
            except SchemaError as error:
                raise TopologyError(str(error)) from error
            # Set last: it shows other tasks that the tables were checked.
            self._bell = BellName.of(schema, self._tables.delivery.name)

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """See `outbox.ports.Transport.send`. One statement per `LARGEST_BATCH` bytes; its routable messages arrive together."""
        results: list[SendResult | None] = [None] * len(messages)
        late = Failure(type="TimeoutError", message=f"the database did not answer within {timeout}")
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self.open()
                parts: list[list[tuple[int, _Row]]] = [[]]
                size = 0
                for position, message in enumerate(messages):
                    try:
                        parts[-1].append((position, _to_row(message)))
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
                            # Halves that were sent before keep their results.
                            results[position] = results[position] or NotSent(failure)
        except (BrokerUnavailableError, TopologyError) as error:
            late = Failure.of(error)
        except TimeoutError:
            pass
        return [result or NotSent(late) for result in results]

    async def _send(self, rows: Sequence[tuple[int, _Row]], results: list[SendResult | None]) -> None:
        """Sends all or none, and fills `results`. Halves the batch to find a message that PostgreSQL refuses."""
        columns = map(list, zip(*(row for _, row in rows), strict=True))
        unroutable: set[int] = set()
        refusal: Exception | None = None
        with unavailable_errors("sending", limit=LONGEST_STATEMENT):
            # Caught inside `unavailable_errors`, which would report every error of the driver as an outage.
            try:
                statement, exchange = self._sql["send"], self._exchange_name
                answer = await self._opened_statements.fetch(statement, exchange, *columns, timeout=LONGEST_STATEMENT)
                unroutable = {row["number"] for row in answer}
            except REFUSALS as error:
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
            await close_pool(pool)

    # --- consuming

    @asynccontextmanager
    async def subscribe(self, subscription: Subscription, receive: Receive) -> AsyncIterator[Intake]:
        """See `outbox.ports.Broker.subscribe`."""
        await self.open()
        # Checked now: without these privileges messages would stay in flight, or the first dead letter would.
        try:
            lacking = await self._fetch("lacking_rights")
        except DatabaseUnavailableError as error:
            raise BrokerUnavailableError(str(error)) from error
        if lacking:
            rights = ", ".join(row[0].replace('"', "") for row in lacking)
            raise TopologyError(f"this user cannot settle messages, or record dead letters: it lacks {rights}")
        await self._bind(subscription)
        with ungrouped():
            async with self._shared_waker() as waker, asyncio.TaskGroup() as tasks:
                intake = PostgresIntake(
                    subscription,
                    receive,
                    fetch=self._fetch_reporting,
                    fetch_bodies=self._fetch_bodies,
                    fetch_atomically=self._fetch_atomically,
                    replace_connections=self._replace_connections,
                    ring=self._ring,
                    waker=waker,
                    lease=self._lease,
                    writer=DeadLetterWriter(self._masking, self._storable),
                    # Kept beyond the subscription: the next one need not find out again where dead index entries end.
                    scan_start=self._scan_starts.setdefault(subscription.queue, ScanStart()),
                    byte_limits=self._byte_limits,
                    database=self._url and postgres_url(self._url, argument="url"),
                    done_in_transaction=self._sql["done_in_transaction"],
                )
                running, watch = tasks.create_task(intake.run()), tasks.create_task(_raise_error_of(self._waker_tasks))
                try:
                    yield intake
                finally:
                    await intake.give_back()
                    await asyncio.wait([running], timeout=CLOSE_TIMEOUT.total_seconds())
                    running.cancel()
                    watch.cancel()

    async def queue_depth(self, queue: str) -> QueueDepth | None:
        """See `outbox.ports.MeasuresQueues.queue_depth`. More than `DEPTH_COUNTED` deliveries are estimated from a sample."""
        ready, oldest = await self._fetch_row("queue_depth", queue, DEPTH_COUNTED)
        if ready == DEPTH_COUNTED:
            ready = max(ready, *await self._fetch_row("queue_depth_estimated", queue, DEPTH_PAGES))
        return QueueDepth(ready, timedelta(seconds=max(oldest or 0.0, 0.0)))

    async def count_dead_letters(self, queue: str) -> int:
        """See `outbox.ports.Broker.count_dead_letters`."""
        [count] = await self._fetch_row("count_dead_letters", queue)
        return int(count)

    async def has_queue(self, queue: str) -> bool:
        """See `outbox.ports.Broker.has_queue`."""
        if self._storable.text(queue) != queue:
            return False
        [has_it] = await self._fetch_row("has_queue", queue)
        return bool(has_it)

    async def count_waiting(self, queue: str, *, most: int, ordered: bool) -> int:
        """Returns the number of due deliveries of `queue`, up to `most`.

        In an ordered queue, deliveries that are not due count, too: they wait behind others. Raises `BrokerUnavailableError`.
        """
        [count] = await self._fetch_row("count_waiting", queue, most, ordered)
        return int(count)

    async def record_dead(self, dead: Sequence[DeadMessage]) -> None:
        """Records dead letters durably, or none. Skips those that were recorded before. Raises `BrokerUnavailableError`."""
        await self.open()
        try:
            refused = await PostgresArchive(self._opened_pool, self._tables.outbox, masking=self._masking).record(dead)
        except DatabaseUnavailableError as error:
            raise BrokerUnavailableError(str(error)) from error
        if refused:
            raise BrokerUnavailableError(f"the database refuses {len(refused)} dead letters")

    # --- helpers

    async def _replace_connections(self) -> None:
        """Makes the pool open new connections instead of using those that are open."""
        if self._pool is not None:
            await self._pool.expire_connections()

    async def _fetch_row(self, name: str, queue: str, *arguments: Any) -> Any:
        """Runs a statement about a queue and returns its one row."""
        await self.open()
        try:
            [row] = await self._fetch(name, queue, *arguments)
        except DatabaseUnavailableError as error:
            raise BrokerUnavailableError(f"the state of queue {queue!r} is unknown: {error}") from error
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
        """Binds the queue unless it is bound. Refuses a queue that is bound to another exchange only."""
        exchange, queue, key = subscription.exchange_name, subscription.queue, subscription.binding_key
        binding = (exchange, queue, key, pattern_of(key))
        try:
            with unavailable_errors(f"binding {queue!r}"):
                async with borrow(self._opened_pool) as connection:
                    # Look first: a worker without the privilege to bind can use a binding that was provisioned.
                    [found] = await connection.fetch(self._sql["binding"], *binding)
                    if not found["bound"]:
                        # Explicitly: under a stricter level, the second look would have a snapshot from before the lock.
                        async with connection.transaction(isolation="read_committed"):
                            # Look again under the lock: two workers that start together must not both find the queue unbound.
                            await connection.execute(self._sql["lock_bindings"])
                            [found] = await connection.fetch(self._sql["binding"], *binding)
                            # Deliveries are claimed by queue, as in RabbitMQ, so workers of two exchanges on one queue would
                            # handle each other's messages. If this exchange has bound the queue before, that is on purpose.
                            if found["others"] and not found["known"]:
                                raise TopologyError(self._shared_queue_error(found["others"], *binding))
                            await connection.execute(self._sql["bind"], *binding)
        except DatabaseUnavailableError as error:
            match error.__cause__:
                case asyncpg.InsufficientPrivilegeError():
                    raise TopologyError(
                        f"the queue {queue!r} is not bound with {key!r} to the exchange {exchange!r}, and binding it needs the "
                        f"privileges to insert into and to update {self._tables.subscription}: {error}"
                    ) from error
                case asyncpg.DataError() | asyncpg.ProgramLimitExceededError():
                    raise ConfigurationError(f"{queue!r} cannot be bound with {key!r}: {error}") from error
            raise BrokerUnavailableError(str(error)) from error
        if found["others"]:
            _log.warning(
                "the queue %s of the exchange %s is also bound to %s: workers of each exchange handle messages of all of them",
                queue,
                exchange,
                ", ".join(found["others"]),
            )

    def _shared_queue_error(self, others: Sequence[str], *binding: str | None) -> str:
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
    async def _shared_waker(self) -> AsyncIterator[Waker]:
        """Provides the one waker that all subscriptions share. It runs as long as any of them needs it."""
        is_first = self._waker is None
        if self._waker is None:
            doorbell = PostgresDoorbell(
                borrow_from(self._opened_pool) if self._url is None else connect_to(self._url, application_name=_NAME),
                bell_of(self._tables.delivery),
                observer=self._observer,
                poll_interval=self._poll_interval,
            )
            self._waker = Waker(doorbell, next_due=self._next_due)
            self._waker_tasks = [asyncio.create_task(doorbell.run()), asyncio.create_task(self._waker.run())]
        self._waker_users += 1
        try:
            if is_first and not self._of_source:
                await self._warn_of_other_brokers()
            yield self._waker
        finally:
            self._waker_users -= 1
            if not self._waker_users:
                tasks, self._waker_tasks, self._waker = self._waker_tasks, [], None
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    async def _warn_of_other_brokers(self) -> None:
        """Warns if all relays of this schema send to another broker: a worker without its URL would wait for ever."""
        with suppress(DatabaseUnavailableError), unavailable_errors("looking at the destinations of relays"):
            async with borrow(self._opened_pool) as connection, optional_tables(connection):
                for relay, destination in await connection.fetch(
                    self._sql["relay_elsewhere"], timeout=STATEMENT_TIMEOUT.total_seconds()
                ):
                    _log.warning(
                        "the queues of this worker are in PostgreSQL, but the relay %s sends to %s: if the worker should take "
                        "from there, give it the URL of that broker (OUTBOX_BROKER_URL)",
                        relay,
                        destination,
                    )

    async def _next_due(self, queues: Sequence[str]) -> SecondsUntilDue:
        since = [due for queue in queues for due in self._scan_starts[queue].due_times]
        rows = await self._fetch_reporting("next_due", queues, since)
        due: dict[str, float | None] = {}
        for row in rows:
            # At that time claims start at the front of the index again, and may find a delivery that they passed over. Zero
            # means that they all start there.
            front_in = self._scan_starts[row["queue"]].seconds_left or None
            due[row["queue"]] = min((seconds for seconds in (row["seconds"], front_in) if seconds is not None), default=None)
        return due

    async def _ring(self) -> None:
        if (bell := self._bell) is not None:
            await self._fetch_reporting("ring", bell.channel, bell.lock_key, bell.asleep_keys[0])

    async def _fetch_reporting(self, name: str, *arguments: Any) -> Sequence[asyncpg.Record]:
        """Runs a statement. Notifies the observer when the database is lost and when it is back."""
        with self._outages_reported():
            return await self._fetch(name, *arguments)

    async def _fetch_bodies(self, name: str, *arguments: Any) -> Sequence[asyncpg.Record]:
        """Runs a statement that reads bodies. Raises `TimeoutError` if it takes too long: large bodies may be the reason."""
        with self._outages_reported():
            try:
                return await self._fetch(name, *arguments)
            except StatementTimeoutError as error:
                raise TimeoutError(str(error)) from error

    async def _fetch_atomically(self, *calls: Call) -> Sequence[Sequence[asyncpg.Record]]:
        """Runs several statements in one transaction. Notifies the observer like `_fetch_reporting`."""
        statements = [(self._sql[name], *arguments) for name, *arguments in calls]
        with (
            self._outages_reported(),
            unavailable_errors(f"{calls[0][0]} at the broker in PostgreSQL", limit=STATEMENT_TIMEOUT),
        ):
            return await self._opened_statements.fetch_atomically(*statements, timeout=STATEMENT_TIMEOUT)

    @contextmanager
    def _outages_reported(self) -> Iterator[None]:
        try:
            yield
        except DatabaseUnavailableError as error:
            if isinstance(error.__cause__, asyncpg.TooManyConnectionsError):
                self._crowded_at = time.monotonic()
            if not self._is_away and not isinstance(error.__cause__, REFUSALS):
                self._is_away = True
                self._observer.notify(DependencyLost(dependency=Dependency.BROKER, reason=str(error)))
            raise
        # While the server has too few connections, statements succeed on those that are open, in turn with others that fail.
        if self._is_away and time.monotonic() > self._crowded_at + CROWDED_FOR.total_seconds():
            self._is_away = False
            self._observer.notify(DependencyRestored(dependency=Dependency.BROKER))

    async def _fetch(self, name: str, *arguments: Any) -> Sequence[asyncpg.Record]:
        with unavailable_errors(f"{name} at the broker in PostgreSQL", limit=STATEMENT_TIMEOUT):
            return await self._opened_statements.fetch(self._sql[name], *arguments, timeout=STATEMENT_TIMEOUT)


def _to_row(message: Message) -> _Row:
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


async def _raise_error_of(tasks: Sequence["asyncio.Task[None]"]) -> None:
    """Waits until one of the waker's tasks fails, and raises its error: without it, an idle worker would wait for ever."""
    ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in ended:
        with suppress(BrokerUnavailableError):  # the broker was closed, on purpose
            await task
