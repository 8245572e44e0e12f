"""`GET /health/verdict`: observes the outbox, queues, topology, components, pauses and dead letters, and judges them."""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Self

import asyncpg
from pydantic import Field

from outbox.admin.access import Viewer, area
from outbox.admin.admin import Admin
from outbox.admin.backlog import Backlog, BacklogView
from outbox.admin.backlog_reader import Count, MessageState, Relation, backlog_queries
from outbox.admin.brokers import BrokerKind, DeclaredConsumer, declared_consumers
from outbox.admin.cache import SingleFlightCache, Snapshot
from outbox.admin.dlq.routes import Letters, UnarchivedView
from outbox.admin.models import MOST_COUNTED, Model, Moment
from outbox.admin.problems import lacks_schema
from outbox.admin.topology import TopologySnapshot, TopologyView, find_problems
from outbox.admin.verdict.findings import (
    CODES,
    FindingCode,
    HealthFinding,
    Observations,
    ObservedLetters,
    ObservedQueue,
    Verdict,
    database_unreachable,
    judge,
)
from outbox.core import topics
from outbox.core.events import HealthJudged, InstallationMeasured, QueueMeasured
from outbox.dead_letters import DeadLetterFilter, DeadLetterStatus
from outbox.dead_letters.reader import GroupStatus
from outbox.errors import DatabaseUnavailableError, StatementTimeoutError
from outbox.postgres.pool import Connection, optional_tables
from outbox.reporting.components import ComponentKind, ComponentStatus, KnownComponent, recent_components
from outbox.reporting.pauses import Pause, pauses
from outbox.runtime.observing import build_observer

