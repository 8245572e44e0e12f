"""The span tree of each path of a message, with the in-memory exporter on PostgreSQL and RabbitMQ."""

import asyncio
from typing import Any

import asyncpg
import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from outbox import Consumer, Publisher, Reject
from tests.relay.support import running as running_relay
from tests.support import eventually
from tests.tracing.support import (
    TRACE,
    TRACEPARENT,
    Spans,
    attributes_of,
    context_of,
    events_of,
    is_child,
    links_to,
    new_relay,
    publish,
    system,
)


def system_of(broker: str) -> str:
    return "rabbitmq" if broker.startswith("amqp") else "postgresql"


async def test_a_request_its_message_and_what_its_handler_publishes_are_one_trace(
    database: str, broker: str, spans: Spans
) -> None:
    async def place(body: int, publisher: Any) -> None:
        await publisher.publish("order.paid", 2)

    async def pay(body: int) -> None:
        pass

    async with system(
        database, broker, Consumer("order.placed", place, queue="orders"), Consumer("order.paid", pay, queue="payments")
    ):
        await publish(database, "order.placed")
        (last,) = await spans.ended("process payments")
        sends = await spans.ended("send shop", 2)
    (request,), (process,) = spans.named("request"), spans.named("process orders")
    first, second = spans.named("create")
    assert is_child(first, request)
    assert is_child(process, first)
    assert is_child(second, process)
    assert is_child(last, second)
    assert context_of(last).trace_id == context_of(request).trace_id
    assert [first.kind, sends[0].kind, process.kind] == [SpanKind.PRODUCER, SpanKind.CLIENT, SpanKind.CONSUMER]
    assert links_to(sends[0], first)
    assert links_to(sends[1], second)
    assert sends[0].parent is None
    assert attributes_of(first) == {
        "messaging.system": "outbox",
        "messaging.operation.name": "create",
        "messaging.operation.type": "create",
        "messaging.destination.name": "order.placed",
        "messaging.rabbitmq.destination.routing_key": "order.placed",
    }
    assert attributes_of(sends[0]) == {
        "messaging.system": system_of(broker),
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "shop",
        "messaging.batch.message_count": 1,
    }
    found = attributes_of(process)
    assert found.pop("messaging.message.id") == found.pop("messaging.message.conversation_id")
    assert found == {
        "messaging.system": system_of(broker),
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "shop:order.placed:orders",
        "messaging.rabbitmq.destination.routing_key": "order.placed",
        "messaging.message.body.size": 1,
        "outbox.queue": "orders",
        "outbox.attempt": 1,
    }


async def test_a_sync_handler_runs_in_the_extracted_context(database: str, broker: str, spans: Spans) -> None:
    def handle(body: int) -> None:
        trace.get_tracer("test").start_span("inside").end()

    async with system(database, broker, Consumer("a", handle, queue="q")):
        await publish(database, "a")
        (process,) = await spans.ended("process q")
    (inside,) = spans.named("inside")
    assert is_child(inside, process)


async def test_a_retried_message_is_linked_and_each_attempt_says_how_it_ended(database: str, broker: str, spans: Spans) -> None:
    async def handle(body: int, attempt_count: int) -> None:
        if attempt_count == 1:
            raise ValueError("secret")
        raise Reject("no")

    async with system(database, broker, Consumer("a", handle, queue="q")):
        await publish(database, "a")
        first, second = await spans.ended("process q", 2)
    (create,) = spans.named("create")
    assert is_child(first, create)
    assert second.parent is None
    assert links_to(second, create)
    assert events_of(first) == ["outbox.retry"]
    assert events_of(second) == ["outbox.reject"]
    assert first.status.status_code is second.status.status_code is StatusCode.ERROR
    assert attributes_of(first)["error.type"] == "ValueError"
    assert attributes_of(second)["error.type"] == "outbox.errors.Reject"
    assert "secret" not in first.to_json() + second.to_json()


async def test_ordered_retries_each_have_a_span_and_then_become_a_dead_letter(database: str, broker: str, spans: Spans) -> None:
    async def handle(body: int) -> None:
        trace.get_tracer("test").start_span("inside").end()
        raise ValueError

    async with system(database, broker, Consumer("a", handle, queue="q", ordered=True)):
        await publish(database, "a", ordering_key="k")
        first, second = await spans.ended("process q", 2)
    (create,) = spans.named("create")
    assert is_child(first, create)
    assert links_to(second, create)
    assert events_of(first) == ["outbox.retry"]
    assert events_of(second) == ["outbox.dead_letter"]
    for inside, process in zip(spans.named("inside"), (first, second), strict=True):
        assert is_child(inside, process)


