"""Whether all is well, as the API, the commands and the metrics say it."""

import asyncio
import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aio_pika
import asyncpg
import httpx
import pytest
from click.testing import CliRunner
from prometheus_client import REGISTRY

from outbox import ensure_outbox_schema_async
from outbox.admin import Admin, HealthThresholds, Role, measure_health, topology
from outbox.admin.verdict import routes as view
from outbox.admin.verdict.findings import CODES
from outbox.cli import main as cli
from outbox.errors import ConfigurationError
from tests.admin.rows import insert
from tests.admin.support import client_of, serving
from tests.servers.postgres import OwnPostgres

NOW = timedelta(0)


@pytest.fixture(autouse=True)
def judged_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (view, topology):
        monkeypatch.setattr(module, "MAX_AGE", NOW)


async def verdict(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.get("/health/verdict")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def summary_of(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """The severity and the subject of each code."""
    return {each["code"]: (each["severity"], each["subject"]) for each in found["findings"]}


async def component(connection: asyncpg.Connection, kind: str, *queues: str, ago: str = "0 s", **columns: Any) -> None:
    """A component that sent a heartbeat `ago`, and ends or does what `columns` say."""
    consumers = [{"queue": queue, "binding_key": "order.*", "retry": {"delays_seconds": []}} for queue in queues]
    await connection.execute(
        "insert into outbox_component (id, kind, name, host, process_id, version, every, consumers, activity, seen_at, "
        "stopped_at, started_at) values ($1, $2, $1, 'h', 1, '1', '5 s', $3, $4, now() - $5::text::interval, "
        "case when $6 then now() - $5::text::interval end, now() - $7::text::interval)",
        columns.get("name", f"{kind}-1"),
        kind,
        json.dumps(consumers),
        json.dumps(columns.get("activity", {})),
        ago,
        columns.get("stopped", False),
        columns.get("started", "1 hour"),
    )


@pytest.fixture
async def well(connection: asyncpg.Connection) -> asyncpg.Connection:
    """An installation where everything runs: one of each, and a queue with its consumer."""
    for kind in ("relay", "maintenance"):
        await component(connection, kind)
    await component(connection, "worker", "mail")
    await connection.execute("insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'mail', 'a')")
    return connection


async def deliver(connection: asyncpg.Connection, queue: str, number: int, *, ago: str) -> None:
    await connection.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, attempt, available_at) "
        "select 'outbox', $1, n::text, 'a', '', '[]', 1, now() - $3::text::interval from generate_series(1, $2::integer) as n",
        queue,
        number,
        ago,
    )


async def test_the_status_is_ok_if_everything_runs(viewer: httpx.AsyncClient, well: asyncpg.Connection) -> None:
    found = await verdict(viewer)
    assert (found["status"], found["started_at"], found["findings"]) == ("ok", None, [])
    assert found["thresholds"] == {
        "late_after_seconds": 60.0,
        "overdue_after_seconds": 300.0,
        "queue_depth": 10_000,
        "lost_for_seconds": 900.0,
        "dead_letter_window_seconds": 3_600.0,
    }


@pytest.mark.parametrize(("due", "is_late"), [("0044-03-15 12:00+00 BC", True), ("-infinity", False)])
async def test_a_time_before_the_first_year_does_not_hide_the_verdict(
    viewer: httpx.AsyncClient, well: asyncpg.Connection, due: str, is_late: bool
) -> None:
    await insert(well)
    await deliver(well, "mail", 1, ago="0 s")
    await well.execute("update outbox_table set send_after = $1::text::timestamptz", due)
    await well.execute("update outbox_delivery set available_at = $1::text::timestamptz", due)
    found = await verdict(viewer)
    late = {"outbox_late": ("error", ""), "queue_late": ("error", "mail")}
    assert (summary_of(found), found["started_at"]) == (late if is_late else {}, None)
    assert (await viewer.get("/queues")).status_code == 200


