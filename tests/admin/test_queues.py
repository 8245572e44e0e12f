"""`/queues`: consumers, depth, rates, handling times and findings of each queue."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import aio_pika
import asyncpg
import httpx
import pytest
from click.testing import CliRunner

from outbox.admin import Admin, Role, queues, topology
from outbox.admin.backlog_reader import backlog_queries
from outbox.admin.verdict import routes as verdict
from outbox.chains.traces import statements
from outbox.cli import main as cli
from outbox.postgres.queries import TableName
from tests.admin.support import client_of, serving
from tests.postgres_transport.support import explained, rows_read
from tests.servers.rabbitmq import OwnRabbitMQ
from tests.support import eventually

MINUTES = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (queues, verdict, topology):
        monkeypatch.setattr(module, "MAX_AGE", timedelta(0))
        monkeypatch.setattr(module, "PATIENCE", None, raising=False)


async def worker(connection: asyncpg.Connection, name: str, *consumed: str, lost: bool = False, **activity: Any) -> None:
    """Adds a worker of these queues that started an hour ago."""
    described = [
        {"queue": queue, "binding_key": f"{queue}.*", "handler": f"shop.{queue}.handle", "prefetch_count": 10, "retry": {}}
        for queue in consumed
    ]
    await connection.execute(
        "insert into outbox_component (id, kind, name, host, process_id, version, every, consumers, activity, started_at, "
        "seen_at) values ($1, 'worker', $1, 'web-1', 4711, '1.2.0', '5 s', $2, $3, now() - interval '1 hour', "
        "now() - $4::interval)",
        name,
        json.dumps(described),
        json.dumps({"state": "running", **activity}),
        timedelta(minutes=5) if lost else timedelta(0),
    )


async def bind(connection: asyncpg.Connection, queue: str, binding_key: str) -> None:
    await connection.execute("insert into outbox_subscription values ('outbox', $1, $2)", queue, binding_key)


async def did(connection: asyncpg.Connection, queue: str, *, ago: timedelta, bucket: int = 3, **counts: int) -> None:
    """Adds the statistics of workers in the minute that was `ago`, with all times in `bucket`."""
    latency = [0] * 21
    latency[bucket] = counts.get("processed", 0) + counts.get("failed", 0)
    await connection.execute(
        "insert into outbox_stats (starts_at, seconds, routing_key, queue, processed, failed, retried, dead, duplicates, "
        "latency) values (date_trunc('minute', now()) - $1::interval, 60, $2 || '.paid', $2, $3, $4, $5, $6, $7, $8)",
        ago,
        queue,
        *(counts.get(name, 0) for name in ("processed", "failed", "retried", "dead", "duplicates")),
        latency,
    )


async def deliver(
    connection: asyncpg.Connection, queue: str, number: int, *, ago: str = "10 seconds", leased: bool = False
) -> None:
    await connection.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, attempt, available_at, "
        "lease_token, leased_until) select 'outbox', $1, n::text, $1 || '.paid', '', '[]', 1, now() - $3::text::interval, "
        "case when $4 then gen_random_uuid() end, case when $4 then now() + interval '1 minute' end "
        "from generate_series(1, $2::integer) as n",
        queue,
        number,
        ago,
        leased,
    )


async def dead_lettered(connection: asyncpg.Connection, queue: str, number: int, status: str = "open") -> None:
    await connection.execute(
        "insert into outbox_dead_letter (source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at, "
        "attempt, cause, exception_type, exception_message, exception_traceback, status) "
        "select 'worker', 'outbox', $1, n::text || $3, 'k', '', '[]', now(), 1, 'failed', 'E', '', '', $3 "
        "from generate_series(1, $2::integer) as n",
        queue,
        number,
        status,
    )


async def listed(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.get("/queues")
    assert answer.status_code == 200, answer.text
    return {queue["name"]: queue for queue in answer.json()["items"]}


async def test_a_queue_is_shown_with_its_workers_depth_rates_and_handling_times(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    await worker(connection, "billing-1", "billing")
    await bind(connection, "billing", "billing.*")
    await deliver(connection, "billing", 7)
    await deliver(connection, "billing", 2, ago="-1 minutes", leased=True)
    await deliver(connection, "billing", 3, ago="-2 minutes")
    await did(connection, "billing", ago=1 * MINUTES, processed=270, failed=30, retried=27, dead=3, duplicates=27)
    await did(connection, "billing", ago=40 * MINUTES, processed=9, failed=1)
    await did(connection, "billing", ago=24 * 60 * MINUTES + 10 * MINUTES, processed=100, bucket=0)
    await connection.execute(
        "insert into outbox_stats (starts_at, seconds, routing_key, queue, sent) values "
        "(date_trunc('minute', now()) - interval '2 minutes', 60, 'billing.paid', '', 600), "
        "(date_trunc('minute', now()) - interval '2 minutes', 60, 'mail.sent', '', 900)"
    )
    await dead_lettered(connection, "billing", 4)
    await dead_lettered(connection, "billing", 5, "requeued")
    found = (await listed(viewer))["billing"]
    assert {name: found[name]["value"] for name in ("queued", "in_flight", "retrying", "dead_letter_count")} == {
        "queued": 7,
        "in_flight": 2,
        "retrying": 3,
        "dead_letter_count": 4,
    }
    assert 10 <= found["oldest_age_seconds"] < 120
    assert found["per_second"] == {"incoming": 2.0, "outgoing": 1.0}
    assert found["drained_in_seconds"] is None  # more comes than goes
    assert found["failed_share"] == 0.1
    assert 0.005 < found["handling_seconds"]["p50"] <= 0.01
    assert found["handling_seconds_day_before"]["p99"] <= 0.001
    assert (found["handled_counts"][-1], sum(found["handled_counts"]), sum(found["failed_counts"])) == (270, 279, 31)
    assert found["handlers"] == ["shop.billing.handle"]
    assert found["bindings"] == [{"exchange": "outbox", "binding_key": "billing.*"}]
    [consumer] = found["consumers"]
    assert (consumer["name"], consumer["version"], consumer["host"], consumer["process_id"]) == (
        "billing-1",
        "1.2.0",
        "web-1",
        4711,
    )
    assert (consumer["status"], consumer["state"], consumer["prefetch_count"]) == ("alive", "running", 10)
    assert (found["state"], found["pauses"], found["findings"]) == ("ok", [], [])


async def test_a_draining_queue_has_a_time_to_drain(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await worker(connection, "mail-1", "mail")
    await bind(connection, "mail", "mail.*")
    await deliver(connection, "mail", 60)
    await did(connection, "mail", ago=5 * MINUTES, processed=300)
    found = (await listed(viewer))["mail"]
    assert (found["per_second"], found["drained_in_seconds"]) == ({"incoming": 0.0, "outgoing": 1.0}, 60.0)


@pytest.mark.parametrize("is_paused", [True, False])
async def test_a_queue_that_is_paused_or_that_no_worker_consumes_has_no_time_to_drain(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection, *, is_paused: bool
) -> None:
    await worker(connection, "mail-1", "mail", lost=not is_paused)
    if is_paused:
        await connection.execute("insert into outbox_control (scope, name) values ('queue', 'mail')")
    await bind(connection, "mail", "mail.*")
    await deliver(connection, "mail", 60)
    await did(connection, "mail", ago=5 * MINUTES, processed=300)
    found = (await listed(viewer))["mail"]
    assert (found["per_second"], found["drained_in_seconds"]) == ({"incoming": 0.0, "outgoing": 1.0}, None)


async def test_rates_cover_the_minutes_that_have_data(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    """An installation that started two minutes ago must divide by two minutes, not by five."""
    await worker(connection, "w", "mail")
    assert (await listed(viewer))["mail"]["per_second"]["outgoing"] is None
    for ago in (1, 2):
        await did(connection, "mail", ago=ago * MINUTES, processed=120)
    assert (await listed(viewer))["mail"]["per_second"]["outgoing"] == 2.0
    await did(connection, "mail", ago=40 * MINUTES, processed=1)
    assert (await listed(viewer))["mail"]["per_second"]["outgoing"] == 0.8


async def test_a_queue_has_the_state_paused_behind_or_no_consumer(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    await worker(connection, "mail-1", "mail", "audit", state="paused", paused_queues=["mail"])
    await worker(connection, "mail-2", "mail", lost=True)
    await connection.execute("insert into outbox_control (scope, name, reason) values ('queue', 'mail', 'it is down')")
    await connection.execute("insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'stock', 's')")
    await deliver(connection, "stock", 1, ago="10 minutes")
    found = await listed(viewer)
    mail, stock = found["mail"], found["stock"]
    assert [(one["name"], one["status"], one["state"]) for one in mail["consumers"]] == [
        ("mail-1", "alive", "paused"),
        ("mail-2", "lost", "running"),
    ]
    assert [one["state"] for one in found["audit"]["consumers"]] == ["running"]
    assert [pause["reason"] for pause in mail["pauses"]] == ["it is down"]
    assert [each["code"] for each in mail["findings"]] == ["paused"]
    assert (mail["state"], found["audit"]["state"], stock["state"]) == ("paused", "ok", "behind")
    assert (stock["consumers"], stock["per_second"]["outgoing"]) == ([], None)
    assert [(each["code"], each["severity"]) for each in stock["findings"]] == [
        ("queue_late", "error"),
        ("subscription_without_consumer", "warning"),
    ]


@pytest.mark.parametrize("name", ["a\nb", "a\n", "\r\n", "é ü\u2028"])
async def test_a_queue_with_a_line_break_in_its_name_is_shown(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection, name: str
) -> None:
    await bind(connection, name, "a")
    await bind(connection, "a", "a")
    answer = await viewer.get(f"/queues/{quote(name)}")
    assert answer.status_code == 200, answer.text
    assert answer.json()["name"] == name


async def test_one_queue_lists_the_starts_of_its_workers(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    await worker(connection, "old", "a/b c")
    await worker(connection, "new", "a/b c")
    await connection.execute("update outbox_component set version = '1.3.0', started_at = now() where id = 'new'")
    answer = await viewer.get("/queues/a%2Fb%20c")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["name"], len(found["step_starts_at"])) == ("a/b c", 12)
    assert [(start["name"], start["version"]) for start in found["worker_starts"]] == [("new", "1.3.0"), ("old", "1.2.0")]
    starts = [datetime.fromisoformat(text) for text in found["step_starts_at"]]
    assert {after - before for before, after in pairwise(starts)} == {5 * MINUTES}
    missing = await viewer.get("/queues/nothing")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


async def test_statistics_of_one_queue_have_nulls_only_where_no_worker_reported(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    await did(connection, "mail", ago=2 * MINUTES, processed=4)
    await did(connection, "stock", ago=1 * MINUTES, processed=9)
    answer = (await viewer.get("/stats", params={"from": "-10m", "step": "60s", "queue": "mail"})).json()
    [series] = answer["series"]
    known = [count for count in series["processed"] if count is not None]
    assert (known, set(series["sent"]), len(series["handling_seconds"]["p95"])) == ([4, 0], {None}, len(answer["starts_at"]))
    assert set(series["backlog"]) == {None}
    await connection.execute(
        "insert into outbox_stats (starts_at, seconds, routing_key, queue, backlog, oldest_age) values "
        "(date_trunc('minute', now()) - interval '2 minutes', 60, '', 'mail', 7, '90 s')"
    )
    [series] = (await viewer.get("/stats", params={"from": "-20m", "step": "60s", "queue": "mail"})).json()["series"]
    measured = zip(series["backlog"], series["oldest_age_seconds"], strict=True)
    assert [pair for pair in measured if pair != (None, None)] == [(7, 90.0)]
    refused = await viewer.get("/stats", params={"queue": "mail", "group_by": "queue"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


@pytest.mark.rabbitmq
async def test_rabbitmq_queues_have_depths_or_a_broker_error(
    database: str, connection: asyncpg.Connection, own_rabbitmq: OwnRabbitMQ
) -> None:
    own_rabbitmq.start()
    await worker(connection, "mail-1", "mail")
    async with await aio_pika.connect(own_rabbitmq.url) as broker:
        channel = await broker.channel()
        queue = await channel.declare_queue("mail", durable=True)
        for _ in range(3):
            await channel.default_exchange.publish(aio_pika.Message(b"{}"), queue.name)
    async with serving(Admin(database, broker=own_rabbitmq.url)) as app, client_of(app, Role.VIEWER) as client:
        found = (await listed(client))["mail"]
        assert (found["queued"], found["retrying"], found["exists"]) == ({"value": 3, "relation": "eq"}, None, True)
        assert found["bindings"] == [{"exchange": "outbox", "binding_key": "mail.*"}]
        own_rabbitmq.stop()

        async def without_the_broker() -> Any:
            answer = (await client.get("/queues")).json()
            return answer if answer["broker_error"] else None

        answer = await eventually(without_the_broker)
        assert answer["broker_error"]["message"]
        assert [(queue["name"], queue["queued"]) for queue in answer["items"]] == [("mail", None)]


async def test_an_unavailable_database_is_an_error_and_no_empty_list() -> None:
    async with serving(Admin("postgresql://user@127.0.0.1:1/nothing")) as app, client_of(app, Role.VIEWER) as client:
        answer = await client.get("/queues")
        assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")


async def test_queues_of_a_large_installation_are_read_by_index(database: str, connection: asyncpg.Connection) -> None:
    await connection.execute("""
        insert into outbox_stats (starts_at, seconds, routing_key, queue, processed)
        select date_trunc('minute', now()) - make_interval(mins => n), 60, 'k', 'q' || q, 1
        from generate_series(1, 2000) as n, generate_series(1, 20) as q;
        insert into outbox_dead_letter (source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at,
            attempt, cause, exception_type, exception_message, exception_traceback)
        select 'worker', 'outbox', 'q' || n % 20, n::text, 'k', '', '[]', now(), 1, 'failed', 'E', '', ''
        from generate_series(1, 20000) as n;
        analyze
    """)
    async with Admin(database) as admin:
        sql = admin.shared(queues.QueuesView)._sql
        await connection.execute(backlog_queries(admin.table)["settings"].replace("set local", "set"))
        minute = await connection.fetchval("select date_trunc('minute', now()) - interval '1 hour'")
        asked = {
            "activity": ((minute,), 61 * 20 * 2),
            "sent": ((minute,), 10 * 20),
            "dead_letters": (([f"q{number}" for number in range(20)], 100), 2_000),
        }
        for name, (arguments, most) in asked.items():
            nodes = await explained(connection, sql[name], *arguments)
            scans = [node for node in nodes if "Relation Name" in node]
            assert scans, name
            assert all(node["Node Type"] != "Seq Scan" for node in scans), name
            assert sum(rows_read(node) for node in scans if node["Node Type"] != "Bitmap Index Scan") <= most, name


async def test_the_command_shows_the_list_and_one_queue(database: str, connection: asyncpg.Connection) -> None:
    await worker(connection, "mail-1", "mail")
    await deliver(connection, "mail", 12)
    await did(connection, "mail", ago=1 * MINUTES, processed=300, failed=100)

    def run(*arguments: str) -> str:
        answer = CliRunner().invoke(cli, ["queues", *arguments], env={"OUTBOX_DATABASE_URL": database})
        assert answer.exit_code == 0, answer.output
        return answer.output

    table = await asyncio.to_thread(run)
    heading, line, *_ = table.splitlines()
    assert heading.split()[:4] == ["QUEUE", "QUEUED", "IN", "FLIGHT"]
    assert line.split()[:2] == ["mail", "12"]
    assert "25.0%" in line
    one = await asyncio.to_thread(run, "mail")
    assert "shop.mail.handle" in one
    assert "mail-1" in one
    assert json.loads(await asyncio.to_thread(run, "--json"))["items"][0]["name"] == "mail"


async def attempted(connection: asyncpg.Connection, queue: str, id_: str, ago: str, ran: str, **more: Any) -> None:
    await connection.execute(
        "insert into outbox_history (at, fact, message_id, root_id, routing_key, queue, attempt, waited, ran, error_type, "
        "error_message, component) values (now() - $1::text::interval, $2, $3, $3, 'order.placed', $4, 1, '1 s', "
        "$5::text::interval, $6, $7, 'worker-1')",
        *(ago, more.get("fact", "processed"), id_, queue, ran, more.get("error"), more.get("message")),
    )


async def test_attempts_of_a_queue_are_listed_latest_or_slowest_first(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    await attempted(connection, "mail", "m-1", "2 minutes", "3 s")
    await attempted(connection, "mail", "m-2", "1 minute", "1 s", fact="died", error="E", message="password=hunter2")
    await attempted(connection, "mail", "m-3", "3 minutes", "2 s", fact="retried", error="E", message="no")
    await attempted(connection, "mail", "old", "2 hours", "9 s")
    await attempted(connection, "books", "m-4", "1 minute", "9 s")
    await connection.execute(
        "insert into outbox_history (fact, message_id, root_id, routing_key, queue) "
        "values ('requeued', 'm-2', 'm-2', 'k', 'mail')"
    )

    async def listed(**parameters: Any) -> list[str]:
        answer = await viewer.get("/attempts", params={"queue": "mail", **parameters})
        assert answer.status_code == 200, answer.text
        return [item["message_id"] for item in answer.json()["items"]]

    assert await listed() == ["m-2", "m-1", "m-3"]
    assert await listed(order="slowest") == ["m-1", "m-3", "m-2"]
    assert await listed(order="slowest", limit=1) == ["m-1"]
    assert await listed(outcome=["dead_lettered", "retried"]) == ["m-2", "m-3"]
    assert await listed(after=(datetime.now(UTC) - timedelta(hours=3)).isoformat(), order="slowest", limit=1) == ["old"]
    assert await listed(before="0001-01-01T00:30:00Z") == []
    first = (await viewer.get("/attempts", params={"queue": "mail"})).json()["items"][0]
    assert (first["outcome"], first["handling_seconds"], first["waited_seconds"]) == ("dead_lettered", 1.0, 1.0)
    assert "hunter2" not in first["error"]["message"]


async def test_attempts_of_a_queue_are_read_by_index(connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_history (at, fact, message_id, root_id, routing_key, queue, ran) "
        "select now() - n * interval '1 s', 'processed', n, n, 'k', 'q' || n % 50, interval '1 s' "
        "from generate_series(1, 20000) n"
    )
    await connection.execute("analyze outbox_history")
    statement = statements(TableName("outbox_table", None), bounded=True)["latest_attempts"]
    now = datetime.now(UTC)
    plan = await explained(connection, statement, "q1", now - timedelta(hours=1), now, ["processed"], 20)
    assert max(rows_read(node) for node in plan) <= 100
