"""A tracer provider of each test's own, as the global one, that keeps spans in memory."""

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util._once import Once

from tests.tracing.support import Spans


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[TracerProvider]:
    """A provider that is the global one until the end of the test."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    provider = TracerProvider(shutdown_on_exit=False)
    trace.set_tracer_provider(provider)
    yield provider
    provider.shutdown()


@pytest.fixture
def spans(provider: TracerProvider) -> Spans:
    """The spans that have ended."""
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans(exporter)