MAX_AGE = timedelta(seconds=2)
TIMEOUT = timedelta(seconds=20)
_MEASURING = timedelta(seconds=5)
_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_log = logging.getLogger("outbox")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its inputs."""

    verdict: Verdict
    observed: Observations
    topology: TopologySnapshot


class VerdictView:
    """Judges an admin's installation, at most every two seconds, for all clients together."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._judgement = SingleFlightCache(self._judge, max_age=MAX_AGE, timeout=TIMEOUT)
        self._sql = backlog_queries(admin.table)
        self._stopped: tuple[tuple[datetime, Sequence[str]] | None, Mapping[str, datetime]] = None, {}
        """Since when queues have not moved for longer than an hour, and the minute and the queues that this was read for."""

    async def now(self) -> Snapshot[Verdict]:
        """Returns the verdict, at most a few seconds old. An unavailable database is a finding, not an error."""
        try:
            found = await self.judgement()
        except (DatabaseUnavailableError, TimeoutError) as error:
            is_slow = isinstance(error, StatementTimeoutError)
            verdict = database_unreachable(str(error) or "timeout", lacks_schema=lacks_schema(error), is_slow=is_slow)
            return Snapshot(verdict, datetime.now(UTC))
        return Snapshot(found.value.verdict, found.as_of)

    async def judgement(self) -> "Snapshot[Judgement]":
        """Returns the verdict with its inputs. Raises errors of the observation, such as `DatabaseUnavailableError`."""
        found = await self._judgement.get()
        if found.error is not None:
            raise found.error
        return found

    async def measured(self) -> InstallationMeasured:
        """The figures that the latest verdict was made of, and what PostgreSQL says of dead rows.

        Raises `DatabaseUnavailableError`, and what observing raised.
        """
        observed = (await self.judgement()).value.observed
        async with self._admin.reading("measuring the database") as connection:
            oldest: float = await connection.fetchval(self._sql["oldest_transaction"])
            dead = await connection.fetch(self._sql["dead_rows"])
        components = Counter((one.kind.value, one.condition.value) for one in observed.components)
        states, depths = observed.backlog.figures.counts.states, observed.backlog.queues
        return InstallationMeasured(
            components={
                (kind.value, status.value): components[kind.value, status.value]
                for kind in ComponentKind
                for status in ComponentStatus
            },
            messages={state.value: states[state].value for state in MessageState if state is not MessageState.SENT},
            # What is known of a queue's age on RabbitMQ is how long it is at least.
            queues=None
            if depths is None or depths.problem
            else [
                QueueMeasured(
                    queue=each.name, depth=each.queued.value, oldest_due=timedelta(seconds=max(each.oldest_seconds or 0.0, 0.0))
                )
                for each in observed.queues
            ],
            oldest_transaction=timedelta(seconds=max(oldest, 0.0)),
            dead_rows={row["name"]: row["dead"] for row in dead},
            destinations={
                each.name: (each.unsent, timedelta(seconds=max(each.oldest_seconds or 0.0, 0.0)))
                for each in observed.backlog.figures.destinations
            },
        )

    async def close(self) -> None:
        """Cancels the observation."""
        await self._judgement.close()

    async def _judge(self) -> "Judgement":
        admin = self._admin
        # Before this method takes a connection itself: each part takes one, and waiting for them while holding one could
        # exhaust the small pool.
        backlog, topology, letters = await asyncio.gather(
            admin.shared(BacklogView).now(patience=None), admin.shared(TopologyView).now(), self._letters()
        )
        async with admin.reading("judging the installation") as connection:
            at: datetime = await connection.fetchval("select clock_timestamp()")
            components = await recent_components(connection, schema=admin.table.schema)
            requested: Sequence[Pause] = ()
            async with optional_tables(connection):
                requested = await pauses(connection, schema=admin.table.schema)
            queues = await self._queues(connection, at, backlog, topology.value, components)
        observed = Observations(
            at=at,
            broker=backlog.broker,
            backlog=backlog,
            queues=queues,
            topology=find_problems(topology.value),
            components=components,
            pauses=requested,
            letters=letters,
        )
        return Judgement(judge(observed, admin.thresholds), observed, topology.value)

    async def _letters(self) -> ObservedLetters:
        window = self._admin.thresholds.dead_letter_window
        letters = self._admin.shared(Letters)
        listing = letters.listing
        async with self._admin.reading("reading marks") as connection:
            marks = await letters.marks.all(connection)
        muted = tuple(group for group, mark in marks.items() if mark.status is GroupStatus.MUTED)
        open_ = DeadLetterFilter(status=DeadLetterStatus.OPEN, without_groups=muted)
        fresh = replace(open_, failed_after=datetime.now(UTC) - window)
        all_open, new = await listing.count(open_, most=MOST_COUNTED + 1), await listing.count(fresh, most=MOST_COUNTED + 1)
        unarchived, _ = await self._admin.shared(UnarchivedView).now()
        return ObservedLetters(
            open=_counted(all_open),
            fresh=_counted(new),
            open_since=await self._first(open_) if all_open else None,
            fresh_since=await self._first(fresh) if new else None,
            unarchived=unarchived.count if unarchived else 0,
        )

    async def _first(self, filter_: DeadLetterFilter) -> datetime | None:
        letters = await self._admin.shared(Letters).listing.list(filter_, limit=1, sort="oldest")
        return letters[0].failed_at if letters else None

    async def _queues(
        self,
        connection: Connection,
        at: datetime,
        backlog: Backlog,
        seen: TopologySnapshot,
        components: Sequence[KnownComponent],
    ) -> Sequence[ObservedQueue]:
        if backlog.broker is BrokerKind.POSTGRESQL:
            figures = backlog.figures.deliveries
            return [ObservedQueue(name=each.queue, queued=each.queued, oldest_seconds=each.oldest_seconds) for each in figures]
        consumers = declared_consumers(components)
        named = {consumer.queue for consumer in consumers} | {each.queue for each in seen.bindings or ()}
        depths = backlog.queues.queues if backlog.queues else ()
        found = [ObservedQueue(name=each.name, queued=Count(each.ready or 0)) for each in depths if each.name in named]
        ages = await self._ages(connection, at, [queue.name for queue in found if queue.queued.value], consumers)
        return [ObservedQueue(name=each.name, queued=each.queued, oldest_seconds=ages.get(each.name)) for each in found]

    async def _ages(
        self, connection: Connection, at: datetime, waiting: Sequence[str], consumers: Sequence[DeclaredConsumer]
    ) -> Mapping[str, float]:
        """Returns the minimum age of the first message of RabbitMQ queues without progress, in seconds.

        Queues whose messages are being handled, and those that were empty until a minute ago, have no age.
        """
        # RabbitMQ does not report ages. But if no message of a queue was handled since a message was sent to it, that message
        # is still in the queue. Statistics have a resolution of one minute, so only complete minutes count.
        if not waiting:
            return {}
        began, handled = await self._began(connection, waiting, consumers, "sent_since", _HOUR)
        # A queue that has stopped for longer than an hour is found by the last sends of a day, or its age would vanish: these
        # are many rows, with a resolution of a minute, and read once a minute.
        if stopped := tuple(queue for queue in waiting if queue not in began and queue not in handled):
            key = (at.replace(second=0, microsecond=0), stopped)
            if self._stopped[0] != key:
                self._stopped = key, (await self._began(connection, stopped, consumers, "last_sent", _DAY))[0]
            began = {**began, **self._stopped[1]}
        ages = {queue: (at - minute - _MINUTE).total_seconds() for queue, minute in began.items()}
        return {queue: age for queue, age in ages.items() if age > 0}

    async def _began(
        self,
        connection: Connection,
        waiting: Sequence[str],
        consumers: Sequence[DeclaredConsumer],
        sends: str,
        window: timedelta,
    ) -> tuple[Mapping[str, datetime], Mapping[str, datetime]]:
        """Returns the minute of the first of `sends` to each queue after its last handled message, and that of the latter."""
        handled: dict[str, datetime] = {}
        sent: Sequence[asyncpg.Record] = ()
        async with optional_tables(connection):
            rows = await connection.fetch(self._sql["last_handled"], waiting, window)
            handled = {row["queue"]: row["minute"] for row in rows}
            sent = await connection.fetch(self._sql[sends], window)
        began: dict[str, datetime] = {}
        for queue in waiting:
            keys = [consumer.binding_key for consumer in consumers if consumer.queue == queue]
            for row in sent:
                is_later = queue not in handled or row["minute"] > handled[queue]
                if is_later and any(topics.matches(key, row["routing_key"]) for key in keys):
                    began[queue] = row["minute"]
                    break
        return began, handled


