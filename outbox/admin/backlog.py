"""`GET /backlog`: waiting messages in the outbox and at the broker, counted at most every two seconds."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import Annotated, Any, Literal, Self

from fastapi import Query
from pydantic import Field

from outbox.admin.access import Viewer, area
from outbox.admin.admin import Admin
from outbox.admin.backlog_reader import ZERO, BacklogFigures, BacklogReader, Count, MessageState
from outbox.admin.brokers import BrokerKind, BrokerView, Depths, declared_consumers
from outbox.admin.cache import SingleFlightCache, Snapshot
from outbox.admin.models import Error, Model, Moment, Request
from outbox.errors import DatabaseUnavailableError
from outbox.postgres.relays import MOST_UNSENT_COUNTED, DestinationBacklog
from outbox.reporting.components import recent_components

RATE_WINDOW_SECONDS = 300.0
"""The window of rates."""
MIN_RATE_SECONDS = 1.0
"""Shortest interval that a rate is computed over."""


@dataclass(slots=True)
class Intake:
    """Rate of inserts, from samples of the number of ids. Times are seconds of a monotonic clock."""

    _samples: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, at: float, inserted: int) -> None:
        """Adds a sample."""
        # A lower number means that the table was replaced or truncated: earlier samples do not compare.
        if self._samples and inserted < self._samples[-1][1]:
            self._samples.clear()
        self._samples.append((at, inserted))
        # Keeps two samples however old, since a rate needs both.
        while len(self._samples) > 2 and self._samples[1][0] <= at - RATE_WINDOW_SECONDS:
            self._samples.popleft()

    @property
    def per_second(self) -> float | None:
        """Inserts per second over the window, or since the first sample; None until there are two samples."""
        if not self._samples:
            return None
        (began, before), (at, now) = self._samples[0], self._samples[-1]
        return (now - before) / (at - began) if at - began >= MIN_RATE_SECONDS else None


def drained_in(pending: int, *, incoming: float | None, outgoing: float | None) -> float | None:
    """Seconds until nothing is due at these rates; None if the backlog does not shrink, or a rate is unknown."""
    if pending == 0:
        return 0.0
    if outgoing is None or incoming is None or outgoing <= incoming:
        return None
    return pending / (outgoing - incoming)


MAX_AGE = timedelta(seconds=2)
PATIENCE = timedelta(milliseconds=120)
"""How long a response waits for new figures if older ones or an estimate can be returned."""
FIRST_PATIENCE = timedelta(seconds=1)
"""How long a response waits for the broker if there are no recent depths."""
DATABASE_TIMEOUT = timedelta(seconds=10)
BROKER_TIMEOUT = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Backlog:
    """The figures of `as_of`. `complete` False: an estimate. `queues` are the broker's, None if it has not answered."""

    figures: BacklogFigures
    as_of: datetime
    complete: bool
    stale: bool
    incoming: float | None
    queues: Depths | None
    broker: BrokerKind


