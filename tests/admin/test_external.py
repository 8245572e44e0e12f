"""Links to logs and traces in other systems, from templates."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from outbox.admin import Admin, Role
from outbox.admin.admin import LinkTemplate
from outbox.errors import ConfigurationError
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import open_pool
from tests.admin.rows import deliver, insert
from tests.admin.support import client_of, serving
from tests.dead_letters.failed_messages import TABLE, dead
from tests.schema.support import REPOSITORY

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACED = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
LOGS, TRACES = "https://logs.example/?q={message_id}&r={root_id}&k={routing_key}", "https://traces.example/{trace_id}"


async def test_details_link_to_logs_and_traces(database: str, connection: asyncpg.Connection) -> None:
    pool = await open_pool(database, size=1, application_name="tests")
    await PostgresArchive(pool, TABLE).record([dead("m/1&x", headers=TRACED), dead("plain")])
    await pool.close()
    await insert(connection, tracking_ids='["root", "own"]', headers='{"traceparent": "garbage"}')
    delivery = await deliver(connection, message_id="d")
    admin = Admin(database, broker=database, log_url=LOGS, trace_url=TRACES)
    async with serving(admin) as app, client_of(app, Role.VIEWER) as client:
        items = {item["message_id"]: item["id"] for item in (await client.get("/dlq")).json()["items"]}
        traced, plain = [(await client.get(f"/dlq/{items[name]}")).json() for name in ("m/1&x", "plain")]
        assert (traced["trace_id"], plain["trace_id"]) == (TRACE, None)
        assert traced["external"] == {
            "log_url": "https://logs.example/?q=m%2F1%26x&r=m%2F1%26x&k=order.placed",
            "trace_url": f"https://traces.example/{TRACE}",
        }
        assert plain["external"]["trace_url"] is None
        [message] = (await client.get("/messages")).json()["items"]
        found = (await client.get(f"/messages/{message['id']}")).json()
        assert (found["external"]["log_url"] or "").startswith("https://logs.example/?q=own&r=root&k=")
        assert found["trace_id"] is found["external"]["trace_url"] is None
        await connection.execute("update outbox_table set headers = $1::text::jsonb", json.dumps(TRACED))
        assert (await client.get(f"/messages/{message['id']}")).json()["trace_id"] == TRACE
        found = (await client.get(f"/deliveries/{delivery}")).json()
        assert found["external"] == {"log_url": "https://logs.example/?q=d&r=d&k=order.placed", "trace_url": None}
        assert found["trace_id"] is None
        await connection.execute("update outbox_delivery set headers = $1::text::jsonb", json.dumps(TRACED))
        found = (await client.get(f"/deliveries/{delivery}")).json()
        assert (found["trace_id"], found["external"]["trace_url"]) == (TRACE, f"https://traces.example/{TRACE}")
    async with serving(Admin(database)) as app, client_of(app, Role.VIEWER) as client:
        assert (await client.get(f"/dlq/{items['plain']}")).json()["external"] == {"log_url": None, "trace_url": None}


def test_the_documented_templates_are_valid() -> None:
    templates = re.findall(r"^OUTBOX_TRACE_URL=(\S+)$", (REPOSITORY / "docs/tracing.md").read_text(), re.MULTILINE)
    rendered = [LinkTemplate.parse(text, "trace_url").render({"trace_id": TRACE}) for text in templates]
    assert rendered[0] == f"https://jaeger.example/trace/{TRACE}"
    panes = json.loads(parse_qs(urlsplit(rendered[1] or "").query)["panes"][0])
    assert panes["t"]["queries"][0]["query"] == TRACE


@pytest.mark.parametrize(
    "wrong",
    [
        "https://logs.example/",
        "https://logs.example/{colour}",
        "https://logs.example/{message_id.real}",
        "https://logs.example/{message_id!r}",
        "https://logs.example/{message_id:>9}",
        "https://logs.example/{}",
        "https://logs.example/{message_id",
        "javascript:alert({message_id})",
        "https://ada:geheim@logs.example/{message_id}",
        "logs.example/{message_id}",
    ],
)
def test_an_invalid_template_is_refused_without_quoting_it(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="log_url must be an https://") as raised:
        LinkTemplate.parse(wrong, "log_url")
    assert "geheim" not in str(raised.value)
