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
from tests.dead_letters.failed_messages import TABLE, dead

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
    operator, has_key = client
    [_, first] = (await operator.get("/dlq", params={"sort": "newest"})).json()["items"]
    assert first["preview"] == "<encrypted JSON, 44 B>"
    for path in ("/dlq", "/dlq/1", "/dlq/2", "/messages", "/messages/1"):
        assert "ada@" not in (await operator.get(path)).text, path
    shown = (await operator.get("/dlq/1")).json()
    assert (shown["body"]["content"], shown["body"]["size"], shown["body"]["masked"]) == (None, 44, True)
    assert shown["headers"]["x-encryption"].startswith("v=1;alg=A256GCM;kid=2026-11;")
    message = (await operator.get("/messages/1")).json()
    for access in (shown["body"]["access"], message["body_access"]):
        assert access == {"key_id": "2026-11", "stored_size": None, "can_reveal": has_key, "error": None}
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


class AwayKeys(StaticKeys):
    """Keys of a service that is away."""

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        raise OSError("https://ada:geheim@keys/ is away")


@pytest.mark.usefixtures("connection")
async def test_a_body_whose_key_provider_fails_is_shown_as_it_is_with_the_reason(database: str) -> None:
    away = Encryption(AwayKeys({"2026-11": bytes(32)}, current="2026-11"))
    async with serving(Admin(database, encryption=away)) as app, client_of(app, Role.OPERATOR) as operator:
        letter = (await operator.get("/dlq/1", params={"reveal": "true"})).json()["body"]
        message = (await operator.get("/messages/1", params={"reveal": "true"})).json()
        downloaded = await operator.get("/dlq/2/body")
    assert letter["access"]["error"] == message["body_access"]["error"] == "OSError: https://ada:***@keys/ is away"
    assert (letter["encoding"], message["body"], len(downloaded.content)) == ("base64", None, len(LARGE) + 16)


@pytest.mark.parametrize("encryption", [OTHER, ENCRYPTION])
async def test_an_edited_body_is_given_as_plain_text_and_encrypted_with_the_current_key(
    database: str, connection: asyncpg.Connection, encryption: Encryption
) -> None:
    async with serving(Admin(database, encryption=encryption)) as app, client_of(app, Role.OPERATOR) as operator:
        version = (await operator.get("/messages/1")).json()["version"]
        change = {"version": version, "reason": "a typo", "body": {"email": "b"}}
        edited = await operator.patch("/messages/1", json=change)
        assert edited.status_code == 200, edited.text
        late = await operator.patch("/messages/1", json=change | {"body": {"email": "c"}})
        assert late.json()["code"] == "version_conflict"
        shown = (await operator.get("/messages/1", params={"reveal": "true"})).json()
        assert (shown["body"], shown["body_access"]["can_reveal"]) == ('{"email": "b"}', True)
        edit = {"version": 1, "body": {"email": "d"}}
        requeued = await operator.post("/requeue", json={"selector": {"ids": ["1"]}, "force": True, "edit": edit})
        assert requeued.json()["items"][0]["outcome"] == "refused", requeued.text  # its queue does not exist
    [row] = await connection.fetch("select tracking_ids ->> -1 as message_id, body, headers::text from outbox_table")
    header = json.loads(row["headers"])["x-encryption"]
    assert encryption.decrypt(row["body"], header, message_id=row["message_id"]) == b'{"email": "b"}'


async def test_without_keys_only_the_routing_key_and_the_headers_of_an_encrypted_message_can_be_edited(
    database: str, connection: asyncpg.Connection
) -> None:
    async with serving(Admin(database)) as app, client_of(app, Role.OPERATOR) as operator:
        shown = (await operator.get("/messages/1")).json()
        version, own = shown["version"], shown["headers"]["x-encryption"]
        changes: list[dict[str, Any]] = [{"body": {"email": "b"}}, {"headers": {"x-encryption": "v=1"}}]
        for change, why in zip(changes, ("the body is encrypted, and this process has no keys", "remove it"), strict=True):
            refused = await operator.patch("/messages/1", json={"version": version, "force": True, **change})
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid_edit")
            assert why in refused.json()["detail"]
        edits: list[dict[str, Any]] = [
            {"routing_key": "order.changed"},
            {"headers": {"tenant": "a"}},
            {"headers": {"tenant": "b", "x-encryption": own}},
            {"headers": {}},
        ]
        for change in edits:
            edited = await operator.patch("/messages/1", json={"version": version, **change})
            assert edited.status_code == 200, edited.text
            version = edited.json()["version"]
            assert edited.json()["headers"] == {"x-encryption": own, **change.get("headers", {})}
        refused = await operator.post(
            "/requeue", json={"selector": {"ids": ["1"]}, "force": True, "edit": {"version": 1, "body": 1}}
        )
        assert "the body is encrypted, and this process has no keys" in refused.json()["items"][0]["reason"]
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


async def test_edits_and_publishing_change_nothing_while_the_key_provider_fails(
    database: str, connection: asyncpg.Connection
) -> None:
    class Away(StaticKeys):
        def wrap(self, data_key: bytes) -> Any:
            raise ConnectionError("no route to the key service")

    keys = Away({"2026-11": bytes(32)}, current="2026-11")
    before = await connection.fetch("select * from outbox_table")
    async with serving(Admin(database, encryption=Encryption(keys))) as app, client_of(app, Role.ADMIN) as admin:
        letter = (await admin.get("/dlq/1")).json()
        message = (await admin.get("/messages/1")).json()
        edit = {"version": letter["version"], "body": {"email": "eve@example.com"}}
        for answer in (
            await admin.post("/requeue", json={"selector": {"ids": ["1"]}, "edit": edit, "force": True}),
            await admin.patch("/messages/1", json={"version": message["version"], "body": {"email": "eve@example.com"}}),
            await admin.post("/messages", json={"routing_key": "order.placed", "body": {"email": "eve@example.com"}}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (503, "keys_unavailable"), answer.text
            assert answer.headers["retry-after"] == "2"
        assert (await admin.get("/dlq/1")).json()["status"] == "open"
    assert await connection.fetch("select * from outbox_table") == before
