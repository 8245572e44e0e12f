"""`GET /queues` and `GET /queues/{name}`: consumers, depth, rates and handling times of each queue."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Literal

from fastapi import Path
from pydantic import Field

from outbox.admin.access import ANY_TEXT, Viewer, area
from outbox.admin.admin import Admin
from outbox.admin.backlog import Counted, QueueDepth, drained_in, queue_depths
from outbox.admin.backlog_reader import Subscription, backlog_queries
from outbox.admin.brokers import BrokerKind
from outbox.admin.cache import SingleFlightCache, Snapshot
from outbox.admin.components import PauseResponse, pause_responses
from outbox.admin.models import MOST_COUNTED, Error, Model, Moment, Total, to_total
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.admin.stats import QUANTILES, quantile
from outbox.admin.verdict.findings import HealthFinding, Observations
from outbox.admin.verdict.routes import Judgement, VerdictFinding, VerdictView
from outbox.core import topics
from outbox.errors import DatabaseUnavailableError
from outbox.postgres.pool import Connection, optional_tables
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names
from outbox.reporting.components import ComponentKind, ComponentStatus, KnownComponent
from outbox.reporting.pauses import PauseScope
from outbox.reporting.statistics import OTHERS

MAX_AGE = timedelta(seconds=2)
TIMEOUT = timedelta(seconds=20)
PATIENCE = timedelta(milliseconds=50)
"""How long a response waits for new figures if older ones can be returned."""
STEP = timedelta(minutes=5)
"""Interval of rates and handling times, and of one value of a trend."""
STEPS = 12
_DAY_BEFORE = -1

QueueState = Literal["ok", "paused", "no_consumer", "behind", "deep", "failing", "misconfigured", "missing"]
_STATES: Mapping[str, QueueState] = {
    "queue_late": "behind",
    "queue_deep": "deep",
    "consumer_failing": "failing",
    "queue_missing": "missing",
    "queue_without_consumer": "no_consumer",
    "subscription_without_consumer": "no_consumer",
}


class HandlingTimes(Model):
    """Percentiles of a handler's run time in seconds, estimated from buckets; null: it did not run."""

    p50: float | None
    p95: float | None
    p99: float | None


class QueueBinding(Model):
    """A binding that routes messages to a queue."""

    exchange: str
    binding_key: str


class QueueConsumer(Model):
    """A worker that consumes a queue, or was lost while consuming it."""

    component_id: str
    name: str
    host: str
    process_id: int
    version: str
    service_version: str | None = Field(description="Release of the service; null: not configured.")
    status: ComponentStatus
    started_at: Moment
    handler: str = Field(description="The qualified name of its callback. Empty: the worker's release does not report it.")
    prefetch_count: int | None
    state: str = Field(description="`paused` or `failing` for this queue, or the worker's state, such as `running`.")


class QueueRates(Model):
    """Messages per second over the last five complete minutes, or since data exists; null: no data."""

    incoming: float | None = Field(description="Messages that relays sent with a routing key that the queue is bound to.")
    outgoing: float | None = Field(description="Messages that were handled or dead-lettered.")


class QueueSummary(Model):
    """A queue. Fields without data, or that the broker does not report, are null."""

    name: str
    exists: bool
    state: QueueState = Field(
        description="The most severe state: findings that are errors, then a pause, then other findings. `behind`: messages "
        "wait too long; `deep`: too many messages wait; `failing`: the consumer pauses itself because the handler fails; "
        "`misconfigured`: limits or bindings are wrong."
    )
    handlers: list[str] = Field(description="Qualified names of the callbacks that handle its messages.")
    bindings: list[QueueBinding]
    queued: Counted | None = Field(description="Waiting for a worker.")
    in_flight: Counted | None = Field(description="Taken by a worker and not yet settled.")
    retrying: Counted | None = Field(description="Waiting for their next attempt; null on RabbitMQ, which uses delay queues.")
    oldest_age_seconds: float | None = Field(description="How long the oldest message has been waiting, at least.")
    per_second: QueueRates
    drained_in_seconds: float | None = Field(
        description="Time until nothing waits, at the current rates; null: the queue is not shrinking, or no data."
    )
    failed_share: float | None = Field(description="Share of attempts that failed, from 0 to 1, in the same five minutes.")
    handling_seconds: HandlingTimes = Field(description="Handling times in the same five minutes.")
    handling_seconds_day_before: HandlingTimes = Field(description="Handling times in one hour, a day earlier.")
    handled_counts: list[int] = Field(description="Successful attempts in each step of the last hour, oldest first.")
    failed_counts: list[int] = Field(description="Failed attempts in each step of the last hour.")
    consumers: list[QueueConsumer]
    pauses: list[PauseResponse] = Field(description="Active pauses of this queue, and of all workers.")
    dead_letter_count: Total | None = Field(description="Open dead letters of the queue.")
    findings: list[VerdictFinding] = Field(description="Findings of the health verdict about this queue, most severe first.")


