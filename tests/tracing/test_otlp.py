"""The spans arrive at a collector, by the OTLP exporter over HTTP."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from outbox import Consumer
from tests.support import eventually
from tests.tracing.support import publish, system


@pytest.fixture
def collector() -> Iterator[tuple[str, list[Span]]]:
    """A receiver of OTLP: its address, and the spans that arrived, with the name of their scope."""
    received: list[Span] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    if scope.scope.name == "outbox":
                        received.extend(scope.spans)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", received
        server.shutdown()
        thread.join()


async def test_a_collector_receives_the_spans(
    database: str, provider: TracerProvider, collector: tuple[str, list[Span]]
) -> None:
    endpoint, received = collector
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint), schedule_delay_millis=50))

    async def handle(body: int) -> None:
        pass

    async with system(database, database, Consumer("a", handle, queue="q")):
        await publish(database, "a")
        await eventually(lambda: {span.name for span in received} == {"create", "send shop", "process q"})
    by_name = {span.name: span for span in received}
    create, send, process = by_name["create"], by_name["send shop"], by_name["process q"]
    assert process.trace_id == create.trace_id
    assert process.parent_span_id == create.span_id
    assert [link.span_id for link in send.links] == [create.span_id]
    assert [create.kind, send.kind, process.kind] == [Span.SPAN_KIND_PRODUCER, Span.SPAN_KIND_CLIENT, Span.SPAN_KIND_CONSUMER]
    assert process.attributes[0].key == "messaging.system"
