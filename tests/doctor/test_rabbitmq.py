"""Findings of the doctor about a broker, which it never changes."""

import asyncio
from datetime import timedelta

import pytest

from outbox import consume
from outbox.core.findings import Finding, Severity
from outbox.doctor import Installation, Report, examine
from outbox.engine.consumer import Consumer
from outbox.worker import Worker
from tests.servers.rabbitmq import PrivateRabbitMQ
from tests.support import RabbitAdmin, eventually

pytestmark = pytest.mark.rabbitmq

_QUEUE = "letters"


@consume("user.created", queue=_QUEUE, retry_delays=())
async def welcome(user: dict[str, str]) -> None: ...


async def examined(database: str, broker_url: str, *consumers: Consumer, **given: object) -> list[Finding]:
    installation = Installation(
        database_url=database,
        broker_url=broker_url,
        consumers=consumers,
        **{"consumer_timeout": timedelta(minutes=30), **given},  # type: ignore[arg-type]
    )
    report: Report = await examine(installation)
    return [
        finding
        for finding in report.findings
        if finding.severity is not Severity.OK and finding.check in ("broker", "topology", "timeouts")
    ]


@pytest.fixture
async def provisioned(broker_url: str, broker_admin: RabbitAdmin) -> None:
    """Declares what a worker of `welcome` declares."""
    worker = Worker(broker=broker_url, consumers=[welcome], enable_metrics=False)
    running = asyncio.create_task(worker.run(handle_signals=False))
    await eventually(lambda: broker_admin.queue(_QUEUE))
    await eventually(lambda: broker_admin.queue(f"{_QUEUE}.dlq"))
    worker.stop()
    await running


@pytest.mark.usefixtures("provisioned")
async def test_a_broker_with_everything_that_its_consumers_declare_is_ok(database: str, broker_url: str) -> None:
    assert await examined(database, broker_url, welcome) == []


async def test_missing_exchanges_and_queues_are_reported_and_not_created(
    database: str, broker_url: str, broker_admin: RabbitAdmin
) -> None:
    [finding] = await examined(database, broker_url, welcome)
    missing = "the exchange 'outbox', the exchange 'outbox.dlx', the queue 'letters.dlq', the queue 'letters'"
    assert finding.summary == f"{missing} are missing"
    assert await examined(database, broker_url, welcome) == [finding]


@pytest.mark.usefixtures("provisioned")
async def test_a_queue_of_another_kind_is_named(database: str, broker_url: str) -> None:
    ordered = Consumer("user.created", welcome, _QUEUE, (), ordered=True)
    [finding] = await examined(database, broker_url, ordered)
    assert "x-single-active-consumer" in finding.summary
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize("limit", [{"x-message-ttl": 60_000}, {"x-delivery-limit": 5}])
async def test_a_dead_letter_queue_that_drops_messages_is_an_error(
    database: str, broker_url: str, broker_admin: RabbitAdmin, limit: dict[str, int]
) -> None:
    await broker_admin.declare_queue(f"{_QUEUE}.dlq", arguments={**await unlimited(broker_admin), **limit})
    [name] = limit
    errors = [finding for finding in await examined(database, broker_url, welcome) if name in finding.summary]
    assert [finding.severity for finding in errors] == [Severity.ERROR]


async def unlimited(broker_admin: RabbitAdmin) -> dict[str, int]:
    """The arguments of a dead letter queue without a limit: from 4.0 on there is one by default."""
    return {"x-delivery-limit": -1} if await broker_admin.version() >= (4, 0) else {}


