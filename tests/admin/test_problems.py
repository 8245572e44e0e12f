"""Which problem an error is, and what is logged about it."""

import logging

import asyncpg
import httpx
import pytest

from outbox.admin.problems import Code, problem_of
from outbox.postgres.pool import unavailable_errors

VALUES = [("select $1::integer", 2**40), ("select $1::text", "\0"), ("select ($1::text)::bigint", "9" * 30)]


@pytest.mark.parametrize(("sql", "value"), VALUES)
async def test_a_value_that_the_database_cannot_store_is_an_invalid_request(
    connection: asyncpg.Connection, sql: str, value: object
) -> None:
    with pytest.raises(asyncpg.DataError) as raw:
        await connection.fetch(sql, value)
    with pytest.raises(Exception, match="asking") as translated, unavailable_errors("asking"):
        await connection.fetch(sql, value)
    for error in (raw.value, translated.value):
        problem = problem_of(error)
        assert problem is not None
        assert (problem.code, problem.headers) == (Code.INVALID_REQUEST, {})


async def test_an_error_with_stored_values_is_an_internal_error(connection: asyncpg.Connection) -> None:
    with pytest.raises(asyncpg.DataError) as error:
        await connection.fetch("select 1 / 0")
    problem = problem_of(error.value)
    assert problem is not None
    assert problem.code is Code.INTERNAL


@pytest.mark.parametrize("lacks", ["drop table outbox_stats", "alter table outbox_stats drop column latency"])
async def test_a_missing_table_is_reported_as_an_outdated_schema(
    viewer: httpx.AsyncClient, connection: asyncpg.Connection, lacks: str
) -> None:
    await connection.execute(lacks)
    answer = await viewer.get("/stats")
    assert (answer.status_code, answer.json()["code"]) == (503, "schema_outdated")
    assert "outbox migrate" in answer.json()["detail"]
    assert "retry-after" not in answer.headers


async def test_a_read_only_database_is_named(operator: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
    name = await connection.fetchval("select quote_ident(current_database())")
    await connection.execute(f"alter database {name} set default_transaction_read_only = on")
    answer = await operator.post("/pause", json={"scope": "queue", "name": "mail"})
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "database_unavailable", "2")
    assert "the database is read-only" in answer.json()["detail"]


async def test_a_change_that_the_database_refuses_is_a_conflict(
    operator: httpx.AsyncClient, connection: asyncpg.Connection
) -> None:
    await connection.execute("alter table outbox_control add constraint frozen check (false)")
    answer = await operator.post("/pause", json={"scope": "queue", "name": "mail"})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "the database refuses the change: CheckViolationError" in answer.json()["detail"]
    assert 'violates check constraint "frozen"' in answer.json()["detail"]
    assert "retry-after" not in answer.headers


async def test_what_the_database_answers_is_in_the_response_and_in_the_log(
    operator: httpx.AsyncClient, connection: asyncpg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    await connection.execute(
        "create function fill() returns trigger language plpgsql as "
        "$$ begin raise using errcode = '53100', message = 'the disk is full'; end $$; "
        "create trigger fill before insert on outbox_control for each row execute function fill()"
    )
    answer = await operator.post("/pause", json={"scope": "queue", "name": "mail"})
    assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
    assert answer.json()["detail"] == "the database reports an error: DiskFullError: the disk is full"
    [line] = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert line.startswith("POST /outbox/pause: database_unavailable: ")
    assert "the disk is full" in line


async def test_client_input_in_the_log_is_escaped(viewer: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="outbox"):
        await viewer.get("/dlq?a%0a12:00:00%20ERROR%20outbox:%20forged%1b[2J=1")
        await viewer.get("/messages/a%0aforged%1b[2J%E2%80%AE")
    lines = [record.getMessage() for record in caplog.records if record.name == "outbox"]
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines), lines
