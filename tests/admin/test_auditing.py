"""What is written into the audit."""

import json

import asyncpg
import pytest

from outbox.admin import Admin, Principal, Role
from outbox.admin.access import Asked
from outbox.admin.auditing import record, record_denied


def _asked(admin: Admin, name: str = "alice") -> Asked:
    return Asked(admin, Principal(name, Role.OPERATOR), "request-1", "192.0.2.7")


async def _fail_at_something(admin: Admin) -> None:
    async with admin.changing("something") as connection:
        await record(connection, _asked(admin), action="dlq.requeue", target="1")
        raise RuntimeError("the deed failed")


async def _entries(database: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(database)
    try:
        return await connection.fetch("select * from outbox_audit order by id")
    finally:
        await connection.close()


async def test_an_entry_is_written_with_the_deed_or_not_at_all(database: str) -> None:
    async with Admin(database) as admin:
        with pytest.raises(RuntimeError):
            await _fail_at_something(admin)
        async with admin.changing("something") as connection:
            await record(connection, _asked(admin), action="dlq.requeue", target="2", reason="fixed", details={"count": 3})
    [entry] = await _entries(database)
    assert (entry["actor"], entry["role"], entry["action"], entry["target"]) == ("alice", "operator", "dlq.requeue", "2")
    assert (entry["outcome"], entry["reason"], json.loads(entry["details"])) == ("done", "fixed", {"count": 3})
    assert (entry["request_id"], entry["address"]) == ("request-1", "192.0.2.7")


async def test_whatever_somebody_writes_can_be_written_down(database: str) -> None:
    async with Admin(database) as admin, admin.changing("something") as connection:
        await record(
            connection,
            _asked(admin, "a\0b"),
            action="x" * 10_000,
            target="\udc80" * 10_000,
            reason="\0" * 10_000,
            details={"a\0": ["\ud800", float("nan"), 10**200], "deep": _nested(5_000)},
        )
    [entry] = await _entries(database)
    assert entry["actor"] == "a\N{SYMBOL FOR NULL}b"
    assert len(entry["action"]) == 250
    assert (len(entry["target"]), len(entry["reason"])) == (2_000, 2_000)


async def test_details_that_are_too_long_are_cut(database: str) -> None:
    async with Admin(database) as admin, admin.changing("something") as connection:
        await record(connection, _asked(admin), action="x", details={"text": "y" * 50_000})
    [entry] = await _entries(database)
    details = json.loads(entry["details"])
    assert details["cut"] is True
    assert details["begins"].startswith('{"text": "yyy')
    assert len(entry["details"]) < 3_000


async def test_what_was_denied_is_written_down_by_itself(database: str) -> None:
    async with Admin(database) as admin:
        await record_denied(_asked(admin), action="dlq.purge", target="17", details={"code": "forbidden"})
    [entry] = await _entries(database)
    assert (entry["action"], entry["target"], entry["outcome"]) == ("dlq.purge", "17", "denied")


def _nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value