@pytest.mark.usefixtures("provisioned")
async def test_policies_and_old_bindings_are_seen_through_the_management_api(
    database: str, broker_url: str, broker_admin: RabbitAdmin, rabbitmq_server: PrivateRabbitMQ
) -> None:
    await broker_admin.set_policy("short", r"\.dlq$", {"max-length": 10}, apply_to="queues")
    renamed = Consumer("user.registered", welcome, _QUEUE, ())

    async def both() -> bool:
        found = await examined(database, broker_url, renamed, management_url=rabbitmq_server.admin_url)
        text = " ".join(finding.summary for finding in found)
        return "max-length = 10" in text and "still bound with 'user.created'" in text

    await eventually(both)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://ada:geheim@127.0.0.1:1", "the management API does not answer"),
        ("{}/elsewhere", "the management API does not know the exchange 'outbox': it is not that of this broker"),
    ],
)
@pytest.mark.usefixtures("provisioned")
async def test_a_management_api_that_shows_nothing_is_named_and_hides_no_other_finding(
    database: str, broker_url: str, broker_admin: RabbitAdmin, rabbitmq_server: PrivateRabbitMQ, url: str, why: str
) -> None:
    await broker_admin.delete_queue(f"{_QUEUE}.dlq")
    url = url.format(rabbitmq_server.admin_url)
    missing, management = await examined(database, broker_url, welcome, management_url=url)
    assert missing.summary == f"the queue '{_QUEUE}.dlq' is missing"
    assert (why in management.summary, management.severity) == (True, Severity.WARNING)
    assert "geheim" not in management.summary


async def test_a_management_url_with_a_port_that_is_none_is_a_finding(database: str, broker_url: str) -> None:
    [finding] = await examined(database, broker_url, welcome, management_url="http://rabbit:none")
    assert "management_url must be an http(s):// URL" in finding.summary


@pytest.mark.usefixtures("provisioned")
async def test_what_a_user_may_not_compare_is_not_said_to_be_as_declared(
    database: str, broker_url: str, broker_admin: RabbitAdmin
) -> None:
    user = f"reader-{broker_url.rpartition('/')[2]}"
    url = await broker_admin.create_user(user, "secret")
    try:
        await broker_admin.permit(user, configure="", write="", read=".*")
        report = await examine(
            Installation(database_url=database, broker_url=url, consumers=[welcome], consumer_timeout=timedelta(minutes=30))
        )
    finally:
        await broker_admin.delete_user(user)
    said = [finding.summary for finding in report.findings if finding.check == "topology"]
    assert f"the queue '{_QUEUE}' exists; this user may not compare it with its declaration" in said
    assert "as declared" not in " ".join(said)


@pytest.mark.usefixtures("provisioned")
async def test_a_missing_binding_is_an_error_unless_another_binding_takes_everything(
    database: str, broker_url: str, broker_admin: RabbitAdmin, rabbitmq_server: PrivateRabbitMQ
) -> None:
    async def missing() -> bool:
        found = await examined(database, broker_url, welcome, management_url=rabbitmq_server.admin_url)
        errors = {finding.summary for finding in found if finding.severity is Severity.ERROR}
        return "the queue 'letters' is not bound to 'outbox' with 'user.created'" in errors

    async def there() -> bool:
        return not await missing()

    assert await there()
    await broker_admin.unbind("outbox", _QUEUE, "user.created")
    await eventually(missing)
    await broker_admin.bind("outbox", _QUEUE, "#")
    await eventually(there)


@consume("user.created", queue=_QUEUE, retry_delays=("1m",))
async def remind(user: dict[str, str]) -> None: ...