async def test_a_batch_is_one_span_with_links(database: str, broker: str, spans: Spans) -> None:
    seen: list[int] = []
    enough = asyncio.Event()

    async def handle(messages: list[int]) -> None:
        trace.get_tracer("test").start_span("inside").end()
        seen.extend(messages)
        if len(seen) < 4:
            await enough.wait()

    async with system(database, broker, Consumer("a", handle, queue="q", batch=True)) as lines:
        await publish(database, "a", 1)
        await eventually(lambda: seen)
        await publish(database, "a", 2, count=3)
        await eventually(lambda: sum("received" in line for line in lines) == 4)
        enough.set()
        await eventually(lambda: len(seen) == 4)
        await spans.ended("process q")
        await eventually(lambda: sum(_count(span) for span in spans.named("process q")) == 4)
    batches = [span for span in spans.named("process q") if _count(span) > 1]
    assert batches
    for batch in batches:
        assert batch.parent is None
        assert len(batch.links) == _count(batch)
        assert any(is_child(inside, batch) for inside in spans.named("inside"))


async def test_an_attempt_that_is_cancelled_ends_its_span_as_an_error(database: str, broker: str, spans: Spans) -> None:
    attempts = 0

    async def handle(body: int) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1 and (task := asyncio.current_task()) is not None:
            task.cancel()
            await asyncio.Event().wait()

    async with system(database, broker, Consumer("a", handle, queue="q")):
        await publish(database, "a")
        cancelled, retried = await spans.ended("process q", 2)
    assert attributes_of(cancelled)["error.type"] == "asyncio.exceptions.CancelledError"
    assert cancelled.status.status_code is StatusCode.ERROR
    assert retried.status.status_code is not StatusCode.ERROR


async def test_a_duplicate_is_an_event(database: str, broker: str, spans: Spans) -> None:
    async def handle(body: int) -> None:
        raise AssertionError

    connection = await asyncpg.connect(database)
    await connection.execute("insert into outbox_inbox (queue, message_id) values ('q', 'known')")
    async with system(database, broker, Consumer("a", handle, queue="q", inbox=True)):
        await connection.execute(
            "insert into outbox_table (routing_key, body, tracking_ids) values ('a', '1', jsonb_build_array('known'))"
        )
        (process,) = await spans.ended("process q")
    await connection.close()
    assert events_of(process) == ["outbox.duplicate"]
    assert process.status.status_code is StatusCode.UNSET


async def test_a_delayed_message_is_linked(database: str, broker: str, spans: Spans) -> None:
    async def handle(body: int) -> None:
        pass

    connection = await asyncpg.connect(database)
    await publish(database, "a")
    await connection.execute("update outbox_table set created_at = now() - interval '2 minutes'")
    await connection.close()
    async with system(database, broker, Consumer("a", handle, queue="q")):
        (process,) = await spans.ended("process q")
    assert process.parent is None
    assert links_to(process, *spans.named("create"))


@pytest.mark.parametrize("propagation", ["child", "link"])
async def test_the_relation_can_be_chosen(database: str, propagation: str, spans: Spans) -> None:
    async def handle(body: int, attempt_count: int) -> None:
        if attempt_count == 1:
            raise ValueError

    async with system(database, database, Consumer("a", handle, queue="q"), propagation=propagation):
        await publish(database, "a")
        attempts = await spans.ended("process q", 2)
    (create,) = spans.named("create")
    for attempt in attempts:
        assert is_child(attempt, create) == (propagation == "child")
        assert links_to(attempt, create) == (propagation == "link")


@pytest.mark.parametrize("flags", ["01", "03"])
async def test_a_traceparent_given_by_hand_wins_whatever_its_flags(
    database: str, broker: str, flags: str, spans: Spans
) -> None:
    given = f"{TRACEPARENT[:-2]}{flags}"
    seen: list[Any] = []

    async def handle(body: int, message: Any) -> None:
        seen.append(message.headers["traceparent"])

    async with system(database, broker, Consumer("a", handle, queue="q")):
        await publish(database, "a", headers={"traceparent": given, "tracestate": "vendor=1"})
        (process,) = await spans.ended("process q")
        (send,) = await spans.ended("send shop")
    assert seen == [given]
    assert not spans.named("create")
    assert f"{context_of(process).trace_id:032x}" == TRACE
    assert context_of(process).trace_state.get("vendor") == "1"
    assert [f"{link.context.trace_id:032x}" for link in send.links] == [TRACE]


