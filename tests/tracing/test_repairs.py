"""The span tree of a message that is requeued by an operator, or whose worker was killed, on PostgreSQL and RabbitMQ."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from outbox import Archiver, Consumer, DeadLetters
from tests.relay.support import running as running_relay
from tests.support import eventually
from tests.support.processes import running as running_process
from tests.tracing.support import (
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


@asynccontextmanager
async def archiving(database: str, broker: str) -> AsyncIterator[None]:
    """Moves the queue's dead letters into the database, which PostgreSQL needs no archiver for."""
    if broker == database:
        yield
        return
    archiver = Archiver(database, broker=broker, queues=["q"], enable_metrics=False)
    task = asyncio.create_task(archiver.run(handle_signals=False))
    try:
        yield
    finally:
        archiver.stop()
        await task


@pytest.mark.parametrize("propagation", ["auto", "child", "link"])
async def test_a_requeued_message_is_linked_to_its_first_trace_unless_it_is_always_a_child(
    database: str, broker: str, propagation: str, spans: Spans
) -> None:
    is_down = True

    async def handle(body: int) -> None:
        if is_down:
            raise ValueError

    consumer = Consumer("a", handle, queue="q", retry_delays=())
    async with (
        system(database, broker, consumer, propagation=propagation),
        archiving(database, broker),
        DeadLetters(database, broker=broker, exchange_name="shop") as dead_letters,
    ):
        await publish(database, "a")
        (failed,) = await spans.ended("process q")
        (letter,) = await eventually(dead_letters.list)
        is_down = False
        await dead_letters.requeue(letter.id)
        _, requeued = await spans.ended("process q", 2)
        sends = await spans.ended("send shop", 2)
    (create,) = spans.named("create")
    assert events_of(failed) == ["outbox.dead_letter"]
    assert is_child(requeued, create) == (propagation == "child")
    assert links_to(requeued, *(() if propagation == "child" else [create]))
    assert (context_of(requeued).trace_id == context_of(create).trace_id) == (propagation == "child")
    assert attributes_of(requeued)["messaging.message.id"] == attributes_of(failed)["messaging.message.id"]
    assert attributes_of(requeued)["outbox.attempt"] == 1
    # An operator's requeue is sent like any message, and its batch belongs to the first trace, too.
    assert all(links_to(send, create) for send in sends)


async def test_an_attempt_after_the_kill_of_a_worker_is_the_only_span_of_its_message(
    database: str, broker: str, spans: Spans, tmp_path: Path
) -> None:
    async def handle(body: int) -> None:
        pass

    async with running_relay(new_relay(database, broker)):
        with running_process(["-m", "tests.tracing.killed_worker", database, broker], tmp_path) as killed:
            await asyncio.to_thread(killed.says, "consumes queue")
            await publish(database, "a")
            await asyncio.to_thread(killed.says, "ended inside")
            killed.send(signal.SIGKILL)
            await asyncio.to_thread(killed.wait)
            assert "process q" not in killed.output
        async with system(database, broker, Consumer("a", handle, queue="q"), relay=False):
            (process,) = await spans.ended("process q")
            await spans.ended("send shop")
    (create,), (send,), (process,) = spans.named("create"), spans.named("send shop"), spans.named("process q")
    assert is_child(process, create)
    assert not process.links
    assert links_to(send, create)
    assert not events_of(process)
    # The kill has spent no attempt: this is the first one that came to an end.
    assert attributes_of(process)["outbox.attempt"] == 1