@pytest.fixture
async def provisioned_with_retries(broker_url: str, broker_admin: RabbitAdmin) -> None:
    """Declares what a worker of `remind` declares."""
    worker = Worker(broker=broker_url, consumers=[remind], enable_metrics=False)
    running = asyncio.create_task(worker.run(handle_signals=False))
    await eventually(lambda: broker_admin.queue("outbox.delay_60s"))
    await eventually(lambda: broker_admin.queue(_QUEUE))
    worker.stop()
    await running


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        (
            {"delivery-limit": 3},
            {
                ("warning", "the queue 'letters' has delivery-limit = 3: a message that is returned more often"),
                ("error", "the queue 'letters.dlq' has delivery-limit = 3: a dead letter that is returned more often vanishes"),
            },
        ),
        (
            {"message-ttl": 86_400_000},
            {
                ("warning", "the queue 'letters' has message-ttl = 86400000: a message that waits longer (in ms) becomes"),
                ("error", "the queue 'letters.dlq' has message-ttl = 86400000: dead letters vanish from it"),
            },
        ),
        # Our queues refuse what they have no room for; dead letter queues forget the oldest.
        ({"max-length": 1_000}, {("error", "the queue 'letters.dlq' has max-length = 1000: dead letters vanish from it")}),
        (
            {"max-length": 1_000, "overflow": "drop-head"},
            {
                (
                    "warning",
                    "the queue 'letters' has max-length = 1000: the oldest message of a full queue becomes a dead letter",
                ),
                (
                    "warning",
                    "the queue 'letters' has overflow = drop-head, which turns its dead-letter-strategy at-least-once off",
                ),
                ("error", "the queue 'letters.dlq' has max-length = 1000: dead letters vanish from it"),
                ("error", "the queue 'outbox.delay_60s' has overflow = drop-head, which turns its dead-letter-strategy"),
            },
        ),
        (
            {"expires": 86_400_000},
            {
                ("error", "the queue 'letters' has expires = 86400000: the broker deletes it with its messages"),
                ("error", "the queue 'letters.dlq' has expires = 86400000: dead letters vanish from it"),
                ("error", "the queue 'outbox.delay_60s' has expires = 86400000: it has no consumers"),
            },
        ),
        ({"dead-letter-exchange": "elsewhere", "dead-letter-strategy": "at-most-once"}, set()),
    ],
)
@pytest.mark.usefixtures("provisioned_with_retries")
async def test_a_policy_that_can_lose_messages_is_reported_for_each_affected_queue(
    database: str,
    broker_url: str,
    broker_admin: RabbitAdmin,
    rabbitmq_server: PrivateRabbitMQ,
    policy: dict[str, object],
    found: set[tuple[str, str]],
) -> None:
    await broker_admin.set_policy("house", ".*", policy, apply_to="queues")

    async def in_force() -> bool:
        queues = await broker_admin.queues()
        return all(queue.get("effective_policy_definition") for queue in queues.values())

    await eventually(in_force)
    findings = await examined(database, broker_url, remind, management_url=rabbitmq_server.admin_url)
    assert {(finding.severity.value, finding.summary[: len(text)]) for finding, text in _matched(findings, found)} == found
    assert len(findings) == len(found)


@pytest.mark.usefixtures("provisioned")
async def test_a_policy_makes_up_for_an_argument_that_a_queue_lacks(
    database: str, broker_url: str, broker_admin: RabbitAdmin, rabbitmq_server: PrivateRabbitMQ
) -> None:
    """Such as a queue from before an upgrade to RabbitMQ 4, which has a delivery limit by default since then."""
    await broker_admin.delete_queue(_QUEUE)
    await broker_admin.declare_queue(_QUEUE)
    await broker_admin.bind("outbox", _QUEUE, "user.created")
    [lacking] = await examined(database, broker_url, welcome)
    assert "differs from its declaration" in lacking.summary
    policy = {
        "dead-letter-exchange": "outbox.dlx",
        "dead-letter-routing-key": _QUEUE,
        "dead-letter-strategy": "at-least-once",
        "overflow": "reject-publish",
        **{name.removeprefix("x-"): value for name, value in (await unlimited(broker_admin)).items()},
    }
    await broker_admin.set_policy("stronger", f"^{_QUEUE}$", policy, apply_to="queues")

    async def well() -> bool:
        return await examined(database, broker_url, welcome, management_url=rabbitmq_server.admin_url) == []

    await eventually(well)


@pytest.mark.usefixtures("provisioned")
async def test_a_handler_that_may_take_longer_than_the_broker_waits_is_named(database: str, broker_url: str) -> None:
    slow = Consumer("user.created", welcome, _QUEUE, (), timeout="40m")
    [finding] = await examined(database, broker_url, slow)
    assert finding.check == "timeouts"
    assert await examined(database, broker_url, slow, consumer_timeout=timedelta(hours=1)) == []


async def test_a_broker_that_cannot_be_reached_is_a_finding_without_secrets(database: str) -> None:
    [finding] = await examined(database, "amqp://ada:geheim@127.0.0.1:1/", welcome)
    assert finding.severity is Severity.ERROR
    assert "geheim" not in finding.summary


def _matched(findings: list[Finding], expected: set[tuple[str, str]]) -> list[tuple[Finding, str]]:
    """Pairs each finding with its expected beginning, or with its own summary."""
    beginnings = [text for _, text in expected]
    return [
        (finding, next((text for text in beginnings if finding.summary.startswith(text)), finding.summary))
        for finding in findings
    ]
