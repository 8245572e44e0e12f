"""Spans that are not sampled: a worker makes most of them without the SDK, and they are the same as the SDK's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler
from opentelemetry.trace import SpanContext

from outbox.core.message import Message
from outbox.core.outcome import DONE
from outbox.observers.opentelemetry import OpenTelemetryTracer
from outbox.ports import Propagation
from tests.contract.support import message
from tests.tracing.support import TRACE, Spans


class Asked(ParentBased):
    """Decides as its base does, and counts how often it is asked."""

    count = 0

    def should_sample(self, *args: Any, **options: Any) -> Any:
        self.count += 1
        return super().should_sample(*args, **options)


def tracer_with(sampler: Sampler, propagation: Propagation = Propagation.CHILD) -> OpenTelemetryTracer:
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    tracer = provider.get_tracer("outbox")
    return OpenTelemetryTracer(tracer, system="postgresql", exchange_name="shop", propagation=propagation)


def handle(tracer: OpenTelemetryTracer, delivered: Message) -> SpanContext:
    """Returns the context that a handler of `delivered` runs in."""
    with attempt(tracer, delivered):
        return trace.get_current_span().get_span_context()


@contextmanager
def attempt(tracer: OpenTelemetryTracer, delivered: Message, *, silent: bool = False) -> Iterator[None]:
    span = tracer.process((delivered,), queue="q", attempt=1, silent=silent)
    try:
        yield
    finally:
        span.end(DONE)


def incoming(traceparent: str, **headers: str) -> Message:
    made = message("a", b"1")
    return Message(
        id=made.id,
        routing_key="a",
        body=b"1",
        created_at=made.created_at,
        tracking_ids=(),
        headers={"traceparent": traceparent, **headers},
    )


@pytest.mark.parametrize("flags", ["00", "02", "01", "03"])
@pytest.mark.parametrize("tracestate", [{}, {"tracestate": "vendor=1"}])
def test_a_handler_has_the_context_that_the_sdk_would_give_it(flags: str, tracestate: dict[str, str]) -> None:
    delivered = incoming(f"00-{TRACE}-b7ad6b7169203331-{flags}", **tracestate)
    found = handle(tracer_with(ParentBased(ALWAYS_ON)), delivered)
    expected = handle(tracer_with(Asked(ALWAYS_ON)), delivered)
    assert f"{found.trace_id:032x}" == TRACE
    assert found.span_id not in (0, 0xB7AD6B7169203331, expected.span_id)
    assert (found.trace_id, found.is_remote, found.trace_flags, found.trace_state, found.is_valid) == (
        expected.trace_id,
        expected.is_remote,
        expected.trace_flags,
        expected.trace_state,
        expected.is_valid,
    )


@pytest.mark.parametrize("traceparent", [f"00-{'0' * 32}-b7ad6b7169203331-00", f"00-{TRACE}-{'0' * 16}-00"])
def test_a_traceparent_without_an_id_begins_a_trace(traceparent: str) -> None:
    found = handle(tracer_with(ParentBased(ALWAYS_ON)), incoming(traceparent))
    assert found.is_valid
    assert found.trace_flags.sampled
    assert f"{found.trace_id:032x}" != TRACE


@pytest.mark.parametrize(
    "sampler",
    [Asked(ALWAYS_OFF), ALWAYS_ON, ParentBased(ALWAYS_OFF, remote_parent_not_sampled=ALWAYS_ON)],
    ids=["overridden", "not parent-based", "configured otherwise"],
)
def test_a_sampler_that_may_record_is_asked(provider: TracerProvider, spans: Spans, sampler: Sampler) -> None:
    provider.sampler = sampler
    tracer = OpenTelemetryTracer(
        provider.get_tracer("outbox"), system="postgresql", exchange_name="shop", propagation=Propagation.CHILD
    )
    handle(tracer, incoming(f"00-{TRACE}-b7ad6b7169203331-00"))
    assert len(spans.named("process q")) == (0 if isinstance(sampler, Asked) else 1)
    assert not isinstance(sampler, Asked) or sampler.count == 1


def test_a_linked_attempt_is_a_root_that_the_sampler_decides_about(provider: TracerProvider, spans: Spans) -> None:
    tracer = OpenTelemetryTracer(
        provider.get_tracer("outbox"), system="postgresql", exchange_name="shop", propagation=Propagation.LINK
    )
    handle(tracer, incoming(f"00-{TRACE}-b7ad6b7169203331-00"))
    (process,) = spans.named("process q")
    assert process.parent is None
    assert not process.links


def test_a_handler_with_a_transaction_makes_no_id_that_nothing_reads() -> None:
    class Counting(RandomIdGenerator):
        count = 0

        def generate_span_id(self) -> int:
            self.count += 1
            return super().generate_span_id()

    ids = Counting()
    provider = TracerProvider(sampler=ParentBased(ALWAYS_ON), id_generator=ids, shutdown_on_exit=False)
    tracer = OpenTelemetryTracer(
        provider.get_tracer("outbox"), system="postgresql", exchange_name="shop", propagation=Propagation.CHILD
    )
    delivered = incoming(f"00-{TRACE}-b7ad6b7169203331-00")
    with attempt(tracer, delivered, silent=True), tracer.handler():
        assert ids.count == 0
        assert f"{trace.get_current_span().get_span_context().trace_id:032x}" == TRACE
    assert ids.count == 1


def test_the_current_span_can_be_logged_though_it_is_not_recorded() -> None:
    tracer = tracer_with(ParentBased(ALWAYS_ON))
    with attempt(tracer, incoming(f"00-{TRACE}-b7ad6b7169203331-00")):
        span = trace.get_current_span()
        assert f"trace_id=0x{TRACE}" in repr(span)
        assert span.get_span_context() is span.get_span_context()  # its id is made once
