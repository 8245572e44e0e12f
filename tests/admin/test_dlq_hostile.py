"""Invalid requests to the routes of dead letters get an error of the client, never one of the server."""

import base64
import json
from typing import Any
from urllib.parse import quote

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.admin.letters import problem

FORGED: list[Any] = [
    [],
    {},
    7,
    None,
    "next",
    ["next"],
    ["next", "x", ["2026-03-01T12:00:00+00:00", "1"]],
    ["next", "x", ["2026-03-01T12:00:00+00:00", "1"], False, 1],
    [["next"], "x", [], False],
    ["sideways", "x", ["2026-03-01T12:00:00+00:00", "1"], False],
    ["next", 7, ["2026-03-01T12:00:00+00:00", "1"], False],
    ["next", "x", "place", False],
    ["next", "x", [1, 2], False],
    ["next", "x", ["2026-03-01T12:00:00+00:00"], False],
    ["next", "x", ["2026-03-01T12:00:00+00:00", "1"], 1],
]
PLACES: list[tuple[str, str]] = [
    ("", "1"),
    ("yesterday", "1"),
    ("2026-03-01T12:00:00", "1"),
    ("2026-03-01T12:00:00+00:00", ""),
    ("2026-03-01T12:00:00+00:00", "abc"),
    ("2026-03-01T12:00:00+00:00", "outbox-"),
    ("2026-03-01T12:00:00+00:00", "-1"),
    ("2026-03-01T12:00:00+00:00", "9" * 30),
    ("2026-03-01T12:00:00+00:00", "1\0"),
    ("0001-01-01T00:00:00+14:00", "1"),
    ("9999-12-31T23:59:59-14:00", "1"),
    ("2026-03-01T12:00:00+00:00" * 20, "1"),
]


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


async def test_malformed_cursors_are_rejected(viewer: httpx.AsyncClient) -> None:
    raw = ["", "abc", "####", "ключ", "%", "=" * 100, "A" * 2_000, "[" * 1_000, encoded("[" * 900)]
    for cursor in [*raw, *map(encoded, FORGED)]:
        status, code = await problem(viewer, "/dlq", cursor=cursor)
        assert (status, code in ("invalid_cursor", "cursor_mismatch")) == (400, True), cursor


async def test_cursors_with_impossible_positions_are_rejected(viewer: httpx.AsyncClient) -> None:
    from outbox.admin.dlq.models import DeadLetterFilters
    from outbox.admin.models import Cursor

    bound_to = {**DeadLetterFilters().bound_to(), "sort": "newest"}
    for place in PLACES:
        for way in ("next", "previous"):
            cursor = Cursor(way, place).encode(bound_to)
            assert await problem(viewer, "/dlq", cursor=cursor) == (400, "invalid_cursor"), place


SENSELESS = [
    "limit=0",
    "limit=-1",
    "limit=201",
    f"limit={10**30}",
    "limit=",
    "limit=ten",
    "limit=1.5",
    "limit=NaN",
    "queue=%00",
    "q=a%00b",
    "q=",
    f"q={'x' * 1_001}",
    f"routing_key={'%25' * 1_001}",
    "source=unknown",
    "status=closed",
    "min_failures=0",
    "min_failures=-1",
    f"min_failures={2**31}",
    "failed_after=2026-03-01",
    "failed_after=2026-03-01T12:00:00",
    "failed_after=1700000000",
    "failed_after=tomorrow",
    "failed_before=0001-01-01T00:00:00%2B14:00",
    "failed_before=99999-01-01T00:00:00Z",
    "failed_before=",
    "unknown=1",
    "ids=1",
    "payload=true",
    "%00=1",
    "%ED%A0%80=1",
]
STRANGE = [
    "queue=%FF%FE",
    "queue=%ED%A0%80",
    "message_id=%25_%5C",
    "routing_key='%20or%201=1--",
    "exception_type=" + "%F0%9F%92%A5" * 200,
    "tracking_id=%22%5D%7B",
    "q=%22unclosed%20-%20or%20or",
    "q=%26%7C!()*:%3C-%3E",
    "q=" + "a%20or%20" * 150,
    "group_id=",
    "failed_after=2026-03-01T12:00:00.123456789Z",
    "failed_after=9999-12-31T23:59:59Z",
    "queue=a&queue=b",
    f"min_failures={10**6}",
]


async def test_invalid_parameters_are_rejected(viewer: httpx.AsyncClient) -> None:
    for query in SENSELESS:
        for path in ("/dlq", "/dlq/groups"):
            response = await viewer.get(f"{path}?{query}")
            assert (response.status_code, response.json()["code"]) == (422, "invalid_request"), query


async def test_texts_of_any_kind_are_accepted_and_find_nothing(viewer: httpx.AsyncClient) -> None:
    for query in STRANGE:
        for path in ("/dlq", "/dlq/groups"):
            response = await viewer.get(f"{path}?{query}")
            assert (response.status_code, response.json().get("items")) == (200, []), query


NO_IDS = [
    "abc",
    "-1",
    "0",
    "017",
    "1.0",
    "1e3",
    "+1",
    "٣",
    "99999999999999999999",
    "outbox-",
    "outbox-x",
    "outbox--1",
    "x" * 100,
]
NO_IDS += ["1;", "'", "%", "\N{SNOWMAN}", "1\n"]


async def test_unknown_ids_are_not_found(operator: httpx.AsyncClient) -> None:
    for suffix in ("", "/body", "?reveal=true"):
        for id_ in map(quote_whole, NO_IDS):
            response = await operator.get(f"/dlq/{id_}{suffix}")
            assert (response.status_code, response.json()["code"]) == (404, "not_found"), id_
        too_long = await operator.get(f"/dlq/{'1' * 101}{suffix}")
        assert (too_long.status_code, too_long.json()["code"]) == (422, "invalid_request")
        assert (await operator.get(f"/dlq/%FF%FE{suffix}")).status_code == 404
        assert (await operator.get(f"/dlq/1%00{suffix}")).status_code in (404, 422)


def quote_whole(id_: str) -> str:
    return quote(id_, safe="")


@given(
    parameters=st.dictionaries(
        st.sampled_from(
            ["queue", "q", "cursor", "limit", "status", "failed_after", "min_failures", "tracking_id", "sort", "x"]
        ),
        st.text(max_size=50),
        max_size=4,
    )
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_parameters_cause_an_internal_error(viewer: httpx.AsyncClient, parameters: dict[str, str]) -> None:
    for path in ("/dlq", "/dlq/groups", "/dlq/1"):
        response = await viewer.get(path, params={name: text.encode(errors="replace") for name, text in parameters.items()})
        assert response.status_code in (200, 400, 404, 422), response.text