async def test_a_queue_with_waiting_messages_is_late_and_its_pause_is_reported(
    viewer: httpx.AsyncClient, well: asyncpg.Connection
) -> None:
    await deliver(well, "mail", 3_255, ago="100 seconds")
    await well.execute("insert into outbox_control (scope, name, requested_by) values ('queue', 'mail', 'ada')")
    found = await verdict(viewer)
    assert found["status"] == "warning"
    assert summary_of(found) == {"queue_late": ("warning", "mail"), "paused": ("warning", "mail")}
    [late, paused] = found["findings"]
    assert re.fullmatch("in the queue 'mail' 3,255 messages wait, the oldest for 1[0-5][0-9] s", late["summary"])
    assert paused["summary"] == "the queue 'mail' is paused by ada; 3,255 messages wait in it"
    waiting = datetime.fromisoformat(found["as_of"]) - datetime.fromisoformat(late["started_at"])
    assert timedelta(seconds=95) < waiting < timedelta(seconds=160)
    assert found["started_at"] == late["started_at"]


async def test_longer_waits_are_errors_and_come_first(viewer: httpx.AsyncClient, well: asyncpg.Connection) -> None:
    await deliver(well, "mail", 1, ago="100 seconds")
    await insert(well, send_after="-6 minutes")
    found = await verdict(viewer)
    assert [(each["code"], each["severity"]) for each in found["findings"]] == [
        ("outbox_late", "error"),
        ("queue_late", "warning"),
    ]
    assert found["status"] == "error"


@pytest.mark.parametrize("where", ["nowhere", "outbox", "outbox, ordered", "queue"])
async def test_messages_that_wait_for_a_clock_that_was_set_back_are_reported(
    viewer: httpx.AsyncClient, well: asyncpg.Connection, where: str
) -> None:
    await insert(well, send_after="1 hour")  # scheduled by its publisher
    await deliver(well, "mail", 1, ago="-1 hour")  # waits for a retry
    later = "now() + interval '4 minutes'"
    if where == "queue":
        await well.execute(f"update outbox_delivery set created_at = {later}, available_at = {later}")
    elif where != "nowhere":
        key = "a" if where == "outbox, ordered" else None
        await well.execute(f"update outbox_table set created_at = {later}, send_after = {later}, ordering_key = $1", key)
    found = await verdict(viewer)
    if where == "nowhere":
        assert found["findings"] == []
        return
    assert summary_of(found) == {"clock_behind": ("warning", "")}
    summary = "the database's clock was set back: messages wait that were created up to [34] min ahead of it"
    assert re.fullmatch(summary, found["findings"][0]["summary"])


async def test_held_stalled_and_parked_messages_are_reported_with_their_start(
    viewer: httpx.AsyncClient, well: asyncpg.Connection
) -> None:
    await insert(well, last_error="unroutable", send_after="1 second", held_at="-4 minutes")
    await insert(well, last_error="stalled", send_after="infinity", held_at="-6 minutes")
    await insert(well, failed_at="-1 day", last_error="nacked", attempts=20)
    found = await verdict(viewer)
    assert summary_of(found) == {
        "messages_parked": ("error", ""),
        "messages_stalled": ("error", ""),
        "messages_held": ("warning", ""),
        "dead_letters": ("warning", ""),  # what is parked is a dead letter, too, and this one is not new
    }
    backlog = (await viewer.get("/backlog")).json()
    assert 230 < backlog["oldest_held_age_seconds"] < 340
    assert 350 < backlog["oldest_stalled_age_seconds"] < 600


