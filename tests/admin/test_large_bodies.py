"""The admin shows where a large body is, and fetches, edits and publishes it with the store."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from outbox import Publisher
from outbox.admin import Admin, Role
from outbox.encryption import Encryption, StaticKeys
from outbox.large_bodies import LargeBodies
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import open_pool
from tests.admin.support import client_of, serving
from tests.dead_letters.failed_messages import TABLE, dead
from tests.large_bodies.stores import MemoryStore

ENCRYPTION = Encryption(StaticKeys({"2026-11": bytes(32)}, current="2026-11"))
LARGE = {"report": "x" * 300_000}
TEXT = json.dumps(LARGE)


@pytest.fixture
def store() -> MemoryStore:
    """An empty store."""
    return MemoryStore()


@pytest.fixture
def bodies(store: MemoryStore) -> LargeBodies:
    """Stores bodies of more than 1,000 bytes."""
    return LargeBodies(store, above=1_000)


@pytest.fixture
async def connection(database: str, bodies: LargeBodies) -> AsyncIterator[asyncpg.Connection]:
    """The connection to a database with a message whose body is stored, and a dead letter whose body is encrypted, too."""
    encrypted, how = ENCRYPTION.encrypt(TEXT.encode(), message_id="m1")
    headers = {"x-encryption": how, "x-body-store": await bodies.put(encrypted)}
    pool = await open_pool(database, size=1, application_name="tests")
    await PostgresArchive(pool, TABLE).record([replace(dead("m1", b""), headers=headers)])
    await pool.close()
    connection = await asyncpg.connect(database)
    async with connection.transaction():
        await Publisher(large_bodies=bodies).publish(connection, "report.made", LARGE)
    yield connection
    await connection.close()


@pytest.mark.usefixtures("connection")
async def test_a_stored_body_is_described_and_revealed_and_downloaded_from_the_store(
    database: str, bodies: LargeBodies, store: MemoryStore
) -> None:
    admin = Admin(database, large_bodies=bodies, encryption=ENCRYPTION)
    async with serving(admin) as app, client_of(app, Role.OPERATOR) as operator:
        [letter] = (await operator.get("/dlq")).json()["items"]
        assert letter["preview"] == "<encrypted stored JSON, 300 kB>"
        assert [each["preview"] for each in (await operator.get("/messages")).json()["items"]] == ["<stored JSON, 300 kB>"]
        shown = (await operator.get("/dlq/1")).json()["body"]
        assert (shown["content"], shown["size"], shown["masked"]) == (None, len(TEXT) + 16, True)
        assert shown["access"] == {"key_id": "2026-11", "stored_size": len(TEXT) + 16, "can_reveal": True, "error": None}
        message = (await operator.get("/messages/1")).json()
        assert (message["body"], message["masked"]) == (None, True)
        assert message["body_access"] == {"key_id": None, "stored_size": len(TEXT), "can_reveal": True, "error": None}
        revealed = (await operator.get("/dlq/1", params={"reveal": "true"})).json()["body"]
        assert (revealed["content"], revealed["size"], revealed["truncated"]) == (TEXT[:262_144], len(TEXT), True)
        assert (await operator.get("/messages/1", params={"reveal": "true"})).json()["body"] == TEXT
        assert (await operator.get("/dlq/1/body")).text == TEXT
        store.objects.clear()
        lost = (await operator.get("/dlq/1", params={"reveal": "true"})).json()["body"]
        assert (lost["content"], lost["access"]["error"][:16]) == (None, "there is no body")
        missing = await operator.get("/dlq/1/body")
        assert (missing.status_code, missing.json()["code"]) == (409, "conflict")


@pytest.mark.usefixtures("connection")
async def test_without_the_store_its_body_is_never_shown_as_empty_nor_edited(database: str) -> None:
    async with serving(Admin(database)) as app, client_of(app, Role.OPERATOR) as operator:
        masked = (await operator.get("/messages/1")).json()
        assert (masked["body"], masked["body_access"]["can_reveal"]) == (None, False)
        for reveal in ("false", "true"):
            assert (await operator.get("/dlq/1", params={"reveal": reveal})).json()["body"]["content"] is None
        message = (await operator.get("/messages/1", params={"reveal": "true"})).json()
        assert "this process has none" in message["body_access"]["error"]
        refused = await operator.patch("/messages/1", json={"version": message["version"], "body": 1})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_edit")
        assert "in a store of large bodies" in refused.json()["detail"]


async def test_edited_and_published_bodies_are_stored_if_they_are_large(
    database: str, connection: asyncpg.Connection, bodies: LargeBodies, store: MemoryStore
) -> None:
    async with serving(Admin(database, large_bodies=bodies)) as app, client_of(app, Role.ADMIN) as admin:
        for body, stored in (({"report": "y" * 2_000}, True), ({"report": "y"}, False), ({"report": "z" * 2_000}, True)):
            version = (await admin.get("/messages/1")).json()["version"]
            edited = await admin.patch("/messages/1", json={"version": version, "body": body})
            assert edited.status_code == 200, edited.text
            row: Any = await connection.fetchrow("select body, headers::text from outbox_table where id = 1")
            if stored:
                header = json.loads(row["headers"])["x-body-store"]
                assert (row["body"], json.loads(await bodies.get(header))) == (b"", body)
            else:
                assert (json.loads(row["body"]), row["headers"]) == (body, None)
        store.away = 1
        later = await admin.post("/messages", json={"routing_key": "report.made", "body": LARGE})
        assert (later.status_code, later.json()["code"]) == (503, "body_store_unavailable")
        published = await admin.post("/messages", json={"routing_key": "report.made", "body": LARGE})
        assert published.status_code == 201
    assert await connection.fetchval("select body from outbox_table where id > 1") == b""
    assert len(store.objects) == 5  # the old ones stay, until they are swept
