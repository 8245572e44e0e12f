"""Encrypted bodies in the admin: metadata for everyone, the plain body for operators where the admin has the key."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import httpx
import pytest

from outbox import Publisher
from outbox.admin import Admin, Role
from outbox.encryption import Encryption, StaticKeys
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import open_pool
from tests.admin.support import client_of, serving
from tests.dead_letters.deaths import TABLE, dead

ENCRYPTION = Encryption(StaticKeys({"2026-11": bytes(32)}, current="2026-11"))
OTHER = Encryption(StaticKeys({"2026-12": bytes(32)}, current="2026-12"))
PLAIN = b'{"email": "ada@example.com"}'
LARGE = json.dumps({"email": "ada@example.com", "filling": "x" * 300_000}).encode()


@pytest.fixture
async def connection(database: str) -> AsyncIterator[asyncpg.Connection]:
    """The connection to a database with an encrypted message, and two dead letters that are encrypted."""
    pool = await open_pool(database, size=2, application_name="tests")
    for id_, body in (("m1", PLAIN), ("m2", LARGE)):
        encrypted, header = ENCRYPTION.encrypt(body, message_id=id_)
        await PostgresArchive(pool, TABLE).record([replace(dead(id_, encrypted), headers={"x-encryption": header})])
    await pool.close()
    connection = await asyncpg.connect(database)
    async with connection.transaction():
        await Publisher(encryption=ENCRYPTION).publish(connection, "order.placed", {"email": "ada@example.com"})
    yield connection
    await connection.close()


@pytest.fixture(params=[None, OTHER, ENCRYPTION], ids=["no keys", "another key", "the key"])
async def client(request: pytest.FixtureRequest, database: str) -> AsyncIterator[tuple[httpx.AsyncClient, bool]]:
    """An operator of an admin, and whether the admin has the key."""
    async with serving(Admin(database, encryption=request.param)) as app, client_of(app, Role.OPERATOR) as operator:
        yield operator, request.param is ENCRYPTION


@pytest.mark.usefixtures("connection")
async def test_lists_details_and_searches_show_no_body(client: tuple[httpx.AsyncClient, bool]) -> None:
    operator, _ = client
    [_, first] = (await operator.get("/dlq", params={"sort": "newest"})).json()["items"]
    assert first["preview"] == "<encrypted JSON, 44 B>"
    for path in ("/dlq", "/dlq/1", "/dlq/2", "/messages", "/messages/1"):
        assert "ada@" not in (await operator.get(path)).text, path
    shown = (await operator.get("/dlq/1")).json()
    assert (shown["body"]["content"], shown["body"]["size"], shown["body"]["masked"]) == (None, 44, True)
    assert shown["headers"]["x-encryption"].startswith("v=1;alg=A256GCM;kid=2026-11;")
    assert (await operator.get("/search", params={"q": "ada@example.com"})).json()["items"] == []


@pytest.mark.usefixtures("connection")
async def test_a_body_is_revealed_decrypted_if_the_admin_has_the_key(client: tuple[httpx.AsyncClient, bool]) -> None:
    operator, has_key = client
    letter = (await operator.get("/dlq/1", params={"reveal": "true"})).json()["body"]
    message = (await operator.get("/messages/1", params={"reveal": "true"})).json()
    downloaded = (await operator.get("/dlq/2/body")).content
    if has_key:
        assert (letter["content"], letter["encoding"], letter["size"]) == (PLAIN.decode(), "json", len(PLAIN))
        assert message["body"] == PLAIN.decode()
        assert downloaded == LARGE
        large = (await operator.get("/dlq/2", params={"reveal": "true"})).json()["body"]
        assert (large["content"], large["truncated"]) == (LARGE[:262_144].decode(), True)
    else:
        assert letter["encoding"] == "base64"
        assert message["body"] is None
        assert len(downloaded) == len(LARGE) + 16
    audited = {entry["action"] for entry in (await operator.get("/audit")).json()["items"]}
    assert {"dlq.reveal", "messages.reveal", "dlq.download"} <= audited


async def test_only_the_routing_key_of_an_encrypted_message_can_be_edited(
    client: tuple[httpx.AsyncClient, bool], connection: asyncpg.Connection
) -> None:
    operator, _ = client
    version = (await operator.get("/messages/1")).json()["version"]
    changes: list[dict[str, Any]] = [{"body": {"email": "b"}, "force": True}, {"headers": {}}]
    for change in changes:
        refused = await operator.patch("/messages/1", json={"version": version, "reason": "a typo", **change})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_edit")
        assert "the body is encrypted" in refused.json()["detail"]
    moved = await operator.patch("/messages/1", json={"version": version, "reason": "a typo", "routing_key": "order.changed"})
    assert moved.status_code == 200
    [row] = await connection.fetch("select tracking_ids ->> -1 as message_id, body, headers::text from outbox_table")
    assert ENCRYPTION.decrypt(row["body"], json.loads(row["headers"])["x-encryption"], message_id=row["message_id"]) == PLAIN


async def test_what_an_operator_publishes_is_encrypted(database: str, connection: asyncpg.Connection) -> None:
    async with serving(Admin(database, encryption=ENCRYPTION)) as app, client_of(app, Role.ADMIN) as admin:
        answer = await admin.post("/messages", json={"routing_key": "order.placed", "body": {"email": "bob"}, "reason": "test"})
        assert answer.status_code in (200, 201), answer.text
    [_, found] = await connection.fetch(
        "select tracking_ids ->> -1 as message_id, body, headers::text from outbox_table order by id"
    )
    header = json.loads(found["headers"])["x-encryption"]
    assert ENCRYPTION.decrypt(found["body"], header, message_id=found["message_id"]) == b'{"email": "bob"}'
