"""Writing audit entries, and the hash chain over them."""

import asyncio
import json
from dataclasses import replace

import asyncpg
import pytest

from outbox.admin import Admin, Principal, Role
from outbox.admin import access as auditing
from outbox.admin.access import MOST_REFUSALS, RequestContext, record, record_refused
from outbox.core.findings import Finding, Severity
from outbox.doctor.database import examine_audit
from outbox.postgres.queries import TableName


def _asked(admin: Admin, name: str = "alice") -> RequestContext:
    return RequestContext(admin, Principal(name, Role.OPERATOR), "request-1", "192.0.2.7")


async def _fail_at_something(admin: Admin) -> None:
    async with admin.changing("something") as connection:
        await record(connection, _asked(admin), action="dlq.requeue", target="1")
        raise RuntimeError("the change failed")


async def _entries(database: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(database)
    try:
        return await connection.fetch("select * from outbox_audit order by id")
    finally:
        await connection.close()


async def test_an_entry_is_committed_with_its_change_or_not_at_all(database: str) -> None:
    async with Admin(database) as admin:
        with pytest.raises(RuntimeError):
            await _fail_at_something(admin)
        async with admin.changing("something") as connection:
            await record(connection, _asked(admin), action="dlq.requeue", target="2", reason="fixed", details={"count": 3})
    [entry] = await _entries(database)
    assert (entry["actor"], entry["role"], entry["action"], entry["target"]) == ("alice", "operator", "dlq.requeue", "2")
    assert (entry["outcome"], entry["reason"], json.loads(entry["details"])) == ("done", "fixed", {"count": 3})
    assert (entry["request_id"], entry["address"]) == ("request-1", "192.0.2.7")


async def test_any_text_can_be_recorded(database: str) -> None:
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


async def test_a_denial_is_recorded_in_a_separate_transaction(database: str) -> None:
    async with Admin(database) as admin:
        await record_refused(_asked(admin), "denied", action="dlq.purge", target="17", details={"code": "forbidden"})
    [entry] = await _entries(database)
    assert (entry["action"], entry["target"], entry["outcome"]) == ("dlq.purge", "17", "denied")


async def test_frequent_refusals_of_one_principal_are_counted_and_others_are_recorded(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 0.0
    monkeypatch.setattr(auditing, "monotonic", lambda: at)
    async with Admin(database) as admin:
        for _ in range(MOST_REFUSALS + 7):
            await record_refused(_asked(admin), "denied", action="x")
        await record_refused(_asked(admin, "bob"), "failed", action="y")
        at = 61.0
        await record_refused(_asked(admin), "denied", action="z")
    entries = await _entries(database)
    assert [entry["actor"] for entry in entries] == ["alice"] * MOST_REFUSALS + ["bob", "alice"]
    assert json.loads(entries[-1]["details"]) == {"left_out": 7}


async def test_each_entry_is_chained_to_the_one_before_it_however_many_are_written_at_once(database: str) -> None:
    async with Admin(database) as admin:

        async def write(number: int) -> None:
            async with admin.changing("something") as connection:
                await record(connection, _asked(admin, f"ä {number}"), action="x", details={"n": number, "m": 1.50})

        await asyncio.gather(*(write(number) for number in range(30)))
    assert (await _examined(database)).severity is Severity.OK
    entries = await _entries(database)
    assert [entry["previous_hash"] for entry in entries] == [None, *(entry["hash"] for entry in entries[:-1])]
    assert entries[-1]["hash"].hex() in (await _examined(database)).summary


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("update outbox_audit set actor = 'bob' where id = 3", "entry 3 was changed after it was written"),
        ("update outbox_audit set details = '{}' where id = 2", "entry 2 was changed after it was written"),
        ("update outbox_audit set at = at - interval '1 second' where id = 2", "entry 2 was changed after it was written"),
        ("update outbox_audit set client_request_id = null where id = 4", "entry 4 was changed after it was written"),
        ("delete from outbox_audit where id = 3", "entries before entry 4 were deleted"),
        ("update outbox_audit set hash = null where id = 5", "entry 5 was written without a hash"),
    ],
)
async def test_entries_that_were_changed_afterwards_are_found(database: str, sql: str, expected: str) -> None:
    await _write_five(database)
    connection = await asyncpg.connect(database)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()
    finding = await _examined(database)
    assert finding.severity is not Severity.OK
    assert expected in finding.summary


async def test_retention_and_older_releases_leave_the_chain_intact(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        assert (await _examined(database)).severity is Severity.OK
        await connection.execute("insert into outbox_audit (actor, role, action, outcome) values ('a', 'admin', 'x', 'done')")
        await _write_five(database)
        await connection.execute("delete from outbox_audit where id <= 3")
        assert (await _examined(database)).severity is Severity.OK
    finally:
        await connection.close()


async def _write_five(database: str) -> None:
    async with Admin(database) as admin:
        for number in range(5):
            async with admin.changing("something") as connection:
                asked = replace(_asked(admin), client_request_id=f"client-{number}")
                await record(connection, asked, action="x", details={"number": number})


async def _examined(database: str) -> Finding:
    connection = await asyncpg.connect(database)
    try:
        [finding] = await examine_audit(connection, TableName("outbox_table"))
    finally:
        await connection.close()
    return finding


def _nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value
