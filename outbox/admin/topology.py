"""`GET /topology`: exchanges, queues, bindings and workers, with warnings; `GET /asyncapi`: what is published and consumed."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from outbox.admin.access import Viewer, area
from outbox.admin.admin import Admin
from outbox.admin.backlog import BacklogView
from outbox.admin.backlog_reader import HeldKey, QueueCounts, Subscription, held_keys, subscriptions
from outbox.admin.brokers import BrokerKind, BrokerView, DeclaredConsumer, declared_consumers, route_hint
from outbox.admin.cache import SingleFlightCache, Snapshot
from outbox.admin.models import Error, Model, Moment
from outbox.asyncapi import asyncapi_document
from outbox.core.findings import Finding, error, warning
from outbox.errors import BrokerUnavailableError
from outbox.postgres.relays import AGREE, KnownRelay, disagreement, known_relays
from outbox.reporting.components import ComponentKind, recent_components
from outbox.runtime.brokers import stored_label

if TYPE_CHECKING:
    from outbox.transports.rabbitmq.overview import Overview


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSnapshot:
    """A queue. None: unknown. `settings` combines arguments, without `x-`, and policies."""

    name: str
    exists: bool = True
    queued: int | None = None
    retrying: int | None = None
    consumers: int | None = None
    settings: Mapping[str, Any] | None = None

    @property
    def waiting(self) -> int:
        """Messages in the queue that are not in flight, as far as known."""
        return (self.queued or 0) + (self.retrying or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySnapshot:
    """Data read from the database and the broker. `bindings` None: unknown; `problem`: why the broker's part is missing.

    `management_problem`: why RabbitMQ's management API, which is configured, could not be read.
    """

    broker: BrokerKind
    exchange: str
    consumers: Sequence[DeclaredConsumer]
    held: Sequence[HeldKey]
    missing_exchanges: frozenset[str] = frozenset()
    queues: Mapping[str, QueueSnapshot] = field(default_factory=dict)
    bindings: Sequence[Subscription] | None = None
    problem: str | None = None
    management_problem: str | None = None
    relays: Sequence[KnownRelay] = ()
    label: str | None = None
    """That of a broker whose messages workers store: the exchange of the queues."""


async def read_topology(
    admin: Admin, broker: BrokerKind, rabbitmq: "Overview | None", depths: Sequence[QueueCounts]
) -> TopologySnapshot:
    """Reads the database, and RabbitMQ if it is the broker. `depths` are those of PostgreSQL queues."""
    async with admin.reading("reading the topology") as connection:
        consumers = declared_consumers(await recent_components(connection, schema=admin.table.schema))
        held = await held_keys(connection, admin.table)
        relays = await known_relays(connection, admin.table)
        subscribed = await subscriptions(connection, admin.table) if broker is BrokerKind.POSTGRESQL else []
    label = stored_label(admin.broker)
    exchange = label or admin.exchange_name
    seen = TopologySnapshot(broker=broker, exchange=exchange, consumers=consumers, held=held, relays=relays, label=label)
    if broker is BrokerKind.POSTGRESQL:
        living = [consumer.queue for consumer in consumers if consumer.is_alive]
        counts = {each.queue: (each.queued.value, each.retrying.value) for each in depths}
        queues = {}
        for name in sorted({binding.queue for binding in subscribed} | counts.keys()):
            queued, retrying = counts.get(name, (None, None))
            queues[name] = QueueSnapshot(name=name, queued=queued, retrying=retrying, consumers=living.count(name))
        return replace(seen, queues=queues, bindings=subscribed)
    if rabbitmq is None:
        return seen
    try:
        async with asyncio.timeout(BROKER_TIMEOUT.total_seconds()):
            return await _with_rabbitmq(seen, rabbitmq)
    except BrokerUnavailableError as error:
        return replace(seen, problem=str(error))
    except TimeoutError:
        return replace(seen, problem=f"the broker takes longer than {BROKER_TIMEOUT.total_seconds():g} s to list its queues")


async def _with_rabbitmq(seen: TopologySnapshot, rabbitmq: "Overview") -> TopologySnapshot:
    from outbox.transports.rabbitmq.topology import dead_letter_exchange, dead_letter_queue, delay_resource

    named = {consumer.queue for consumer in seen.consumers}
    delays = {delay_resource(seen.exchange, delay) for consumer in seen.consumers for delay in consumer.delays}
    exchanges = [seen.exchange, *([dead_letter_exchange(seen.exchange)] if named else []), *sorted(delays)]
    missing = frozenset([name for name in exchanges if not await rabbitmq.has_exchange(name)])
    bound = await rabbitmq.bindings(seen.exchange)
    found = await rabbitmq.queues({*named, *map(dead_letter_queue, named), *delays})
    ours = {*named, *(binding.queue for binding in bound or ())}
    shown = {*ours, *map(dead_letter_queue, ours), *delays}
    queues = {
        queue.name: QueueSnapshot(
            name=queue.name,
            exists=queue.there,
            queued=queue.ready,
            consumers=queue.consumers,
            settings=queue.settings,
        )
        for queue in found
        if queue.name in shown or queue.name.startswith(f"{seen.exchange}.delay_")
    }
    bindings = None if bound is None else [Subscription(each.exchange, each.queue, each.key) for each in bound]
    return replace(
        seen,
        missing_exchanges=missing,
        queues=queues,
        bindings=bindings,
        management_problem=rabbitmq.management_problem,
    )


WarningCode = Literal[
    "relays_disagree",
    "management_unreachable",
    "unroutable",
    "queue_without_consumer",
    "subscription_without_consumer",
    "exchange_missing",
    "queue_missing",
    "dead_letter_queue_missing",
    "retry_queue_missing",
    "dead_letters_vanish",
    "queue_limit",
    "old_binding",
]
"""Problems of a topology. The health verdict lists them in this order."""


@dataclass(frozen=True, slots=True)
class TopologyProblem:
    """A finding with its stable code, and the node that it concerns."""

    code: WarningCode
    node: str | None
    finding: Finding


def find_problems(seen: TopologySnapshot) -> list[TopologyProblem]:
    """Returns the problems of a topology, errors first."""
    found = [*_held(seen), *_unconsumed(seen)]
    if (problem := disagreement(seen.relays)) is not None:
        found.insert(0, TopologyProblem("relays_disagree", f"exchange:{seen.exchange}", error("topology", problem, AGREE)))
    if seen.management_problem is not None:
        text = f"{seen.management_problem}; only the queues of workers are known, without limits and bindings"
        hint = "check OUTBOX_MANAGEMENT_URL, its user and password, and that the user has the tag monitoring"
        found.append(TopologyProblem("management_unreachable", None, warning("topology", text, hint)))
    if seen.broker is BrokerKind.RABBITMQ and seen.problem is None:
        from outbox.doctor.rabbitmq import old_binding

        found += [*_missing(seen), *_lossy_limits(seen)]
        # Only for queues that a worker reports: other applications may bind their own queues to the exchange.
        wanted = {(consumer.queue, consumer.binding_key) for consumer in seen.consumers}
        known = {queue for queue, _ in wanted}
        found += [
            TopologyProblem("old_binding", f"queue:{one.queue}", old_binding(one.queue, one.key, exchange=seen.exchange))
            for one in seen.bindings or ()
            if one.queue in known and (one.queue, one.key) not in wanted
        ]
    return sorted(found, key=lambda each: each.finding.severity != "error")


def _held(seen: TopologySnapshot) -> Iterator[TopologyProblem]:
    for held in seen.held:
        if held.target_queue is None:
            missing = "no queue is bound for it" if seen.label is None else f"{seen.label} has no topic or stream for it"
            text = f"messages with the routing key {held.routing_key!r} are held: {missing}"
            hint = route_hint(held.routing_key, label=seen.label, exchange_name=seen.exchange)
            advice = f"{hint}; the first held message is {held.row_id}"
        else:
            text = f"messages for the queue {held.target_queue!r} are held: the queue does not exist"
            advice = f"start its consumer, which declares it; the first held message is {held.row_id}"
        yield TopologyProblem("unroutable", f"exchange:{seen.exchange}", error("topology", text, advice))


def _unconsumed(seen: TopologySnapshot) -> Iterator[TopologyProblem]:
    """Yields a warning for each bound queue that no worker consumes."""
    bound = {binding.queue for binding in seen.bindings or ()} | {consumer.queue for consumer in seen.consumers}
    code: WarningCode = "subscription_without_consumer" if seen.broker is BrokerKind.POSTGRESQL else "queue_without_consumer"
    for name in sorted(bound):
        queue = seen.queues.get(name)
        # None consumers: unknown, which is no reason for a warning.
        if queue is None or not queue.exists or queue.consumers != 0:
            continue
        # A paused worker cancels its subscription at RabbitMQ. It runs, and the pause is reported by itself.
        alive = [consumer.is_paused for consumer in seen.consumers if consumer.queue == name and consumer.is_alive]
        if alive and all(alive):
            continue
        wait = "message waits" if queue.waiting == 1 else "messages wait"
        waiting = f", and {queue.waiting:,} {wait} in it" if queue.waiting else ""
        steps = ["unbind and delete it"]
        if seen.broker is BrokerKind.POSTGRESQL:
            # Its messages stay when its rows are deleted, and so does this warning.
            steps = (
                ["delete its rows of outbox_subscription"] if any(each.queue == name for each in seen.bindings or ()) else []
            )
            steps += [f"end its messages with `outbox deliveries dead-letter --queue {name}`"] if queue.waiting else []
        hint = f"start its worker{'; if it is no longer needed, ' if steps else ''}{', and '.join(steps)}"
        yield TopologyProblem(
            code, f"queue:{name}", warning("topology", f"no worker consumes the queue {name!r}{waiting}", hint)
        )


def _missing(seen: TopologySnapshot) -> Iterator[TopologyProblem]:
    for name in sorted(seen.missing_exchanges):
        hint = "start a relay or a worker, which declare it, or provision it"
        yield TopologyProblem(
            "exchange_missing", f"exchange:{name}", error("topology", f"the exchange {name!r} is missing", hint)
        )
    for name in [queue.name for queue in seen.queues.values() if not queue.exists]:
        code: WarningCode = "queue_missing"
        what, hint = "the queue", "start its consumer, which declares it, or provision it"
        if name.startswith(f"{seen.exchange}.delay_"):
            code, what = "retry_queue_missing", "the retry queue"
            hint += ": until then, retries with this delay fail"
        elif name.endswith(".dlq"):
            code, what = "dead_letter_queue_missing", "the dead letter queue"
        yield TopologyProblem(code, f"queue:{name}", error("topology", f"{what} {name!r} is missing", hint))


def _lossy_limits(seen: TopologySnapshot) -> Iterator[TopologyProblem]:
    """Yields a warning for each limit with which a queue of a worker loses messages."""
    from outbox.transports.rabbitmq.limits import check_consumer_queue, check_dead_letter_queue, check_delay_queue

    consumed = {consumer.queue for consumer in seen.consumers}
    for queue in seen.queues.values():
        if not queue.settings:
            continue
        code: WarningCode = "queue_limit"
        if queue.name.endswith(".dlq"):
            code = "dead_letters_vanish"
            findings: Iterable[Finding] = check_dead_letter_queue(queue.name, queue.settings)
        elif queue.name.startswith(f"{seen.exchange}.delay_"):
            findings = check_delay_queue(queue.name, queue.settings)
        elif queue.name in consumed:
            findings = check_consumer_queue(queue.name, queue.settings)
        else:
            continue
        for finding in findings:
            yield TopologyProblem(code, f"queue:{queue.name}", finding)


NodeKind = Literal["exchange", "queue", "retry", "dead_letters", "worker"]


class TopologyNode(Model):
    """An exchange, a queue, or a worker. Fields without data, or that do not apply to the kind, are null."""

    id: str = Field(description="The id that edges and warnings refer to.")
    kind: NodeKind
    name: str
    exists: bool
    queued: int | None = Field(default=None, description="Waiting for a worker.")
    retrying: int | None = Field(
        default=None, description="Waiting for their next attempt; on RabbitMQ in queues of the kind `retry`."
    )
    consumer_count: int | None = Field(default=None, description="Number of consumers.")


class TopologyEdge(Model):
    """A route of messages between two nodes."""

    source: str
    target: str
    kind: Literal["binding", "consumer", "retry", "dead_letter"]
    binding_key: str | None = None
    declared_by: Literal["broker", "worker"] = Field(
        description="`broker`: exists at the broker; `worker`: only a worker reports it."
    )


def to_graph(seen: TopologySnapshot) -> tuple[list[TopologyNode], list[TopologyEdge]]:
    """Returns the nodes and edges, without duplicates."""
    edges = list(dict.fromkeys(_edges(seen)))
    exchanges = {seen.exchange, *(edge.source.removeprefix("exchange:") for edge in edges if edge.kind == "binding")}
    kinds: dict[str, NodeKind] = {"exchange": "exchange", "queue": "queue", "worker": "worker"}
    nodes = [
        TopologyNode(id=f"exchange:{name}", kind="exchange", name=name, exists=name not in seen.missing_exchanges)
        for name in exchanges
    ]
    for queue in seen.queues.values():
        kind: NodeKind = "queue"
        if seen.broker is BrokerKind.RABBITMQ:
            is_retry, is_dead = queue.name.startswith(f"{seen.exchange}.delay_"), queue.name.endswith(".dlq")
            kind = "retry" if is_retry else "dead_letters" if is_dead else "queue"
        nodes.append(
            TopologyNode(
                id=f"queue:{queue.name}",
                kind=kind,
                name=queue.name,
                exists=queue.exists,
                queued=queue.queued,
                retrying=queue.retrying,
                consumer_count=queue.consumers,
            )
        )
    nodes += [
        TopologyNode(id=f"worker:{name}", kind="worker", name=name, exists=True)
        for name in {consumer.worker for consumer in seen.consumers if consumer.is_alive}
    ]
    by_id = {node.id: node for node in nodes}
    for id_ in (end for edge in edges for end in (edge.source, edge.target)):
        # Only a worker reports this node. A broker of the host cannot confirm it, so it counts as existing.
        if id_ not in by_id:
            of, _, name = id_.partition(":")
            by_id[id_] = TopologyNode(id=id_, kind=kinds[of], name=name, exists=seen.broker is BrokerKind.OTHER)
    return sorted(by_id.values(), key=lambda node: node.id), edges


def _edges(seen: TopologySnapshot) -> Iterator[TopologyEdge]:
    for bound in seen.bindings or ():
        source, target = f"exchange:{bound.exchange}", f"queue:{bound.queue}"
        yield TopologyEdge(source=source, target=target, kind="binding", binding_key=bound.key, declared_by="broker")
    for one in seen.consumers if seen.bindings is None else ():
        source, target = f"exchange:{seen.exchange}", f"queue:{one.queue}"
        yield TopologyEdge(source=source, target=target, kind="binding", binding_key=one.binding_key, declared_by="worker")
    for one in seen.consumers:
        if one.is_alive:
            source, target = f"queue:{one.queue}", f"worker:{one.worker}"
            yield TopologyEdge(source=source, target=target, kind="consumer", declared_by="worker")
    if seen.broker is not BrokerKind.RABBITMQ:
        # In PostgreSQL a retry stays in its queue, and dead letters are rows of a table.
        return
    from outbox.transports.rabbitmq.topology import dead_letter_queue, delay_resource

    for one in seen.consumers:
        for delay in one.delays:
            target = f"queue:{delay_resource(seen.exchange, delay)}"
            yield TopologyEdge(source=f"queue:{one.queue}", target=target, kind="retry", declared_by="worker")
    for queue in {one.queue for one in seen.consumers} | {bound.queue for bound in seen.bindings or ()}:
        if dead_letter_queue(queue) in seen.queues:
            target = f"queue:{dead_letter_queue(queue)}"
            yield TopologyEdge(source=f"queue:{queue}", target=target, kind="dead_letter", declared_by="broker")


topology = area("topology")

MAX_AGE = timedelta(seconds=10)
TIMEOUT = timedelta(seconds=20)
BROKER_TIMEOUT = timedelta(seconds=10)
"""Longest wait for the broker's part, which consists of several answers."""


