"""Archiver: moves dead letters from the broker into the database. Creates the adapters for the engine's archiver."""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from outbox.core import arguments
from outbox.core.arguments import at_least_one, exactly_one, interval
from outbox.core.byte_limits import MAX_BATCH_BYTES
from outbox.core.urls import postgres_url, server_address
from outbox.engine.archive import ArchiveRunner, ArchiveSettings
from outbox.engine.lifecycle import GRACE_PERIOD, Stopping, run_until_stopped, wait_until_available
from outbox.engine.tasks import ungrouped
from outbox.errors import ConfigurationError
from outbox.masking import Masking
from outbox.runtime.brokers import open_dead_letter_queues, require_one_dead_letter_source
from outbox.runtime.observing import HEARTBEAT_INTERVAL, Reports, build_observer, observed_by
from outbox.runtime.tracer import open_meters, silenced

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection

    from outbox.ports import DeadLetterQueues
    from outbox.postgres.pool import Pool

_log = logging.getLogger("outbox")

POOL_SIZE = 3
"""Connections for recording, looking for queues, and counting, so that none waits for another."""


class Archiver:
    """Moves dead letters from the broker's queues into the database, where they can be listed, searched and requeued.

    Give exactly one of `db_engine_url` and `db_pool` (asyncpg, with room for three connections), and exactly one of
    `rmq_connection` (aio-pika), `rmq_connection_url` and `broker`. `broker` is an `amqp(s)://` URL or an object that implements
    `outbox.ports.DeadLetterQueues`. Connections and pools that you pass stay open. The PostgreSQL transport needs no archiver.

    Empties `{queue}.dlq` for each queue in `queues`, each queue that a worker reports, and each queue that is bound in the
    database. Looks for new queues every `discover_every` seconds, and sooner for a queue that is about to be created. `masking`
    sets what is hidden from previews and searches. `grace_period` is in seconds. `service_version` is the release of your
    service. Any number of archivers may share the queues. `max_batch_bytes` limits the bytes of dead letters in memory, or one
    dead letter of each queue. With `enable_otel_metrics`, the metrics are also reported to the meter provider of OpenTelemetry
    that the process has configured before the start.
    """

    def __init__(
        self,
        db_engine_url: str | None = None,
        db_pool: "Pool | None" = None,
        rmq_connection: "AbstractConnection | None" = None,
        rmq_connection_url: str | None = None,
        enable_metrics: bool = True,
        *,
        broker: "str | DeadLetterQueues | None" = None,
        queues: Iterable[str] = (),
        table_name: str = "outbox_table",
        masking: Masking | None = None,
        discover_every: float = 10.0,
        grace_period: float = GRACE_PERIOD.total_seconds(),
        name: str | None = None,
        service_version: str | None = None,
        reporting: bool = True,
        heartbeat_interval: float = HEARTBEAT_INTERVAL,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        enable_otel_metrics: bool = False,
    ) -> None:
        from outbox.postgres.queries import TableName

        exactly_one(db_engine_url=db_engine_url, db_pool=db_pool)
        self._broker = require_one_dead_letter_source(
            rmq_connection=rmq_connection, rmq_connection_url=rmq_connection_url, broker=broker
        )
        self._url = None if db_engine_url is None else postgres_url(db_engine_url)
        self._pool = arguments.pool(db_pool, size=POOL_SIZE)
        self._table = TableName.parse(table_name)
        self._enable_metrics = enable_metrics
        self._enable_otel_metrics = enable_otel_metrics
        self._masking = masking
        self._grace_period = arguments.grace_period(grace_period)
        names = frozenset([queues] if isinstance(queues, str) else queues)
        for queue in names:
            if not isinstance(queue, str) or not queue:
                raise ConfigurationError(f"queues must be non-empty names, not {queue!r}")
        self._settings = ArchiveSettings(
            queues=names,
            discover_every=interval("discover_every", discover_every),
            max_batch_bytes=at_least_one("max_batch_bytes", max_batch_bytes),
        )
        self._reports = Reports(
            kind="archiver",
            name=name,
            table=self._table,
            service_version=service_version,
            url=self._url,
            pool=db_pool,
            reporting=reporting,
            history=False,
            heartbeat_interval=heartbeat_interval,
        )
        self._stopping = Stopping()

    async def run(self, *, handle_signals: bool = True) -> None:
        """Archives until `stop()`, SIGINT or SIGTERM; then finishes the batches being recorded and returns the rest.

        Waits during outages of the database and the broker. Raises `SchemaError` if at the start a table or a permission is
        missing, and `MissingExtraError` for a missing dependency. Cancelled, it drains within the grace period and re-raises;
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
        from outbox.postgres.archive import PostgresArchive
        from outbox.postgres.pool import given_or_open

        meters = open_meters(enabled=self._enable_otel_metrics, source=self._broker)
        observer = build_observer(enable_metrics=self._enable_metrics, meters=meters)
        if isinstance(self._broker, str):
            _log.info("archiver started: dead letters come from %s", server_address(self._broker))
        async with given_or_open(self._pool, self._url, size=POOL_SIZE, application_name="outbox archiver") as pool:
            archive = PostgresArchive(pool, self._table, masking=self._masking)
            if not await wait_until_available(archive.check, stopping, observer):
                return
            queues = open_dead_letter_queues(self._broker)
            try:
                async with self._reports.open(observer, stopping) as reporter:
                    with ungrouped():
                        await ArchiveRunner(queues, archive, observed_by(observer, reporter), self._settings).run(stopping)
            finally:
                await queues.close()
