"""Workers of Celery, Dramatiq, taskiq and FastStream handle what a publisher and a relay sent: the programs of docs/interop.md.

Each worker is a process of the framework's own command. It runs the program on the page, and tasks that only these tests need.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg2
import pytest

from outbox import OutboxMessage, Publisher, tracking
from outbox.interop import celery, dramatiq, faststream, taskiq
from tests.servers.postgres import PostgresServer, fresh_database, with_database
from tests.servers.rabbitmq import NamedRabbitMQ, PrivateRabbitMQ, fresh_vhost, with_vhost
from tests.support.processes import OurProcess, running

PAGE = (Path(__file__).parent.parent.parent / "docs" / "interop.md").read_text()
PROGRAM = re.compile(r"```python\n# (?P<name>\w+)\.py\n(?P<text>.*?)```", re.DOTALL)
COMMANDS = {
    "celery_app": ["celery", "-A", "celery_app", "worker", "--pool", "solo", "--loglevel", "warning"],
    "dramatiq_app": ["dramatiq", "dramatiq_app", "--processes", "1", "--threads", "1"],
    "taskiq_app": ["taskiq", "worker", "taskiq_app:broker", "--workers", "1"],
    "faststream_app": ["faststream", "run", "faststream_app:app"],
}
MORE = {
    "celery_app": """

@app.task(name="shop.fails_once", bind=True)
def fails_once(self, *args, **kwargs):
    if self.request.retries == 0:
        raise self.retry(countdown=0)
    ids = (self.request.id, self.request.root_id, self.request.parent_id)
    print(f"retried {args} {kwargs} {ids} {self.request.timelimit}", flush=True)
""",
    "dramatiq_app": """

@dramatiq.actor(min_backoff=1)
def always_fails(**kwargs):
    print(f"ran with {kwargs}", flush=True)
    raise ValueError("on purpose")
""",
    "taskiq_app": """

from datetime import datetime
from taskiq import Context, TaskiqDepends

@broker.task("shop:typed")
async def typed(at: datetime, context: Context = TaskiqDepends()):
    print("typed", at.year, context.message.task_id, context.message.labels, flush=True)
""",
    "faststream_app": """

@broker.subscriber(RabbitQueue("any", routing_key="any", durable=True), events)
async def anything(body, content_type: str = Context("message.content_type"), to: str = Context("message.headers.to")):
    print("got", repr(body), content_type, to, flush=True)
""",
}


@dataclass
class Workers:
    """The running workers, by the names of their programs, and where to publish for them."""

    processes: dict[str, OurProcess]
    database_url: str
    settings: dict[str, str]
    folder: Path

    def publish(self, *messages: OutboxMessage) -> list[str | None]:
        """Publishes and commits `messages`, and returns their ids."""
        connection = psycopg2.connect(self.database_url)
        try:
            with connection:
                return Publisher(require_transaction=True).bulk_publish(connection, messages)
        finally:
            connection.close()


@pytest.fixture(scope="module")
def workers(
    postgres_server: PostgresServer, rabbitmq_server: PrivateRabbitMQ | NamedRabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    """All workers and a relay, started together."""
    folder = tmp_path_factory.mktemp("interop")
    for match in PROGRAM.finditer(PAGE):
        (folder / f"{match['name']}.py").write_text(match["text"] + MORE.get(match["name"], ""))
    with ExitStack() as stack:
        database = stack.enter_context(fresh_database(postgres_server.url, tables=True))
        vhost = stack.enter_context(fresh_vhost(rabbitmq_server))
        database_url = with_database(postgres_server.url, database)
        broker_url = with_vhost(rabbitmq_server.url, vhost)
        settings = {
            "DATABASE_URL": database_url,
            "BROKER_URL": broker_url,
            "PYTHONPATH": str(folder),
            "PYTHONWARNINGS": "default",
        }
        processes = {
            name: stack.enter_context(running(["-m", *command], folder, settings, name=name))
            for name, command in COMMANDS.items()
        }
        relay = ["-m", "outbox.cli", "relay", "--database-url", database_url, "--broker-url", broker_url]
        stack.enter_context(running(relay, folder, name="relay"))
        yield Workers(processes, database_url, settings, folder)


def test_the_page_s_program_starts_a_task_in_each_framework(workers: Workers) -> None:
    with running([str(workers.folder / "place_order.py")], workers.folder, workers.settings, name="place_order") as program:
        assert program.wait() == 0, program.output
    workers.processes["celery_app"].says("mail for order 7 in en")
    workers.processes["dramatiq_app"].says("charge for order 7")
    workers.processes["taskiq_app"].says("parcel for order 7")
    workers.processes["faststream_app"].says("ship order 7 of ")


def test_a_celery_task_keeps_ids_and_arguments_when_celery_retries_it(workers: Workers) -> None:
    with tracking(["root", "cause"]):
        options: dict[str, Any] = {"task_id": "t1", "headers": {"timelimit": [60, 50]}}
        workers.publish(celery.task("shop.fails_once", ("żółw", [1, None]), {"deep": {"a": 1.5}}, **options))
    workers.processes["celery_app"].says("retried ('żółw', [1, None]) {'deep': {'a': 1.5}} ('t1', 'root', 'cause') [60, 50]")


def test_a_dramatiq_message_keeps_its_id_and_options_when_dramatiq_retries_it(workers: Workers) -> None:
    message = dramatiq.message("always_fails", kwargs={"order": 8}, message_id="m1", actor_options={"max_retries": 1})
    workers.publish(message)
    workers.processes["dramatiq_app"].says("Retries exceeded for message 'm1'.")
    assert workers.processes["dramatiq_app"].output.count("ran with {'order': 8}\n") == 2


def test_a_taskiq_task_gets_its_labels_and_arguments_of_its_own_types(workers: Workers) -> None:
    workers.publish(taskiq.task("shop:typed", kwargs={"at": "2026-05-04T03:02:01Z"}, task_id="t2", labels={"timeout": 5}))
    workers.processes["taskiq_app"].says("typed 2026 t2 {'timeout': 5}")


@dataclass
class Line:
    """A body that `json.dumps` cannot serialise."""

    at: datetime
    price: Decimal
    order: UUID


@pytest.mark.parametrize(
    ("body", "arrives"),
    [
        (
            Line(datetime(2026, 5, 4, tzinfo=UTC), Decimal("1.50"), UUID(int=7)),
            "{'at': '2026-05-04T00:00:00Z', 'price': '1.50', 'order': '00000000-0000-0000-0000-000000000007'} application/json",
        ),
        ("plain text", "'plain text' text/plain"),
        (b"\x00\xff", r"b'\x00\xff' application/octet-stream"),
    ],
    ids=["dataclass", "text", "bytes"],
)
def test_a_faststream_subscriber_gets_the_body_as_it_was_meant(workers: Workers, body: Any, arrives: str) -> None:
    workers.publish(faststream.message("any", body, headers={"to": "shop"}))
    workers.processes["faststream_app"].says(f"got {arrives} shop")


def test_a_faststream_subscriber_sees_the_root_of_the_chain_as_correlation_id(workers: Workers) -> None:
    with tracking(["root of all", "cause"]):
        workers.publish(OutboxMessage("order.changed", {"id": 9}))
    workers.processes["faststream_app"].says("ship order 9 of root of all")
    [own_id] = workers.publish(OutboxMessage("order.changed", {"id": 10}))
    workers.processes["faststream_app"].says(f"ship order 10 of {own_id}")
