"""`GET /export/…`: files with the filters, masking and roles of their lists."""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any, cast

import asyncpg
import httpx
import pytest

from outbox.admin import Admin, Role
from outbox.admin import export as export_module
from outbox.admin.dlq.routes import list_dead_letters
from outbox.admin.limits import Reads
from outbox.core.outcome import Failure
from outbox.masking import HIDDEN
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import Pool, open_pool
from tests.admin.letters import answered, problem
from tests.admin.repairing import confirmed
from tests.admin.rows import insert_each
from tests.admin.served import served
from tests.admin.support import MakeClient, client_of, serving
from tests.dead_letters.failed_messages import TABLE, dead
from tests.dead_letters.repairs import add_dead_letters, park

LISTS = {"dlq": "/dlq", "messages": "/messages", "audit": "/audit", "operations": "/operations"}
HOSTILE = "=cmd|'/c calc'!A1, \"quoted\"; \u20ac\nsecond line\rthird\x1b[31m\x07\u2028\u202egnp\x85\x7f"
NAME = re.compile(r'attachment; filename="(dlq|messages|audit|operations)-\d{4}-\d\d-\d\dT\d{6}Z\.(csv|ndjson)"')


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    opened = await open_pool(database, size=4, application_name="tests")
    yield opened
    await opened.close()


async def as_csv(client: httpx.AsyncClient, name: str, **parameters: Any) -> list[dict[str, str]]:
    """Parses a CSV file to rows by column name."""
    response = await client.get(f"/export/{name}", params=parameters)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    reader = csv.DictReader(io.StringIO(response.content.decode(), newline=""), strict=True)
    rows = list(reader)
    assert all(None not in row and None not in row.values() for row in rows)
    return rows


async def as_ndjson(client: httpx.AsyncClient, name: str, **parameters: Any) -> list[Any]:
    """Parses an NDJSON file to objects."""
    response = await client.get(f"/export/{name}", params={"format": "ndjson", **parameters})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.text.endswith("\n") or not response.text
    # Also those who end lines at U+2028 and the like find one object on each.
    return [json.loads(line) for line in response.text.splitlines()]


async def fill(pool: Pool, operator: httpx.AsyncClient) -> None:
    """Adds items of several kinds to every list."""
    await add_dead_letters(pool, 3, queue="mail")
    await add_dead_letters(pool, 2, queue="stock", exception_message="password=hunter2 was refused")
    await park(pool, last_error="password=hunter2 was refused")
    async with pool.acquire() as connection:
        await insert_each(cast("asyncpg.Connection[asyncpg.Record]", connection))
    await confirmed(operator, "discard", {"filter": {"queue": "stock"}})
    await operator.put("/dlq/groups/note", json={"by": "queue", "id": "mail", "note": "=1+1"})


def flattened(value: Mapping[str, Any], columns: list[str]) -> dict[str, str]:
    """Converts an item without formulas to a row of the CSV file."""

    def cell(column: str) -> str:
        found: Any = value
        for name in column.split("."):
            found = None if found is None else found[name]
        if isinstance(found, str):
            return found
        return "" if found is None else json.dumps(found)

    return {column: cell(column) for column in columns}


async def test_a_file_has_the_items_of_the_list_in_the_same_order(pool: Pool, operator: httpx.AsyncClient) -> None:
    await fill(pool, operator)
    for name, path in LISTS.items():
        listed = (await answered(operator, path, limit=200))["items"]
        assert listed, name
        changing = {"remaining_seconds", "items_per_second"}
        objects = await as_ndjson(operator, name)
        assert [{**each, **dict.fromkeys(changing & each.keys())} for each in objects] == [
            {**each, **dict.fromkeys(changing & each.keys())} for each in listed
        ], name
        rows = await as_csv(operator, name)
        columns = [column for column in rows[0] if column not in changing]
        assert [{column: row[column] for column in columns} for row in rows] == [flattened(item, columns) for item in listed], (
            name
        )


async def test_columns_are_the_fields_including_nested_ones(pool: Pool, operator: httpx.AsyncClient) -> None:
    header = (await operator.get("/export/dlq")).text
    assert header.endswith("\r\n")
    columns = header.strip().split(",")
    assert columns[:6] == ["id", "source", "status", "reason", "queue", "exchange"]
    assert {"error.type", "error.message", "error.traceback", "failed_at", "preview"} <= set(columns)
    assert "error" not in columns
    assert (await operator.get("/export/dlq", params={"format": "ndjson"})).text == ""
    columns = (await operator.get("/export/operations")).text.strip().split(",")
    assert {"selector", "options.canary.count", "counts", "results.failed_again"} <= set(columns)
    await add_dead_letters(pool)
    await confirmed(operator, "discard", {"filter": {"queue": "orders.confirm"}})
    [row] = await as_csv(operator, "operations")
    assert json.loads(row["selector"])["filter"]["queue"] == "orders.confirm"
    assert (row["active"], row["options.canary.count"], row["item_count"]) == ("true", "", "1")
    [entry] = await as_csv(operator, "audit")
    assert json.loads(entry["details"])["total"] == 1