class TopologyWarning(Model):
    """A problem of the topology."""

    code: WarningCode = Field(description="A stable code of the problem.")
    severity: Literal["warning", "error"]
    node: str | None = Field(description="The id of the node that it concerns.")
    summary: str
    hint: str = Field(description="How to fix it.")


class Topology(Model):
    """Exchanges, queues and workers as a graph, with warnings."""

    as_of: Moment
    degraded: list[Literal["broker", "database"]] = Field(description="Sources that are unavailable.")
    broker: BrokerKind
    broker_error: Error | None
    bindings_known: bool = Field(
        description="False: only the bindings that workers report. To list all, configure the URL of RabbitMQ's management API."
    )
    nodes: list[TopologyNode]
    edges: list[TopologyEdge]
    warnings: list[TopologyWarning]


class TopologyView:
    """Caches the topology for ten seconds. Concurrent requests share one read."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._broker = admin.shared(BrokerView)
        self._backlog = admin.shared(BacklogView)
        self._cache = SingleFlightCache(self._read, max_age=MAX_AGE, timeout=TIMEOUT)

    async def now(self) -> Snapshot[TopologySnapshot]:
        """Returns the cached topology. Raises the error of the read if there is none."""
        return await self._cache.get()

    async def close(self) -> None:
        """Cancels a running read."""
        await self._cache.close()

    async def _read(self) -> TopologySnapshot:
        figures = await self._backlog.figures() if self._broker.kind is BrokerKind.POSTGRESQL else None
        depths = figures.value.deliveries if figures else ()
        return await read_topology(self._admin, self._broker.kind, self._broker.rabbitmq, depths)


@topology.get("/topology", operation_id="outbox_topology_show", summary="Show Topology")
async def show(context: Viewer) -> Topology:
    """Shows exchanges, queues, workers and their connections as nodes and edges, and warnings with a hint each.

    Read on request, at most every ten seconds. If the broker is unavailable, the response contains what workers report.
    """
    snapshot = await context.admin.shared(TopologyView).now()
    seen = snapshot.value
    nodes, edges = to_graph(seen)
    return Topology(
        as_of=snapshot.as_of,
        degraded=[*(["broker"] if seen.problem else []), *(["database"] if snapshot.error else [])],
        broker=seen.broker,
        broker_error=None if seen.problem is None else Error(type="", message=seen.problem),
        bindings_known=seen.bindings is not None,
        nodes=nodes,
        edges=edges,
        warnings=[
            TopologyWarning(
                code=each.code,
                severity="error" if each.finding.severity == "error" else "warning",
                node=each.node,
                summary=each.finding.summary,
                hint=each.finding.advice,
            )
            for each in find_problems(seen)
        ],
    )


class AsyncApiDocument(Model):
    """An AsyncAPI 3.1 document."""

    asyncapi: str
    info: dict[str, str]
    channels: dict[str, Any] = Field(description="One for each routing key and binding key.")
    operations: dict[str, Any] = Field(description="`send` for each published event, `receive` for each queue of a worker.")
    components: dict[str, Any] = Field(description="The JSON schemas of the bodies.")


@topology.get("/asyncapi", operation_id="outbox_asyncapi_show", summary="Show AsyncAPI Document")
async def show_asyncapi(context: Viewer) -> AsyncApiDocument:
    """Shows what is published and consumed as an AsyncAPI document.

    It contains the consumers that running workers report, with their schemas, and the events that were given to the `Admin`. Of
    several workers of one queue, the one that started last is shown.
    """
    admin = context.admin
    async with admin.reading("reading the consumers") as connection:
        found = await recent_components(connection, schema=admin.table.schema, ended=0, schemas=True)
    workers = sorted((each for each in found if each.kind is ComponentKind.WORKER), key=lambda each: each.started_at)
    # Of several with the same queue, the dictionary keeps the last one, of the worker that started last.
    consumers = {
        str(consumer["queue"]): consumer
        for worker in workers
        for consumer in worker.consumers
        if {"queue", "binding_key"} <= consumer.keys()
    }
    release = next((each.service_version for each in reversed(workers) if each.service_version), "0")
    document = asyncapi_document(consumers.values(), admin.published_events, title=admin.exchange_name, version=release)
    return AsyncApiDocument.model_validate(document)
