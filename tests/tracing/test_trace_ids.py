"""The admin API names the sampled traces of messages and of attempts, and links to them: others were not exported."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import format_trace_id

from outbox import Consumer
from outbox.admin import Admin, Role
from outbox.core.codec import trace_id_of
from tests.admin.support import client_of, serving
from tests.support import eventually
from tests.tracing.support import TRACE, TRACEPARENT, Spans, attributes_of, context_of, publish, system


def trace_of(span: ReadableSpan) -> str:
    return format_trace_id(context_of(span).trace_id)


def link_to(trace_id: str | None) -> Mapping[str, str | None]:
    return {"log_url": None, "trace_url": None if trace_id is None else f"https://traces.example/q/{trace_id}"}


@asynccontextmanager
async def viewing(database: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the admin API, which links to traces."""
    admin = Admin(database, trace_url="https://traces.example/{queue}/{trace_id}")
    async with serving(admin) as app, client_of(app, Role.VIEWER) as client:
        yield client


async def facts(database: str, count: int) -> Sequence[asyncpg.Record]:
    """Waits until the history has so many facts, and returns them in order."""
    connection = await asyncpg.connect(database)
    try:

        async def recorded() -> Any:
            rows = await connection.fetch("select fact, message_id, queue, attempt, trace_id from outbox_history order by at")
            assert len(rows) >= count, rows
            return rows

        found: Sequence[asyncpg.Record] = await eventually(recorded)
        return found
    finally:
        await connection.close()


@pytest.mark.parametrize("ordered", [False, True])
async def test_each_attempt_has_the_id_of_its_own_trace(database: str, broker: str, spans: Spans, *, ordered: bool) -> None:
    async def handle(body: int, attempt_count: int) -> None:
        if attempt_count == 1:
            raise ValueError

    async with system(database, broker, Consumer("a", handle, queue="q", ordered=ordered)):
        await publish(database, "a", ordering_key="k")
        first, second = await spans.ended("process q", 2)
        [sent] = [fact for fact in await facts(database, 3) if fact["fact"] == "sent"]
    (create,) = spans.named("create")
    assert trace_of(first) == trace_of(create) != trace_of(second)
    async with viewing(database) as client:
        [node] = (await client.get(f"/chains/{sent['message_id']}")).json()["nodes"]
        [delivery] = node["deliveries"]
        queue = (await client.get("/attempts", params={"queue": "q"})).json()["items"]
    assert node["trace_id"] == trace_of(create)
    for attempts in (delivery["attempts"], queue):
        # By number: without a delay, the second attempt may be recorded before the first.
        attempts.sort(key=lambda attempt: attempt["attempt"])
        assert [attempt["outcome"] for attempt in attempts] == ["retried", "processed"]
        assert [attempt["trace_id"] for attempt in attempts] == [trace_of(first), trace_of(second)]
        assert [attempt["external"] for attempt in attempts] == [link_to(trace_of(first)), link_to(trace_of(second))]


@pytest.mark.parametrize("fails", [False, True])
async def test_the_messages_of_a_batch_share_its_trace_unless_it_failed(
    database: str, broker: str, spans: Spans, *, fails: bool
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def handle(messages: list[int]) -> None:
        started.set()
        await go_on.wait()
        if fails and len(messages) > 1:
            raise ValueError

    async with system(database, broker, Consumer("a", handle, queue="q", batch=True)) as lines:
        await publish(database, "a")
        await started.wait()
        await publish(database, "a", count=3)
        await eventually(lambda: sum("received" in line for line in lines) == 4)
        go_on.set()
        handled = [fact["trace_id"] for fact in await facts(database, 8) if fact["fact"] == "processed"]
        alone, *others = await spans.ended("process q", 5 if fails else 2)
    if fails:  # the failed batch, and then each message by itself
        failed = next(span for span in others if len(span.links) == 3)
        assert attributes_of(failed)["error.type"] == "ValueError"
        others.remove(failed)
        assert sorted(handled) == sorted(map(trace_of, [alone, *others]))
        assert len(set(handled)) > 1
    else:
        assert "error.type" not in attributes_of(others[0])
        assert sorted(handled) == sorted([trace_of(alone), *[trace_of(others[0])] * 3])


async def test_an_attempt_that_is_not_traced_has_no_trace_id(database: str, broker: str, spans: Spans) -> None:
    async def handle(body: int) -> None: ...

    async with system(database, broker, Consumer("a", handle, queue="q"), enable_tracing=False):
        await publish(database, "a", headers={"traceparent": TRACEPARENT})
        found = {fact["fact"]: fact for fact in await facts(database, 2)}
    assert {name: fact["trace_id"] for name, fact in found.items()} == {"sent": TRACE, "processed": None}
    async with viewing(database) as client:
        [node] = (await client.get(f"/chains/{found['sent']['message_id']}")).json()["nodes"]
    assert node["trace_id"] == TRACE
    assert node["external"] == {
        "log_url": None,
        "trace_url": None,
    }  # the template names a queue, and a message may have several
    [attempt] = node["deliveries"][0]["attempts"]
    assert (attempt["trace_id"], attempt["external"]) == (None, link_to(None))


@pytest.mark.parametrize(("flags", "recorded"), [("00", None), ("02", None), ("01", TRACE), ("03", TRACE)])
async def test_an_attempt_has_a_trace_id_if_its_trace_is_sampled(
    database: str, broker: str, spans: Spans, flags: str, recorded: str | None
) -> None:
    seen: list[str] = []

    async def handle(body: int) -> None:
        seen.append(format_trace_id(trace.get_current_span().get_span_context().trace_id))

    async with system(database, broker, Consumer("a", handle, queue="q")):
        await publish(database, "a", headers={"traceparent": TRACEPARENT.removesuffix("01") + flags})
        found = {fact["fact"]: fact["trace_id"] for fact in await facts(database, 2)}
    assert found == {"sent": recorded, "processed": recorded}
    assert seen == [TRACE]  # what it logs or publishes belongs to the trace nevertheless


async def test_the_history_reads_the_header_as_the_api_does(database: str, broker: str) -> None:
    expected = {
        TRACEPARENT: TRACE,
        TRACEPARENT.removesuffix("01") + "03": TRACE,
        TRACEPARENT.removesuffix("01") + "00": None,
        TRACEPARENT.removesuffix("01") + "02": None,
        f"cc-{TRACE}-b7ad6b7169203331-01-more": TRACE,
        TRACEPARENT.upper(): None,
        f"00-{'0' * 32}-b7ad6b7169203331-01": None,
        f"00-{TRACE}-{'0' * 16}-01": None,
        f"00-{TRACE[:-1]}-b7ad6b71692033310-01": None,
        f"00-{TRACE[:-1]}g-b7ad6b7169203331-01": None,
        f"{TRACEPARENT}1": None,
        f" {TRACEPARENT}": None,
        "garbage": None,
        "": None,
    }

    async def handle(body: int) -> None: ...

    async with system(database, broker, Consumer("a", handle, queue="q")):
        ids = [(await publish(database, "a", headers={"traceparent": traceparent}))[0] for traceparent in expected]
        found = {fact["message_id"]: fact["trace_id"] for fact in await facts(database, 2 * len(ids)) if fact["fact"] == "sent"}
    assert {traceparent: trace_id_of(traceparent) for traceparent in expected} == expected
    assert [found[id_] for id_ in ids] == list(expected.values())
