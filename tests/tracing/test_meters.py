"""The metrics of a real relay and worker as OpenTelemetry's SDK collects them, by the names of the semantic conventions."""

import asyncio
import subprocess
import sys

import asyncpg
import pytest

from outbox import Consumer, Reject
from tests.relay.support import running as running_relay
from tests.support import eventually
from tests.tracing.support import Meters, Spans, context_of, new_relay, publish, system

METRICS = {"enable_metrics": False, "enable_otel_metrics": True}


async def test_a_sent_and_handled_message_is_reported_by_the_names_of_the_conventions(
    database: str, broker: str, meters: Meters
) -> None:
    async def handle(body: int) -> None:
        pass

    async with system(database, broker, Consumer("a.*", handle, queue="q"), metrics=METRICS):
        await publish(database, "a.secret")
        await eventually(lambda: meters.points("messaging.process.duration"))
        await eventually(lambda: meters.points("messaging.client.operation.duration"))
        await eventually(lambda: meters.points("outbox.table_backlog"))
        assert meters.values("outbox.active_consumers", **{"outbox.queue": "q"}) == [1]
    of_system = {"messaging.system": "rabbitmq" if broker.startswith("amqp") else "postgresql"}
    sending = of_system | {"messaging.operation.name": "send", "messaging.destination.name": "shop"}
    consumer = {"messaging.destination.name": "shop:q", "outbox.queue": "q"}
    processing = of_system | consumer | {"messaging.operation.name": "process"}
    assert meters.values("messaging.client.sent.messages", **sending) == [1]
    assert meters.values("messaging.client.consumed.messages", **processing) == [1]
    assert [dict(point.attributes) for point in meters.points("messaging.client.operation.duration")] == [
        sending | {"messaging.operation.type": "send"}
    ]
    (processed,) = meters.points("messaging.process.duration")
    assert dict(processed.attributes) == processing | {"outbox.status": "success"}
    assert processed.count == 1
    assert processed.explicit_bounds[:3] == (0.005, 0.01, 0.025)
    (age,) = meters.points("outbox.message_age")
    assert dict(age.attributes) == {"messaging.destination.name": "shop"}
    assert 0 < age.sum < 60
    assert meters.values("outbox.active_consumers", **consumer) == [0]
    assert {name: meters.unit(name) for name in ("messaging.client.sent.messages", "messaging.process.duration")} == {
        "messaging.client.sent.messages": "{message}",
        "messaging.process.duration": "s",
    }
    assert "a.secret" not in str(meters.all)


async def test_failures_are_counted_by_their_types_causes_and_delays(database: str, broker: str, meters: Meters) -> None:
    async def handle(body: int, attempt_count: int) -> None:
        if attempt_count == 1:
            raise ValueError("secret")
        raise Reject("no")

    async with system(database, broker, Consumer("a", handle, queue="q"), metrics=METRICS):
        await eventually(lambda: meters.points("outbox.dead_letters"))
        assert meters.values("outbox.dead_letters", **{"outbox.queue": "q", "outbox.cause": "rejected"}) == [0]
        await publish(database, "a")
        await eventually(lambda: len(meters.points("messaging.process.duration")) == 2)
    assert {
        (point.attributes["outbox.status"], point.attributes["error.type"])
        for point in meters.points("messaging.process.duration")
    } == {("failed", "ValueError"), ("rejected", "outbox.errors.Reject")}
    assert meters.values("outbox.retry_attempts", **{"outbox.queue": "q", "outbox.delay_seconds": "0"}) == [1]
    assert meters.values("outbox.dead_letters", **{"outbox.queue": "q", "outbox.cause": "rejected"}) == [1]
    assert meters.values("outbox.dead_letters", **{"outbox.queue": "q", "outbox.cause": "exhausted"}) == [0]


async def test_an_unroutable_message_is_an_attempt_to_send_with_an_error(
    database: str, broker_url: str, meters: Meters
) -> None:
    async with running_relay(new_relay(database, broker_url, **METRICS)):
        await publish(database, "nowhere")
        await eventually(lambda: meters.values("messaging.client.sent.messages", **{"error.type": "unroutable"}))
        await eventually(lambda: meters.points("messaging.client.operation.duration"))
    (round_, *_) = meters.points("messaging.client.operation.duration")
    assert round_.attributes["error.type"] == "unroutable"


async def test_a_duplicate_is_counted(database: str, broker: str, meters: Meters) -> None:
    async def handle(body: int) -> None:
        raise AssertionError

    connection = await asyncpg.connect(database)
    await connection.execute("insert into outbox_inbox (queue, message_id) values ('q', 'known')")
    async with system(database, broker, Consumer("a", handle, queue="q", inbox=True), metrics=METRICS):
        await connection.execute(
            "insert into outbox_table (routing_key, body, tracking_ids) values ('a', '1', jsonb_build_array('known'))"
        )
        await eventually(lambda: meters.values("outbox.duplicates", **{"outbox.queue": "q"}) == [1])
    await connection.close()


async def test_durations_have_exemplars_of_the_spans_that_they_are_those_of(
    database: str, broker: str, spans: Spans, meters: Meters
) -> None:
    async def handle(body: int) -> None:
        pass

    async with system(database, broker, Consumer("a", handle, queue="q"), metrics=METRICS) as lines:
        await publish(database, "a")
        (process,) = await spans.ended("process q")
        await spans.ended("send shop")
        await eventually(lambda: any(line.startswith("processed") for line in lines))
    (create,) = spans.named("create")
    of_process, of_create = [[(context_of(span).trace_id, context_of(span).span_id)] for span in (process, create)]
    assert meters.exemplars() == {
        "messaging.process.duration": of_process,
        "outbox.message_age": of_create,
        "messaging.client.operation.duration": of_create,
    }


async def test_they_are_off_by_default(database: str, meters: Meters) -> None:
    handled = asyncio.Event()

    async def handle(body: int) -> None:
        handled.set()

    async with system(database, database, Consumer("a", handle, queue="q")):
        await publish(database, "a")
        await handled.wait()
    assert not meters.all


async def test_without_a_provider_one_line_says_so(database: str) -> None:
    async def handle(body: int) -> None:
        pass

    async with system(database, database, Consumer("a", handle, queue="q"), relay=False, metrics=METRICS) as lines:
        pass
    assert [line for line in lines if "meter provider" in line] == [
        "OpenTelemetry metrics are off: the process has configured no meter provider"
    ]


NOT_LOADED = """
import asyncio, sys
from outbox import MessageRelay, Worker
from outbox.runtime.tracer import open_meters
assert open_meters(enabled=True, source="postgresql://h/d") is None
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""


def test_without_a_provider_opentelemetry_is_not_loaded() -> None:
    subprocess.run([sys.executable, "-c", NOT_LOADED], timeout=60, check=True)


def test_a_disabled_sdk_is_no_provider(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    from outbox.runtime.tracer import open_meters

    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    request.getfixturevalue("meters")
    assert open_meters(enabled=True, source="postgresql://h/d") is None
