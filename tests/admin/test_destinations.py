"""What operators see of an outbox with several destinations: backlog, messages, verdict, doctor and metrics."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import httpx
import pytest
from prometheus_client import REGISTRY

from outbox import ensure_outbox_schema_async
from outbox.admin import Admin, Role, topology
from outbox.admin import backlog as backlogs
from outbox.admin.verdict import routes as view
from outbox.doctor import Installation, examine
from outbox.runtime.observing import build_observer
from tests.admin.repairing import ask, outcomes
from tests.admin.support import client_of, serving
from tests.support import eventually

NOW = timedelta(0)


@pytest.fixture(autouse=True)
def read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (view, topology, backlogs):
        monkeypatch.setattr(module, "MAX_AGE", NOW)


@pytest.fixture
async def connection(database: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to an outbox with a second destination, for which two messages wait, and one for the default one."""
    await ensure_outbox_schema_async(database, destinations=["kafka"])
    connection = await asyncpg.connect(database)
    await connection.execute("insert into outbox_table (routing_key, body) values ('order.placed', '{}')")
    await connection.execute(
        "insert into outbox_table_kafka (routing_key, body, send_after, ordering_key) "
        "values ('audit.login', '{}', now() - interval '90 s', 'k'), ('audit.logout', '{}', now(), 'k')"
    )
    yield connection
    await connection.close()


async def answered(client: httpx.AsyncClient, path: str, **parameters: Any) -> Any:
    answer = await client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def serve(connection: asyncpg.Connection, name: str, table: str, destination: str) -> None:
    """Records a running relay."""
    await connection.execute(
        "insert into outbox_relay (id, outbox_table, destination, name, held_until) "
        "values (gen_random_uuid(), $1::regclass::oid, $2, $3, now() + interval '1 minute')",
        table,
        destination,
        name,
    )


