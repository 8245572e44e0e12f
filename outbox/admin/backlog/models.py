"""Responses about the backlog."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from outbox.admin.backlog.view import Backlog, drained_in
from outbox.admin.brokers import BrokerKind
from outbox.admin.models import Error, Model, Moment
from outbox.admin.store.backlog import NONE, Count, MessageState, QueueCounts

if TYPE_CHECKING:
    from outbox.admin.cache import Snapshot
    from outbox.admin.store.backlog import BacklogFigures
    from outbox.transports.rabbitmq.overview import QueueSeen

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
    listed, rest = _ranked(figures.counts.routing_keys, top)
    rates = Rates(incoming=_rounded(backlog.incoming), outgoing=_rounded(figures.out_per_second))
    problem = _broker_problem(backlog)
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
        routing_keys=listed,
        other_routing_keys=rest,
        broker=backlog.broker,
        broker_error=None if problem is None else Error(type="", message=problem),
        queues=None if problem or not backlog.complete else _queues(backlog),
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


def _ranked(
    routing_keys: Mapping[str, Mapping[MessageState, Count]], top: int
) -> tuple[list[RoutingKeyCounts], OtherRoutingKeys]:
    totals = {key: sum(states.values(), NONE) for key, states in routing_keys.items()}
    ranked = sorted(totals, key=lambda key: (-totals[key].value, key))
    others = [totals[key] for key in ranked[top:]]
    listed = [RoutingKeyCounts(routing_key=key, **_of_states(routing_keys[key])) for key in ranked[:top]]
    return listed, OtherRoutingKeys(routing_key_count=len(others), total=_counted(sum(others, NONE)))


def _of_states(states: Mapping[MessageState, Count]) -> dict[str, Counted]:
    return {state.value: _counted(states.get(state, NONE)) for state in WAITING}


def _counted(count: Count) -> Counted:
    return Counted(value=count.value, relation=count.relation.value)


def _broker_problem(backlog: Backlog) -> str | None:
    if backlog.queues is None:
        return "the broker has not answered yet"
    return backlog.queues.problem


def _queues(backlog: Backlog) -> list[QueueDepth]:
    seen: Sequence[QueueSeen] = backlog.queues.queues if backlog.queues else ()
    return [*map(_of_database, backlog.figures.deliveries), *map(_of_rabbitmq, seen)]


def _of_database(queue: QueueCounts) -> QueueDepth:
    return QueueDepth(
        queue=queue.queue,
        exists=True,
        queued=_counted(queue.queued),
        in_flight=_counted(queue.in_hand),
        retrying=_counted(queue.retrying),
        consumer_count=None,
        oldest_age_seconds=_rounded(queue.oldest_seconds),
    )


def _of_rabbitmq(queue: "QueueSeen") -> QueueDepth:
    return QueueDepth(
        queue=queue.name,
        exists=queue.there,
        queued=None if queue.ready is None else _counted(Count(queue.ready)),
        in_flight=None if queue.unacked is None else _counted(Count(queue.unacked)),
        retrying=None,
        consumer_count=queue.consumers,
        oldest_age_seconds=None,
    )


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(max(figure, 0.0), 3)
