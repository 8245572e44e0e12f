"""MessageRelay: moves committed events from the outbox table to the broker. Creates the adapters for the engine's relay."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from outbox.core import arguments
from outbox.core.arguments import at_least_one, byte_limits, exactly_one, interval, one_of, seconds
from outbox.core.arguments import exchange_name as checked_exchange_name
from outbox.core.byte_limits import MAX_BATCH_BYTES, MAX_BODY_BYTES
from outbox.core.destinations import DEFAULT
from outbox.core.outcome import Cause
from outbox.core.urls import ServerKind, postgres_url, server_kind
from outbox.engine.index_keys import IndexKeys
from outbox.engine.lifecycle import GRACE_PERIOD, OPEN, Stopping, pause_before_next, run_until_stopped, wait_until_available
from outbox.engine.observers import Observers
from outbox.engine.ordering import OrderingRules
from outbox.engine.relay import Relay, RelaySettings
from outbox.engine.rounds import SendingPolicy, SendingRounds
from outbox.engine.tasks import ungrouped
from outbox.errors import ConfigurationError, DatabaseUnavailableError
from outbox.retry import Backoff, RetryPolicy
from outbox.runtime.brokers import destination_of, open_transport, own_database, refuse_stored_label, require_one_broker
from outbox.runtime.observing import HEARTBEAT_INTERVAL, Reports, build_observer, component_name, observed_by
from outbox.runtime.tracer import open_meters, open_tracer, silenced

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection

    from outbox.core.byte_limits import ByteLimits
    from outbox.engine.rounds import Rounds
    from outbox.ports import Observer, Transport
    from outbox.postgres.history import SentFacts
    from outbox.postgres.index_positions import ScanStart
    from outbox.postgres.pool import Pool
    from outbox.postgres.queries import TableName
    from outbox.postgres.relays import OtherRelay
    from outbox.postgres.store import PostgresStore
    from outbox.runtime.brokers import BrokerSource


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsSource:
    """The outbox table and the broker that its messages go to. `component` is the name in the history; None: no history."""

    broker: "BrokerSource"
    table: "TableName"
    policy: SendingPolicy
    ordering: OrderingRules
    keep_sent: bool
    component: str | None
    byte_limits: "ByteLimits"
    index_keys: IndexKeys

    def facts(self, observer: "Observer") -> "SentFacts | None":
        """Returns the writer of sent messages to the history; None without a history."""
        from outbox.postgres.history import SentFacts

        return None if self.component is None else SentFacts(self.table, self.component, observer, self.index_keys)

    def store(self, pool: "Pool", facts: "SentFacts | None") -> "PostgresStore":
        """Returns the store for the outbox table."""
        from outbox.postgres.store import PostgresStore

        return PostgresStore(
            pool,
            self.table,
            keep_sent=self.keep_sent,
            longest_send=self.policy.publish_timeout,
            ordering=self.ordering,
            facts=facts,
            byte_limits=self.byte_limits,
        )

    def destination(self, rounds: "Rounds") -> str:
        """Returns the destination of `rounds` (from `open`) as text, without secrets."""
        from outbox.transports.postgres.handover import HandoverRounds

        if isinstance(rounds, HandoverRounds):
            return own_database(exchange_name=self.policy.exchange_name)
        return destination_of(self.broker, exchange_name=self.policy.exchange_name)

    @asynccontextmanager
    async def open(
        self,
        pool: "Pool",
        store: "PostgresStore",
        facts: "SentFacts | None",
        observer: "Observer",
        stopping: Stopping,
    ) -> AsyncIterator["Rounds"]:
        """Opens rounds within the database if the queues are in it, otherwise through a transport."""
        if isinstance(self.broker, str) and server_kind(self.broker) is ServerKind.POSTGRES:
            handover = await self._handover(pool, self.broker, facts, store.scan_start, observer, stopping)
            if handover is not None:
                yield handover
                return
        name = self.policy.exchange_name
        transport = open_transport(self.broker, exchange_name=name, table=self.table, observer=observer, pool=pool)
        try:
            yield SendingRounds(store, transport, self.policy)
        finally:
            await transport.close()

    async def _handover(
        self,
        pool: "Pool",
        url: str,
        facts: "SentFacts | None",
        scan_start: "ScanStart",
        observer: "Observer",
        stopping: Stopping,
    ) -> "Rounds | None":
        """Returns rounds by hand-over, or None if the queues are in another database."""
        from outbox.postgres.pool import open_pool
        from outbox.transports.postgres.handover import HandoverRounds, PostgresHandover, same_database

        name = self.policy.exchange_name
        handover = PostgresHandover(
            pool,
            self.table,
            exchange_name=name,
            keep_sent=self.keep_sent,
            default_expiration=self.policy.expiration,
            drop_unroutable=self.policy.drop_unroutable,
            ordering=self.ordering,
            facts=facts,
            scan_start=scan_start,
            byte_limits=self.byte_limits,
            retry=self.policy.retry,
        )
        here = False

        async def look() -> None:
            nonlocal here
            # Names and addresses cannot show it, so it takes a connection of its own; see docs/decisions/0042.
            other = await open_pool(url, size=1, application_name="outbox relay")
            try:
                here = await same_database(pool, other)
            finally:
                # Not closed politely: the look may have failed because this server does not answer.
                other.terminate()
            if here:
                await handover.check()

        await wait_until_available(look, stopping, observer)
        return HandoverRounds(handover, exchange_name=name) if here else None


FIRST_BACKOFF = timedelta(seconds=1)
LONGEST_BACKOFF = timedelta(minutes=5)
"""First and longest pause of a refused message, ± 25 %. It doubles in between."""
BELL_CONNECTIONS = 2
"""One listens; the other is used for a moment, to find out whether notifications arrive."""
SPARE_CONNECTIONS = 4
"""For the three housekeeping duties and for probes of stalled routes, so that lanes never wait for a connection."""

RENEW_EVERY = timedelta(seconds=10)
"""How often a relay renews the record of its destination, which is valid twice as long (`postgres.relays.HELD_FOR`)."""
CHECK_AGAIN = timedelta(seconds=1)
_log = logging.getLogger("outbox")


class CleanUp(StrEnum):
    """When sent rows are deleted, if not after a given time."""

    IMMEDIATELY = "IMMEDIATELY"
    NEVER = "NEVER"


IMMEDIATELY = CleanUp.IMMEDIATELY
NEVER = CleanUp.NEVER


class MessageRelay:
    """Moves committed events from the outbox table to the broker, until it is stopped.

    Give exactly one of `db_engine_url` and `db_pool` (asyncpg), and exactly one of `rmq_connection` (aio-pika),
    `rmq_connection_url` and `broker`. `broker` is an `amqp(s)://`, `postgresql://`, `kafka(s)://`, `nats(s)://`, `redis(s)://`,
    `sqs://` or `sns://` URL, or an object that implements `outbox.ports.Transport`. Connections and pools that you pass
    are not closed. A pool needs one connection per lane and six more, or four with a `listen_url`.

    Times are in seconds: `notification_timeout` (the longest sleep) and `poll_interval` (used if LISTEN does not deliver) from
    0.01 to a day, `publish_timeout` from 0.01 to an hour, `grace_period` up to a day. `expiration` is for messages without one,
    in seconds or as a timedelta. `clean_up_after` sets when sent rows are deleted: IMMEDIATELY, NEVER, or after a timedelta.
    `batch_size` None adapts between 50 and 500; a number (up to 100,000) is fixed, and 1 sends one message after another.
    `lanes`, up to 64, is how many batches are in flight at once. A message that the broker refuses `max_attempts` times is
    parked. Messages that no queue is bound for are held until one is bound, or with `on_unroutable="drop"` dropped.
    `ordering_policy` sets how later messages of an ordering key are treated while an earlier one cannot be sent: "block",
    "park" or "skip", or one of these for each prefix of the key (a mapping, or "skip,orders:=block"), where the longest prefix
    wins and "" is for the other keys. `destination` is the one that this relay serves, such as "kafka": its table must exist,
    and `outbox migrate --destination kafka` creates it. If `db_engine_url` goes through a transaction pooler, `listen_url` is
    the database's own.

    `name` identifies the relay to operators, by default "host:pid", and `service_version` is the release of your service. With
    `reporting` it writes its status to the database every `heartbeat_interval` seconds, and follows pauses requested there.
    With `history` it records sent messages, and the values at the JSON paths `index_keys` in their bodies, unless the queues
    are in the database. Both need their tables, and are off without them.
    `max_batch_bytes` limits the bytes that each lane claims at once; a single message may be larger, up to `max_body_bytes`
    for its body, headers and routing key together. A message above that is parked without being fetched.

    With `enable_tracing`, and if the process has configured a tracer provider of OpenTelemetry before the start, each batch is
    a span. With `enable_otel_metrics`, the metrics are also reported to the meter provider that it has configured by then.

    Raises `ConfigurationError` for invalid arguments, and `MissingExtraError` if the broker's library is not installed.
    """

    def __init__(
        self,
        db_engine_url: str | None = None,
        db_pool: "Pool | None" = None,
        rmq_connection: "AbstractConnection | None" = None,
        rmq_connection_url: str | None = None,
        exchange_name: str = "outbox",
        notification_timeout: float = 60.0,
        expiration: float | timedelta | None = None,
        clean_up_after: CleanUp | Literal["IMMEDIATELY", "NEVER"] | timedelta = IMMEDIATELY,
        table_name: str = "outbox_table",
        batch_size: int | None = None,
        enable_metrics: bool = True,
        *,
        broker: "str | Transport | None" = None,
        destination: str = DEFAULT,
        lanes: int = 2,
        publish_timeout: float = 10.0,
        max_attempts: int = 20,
        on_unroutable: Literal["hold", "drop"] = "hold",
        ordering_policy: str | Mapping[str, str] = "block",
        poll_interval: float = 1.0,
        listen_url: str | None = None,
        grace_period: float = GRACE_PERIOD.total_seconds(),
        name: str | None = None,
        service_version: str | None = None,
        reporting: bool = True,
        heartbeat_interval: float = HEARTBEAT_INTERVAL,
        history: bool = True,
        index_keys: Sequence[str] = (),
        max_batch_bytes: int = MAX_BATCH_BYTES,
        max_body_bytes: int = MAX_BODY_BYTES,
        enable_tracing: bool = True,
        enable_otel_metrics: bool = False,
    ) -> None:
        from outbox.postgres.queries import TableName
        from outbox.postgres.schema.objects import destination_table

        exactly_one(db_engine_url=db_engine_url, db_pool=db_pool)
        chosen = require_one_broker(rmq_connection=rmq_connection, rmq_connection_url=rmq_connection_url, broker=broker)
        self._url = None if db_engine_url is None else postgres_url(db_engine_url)
        self._listen_url = None if listen_url is None else postgres_url(listen_url, argument="listen_url")
        self._pool = arguments.pool(db_pool, size=1)
        self._table = destination_table(TableName.parse(table_name), destination)
        self._name = component_name(name)
        self._enable_metrics = enable_metrics
        self._enable_otel_metrics = enable_otel_metrics
        self._enable_tracing = enable_tracing
        self._grace_period = arguments.grace_period(grace_period)
        self._stopping = Stopping()
        self._reports = Reports(
            kind="relay",
            name=name,
            table=self._table,
            service_version=service_version,
            destination=destination,
            url=self._url,
            pool=self._pool,
            reporting=reporting,
            history=history,
            heartbeat_interval=heartbeat_interval,
        )
        keep_sent, retention = _parse_clean_up(clean_up_after)
        self._source = RoundsSource(
            broker=chosen,
            table=self._table,
            policy=SendingPolicy(
                exchange_name=checked_exchange_name(exchange_name),
                retry=RetryPolicy(
                    Backoff(
                        first=FIRST_BACKOFF,
                        longest=LONGEST_BACKOFF,
                        max_attempts=at_least_one("max_attempts", max_attempts),
                        random=random.Random(),  # noqa: S311  spreads load; not a secret
                    ),
                    exhausted=Cause.REFUSED,
                ),
                publish_timeout=arguments.send_timeout("publish_timeout", publish_timeout),
                expiration=None if expiration is None else seconds("expiration", expiration),
                drop_unroutable=one_of("on_unroutable", on_unroutable, ("hold", "drop")) == "drop",
                now=self._reports.clock.now,
            ),
            ordering=OrderingRules.of(ordering_policy),
            keep_sent=keep_sent,
            component=component_name(name) if history else None,
            index_keys=IndexKeys.of(index_keys),
            byte_limits=byte_limits(max_batch_bytes=max_batch_bytes, max_body_bytes=max_body_bytes),
        )
        refuse_stored_label(chosen, exchange_name)
        self._settings = RelaySettings(
            exchange_name=exchange_name,
            table=str(self._table),
            batch_size=None if batch_size is None else arguments.batch_size(batch_size),
            # A size of 1 promises one message after another, which a second lane would break.
            lanes=1 if batch_size == 1 else arguments.lanes(lanes),
            longest_nap=interval("notification_timeout", notification_timeout),
            poll_interval=interval("poll_interval", poll_interval),
            retention=retention,
        )

    async def run(self, *, handle_signals: bool = True) -> None:
        """Relays until `stop()`, SIGINT or SIGTERM; then finishes the rounds in flight and returns.

        Waits during outages of the database and the broker. Raises `SchemaError` if at the start the table is missing, belongs
        to another release, or is not accessible to the user, `TopologyError` if a broker resource is missing that may not be
        declared, and `ConfigurationError` if the pool is too small. Cancelled, it drains within the grace period and re-raises;
        cancelled twice, it ends at once.
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
        from outbox.postgres.doorbell import PostgresDoorbell, bell_of
        from outbox.postgres.pool import Connector, borrow_from, connect_to, given_or_open

        if self._pool is not None:
            needed = self._settings.lanes + SPARE_CONNECTIONS + (0 if self._listen_url else BELL_CONNECTIONS)
            if self._pool.get_max_size() < needed:
                raise ConfigurationError(
                    f"db_pool has room for {self._pool.get_max_size()} connections, but {self._settings.lanes} lanes need "
                    f"{needed}: make it larger (max_size={needed}), or use fewer lanes"
                )
        size = self._settings.lanes + SPARE_CONNECTIONS
        meters = open_meters(enabled=self._enable_otel_metrics, source=self._source.broker)
        observer = build_observer(enable_metrics=self._enable_metrics, meters=meters)
        with ungrouped():
            async with AsyncExitStack() as stack:
                opening = given_or_open(
                    self._pool, self._url, size=size, application_name="outbox relay", connector=Connector()
                )
                pool = await stack.enter_async_context(opening)
                facts = self._source.facts(observer)
                store = self._source.store(pool, facts)
                if not await wait_until_available(store.check, stopping, observer):
                    return
                reporter = await stack.enter_async_context(self._reports.open(observer, stopping))
                observer = observed_by(observer, reporter)
                tracer = open_tracer(
                    enabled=self._enable_tracing,
                    source=self._source.broker,
                    exchange_name=self._source.policy.exchange_name,
                )
                if tracer is not None:
                    observer = Observers((observer, tracer))
                url = self._listen_url or self._url
                connect = borrow_from(pool) if url is None else connect_to(url, application_name="outbox relay bell")
                poll_interval = self._settings.poll_interval
                doorbell = PostgresDoorbell(connect, bell_of(self._table), observer=observer, poll_interval=poll_interval)
                rounds = await stack.enter_async_context(self._source.open(pool, store, facts, observer, stopping))
                # Only now: whether the queues are in the outbox's own database is known since `open`.
                destination = self._source.destination(rounds)
                renew = await stack.enter_async_context(self._reserve_destination(destination, pool, observer, stopping))
                companions = await stack.enter_async_context(asyncio.TaskGroup())
                duties = [companions.create_task(doorbell.run()), companions.create_task(renew())]
                gate = OPEN if reporter is None else reporter.gate()
                settings = replace(self._settings, destination=destination)
                await Relay(rounds, store, doorbell, observer, settings, gate).run(stopping)
                for duty in duties:
                    duty.cancel()

    @asynccontextmanager
    async def _reserve_destination(
        self, destination: str, pool: "Pool", observer: "Observer", stopping: Stopping
    ) -> AsyncIterator[Callable[[], Coroutine[Any, Any, NoReturn]]]:
        """Prevents other relays of the table from sending elsewhere, within the block and while the yielded function runs.

        Raises `ConfigurationError` if another running relay sends elsewhere. Waits for the record of a crashed one to expire.
        """
        from outbox.postgres.relays import RelayDestination

        own = RelayDestination(pool, self._table, destination=destination, name=self._name)
        first: OtherRelay | None = None

        async def acquire() -> None:
            nonlocal first
            while (other := await own.hold()) is not None:
                # A record that is renewed belongs to a running relay; that of a crashed one expires.
                if first is None:
                    first = other
                    _log.warning("the relay %s sends elsewhere, to %s: checking whether it runs", other.name, other.destination)
                elif other.held_until > first.held_until:
                    await refuse(other)
                if await stopping.wait(CHECK_AGAIN):
                    return

        async def renew() -> NoReturn:
            while True:
                await asyncio.sleep(pause_before_next(RENEW_EVERY))
                with suppress(DatabaseUnavailableError):  # the relay's lanes report the outage
                    if (other := await own.hold()) is not None:
                        await refuse(other)

        async def refuse(other: "OtherRelay") -> NoReturn:
            await own.refuse()
            raise ConfigurationError(
                f"this relay sends to {destination}, but the relay {other.name} sends the messages of {self._table} to "
                f"{other.destination}: all relays of a table send to one place. If the other is right, give this "
                "relay the same broker and exchange (OUTBOX_BROKER_URL, OUTBOX_EXCHANGE_NAME). If this one is right, stop the "
                "other relays, then start it: the record of a stopped relay expires within 20 s"
            )

        await wait_until_available(acquire, stopping, observer)
        try:
            yield renew
        finally:
            await own.release()


def _parse_clean_up(value: CleanUp | str | timedelta) -> tuple[bool, timedelta | None]:
    """Returns whether sent rows are kept, and for how long (None: forever). A time of zero means that they are not kept."""
    if isinstance(value, timedelta):
        return (True, seconds("clean_up_after", value)) if value else (False, None)
    if value not in tuple(CleanUp):
        raise ConfigurationError(f"clean_up_after must be 'IMMEDIATELY', 'NEVER' or a timedelta, not {value!r}")
    return value != IMMEDIATELY, None
