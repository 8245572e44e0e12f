"""Request bodies: read after authentication, limited in size and depth, and refused with a problem."""

from collections.abc import AsyncIterator

import httpx
import pytest

from outbox.admin import Admin, Role
from tests.admin.support import client_of, serving

JSON = {"content-type": "application/json"}


@pytest.fixture
async def small(database: str) -> AsyncIterator[httpx.AsyncClient]:
    """An operator of an admin that accepts bodies up to two thousand bytes."""
    async with serving(Admin(database, body_limit=2_000)) as app, client_of(app, Role.OPERATOR) as client:
        yield client


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield b" " * 1_000


async def test_a_body_that_is_too_large_is_refused_with_and_without_a_length(small: httpx.AsyncClient) -> None:
    for answer in (
        await small.post("/requeue", content=b" " * 2_001, headers=JSON),
        await small.post("/requeue", content=_endless(), headers=JSON),
        await small.post("/requeue", content=_endless(), headers={**JSON, "content-length": "2001"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"17",
        b"null",
        b"\xff\xfe{",
        b'{"selector": NaN}',
        b'{"selector": ' + b"9" * 5_000 + b"}",
        b'{"selector": ' + b"[" * 101 + b"]" * 101 + b"}",
        b'{"selector": ' + b"[" * 100_000,
        b'{"selector": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
        b'{"reason": "\\ud800"}',
    ],
)
async def test_a_body_that_is_no_valid_object_is_an_invalid_request(operator: httpx.AsyncClient, body: bytes) -> None:
    answer = await operator.post("/requeue", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


async def test_a_url_that_contains_nul_is_an_invalid_request(operator: httpx.AsyncClient) -> None:
    for path in ("/audit?actor=%00", "/messages/%00"):
        assert (await operator.get(path)).json()["code"] == "invalid_request"


@pytest.mark.parametrize("length", [b"\xb2", b"9" * 5_000, b"-1", b"x"])
async def test_an_invalid_content_length_is_ignored(small: httpx.AsyncClient, length: bytes) -> None:
    headers = {b"content-type": b"application/json", b"content-length": length}
    answer = await small.post("/requeue", content=_endless(), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("body", [{"ids": ["17"]}, {"ids": [17]}, {"selector": {"ids": [17]}}])
async def test_a_selector_accepts_obvious_spellings(operator: httpx.AsyncClient, body: dict[str, object]) -> None:
    for verb in ("requeue", "discard", "restore"):
        answer = await operator.post(f"/{verb}", json=body)
        assert (answer.status_code, answer.json().get("counts")) == (200, {"not_found": 1}), answer.text


@pytest.mark.parametrize(
    "body", [{"ids": [True]}, {"ids": [1.5]}, {"ids": [17], "selector": {"ids": ["17"]}}, {"ids": ["17"], "group_id": "g"}]
)
async def test_an_ambiguous_selector_is_refused(operator: httpx.AsyncClient, body: dict[str, object]) -> None:
    assert (await operator.post("/requeue", json=body)).json()["code"] == "invalid_request"


@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded", "text/plain"])
async def test_a_body_without_the_json_content_type_gets_a_problem_that_names_the_header(
    operator: httpx.AsyncClient, kind: str | None
) -> None:
    headers = {} if kind is None else {"content-type": kind}
    answer = await operator.post("/requeue", content=b'{"selector": {"ids": ["17"]}}', headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert "Content-Type: application/json" in answer.json()["detail"]
    assert kind is None or kind in answer.json()["detail"]


async def test_the_content_type_is_ignored_where_no_body_is_expected(operator: httpx.AsyncClient) -> None:
    answer = await operator.post("/operations/17/pause", content=b"x=1")
    assert answer.json()["code"] == "not_found"
