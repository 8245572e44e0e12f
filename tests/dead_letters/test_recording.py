"""A dead letter is recorded once and completely, and a requeued one is reopened when its message fails again."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from outbox.core.fingerprint import fingerprint
from outbox.core.outcome import Cause, Dead, Failure, Retry
from outbox.masking import Masking
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.dead_letter_writer import DeadLetterWriter, Storable
from outbox.postgres.pool import Pool, open_pool
from tests.contract.support import message, send, taking
from tests.dead_letters.failed_messages import NOON, TABLE, dead, failures_of, letters
from tests.postgres_transport.support import a_session_waits, explained, new_broker, rows_read
from tests.support import eventually


@pytest.fixture
def archive(pool: Pool) -> PostgresArchive:
    return PostgresArchive(pool, TABLE)


async def test_a_dead_letter_is_recorded_with_all_its_details(archive: PostgresArchive, pool: Pool) -> None:
    message = dead(
        "m2",
        b'{"user": "ann", "password": "hunter2"}',
        tracking_ids=("m1", "m2"),
        headers={"tenant": "a", "when": "2026-03-01T12:00:00+00:00"},
        header_types={"/when": "timestamp"},
        properties={"priority": 3},
        ordering_key="order-1",
        hlc=17,
        attempt=3,
        requeue_count=2,
    )
    await archive.record([message])
    [row] = await letters(pool)
    assert (row["source"], row["exchange"], row["queue"], row["message_id"]) == ("worker", "shop", "mail", "m2")
    assert (row["routing_key"], row["body"], row["content_type"]) == ("order.placed", message.body, "application/json")
    assert json.loads(row["headers"]) == {"tenant": "a", "when": "2026-03-01T12:00:00+00:00"}
    assert json.loads(row["header_types"]) == {"/when": "timestamp"}
    assert json.loads(row["properties"]) == {"priority": 3}
    assert json.loads(row["tracking_ids"]) == ["m1", "m2"]
    assert (row["ordering_key"], row["hlc"], row["attempt"], row["requeue_count"]) == ("order-1", 17, 3, 2)
    assert (row["cause"], row["exception_type"], row["worker"]) == ("exhausted", "shop.PaymentError", "host:7")
    assert (row["status"], row["deaths"], row["version"]) == ("open", 1, 1)
    assert (row["failed_at"], row["first_failed_at"], row["created_at"]) == (NOON, NOON, NOON)
    assert [entry["message"] for entry in failures_of(row)] == ["the card 4711 was declined"]
    assert row["preview"] == '{"user": "ann", "password": "***"}'
    assert "ann" in row["search"]
    assert "hunter2" not in row["search"]


async def test_a_dead_letter_is_one_row_however_often_it_is_recorded(archive: PostgresArchive, pool: Pool) -> None:
    await archive.record([dead(), dead()])
    await archive.record([dead()])
    await asyncio.gather(*(archive.record([dead("m2")]) for _ in range(5)))
    assert [row["message_id"] for row in await letters(pool)] == ["m1", "m2"]


async def test_messages_without_an_id_are_never_merged(archive: PostgresArchive, pool: Pool) -> None:
    await archive.record([dead(None), dead(None)])
    assert [row["message_id"] for row in await letters(pool)] == [None, None]


@pytest.mark.parametrize("other", [{"body": b"{}"}, {"queue": "billing"}, {"attempt": 2}])
async def test_another_dead_letter_is_another_row(archive: PostgresArchive, pool: Pool, other: dict[str, object]) -> None:
    await archive.record([dead(), replace(dead(), **other)])  # type: ignore[arg-type]
    assert len(await letters(pool)) == 2


async def test_a_requeued_message_that_fails_again_reopens_its_letter(archive: PostgresArchive, pool: Pool) -> None:
    await archive.record([dead()])
    await resolve(pool, "requeued")
    later = NOON + timedelta(hours=1)
    failure = Failure("shop.OtherError", "still no", "", "host:8")
    await archive.record(
        [dead(body=b'{"n": 2}', failure=failure, requeue_count=1, attempt=2, failed_at=later, headers={"a": 1})]
    )
    [row] = await letters(pool)
    assert (row["status"], row["deaths"], row["requeue_count"], row["attempt"]) == ("open", 2, 1, 2)
    assert (row["exception_type"], row["exception_message"], row["worker"]) == ("shop.OtherError", "still no", "host:8")
    assert (row["failed_at"], row["first_failed_at"], row["body"]) == (later, NOON, b'{"n": 2}')
    assert [entry["type"] for entry in failures_of(row)] == ["shop.PaymentError", "shop.OtherError"]
    assert json.loads(row["headers"]) == {"a": 1}
    assert row["resolved_by"] == "ann"


@pytest.mark.parametrize("status", ["open", "discarded"])
async def test_a_later_failure_reopens_the_letter_whatever_its_status(
    archive: PostgresArchive, pool: Pool, status: str
) -> None:
    await archive.record([dead()])
    await resolve(pool, status)
    await archive.record([dead(requeue_count=1)])
    [row] = await letters(pool)
    assert (row["status"], row["deaths"]) == ("open", 2)


async def test_a_failure_that_was_recorded_before_its_requeue_changes_nothing(archive: PostgresArchive, pool: Pool) -> None:
    await archive.record([dead()])
    await resolve(pool, "requeued")
    await archive.record([dead()])
    [row] = await letters(pool)
    assert (row["status"], row["deaths"]) == ("requeued", 1)


async def test_a_failure_that_was_recorded_before_an_edit_is_still_recognized(archive: PostgresArchive, pool: Pool) -> None:
    await archive.record([dead()])
    await pool.execute(
        "insert into outbox_dead_letter_edition (dead_letter_id, version, body) select id, 1, body from outbox_dead_letter"
    )
    await pool.execute("update outbox_dead_letter set body = 'edited', version = 2")
    await archive.record([dead()])
    assert [row["body"] for row in await letters(pool)] == [b"edited"]


async def test_failures_of_one_id_with_different_bodies_reopen_their_own_letters(archive: PostgresArchive, pool: Pool) -> None:
    await archive.record([dead(body=b"a"), dead(body=b"b")])
    await resolve(pool, "requeued")
    await archive.record([dead(body=b"a", requeue_count=1)])
    await archive.record([dead(body=b"b", requeue_count=1)])
    assert [(row["body"], row["deaths"]) for row in await letters(pool)] == [(b"a", 2), (b"b", 2)]


async def test_one_of_several_archivers_reopens_the_letter(archive: PostgresArchive, pool: Pool) -> None:
    await archive.record([dead()])
    await resolve(pool, "requeued")
    await asyncio.gather(*(archive.record([dead(requeue_count=1)]) for _ in range(8)))
    [row] = await letters(pool)
    assert (row["status"], row["deaths"], row["requeue_count"]) == ("open", 2, 1)


async def test_an_archiver_that_waited_while_the_letter_was_reopened_does_not_reopen_it_again(
    archive: PostgresArchive, pool: Pool
) -> None:
    await archive.record([dead()])
    await resolve(pool, "requeued")
    async with pool.acquire() as connection:
        async with connection.transaction():
            await archive._execute(connection, [dead(requeue_count=1)], Storable())
            waiting = asyncio.create_task(archive.record([dead(requeue_count=1)]))
            await eventually(lambda: a_session_waits(pool))
        await waiting
    [row] = await letters(pool)
    assert (row["status"], row["deaths"]) == ("open", 2)


async def test_an_operation_records_messages_that_failed_again(archive: PostgresArchive, pool: Pool) -> None:
    await archive.record([dead("m1"), dead("m2")])
    await resolve(pool, "requeued")
    await pool.execute("insert into outbox_operation (action, selector, total) values ('requeue', '{}', 2)")
    await pool.execute(
        "insert into outbox_operation_item (operation_id, position, letter, outcome, requeue_count) "
        "select operation.id, letter.id, letter.id::text, 'done', 1 "
        "from outbox_operation as operation, outbox_dead_letter as letter"
    )
    await archive.record([dead("m2", requeue_count=1)])
    outcomes = await pool.fetch("select outcome from outbox_operation_item order by position")
    assert [row["outcome"] for row in outcomes] == ["done", "died again"]


async def test_the_failures_of_a_letter_that_always_fails_again_stay_bounded(archive: PostgresArchive, pool: Pool) -> None:
    for count in range(110):
        await archive.record([dead(requeue_count=count, failure=Failure("E", str(count)))])
    [row] = await letters(pool)
    assert [entry["message"] for entry in failures_of(row)] == ["0", *map(str, range(11, 110))]
    assert row["deaths"] == 110


async def test_nothing_fails_in_the_future(archive: PostgresArchive, pool: Pool) -> None:
    await archive.record([dead(failed_at=NOON + timedelta(days=36_500))])
    assert await pool.fetchval("select failed_at <= now() and first_failed_at <= now() from outbox_dead_letter")


async def test_text_that_postgres_cannot_hold_is_kept_as_far_as_it_can_be(archive: PostgresArchive, pool: Pool) -> None:
    message = dead(
        "a\0b",
        b"\0\xff",
        routing_key="order\0.\ud800",
        failure=Failure("E\0", "\0\ud800 é", "\0"),
        headers={"\0": ["\0", "\ud800", float("nan"), 10**400, {"deep": "\0"}]},
        properties={"x": "\0"},
        ordering_key="\0",
        content_type="\0",
    )
    await archive.record([message, dead("m2")])
    first, second = await letters(pool)
    assert first["message_id"] == "a\N{SYMBOL FOR NULL}b"
    assert first["body"] == b"\0\xff"
    assert first["exception_message"] == "\N{SYMBOL FOR NULL}? é"
    assert json.loads(first["headers"])["\N{SYMBOL FOR NULL}"][:3] == ["\N{SYMBOL FOR NULL}", "?", "nan"]
    assert second["message_id"] == "m2"


async def test_an_id_may_be_any_text(archive: PostgresArchive, pool: Pool) -> None:
    await archive.record([dead("x" * 100_000)])
    await archive.record([dead("x" * 100_000, requeue_count=1)])
    [row] = await letters(pool)
    assert (len(row["message_id"]), row["deaths"]) == (100_000, 2)


async def test_configured_keys_are_masked(pool: Pool) -> None:
    archive = PostgresArchive(pool, TABLE, masking=Masking().also("shoe size"))
    await archive.record([dead(body=b'{"shoeSize": 46}')])
    [row] = await letters(pool)
    assert row["preview"] == '{"shoeSize": "***"}'
    assert "46" not in row["search"]


async def test_a_letter_that_the_database_refuses_does_not_block_the_others(archive: PostgresArchive, pool: Pool) -> None:
    await pool.execute("alter table outbox_dead_letter add check (not headers ? 'strange')")
    await archive.record([dead("m1"), dead("m2", headers={"strange": 1}), dead("m3")])
    rows = await letters(pool)
    assert [row["message_id"] for row in rows] == ["m1", "m2", "m3"]
    assert [row["body"] for row in rows] == [dead().body] * 3


@pytest.fixture(params=["SQL_ASCII", "LATIN1"])
async def narrow(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Pool]:
    """A pool of connections to a database with a smaller character set."""
    from outbox import ensure_outbox_schema_async

    name = f"narrow_{request.param.lower()}"
    connection = await asyncpg.connect(database_url)
    await connection.execute(f"drop database if exists {name}")
    await connection.execute(f"create database {name} template template0 encoding '{request.param}' locale 'C'")
    url = f"{database_url.rpartition('/')[0]}/{name}"
    await ensure_outbox_schema_async(url)
    pool = await open_pool(url, size=3, application_name="tests")
    yield pool
    await pool.close()
    await connection.execute(f"drop database {name} with (force)")
    await connection.close()


async def test_a_database_of_another_encoding_stores_any_dead_letter(narrow: Pool) -> None:
    archive = PostgresArchive(narrow, TABLE)
    message = dead("ключ", '{"name": "日本"}'.encode(), failure=Failure("E", "日本 \0"), headers={"é": "日本"})
    await archive.record([message])
    await archive.record([replace(message, requeue_count=1)])
    [row] = await narrow.fetch("select body, deaths from outbox_dead_letter")
    assert (row["body"], row["deaths"]) == (message.body, 2)


async def test_the_postgres_transport_records_the_dead_letter_in_the_statement_that_settles_the_delivery(
    database: str, pool: Pool
) -> None:
    broker = new_broker(database)
    failure = Failure("shop.PaymentError", "card=4111, no", "", "host:7")
    async with taking(broker, "mail", "order.*") as taken:
        sent = message("order.placed", body=b'{"user": "ann", "password": "hunter2"}')
        await send(broker, sent)
        await (await taken.next()).settle(Retry(timedelta(0), failure))
        await (await taken.next()).settle(Dead(Cause.EXHAUSTED, failure))
        [row] = await letters(pool)
        assert (row["source"], row["cause"], row["status"], row["attempt"]) == ("worker", "exhausted", "open", 2)
        assert (row["fingerprint"], row["worker"]) == (fingerprint(failure, queue="mail"), "host:7")
        assert (row["preview"], "hunter2" in row["search"]) == ('{"user": "ann", "password": "***"}', False)
        assert [entry["attempt"] for entry in failures_of(row)] == [1, 2]
        assert row["first_failed_at"] <= row["failed_at"]
        await resolve(pool, "requeued")
        await send(broker, replace(sent, requeue_count=1))
        await (await taken.next()).settle(Dead(Cause.REJECTED, Failure("E", "still no")))
    [again] = await letters(pool)
    assert (again["id"], again["status"], again["deaths"], again["requeue_count"]) == (row["id"], "open", 2, 1)
    assert [entry["type"] for entry in failures_of(again)] == ["shop.PaymentError", "shop.PaymentError", "E"]
    await broker.close()


async def test_a_dead_letter_is_looked_up_by_its_id_in_a_large_table_without_statistics(
    archive: PostgresArchive, pool: Pool
) -> None:
    await pool.execute("alter table outbox_dead_letter set (autovacuum_enabled = false)")
    await pool.execute(
        "insert into outbox_dead_letter (source, exchange, queue, message_id, routing_key, body, tracking_ids, created_at, "
        "attempt, cause, exception_type, exception_message, exception_traceback, status) "
        "select 'worker', 'shop', 'mail', 'm' || n, 'k', '{}', '[]', now(), 1, 'c', 'E', '', '', 'requeued' "
        "from generate_series(1, 20000) as n"
    )
    writer = DeadLetterWriter(Masking(), Storable())
    rows = [writer.of_dead_message(dead(f"m{number}", requeue_count=1)) for number in range(1, 51)]
    async with pool.acquire() as connection:
        nodes = await explained(connection, archive._sql["archive"], *map(list, zip(*rows, strict=True)))
    scans = [node for node in nodes if node.get("Relation Name") or node.get("Index Name")]
    assert sum(map(rows_read, scans)) < 1_000


async def resolve(pool: Pool, status: str) -> None:
    await pool.execute("update outbox_dead_letter set status = $1, resolved_at = now(), resolved_by = 'ann'", status)
