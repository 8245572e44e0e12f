"""`GET /backlog`: what waits in the outbox and at the broker, counted at most every two seconds."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from outbox.admin.access import Viewer, area
from outbox.admin.admin import Admin
from outbox.admin.brokers import BrokerKind, BrokerView, Depths, declared
from outbox.admin.cache import SingleFlightCache, Snapshot
from outbox.admin.models import Error, Model, Moment, Request
from outbox.admin.store import ZERO, BacklogFigures, BacklogReader, Count, MessageState
from outbox.errors import DatabaseUnavailableError
from outbox.reporting.components import recent_components

OVER_SECONDS = 300.0
"""How far back rates look."""
LEAST_SECONDS = 1.0
"""A rate over less says nothing."""


@dataclass(slots=True)
class Intake:
    """How fast ids are given out, by what was seen of their number at several times (in seconds, by any steady clock)."""

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def saw(self, at: float, inserted: int) -> None:
        """Takes note. A number that went down belongs to another table, or to one that was emptied."""
        if self._seen and inserted < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((at, inserted))
        # Two stay, however old: a rate needs both of its ends.
        while len(self._seen) > 2 and self._seen[1][0] <= at - OVER_SECONDS:
            self._seen.popleft()

    @property
    def per_second(self) -> float | None:
        """Over the last minutes, or since there is anything to compare with; None before."""
        if not self._seen:
            return None
        (began, before), (at, now) = self._seen[0], self._seen[-1]
        return (now - before) / (at - began) if at - began >= LEAST_SECONDS else None


def drained_in(pending: int, *, incoming: float | None, outgoing: float | None) -> float | None:
    """Seconds until nothing is due any more at these rates; None if that is never, or not known."""
    if pending == 0:
        return 0.0
    if outgoing is None or incoming is None or outgoing <= incoming:
        return None
    return pending / (outgoing - incoming)


MAX_AGE = timedelta(seconds=2)
PATIENCE = timedelta(milliseconds=120)
"""How long an answer waits for newer figures while there are older ones, or an estimate can be had."""
FIRST_PATIENCE = timedelta(seconds=1)
"""How long it waits for the broker where nothing is known yet, or only what is too old."""
DATABASE_TIMEOUT = timedelta(seconds=10)
BROKER_TIMEOUT = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Backlog:
    """The figures as they were at `as_of`; `complete` False: only what could be said at once. `queues` are the broker's."""

    figures: BacklogFigures
    as_of: datetime
    complete: bool
    stale: bool
    incoming: float | None
    queues: Depths | None
    broker: BrokerKind


class BacklogView:
    """Keeps the figures of one admin for a moment. However many ask, each part is fetched once at a time."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._broker = admin.shared(BrokerView)
        self._reader = BacklogReader(admin.table)
        self._intake = Intake()
        self._figures = SingleFlightCache(self._read, max_age=MAX_AGE, timeout=DATABASE_TIMEOUT)
        self._estimate = SingleFlightCache(self._guess, max_age=MAX_AGE, timeout=DATABASE_TIMEOUT)
        self._depths = SingleFlightCache(self._look, max_age=MAX_AGE, timeout=BROKER_TIMEOUT)

    async def now(self, *, patience: timedelta | None = PATIENCE) -> Backlog:
        """The latest figures that can be had within `patience`, or an estimate; without patience's end, all of them.

        Raises what reading raised if there are none at all.
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
        """Those of the database alone, or an estimate; None if neither can be had now."""
        try:
            return (await self._latest())[0]
        except (DatabaseUnavailableError, TimeoutError):
            return None

    async def close(self) -> None:
        """Ends what is being fetched."""
        for snapshots in (self._figures, self._estimate, self._depths):
            await snapshots.close()

    async def _latest(self, patience: timedelta | None = PATIENCE) -> tuple[Snapshot[BacklogFigures], bool]:
        """Figures, and whether they are complete."""
        try:
            return await self._figures.get(patience=patience), True
        except TimeoutError:
            return await self._estimate.get(), False

    async def _latest_depths(self, patience: timedelta | None = PATIENCE) -> Depths | None:
        """What the broker holds; None if it has not answered yet, or not in time."""
        if self._broker.kind is not BrokerKind.RABBITMQ:
            return Depths()
        if patience is not None and not self._depths.has_usable:
            patience = FIRST_PATIENCE  # the broker's connection may have to be opened first
        try:
            snapshot = await self._depths.get(patience=patience)
        except (DatabaseUnavailableError, TimeoutError):
            return None
        return snapshot.value if snapshot.error is None else Depths(problem="the broker does not answer any more")

    async def _read(self) -> BacklogFigures:
        async with self._admin.reading("counting the backlog") as connection:
            # Before the statement: ids that are given out while it runs belong to the next interval.
            at = monotonic()
            deliveries = self._broker.kind is BrokerKind.POSTGRESQL
            figures = await self._reader.figures(connection, deliveries=deliveries)
        if figures.inserted is not None:
            self._intake.saw(at, figures.inserted)
        return figures

    async def _guess(self) -> BacklogFigures:
        async with self._admin.reading("estimating the backlog") as connection:
            return await self._reader.estimate(connection)

    async def _look(self) -> Depths:
        async with self._admin.reading("looking for queues") as connection:
            consumers = declared(await recent_components(connection, schema=self._admin.table.schema))
        if not consumers:
            return await self._broker.depths(())
        from outbox.transports.rabbitmq.topology import dead_letter_queue, delay_resource

        exchange = self._admin.exchange_name
        queues = {consumer.queue for consumer in consumers}
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
    """How many there are."""

    value: int
    relation: Literal["eq", "about", "gte"] = Field(
        description="`eq`: exactly; `about`: estimated from a sample; `gte`: at least, counting was ended."
    )