@pytest.mark.parametrize(
    ("name", "filters"),
    [
        ("dlq", {"queue": "mail"}),
        ("dlq", {"queue": ["mail", "stock"], "status": "any", "sort": "oldest"}),
        ("dlq", {"status": "discarded", "failed_after": "2026-03-01T12:00:00Z"}),
        ("dlq", {"q": "order"}),
        ("messages", {"state": "held"}),
        ("messages", {"ordering_key": "customer 7"}),
        ("messages", {"routing_key": "order.*", "created_before": "2200-01-01T00:00:00+02:00"}),
        ("audit", {"action": "dlq.discard", "outcome": "done"}),
        ("audit", {"actor": "unknown"}),
        ("operations", {"active": "true"}),
    ],
)
async def test_an_export_takes_the_filters_of_its_list(
    pool: Pool, operator: httpx.AsyncClient, name: str, filters: dict[str, Any]
) -> None:
    await fill(pool, operator)
    listed = [item["id"] for item in (await answered(operator, LISTS[name], **filters))["items"]]
    assert [each["id"] for each in await as_ndjson(operator, name, **filters)] == listed
    assert [row["id"] for row in await as_csv(operator, name, **filters)] == listed
    for wrong in ({"nothing": "1"}, {"cursor": "x"}, {"total": "true"}, {"format": "xlsx"}):
        assert await problem(operator, f"/export/{name}", **filters, **wrong) == (422, "invalid_request")


@pytest.mark.parametrize("rows", [3, 4, 5, 7, 8])
async def test_pages_follow_each_other_without_a_gap(
    pool: Pool, operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(export_module, "PAGE", 4)
    await add_dead_letters(pool, 7)
    assert len(await as_ndjson(operator, "dlq", limit=rows)) == min(rows, 7)
    listed = [item["id"] for item in (await answered(operator, "/dlq"))["items"]]
    found = await as_csv(operator, "dlq", limit=rows)
    assert [row["id"] for row in found] == listed[:rows]


async def test_an_export_holds_one_page_of_bounded_size_in_memory(
    pool: Pool, operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bool]] = []

    async def counting(context: Any, wanted: Any) -> Any:
        asked.append((wanted.limit, wanted.cursor is None))
        return await list_dead_letters(context, wanted)

    monkeypatch.setattr("outbox.admin.export.list_dead_letters", counting)
    await add_dead_letters(pool, 450)
    assert len(await as_csv(operator, "dlq")) == 450
    assert asked == [(200, True), (200, False), (200, False)]
    asked.clear()
    assert len(await as_csv(operator, "dlq", limit=210)) == 210
    assert asked == [(200, True), (10, False)]


async def test_the_limit_is_in_a_header_and_has_a_maximum(pool: Pool, operator: httpx.AsyncClient) -> None:
    await add_dead_letters(pool, 3)
    for limit, said in ((None, "10000"), (2, "2"), (100_000, "100000")):
        response = await operator.get("/export/dlq", params={} if limit is None else {"limit": limit})
        assert response.headers["outbox-export-limit"] == said
    for limit in (0, 100_001):
        assert await problem(operator, "/export/dlq", limit=limit) == (422, "invalid_request")


async def test_the_file_name_has_the_list_and_the_time(operator: httpx.AsyncClient) -> None:
    for name in LISTS:
        for format_ in ("csv", "ndjson"):
            for method in ("GET", "HEAD"):
                response = await operator.request(method, f"/export/{name}", params={"format": format_})
                named = NAME.fullmatch(response.headers["content-disposition"])
                assert named is not None
                assert named.groups() == (name, format_)
                assert response.headers["cache-control"] == "no-store"
                assert response.headers["x-content-type-options"] == "nosniff"
                assert method == "GET" or not response.content


async def test_what_is_masked_in_a_list_is_masked_in_its_file(pool: Pool, database: str, operator: httpx.AsyncClient) -> None:
    await fill(pool, operator)
    body = b'{"password": "hunter2", "n": 1}'
    await PostgresArchive(pool, TABLE).record([dead("m9", body, failure=Failure("E", "password=hunter2", ""))])
    for name in LISTS:
        for format_ in ("csv", "ndjson"):
            text = (await operator.get(f"/export/{name}", params={"format": format_})).text
            assert "hunter2" not in text, name
    async with serving(Admin(database, error_text="operator")) as app:
        viewer = client_of(app, Role.VIEWER)
        messages = {each["error"]["message"] for each in await as_ndjson(viewer, "dlq", status="any")}
        assert messages == {HIDDEN, ""}  # what the relay parked says all in its type
        assert await problem(viewer, "/export/dlq", q="order") == (403, "forbidden")
        assert "refused" not in (await viewer.get("/export/messages", params={"state": "parked"})).text


