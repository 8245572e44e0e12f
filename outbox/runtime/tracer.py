"""Decides what a process reports to OpenTelemetry: spans, and metrics, if it has configured the provider and wants them."""

import logging
import sys
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from outbox.core.arguments import one_of
from outbox.engine.observers import SERVED
from outbox.ports import Observer, Propagation

if TYPE_CHECKING:
    from outbox.core.message import OutboxMessage
    from outbox.observers.opentelemetry import OpenTelemetryTracer

_T = TypeVar("_T")

_log = logging.getLogger("outbox")


def publishing_span(messages: "Iterable[OutboxMessage]") -> "AbstractContextManager[Iterable[OutboxMessage]]":
    """Makes a span for the block if the process is traced. Yields the messages, with the trace context in their headers."""
    if _has_opentelemetry():
        from outbox.observers.opentelemetry import configured_tracer, publishing

        tracer = configured_tracer()
        if tracer is not None:
            return publishing(tracer, messages)
    return nullcontext(messages)


def open_tracer(
    *, enabled: bool, source: object, exchange_name: str, propagation: Propagation = Propagation.AUTO
) -> "OpenTelemetryTracer | None":
    """Returns the tracer of a relay or worker, whose broker is `source`; None if the process is not traced.

    Without `enabled` the tracer makes no spans: it only ends the silence of `silenced` while a handler runs.
    """
    if not _has_opentelemetry():
        return None
    from outbox.observers.opentelemetry import OpenTelemetryTracer, configured_tracer

    tracer = configured_tracer()
    if tracer is None:
        return None
    return OpenTelemetryTracer(
        tracer if enabled else None, system=_system_of(source), exchange_name=exchange_name, propagation=propagation
    )


def open_meters(*, enabled: bool, source: object) -> Observer | None:
    """Returns an observer that reports metrics of a component, whose broker is `source`, to the configured meter provider.

    None without `enabled`; also, with an INFO line, if the process has configured no meter provider.
    """
    if not enabled:
        return None
    if "opentelemetry.metrics" in sys.modules:  # as for traces, unless something has imported it, nothing is configured
        from outbox.observers.meters import MeterObserver, configured_meter

        meter = configured_meter()
        if meter is not None:
            served = SERVED.get()
            return MeterObserver(meter, system=_system_of(source), database=None if served is None else served.name)
    _log.info("OpenTelemetry metrics are off: the process has configured no meter provider")
    return None


def _system_of(source: object) -> str:
    """Returns the value of `messaging.system` for a URL, a connection of aio-pika, or an object that implements a port."""
    from outbox.observers.opentelemetry import KAFKA, NATS, OUTBOX, POSTGRESQL, RABBITMQ, REDIS, SNS, SQS

    kind = source if isinstance(source, str) else type(source).__module__
    if kind.startswith(("amqp", "aio_pika", "outbox.transports.rabbitmq")):
        return RABBITMQ
    if kind.startswith(("kafka", "outbox.transports.kafka")):
        return KAFKA
    if kind.startswith(("nats", "outbox.transports.nats")):
        return NATS
    if kind.startswith(("redis", "valkey", "outbox.transports.redis")):
        return REDIS
    if kind.startswith("sns"):
        return SNS
    if kind.startswith(("sqs", "outbox.transports.aws")):
        return SQS
    return POSTGRESQL if "postgres" in kind else OUTBOX


def silenced(work: Callable[..., Coroutine[Any, Any, _T]]) -> Callable[..., Coroutine[Any, Any, _T]]:
    """Returns `work`, run so that the instrumentations of other libraries make no spans for what Outbox does by itself."""

    async def run(*arguments: Any) -> _T:
        if not _has_opentelemetry():
            return await work(*arguments)
        from outbox.observers.opentelemetry import silence

        with silence():
            return await work(*arguments)

    return run


def parse_propagation(value: str) -> Propagation:
    """Parses the argument `propagation`. Raises `ConfigurationError`."""
    return Propagation(one_of("propagation", value, tuple(Propagation)))


def _has_opentelemetry() -> bool:
    # Unless something has imported it, no provider can be configured and nothing is instrumented.
    return "opentelemetry.trace" in sys.modules
