"""The histograms of durations have exemplars that lead to traces, in the OpenMetrics format of `/metrics`."""

import asyncio

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from prometheus_client import REGISTRY
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from outbox import Consumer
from outbox.cli.processes import Address, monitored
from outbox.fastapi import HealthChecks
from tests.support import eventually
from tests.support.processes import free_port
from tests.tracing.support import TRACE, TRACEPARENT, Spans, context_of, publish, system

METRICS = {"enable_metrics": True}
PROCESSING, AGE, ROUND = (
    "outbox_message_processing_duration_seconds",
    "outbox_message_age_seconds",
    "outbox_poll_duration_seconds",
)
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


async def scrape(accept: str = OPEN_METRICS) -> httpx.Response:
    """The metrics of this process, as a command serves them on its port."""
    port = free_port()
    with monitored(Address("127.0.0.1", port, port), HealthChecks(), metrics=True):
        url = f"http://127.0.0.1:{port}/metrics"
        return await asyncio.to_thread(httpx.get, url, headers={"accept": accept}, timeout=60)


async def exemplars(histogram: str, **labels: str) -> list[dict[str, str]]:
    """The exemplars of the series with these labels."""
    text = (await scrape()).text
    return [
        sample.exemplar.labels
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        if family.name == histogram
        for sample in family.samples
        if sample.exemplar is not None and sample.labels.items() >= labels.items()
    ]


async def counted(queue: str, count: int) -> None:
    """Waits until so many attempts of the queue were observed."""
    labels = {"queue": queue, "exchange_name": "shop"}
    await eventually(lambda: REGISTRY.get_sample_value(f"{PROCESSING}_count", labels) == count)


async def test_the_handlers_time_leads_to_its_process_span(database: str, broker: str, spans: Spans) -> None:
    async def handle(body: int, attempt_count: int) -> None:
        if attempt_count == 1:
            await asyncio.sleep(0.3)  # in another bucket than the second attempt
            raise ValueError

    queue = f"exemplars.attempts.{broker[:4]}"
    async with system(database, broker, Consumer("a", handle, queue=queue), metrics=METRICS):
        await publish(database, "a")
        attempts = await spans.ended(f"process {queue}", 2)
        await counted(queue, 2)
    found = await exemplars(PROCESSING, queue=queue)
    assert {each["span_id"] for each in found} == {f"{context_of(span).span_id:016x}" for span in attempts}
    assert {each["trace_id"] for each in found} == {f"{context_of(span).trace_id:032x}" for span in attempts}


async def test_the_time_of_a_batch_leads_to_the_span_of_the_batch(database: str, spans: Spans) -> None:
    seen: list[int] = []
    enough = asyncio.Event()

    async def handle(messages: list[int]) -> None:
        seen.extend(messages)
        if len(seen) == 1:
            await enough.wait()

    queue = "exemplars.batches"
    async with system(database, database, Consumer("a", handle, queue=queue, batch=True), metrics=METRICS) as lines:
        await publish(database, "a")
        await eventually(lambda: seen)
        await publish(database, "a", count=3)
        await eventually(lambda: sum("received" in line for line in lines) == 4)
        enough.set()
        await counted(queue, 4)
    (batch,) = [span for span in spans.named(f"process {queue}") if span.links]
    found = await exemplars(PROCESSING, queue=queue)
    assert f"{context_of(batch).span_id:016x}" in {each["span_id"] for each in found}


async def test_age_and_round_lead_to_the_span_that_published_the_message(database: str, broker: str, spans: Spans) -> None:
    async def handle(body: int) -> None:
        pass

    async with system(database, broker, Consumer("a", handle, queue="q"), metrics=METRICS):
        await publish(database, "a")
        await spans.ended("send shop")
    (create,) = spans.named("create")
    expected = {"trace_id": f"{context_of(create).trace_id:032x}", "span_id": f"{context_of(create).span_id:016x}"}
    assert expected in await exemplars(AGE, exchange_name="shop")
    assert expected in await exemplars(ROUND, exchange_name="shop")


@pytest.mark.parametrize(
    "traceparent", [f"{TRACEPARENT[:-2]}00", f"00-{'0' * 32}-b7ad6b7169203331-01", f"{TRACEPARENT}\n", "nonsense"]
)
async def test_what_is_not_sampled_or_malformed_is_no_exemplar(
    database: str, provider: TracerProvider, traceparent: str
) -> None:
    provider.sampler = ALWAYS_OFF

    async def handle(body: int) -> None:
        pass

    queue = f"exemplars.{hash(traceparent)}"
    before = [await exemplars(AGE, exchange_name="shop"), await exemplars(ROUND, exchange_name="shop")]
    async with system(database, database, Consumer("a", handle, queue=queue), metrics=METRICS):
        await publish(database, "a", headers={"traceparent": traceparent})
        await counted(queue, 1)
    assert await exemplars(PROCESSING, queue=queue) == []
    assert [await exemplars(AGE, exchange_name="shop"), await exemplars(ROUND, exchange_name="shop")] == before
    assert TRACE not in str(before)


async def test_the_plain_format_has_no_exemplars(database: str, spans: Spans) -> None:
    async def handle(body: int) -> None:
        pass

    queue = "exemplars.plain"
    async with system(database, database, Consumer("a", handle, queue=queue), metrics=METRICS):
        await publish(database, "a")
        (process,) = await spans.ended(f"process {queue}")
        await counted(queue, 1)
    plain, open_metrics = await scrape("*/*"), await scrape()
    assert plain.headers["content-type"].startswith("text/plain")
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text")
    ids = f"{context_of(process).span_id:016x}"
    assert ids in open_metrics.text
    assert ids not in plain.text
