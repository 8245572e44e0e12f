"""Worker: runs consumers. Creates the adapters for the engine's worker."""

import logging
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
from outbox.core.urls import ServerKind, postgres_url, server_address, server_kind
from outbox.engine.consumer import Consumer, describe_consumers
from outbox.engine.index_keys import IndexKeys
from outbox.engine.lifecycle import GRACE_PERIOD, Stopping, never_closed, run_until_stopped, wait_until_available
from outbox.engine.observers import ClockFollower, Observers
from outbox.engine.tasks import ungrouped
from outbox.engine.worker import INBOX_WAIT, WorkerRunner, WorkSettings
from outbox.errors import ConfigurationError, MissingExtraError
from outbox.runtime.brokers import (
    CountingArchived,
    keeps_dead_letters,
    open_broker,
    require_one_consumable_broker,
    stored_label,
    unkept,
)
from outbox.runtime.observing import HEARTBEAT_INTERVAL, Reports, component_name, observed_by
from outbox.runtime.tracer import open_meters, open_tracer, parse_propagation, silenced

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection

    from outbox.encryption import Encryption
    from outbox.large_bodies import LargeBodies
    from outbox.masking import Masking
    from outbox.ports import Broker, Source, UnitsOfWork
    from outbox.postgres.pool import Pool

_log = logging.getLogger("outbox")

PREFETCH_LIMIT = 65_535
"""The limit of AMQP."""
LONGEST_INBOX_WAIT = timedelta(seconds=30)
"""Below the time limit of statements: exceeding that would be reported as an outage of the database."""