class QueueList(Model):
    """Every queue that a worker consumes, or that is bound to an exchange."""

    as_of: Moment
    broker: BrokerKind
    broker_error: Error | None = Field(description="Why the broker's figures are missing.")
    step_seconds: float = Field(description="Length of a step, and the interval of rates.")
    step_starts_at: list[Moment] = Field(description="Start of each step of the last hour.")
    items: list[QueueSummary]


class WorkerStart(Model):
    """A start of a worker that consumes the queue."""

    started_at: Moment
    version: str
    service_version: str | None
    name: str
    host: str


class QueueDetail(QueueSummary):
    """A queue, and the starts of its workers with their versions."""

    as_of: Moment
    broker: BrokerKind
    step_seconds: float
    step_starts_at: list[Moment]
    worker_starts: list[WorkerStart] = Field(description="Worker starts in the last day, newest first.")


@dataclass(slots=True)
class Activity:
    """Activity of workers in one queue, in one step or one hour."""

    handled: int = 0
    failed: int = 0
    settled: int = 0
    latency: Sequence[int] = ()

    @property
    def times(self) -> HandlingTimes:
        """Percentiles of the handling time."""
        return HandlingTimes(**{name: quantile(self.latency, share) for name, share in QUANTILES.items()})


NO_ACTIVITY = Activity()


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures from the database: activity by queue and step, sent messages by routing key, open dead letters by queue.

    `seconds` is the part of the last step that has data: less than a step for a new installation.
    """

    activity: Mapping[tuple[str, int], Activity]
    sent: Mapping[str, int]
    dead_letters: Mapping[str, int]
    seconds: float


class QueuesView:
    """Caches the queues of an admin. Concurrent requests share one read."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._sql = queries("queues.sql", **satellite_names(admin.table.schema))
        self._settings = backlog_queries(admin.table)["settings"]
        self._list = SingleFlightCache(self._read, max_age=MAX_AGE, timeout=TIMEOUT)

    async def now(self) -> "Snapshot[tuple[QueueList, Observations]]":
        """Returns queues that are seconds old at most. Raises `DatabaseUnavailableError`, also for a slow database."""
        try:
            found = await self._list.get(patience=PATIENCE if self._list.has_usable else None)
        except TimeoutError as error:
            raise DatabaseUnavailableError(str(error) or "the database is too slow") from error
        if found.error is not None:
            raise found.error
        return found

    async def close(self) -> None:
        """Cancels a running read."""
        await self._list.close()

    async def _read(self) -> tuple[QueueList, Observations]:
        judged = (await self._admin.shared(VerdictView).judgement()).value
        # The bindings of each queue: the broker's, or those that workers report if it does not list them.
        topology = judged.topology
        names: dict[str, list[Subscription]] = {each.queue: [] for each in judged.observed.backlog.figures.deliveries}
        reported = [Subscription(topology.exchange, each.queue, each.binding_key) for each in topology.consumers]
        for binding in reported:
            names.setdefault(binding.queue, [])
        for binding in dict.fromkeys(reported if topology.bindings is None else topology.bindings):
            names.setdefault(binding.queue, []).append(binding)
        names = dict(sorted(names.items()))
        async with self._admin.reading("reading queues") as connection:
            minute: datetime = await connection.fetchval("select date_trunc('minute', clock_timestamp())")
            begins = minute - STEPS * STEP
            figures = await self._figures(connection, begins, list(names))
        observed = judged.observed
        depth = {each.queue: each for each in queue_depths(observed.backlog)}
        depths = observed.backlog.queues
        problem = "the broker has not answered yet" if depths is None else depths.problem
        queues = QueueList(
            as_of=observed.at,
            broker=observed.broker,
            broker_error=None if problem is None else Error(type="", message=problem),
            step_seconds=STEP.total_seconds(),
            step_starts_at=[begins + number * STEP for number in range(STEPS)],
            items=[_summary(name, bindings, depth.get(name), judged, figures) for name, bindings in names.items()],
        )
        return queues, observed

    async def _figures(self, connection: Connection, begins: datetime, names: Sequence[str]) -> Figures:
        async with optional_tables(connection):
            await connection.execute(self._settings)
            activity = await connection.fetch(self._sql["activity"], begins)
            sent = await connection.fetch(self._sql["sent"], begins + (STEPS - 1) * STEP)
            dead = await connection.fetch(self._sql["dead_letters"], names, MOST_COUNTED + 1)
            since: datetime | None = await connection.fetchval(self._sql["known_since"], begins)
            return Figures(
                activity={
                    (row["queue"], row["step"]): Activity(
                        handled=row["handled"],
                        failed=row["failed"],
                        settled=row["settled"],
                        latency=[count or 0 for count in row["latency"]],
                    )
                    for row in activity
                },
                sent={row["routing_key"]: row["sent"] for row in sent},
                dead_letters={row["queue"]: row["count"] for row in dead},
                seconds=0.0 if since is None else min(STEP, begins + STEPS * STEP - since).total_seconds(),
            )
        return Figures({}, {}, {}, 0.0)