async def test_the_backlog_shows_the_share_of_each_destination(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    await serve(connection, "one", "outbox_table", "rabbit:5672, exchange outbox")
    found = await eventually(lambda: _complete(viewer))
    assert found is not None
    assert found["states"]["pending"]["value"] == 3
    default, kafka = found["destinations"]
    assert default == {
        "destination": "default",
        "unsent": {"value": 1, "relation": "eq"},
        "oldest_pending_age_seconds": default["oldest_pending_age_seconds"],
        "relay_count": 1,
        "sends_to": "rabbit:5672, exchange outbox",
    }
    assert kafka["oldest_pending_age_seconds"] >= 90
    assert (kafka["destination"], kafka["unsent"]["value"], kafka["relay_count"], kafka["sends_to"]) == ("kafka", 2, 0, None)


async def _complete(client: httpx.AsyncClient) -> dict[str, Any] | None:
    found: dict[str, Any] = await answered(client, "/backlog")
    return found if found["complete"] else None


async def test_an_outbox_with_one_destination_shows_none(viewer: httpx.AsyncClient) -> None:
    found = await eventually(lambda: _complete(viewer))
    assert found is not None
    assert found["destinations"] == []


async def test_messages_name_their_destination_and_are_listed_by_it(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    async def listed(**parameters: Any) -> list[tuple[str, str]]:
        found = await answered(viewer, "/messages", total=True, **parameters)
        assert found["total"]["value"] == len(found["items"])
        return [(each["routing_key"], each["destination"]) for each in found["items"]]

    of_kafka = [("audit.logout", "kafka"), ("audit.login", "kafka")]
    assert await listed() == [*of_kafka, ("order.placed", "default")]
    assert await listed(destination="kafka") == of_kafka
    assert await listed(destination="default") == [("order.placed", "default")]
    assert await listed(destination="kafka", state="pending") == of_kafka[::-1]
    assert await listed(destination="lake") == []
    answer = await viewer.get("/messages", params={"destination": "Kafka"})
    assert answer.status_code == 422


async def test_a_message_is_explained_by_its_own_destination(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    # The first row of the key, in another destination, is none that it waits for.
    await connection.execute("update outbox_table set ordering_key = 'k'")
    first, second = [row["id"] for row in await connection.fetch("select id from outbox_table_kafka order by id")]
    shown = await answered(viewer, f"/messages/{second}")
    assert shown["destination"] == "kafka"
    assert shown["blocked_by"]["id"] == str(first)
    assert (await answered(viewer, f"/messages/{first}"))["blocked_by"] is None
    assert shown["alive_relay_count"] == 0
    assert shown["hint"] == "start a relay: `outbox relay --destination kafka`"
    await serve(connection, "two", "outbox_table_kafka", "broker:9092")
    shown = await answered(viewer, f"/messages/{first}")
    assert (shown["alive_relay_count"], shown["hint"]) == (1, None)
    # That relay does not send what is for the default destination.
    await connection.execute(
        "insert into outbox_component (id, kind, name, host, process_id, version, every) "
        "values (gen_random_uuid(), 'relay', 'two', 'host', 1, '1', interval '1 minute')"
    )
    shown = await answered(viewer, f"/messages/{await connection.fetchval('select id from only outbox_table')}")
    assert (shown["alive_relay_count"], shown["hint"]) == (0, "start a relay")


async def test_probes_are_those_of_the_destination(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    for table in ("outbox_table", "outbox_table_kafka"):
        await connection.execute(
            f"insert into {table} (routing_key, body, send_after, last_error) "
            "values ('held', '', now() + interval '1 minute', 'unroutable'), ('held', '', 'infinity', 'unroutable'), "
            "('full', '', 'infinity', 'stalled')"
        )
    for table in ("outbox_table", "outbox_table_kafka"):
        rows = await connection.fetch(f"select id from only {table} where last_error is not null order by id")
        probe, waiting, stalled = [str(row["id"]) for row in rows]
        assert (await answered(viewer, f"/messages/{waiting}"))["probe_id"] == probe
        assert (await answered(viewer, f"/messages/{stalled}"))["probe_id"] == stalled


async def test_dead_letters_name_the_destination_whose_relay_could_not_send_them(
    viewer: httpx.AsyncClient, operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    await connection.execute("update outbox_table set failed_at = now(), last_error = 'too large: 1' where id < 3")
    await connection.execute(
        "insert into outbox_dead_letter "
        "(source, exchange, queue, routing_key, body, cause, exception_type, exception_message, exception_traceback, "
        "tracking_ids, attempt, created_at, failed_at, first_failed_at) "
        "values ('worker', '', 'mail', 'mail.sent', '', 'rejected', 'E', '', '', '[]', 1, now(), now(), now())"
    )

    async def listed(**parameters: Any) -> list[tuple[str, str | None]]:
        found = await answered(viewer, "/dlq", total=True, status="any", **parameters)
        assert found["total"]["value"] == len(found["items"])
        return sorted((each["routing_key"], each["destination"]) for each in found["items"])

    every = [("audit.login", "kafka"), ("mail.sent", None), ("order.placed", "default")]
    assert await listed() == every
    # Discarding moves them to the table of dead letters, with their destination.
    for status in ("open", "discarded"):
        assert await listed(destination="kafka") == every[:1]
        assert await listed(destination="default") == every[2:]
        assert await listed(destination="lake") == []
        if status == "open":
            discarded = await ask(operator, "discard", ["outbox-1", "outbox-2"])
            assert outcomes(discarded) == {"outbox-1": "discarded", "outbox-2": "discarded"}
    [letter] = (await answered(viewer, "/dlq", status="any", destination="kafka"))["items"]
    assert (await answered(viewer, f"/dlq/{letter['id']}"))["destination"] == "kafka"


async def test_a_destination_without_a_relay_is_a_finding(viewer: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    async def unserved() -> list[dict[str, Any]]:
        found = await answered(viewer, "/health/verdict")
        return [each for each in found["findings"] if each["code"] == "destination_unserved"]

    both = await unserved()
    assert {each["subject"] for each in both} == {"default", "kafka"}
    await serve(connection, "one", "outbox_table", "rabbit:5672")
    [finding] = await unserved()
    assert (finding["severity"], finding["subject_kind"], finding["subject"]) == ("error", "destination", "kafka")
    assert finding["summary"] == "no relay serves the destination 'kafka': 2 messages wait"
    assert finding["hint"] == "start one: `outbox relay --destination kafka` with the URL of its broker"
    await connection.execute("delete from outbox_table_kafka")
    [finding] = await unserved()
    assert (finding["severity"], finding["summary"]) == (
        "warning",
        "no relay serves the destination 'kafka': nothing waits yet",
    )
    await serve(connection, "two", "outbox_table_kafka", "broker:9092")
    assert await unserved() == []


async def test_an_operator_publishes_to_chosen_destinations(
    operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    async def publish(*destinations: str) -> httpx.Response:
        wanted = {"routing_key": f"audit.{len(destinations)}", "body": 1, "destinations": destinations}
        return await operator.post("/messages", json=wanted)

    async def tables(routing_key: str) -> list[str]:
        rows = await connection.fetch("select tableoid::regclass::text from outbox_table where routing_key = $1", routing_key)
        return sorted(row[0] for row in rows)

    assert (await publish("kafka")).status_code == 201
    assert await tables("audit.1") == ["outbox_table_kafka"]
    both = (await publish("kafka", "default", "kafka")).json()["message_id"]
    assert await tables("audit.3") == ["outbox_table", "outbox_table_kafka"]
    [entry] = (await operator.get("/audit", params={"action": "messages.publish", "target": both})).json()["items"]
    assert entry["details"]["destinations"] == ["kafka", "default", "kafka"]
    missing = await publish("default", "lake")
    assert (missing.status_code, missing.json()["code"]) == (422, "invalid_edit")
    assert "`outbox migrate --destination lake` creates it" in missing.json()["detail"]
    assert (await publish("history")).json()["code"] == "invalid_edit"
    for wrong in (["Kafka"], [""], []):
        refused = await publish(*wrong)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert await connection.fetchval("select count(*) from outbox_table where body = '1'") == 3


async def test_relays_of_one_destination_that_send_elsewhere_are_a_finding(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    async def disagreeing() -> list[dict[str, Any]]:
        found = await answered(viewer, "/health/verdict")
        return [each for each in found["findings"] if each["code"] == "relays_disagree"]

    await serve(connection, "one", "outbox_table_kafka", "broker:9092")
    assert await disagreeing() == []
    await serve(connection, "two", "outbox_table_kafka", "other:9092")
    [finding] = await disagreeing()
    assert (finding["severity"], finding["subject_kind"], finding["subject"]) == ("error", "destination", "kafka")
    assert finding["summary"].startswith("destination 'kafka': relays of one outbox table disagree")
    assert "two sends to other:9092" in finding["summary"]
    await serve(connection, "three", "outbox_table", "rabbit:5672")
    await serve(connection, "four", "outbox_table", "rabbit:5673")
    assert {each["subject"] for each in await disagreeing()} == {"outbox", "kafka"}


async def test_the_doctor_names_a_destination_without_a_relay(database: str, connection: asyncpg.Connection) -> None:
    async def unserved() -> list[str]:
        report = await examine(Installation(database_url=database, consumer_timeout=timedelta(minutes=30)))
        return [each.summary for each in report.findings if "destination" in each.summary and each.severity == "error"]

    await serve(connection, "one", "outbox_table", "PostgreSQL, the outbox's own database, exchange outbox")
    assert await unserved() == ["no relay serves the destination 'kafka', for which 2 messages wait"]
    await serve(connection, "two", "outbox_table_kafka", "broker:9092")
    assert await unserved() == []


async def test_the_doctor_names_relays_of_a_destination_that_disagree(database: str, connection: asyncpg.Connection) -> None:
    await serve(connection, "one", "outbox_table", "PostgreSQL, the outbox's own database, exchange outbox")
    for name in ("two", "three"):
        await serve(connection, name, "outbox_table_kafka", f"{name}:9092")
    report = await examine(Installation(database_url=database, consumer_timeout=timedelta(minutes=30)))
    [summary] = [each.summary for each in report.findings if each.check == "relays" and each.severity == "error"]
    assert summary == (
        "relays of one outbox table disagree about where its messages go: three sends to three:9092; two sends to two:9092"
    )


async def test_a_role_that_may_not_see_relays_gets_no_finding(database: str, connection: asyncpg.Connection) -> None:
    role = f"blind_{await connection.fetchval('select current_database()')}"
    await connection.execute(f"create role {role} login password 'blind'")
    try:
        await connection.execute(f"grant select on all tables in schema public to {role}")
        await connection.execute(f"revoke select on outbox_relay from {role}")
        address = database.partition("@")[2]
        async with serving(Admin(f"postgresql://{role}:blind@{address}")) as app, client_of(app, Role.VIEWER) as client:
            found = await eventually(lambda: _complete(client))
            assert found is not None
            assert [each["relay_count"] for each in found["destinations"]] == [None, None]
    finally:
        await connection.execute(f"drop owned by {role}; drop role {role}")


async def test_metrics_have_the_backlog_of_each_destination(database: str, connection: asyncpg.Connection) -> None:
    async with Admin(database) as admin:
        build_observer(enable_metrics=True).notify(await admin.shared(view.VerdictView).measured())
    assert REGISTRY.get_sample_value("outbox_destination_messages", {"destination": "kafka"}) == 2
    oldest = REGISTRY.get_sample_value("outbox_destination_oldest_age_seconds", {"destination": "kafka"})
    assert oldest is not None
    assert oldest >= 90
