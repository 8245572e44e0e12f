"""Maintenance: prunes the tables next to the outbox and runs operators' operations, in one process for the whole system."""

from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import asyncpg

from outbox.core import arguments
from outbox.core.arguments import exactly_one, retention
from outbox.core.events import Dependency
from outbox.core.urls import postgres_url
from outbox.dead_letters.changes import subscribed_queues
from outbox.dead_letters.policies import RequeuePolicies
from outbox.dead_letters.runner import OperationsRunner
from outbox.engine.lifecycle import GRACE_PERIOD, Outage, Stopping, run_until_stopped, wait_until_available
from outbox.engine.maintenance import LEASE, Duty, MaintenanceRunner
from outbox.engine.tasks import ungrouped
from outbox.errors import BrokerUnavailableError, ConfigurationError
from outbox.postgres.history import drop_partitions, ensure_partitions
from outbox.postgres.inbox import PostgresInbox, inbox_table_of
from outbox.postgres.pool import borrow_from, given_or_open, taken_from, unavailable_errors
from outbox.postgres.pruning import PostgresLease, Pruning
from outbox.postgres.queries import TableName
from outbox.postgres.schema import check_outbox_table
from outbox.reporting.tables import thin_stats
from outbox.runtime.brokers import keeps_dead_letters, open_broker
from outbox.runtime.observing import Reports, build_observer, component_name, observed_by
from outbox.runtime.tracer import silenced

if TYPE_CHECKING:
    from outbox.dead_letters.changes import HasQueue
    from outbox.large_bodies import LargeBodies
    from outbox.postgres.pool import Pool

INBOX_RETENTION = timedelta(days=30)
HISTORY_RETENTION = timedelta(days=14)
DEAD_LETTER_RETENTION = timedelta(days=90)
AUDIT_RETENTION = timedelta(days=365)
KEY_RETENTION = timedelta(days=1)
"""How long the response to a request with an `Idempotency-Key` is kept."""
LOST_AFTER = timedelta(days=1)
"""How long a component without a heartbeat is listed."""
BATCH = 1_000
"""Most rows deleted in one statement."""
CONNECTIONS = 6
"""For the lease, for operations, and for each duty that may take long."""
_OFTEN, _SELDOM = timedelta(minutes=1), timedelta(minutes=10)
_SWEEP_EVERY = timedelta(hours=6)
_OPERATIONS_EVERY, _OPERATIONS_IDLE = timedelta(milliseconds=250), timedelta(seconds=1)
_RESULTS_EVERY, _RESULTS_IDLE = timedelta(seconds=1), timedelta(seconds=5)


