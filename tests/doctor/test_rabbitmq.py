"""What the doctor says of a broker, which it looks at and never changes."""

import asyncio
from datetime import timedelta

import aio_pika
import pytest

from outbox import consume
from outbox.doctor import Patient, Report, examine
from outbox.engine.consuming import Consumer
from outbox.findings import Finding, Severity
from outbox.schema import ensure_outbox_schema_async
from outbox.worker import Worker
from tests.servers.rabbitmq import PrivateRabbitMQ
from tests.support import RabbitAdmin, eventually

pytestmark = pytest.mark.rabbitmq

_QUEUE = "letters"


@consume("user.created", queue=_QUEUE, retry_delays=())
async def welcome(user: dict[str, str]) -> None: ...


async def examined(database_url: str, broker_url: str, *consumers: Consumer, **given: object) -> list[Finding]:
    await ensure_outbox_schema_async(database_url)
    patient = Patient(
        database_url=database_url,
        broker_url=broker_url,
        consumers=consumers,
        **{"consumer_timeout": timedelta(minutes=30), **given},  # type: ignore[arg-type]
    )
    report: Report = await examine(patient)
    return [
        finding
        for finding in report.findings
        if finding.severity is not Severity.OK and finding.check in ("broker", "topology", "timeouts")
    ]


@pytest.fixture
async def provisioned(broker_url: str, broker_admin: RabbitAdmin) -> None:
    """What a worker of `welcome` declares."""
    worker = Worker(broker=broker_url, consumers=[welcome], enable_metrics=False)
    running = asyncio.create_task(worker.run(handle_signals=False))
    await eventually(lambda: broker_admin.queue(_QUEUE), timeout=20)
    await eventually(lambda: broker_admin.queue(f"{_QUEUE}.dlq"), timeout=20)
    worker.stop()
    await running


@pytest.mark.usefixtures("provisioned")
async def test_a_broker_that_has_what_its_consumers_declare_is_well(database_url: str, broker_url: str) -> None:
    assert await examined(database_url, broker_url, welcome) == []


async def test_what_is_missing_is_named_and_stays_missing(
    database_url: str, broker_url: str, broker_admin: RabbitAdmin
) -> None:
    found = {finding.summary for finding in await examined(database_url, broker_url, welcome)}
    assert found == {
        "the exchange 'outbox' is missing",
        "the exchange 'outbox.dlx' is missing",
        "the queue 'letters.dlq' is missing",
        "the queue 'letters' is missing",
    }
    assert await examined(database_url, broker_url, welcome)


@pytest.mark.usefixtures("provisioned")
async def test_a_queue_of_another_kind_is_named(database_url: str, broker_url: str) -> None:
    ordered = Consumer("user.created", welcome, _QUEUE, (), ordered=True)
    [finding] = await examined(database_url, broker_url, ordered)
    assert "x-single-active-consumer" in finding.summary
    assert finding.severity is Severity.WARNING


async def test_a_dead_letter_queue_that_forgets_is_an_error(database_url: str, broker_url: str) -> None:
    connection = await aio_pika.connect(broker_url)
    async with connection:
        channel = await connection.channel()
        await channel.declare_queue(
            f"{_QUEUE}.dlq", durable=True, arguments={"x-queue-type": "quorum", "x-message-ttl": 60_000}
        )
    errors = [finding for finding in await examined(database_url, broker_url, welcome) if "ttl" in finding.summary]
    assert [finding.severity for finding in errors] == [Severity.ERROR]


@pytest.mark.usefixtures("provisioned")
async def test_policies_and_old_bindings_are_seen_through_the_management_api(
    database_url: str, broker_url: str, broker_admin: RabbitAdmin, rabbitmq_server: PrivateRabbitMQ
) -> None:
    await broker_admin.set_policy("short", r"\.dlq$", {"max-length": 10}, apply_to="queues")
    renamed = Consumer("user.registered", welcome, _QUEUE, ())

    async def both() -> bool:
        found = await examined(database_url, broker_url, renamed, management_url=rabbitmq_server.admin_url)
        text = " ".join(finding.summary for finding in found)
        return "max-length = 10" in text and "still bound with 'user.created'" in text

    await eventually(both, timeout=20)


@pytest.mark.usefixtures("provisioned")
async def test_a_handler_that_may_take_longer_than_the_broker_waits_is_named(database_url: str, broker_url: str) -> None:
    slow = Consumer("user.created", welcome, _QUEUE, (), timeout="40m")
    [finding] = await examined(database_url, broker_url, slow)
    assert finding.check == "timeouts"
    assert await examined(database_url, broker_url, slow, consumer_timeout=timedelta(hours=1)) == []


async def test_a_broker_that_cannot_be_reached_is_a_finding_without_secrets(database_url: str) -> None:
    [finding] = await examined(database_url, "amqp://ada:geheim@127.0.0.1:1/", welcome)
    assert finding.severity is Severity.ERROR
    assert "geheim" not in finding.summary
