"""A broker of either kind, and providers of spans and metrics of each test's own, which keep in memory what they get."""

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.metrics import _internal as metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util._once import Once

from tests.tracing.support import Meters, Spans


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[TracerProvider]:
    """A provider that is the global one until the end of the test."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    provider = TracerProvider(shutdown_on_exit=False)
    trace.set_tracer_provider(provider)
    yield provider
    provider.shutdown()


@pytest.fixture(params=["postgresql", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def broker(request: pytest.FixtureRequest, database: str) -> str:
    """The broker's URL: both transports are traced and measured alike."""
    url: str = database if request.param == "postgresql" else request.getfixturevalue("broker_url")
    return url


@pytest.fixture
def spans(provider: TracerProvider) -> Spans:
    """The spans that have ended."""
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans(exporter)


@pytest.fixture
def meters(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meters]:
    """What a meter provider collects that is the global one until the end of the test."""
    monkeypatch.setattr(metrics, "_METER_PROVIDER", None)
    monkeypatch.setattr(metrics, "_METER_PROVIDER_SET_ONCE", Once())
    monkeypatch.setattr(metrics, "_PROXY_METER_PROVIDER", metrics._ProxyMeterProvider())
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    metrics.set_meter_provider(provider)
    yield Meters(reader)
    provider.shutdown()