class Maintenance:
    """Prunes old rows, creates and drops partitions of the history, thins statistics, and runs operations, until it is stopped.

    Any number may run: one holds the lease and works, the others stand by. Give exactly one of `db_engine_url` and `db_pool`
    (asyncpg, with room for seven connections). `broker` is the broker of `MessageRelay`, to detect a requeue to a queue that
    does not exist. Without it, or with a `postgresql://` URL, the queues are those of the database.

    `inbox_retention` is how long an inbox recognizes duplicates, `history_retention` how many days of history are kept,
    `dead_letter_retention` how long dead letters stay after they were requeued or discarded, and `audit_retention` how long the
    audit log of the admin is kept. Each is at least a minute; for the last two, None means forever. `large_bodies`, an
    `outbox.large_bodies.LargeBodies`, is swept: see `sweep_large_bodies`. `service_version` is the release of your service.
    Raises `ConfigurationError` for invalid arguments.
    """

    def __init__(
        self,
        db_engine_url: str | None = None,
        db_pool: "Pool | None" = None,
        *,
        broker: str | None = None,
        table_name: str = "outbox_table",
        exchange_name: str = "outbox",
        inbox_retention: float | timedelta = INBOX_RETENTION,
        history_retention: float | timedelta = HISTORY_RETENTION,
        dead_letter_retention: float | timedelta | None = DEAD_LETTER_RETENTION,
        audit_retention: float | timedelta | None = AUDIT_RETENTION,
        large_bodies: "LargeBodies | None" = None,
        enable_metrics: bool = True,
        grace_period: float = GRACE_PERIOD.total_seconds(),
        name: str | None = None,
        service_version: str | None = None,
    ) -> None:
        exactly_one(db_engine_url=db_engine_url, db_pool=db_pool)
        self._url = None if db_engine_url is None else postgres_url(db_engine_url)
        self._pool = db_pool
        self._broker = broker
        self._table = TableName.parse(table_name)
        self._exchange_name = exchange_name
        self._inbox_retention = retention("inbox_retention", inbox_retention)
        self._history_retention = retention("history_retention", history_retention)
        self._dead_letter_retention = (
            None if dead_letter_retention is None else retention("dead_letter_retention", dead_letter_retention)
        )
        self._audit_retention = None if audit_retention is None else retention("audit_retention", audit_retention)
        self._large_bodies = large_bodies
        self._enable_metrics = enable_metrics
        self._grace_period = arguments.grace_period(grace_period)
        self._name = component_name(name)
        self._reports = Reports(
            kind="maintenance",
            name=name,
            table=self._table,
            service_version=service_version,
            url=self._url,
            pool=db_pool,
        )
        self._stopping = Stopping()

    async def run(self, *, handle_signals: bool = True) -> None:
        """Works until `stop()`, SIGINT or SIGTERM; then finishes the running batch and releases the lease.

        Waits during outages. Raises `SchemaError` if at the start the outbox table is missing or belongs to another release.
        """
        await run_until_stopped(
            silenced(self._work), self._stopping, grace_period=self._grace_period, handle_signals=handle_signals
        )

    def stop(self) -> None:
        """Asks `run` to finish and return. May be called from any thread or signal handler, and more than once."""
        self._stopping.request()

    async def _work(self, stopping: Stopping) -> None:
        if self._pool is not None and self._pool.get_max_size() <= CONNECTIONS:
            raise ConfigurationError(
                f"db_pool has room for {self._pool.get_max_size()} connections, but {CONNECTIONS + 1} are needed"
            )
        observer = build_observer(enable_metrics=self._enable_metrics)
        with ungrouped():
            async with AsyncExitStack() as stack:
                opening = given_or_open(self._pool, self._url, size=CONNECTIONS, application_name="outbox maintenance")
                pool = await stack.enter_async_context(opening)
                if not await wait_until_available(partial(self._check, pool), stopping, observer):
                    return
                # RabbitMQ knows which queues exist if events go there, otherwise the database does.
                has_queue = subscribed_queues(pool, self._table)
                if self._broker is not None and keeps_dead_letters(self._broker):
                    # `_observe_outages` reports the outages of this broker; its connection would report them once more.
                    silent = build_observer(enable_metrics=False)
                    broker = open_broker(self._broker, exchange_name=self._exchange_name, table=self._table, observer=silent)
                    stack.push_async_callback(broker.close)
                    has_queue = _observe_outages(broker.has_queue, Outage(Dependency.BROKER, observer))
                reporter = await stack.enter_async_context(self._reports.open(observer, stopping))
                lease = PostgresLease(pool, self._table, duty="maintenance", holder=self._name, lasts=LEASE)
                await MaintenanceRunner(lease, self._duties(pool, has_queue), observed_by(observer, reporter)).run(stopping)

    async def _check(self, pool: "Pool") -> None:
        with unavailable_errors("checking the tables"):
            async with taken_from(pool) as connection:
                await check_outbox_table(connection, self._table)

    # --- duties --------------------------------------------------------------------------------------------------------

    def _duties(self, pool: "Pool", has_queue: "HasQueue") -> Sequence[Duty]:
        inbox, pruning = PostgresInbox(borrow_from(pool), inbox_table_of(self._table)), Pruning(pool, self._table)
        exchange = self._exchange_name if self._broker is not None and keeps_dead_letters(self._broker) else None
        runner = OperationsRunner(pool, self._table, has_queue, exchange_name=exchange)
        policies = RequeuePolicies(pool, self._table, retention=self._inbox_retention)
        schema, at_once = self._table.schema, timedelta(0)

        async def do_operations() -> int:
            try:
                return await runner.run_once()
            except BrokerUnavailableError:  # the operation waits for its broker, and `_observe_outages` reports the outage
                return 0

        duties = [
            # Often, because an operator watches the progress.
            Duty(name="operations", every=_OPERATIONS_EVERY, idle=_OPERATIONS_IDLE, work=do_operations),
            Duty(name="results of operations found", every=_RESULTS_EVERY, idle=_RESULTS_IDLE, work=runner.refresh_results),
            Duty(name="requeue policies applied", every=_OFTEN, work=policies.apply),
            Duty(name="inbox marks pruned", every=_OFTEN, work=partial(inbox.prune, self._inbox_retention, BATCH)),
            Duty(
                name="history partitions created",
                every=_SELDOM,
                work=self._on_pool(pool, ensure_partitions, schema=schema),
            ),
            Duty(
                name="old history dropped",
                every=_SELDOM,
                work=self._on_pool(pool, drop_partitions, self._history_retention, schema=schema),
            ),
            Duty(name="statistics thinned", every=_SELDOM, work=self._on_pool(pool, thin_stats, schema=schema)),
            Duty(name="lost components forgotten", every=_SELDOM, work=partial(pruning.components, LOST_AFTER, BATCH)),
            Duty(name="ended pauses forgotten", every=_SELDOM, work=partial(pruning.pauses, LOST_AFTER, BATCH)),
            # Expired data of the admin.
            Duty(name="ended sessions forgotten", every=_SELDOM, work=partial(pruning.sessions, at_once, BATCH)),
            Duty(name="failed logins forgotten", every=_SELDOM, work=partial(pruning.login_failures, at_once, BATCH)),
            Duty(name="expired dry runs forgotten", every=_SELDOM, work=partial(pruning.confirmations, at_once, BATCH)),
            Duty(name="old answers forgotten", every=_SELDOM, work=partial(pruning.idempotency_keys, KEY_RETENTION, BATCH)),
        ]
        if (large := self._large_bodies) is not None:
            sweep = partial(large.sweep, pruning.referenced_bodies)
            duties.append(Duty(name="unreferenced large bodies deleted", every=_SWEEP_EVERY, work=sweep))
        if (audit := self._audit_retention) is not None:
            duties += [
                Duty(name="old audit pruned", every=_SELDOM, work=partial(pruning.audit, audit, BATCH)),
                Duty(name="old alerts pruned", every=_SELDOM, work=partial(pruning.alerts, audit, BATCH)),
            ]
        if (kept := self._dead_letter_retention) is not None:
            duties += [
                Duty(name="resolved dead letters pruned", every=_SELDOM, work=partial(pruning.dead_letters, kept, BATCH)),
                Duty(name="ended operations pruned", every=_SELDOM, work=partial(pruning.operations, kept, BATCH)),
            ]
        return duties

    def _on_pool(
        self, pool: "Pool", work: Callable[..., Awaitable[int]], *arguments: object, schema: str | None
    ) -> Callable[[], Awaitable[int]]:
        """Runs `work` on a connection of the pool. Returns 0 if its table does not exist."""

        async def with_connection() -> int:
            with unavailable_errors("maintaining history and statistics"):
                async with taken_from(pool) as connection:
                    try:
                        return await work(connection, *arguments, schema=schema)
                    except asyncpg.UndefinedTableError:
                        return 0

        return with_connection