class StateCounts(Model):
    """Messages of the outbox by where they are."""

    pending: Annotated[Counted, Field(description="Due, or being sent.")]
    scheduled: Annotated[Counted, Field(description="Due later, as their publisher wanted.")]
    held: Annotated[Counted, Field(description="Waiting for a queue that is bound for them.")]
    stalled: Annotated[
        Counted, Field(description="Waiting for a queue that confirms nothing or is full, while the broker answers.")
    ]
    blocked: Annotated[Counted, Field(description="Waiting for an earlier message of their ordering key.")]
    retrying: Annotated[Counted, Field(description="Refused by the broker, to be sent again later.")]
    parked: Annotated[Counted, Field(description="Given up, for a person to look at: they are listed as dead letters too.")]


class RoutingKeyCounts(StateCounts):
    """The backlog of one routing key."""

    routing_key: str


class OtherRoutingKeys(Model):
    """The routing keys that are not listed, taken together."""

    routing_key_count: int = Field(description="How many there are; of an estimate, how many were seen.")
    total: Counted


class QueueDepth(Model):
    """A queue of the broker. Null: the broker does not report it."""

    queue: str
    exists: bool
    queued: Counted | None = Field(description="Waiting for a worker.")
    in_flight: Counted | None = Field(description="With a worker, not settled yet.")
    retrying: Counted | None = Field(description="To be handled again later; RabbitMQ keeps these in delay queues.")
    consumer_count: int | None
    oldest_age_seconds: float | None = Field(description="How long the first one has been waiting.")


class Rates(Model):
    """Messages a second, over the last seconds or minutes; null: no data yet."""

    incoming: float | None = Field(description="Published.")
    outgoing: float | None = Field(description="Sent by relays.")


class BacklogResponse(Model):
    """What waits in the outbox and at the broker."""

    as_of: Moment
    complete: bool = Field(description="False: the counts are a first estimate, and the rest is still being found out.")
    degraded: list[Literal["broker", "database"]] = Field(
        description="What could not be asked: its part is missing, or as old as `as_of` says."
    )
    states: StateCounts
    sent_kept: Counted = Field(description="Sent, and kept in the table until clean-up.")
    oldest_pending_age_seconds: float | None = Field(description="How long the first message has been due.")
    oldest_held_age_seconds: float | None = Field(description="How long the first held message has been held.")
    oldest_stalled_age_seconds: float | None = Field(description="How long the first stalled message has been stalled.")
    per_second: Rates
    drained_in_seconds: float | None = Field(
        description="Time until nothing is due, at these rates; null: never at these rates, or no data."
    )
    routing_keys: list[RoutingKeyCounts] = Field(description="Those with most messages, in descending order.")
    other_routing_keys: OtherRoutingKeys
    broker: BrokerKind
    broker_error: Error | None = Field(description="Why the broker's part is missing.")
    queues: list[QueueDepth] | None = Field(description="The broker's queues; null: no data.")


def to_response(backlog: Backlog, *, top: int) -> BacklogResponse:
    """The answer, with the `top` routing keys that have the most messages."""
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
        states=StateCounts(**_of_states(states)),
        sent_kept=_counted(states[MessageState.SENT]),
        oldest_pending_age_seconds=_rounded(figures.oldest_seconds),
        oldest_held_age_seconds=_rounded(figures.waited.get(MessageState.HELD)),
        oldest_stalled_age_seconds=_rounded(figures.waited.get(MessageState.STALLED)),
        per_second=rates,
        drained_in_seconds=_rounded(
            drained_in(states[MessageState.PENDING].value, incoming=backlog.incoming, outgoing=figures.out_per_second)
        ),
        routing_keys=[RoutingKeyCounts(routing_key=key, **_of_states(keys[key])) for key in ranked[:top]],
        other_routing_keys=OtherRoutingKeys(
            routing_key_count=len(ranked[top:]), total=_counted(sum((totals[key] for key in ranked[top:]), ZERO))
        ),
        broker=backlog.broker,
        broker_error=None if problem is None else Error(type="", message=problem),
        queues=None if problem or not backlog.complete else queue_depths(backlog),
    )


def counted_states(snapshot: "Snapshot[BacklogFigures] | None") -> dict[str, Any]:
    """How many there are in each state, for other answers; nulls if nothing was counted yet."""
    if snapshot is None:
        return {"states": None, "sent_kept": None, "as_of": None}
    states = snapshot.value.counts.states
    return {
        "states": StateCounts(**_of_states(states)),
        "sent_kept": _counted(states[MessageState.SENT]),
        "as_of": snapshot.as_of,
    }


def _of_states(states: Mapping[MessageState, Count]) -> dict[str, Counted]:
    return {state.value: _counted(states.get(state, ZERO)) for state in WAITING}


def _counted(count: Count) -> Counted:
    return Counted(value=count.value, relation=count.relation.value)


def queue_depths(backlog: Backlog) -> list[QueueDepth]:
    """The queues of the database, and RabbitMQ's, which reports neither retries nor ages."""
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


class BacklogQuestion(Request):
    """How much of it is listed."""

    routing_keys: Annotated[int, Field(ge=0, le=200, description="How many routing keys are listed one by one.")] = 20


@backlog.get("/backlog", operation_id="outbox_backlog_show", summary="Show Backlog")
async def show(context: Viewer, question: Annotated[BacklogQuestion, Query()]) -> BacklogResponse:
    """Shows how much waits in the outbox, by state and routing key, since when and for how long, and the depths of queues.

    The figures are counted at most every two seconds; `as_of` says when. Beyond ten thousand of a state they are estimates.
    If the broker is unavailable, the answer has no queues, and `degraded` says so.
    """
    return to_response(await context.admin.shared(BacklogView).now(), top=question.routing_keys)
