"""Alerts: what is wrong reaches webhooks, signed, once, again after failures, and when it is over."""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from opentelemetry import context as otel_context

from outbox.admin import Admin, Role, topology
from outbox.admin import cache as remembered
from outbox.admin.alerts import Alerting, AlertRules
from outbox.admin.alerts import monitor as alerting
from outbox.admin.alerts.rules import QuietTime, path_of
from outbox.admin.verdict import routes as verdict
from outbox.core.outcome import Failure
from outbox.errors import ConfigurationError
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import open_pool
from tests.admin.support import client_of, serving
from tests.dead_letters.failed_messages import FAILURE, TABLE, dead
from tests.support import eventually
from tests.support.webhooks import KEY, SECRET, Receiver, receiving

AT_ONCE = timedelta(0)
NOW = timedelta(0)


@pytest.fixture(autouse=True)
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (verdict, "MAX_AGE"),
        (topology, "MAX_AGE"),
        (remembered, "MAX_AGE"),
        (remembered, "USABLE_AGE"),
    ):
        monkeypatch.setattr(module, name, NOW)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as webhook:
        yield webhook


def rules(receiver: Receiver, **more: Any) -> AlertRules:
    return AlertRules(
        [receiver.url], **{"secret": SECRET, "after": AT_ONCE, "dashboard_url": "https://shop.example/outbox/ui/", **more}
    )


@asynccontextmanager
async def alerts_of(database: str, wanted: AlertRules, **more: Any) -> AsyncIterator[Alerting]:
    async with Admin(db_engine_url=database, alerts=wanted, environment="production:red", **more) as admin:
        made = Alerting(admin, wanted)
        async with made._sender.open():
            yield made


async def round_of(made: Alerting) -> None:
    await made.evaluate()
    await made.send()


async def dead_lettered(database: str, message: str, failure: Failure = FAILURE, **fields: Any) -> None:
    pool = await open_pool(database, size=1, application_name="tests")
    await PostgresArchive(pool, TABLE).record([dead(message, failure=failure, **{"failed_at": datetime.now(UTC), **fields})])
    await pool.close()


async def test_an_alert_is_sent_once_signed_and_again_when_it_is_resolved(
    database: str, connection: asyncpg.Connection, receiver: Receiver
) -> None:
    async with alerts_of(database, rules(receiver, on=["dead_letters"])) as made:
        await round_of(made)
        assert receiver.requests == []
        await dead_lettered(database, "m")
        await round_of(made)
        await round_of(made)
        [(headers, body)] = receiver.requests
        body_sent = json.loads(body)
        assert (body_sent["type"], body_sent["data"]["code"], body_sent["data"]["severity"]) == (
            "outbox.alert.fired",
            "dead_letters",
            "error",
        )
        assert body_sent["data"]["summary"] == "1 dead letter is open, and new"
        assert (body_sent["data"]["link"], body_sent["data"]["environment"]) == (
            "https://shop.example/outbox/ui/dead-letters",
            "production",
        )
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        signature = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{signature}"
        assert abs(int(headers["webhook-timestamp"]) - datetime.now(UTC).timestamp()) < 60
        await connection.execute("update outbox_dead_letter set status = 'discarded'")
        await round_of(made)
        await round_of(made)
        assert [each["type"] for each in receiver.bodies] == ["outbox.alert.fired", "outbox.alert.resolved"]
        assert receiver.requests[0][0]["webhook-id"] != receiver.requests[1][0]["webhook-id"]
        assert receiver.bodies[1]["data"]["id"] == body_sent["data"]["id"]


async def test_the_documented_check_accepts_valid_signatures_only(database: str, receiver: Receiver) -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text()
    names: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    async with alerts_of(database, rules(receiver, on=["dead_letters"])) as made:
        await dead_lettered(database, "m")
        await round_of(made)
    [(headers, body)] = receiver.requests
    assert names["is_genuine"](SECRET, headers, body)
    assert not names["is_genuine"](SECRET, headers, body + b" ")
    assert not names["is_genuine"](f"whsec_{base64.b64encode(os.urandom(24)).decode()}", headers, body)