async def test_a_batch_of_a_relay_links_128_sampled_parents(database: str, broker: str, spans: Spans) -> None:
    async def handle(body: int) -> None:
        pass

    await publish(database, "a", count=30, headers={"traceparent": f"{TRACEPARENT[:-2]}00"})
    await publish(database, "a", count=170)
    async with (
        system(database, broker, Consumer("a", handle, queue="q"), relay=False),
        running_relay(new_relay(database, broker)),
    ):
        await eventually(lambda: sum(_count(span) for span in spans.named("send shop")) == 200)
    assert all(
        len(span.links) <= 128 and all(link.context.trace_flags.sampled for link in span.links)
        for span in spans.named("send shop")
    )
    assert sum(len(span.links) for span in spans.named("send shop")) >= 128


async def test_malformed_headers_are_ignored(database: str, broker: str, spans: Spans) -> None:
    async def handle(body: int) -> None:
        pass

    async with system(database, broker, Consumer("a", handle, queue="q")):
        await publish(database, "a", headers={"traceparent": 7})
        await publish(database, "a", headers={"traceparent": "nonsense"})
        for process in await spans.ended("process q", 2):
            assert process.parent is None
            assert not process.links


async def test_baggage_is_not_sent(database: str, spans: Spans) -> None:
    seen: list[Any] = []

    async def handle(body: int, message: Any) -> None:
        seen.append((dict(message.headers), baggage.get_all()))

    token = context.attach(baggage.set_baggage("customer", "ada"))
    await publish(database, "a")
    context.detach(token)
    async with system(database, database, Consumer("a", handle, queue="q")):
        await spans.ended("process q")
    ((headers, carried),) = seen
    assert "baggage" not in headers
    assert not carried


async def test_a_bulk_has_one_span(database: str, spans: Spans) -> None:
    from outbox import OutboxMessage

    connection = await asyncpg.connect(database)
    async with connection.transaction():
        await Publisher().bulk_publish(connection, [OutboxMessage("a", 1), OutboxMessage("b", 2, headers={"x": 1})])
    rows = await connection.fetch(
        "select headers ->> 'traceparent' as parent, headers ->> 'x' as x from outbox_table order by id"
    )
    await connection.close()
    (create,) = spans.named("create")
    context_ = context_of(create)
    assert [row["parent"] for row in rows] == [
        f"00-{context_.trace_id:032x}-{context_.span_id:016x}-{context_.trace_flags:02x}"
    ] * 2
    assert [row["x"] for row in rows] == [None, "1"]
    assert attributes_of(create)["messaging.batch.message_count"] == 2


async def test_without_sampling_the_decision_travels(database: str, provider: TracerProvider, spans: Spans) -> None:
    provider.sampler = ALWAYS_OFF
    seen: list[str] = []

    async def handle(body: int, message: Any) -> None:
        seen.append(message.headers["traceparent"][-2:])

    async with system(database, database, Consumer("a", handle, queue="q")):
        await publish(database, "a")
        await eventually(lambda: seen)
    assert int(seen[0], 16) & 1 == 0
    assert not spans.all


async def test_tracing_can_be_disabled(database: str, spans: Spans) -> None:
    seen: list[bool] = []

    async def handle(body: int, publisher: Any) -> None:
        seen.append(trace.get_current_span().get_span_context().is_valid)
        await publisher.publish("b", 1)

    connection = await asyncpg.connect(database)
    async with system(database, database, Consumer("a", handle, queue="q"), enable_tracing=False, relay=False):
        async with connection.transaction():
            await Publisher(enable_tracing=False).publish(connection, "a", 1)
        async with running_relay(new_relay(database, database)):
            await eventually(lambda: seen)
    await connection.close()
    assert seen == [False]
    assert {span.name for span in spans.all} <= {"send shop"}


def _count(span: Any) -> int:
    return int(attributes_of(span).get("messaging.batch.message_count", 1))
