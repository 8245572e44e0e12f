"""`GET /dlq/groups` counts what failed alike, and people may note something about a group."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from outbox.admin import cache as remembered
from outbox.core.outcome import Failure
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import Pool, open_pool
from tests.admin.letters import answered
from tests.dead_letters.failed_messages import NOON, TABLE, dead

OTHER = Failure("KeyError", "password=hunter2", "")


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    opened = await open_pool(database, size=4, application_name="tests")
    yield opened
    await opened.close()


@pytest.fixture
async def letters(pool: Pool) -> None:
    """Two groups: three dead letters of the last hours, one of them requeued, and an old one."""
    now = datetime.now(UTC)
    hourly = [dead(f"m{hours}", queue="mail", failed_at=now - timedelta(hours=hours, minutes=30)) for hours in (0, 1, 5)]
    await PostgresArchive(pool, TABLE).record(
        [*hourly, dead("old", queue="billing", failure=OTHER, routing_key="user.created")]
    )
    await pool.execute(
        "update outbox_dead_letter set status = 'requeued', resolved_at = now() - interval '1 hour' where message_id = 'm5'"
    )


@pytest.mark.usefixtures("letters")
async def test_a_group_has_counts_and_times_and_failures_since_the_last_requeue(viewer: httpx.AsyncClient) -> None:
    answer = await answered(viewer, "/dlq/groups", status="any")
    first, second = answer["items"]
    assert (first["title"], first["count"], first["open_count"]) == ("shop.PaymentError: the card # was declined", 3, 2)
    assert (first["count_since_requeue"], first["by"], first["note"]) == (1, "fingerprint", None)
    assert first["last_requeued_at"] is not None
    assert first["hourly_counts"] == [*[0] * 18, 1, 0, 0, 0, 1, 1]
    assert (second["count"], second["title"], second["first_seen_at"]) == (
        1,
        "KeyError: password=***",
        "2026-03-01T12:00:00.000Z",
    )
    assert second["hourly_counts"] == [0] * 24
    assert answer["truncated"] is False
    assert len((await answered(viewer, "/dlq", group_id=first["id"], status="any"))["items"]) == 3


@pytest.mark.usefixtures("letters")
async def test_groups_accept_the_filters_of_the_list_and_count_open_dead_letters(viewer: httpx.AsyncClient) -> None:
    async def counts(**wanted: Any) -> dict[str, int]:
        return {group["id"]: group["count"] for group in (await answered(viewer, "/dlq/groups", **wanted))["items"]}

    assert await counts(by="queue") == {"mail": 2, "billing": 1}
    assert await counts(by="routing_key", status="any") == {"order.placed": 3, "user.created": 1}
    assert await counts(by="queue", q="declined", status="any") == {"mail": 3}
    assert await counts(by="queue", source="relay") == {}
    assert await counts(by="queue", failed_before="2026-03-02T00:00:00Z") == {"billing": 1}
    [open_] = (await answered(viewer, "/dlq/groups", queue="mail"))["items"]
    assert open_["last_requeued_at"] is not None, "that some were requeued counts whatever is asked for now"


@pytest.mark.usefixtures("letters")
async def test_the_largest_groups_are_listed_and_whether_there_are_more(viewer: httpx.AsyncClient) -> None:
    answer = await answered(viewer, "/dlq/groups", by="queue", limit=1)
    assert ([group["id"] for group in answer["items"]], answer["truncated"]) == (["mail"], True)


@pytest.mark.usefixtures("letters")
async def test_a_note_is_set_changed_and_removed_which_is_audited(
    pool: Pool, operator: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    async def note(text: str | None) -> Any:
        response = await operator.put("/dlq/groups/note", json={"by": "queue", "id": "mail", "note": text})
        assert response.status_code == 200, response.text
        return response.json()

    async def seen() -> Any:
        return (await answered(viewer, "/dlq/groups", by="queue"))["items"][0]["note"]

    assert await seen() is None
    assert (await note("ask Ann"))["note"]["text"] == "ask Ann"
    noted = await seen()
    assert (noted["text"], noted["noted_by"]) == ("ask Ann", "a operator")
    await note("fixed")
    assert (await seen())["text"] == "fixed"
    assert (await note(" "))["note"] is None
    assert await seen() is None
    rows = await pool.fetch("select action, target, details ->> 'note' as note from outbox_audit order by id")
    assert [tuple(row) for row in rows] == [("dlq.note", "mail", text) for text in ("ask Ann", "fixed", None)]


async def test_a_note_that_another_operator_changed_is_not_replaced_unseen(pool: Pool, operator: httpx.AsyncClient) -> None:
    async def note(text: str | None, version: int | None) -> httpx.Response:
        wanted = {"by": "queue", "id": "mail", "note": text, "version": version}
        return await operator.put("/dlq/groups/note", json=wanted)

    first = (await note("ask Ann", 0)).json()["note"]["version"]
    second = (await note("ask Bob", first)).json()["note"]["version"]
    assert second != first
    for late in (await note("ask Cid", 0), await note("ask Cid", first), await note(None, first), await note(" ", 0)):
        assert (late.status_code, late.json()["code"]) == (409, "version_conflict")
        assert (late.json()["version"], late.json()["note"]["text"]) == (second, "ask Bob")
    assert "a operator" in late.json()["detail"]
    # A request that is repeated because its response was lost.
    assert (await note("ask Bob", first)).json()["note"]["version"] == second
    assert (await note(None, second)).json()["note"] is None
    assert (await note(None, second)).status_code == 200
    removed = await note("ask Cid", second)
    assert (removed.json()["code"], removed.json()["version"], removed.json()["note"]) == ("version_conflict", 0, None)
    assert (await note("ask Dan", 0)).status_code == (await note("ask Eve", None)).status_code == 200
    rows = await pool.fetchval("select array_agg(details ->> 'note' order by id) from outbox_audit where outcome = 'done'")
    assert rows == ["ask Ann", "ask Bob", "ask Bob", None, None, "ask Dan", "ask Eve"]


async def test_of_operators_who_change_a_note_at_the_same_time_one_succeeds(pool: Pool, operator: httpx.AsyncClient) -> None:
    version = 0
    for _ in range(5):
        answers = await asyncio.gather(
            *(
                operator.put("/dlq/groups/note", json={"by": "queue", "id": "mail", "note": text, "version": version})
                for text in (f"ask Ann {version}", f"ask Bob {version}", f"ask Cid {version}")
            )
        )
        assert sorted(answer.status_code for answer in answers) == [200, 409, 409]
        [version] = [answer.json()["note"]["version"] for answer in answers if answer.status_code == 200]


async def test_a_group_of_any_name_can_have_a_note(operator: httpx.AsyncClient) -> None:
    for group in ("a/b?c=d&e", "ключ ✉", "%00%", "x" * 1_000, ""):
        response = await operator.put("/dlq/groups/note", json={"by": "routing_key", "id": group, "note": "seen"})
        assert response.status_code == 200, response.text


NO_NOTES: list[Any] = [
    {"by": "queue", "id": "x\0", "note": "n"},
    {"by": "queue", "id": "\N{ENVELOPE}" * 900, "note": "n"},
    {"by": "queue", "id": "x", "note": "n" * 4_001},
    {"by": "queue", "id": "x", "note": "\0"},
    {"by": "queue", "id": "x"},
    {"by": "body", "id": "x", "note": "n"},
    {"by": "queue", "id": 7, "note": "n"},
    {"by": "queue", "id": "x", "note": "n", "more": 1},
    {"by": "queue", "id": "x", "note": "n", "version": -1},
    {"by": "queue", "id": "x", "note": "n", "version": 2**31},
    [],
]


async def test_an_invalid_note_is_rejected(operator: httpx.AsyncClient) -> None:
    for wanted in NO_NOTES:
        response = await operator.put("/dlq/groups/note", json=wanted)
        assert (response.status_code, response.json()["code"]) == (422, "invalid_request"), wanted


async def test_viewers_cannot_set_notes(viewer: httpx.AsyncClient) -> None:
    response = await viewer.put("/dlq/groups/note", json={"by": "queue", "id": "x", "note": "n"})
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")


@pytest.mark.usefixtures("letters")
async def test_groups_are_counted_once_for_all_clients_and_served_while_they_are_recounted(
    pool: Pool, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await answered(viewer, "/dlq/groups", by="queue")
    await PostgresArchive(pool, TABLE).record([dead("more", failed_at=NOON)])
    assert await answered(viewer, "/dlq/groups", by="queue") == first
    monkeypatch.setattr(remembered, "USABLE_AGE", timedelta(0))
    monkeypatch.setattr(remembered, "MAX_AGE", timedelta(0))
    assert (await answered(viewer, "/dlq/groups", by="queue", limit=49))["items"][0]["count"] == 3
