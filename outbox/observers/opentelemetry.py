"""OpenTelemetry traces: spans for publishing, sending and handling, and the trace context in the headers of messages.

Names follow the semantic conventions for messaging. They are strings, because the package of the conventions is unstable, and
this module depends on `opentelemetry-api` alone.
"""

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import TracebackType
from typing import Any, Self, assert_never

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    NoOpTracer,
    NoOpTracerProvider,
    ProxyTracerProvider,
    Span,
    SpanContext,
    SpanKind,
    TraceFlags,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.trace.status import Status, StatusCode

from outbox.core.codec import TRACEPARENT
from outbox.core.events import Event, RoundFinished, SpanIds
from outbox.core.message import Message, OutboxMessage
from outbox.core.outcome import Cause, Dead, DeliveryOutcome, Done, Failure, Postponed, Retry, Returned, qualified_name
from outbox.ports import AttemptSpan, Propagation

SCOPE = "outbox"
"""The instrumentation scope of all spans."""

SYSTEM = "messaging.system"
OPERATION_NAME = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
DESTINATION = "messaging.destination.name"
MESSAGE_ID = "messaging.message.id"
CONVERSATION_ID = "messaging.message.conversation_id"
BODY_SIZE = "messaging.message.body.size"
BATCH_COUNT = "messaging.batch.message_count"
ROUTING_KEY = "messaging.rabbitmq.destination.routing_key"
ERROR_TYPE = "error.type"
QUEUE = "outbox.queue"
ATTEMPT = "outbox.attempt"
CAUSE = "outbox.cause"
DELAY = "outbox.delay_seconds"
UNSENT_COUNT = "outbox.unsent_count"

CREATE, SEND, PROCESS = "create", "send", "process"
RETRY, REJECT, DEAD_LETTER, DUPLICATE = "outbox.retry", "outbox.reject", "outbox.dead_letter", "outbox.duplicate"
POSTPONED, RETURNED = "outbox.postponed", "outbox.returned"

OUTBOX, RABBITMQ, POSTGRESQL = "outbox", "rabbitmq", "postgresql"
KAFKA, NATS, REDIS, SQS, SNS = "kafka", "nats", "redis", "aws_sqs", "aws.sns"
"""Values of `messaging.system`. A Publisher writes to the outbox, and does not know the broker."""

MOST_LINKS = 128
"""The SDK's default limit. It drops further links silently, sampled or not, so only sampled parents are linked."""
DELAYED_AFTER = timedelta(minutes=1)
"""Age of a message from which on `propagation="auto"` links it: few collectors keep a trace open for longer."""

TRACESTATE = "tracestate"
# The key that `opentelemetry.instrumentation.utils.suppress_instrumentation` sets, and that all instrumentations read.
_SUPPRESS = "suppress_instrumentation"
_PLAIN = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", re.ASCII)
_NOT_SAMPLED = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-(00|02)", re.ASCII)
_FLAGS = {"00": TraceFlags(0x00), "02": TraceFlags(0x02)}
"""The flags of a child that is not sampled. It inherits the second bit, which says that the trace's id is random."""
_W3C = TraceContextTextMapPropagator()
_NO_CONTEXT = Context()
_SILENT = Context({_SUPPRESS: True})


def configured_tracer() -> trace.Tracer | None:
    """Returns a tracer of the configured tracer provider; None if no provider is configured, or if the SDK is disabled."""
    provider = trace.get_tracer_provider()
    return None if isinstance(provider, ProxyTracerProvider | NoOpTracerProvider) else _tracer_of(provider)


@lru_cache(maxsize=4)
def _tracer_of(provider: trace.TracerProvider) -> trace.Tracer | None:
    tracer = provider.get_tracer(SCOPE)
    return None if isinstance(tracer, NoOpTracer) else tracer  # what a disabled SDK returns


def current_ids() -> tuple[str, str] | None:
    """Returns the ids of the current trace and span as hexadecimal text; None outside of a trace."""
    span = trace.get_current_span().get_span_context()
    return (trace.format_trace_id(span.trace_id), trace.format_span_id(span.span_id)) if span.is_valid else None