async def test_new_dead_letters_are_an_error_and_old_ones_a_warning(
    viewer: httpx.AsyncClient, well: asyncpg.Connection
) -> None:
    letter = (
        "insert into outbox_dead_letter (source, exchange, queue, routing_key, message_id, body, tracking_ids, created_at, "
        "attempt, cause, exception_type, exception_message, exception_traceback, failed_at) "
        "values ('worker', 'outbox', 'mail', 'a', $1, '', '[]', now(), 1, 'rejected', 'E', 'no', '', "
        "now() - $2::text::interval)"
    )
    await well.execute(letter, "1", "2 hours")
    assert summary_of(await verdict(viewer)) == {"dead_letters": ("warning", "")}
    await well.execute(letter, "2", "1 minute")
    [finding] = (await verdict(viewer))["findings"]
    assert (finding["severity"], finding["summary"]) == ("error", "2 dead letters are open, 1 of them new")
    await well.execute("update outbox_dead_letter set failed_at = now() where message_id = '1'")
    [finding] = (await verdict(viewer))["findings"]
    assert finding["summary"] == "2 dead letters are open, all of them new"
    await well.execute("delete from outbox_dead_letter where message_id = '1'")
    [finding] = (await verdict(viewer))["findings"]
    assert finding["summary"] == "1 dead letter is open, and new"


