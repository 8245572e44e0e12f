"""The queues that workers have told of with their heartbeats."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from outbox.reporting.components import ComponentKind, Condition, KnownComponent

_LIVING = (Condition.ALIVE, Condition.LATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredConsumer:
    """A consumer of a queue at one worker; `delays` are those of its retries that are known beforehand."""

    queue: str
    binding_key: str
    worker: str
    living: bool
    ordered: bool
    delays: Sequence[timedelta]


def declared(components: Iterable[KnownComponent]) -> Sequence[DeclaredConsumer]:
    """The consumers of all workers, those that ended included."""
    return [
        _consumer(component, consumer)
        for component in components
        if component.kind is ComponentKind.WORKER
        for consumer in component.consumers
        if isinstance(consumer, Mapping) and isinstance(consumer.get("queue"), str)
    ]


def _consumer(component: KnownComponent, consumer: Mapping[str, Any]) -> DeclaredConsumer:
    retry = consumer.get("retry") or {}
    return DeclaredConsumer(
        queue=consumer["queue"],
        binding_key=str(consumer.get("binding_key", "")),
        worker=component.name,
        living=component.condition in _LIVING,
        ordered=bool(consumer.get("ordered")),
        delays=[timedelta(seconds=seconds) for seconds in retry.get("delays_seconds", ())],
    )
