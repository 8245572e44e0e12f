"""The topology as nodes and edges."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from outbox.admin.brokers import BrokerKind
from outbox.admin.models import Model
from outbox.admin.topology.seen import Seen, SeenQueue

NodeKind = Literal["exchange", "queue", "retry", "dead_letters", "worker"]


class TopologyNode(Model):
    """An exchange, a queue, or a worker. Null: no data, or not of this kind."""

    id: str = Field(description="What edges and warnings name it by.")
    kind: NodeKind
    name: str
    exists: bool
    queued: int | None = Field(default=None, description="Messages that wait for a worker.")
    retrying: int | None = Field(
        default=None, description="To be handled again later; RabbitMQ keeps these in queues of their own, of the kind `retry`."
    )
    consumer_count: int | None = Field(default=None, description="How many consume it.")


class TopologyEdge(Model):
    """A way that messages go."""

    source: str
    target: str
    kind: Literal["binding", "consumer", "retry", "dead_letter"]
    binding_key: str | None = None
    declared_by: Literal["broker", "worker"] = Field(
        description="`broker`: it exists; `worker`: a worker reports it, and the broker does not."
    )


def drawn(seen: Seen) -> tuple[list[TopologyNode], list[TopologyEdge]]:
    """Nodes and edges, each once."""
    bindings = _bindings(seen)
    consuming = [
        TopologyEdge(source=f"queue:{one.queue}", target=f"worker:{one.worker}", kind="consumer", declared_by="worker")
        for one in seen.consumers
        if one.living
    ]
    edges = list(dict.fromkeys([*bindings, *consuming, *_retries(seen), *_deaths(seen)]))
    nodes = {node.id: node for node in [*_exchanges(seen, bindings), *_queues(seen), *_workers(seen)]}
    for edge in edges:  # what only a worker has told of
        for end in (edge.source, edge.target):
            nodes.setdefault(end, _unseen(end, exists=seen.broker is BrokerKind.OTHER))
    return sorted(nodes.values(), key=lambda node: node.id), edges


def _bindings(seen: Seen) -> list[TopologyEdge]:
    if seen.bindings is not None:
        return [
            TopologyEdge(
                source=f"exchange:{one.exchange}",
                target=f"queue:{one.queue}",
                kind="binding",
                binding_key=one.key,
                declared_by="broker",
            )
            for one in seen.bindings
        ]
    return [
        TopologyEdge(
            source=f"exchange:{seen.exchange}",
            target=f"queue:{one.queue}",
            kind="binding",
            binding_key=one.binding_key,
            declared_by="worker",
        )
        for one in seen.consumers
    ]


def _retries(seen: Seen) -> Iterable[TopologyEdge]:
    """On RabbitMQ a retry waits in a queue of its delay; elsewhere it waits where it is."""
    if seen.broker is not BrokerKind.RABBITMQ:
        return
    from outbox.transports.rabbitmq.topology import delay_resource

    for consumer in seen.consumers:
        for delay in consumer.delays:
            name = delay_resource(seen.exchange, delay)
            yield TopologyEdge(source=f"queue:{consumer.queue}", target=f"queue:{name}", kind="retry", declared_by="worker")


def _deaths(seen: Seen) -> Iterable[TopologyEdge]:
    if seen.broker is not BrokerKind.RABBITMQ:
        return
    from outbox.transports.rabbitmq.topology import dead_letter_queue

    for queue in {consumer.queue for consumer in seen.consumers} | {one.queue for one in seen.bindings or ()}:
        if dead_letter_queue(queue) in seen.queues:
            yield TopologyEdge(
                source=f"queue:{queue}", target=f"queue:{dead_letter_queue(queue)}", kind="dead_letter", declared_by="broker"
            )


def _exchanges(seen: Seen, bindings: Iterable[TopologyEdge]) -> Iterable[TopologyNode]:
    names = {seen.exchange, *(edge.source.removeprefix("exchange:") for edge in bindings)}
    for name in names:
        yield TopologyNode(id=f"exchange:{name}", kind="exchange", name=name, exists=name not in seen.missing_exchanges)


def _queues(seen: Seen) -> Iterable[TopologyNode]:
    for queue in seen.queues.values():
        yield TopologyNode(
            id=f"queue:{queue.name}",
            kind=_kind(seen, queue),
            name=queue.name,
            exists=queue.there,
            queued=queue.queued,
            retrying=queue.retrying,
            consumer_count=queue.consumers,
        )


def _workers(seen: Seen) -> Iterable[TopologyNode]:
    for name in {consumer.worker for consumer in seen.consumers if consumer.living}:
        yield TopologyNode(id=f"worker:{name}", kind="worker", name=name, exists=True)


def _kind(seen: Seen, queue: SeenQueue) -> NodeKind:
    if seen.broker is BrokerKind.RABBITMQ:
        if queue.name.startswith(f"{seen.exchange}.delay_"):
            return "retry"
        if queue.name.endswith(".dlq"):
            return "dead_letters"
    return "queue"


def _unseen(id_: str, *, exists: bool) -> TopologyNode:
    kind, _, name = id_.partition(":")
    kinds: dict[str, NodeKind] = {"exchange": "exchange", "worker": "worker"}
    return TopologyNode(id=id_, kind=kinds.get(kind, "queue"), name=name, exists=exists)
