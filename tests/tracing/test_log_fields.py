"""Log lines of a handler have the ids of its message, its queue and its span."""

import json
import logging
from collections.abc import Iterator

import pytest

from outbox import Consumer, LogFields
from outbox.cli.logs import JsonFormatter
from tests.support import eventually
from tests.tracing.support import Spans, attributes_of, context_of, publish, system


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """What the logger `shop` wrote."""
    found: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.addFilter(LogFields())
    handler.emit = found.append  # type: ignore[assignment, method-assign]
    logger = logging.getLogger("shop")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


@pytest.mark.parametrize("in_a_thread", [False, True])
async def test_a_handlers_lines_have_its_message_and_span(
    in_a_thread: bool, database: str, spans: Spans, records: list[logging.LogRecord]
) -> None:
    def log(body: int) -> None:
        logging.getLogger("shop").warning("paid")

    async def handle(body: int) -> None:
        log(body)

    async with system(database, database, Consumer("a", log if in_a_thread else handle, queue="q")):
        await publish(database, "a")
        (process,) = await spans.ended("process q")
    (record,) = records
    expected = {
        "message_id": attributes_of(process)["messaging.message.id"],
        "queue": "q",
        "trace_id": f"{context_of(process).trace_id:032x}",
        "span_id": f"{context_of(process).span_id:016x}",
    }
    assert {name: getattr(record, name) for name in expected} == expected
    assert json.loads(JsonFormatter().format(record)).items() >= expected.items()


async def test_without_tracing_they_have_the_message_only(database: str, records: list[logging.LogRecord]) -> None:
    async def handle(bodies: list[int]) -> None:
        logging.getLogger("shop").warning("paid")

    async with system(database, database, Consumer("a", handle, queue="q", batch=True)):
        await publish(database, "a")
        await eventually(lambda: records)
    (record,) = records
    assert getattr(record, "queue") == "q"  # noqa: B009  mypy does not know the field
    assert getattr(record, "trace_id") is None  # noqa: B009


def test_other_lines_have_none(records: list[logging.LogRecord]) -> None:
    logging.getLogger("shop").warning("started", extra={"queue": "mine"})
    (record,) = records
    assert (getattr(record, "message_id"), getattr(record, "queue")) == (None, "mine")  # noqa: B009