@contextmanager
def silence() -> Iterator[None]:
    """Runs the block outside of any trace, with instrumentations suppressed. Tasks started in it inherit this."""
    token = otel_context.attach(_SILENT)
    try:
        yield
    finally:
        otel_context.detach(token)


# --- publishing ------------------------------------------------------------------------------------------------------


@contextmanager
def publishing(tracer: trace.Tracer, messages: Iterable[OutboxMessage]) -> Iterator[list[OutboxMessage]]:
    """Makes one `create` span for the block, and yields the messages with the span's context in their headers.

    A `traceparent` that a message already has stays as it is. There is no span if all of them have one.
    """
    given = list(messages)
    if not any(map(_is_untraced, given)):
        yield given
        return
    key = getattr(given[0], "routing_key", "") if len(given) == 1 else ""
    attributes: dict[str, Any] = {SYSTEM: OUTBOX, OPERATION_NAME: CREATE, OPERATION_TYPE: CREATE}
    if isinstance(key, str) and key:
        attributes |= {DESTINATION: key, ROUTING_KEY: key}
    if len(given) != 1:
        attributes[BATCH_COUNT] = len(given)
    with tracer.start_as_current_span(
        CREATE,
        kind=SpanKind.PRODUCER,
        attributes=attributes,
        # The text of an error may quote a body.
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        carrier: dict[str, str] = {}
        _W3C.inject(carrier)
        try:
            yield [
                replace(message, headers={**(message.headers or {}), **carrier}) if _is_untraced(message) else message
                for message in given
            ]
        except BaseException as error:
            span.set_attribute(ERROR_TYPE, qualified_name(type(error)))
            span.set_status(Status(StatusCode.ERROR))
            raise


def _is_untraced(message: object) -> bool:
    # Anything invalid is left as it is: encoding refuses it, with an error that says what is wrong.
    if not isinstance(message, OutboxMessage):
        return False
    headers = message.headers
    return headers is None or (isinstance(headers, Mapping) and TRACEPARENT not in headers)


# --- sending and handling --------------------------------------------------------------------------------------------


class OpenTelemetryTracer:
    """Implements `outbox.ports.Tracer`, and as an observer makes a `send` span for each batch of a relay.

    Without a `tracer` it makes no spans, and only lets the instrumentations of other libraries work while a handler runs.
    """

    def __init__(
        self, tracer: trace.Tracer | None, *, system: str, exchange_name: str, propagation: Propagation = Propagation.AUTO
    ) -> None:
        self._tracer = tracer
        self._system = system
        self._exchange_name = exchange_name
        self._propagation = propagation
        self._is_auto = propagation is Propagation.AUTO
        self._new_span_id = _span_ids_of_dropped(tracer)

    def notify(self, event: Event) -> None:
        """See `outbox.ports.Observer.notify`."""
        if not isinstance(event, RoundFinished) or self._tracer is None:
            return
        count = len(event.sent) + len(event.failed)
        if not count:
            return
        links: list[Link] = []
        for message in event.sent:
            if len(links) < MOST_LINKS and message.sampled_span is not None:
                parent = _parse({TRACEPARENT: message.traceparent})
                if parent is not None:
                    links.append(Link(parent))
        # Made after the batch: only now it is known that there was one, and which of its messages were sent.
        now = time.time_ns()
        span = self._tracer.start_span(
            f"{SEND} {event.exchange_name}",
            context=_NO_CONTEXT,
            kind=SpanKind.CLIENT,
            links=links,
            start_time=now - event.duration // timedelta(microseconds=1) * 1_000,
            attributes={
                SYSTEM: self._system,
                OPERATION_NAME: SEND,
                OPERATION_TYPE: SEND,
                DESTINATION: event.exchange_name,
                BATCH_COUNT: count,
            },
        )
        if event.failed:
            span.set_attribute(UNSENT_COUNT, len(event.failed))
            span.set_attribute(ERROR_TYPE, event.failed[0].type.value)
            span.set_status(Status(StatusCode.ERROR))
        span.end(now)

    def process(self, messages: Sequence[Message], *, queue: str, attempt: int, silent: bool) -> AttemptSpan:
        """See `outbox.ports.Tracer.process`."""
        surroundings = _SILENT if silent else _NO_CONTEXT
        if self._tracer is None:
            return _Current(surroundings)
        if len(messages) == 1 and (dropped := self._dropped(messages[0], attempt)) is not None:
            return _Current(trace.set_span_in_context(dropped, surroundings))
        parents = [_parse(message.headers) for message in messages]
        parent = parents[0] if len(parents) == 1 and self._continues(messages[0], attempt) else None
        span = self._tracer.start_span(
            f"{PROCESS} {queue}",
            context=_NO_CONTEXT if parent is None else trace.set_span_in_context(NonRecordingSpan(parent), _NO_CONTEXT),
            kind=SpanKind.CONSUMER,
            links=()
            if parent is not None
            else [Link(each) for each in parents if each is not None and each.trace_flags.sampled][:MOST_LINKS],
            attributes={SYSTEM: self._system, OPERATION_NAME: PROCESS, OPERATION_TYPE: PROCESS, QUEUE: queue},
        )
        if not span.is_recording():
            return _Current(trace.set_span_in_context(span, surroundings))
        span.set_attributes(self._attributes(messages, queue, attempt))
        return _RecordedAttempt(span, attempt, trace.set_span_in_context(span, surroundings))

    def handler(self) -> AbstractContextManager[object]:
        """See `outbox.ports.Tracer.handler`."""
        span = trace.get_current_span()
        # A new context rather than the current one without the key: contexts cannot remove a key.
        is_ours = self._tracer is not None and (isinstance(span, _DroppedSpan) or span.get_span_context().is_valid)
        return _Current(trace.set_span_in_context(span, _NO_CONTEXT) if is_ours else _NO_CONTEXT)

    def record_duplicate(self, message: Message) -> None:
        """See `outbox.ports.Tracer.record_duplicate`."""
        trace.get_current_span().add_event(DUPLICATE, {MESSAGE_ID: message.id})

    def _dropped(self, message: Message, attempt: int) -> Span | None:
        """Returns the span that the SDK would make for an attempt that it does not record; None if the SDK has to be asked.

        With a small sampling rate this is nearly every message, and asking takes three times as long.
        """
        header = message.headers.get(TRACEPARENT)
        if (
            self._new_span_id is None
            or not isinstance(header, str)
            or (plain := _NOT_SAMPLED.fullmatch(header)) is None
            or TRACESTATE in message.headers
            or not self._continues(message, attempt)
        ):
            return None
        return _DroppedSpan(plain, self._new_span_id)

    def _continues(self, message: Message, attempt: int) -> bool:
        if self._is_auto:
            return attempt == 1 and not message.requeue_count and datetime.now(UTC) - message.created_at < DELAYED_AFTER
        return self._propagation is Propagation.CHILD

    def _attributes(self, messages: Sequence[Message], queue: str, attempt: int) -> dict[str, Any]:
        """Returns the attributes that cost something: few spans are sampled."""
        if len(messages) != 1:
            return {DESTINATION: f"{self._exchange_name}:{queue}", BATCH_COUNT: len(messages)}
        (message,) = messages
        parts = [self._exchange_name, message.routing_key, *(() if queue == message.routing_key else (queue,))]
        return {
            DESTINATION: ":".join(part for part in parts if part),
            ROUTING_KEY: message.routing_key,
            MESSAGE_ID: message.id,
            CONVERSATION_ID: message.tracking_ids[0] if message.tracking_ids else message.id,
            BODY_SIZE: len(message.body),
            ATTEMPT: attempt,
        }


class _Current:
    """Makes a context current until `end`, or for a block. A class, because a generator takes twice as long."""

    __slots__ = ("_token",)

    ids: SpanIds | None = None

    def __init__(self, context: Context) -> None:
        self._token = otel_context.attach(context)

    def end(self, result: DeliveryOutcome | Failure | BaseException | None) -> None:  # noqa: ARG002  no span is recorded
        """See `outbox.ports.AttemptSpan.end`."""
        otel_context.detach(self._token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        otel_context.detach(self._token)


class _RecordedAttempt(_Current):
    """The span of an attempt. Records types only, never a message's content."""

    __slots__ = ("_attempt", "_span", "ids")

    def __init__(self, span: Span, attempt: int, context: Context) -> None:
        super().__init__(context)
        self._span = span
        self._attempt = attempt
        own = span.get_span_context()
        self.ids = (
            SpanIds(trace.format_trace_id(own.trace_id), trace.format_span_id(own.span_id)) if own.trace_flags.sampled else None
        )

    def end(self, result: DeliveryOutcome | Failure | BaseException | None) -> None:
        """Adds the event of an outcome, marks failures as errors, and ends the span."""
        super().end(result)
        span, error_type = self._span, None
        match result:
            case None | Done():
                pass
            case BaseException():
                error_type = qualified_name(type(result))
            case Failure():
                error_type = result.type
            case Postponed(delay):
                span.add_event(POSTPONED, {DELAY: delay.total_seconds()})
            case Returned():
                span.add_event(RETURNED)
            case Retry(delay, failure):
                span.add_event(RETRY, {ATTEMPT: self._attempt, DELAY: delay.total_seconds()})
                error_type = failure.type
            case Dead(cause, failure):
                span.add_event(REJECT if cause is Cause.REJECTED else DEAD_LETTER, {CAUSE: cause.value})
                error_type = failure.type
            case _:
                assert_never(result)
        if error_type is not None:
            span.set_attribute(ERROR_TYPE, error_type)
            span.set_status(Status(StatusCode.ERROR))
        span.end()


class _DroppedSpan(NonRecordingSpan):
    """A child that is not recorded. It gets its context from the parent's header when it is asked for, which is rare."""

    _span_context: SpanContext | None = None

    def __init__(self, parent: re.Match[str], new_span_id: Callable[[], int]) -> None:
        self._parent = parent
        self._new_span_id = new_span_id

    def get_span_context(self) -> SpanContext:
        if self._span_context is None:
            trace_id, flags = int(self._parent[1], 16), _FLAGS[self._parent[2]]
            self._span_context = SpanContext(trace_id, self._new_span_id(), is_remote=False, trace_flags=flags)
        return self._span_context

    def __repr__(self) -> str:
        return repr(NonRecordingSpan(self.get_span_context()))


def _span_ids_of_dropped(tracer: trace.Tracer | None) -> Callable[[], int] | None:
    """Returns what makes span ids, if `tracer` records no child of a remote span that is not sampled; None if it may.

    This is so for the SDK's parent-based samplers, unless they are configured otherwise. Another sampler can record on its own.
    """
    # Where the SDK is not imported, the tracer is not the SDK's.
    sampling: Any = sys.modules.get("opentelemetry.sdk.trace.sampling")
    sampler = getattr(tracer, "sampler", None)
    if (
        sampling is None
        or not isinstance(sampler, sampling.ParentBased)
        or type(sampler).should_sample is not sampling.ParentBased.should_sample
        or getattr(sampler, "_remote_parent_not_sampled", None) is not sampling.ALWAYS_OFF
    ):
        return None
    new_span_id: Callable[[], int] | None = getattr(getattr(tracer, "id_generator", None), "generate_span_id", None)
    return new_span_id


def _parse(headers: Mapping[str, Any]) -> SpanContext | None:
    """Returns the trace context in the headers of a message; None if there is none, or none that is valid."""
    given = headers.get(TRACEPARENT)
    # The usual header, in a tenth of the time of the propagator: it is read for each message, sampled or not.
    if isinstance(given, str) and TRACESTATE not in headers and (plain := _PLAIN.fullmatch(given)) is not None:
        flags = TraceFlags(int(plain[3], 16))
        found = SpanContext(int(plain[1], 16), int(plain[2], 16), is_remote=True, trace_flags=flags)
        return found if found.is_valid else None
    carrier = {name: value for name in (TRACEPARENT, TRACESTATE) if isinstance(value := headers.get(name), str)}
    if TRACEPARENT not in carrier:
        return None
    found = trace.get_current_span(_W3C.extract(carrier, _NO_CONTEXT)).get_span_context()
    return found if found.is_valid else None