def _summary(
    name: str, bindings: Sequence[Subscription], depth: QueueDepth | None, judged: Judgement, figures: Figures
) -> QueueSummary:
    observed = judged.observed
    consumers = list(_consumers(name, observed.components))
    queued = None if depth is None else depth.queued
    now = figures.activity.get((name, STEPS - 1), NO_ACTIVITY)
    attempts = now.handled + now.failed
    is_consumed = any(each.status is not ComponentStatus.LOST for each in consumers)
    rates = _rates(now, bindings, figures, is_consumed=is_consumed)
    ages = {each.name: each.oldest_seconds for each in observed.queues}
    steps = [figures.activity.get((name, step), NO_ACTIVITY) for step in range(STEPS)]
    dead = figures.dead_letters.get(name)
    pauses = [
        pause
        for pause in observed.pauses
        if (pause.scope is PauseScope.QUEUE and pause.name == name) or (pause.scope is PauseScope.WORKER and not pause.name)
    ]
    # The rates are those of the last minutes, in which a queue may still have been consumed.
    outgoing = rates.outgoing if is_consumed and not pauses else None
    drained = drained_in(queued.value, incoming=rates.incoming, outgoing=outgoing) if queued is not None else None
    findings = [each for each in judged.verdict.findings if each.subject_kind == "queue" and each.subject == name]
    exists = depth is None or depth.exists
    return QueueSummary(
        name=name,
        exists=exists,
        state=_state(findings, exists=exists, is_paused=bool(pauses), is_consumed=is_consumed),
        handlers=sorted({each.handler for each in consumers if each.handler}),
        bindings=[QueueBinding(exchange=each.exchange, binding_key=each.key) for each in bindings],
        queued=queued,
        in_flight=None if depth is None else depth.in_flight,
        retrying=None if depth is None else depth.retrying,
        oldest_age_seconds=None if (age := ages.get(name)) is None else round(max(age, 0.0), 3),
        per_second=rates,
        drained_in_seconds=None if drained is None else round(drained, 3),
        failed_share=round(now.failed / attempts, 4) if attempts else None,
        handling_seconds=now.times,
        handling_seconds_day_before=figures.activity.get((name, _DAY_BEFORE), NO_ACTIVITY).times,
        handled_counts=[step.handled for step in steps],
        failed_counts=[step.failed for step in steps],
        consumers=consumers,
        pauses=pause_responses(pauses, observed.components),
        dead_letter_count=None if dead is None else to_total(dead),
        findings=[VerdictFinding.of(each) for each in findings],
    )