async def measure_health(admin: Admin) -> None:
    """Sets the gauges of the verdict and of the installation. Await it before each exposition of metrics.

    Takes at most a few seconds, and never raises: an unavailable or slow database is a finding, and the other gauges keep the
    values that were read last.
    """
    view, observer = admin.shared(VerdictView), build_observer(enable_metrics=True)
    try:
        async with asyncio.timeout(_MEASURING.total_seconds()):
            verdict = (await view.now()).value
            with suppress(DatabaseUnavailableError):
                observer.notify(await view.measured())
    except TimeoutError:
        verdict = database_unreachable("timeout")
    except Exception:  # noqa: BLE001  the other metrics must still be exposed
        _log.exception("the health of the installation could not be judged")
        return
    found = Counter[str](each.code for each in verdict.findings)
    observer.notify(HealthJudged(status=verdict.status.value, findings={code: found[code] for code in CODES}))


def _counted(count: int) -> Count:
    return Count(count) if count <= MOST_COUNTED else Count(MOST_COUNTED, Relation.AT_LEAST)


router = area("health")


class HealthThresholdsResponse(Model):
    """Configured thresholds of findings."""

    late_after_seconds: float = Field(description="Age of a waiting message from which it is a warning.")
    overdue_after_seconds: float = Field(description="Age of a waiting message from which it is an error.")
    queue_depth: int = Field(description="Number of messages in a queue above which it is a warning.")
    lost_for_seconds: float = Field(description="How long a lost component that was not replaced is a finding.")
    dead_letter_window_seconds: float = Field(description="How long a dead letter counts as new.")


class VerdictFinding(Model):
    """A problem that needs attention."""

    code: FindingCode = Field(description="Stable code of the problem.")
    severity: Literal["warning", "error"]
    summary: str
    hint: str = Field(description="What to do about it.")
    started_at: Moment | None = Field(description="When the problem began. Null if unknown.")
    subject_kind: str = Field(
        description="`outbox`, `queue`, `exchange`, `destination`, `relay`, `worker`, `archiver`, `maintenance`, `broker` or "
        "`database`."
    )
    subject: str = Field(description="Name of the affected object. Empty if all of this kind are affected.")

    @classmethod
    def of(cls, found: HealthFinding) -> Self:
        """Converts a finding."""
        return cls(
            code=found.code,
            severity="error" if found.severity == "error" else "warning",
            summary=found.summary,
            hint=found.hint,
            started_at=found.since,
            subject_kind=found.subject_kind,
            subject=found.subject,
        )


class VerdictResponse(Model):
    """Health of the installation."""

    as_of: Moment
    status: Literal["ok", "warning", "error"] = Field(description="Highest severity of the findings.")
    started_at: Moment | None = Field(description="When the first finding of this severity began, if known.")
    findings: list[VerdictFinding] = Field(description="Findings, most severe first.")
    thresholds: HealthThresholdsResponse


@router.get("/health/verdict", operation_id="outbox_health_verdict", summary="Show Verdict")
async def show(context: Viewer) -> VerdictResponse:
    """Shows whether the installation is healthy, and if not, what is wrong, since when, and what to do.

    The verdict covers the age and depth of the outbox and of queues; queues without a consumer; pauses; held, stalled and
    parked messages; the topology; missing, late and lost components; and dead letters. The dashboard, `outbox status`,
    `outbox doctor` and the gauges `outbox_health_…` show the same verdict, which is computed at most every two seconds. A
    database that does not respond is a finding.
    """
    snapshot = await context.admin.shared(VerdictView).now()
    verdict, thresholds = snapshot.value, context.admin.thresholds
    return VerdictResponse(
        as_of=snapshot.as_of,
        status="error" if verdict.status == "error" else "warning" if verdict.status == "warning" else "ok",
        started_at=verdict.since,
        findings=[VerdictFinding.of(each) for each in verdict.findings],
        thresholds=HealthThresholdsResponse(
            late_after_seconds=thresholds.late_after.total_seconds(),
            overdue_after_seconds=thresholds.overdue_after.total_seconds(),
            queue_depth=thresholds.queue_depth,
            lost_for_seconds=thresholds.lost_for.total_seconds(),
            dead_letter_window_seconds=thresholds.dead_letter_window.total_seconds(),
        ),
    )
