"""Worker: runs consumers. Turns URLs and objects into adapters."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from outbox.core import arguments
from outbox.core.arguments import at_least_one, byte_limits, exactly_one, seconds
from outbox.core.arguments import exchange_name as checked_exchange_name
from outbox.core.byte_limits import MAX_BATCH_BYTES, MAX_BODY_BYTES
from outbox.core.clock import HybridClock, as_clock
from outbox.core.duration import as_delays
from outbox.core.outcome import Failure, Redact
from outbox.core.urls import ServerKind, postgres_url, server_kind
from outbox.engine.consumer import Consumer, described
from outbox.engine.index_keys import IndexKeys
from outbox.engine.lifecycle import GRACE_PERIOD, Stopping, never_closed, run_until_stopped, until_it_answers
from outbox.engine.observers import ClockFollower, Observers
from outbox.engine.tasks import ungrouped
from outbox.engine.worker import INBOX_WAIT, Work, WorkSettings
from outbox.errors import ConfigurationError, MissingExtraError
from outbox.runtime.brokers import CountingArchived, keeps_dead_letters, open_broker, require_one_consumable_broker
from outbox.runtime.observing import HEARTBEAT_INTERVAL, Reports, component_name, observed_by

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection

    from outbox.masking import Masking
    from outbox.ports import Broker, UnitsOfWork
    from outbox.postgres.pool import Pool

PREFETCH_LIMIT = 65_535
"""What AMQP can express."""
LONGEST_INBOX_WAIT = timedelta(seconds=30)
"""Below the limit of any statement, which would be taken for an outage of the database."""


class Worker:
    """Runs consumers on what their queues deliver, until it is stopped.

    Give exactly one of `rmq_connection` (aio-pika), `rmq_connection_url` and `broker`; `broker` is an `amqp(s)://` URL, a
    `postgresql://` URL, or an object that implements `outbox.ports.Broker`. `db_engine_url` or `db_pool` (asyncpg) is for
    consumers with an inbox, and for those that take a `session`, `connection` or `publisher`; without such consumers none is
    needed. A session needs the URL. What is given open is left open.

    `retry_delays` are for consumers without their own: durations (`"1m30s"`) or seconds, `()` for no retry. `prefetch_count` is
    how many of a consumer's messages are in flight at once, up to 65,535. `grace_period` is in seconds, up to a day: how long
    handlers may take to finish after the worker was asked to stop. `table_name` is where `publisher` publishes to; the inbox
    lies next to it. `inbox_wait` is in seconds, up to 30: how long a message waits for another transaction that is handling it,
    before it is put off.

    `name` is how operators know it, by default "host:pid", and `service_version` the release of your service, such as a commit:
    it is reported, and kept with each failure. With `reporting` it writes what it does to a database, every
    `heartbeat_interval` seconds, and respects pauses that are asked for there; with `history` it also writes the outcome of
    each message, and the values at the JSON paths `index_keys` in its body, which find it later. The database is that of
    `db_engine_url` or `db_pool`, else of the broker if that is a `postgresql://` URL.

    `clock`, a `HybridClock` or "hlc" for the one of this process, is shown the stamp of each message before its handler runs,
    and stamps what handlers publish through `publisher`.

    `redact` takes out of a text what must not be stored or shown: the message and the traceback of each exception pass through
    it, before they reach a log, a header or a table. Where it raises, a placeholder takes the text's place.

    `masking` says what is hidden when the dead letters are shown or searched that are recorded in the database.

    Where PostgreSQL is the broker, a consumer's messages in flight have up to `max_batch_bytes` together, even if that is less
    than `prefetch_count`; a single one may have more. One above `max_body_bytes` is a dead letter, and never fetched.

    A callback that is not async runs in threads of its consumer's own, up to `prefetch_count` and at most 64. A handler that
    raises has failed, `SystemExit` included. Raises `ConfigurationError` for arguments that make no sense.
    """

    def __init__(
        self,
        rmq_connection: "AbstractConnection | None" = None,
        rmq_connection_url: str | None = None,
        consumers: Iterable[Consumer] = (),
        exchange_name: str = "outbox",
        retry_delays: Sequence[str | float | timedelta] = ("1s", "10s", "1m", "5m"),
        prefetch_count: int = 10,
        enable_metrics: bool = True,
        *,
        broker: "str | Broker | None" = None,
        db_engine_url: str | None = None,
        db_pool: "Pool | None" = None,
        table_name: str = "outbox_table",
        masking: "Masking | None" = None,
        grace_period: float = GRACE_PERIOD.total_seconds(),
        inbox_wait: float = INBOX_WAIT.total_seconds(),
        name: str | None = None,
        service_version: str | None = None,
        reporting: bool = True,
        history: bool = True,
        index_keys: Sequence[str] = (),
        heartbeat_interval: float = HEARTBEAT_INTERVAL,
        clock: Literal["hlc"] | HybridClock | None = None,
        redact: Redact | None = None,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        from outbox.postgres.queries import TableName

        self._broker = require_one_consumable_broker(
            rmq_connection=rmq_connection, rmq_connection_url=rmq_connection_url, broker=broker
        )
        self._consumers = _one_for_each_queue(consumers)
        own_keys = IndexKeys.of(index_keys)
        self._index_keys = {
            each.queue: own_keys if each.index_keys is None else IndexKeys.of(each.index_keys) for each in self._consumers
        }
        self._url = None if db_engine_url is None else postgres_url(db_engine_url)
        self._given_pool = db_pool
        if db_engine_url is not None or db_pool is not None:
            exactly_one(db_engine_url=db_engine_url, db_pool=db_pool)
        if self._url is None and self._given_pool is None:
            self._refuse(self._wanting(*_OF_A_DATABASE), "give the worker db_engine_url or db_pool")
        elif self._url is None:
            self._refuse(self._wanting("session"), "give the worker db_engine_url, a session cannot be made of db_pool")
        elif self._wanting("session") and find_spec("sqlalchemy") is None:
            raise MissingExtraError(purpose="A consumer's session", extra="sqlalchemy")
        self._table = TableName.parse(table_name)
        self._masking = masking
        self._byte_limits = byte_limits(max_batch_bytes=max_batch_bytes, max_body_bytes=max_body_bytes)
        self._enable_metrics = enable_metrics
        self._grace_period = arguments.grace_period(grace_period)
        self._clock = as_clock(clock)
        if redact is not None and not callable(redact):
            raise ConfigurationError(f"redact is a callable that takes a text and returns one, not {redact!r}")
        self._redact = redact
        self._name = name
        self._settings = WorkSettings(
            exchange_name=checked_exchange_name(exchange_name),
            retry_delays=as_delays(retry_delays),
            prefetch_count=at_least_one("prefetch_count", prefetch_count, most=PREFETCH_LIMIT, because="AMQP has no more"),
            inbox_wait=seconds(
                "inbox_wait",
                inbox_wait,
                most=LONGEST_INBOX_WAIT,
                because="a longer wait is taken for an outage of the database",
            ),
        )
        self._stopping = Stopping()
        reports_to = self._url
        if reports_to is None and db_pool is None and isinstance(broker, str) and server_kind(broker) is ServerKind.POSTGRES:
            reports_to = postgres_url(broker, argument="broker")
        self._reports = Reports(
            kind="worker",
            name=name,
            table=self._table,
            service_version=service_version,
            url=reports_to,
            pool=db_pool,
            reporting=reporting,
            history=history,
            heartbeat_interval=heartbeat_interval,
        )

    @property
    def consumers(self) -> tuple[Consumer, ...]:
        """The consumers that it runs."""
        return self._consumers

    async def run(self, *, handle_signals: bool = True) -> None:
        """Works until `stop()`, or SIGINT or SIGTERM; then lets running handlers finish, gives back the rest, and returns.

        Outages of broker and database are waited out. Raises `TopologyError` if the broker lacks something that may not be
        declared, `SchemaError` if a table is missing or of another release, `MissingExtraError` for a missing dependency.
        Cancelled, it drains within the grace period and re-raises; cancelled twice, it ends at once. Handlers that still run at
        the end of the grace period are cancelled; it raises `HandlersAbandonedError` for those that do not end within 4 s, and
        for those in threads. Their messages are delivered again, and `asyncio.run` does not wait for them.
        """
        await run_until_stopped(self._work, self._stopping, grace_period=self._grace_period, handle_signals=handle_signals)

    def stop(self) -> None:
        """Asks `run` to drain and return. May be called from anywhere, signal handlers included, and more than once.

        The wish lasts: a later `run` returns at once.
        """
        self._stopping.request()

    async def _work(self, stopping: Stopping) -> None:
        from outbox.postgres.archive import PostgresArchive
        from outbox.postgres.pool import given_or_open
        from outbox.runtime.observing import build_observer

        observer = build_observer(enable_metrics=self._enable_metrics, masking=self._masking)
        async with AsyncExitStack() as stack:
            units = await stack.enter_async_context(self._open_units())
            if units is not None and not await until_it_answers(self._check_database, stopping, observer):
                return
            settings = self._settings
            consumers = described(self._consumers, retry_delays=settings.retry_delays, prefetch_count=settings.prefetch_count)
            reporter = await stack.enter_async_context(
                self._reports.open(observer, stopping, consumers=consumers, index_keys=self._index_keys)
            )
            observer = observed_by(observer, reporter)
            if self._clock is not None:
                observer = Observers((ClockFollower(self._clock), observer))
            broker = open_broker(
                self._broker,
                exchange_name=self._settings.exchange_name,
                table=self._table,
                observer=observer,
                masking=self._masking,
                byte_limits=self._byte_limits,
            )
            stack.push_async_callback(broker.close)
            if keeps_dead_letters(self._broker) and (self._url is not None or self._given_pool is not None):
                # Its dead letters are counted together with those that an archiver took from it into our database.
                counting = given_or_open(self._given_pool, self._url, size=1, application_name="outbox worker counts")
                archive = PostgresArchive(await stack.enter_async_context(counting), self._table)
                broker = CountingArchived(broker, archive)
            gate_of = never_closed if reporter is None else reporter.gate
            describe = partial(
                Failure.of,
                worker=component_name(self._name),
                version=self._reports.service_version or "",
                redact=self._redact,
            )
            work = Work(
                broker,
                self._consumers,
                units,
                observer,
                self._settings,
                now=self._reports.clock.now,
                gate_of=gate_of,
                describe=describe,
            )
            if reporter is not None:
                reporter.activity.in_flight = lambda: work.in_flight
            with ungrouped():
                await work.run(stopping)

    # --- the database --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _open_units(self) -> AsyncIterator["UnitsOfWork | None"]:
        """Room for as many handlers as may run at once; None without a consumer that wants a transaction."""
        from outbox.postgres.inbox import Inbox, inbox_beside
        from outbox.postgres.unit_of_work import open_units
        from outbox.publisher import BoundPublisher, Publisher

        wanting, with_session = self._wanting(*_OF_A_DATABASE), self._wanting("session")
        if not wanting:
            yield None
            return
        publisher = Publisher(table_name=str(self._table), clock=self._clock)
        prefetch_count = self._settings.prefetch_count
        async with open_units(
            url=self._url,
            pool=self._given_pool,
            sessions=len(with_session) * prefetch_count,
            connections=(len(wanting) - len(with_session)) * prefetch_count,
            bind=lambda handle: closing(BoundPublisher(publisher, handle)),
            inbox=Inbox(inbox_beside(self._table)),
        ) as units:
            yield units

    async def _check_database(self) -> None:
        """Raises `DatabaseUnavailableError`, or `SchemaError` if there is no table to publish to, or to mark messages in."""
        from outbox.postgres.pool import borrow_from, connect_to, unavailable_errors
        from outbox.postgres.schema import check_inbox, check_outbox_table

        if self._given_pool is not None:
            connect = borrow_from(self._given_pool)
        else:
            connect = connect_to(self._url or "", application_name="outbox worker")
        with unavailable_errors("beginning to work"):
            async with connect() as connection:
                if self._wanting("publisher"):
                    await check_outbox_table(connection, self._table)
                if self._wanting("inbox"):
                    await check_inbox(connection, self._table)

    def _wanting(self, *names: str) -> list[Consumer]:
        return [consumer for consumer in self._consumers if _wants(consumer).intersection(names)]

    @staticmethod
    def _refuse(consumers: Sequence[Consumer], advice: str) -> None:
        if consumers:
            queues = ", ".join(consumer.queue for consumer in consumers)
            wanted = ", ".join(sorted({name for consumer in consumers for name in _wants(consumer)}))
            raise ConfigurationError(f"the consumers of {queues} take {wanted}, which needs a database: {advice}")


_OF_A_DATABASE = ("session", "connection", "publisher", "inbox")


def _wants(consumer: Consumer) -> frozenset[str]:
    """What a consumer needs a database for."""
    return consumer.plan.resources | {"inbox"} if consumer.inbox else consumer.plan.resources


def _one_for_each_queue(consumers: Iterable[Consumer]) -> tuple[Consumer, ...]:
    """The consumers without repetitions. Raises for two different ones that would take each other's messages."""
    by_queue: dict[str, Consumer] = {}
    for consumer in (consumers,) if isinstance(consumers, Consumer) else consumers:
        if not isinstance(consumer, Consumer):
            raise ConfigurationError(f"{consumer!r} is not a consumer: decorate it with @consume, or make a Consumer of it")
        if by_queue.setdefault(consumer.queue, consumer) != consumer:
            raise ConfigurationError(
                f"two different consumers name the queue {consumer.queue}, and would take each other's messages: "
                f"give each a queue of its own"
            )
    return tuple(by_queue.values())


def __getattr__(name: str) -> object:
    """Says where the predecessor's other names of this module are."""
    if name in ("Reject", "consume"):
        raise ImportError(f"outbox.worker.{name} was the predecessor's: write `from outbox import {name}`", name=__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