def _state(findings: Sequence[HealthFinding], *, exists: bool, is_paused: bool, is_consumed: bool) -> QueueState:
    """Returns the most severe state. Findings are in the order of the verdict, most severe first."""
    worst = next((each for each in findings if each.code != "paused"), None)
    if not exists:
        return "missing"
    if is_paused and (worst is None or worst.severity != "error"):
        return "paused"
    if worst is not None:
        return _STATES.get(worst.code, "misconfigured")
    return "ok" if is_consumed else "no_consumer"


def _consumers(name: str, components: Iterable[KnownComponent]) -> Iterable[QueueConsumer]:
    for component in components:
        if component.kind is not ComponentKind.WORKER or component.condition is ComponentStatus.STOPPED:
            continue
        for consumer in component.consumers:
            if consumer.get("queue") != name:
                continue
            state = str(component.activity.get("state", "")).replace(" ", "_")
            failing = component.activity.get("failing_queues")
            if component.has_paused(name):
                state = "paused"
            elif isinstance(failing, list) and name in failing:
                state = "failing"
            elif state == "paused":
                state = "running"
            prefetch = consumer.get("prefetch_count")
            yield QueueConsumer(
                component_id=component.id,
                name=component.name,
                host=component.host,
                process_id=component.process_id,
                version=component.version,
                service_version=component.service_version,
                status=component.condition,
                started_at=component.started_at,
                handler=str(consumer.get("handler") or ""),
                prefetch_count=prefetch if isinstance(prefetch, int) else None,
                state=state,
            )


def _rates(now: Activity, bindings: Sequence[Subscription], figures: Figures, *, is_consumed: bool) -> QueueRates:
    seconds, incoming = figures.seconds, None
    if seconds <= 0:
        return QueueRates(incoming=None, outgoing=None)
    # With more routing keys than statistics distinguish, some messages are counted without their key, so no sum is exact.
    if bindings and OTHERS not in figures.sent:
        sent = tuple(sorted(figures.sent))
        incoming = sum(figures.sent[key] for key in frozenset().union(*(_matching(each.key, sent) for each in bindings)))
    return QueueRates(
        incoming=None if incoming is None else round(incoming / seconds, 3),
        outgoing=round(now.settled / seconds, 3) if is_consumed or now is not NO_ACTIVITY else None,
    )


# Cached: routing keys rarely change, and matching hundreds of bindings with hundreds of keys takes long.
@lru_cache(maxsize=4_096)
def _matching(binding_key: str, routing_keys: tuple[str, ...]) -> frozenset[str]:
    """Returns the routing keys that match a binding key."""
    return frozenset(key for key in routing_keys if topics.matches(binding_key, key))


queues = area("queues")


@queues.get("/queues", operation_id="outbox_queues_list", summary="List Queues")
async def list_queues(context: Viewer) -> QueueList:
    """Lists queues: handlers, consumers, depth, age, rates, failures, handling times, pauses, dead letters, and findings.

    Includes queues that a worker has consumed in the last day, and queues that are bound to an exchange. Rates, failures and
    handling times cover the last five complete minutes of all workers. Figures are read at most every two seconds. Fields that
    come from the broker are null while it is unavailable.
    """
    return (await context.admin.shared(QueuesView).now()).value[0]


@queues.get(
    f"/queues/{{name:{ANY_TEXT}}}",
    operation_id="outbox_queues_show",
    summary="Show Queue",
    responses=problem_responses(Code.NOT_FOUND),
)
async def show_queue(context: Viewer, name: Annotated[str, Path(max_length=255)]) -> QueueDetail:
    """Shows one queue with the fields of the list, and the starts of its workers with their versions."""
    listed, observed = (await context.admin.shared(QueuesView).now()).value
    found = next((each for each in listed.items if each.name == name), None)
    if found is None:
        raise Problem(Code.NOT_FOUND, f"no queue {name!r}: no worker consumes it, and no binding names it")
    starts = [
        WorkerStart(
            started_at=one.started_at,
            version=one.version,
            service_version=one.service_version,
            name=one.name,
            host=one.host,
        )
        for one in sorted(observed.components, key=lambda one: one.started_at, reverse=True)
        if any(consumer.get("queue") == name for consumer in one.consumers)
    ]
    return QueueDetail(
        **{field: getattr(found, field) for field in QueueSummary.model_fields},
        as_of=listed.as_of,
        broker=listed.broker,
        step_seconds=listed.step_seconds,
        step_starts_at=listed.step_starts_at,
        worker_starts=starts,
    )