async def test_an_alert_fires_when_its_condition_has_held_for_long_enough(database: str, receiver: Receiver) -> None:
    async with alerts_of(database, rules(receiver, on=["dead_letters"], after=timedelta(hours=1))) as made:
        await dead_lettered(database, "m")
        await round_of(made)
        assert receiver.requests == []
        for key in made._holds_since:
            made._holds_since[key] -= timedelta(hours=1)
        await round_of(made)
        assert len(receiver.requests) == 1


async def test_dead_letters_raise_an_alert_above_their_limit(database: str, receiver: Receiver) -> None:
    async with alerts_of(database, rules(receiver, on=["dead_letters"], dead_letters_above=1)) as made:
        await dead_lettered(database, "m")
        await round_of(made)
        assert receiver.requests == []
        await dead_lettered(database, "n")
        await round_of(made)
        assert len(receiver.requests) == 1


async def test_a_failing_webhook_is_retried_a_limited_number_of_times(
    database: str, connection: asyncpg.Connection, receiver: Receiver
) -> None:
    due = "update outbox_alert_delivery set due_at = now() where due_at is not null"
    async with alerts_of(database, rules(receiver, on=["dead_letters"])) as made:
        receiver.status = 503
        await dead_lettered(database, "m")
        await round_of(made)
        await round_of(made)
        assert len(receiver.requests) == 1, "it is not asked again before its time"
        waits = await connection.fetchval("select due_at - now() from outbox_alert_delivery")
        assert timedelta(0) < waits <= alerting.RETRIES[0]
        await connection.execute(due)
        receiver.status = 200
        await round_of(made)
        assert len(receiver.requests) == 2
        assert receiver.requests[0][1] == receiver.requests[1][1]
        assert receiver.requests[0][0]["webhook-id"] == receiver.requests[1][0]["webhook-id"], "by which it is known again"
        assert await connection.fetchval("select sent_at is not null and due_at is null from outbox_alert_delivery")

        await connection.execute("truncate outbox_alert cascade")
        receiver.status = 302
        await made.evaluate()
        for _ in range(len(alerting.RETRIES) + 3):
            await connection.execute(due)
            await made.send()
        row = await connection.fetchrow("select * from outbox_alert_delivery")
        assert row is not None
        assert (row["attempts"], row["due_at"], row["sent_at"]) == (len(alerting.RETRIES) + 1, None, None)
        assert row["last_error"] == "status 302", "a redirect is not followed"


@pytest.mark.parametrize("wrong", ["gone", "closed", "silent"])
async def test_the_error_of_a_webhook_is_stored_without_its_url(
    database: str, connection: asyncpg.Connection, receiver: Receiver, wrong: str
) -> None:
    url = receiver.url
    more: dict[str, Any] = {}
    if wrong == "gone":
        receiver.status = 410
    elif wrong == "closed":
        url = "http://127.0.0.1:9/hooks/T0/secret-path"
    else:
        receiver.holds, more = asyncio.Event(), {"timeout": timedelta(milliseconds=300)}
    wanted = AlertRules([url], secret=SECRET, on=["dead_letters"], after=AT_ONCE, **more)
    async with alerts_of(database, wanted) as made:
        await dead_lettered(database, "m")
        await round_of(made)
        row = await connection.fetchrow("select last_error, due_at, target from outbox_alert_delivery")
        assert row is not None
        assert row["last_error"] in {"status 410", "no response within 0.3 s"} or "ConnectError" in row["last_error"]
        assert (row["due_at"] is None) == (wrong == "gone"), "what is gone is not asked again"
        assert "secret-path" not in str(dict(row))
    if receiver.holds is not None:
        receiver.holds.set()


async def test_the_end_is_sent_after_the_beginning_that_had_to_be_tried_again(
    database: str, connection: asyncpg.Connection, receiver: Receiver
) -> None:
    async with alerts_of(database, rules(receiver, on=["dead_letters"])) as made:
        receiver.status = 503
        await dead_lettered(database, "m")
        await round_of(made)
        receiver.status = 204
        await connection.execute("update outbox_dead_letter set status = 'discarded'")
        await round_of(made)
        assert len(receiver.requests) == 1, "the beginning is not due yet, and the end waits for it"
        await connection.execute("update outbox_alert_delivery set due_at = now() where due_at is not null")
        await round_of(made)
        assert [each["type"] for each in receiver.bodies] == [
            "outbox.alert.fired",
            "outbox.alert.fired",
            "outbox.alert.resolved",
        ]