class BacklogView:
    """Caches the backlog of one admin. Concurrent requests share one fetch of each part."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._broker = admin.shared(BrokerView)
        self._reader = BacklogReader(admin.table)
        self._intake = Intake()
        self._figures = SingleFlightCache(self._read, max_age=MAX_AGE, timeout=DATABASE_TIMEOUT)
        self._estimate = SingleFlightCache(self._read_estimate, max_age=MAX_AGE, timeout=DATABASE_TIMEOUT)
        self._depths = SingleFlightCache(self._read_depths, max_age=MAX_AGE, timeout=BROKER_TIMEOUT)

    async def now(self, *, patience: timedelta | None = PATIENCE) -> Backlog:
        """Returns the latest figures that are ready within `patience`, or an estimate; None waits for complete figures.

        Raises the error of the read if there are no figures at all.
        """
        figures, depths = await asyncio.gather(self._latest(patience), self._latest_depths(patience))
        snapshot, complete = figures
        return Backlog(
            figures=snapshot.value,
            as_of=snapshot.as_of,
            complete=complete,
            stale=snapshot.error is not None,
            incoming=self._intake.per_second,
            queues=depths,
            broker=self._broker.kind,
        )

    async def figures(self) -> Snapshot[BacklogFigures] | None:
        """Returns the database's figures, or an estimate; None if the database is unavailable."""
        try:
            return (await self._latest())[0]
        except (DatabaseUnavailableError, TimeoutError):
            return None

    async def close(self) -> None:
        """Cancels running fetches."""
        for snapshots in (self._figures, self._estimate, self._depths):
            await snapshots.close()

    async def _latest(self, patience: timedelta | None = PATIENCE) -> tuple[Snapshot[BacklogFigures], bool]:
        """Returns figures, and whether they are complete."""
        try:
            return await self._figures.get(patience=patience), True
        except TimeoutError:
            return await self._estimate.get(), False

    async def _latest_depths(self, patience: timedelta | None = PATIENCE) -> Depths | None:
        """Returns the broker's depths; None if it has not answered in time."""
        if self._broker.kind is not BrokerKind.RABBITMQ:
            return Depths()
        if patience is not None and not self._depths.has_usable:
            # The connection to the broker may have to be opened first.
            patience = FIRST_PATIENCE
        try:
            snapshot = await self._depths.get(patience=patience)
        except (DatabaseUnavailableError, TimeoutError):
            return None
        return snapshot.value if snapshot.error is None else Depths(problem="the broker no longer answers")

    async def _read(self) -> BacklogFigures:
        async with self._admin.reading("counting the backlog") as connection:
            # Taken before the statement: ids assigned while it runs belong to the next interval.
            at = monotonic()
            deliveries = self._broker.kind is BrokerKind.POSTGRESQL
            figures = await self._reader.figures(connection, deliveries=deliveries)
        if figures.inserted is not None:
            self._intake.add(at, figures.inserted)
        return figures

    async def _read_estimate(self) -> BacklogFigures:
        async with self._admin.reading("estimating the backlog") as connection:
            return await self._reader.estimate(connection)

    async def _read_depths(self) -> Depths:
        async with self._admin.reading("listing queues") as connection:
            consumers = declared_consumers(await recent_components(connection, schema=self._admin.table.schema))
        if not consumers:
            return await self._broker.depths(())
        from outbox.transports.rabbitmq.topology import dead_letter_queue, delay_resource

        exchange = self._admin.exchange_name
        queues = {consumer.queue for consumer in consumers}
        # Messages that wait for a retry are not in the queue of their consumer, but in one of their delay.
        delays = {delay_resource(exchange, delay) for consumer in consumers for delay in consumer.delays}
        return await self._broker.depths(sorted({*queues, *map(dead_letter_queue, queues), *delays}))


WAITING = (
    MessageState.PENDING,
    MessageState.SCHEDULED,
    MessageState.HELD,
    MessageState.STALLED,
    MessageState.BLOCKED,
    MessageState.RETRYING,
    MessageState.PARKED,
)


class Counted(Model):
    """A number of messages, exact or estimated."""

    value: int
    relation: Literal["eq", "about", "gte"] = Field(
        description="`eq`: exact; `about`: estimated from a sample; `gte`: a lower bound, because counting stopped at a limit."
    )


class StateCounts(Model):
    """Messages of the outbox by state."""

    pending: Annotated[Counted, Field(description="Due now, or being sent.")]
    scheduled: Annotated[Counted, Field(description="Due later, as the publisher requested.")]
    held: Annotated[Counted, Field(description="Unroutable: waiting until a queue is bound for their routing key.")]
    stalled: Annotated[
        Counted, Field(description="Waiting for a queue that is full or does not confirm, while the broker answers.")
    ]
    blocked: Annotated[Counted, Field(description="Waiting for an earlier message with the same ordering key.")]
    retrying: Annotated[Counted, Field(description="Refused by the broker. Will be sent again later.")]
    parked: Annotated[Counted, Field(description="Refused by the broker for good. Also listed as dead letters.")]


