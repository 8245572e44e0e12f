"""`/access`: expiring and revoked tokens, and the sessions that administrators list and end."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import asyncpg
import httpx
import pytest
from fastapi import FastAPI

from outbox.admin import Admin, Role, admin_router
from outbox.admin import principals as tokens_of
from outbox.admin.principals import TokenEntry, Tokens, new_token
from outbox.errors import ConfigurationError
from tests.support import eventually

TODAY = datetime.now(UTC).date()
ADA, ADAS = new_token("ada", Role.ADMIN)
OLGA, OLGAS = new_token("olga", Role.OPERATOR, last_day=TODAY + timedelta(days=30))
OLD, OLDS = new_token("otto", Role.VIEWER, last_day=TODAY - timedelta(days=1))


@asynccontextmanager
async def served(database: str, entries: Sequence[TokenEntry] = (ADAS, OLGAS, OLDS)) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    async with Admin(db_engine_url=database, tokens=[str(entry) for entry in entries]) as admin:
        app.include_router(admin_router(admin), prefix="/outbox")
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="https://service/outbox") as client:
            yield client


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def test_an_admin_that_was_not_entered_is_an_error_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    app = FastAPI()
    app.include_router(admin_router(Admin(db_engine_url="postgresql://user@localhost/none")), prefix="/outbox")
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="https://service/outbox") as client:
        answer = await client.get("/backlog", headers=bearer(ADA))
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "the admin is not open: enter it in the application's lifespan" in caplog.text


async def test_a_token_is_valid_until_the_end_of_its_last_day(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(database) as client:
        assert (await client.get("/session", headers=bearer(OLGA))).status_code == 200
        refused = await client.get("/session", headers=bearer(OLD))
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
        assert refused.json()["detail"] == f"the token of otto expired after {TODAY - timedelta(days=1)}: request a new one"
        assert (await client.post("/session", json={"token": OLD})).status_code == 401

        assert (await client.post("/session", json={"token": OLGA})).status_code == 201
        assert (await client.get("/session")).json()["name"] == "olga"

        class Later(datetime):
            @classmethod
            def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # noqa: ARG003  the signature
                return datetime.now(UTC) + timedelta(days=31)

        monkeypatch.setattr(tokens_of, "datetime", Later)
        assert (await client.get("/session")).status_code == 401, "its sessions end with it"


def test_a_printed_entry_with_a_last_day_is_parsed() -> None:
    assert str(OLGAS).endswith(f":{TODAY + timedelta(days=30)}")
    assert Tokens.parse([str(OLGAS)]).entries == (OLGAS,)
    for wrong in ("soon", "2026-13-01", "31.12.2026", ""):
        with pytest.raises(ConfigurationError, match="token 1: the last day must be a date such as 2026-12-31") as raised:
            Tokens.parse([f"{replace(OLGAS, last_day=None)}:{wrong}"])
        assert OLGAS.token_hash.hex() not in str(raised.value)


async def test_administrators_list_tokens_and_sessions_and_end_a_session(database: str) -> None:
    async with served(database) as client:
        await client.post("/session", json={"token": OLGA})
        cookie = dict(client.cookies)
        client.cookies.clear()
        for token, status in ((OLGA, 403), (ADA, 200)):
            assert (await client.get("/access", headers=bearer(token))).status_code == status
        found = (await client.get("/access", headers=bearer(ADA))).json()
        assert [(each["name"], each["role"], each["expired"]) for each in found["tokens"]] == [
            ("ada", "admin", False),
            ("olga", "operator", False),
            ("otto", "viewer", True),
        ]
        assert found["tokens"][0]["last_day"] is None
        [session] = found["sessions"]
        assert (session["name"], session["role"]) == ("olga", "operator")
        for secret in (cookie["outbox_session"], OLGAS.token_hash.hex(), ADAS.token_hash.hex()):
            assert secret not in str(found)

        address = f"/access/sessions/{session['id']}"
        assert (await client.delete(address, headers=bearer(OLGA))).status_code == 403
        assert (await client.delete(address, headers=bearer(ADA))).status_code == 204
        assert (await client.delete(address, headers=bearer(ADA))).status_code == 404
        assert (
            await client.get("/session", headers={"cookie": f"outbox_session={cookie['outbox_session']}"})
        ).status_code == 401
        assert (await client.get("/access", headers=bearer(ADA))).json()["sessions"] == []
    connection = await asyncpg.connect(database)
    rows = await connection.fetch("select actor, action, outcome from outbox_audit where action = 'access.end' order by id")
    await connection.close()
    assert [tuple(row) for row in rows] == [
        ("olga", "access.end", "denied"),
        ("ada", "access.end", "done"),
        ("ada", "access.end", "failed"),
    ]


async def test_a_revoked_token_is_invalid_and_its_sessions_end_in_every_process(database: str) -> None:
    async with served(database) as client, served(database) as other:
        await client.post("/session", json={"token": OLGA})
        cookie = {"cookie": f"outbox_session={client.cookies['outbox_session']}"}
        client.cookies.clear()
        assert (await other.get("/session", headers=bearer(OLGA))).status_code == 200
        [olgas] = [
            each for each in (await client.get("/access", headers=bearer(ADA))).json()["tokens"] if each["name"] == "olga"
        ]
        address = f"/access/tokens/{olgas['id']}"
        assert (await client.delete(address, headers=bearer(OLGA))).status_code == 403
        assert (await client.delete("/access/tokens/none", headers=bearer(ADA))).status_code == 404
        assert (await client.delete(address, headers=bearer(ADA))).status_code == 204

        refused = await client.get("/session", headers=bearer(OLGA))
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
        assert "revoked" in refused.json()["detail"]
        assert (await client.post("/session", json={"token": OLGA})).status_code == 401
        for each in (client, other):
            assert (await each.get("/session", headers=cookie)).status_code == 401
            assert (await each.get("/session", headers=bearer(ADA))).status_code == 200

        async def is_refused() -> bool:
            return (await other.get("/session", headers=bearer(OLGA))).status_code == 401

        await eventually(is_refused)
        found = (await other.get("/access", headers=bearer(ADA))).json()
        assert found["sessions"] == []
        assert {each["name"]: each["revoked_by"] for each in found["tokens"]} == {"ada": None, "olga": "ada", "otto": None}


async def test_a_session_of_a_removed_token_is_not_listed(database: str) -> None:
    async with served(database) as client:
        await client.post("/session", json={"token": OLGA})
    async with served(database, [ADAS]) as client:
        assert (await client.get("/access", headers=bearer(ADA))).json()["sessions"] == []