async def test_missing_late_and_lost_components_are_reported(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await component(connection, "relay", ago="15 s", started="1 day")
    await component(connection, "worker", "mail", ago="10 min")
    await component(connection, "archiver", ago="10 min", name="was replaced")
    await component(connection, "archiver", name="replaces it", started="5 min")
    found = await verdict(viewer)
    assert summary_of(found) == {
        "no_worker": ("error", ""),
        "no_maintenance": ("warning", ""),
        "component_late": ("warning", "relay-1"),
        "component_lost": ("warning", "worker-1"),
    }
    ended = datetime.fromisoformat(found["as_of"]) - datetime.fromisoformat(found["started_at"])
    assert timedelta(minutes=9) < ended < timedelta(minutes=11)


async def test_waiting_workers_and_paused_consumers_are_reported(viewer: httpx.AsyncClient, well: asyncpg.Connection) -> None:
    activity = {"waiting_for": {"broker": "amqp://ada:secret@rabbit"}, "failing_queues": ["mail"]}
    await component(well, "worker", name="worker-2", activity=activity)
    found = await verdict(viewer)
    assert summary_of(found) == {"component_waiting": ("warning", "worker-2"), "consumer_failing": ("warning", "mail")}
    assert "secret" not in str(found)


async def test_a_queue_without_consumer_is_reported_since_its_last_worker_ended(
    viewer: httpx.AsyncClient, well: asyncpg.Connection
) -> None:
    await well.execute("insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'bills', 'a')")
    await component(well, "worker", "bills", name="worker-2", ago="20 min", stopped=True)
    [finding] = (await verdict(viewer))["findings"]
    assert (finding["code"], finding["subject_kind"], finding["subject"]) == (
        "subscription_without_consumer",
        "queue",
        "bills",
    )
    assert finding["started_at"] is not None


@pytest.mark.parametrize(("ago", "least", "most"), [(0, 8, 10), (120, 120, 122)])
async def test_a_queue_of_rabbitmq_is_as_old_as_the_first_message_since_the_last_was_handled(
    database: str, well: asyncpg.Connection, broker_url: str, ago: int, least: int, most: int
) -> None:
    await component(well, "archiver")
    await well.executemany(
        "insert into outbox_stats (starts_at, seconds, routing_key, queue, sent, processed) "
        "values (date_trunc('minute', now()) - make_interval(mins => $1), 60, 'order.placed', $2, $3, $4)",
        [
            (ago + 20, "", 5, 0),
            (ago + 20, "mail", 0, 5),
            (ago + 9, "", 3, 0),
            (ago + 1, "", 3, 0),
        ],
    )
    async with await aio_pika.connect(broker_url) as rabbit:
        channel = await rabbit.channel()
        exchange = await channel.declare_exchange("outbox", aio_pika.ExchangeType.TOPIC, durable=True)
        await channel.declare_exchange("outbox.dlx", aio_pika.ExchangeType.TOPIC, durable=True)
        await channel.declare_queue("mail.dlq", durable=True)
        queue = await channel.declare_queue("mail", durable=True)
        await queue.bind(exchange, "order.*")
        for _ in range(4):
            await exchange.publish(aio_pika.Message(b"{}"), "order.placed")
        async with serving(Admin(database, broker=broker_url)) as app, client_of(app, Role.VIEWER) as client:
            found = await verdict(client)
    [late] = [each for each in found["findings"] if each["code"] == "queue_late"]
    assert (late["subject"], late["severity"]) == ("mail", "error")
    waiting = datetime.fromisoformat(found["as_of"]) - datetime.fromisoformat(late["started_at"])
    assert timedelta(minutes=least) <= waiting < timedelta(minutes=most)


async def test_thresholds_are_configurable(database: str, well: asyncpg.Connection) -> None:
    await deliver(well, "mail", 12, ago="30 seconds")
    thresholds = HealthThresholds(late_after=timedelta(seconds=10), overdue_after=timedelta(seconds=20), queue_depth=11)
    async with serving(Admin(database, thresholds=thresholds)) as app, client_of(app, Role.VIEWER) as client:
        assert summary_of(await verdict(client)) == {"queue_late": ("error", "mail"), "queue_deep": ("warning", "mail")}


@pytest.mark.parametrize(
    "wrong",
    [
        {"late_after": timedelta(0)},
        {"late_after": timedelta(minutes=9)},
        {"queue_depth": 0},
    ],
)
def test_invalid_thresholds_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        HealthThresholds(**wrong)


async def test_an_unavailable_broker_is_a_finding(database: str, well: asyncpg.Connection) -> None:
    async with serving(Admin(database, broker="amqp://ada:secret@127.0.0.1:1/")) as app, client_of(app, Role.VIEWER) as client:
        found = await verdict(client)
    assert summary_of(found)["broker_unreachable"] == ("error", "")
    assert "secret" not in str(found)


async def test_an_unavailable_database_is_a_finding(database: str) -> None:
    admin = Admin(database)
    async with serving(admin) as app, client_of(app, Role.VIEWER) as client:
        assert (await verdict(client))["status"] != "ok"
        await admin.pool.close()
        found = await verdict(client)
    assert summary_of(found) == {"database_unreachable": ("error", "")}


async def test_missing_tables_are_not_an_unavailable_database(database: str, well: asyncpg.Connection) -> None:
    await well.execute("drop table outbox_group_mark")
    async with serving(Admin(database)) as app, client_of(app, Role.VIEWER) as client:
        [finding] = (await verdict(client))["findings"]
    assert finding["summary"].startswith("the database lacks what this release uses: ")
    assert "run `outbox migrate`" in finding["hint"]


async def test_a_locked_table_is_not_an_unavailable_database(database: str, well: asyncpg.Connection) -> None:
    # Waits for the lock for five seconds, as every reading request does.
    async with serving(Admin(database)) as app, client_of(app, Role.VIEWER) as client, well.transaction():
        await well.execute("lock table outbox_dead_letter in access exclusive mode")
        [finding] = (await verdict(client))["findings"]
    assert finding["summary"].startswith("the database took too long: ")
    assert "waited for a lock" in finding["summary"]
    assert "look for locks and long transactions in `pg_stat_activity`" in finding["hint"]


async def test_metrics_and_doctor_report_the_same_verdict(database: str, well: asyncpg.Connection) -> None:
    await deliver(well, "mail", 3, ago="6 minutes")
    async with Admin(database) as admin:
        await measure_health(admin)
    status = {name: REGISTRY.get_sample_value("outbox_health_status", {"status": name}) for name in ("ok", "warning", "error")}
    assert status == {"ok": 0, "warning": 0, "error": 1}
    assert REGISTRY.get_sample_value("outbox_health_findings", {"code": "queue_late"}) == 1
    assert REGISTRY.get_sample_value("outbox_health_findings", {"code": "paused"}) == 0


def sample(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


async def test_metrics_have_the_figures_of_the_installation(database: str, well: asyncpg.Connection) -> None:
    await deliver(well, "mail", 3, ago="6 minutes")
    await component(well, "relay", name="relay-2", ago="20 minutes")
    await well.execute("insert into outbox_table (routing_key, body, send_after) values ('a', '', now() + interval '1 h')")
    await well.execute("insert into outbox_table (routing_key, body, failed_at, last_error) values ('a', '', now(), 'refused')")
    writer = await asyncpg.connect(database)
    transaction = writer.transaction()
    await transaction.start()
    await writer.execute("insert into outbox_table (routing_key, body) values ('a', '')")
    async with Admin(database) as admin:
        await measure_health(admin)
        assert (sample("outbox_oldest_transaction_age_seconds") or 0) > 0
        await transaction.rollback()
        await writer.close()
        await measure_health(admin)
    assert sample("outbox_oldest_transaction_age_seconds") == 0
    assert sample("outbox_health_verdict") == 2
    assert sample("outbox_components", kind="relay", status="alive") == 1
    assert sample("outbox_components", kind="relay", status="lost") == 1
    assert sample("outbox_components", kind="archiver", status="alive") == 0
    assert sample("outbox_table_messages", state="scheduled") == 1
    assert sample("outbox_table_messages", state="parked") == 1
    assert sample("outbox_queue_messages", queue="mail") == 3
    assert (sample("outbox_queue_oldest_age_seconds", queue="mail") or 0) >= 360
    for table in ("outbox_table", "outbox_delivery", "outbox_inbox", "outbox_dead_letter"):
        assert sample("outbox_dead_rows", table=table) is not None


async def test_figures_stay_as_they_were_while_the_database_is_away(own_postgres: OwnPostgres) -> None:
    await ensure_outbox_schema_async(own_postgres.url)
    async with Admin(own_postgres.url) as admin:
        await measure_health(admin)
        before = sample("outbox_dead_rows", table="outbox_table")
        own_postgres.kill()
        await measure_health(admin)
    assert sample("outbox_health_verdict") == 2
    assert sample("outbox_health_findings", code="database_unreachable") == 1
    assert sample("outbox_dead_rows", table="outbox_table") == before


async def test_the_command_shows_the_verdict_and_exits_with_its_severity(database: str, well: asyncpg.Connection) -> None:
    def run(*arguments: str, **environment: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli, ["status", *arguments], env={"OUTBOX_DATABASE_URL": database, **environment})
        return result.exit_code, result.output

    code, output = await asyncio.to_thread(run)
    assert (code, output.splitlines()[-1]) == (0, "1 ok, 0 warnings, 0 errors.")
    await deliver(well, "mail", 3, ago="100 seconds")
    code, output = await asyncio.to_thread(run)
    assert (code, output.splitlines()[-1]) == (1, "0 ok, 1 warning, 0 errors.")
    assert "in the queue 'mail' 3 messages wait" in output
    assert "→ check that its worker runs" in output
    assert (await asyncio.to_thread(run, OUTBOX_HEALTH_LATE_AFTER="10m", OUTBOX_HEALTH_OVERDUE_AFTER="20m"))[0] == 0
    await deliver(well, "mail", 1, ago="6 minutes")
    code, output = await asyncio.to_thread(run, "--json")
    assert (code, json.loads(output)["status"]) == (2, "error")


def test_the_command_treats_no_response_as_an_error() -> None:
    for address in ({"OUTBOX_URL": "http://127.0.0.1:1/outbox"}, {"OUTBOX_DATABASE_URL": "postgresql://a@127.0.0.1:1/b"}):
        result = CliRunner().invoke(cli, ["status"], env=address)
        assert (result.exit_code, result.output.splitlines()[0][:8]) == (2, "outbox: "), result.output


def test_the_doctor_reports_findings_of_the_verdict(database: str) -> None:
    result = CliRunner().invoke(cli, ["doctor", "--database-url", database, "--json"])
    found = [each for each in json.loads(result.output)["findings"] if each["check"] == "health"]
    assert [each["summary"] for each in found] == [
        "no relay has ever reported: none runs, or reporting is disabled",
        "no maintenance has ever reported: none runs, or reporting is disabled",
    ]


def test_every_finding_is_documented() -> None:
    page = Path("docs/operations.md").read_text()
    assert [code for code in CODES if f"`{code}`" not in page] == []