class RoutingKeyCounts(StateCounts):
    """The backlog of one routing key."""

    routing_key: str


class OtherRoutingKeys(Model):
    """All routing keys that are not listed, combined."""

    routing_key_count: int = Field(description="How many routing keys; in an estimate, how many were sampled.")
    total: Counted


class QueueDepth(Model):
    """A queue of the broker. Fields that the broker does not report are null."""

    queue: str
    exists: bool
    queued: Counted | None = Field(description="Waiting for a worker.")
    in_flight: Counted | None = Field(description="Taken by a worker and not yet settled.")
    retrying: Counted | None = Field(description="Waiting for their next attempt; null on RabbitMQ, which uses delay queues.")
    consumer_count: int | None
    oldest_age_seconds: float | None = Field(description="How long the oldest message has been waiting.")


class DestinationCounts(Model):
    """What waits for one destination."""

    destination: str = Field(description="`default`, or the name that `Route` or `publish` give it.")
    unsent: Counted = Field(description="Messages that are neither sent nor parked.")
    oldest_pending_age_seconds: float | None = Field(description="How long the oldest due message has been due.")
    relay_count: int | None = Field(description="Relays that serve it. Null: the admin's role may not see them.")
    sends_to: str | None = Field(description="Where its relays send. Null: unknown, or no relay runs.")

    @classmethod
    def of(cls, found: DestinationBacklog) -> Self:
        """Converts the backlog of a destination."""
        running = None if found.relays is None else [relay for relay in found.relays if not relay.refused]
        return cls(
            destination=found.name,
            unsent=Counted(value=found.unsent, relation="eq" if found.unsent < MOST_UNSENT_COUNTED else "about"),
            oldest_pending_age_seconds=_rounded(found.oldest_seconds),
            relay_count=None if running is None else len(running),
            sends_to=running[0].destination if running else None,
        )


class Rates(Model):
    """Messages per second, over up to the last five minutes; null: no data yet."""

    incoming: float | None = Field(description="Published messages.")
    outgoing: float | None = Field(description="Messages that relays have sent.")


class BacklogResponse(Model):
    """Waiting messages in the outbox and at the broker."""

    as_of: Moment
    complete: bool = Field(description="False: a first estimate while exact figures are being computed.")
    degraded: list[Literal["broker", "database"]] = Field(
        description="Sources that are unavailable. Their figures are missing, or as old as `as_of`."
    )
    states: StateCounts
    sent_kept: Counted = Field(description="Sent messages that are still in the table, until clean-up.")
    oldest_pending_age_seconds: float | None = Field(description="How long the oldest due message has been due.")
    oldest_held_age_seconds: float | None = Field(description="How long the oldest held message has been held.")
    oldest_stalled_age_seconds: float | None = Field(description="How long the oldest stalled message has been stalled.")
    per_second: Rates
    drained_in_seconds: float | None = Field(
        description="Time until nothing is due, at the current rates; null: the backlog is not shrinking, or no data."
    )
    routing_keys: list[RoutingKeyCounts] = Field(description="Routing keys with the most messages, in descending order.")
    other_routing_keys: OtherRoutingKeys
    destinations: list[DestinationCounts] = Field(
        description="The share of each destination; empty if the outbox has only the default one."
    )
    broker: BrokerKind
    broker_error: Error | None = Field(description="Why the broker's figures are missing.")
    queues: list[QueueDepth] | None = Field(description="Queues of the broker; null: no data.")