async def sweep_large_bodies(large_bodies: "LargeBodies", *db_engine_urls: str, table_name: str = "outbox_table") -> int:
    """Deletes the bodies in a store that no row has referred to for its retention, and returns how many.

    Name all databases whose messages have bodies in the store: those of publishers, and those of workers that store messages.
    Run it about daily: one run marks what has no reference, and a later one deletes it. Raises `ConfigurationError` without a
    database, `DatabaseUnavailableError`, `SchemaError` if a database lacks a table, and the errors of the store.
    """
    if not db_engine_urls:
        raise ConfigurationError("give all databases whose messages have bodies in the store: otherwise none would be kept")
    table = TableName.parse(table_name)
    async with AsyncExitStack() as stack:
        databases = []
        for url in db_engine_urls:
            opening = given_or_open(None, postgres_url(url), size=1, application_name="outbox sweep")
            databases.append(Pruning(await stack.enter_async_context(opening), table))

        async def referenced(keys: Sequence[str]) -> Set[str]:
            return set().union(*[await database.referenced_bodies(keys) for database in databases])

        return await large_bodies.sweep(referenced)


def _observe_outages(has_queue: "HasQueue", outage: Outage) -> "HasQueue":
    """Wraps `has_queue` to report when the broker is lost and when it is available again."""

    async def observed_has_queue(queue: str) -> bool:
        try:
            exists = await has_queue(queue)
        except BrokerUnavailableError as error:
            outage.lost(error)
            raise
        outage.answers()
        return exists

    return observed_has_queue