async def test_an_export_requires_the_role_of_its_list(make_client: MakeClient) -> None:
    viewer, operator, anonymous = make_client(Role.VIEWER), make_client(Role.OPERATOR), make_client(None)
    for name in LISTS:
        assert await problem(anonymous, f"/export/{name}") == (401, "unauthenticated")
        assert (await operator.get(f"/export/{name}")).status_code == 200
        expected = 403 if name == "audit" else 200
        assert (await viewer.get(f"/export/{name}")).status_code == expected
    [entry] = await as_ndjson(operator, "audit", outcome="denied")
    assert (entry["action"], entry["actor"]) == ("export.audit", "a viewer")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-cmd", "'-cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("  =1", "'  =1"),
        ("\n=1", "'\n=1"),
        ("＝1+1", "'＝1+1"),  # noqa: RUF001
        ("-5", "-5"),
        ("+4.5e3", "+4.5e3"),
        ("-5-cmd", "'-5-cmd"),
        ("a=1", "a=1"),
        ("'=1", "'=1"),
        ('a,"b"', 'a,"b"'),
        ("two\r\nlines", "two\r\nlines"),
        ("\x1b[31m\u2028\u202e", "\\u001b[31m\\u2028\\u202e"),
        ("\x01=1", "\\u0001=1"),
    ],
)
async def test_formulas_are_exported_as_text(pool: Pool, operator: httpx.AsyncClient, text: str, cell: str) -> None:
    await add_dead_letters(pool, exception_type=text, routing_key=text)
    [row] = await as_csv(operator, "dlq")
    assert row["routing_key"] == cell
    [item] = await as_ndjson(operator, "dlq")
    assert item["routing_key"] == text


async def test_hostile_values_stay_within_their_cells(pool: Pool, operator: httpx.AsyncClient) -> None:
    await add_dead_letters(pool, 2, routing_key=HOSTILE, ordering_key=HOSTILE, queue=HOSTILE)
    rows = await as_csv(operator, "dlq")
    assert [row["queue"] for row in rows] == [
        "'=cmd|'/c calc'!A1, \"quoted\"; €\nsecond line\rthird\\u001b[31m\\u0007\\u2028\\u202egnp\\u0085\\u007f"
    ] * 2
    assert [each["queue"] for each in await as_ndjson(operator, "dlq")] == [HOSTILE] * 2
    await operator.put("/dlq/groups/note", json={"by": "queue", "id": HOSTILE, "note": HOSTILE})
    [entry] = await as_csv(operator, "audit")
    assert json.loads(entry["details"])["note"] == HOSTILE.strip()
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e]", "".join(entry.values()))


async def test_bodies_in_any_encoding_have_previews(pool: Pool, viewer: httpx.AsyncClient) -> None:
    bodies = (b'{"a": "\\ud800"}', b"\xff\x00\x1b[31m", b"", b'{"a": "\\u0000=1"}', "=ü\0".encode())
    for body in bodies:
        await add_dead_letters(pool, body=body)
        await pool.execute("insert into outbox_table (routing_key, body, content_type) values ('k', $1, 'text/plain')", body)
    for name in ("dlq", "messages"):
        assert len(await as_csv(viewer, name)) == len(bodies)
        assert len(await as_ndjson(viewer, name)) == len(bodies)


async def test_an_export_waits_for_a_slot_before_every_page(
    pool: Pool, operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[str] = []
    turn = Reads.slot

    def counting(self: Reads, principal: str, *patience: timedelta) -> Any:
        turns.append(principal)
        return turn(self, principal, *patience)

    monkeypatch.setattr(export_module, "PAGE", 2)
    monkeypatch.setattr(Reads, "slot", counting)
    await add_dead_letters(pool, 5)
    assert len(await as_csv(operator, "dlq")) == 5
    assert turns == ["a operator"] * 3


def test_a_failure_aborts_the_connection_instead_of_ending_the_file(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_module, "PAGE", 2)

    async def failing(context: Any, wanted: Any) -> Any:
        if wanted.cursor is not None:
            raise asyncpg.PostgresConnectionError("gone")
        return await list_dead_letters(context, wanted)

    asyncio.run(_add_dead_letters(database, 3))
    monkeypatch.setattr("outbox.admin.export.list_dead_letters", failing)
    headers = {"authorization": "Bearer viewer"}
    with served(db_engine_url=database) as address:
        for format_ in ("csv", "ndjson"):
            with httpx.stream("GET", f"{address}/export/dlq?format={format_}", headers=headers) as response:
                assert response.status_code == 200
                with pytest.raises(httpx.RemoteProtocolError):
                    response.read()
        assert httpx.get(f"{address}/export/dlq?limit=2", headers=headers).text.count("\r\n") == 3


async def _add_dead_letters(url: str, count: int) -> None:
    pool = await open_pool(url, size=1, application_name="tests")
    await add_dead_letters(pool, count)
    await pool.close()


async def test_a_filter_that_takes_too_long_is_a_problem_and_no_file(
    pool: Pool, operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.admin.messages.SEARCH_TIMEOUT", timedelta(milliseconds=1))
    await pool.execute("insert into outbox_table (routing_key, body) select 'k', '' from generate_series(1, 50000)")
    assert await problem(operator, "/export/messages", tracking_id="none") == (422, "filter_too_broad")


async def test_a_client_that_reads_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_module, "SEND_TIMEOUT", timedelta(milliseconds=50))

    async def chunks() -> AsyncIterator[bytes]:
        yield b"a"

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await export_module.ExportResponse(chunks()).stream_response(send)