def to_response(backlog: Backlog, *, top: int) -> BacklogResponse:
    """Builds the response, with the `top` routing keys by number of messages."""
    figures, states = backlog.figures, backlog.figures.counts.states
    keys = figures.counts.routing_keys
    totals = {key: sum(counts.values(), ZERO) for key, counts in keys.items()}
    ranked = sorted(totals, key=lambda key: (-totals[key].value, key))
    rates = Rates(incoming=_rounded(backlog.incoming), outgoing=_rounded(figures.out_per_second))
    problem = "the broker has not answered yet" if backlog.queues is None else backlog.queues.problem
    return BacklogResponse(
        as_of=backlog.as_of,
        complete=backlog.complete,
        degraded=[*(["broker"] if problem else []), *(["database"] if backlog.stale else [])],
        states=StateCounts(**_by_state(states)),
        sent_kept=_counted(states[MessageState.SENT]),
        oldest_pending_age_seconds=_rounded(figures.oldest_seconds),
        oldest_held_age_seconds=_rounded(figures.waited.get(MessageState.HELD)),
        oldest_stalled_age_seconds=_rounded(figures.waited.get(MessageState.STALLED)),
        per_second=rates,
        drained_in_seconds=_rounded(
            drained_in(states[MessageState.PENDING].value, incoming=backlog.incoming, outgoing=figures.out_per_second)
        ),
        routing_keys=[RoutingKeyCounts(routing_key=key, **_by_state(keys[key])) for key in ranked[:top]],
        other_routing_keys=OtherRoutingKeys(
            routing_key_count=len(ranked[top:]), total=_counted(sum((totals[key] for key in ranked[top:]), ZERO))
        ),
        destinations=[DestinationCounts.of(each) for each in figures.destinations],
        broker=backlog.broker,
        broker_error=None if problem is None else Error(type="", message=problem),
        queues=None if problem or not backlog.complete else queue_depths(backlog),
    )


def counted_states(snapshot: "Snapshot[BacklogFigures] | None") -> dict[str, Any]:
    """Returns the counts by state, for other responses; None if nothing was counted yet."""
    if snapshot is None:
        return {"states": None, "sent_kept": None, "as_of": None}
    states = snapshot.value.counts.states
    return {
        "states": StateCounts(**_by_state(states)),
        "sent_kept": _counted(states[MessageState.SENT]),
        "as_of": snapshot.as_of,
    }


def _by_state(states: Mapping[MessageState, Count]) -> dict[str, Counted]:
    return {state.value: _counted(states.get(state, ZERO)) for state in WAITING}


def _counted(count: Count) -> Counted:
    return Counted(value=count.value, relation=count.relation.value)


def queue_depths(backlog: Backlog) -> list[QueueDepth]:
    """Lists the queues of PostgreSQL and of RabbitMQ, which reports neither retries nor ages."""
    return [
        QueueDepth(
            queue=queue.queue,
            exists=True,
            queued=_counted(queue.queued),
            in_flight=_counted(queue.in_flight),
            retrying=_counted(queue.retrying),
            consumer_count=None,
            oldest_age_seconds=_rounded(queue.oldest_seconds),
        )
        for queue in backlog.figures.deliveries
    ] + [
        QueueDepth(
            queue=queue.name,
            exists=queue.there,
            queued=None if queue.ready is None else _counted(Count(queue.ready)),
            in_flight=None if queue.unacked is None else _counted(Count(queue.unacked)),
            retrying=None,
            consumer_count=queue.consumers,
            oldest_age_seconds=None,
        )
        for queue in (backlog.queues.queues if backlog.queues else ())
    ]


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(max(figure, 0.0), 3)


backlog = area("backlog")


class BacklogParameters(Request):
    """Query parameters of `GET /backlog`."""

    routing_keys: Annotated[int, Field(ge=0, le=200, description="Routing keys to list. The others are combined.")] = 20


@backlog.get("/backlog", operation_id="outbox_backlog_show", summary="Show Backlog")
async def show(context: Viewer, parameters: Annotated[BacklogParameters, Query()]) -> BacklogResponse:
    """Shows the waiting messages of the outbox by state and routing key, their ages, rates, and the depths of queues.

    Figures are counted at most every two seconds; `as_of` is the time of the count. Counts above ten thousand in one state are
    estimates. If the broker is unavailable, `queues` is null and `degraded` contains `broker`.
    """
    return to_response(await context.admin.shared(BacklogView).now(), top=parameters.routing_keys)