async def test_a_webhook_with_an_invalid_host_is_retried_and_stops_no_other(
    database: str, connection: asyncpg.Connection, receiver: Receiver
) -> None:
    # With a dash that is no hyphen, as word processors put it.
    wanted = AlertRules(
        ["https://hooks\N{EN DASH}prod.example/secret-path", receiver.url], secret=SECRET, on=["dead_letters"], after=AT_ONCE
    )
    async with alerts_of(database, wanted) as made:
        await dead_lettered(database, "m")
        await round_of(made)
        assert len(receiver.requests) == 1
        [row] = await connection.fetch("select last_error, due_at from outbox_alert_delivery where sent_at is null")
        assert row["last_error"].startswith("InvalidURL: ")
        assert row["due_at"] is not None
        assert "secret-path" not in row["last_error"]


async def test_no_log_contains_the_address_of_a_webhook(
    database: str, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with alerts_of(database, rules(receiver, on=["dead_letters"])) as made:
        await dead_lettered(database, "m")
        await round_of(made)
        async with httpx.AsyncClient() as client:
            await client.get(receiver.url.replace("secret-path", "other"))
    assert "secret-path" not in caplog.text
    assert "/hooks/T0/other" in caplog.text, "requests of the application are logged as before"


async def test_no_span_is_made_of_a_request_to_a_webhook(
    database: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    suppressed: list[object] = []
    post = httpx.AsyncClient.post

    async def seen(client: httpx.AsyncClient, *arguments: Any, **options: Any) -> httpx.Response:
        suppressed.append(otel_context.get_value("suppress_instrumentation"))
        return await post(client, *arguments, **options)

    monkeypatch.setattr(httpx.AsyncClient, "post", seen)
    async with alerts_of(database, rules(receiver, on=["dead_letters"])) as made:
        await dead_lettered(database, "m")
        await round_of(made)
    assert suppressed == [True]


async def test_a_new_group_raises_one_alert_and_a_reopened_group_an_open_one(
    database: str, connection: asyncpg.Connection, receiver: Receiver
) -> None:
    async with alerts_of(database, rules(receiver, on=["group_new", "group_reopened"])) as made:
        await dead_lettered(
            database, "old", Failure("KeyError", "long ago", ""), failed_at=datetime.now(UTC) - timedelta(days=1)
        )
        await dead_lettered(database, "m")
        await dead_lettered(database, "n")
        await round_of(made)
        await round_of(made)
        [body_sent] = receiver.bodies
        assert body_sent["data"]["summary"] == "new failures in the queue 'mail': shop.PaymentError: the card # was declined"
        group = body_sent["data"]["subject"]
        assert body_sent["data"]["link"] == f"https://shop.example/outbox/ui/dead-letters/groups/{group}"
        await connection.execute(
            "insert into outbox_group_mark (group_id, status, fixed_in, marked_by) values ($1, 'fixed', '1.2', 'ada')", group
        )
        await round_of(made)
        assert len(receiver.requests) == 1
        await dead_lettered(database, "again")
        await round_of(made)
        assert receiver.bodies[1]["data"]["code"] == "group_reopened"
        assert receiver.bodies[1]["data"]["summary"].startswith(
            "failures that were marked as fixed in 1.2 occur again in the queue"
        )
        await connection.execute("delete from outbox_group_mark")
        await round_of(made)
        assert receiver.bodies[2]["type"] == "outbox.alert.resolved"
        assert len(receiver.requests) == 3, "and it is not new again"


async def test_an_ended_operation_raises_one_alert(database: str, connection: asyncpg.Connection, receiver: Receiver) -> None:
    async with alerts_of(database, rules(receiver, on=["operation_ended"])) as made:
        await connection.execute(
            "insert into outbox_operation (action, selector, state, total, finished_at, stopped_because, requested_by) values "
            "('requeue', '{}', 'stopped', 12, now(), 'the canary failed', 'ada'), "
            "('discard', '{}', 'finished', 3, now() - interval '2 hours', null, null)"
        )
        await round_of(made)
        await round_of(made)
        [body_sent] = receiver.bodies
        assert body_sent["data"]["severity"] == "error"
        assert "(requeue of 12 dead letters, by ada) stopped by itself: the canary failed" in body_sent["data"]["summary"]


async def test_a_lost_component_is_not_reported_as_resolved_by_the_passing_of_time(
    database: str, connection: asyncpg.Connection, receiver: Receiver
) -> None:
    lost = (
        "insert into outbox_component (id, kind, name, host, process_id, version, every, activity, consumers, started_at, "
        "seen_at) values ($1, 'worker', $1, 'web-1', 1, '1', '5 s', '{}', '[]', now() - interval '1 day', now() - $2::interval)"
    )
    async with alerts_of(database, rules(receiver, on=["component_lost"])) as made:
        for name in ("forgotten", "replaced"):
            await connection.execute(lost, name, timedelta(minutes=2))
        await round_of(made)
        assert sorted(each["data"]["subject"] for each in receiver.bodies) == ["forgotten", "replaced"]
        await connection.execute(
            "update outbox_component set seen_at = now() - interval '16 minutes' where id = 'forgotten'; "
            "update outbox_alert set since = now() - interval '16 minutes' where subject = 'forgotten'; "
            "update outbox_component set seen_at = now() where id = 'replaced'"
        )
        await round_of(made)
        assert [(each["type"], each["data"]["subject"]) for each in receiver.bodies[2:]] == [
            ("outbox.alert.resolved", "replaced")
        ]


async def test_in_a_quiet_time_errors_are_sent_and_warnings_wait_or_are_dropped(
    database: str, connection: asyncpg.Connection, receiver: Receiver
) -> None:
    now = datetime.now(UTC)
    quiet = f"{now - timedelta(hours=1):%H:%M}-{now + timedelta(hours=1):%H:%M}"
    async with alerts_of(database, rules(receiver, on=["dead_letters", "paused", "group_new"], quiet=quiet)) as made:
        await dead_lettered(database, "m")
        await connection.execute("insert into outbox_control (scope, name, requested_by) values ('relay', '', 'ada')")
        await round_of(made)
        assert [body_sent["data"]["code"] for body_sent in receiver.bodies] == ["dead_letters"]
        rows = await connection.fetch("select due_at from outbox_alert_delivery where sent_at is null")
        assert [now < row["due_at"] <= now + timedelta(hours=1) for row in rows] == [True, True]
        await connection.execute("delete from outbox_control")
        await round_of(made)
        assert len(receiver.requests) == 1, "what is over before it was sent is body_sent neither way"
        left = await connection.fetchval(
            "select last_error from outbox_alert_delivery where due_at is null and sent_at is null"
        )
        assert left == "resolved before it was sent"


async def test_a_warning_that_becomes_an_error_in_a_quiet_time_is_sent(
    database: str, connection: asyncpg.Connection, receiver: Receiver
) -> None:
    now = datetime.now(UTC)
    quiet = f"{now - timedelta(hours=1):%H:%M}-{now + timedelta(hours=1):%H:%M}"
    async with alerts_of(database, rules(receiver, on=["dead_letters"], quiet=quiet)) as made:
        await dead_lettered(database, "old", failed_at=now - timedelta(days=1))
        await round_of(made)
        assert await connection.fetchval("select severity from outbox_alert") == "warning"
        assert receiver.requests == []
        await dead_lettered(database, "m")
        await round_of(made)
        await round_of(made)
        [body_sent] = receiver.bodies
        assert (body_sent["type"], body_sent["data"]["severity"]) == ("outbox.alert.fired", "error")
        assert body_sent["data"]["summary"] == "2 dead letters are open, 1 of them new"


@pytest.mark.parametrize(
    ("text", "at", "over"),
    [
        ("22:00-07:00 Europe/Berlin", "2026-11-23T21:30:00+00:00", "2026-11-24T06:00:00+00:00"),
        ("22:00-07:00 Europe/Berlin", "2026-11-23T05:59:00+00:00", "2026-11-23T06:00:00+00:00"),
        ("22:00-07:00 Europe/Berlin", "2026-11-23T06:00:00+00:00", None),
        ("12:00-13:00", "2026-11-23T12:00:00+00:00", "2026-11-23T13:00:00+00:00"),
        ("12:00-13:00", "2026-11-23T13:00:00+00:00", None),
    ],
)
def test_a_quiet_time_ends_at_its_hour_in_its_zone(text: str, at: str, over: str | None) -> None:
    found = QuietTime.parse(text).end_of(datetime.fromisoformat(at))
    assert (None if found is None else found.isoformat()) == over


async def test_slack_gets_its_own_format_without_a_signature(database: str, receiver: Receiver) -> None:
    wanted = AlertRules([f"slack+{receiver.url}"], on=["group_new"], after=AT_ONCE, dashboard_url="https://shop.example/ui")
    async with alerts_of(database, wanted) as made:
        await dead_lettered(database, "m", Failure("shop.Error", "<!channel> & more", ""))
        await round_of(made)
        [(headers, body)] = receiver.requests
        assert "webhook-signature" not in headers
        text = json.loads(body)["text"]
        assert text.startswith(
            "🟠 [production] new failures in the queue 'mail': shop.Error: &lt;!channel&gt; &amp; more <https://"
        )


async def test_slack_gets_one_message_for_all_alerts_of_a_moment(
    database: str, connection: asyncpg.Connection, receiver: Receiver
) -> None:
    wanted = AlertRules([f"slack+{receiver.url}"], on=["group_new"], after=AT_ONCE)
    async with alerts_of(database, wanted) as made:
        for number in range(3):
            await dead_lettered(database, f"m{number}", Failure(f"shop.Error{number}", "no", ""))
        receiver.status = 503
        await round_of(made)
        receiver.status = 200
        # The newest is found first, and yet the last line.
        for row in await connection.fetch("select id from outbox_alert_delivery order by id desc"):
            await connection.execute("update outbox_alert_delivery set due_at = now() where id = $1", row["id"])
        await round_of(made)
        first, again = receiver.bodies
        assert first == again
        lines = first["text"].splitlines()
        assert sorted(line.split()[-2] for line in lines) == [f"shop.Error{number}:" for number in range(3)]
        deliveries = await connection.fetch("select attempts, sent_at is null, due_at, last_error from outbox_alert_delivery")
        assert [tuple(row) for row in deliveries] == [(2, False, None, None)] * 3


async def test_one_process_is_active_and_another_takes_over(database: str, receiver: Receiver) -> None:
    wanted = rules(receiver, on=["dead_letters"], every=timedelta(milliseconds=50))
    async with (
        Admin(db_engine_url=database, alerts=wanted) as one,
        Admin(db_engine_url=database, alerts=wanted) as other,
    ):
        first, second = Alerting(one, wanted), Alerting(other, wanted)
        tasks = [asyncio.create_task(each.run(handle_signals=False)) for each in (first, second)]
        await dead_lettered(database, "m")
        await eventually(lambda: _count(receiver, 1))
        first.stop()
        await tasks[0]
        await dead_lettered(database, "n", Failure("KeyError", "x", ""))
        second.stop()
        await tasks[1]
        assert len(receiver.requests) == 1


async def _count(receiver: Receiver, count: int) -> bool:
    return len(receiver.requests) == count


def test_an_alert_links_to_its_page() -> None:
    for code, kind, subject, path in (
        ("queue_late", "queue", "a b", "/queues?name=a+b"),
        ("messages_held", "outbox", "", "/messages?state=held"),
        ("no_relay", "relay", "", "/components"),
        ("unroutable", "exchange", "outbox", "/topology"),
        ("operation_ended", "operation", "7", "/operations/7"),
    ):
        assert path_of(code, kind, subject) == path


def asked(make: Callable[[], AlertRules]) -> str:
    with pytest.raises(ConfigurationError) as raised:
        make()
    return str(raised.value)


def test_invalid_rules_are_rejected_without_disclosing_a_secret() -> None:
    hook = "https://hooks.example/T0/secret-path"
    for make, said in (
        (lambda: AlertRules([]), "at least one webhook"),
        (lambda: AlertRules([hook]), "need a secret for signatures"),
        (lambda: AlertRules([hook], secret="whsec_c2hvcnQ="), "at least 16 bytes"),
        (lambda: AlertRules([hook], secret="hunter2hunter2hunter2"), "whsec_"),
        (lambda: AlertRules(["ftp://host/secret-path"], secret=SECRET), "https://host/path"),
        (lambda: AlertRules([hook], secret=SECRET, on=["fire"]), "unknown alert codes fire: choose from database_unreachable"),
        (lambda: AlertRules([hook], secret=SECRET, quiet="late"), "22:00-07:00 Europe/Berlin"),
        (lambda: AlertRules([hook], secret=SECRET, quiet="07:00-07:00"), "different times"),
        (lambda: AlertRules([hook], secret=SECRET, quiet="22:00-07:00 Atlantis"), "name of a time zone"),
        (lambda: AlertRules([hook], secret=SECRET, every=NOW), "every of alerts"),
        (lambda: AlertRules([hook], secret=SECRET, dead_letters_above=10_000), "from 0 to 9,999"),  # as far as they are counted
        (lambda: AlertRules([hook], secret=SECRET, dashboard_url="shop.example"), "must begin with https://"),
    ):
        text = asked(make)
        assert said in text
        assert "secret-path" not in text
        assert "hunter2" not in text


async def test_alerts_are_listed_with_their_notifications(
    database: str, connection: asyncpg.Connection, receiver: Receiver
) -> None:
    wanted = rules(receiver, on=["dead_letters", "group_new"])
    async with alerts_of(database, wanted) as made:
        receiver.status = 500
        await dead_lettered(database, "m")
        await round_of(made)
        async with (
            serving(Admin(db_engine_url=database, alerts=wanted)) as app,
            client_of(app, Role.VIEWER) as viewer,
            client_of(app, Role.OPERATOR) as operator,
        ):
            page = (await viewer.get("/alerts")).json()
            assert [(each["code"], each["resolved_at"] is None) for each in page["items"]] == [
                ("group_new", False),
                ("dead_letters", True),
            ]
            [delivery] = page["items"][1]["deliveries"]
            assert (delivery["attempts"], delivery["last_error"], delivery["sent_at"]) == (1, "status 500", None)
            assert page["settings"]["codes"] == ["dead_letters", "group_new"]
            assert "secret-path" not in json.dumps(page)
            first = (await viewer.get("/alerts", params={"limit": 1})).json()
            second = (await viewer.get("/alerts", params={"limit": 1, "cursor": first["next"]})).json()
            back = (await viewer.get("/alerts", params={"limit": 1, "cursor": second["previous"]})).json()
            assert [each["items"][0]["code"] for each in (first, second, back)] == ["group_new", "dead_letters", "group_new"]
            only = (await viewer.get("/alerts", params={"status": "open"})).json()["items"]
            assert [each["code"] for each in only] == ["dead_letters"]

            assert (await viewer.post("/alerts/test")).status_code == 403
            [tested] = (await operator.post("/alerts/test")).json()["items"]
            assert (tested["delivered"], tested["error"]) == (False, "status 500")
            receiver.status = 200
            [tested] = (await operator.post("/alerts/test")).json()["items"]
            assert (tested["delivered"], tested["error"]) == (True, None)
            assert receiver.bodies[-1]["type"] == "outbox.alert.test"
    rows = await connection.fetch("select action, outcome from outbox_audit order by id")
    assert [tuple(row) for row in rows] == [
        ("alerts.test", "denied"),
        ("alerts.test", "done"),
        ("alerts.test", "done"),
    ]


async def test_without_webhooks_there_is_nothing_to_test(operator: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
    assert (await viewer.get("/alerts")).json() == {
        "items": [],
        "next": None,
        "previous": None,
        "total": None,
        "settings": None,
    }
    answer = await operator.post("/alerts/test")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