class Worker:
    """Runs consumers on the messages of their queues, until it is stopped.

    Give exactly one of `rmq_connection` (aio-pika), `rmq_connection_url` and `broker`. `broker` is an `amqp(s)://` URL, a
    `postgresql://`, `kafka(s)://`, `nats(s)://`, `redis(s)://`, `sqs://` or `sns://` URL, or an object that implements
    `outbox.ports.Broker` or `outbox.ports.Source`. Messages of Kafka, NATS, Redis, AWS, or another source are stored in the
    database and handled from there. That needs `db_engine_url` or `db_pool` (asyncpg), as do consumers with an inbox, and those
    that take a `session`, `connection` or `publisher`; a `session` needs `db_engine_url`. Connections and pools that you pass
    are not closed.

    `retry_delays` are for consumers without their own: durations (`"1m30s"`) or seconds; `()` disables retries.
    `prefetch_count`, up to 65,535, is how many messages of each consumer are in flight at once. `grace_period`, in seconds up
    to a day, is how long handlers may take to finish after the worker is asked to stop. `table_name` is the outbox table that
    `publisher` writes to; the inbox table is next to it. `inbox_wait`, in seconds up to 30, is how long a message waits for
    another transaction that is handling it, before it is postponed.

    `name` identifies the worker to operators, by default "host:pid". `service_version` is the release of your service, such as
    a commit; it is reported, and stored with each failure. With `reporting` the worker writes its status to the database every
    `heartbeat_interval` seconds, and follows pauses requested there. With `history` it also records the outcome of each
    message, and the values at the JSON paths `index_keys` in its body, for searches. The database is that of `db_engine_url`
    or `db_pool`, otherwise that of the broker if it is a `postgresql://` URL.

    `clock`, a `HybridClock` or "hlc" for the clock of this process, is advanced to the timestamp of each message before its
    handler runs, and stamps the messages that handlers publish through `publisher`.
    `redact` removes secrets from a text. The message and the traceback of each exception pass through it before they reach a
    log, a header or a table. If it raises, a placeholder replaces the text. `masking` sets what is hidden when dead letters
    recorded in the database are shown or searched.

    With PostgreSQL as the broker, `max_batch_bytes` limits the bytes of each consumer's messages in flight, in addition to
    `prefetch_count`; a single message may be larger. A message above `max_body_bytes` is dead-lettered without being fetched.

    With `enable_tracing`, and if the process has configured a tracer provider of OpenTelemetry before the start, each attempt
    is a span, and the handler runs in it. `propagation` is its relation to the publisher's trace: "child", "link", or "auto",
    which links messages that were delayed, retried, requeued or handled in a batch. With `enable_otel_metrics`, the metrics are
    also reported to the meter provider that the process has configured before the start.

    `encryption`, an `outbox.encryption.Encryption`, decrypts the bodies of encrypted messages before a handler gets them, and
    encrypts what handlers publish through `publisher`. Without it, or without its key, an encrypted message fails with
    `UnknownKeyError`, and is retried. Bodies that are not encrypted are handled as before. `large_bodies`, an
    `outbox.large_bodies.LargeBodies`, fetches the bodies that a publisher stored, and stores those of messages that handlers
    publish. While the store is unavailable, such messages wait and spend no attempt.

    A callback that is not async runs in its consumer's threads, up to `prefetch_count` and at most 64. A handler that raises
    any exception has failed, including `SystemExit`. Raises `ConfigurationError` for invalid arguments.
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
        broker: "str | Broker | Source | None" = None,
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
        enable_tracing: bool = True,
        propagation: Literal["auto", "child", "link"] = "auto",
        enable_otel_metrics: bool = False,
        encryption: "Encryption | None" = None,
        large_bodies: "LargeBodies | None" = None,
    ) -> None:
        from outbox.postgres.queries import TableName

        self._broker = require_one_consumable_broker(
            rmq_connection=rmq_connection, rmq_connection_url=rmq_connection_url, broker=broker
        )
        self._consumers = _unique_consumers(consumers)
        own_keys = IndexKeys.of(index_keys)
        self._index_keys = {
            each.queue: own_keys if each.index_keys is None else IndexKeys.of(each.index_keys) for each in self._consumers
        }
        self._url = None if db_engine_url is None else postgres_url(db_engine_url)
        self._given_pool = db_pool
        if db_engine_url is not None or db_pool is not None:
            exactly_one(db_engine_url=db_engine_url, db_pool=db_pool)
        self._check_consumers()
        self._table = TableName.parse(table_name)
        self._masking = masking
        self._byte_limits = byte_limits(max_batch_bytes=max_batch_bytes, max_body_bytes=max_body_bytes)
        self._enable_metrics = enable_metrics
        self._enable_otel_metrics = enable_otel_metrics
        self._enable_tracing = enable_tracing
        self._propagation = parse_propagation(propagation)
        self._grace_period = arguments.grace_period(grace_period)
        self._clock = as_clock(clock)
        if redact is not None and not callable(redact):
            raise ConfigurationError(f"redact must be a callable that takes a text and returns one, not {redact!r}")
        self._redact = redact
        arguments.body_tools(encryption=encryption, large_bodies=large_bodies)
        self._encryption = encryption
        self._large_bodies = large_bodies
        self._name = name
        self._settings = WorkSettings(
            exchange_name=checked_exchange_name(exchange_name),
            retry_delays=as_delays(retry_delays),
            prefetch_count=at_least_one("prefetch_count", prefetch_count, most=PREFETCH_LIMIT, because="the limit of AMQP"),
            inbox_wait=seconds(
                "inbox_wait",
                inbox_wait,
                most=LONGEST_INBOX_WAIT,
                because="a longer wait would be reported as an outage of the database",
            ),
        )
        self._stopping = Stopping()
        reports_to = self._url
        # Without a database of its own, a worker reports to the one that has its queues.
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
        """The consumers of this worker."""
        return self._consumers

    async def run(self, *, handle_signals: bool = True) -> None:
        """Works until `stop()`, SIGINT or SIGTERM; then waits for running handlers, returns other messages, and ends.

        Waits during outages of the broker and the database. Raises `TopologyError` if a broker resource is missing that may not
        be declared, `SchemaError` if a table is missing or belongs to another release, and `MissingExtraError` for a missing
        dependency. Cancelled, it drains within the grace period and re-raises; cancelled twice, it ends at once.

        Handlers that still run at the end of the grace period are cancelled. Raises `HandlersAbandonedError` if some do not end
        within 4 s, or run in threads. Their messages are redelivered, and `asyncio.run` does not wait for them.
        """
        await run_until_stopped(
            silenced(self._work), self._stopping, grace_period=self._grace_period, handle_signals=handle_signals
        )

    def stop(self) -> None:
        """Asks `run` to drain and return. May be called from any thread or signal handler, and more than once.

        A later `run` returns at once.
        """
        self._stopping.request()

    async def _work(self, stopping: Stopping) -> None:
        from outbox.postgres.archive import PostgresArchive
        from outbox.postgres.pool import given_or_open
        from outbox.runtime.observing import build_observer

        if not self._consumers:
            # No error: a service may choose its consumers when it starts.
            _log.warning("the worker has no consumers, and handles nothing: give it Worker(consumers=…)")
        meters = open_meters(enabled=self._enable_otel_metrics, source=self._broker)
        observer = build_observer(enable_metrics=self._enable_metrics, meters=meters, masking=self._masking)
        async with AsyncExitStack() as stack:
            units = await stack.enter_async_context(self._open_units())
            if units is not None and not await wait_until_available(self._check_database, stopping, observer):
                return
            settings = self._settings
            consumers = describe_consumers(
                self._consumers, retry_delays=settings.retry_delays, prefetch_count=settings.prefetch_count
            )
            reporter = await stack.enter_async_context(
                self._reports.open(observer, stopping, consumers=consumers, index_keys=self._index_keys)
            )
            observer = observed_by(observer, reporter)
            if self._clock is not None:
                # The first one, so that what the handler publishes is stamped after the message that it handles.
                observer = Observers((ClockFollower(self._clock), observer))
            tracer = open_tracer(
                enabled=self._enable_tracing,
                source=self._broker,
                exchange_name=self._settings.exchange_name,
                propagation=self._propagation,
            )
            if isinstance(self._broker, str):
                _log.info("worker started: messages come from %s", server_address(self._broker))
            broker = open_broker(
                self._broker,
                exchange_name=self._settings.exchange_name,
                table=self._table,
                observer=observer,
                masking=self._masking,
                byte_limits=self._byte_limits,
                db_engine_url=self._url,
                db_pool=self._given_pool,
            )
            stack.push_async_callback(broker.close)
            if keeps_dead_letters(self._broker) and (self._url is not None or self._given_pool is not None):
                # A queue's dead letters are those at the broker and those that an archiver has moved to the database.
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
            work = WorkerRunner(
                broker,
                self._consumers,
                units,
                observer,
                self._settings,
                now=self._reports.clock.now,
                gate_of=gate_of,
                describe=describe,
                tracer=tracer,
                encryption=self._encryption,
                large_bodies=self._large_bodies,
            )
            if self._large_bodies is not None:
                await stack.enter_async_context(self._large_bodies.opened())
            if reporter is not None:
                reporter.activity.in_flight = lambda: work.in_flight
            with ungrouped():
                await work.run(stopping)

    # --- the database --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _open_units(self) -> AsyncIterator["UnitsOfWork | None"]:
        """Opens connections for all handlers that may run at once. Yields None if no consumer needs a transaction."""
        from outbox.postgres.inbox import Inbox, inbox_table_of
        from outbox.postgres.unit_of_work import open_units
        from outbox.publisher import BoundPublisher, Publisher

        wanting, with_session = self._consumers_with(*_NEEDS_DATABASE), self._consumers_with("session")
        if not wanting:
            yield None
            return
        publisher = Publisher(
            table_name=str(self._table),
            clock=self._clock,
            enable_tracing=self._enable_tracing,
            encryption=self._encryption,
            large_bodies=self._large_bodies,
        )
        prefetch_count = self._settings.prefetch_count
        async with open_units(
            url=self._url,
            pool=self._given_pool,
            sessions=len(with_session) * prefetch_count,
            connections=(len(wanting) - len(with_session)) * prefetch_count,
            bind=lambda handle: closing(BoundPublisher(publisher, handle)),
            inbox=Inbox(inbox_table_of(self._table)),
        ) as units:
            yield units

    async def _check_database(self) -> None:
        """Raises `DatabaseUnavailableError`, or `SchemaError` if the outbox or inbox table is needed and missing."""
        from outbox.postgres.handler_connections import APPLICATION_NAME
        from outbox.postgres.pool import borrow_from, connect_to, unavailable_errors
        from outbox.postgres.schema import check_inbox, check_outbox_table

        pool = self._given_pool
        connect = connect_to(self._url or "", application_name=APPLICATION_NAME) if pool is None else borrow_from(pool)
        with unavailable_errors("starting the worker"):
            async with connect() as connection:
                if self._consumers_with("publisher"):
                    await check_outbox_table(connection, self._table)
                if self._consumers_with("inbox"):
                    await check_inbox(connection, self._table)

    def _consumers_with(self, *names: str) -> list[Consumer]:
        return [consumer for consumer in self._consumers if _needs(consumer).intersection(names)]

    def _check_consumers(self) -> None:
        """Raises `ConfigurationError` if a consumer needs what this worker, or its broker, does not have."""
        label = stored_label(self._broker)
        if self._url is None and self._given_pool is None:
            if label is not None:
                raise ConfigurationError(
                    f"a worker stores the messages of {label} in its database before it handles them: give it db_engine_url or "
                    "db_pool (OUTBOX_DATABASE_URL)"
                )
            self._refuse(self._consumers_with(*_NEEDS_DATABASE), "give the worker db_engine_url or db_pool")
        elif self._url is None:
            self._refuse(self._consumers_with("session"), "give the worker db_engine_url, since a session cannot use db_pool")
        elif self._consumers_with("session") and find_spec("sqlalchemy") is None:
            raise MissingExtraError(purpose="A consumer's session", extra="sqlalchemy")
        for reason in unkept(self._broker, self._consumers):
            raise ConfigurationError(reason)

    @staticmethod
    def _refuse(consumers: Sequence[Consumer], advice: str) -> None:
        if consumers:
            queues = ", ".join(consumer.queue for consumer in consumers)
            wanted = ", ".join(sorted({name for consumer in consumers for name in _needs(consumer)}))
            raise ConfigurationError(f"the consumers of {queues} use {wanted}, which needs a database: {advice}")


_NEEDS_DATABASE = ("session", "connection", "publisher", "inbox")


def _needs(consumer: Consumer) -> frozenset[str]:
    """Returns what a consumer needs a database for."""
    return consumer.plan.resources | {"inbox"} if consumer.inbox else consumer.plan.resources


def _unique_consumers(consumers: Iterable[Consumer]) -> tuple[Consumer, ...]:
    """Removes repeated consumers. Raises for two different consumers of one queue."""
    by_queue: dict[str, Consumer] = {}
    if not isinstance(consumers, Consumer | Iterable):
        raise ConfigurationError(f"consumers must be a list of consumers, such as [welcome], not {consumers!r:.80}")
    for consumer in (consumers,) if isinstance(consumers, Consumer) else consumers:
        if not isinstance(consumer, Consumer):
            raise ConfigurationError(f"{consumer!r} is not a consumer: decorate it with @consume, or create a Consumer")
        if by_queue.setdefault(consumer.queue, consumer) != consumer:
            raise ConfigurationError(
                f"two different consumers have the queue {consumer.queue}, and would receive each other's messages: "
                f"give each its own queue"
            )
    return tuple(by_queue.values())


def __getattr__(name: str) -> object:
    """Raises an error that names the new place of a name of the predecessor's module."""
    if name in ("Reject", "consume"):
        raise ImportError(f"outbox.worker.{name} no longer exists: write `from outbox import {name}`", name=__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
