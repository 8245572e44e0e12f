"""Findings of the doctor about a database."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import pytest
from click.testing import CliRunner

from outbox import Consumer
from outbox.cli import main
from outbox.core.findings import Finding, Severity
from outbox.doctor import Installation, Report, examine
from outbox.postgres.queries import TableName
from outbox.postgres.schema.versions import VERSIONS, stamp
from outbox.schema import ensure_outbox_schema_async, migrate
from tests.servers.postgres import OwnPostgres


async def examined(database_url: str, **given: object) -> Report:
    return await examine(Installation(database_url=database_url, consumer_timeout=timedelta(minutes=30), **given))  # type: ignore[arg-type]


def problems(report: Report) -> Sequence[Finding]:
    # The test server itself runs without fsync, which the doctor rightly objects to.
    return [finding for finding in report.findings if finding.severity is not Severity.OK and finding.check != "settings"]


async def test_a_healthy_database_has_no_findings(connection: asyncpg.Connection, database_url: str) -> None:
    report = await examined(database_url)
    assert problems(report) == []
    assert {finding.check for finding in report.findings} >= {
        "server",
        "schema",
        "rights",
        "connections",
        "listen",
        "pinned rows",
    }


@pytest.mark.parametrize(
    ("damage", "severity", "named", "sql"),
    [
        ("alter table outbox_table drop column held_at", Severity.ERROR, "column held_at of outbox_table is missing", ""),
        ("alter table outbox_table drop column hlc", Severity.ERROR, "column hlc of outbox_table is missing", ""),
        (
            """
            drop index outbox_table_due_idx;
            create index outbox_table_due_idx on outbox_table (priority, send_after, id) where sent_at is null
            """,
            Severity.WARNING,
            "index outbox_table_due_idx of outbox_table is",
            'CREATE INDEX outbox_table_due_idx ON "public".outbox_table',
        ),
        (
            "alter table outbox_table drop constraint outbox_table_check_attempts",
            Severity.WARNING,
            "constraint outbox_table_check_attempts of outbox_table is missing",
            "",
        ),
        ("alter table outbox_table disable trigger all", Severity.ERROR, "trigger outbox_table_ring of outbox_table is", ""),
        (
            "alter table outbox_delivery reset (fillfactor)",
            Severity.WARNING,
            "parameter fillfactor of outbox_delivery is missing",
            "alter table",
        ),
        ("drop table outbox_inbox", Severity.WARNING, "the table outbox_inbox is missing", ""),
        ("update outbox_schema_version set version_num = '0001'", Severity.ERROR, "has version 0001", ""),
        ("drop table outbox_table", Severity.ERROR, "the table outbox_table does not exist", ""),
    ],
)
async def test_differences_from_the_migrated_schema_are_reported(
    connection: asyncpg.Connection, database_url: str, damage: str, severity: Severity, named: str, sql: str
) -> None:
    await connection.execute(damage)
    [finding] = problems(await examined(database_url))
    assert finding.severity is severity
    assert named in finding.summary
    assert sql in "".join(finding.sql)
    schemas = await connection.fetch("select nspname from pg_namespace where nspname like 'outbox%'")
    assert schemas == []


async def test_a_check_that_fails_hides_no_other_finding(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute("alter table outbox_table drop column failed_at cascade")
    findings = problems(await examined(database_url))
    assert "the column failed_at of outbox_table is missing" in [finding.summary for finding in findings]
    assert [finding.summary for finding in findings if finding.check not in ("schema", "relays")] == [
        'a check was not possible: UndefinedColumnError: column "failed_at" does not exist'
    ]


async def test_a_read_only_database_is_named(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute(f"alter database {database_url.rpartition('/')[2]} set default_transaction_read_only = on")
    [finding] = problems(await examined(database_url))
    assert "the database is read-only" in finding.summary


async def test_the_printed_sql_fixes_the_findings(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute(
        "drop index outbox_table_due_idx, outbox_history_child_idx; alter table outbox_table reset (fillfactor)"
    )
    report = await examined(database_url)
    statements = [statement for finding in problems(report) for statement in finding.sql]
    assert len(statements) == 3
    for statement in statements:
        await connection.execute(statement)
    assert problems(await examined(database_url)) == []


@pytest.mark.parametrize(
    ("damage", "summaries", "hint"),
    [
        (
            """
            alter table outbox_table_kafka alter id drop default;
            drop trigger outbox_table_kafka_ring on outbox_table_kafka;
            alter table outbox_table_kafka reset (fillfactor);
            drop index outbox_table_kafka_due_idx
            """,
            [
                "the column id of outbox_table_kafka is 'bigint not null', not \"bigint not null default nextval(",
                "the index outbox_table_kafka_due_idx of outbox_table_kafka is missing",
                "the parameter fillfactor of outbox_table_kafka is missing",
                "the trigger outbox_table_kafka_ring of outbox_table_kafka is missing",
            ],
            "run `outbox migrate --destination kafka`",
        ),
        (
            "alter table outbox_table_kafka no inherit outbox_table",
            ["the table outbox_table_kafka does not inherit from outbox_table: "],
            "let it inherit",
        ),
    ],
)
async def test_the_table_of_a_destination_is_compared_with_the_outbox_table(
    connection: asyncpg.Connection, database_url: str, damage: str, summaries: list[str], hint: str
) -> None:
    await ensure_outbox_schema_async(database_url, destinations=["kafka", "lake"])
    assert problems(await examined(database_url)) == []
    await connection.execute(damage)
    found = sorted(problems(await examined(database_url)), key=lambda each: each.summary)
    assert [each.summary.startswith(summary) for each, summary in zip(found, summaries, strict=True)] == [True] * len(found)
    assert hint in "".join(each.advice for each in found)
    for finding in found:
        for statement in finding.sql:
            await connection.execute(statement)
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    assert problems(await examined(database_url)) == []


async def test_a_table_of_another_name_in_another_schema_is_compared_correctly(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await connection.execute("create schema shop")
    await migrate(database_url, "shop.order_events")
    assert problems(await examined(database_url, table_name="shop.order_events")) == []


async def test_another_outbox_table_with_a_longer_name_is_none_of_a_destination(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await migrate(database_url, "outbox_table_billing")
    assert problems(await examined(database_url)) == []


async def test_a_transaction_that_pins_dead_rows_is_named(
    connection: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.doctor.database.PINNED_FOR", timedelta(0))
    culprit = await asyncpg.connect(database_url, server_settings={"application_name": "nightly report"})
    try:
        async with culprit.transaction(isolation="repeatable_read"):
            await culprit.execute("select count(*) from outbox_table")
            findings = problems(await examined(database_url))
            [finding] = [finding for finding in findings if "nightly report" in finding.summary]
            assert finding.check == "pinned rows"
            assert str(culprit.get_server_pid()) in finding.sql[0]
            assert "select count(*) from outbox_table" in finding.summary
    finally:
        await culprit.close()


async def test_an_idle_transaction_that_has_written_is_named(
    connection: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.doctor.database.PINNED_FOR", timedelta(0))
    culprit = await asyncpg.connect(database_url, server_settings={"application_name": "stuck service"})
    try:
        async with culprit.transaction():
            await culprit.execute("insert into outbox_table (routing_key, body) values ('a', '')")
            [finding] = [each for each in problems(await examined(database_url)) if "stuck service" in each.summary]
            assert "idle in transaction, insert into outbox_table" in finding.summary
    finally:
        await culprit.close()


@asynccontextmanager
async def restarted_with(server: OwnPostgres, setting: str, value: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the server, which has the schema and, for the block, a setting that needs a restart."""
    await ensure_outbox_schema_async(server.url)
    await _restart(server, f"set {setting} = {value}")
    connection = await asyncpg.connect(server.url)
    try:
        yield connection
    finally:
        await connection.close()
        await _restart(server, f"reset {setting}")


async def _restart(server: OwnPostgres, change: str) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute(f"alter system {change}")
    await connection.close()
    server.restart()


async def test_the_sql_for_a_prepared_transaction_quotes_its_name(
    own_postgres: OwnPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.doctor.database.PINNED_FOR", timedelta(0))
    async with restarted_with(own_postgres, "max_prepared_transactions", "4") as connection:
        await connection.execute("begin; create table other (); prepare transaction 'it''s open'")
        try:
            [finding] = [each for each in problems(await examined(own_postgres.url)) if "it's open" in each.summary]
        finally:
            await connection.execute("rollback prepared 'it''s open'")
    assert finding.sql == ("rollback prepared 'it''s open'",)


async def test_a_slot_of_logical_replication_is_none_that_keeps_dead_rows(own_postgres: OwnPostgres) -> None:
    async with restarted_with(own_postgres, "wal_level", "logical") as connection:
        await connection.execute("select pg_create_logical_replication_slot('cdc', 'pgoutput')")
        try:
            assert problems(await examined(own_postgres.url)) == []
        finally:
            await connection.execute("select pg_drop_replication_slot('cdc')")


async def test_dead_rows_of_a_destination_are_reported(
    connection: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.doctor.database.MAX_DEAD_ROWS", 0)
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    await connection.execute("insert into outbox_table_kafka (routing_key, body) values ('a', '')")
    await connection.execute("delete from outbox_table_kafka")
    await connection.execute("select pg_stat_force_next_flush()")
    [finding] = problems(await examined(database_url))
    assert finding.summary == "outbox_table_kafka has 1 dead rows and 0 live ones"


async def test_a_role_that_does_not_see_other_sessions_counts_them(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute("drop role if exists doctors_weak; create role doctors_weak login password 'weak'")
    others = [await asyncpg.connect(database_url) for _ in range(5)]
    try:
        await connection.execute("grant select, update, delete on outbox_table to doctors_weak")
        report = await examined(f"postgresql://doctors_weak:weak@{database_url.partition('@')[2]}")
        found = {finding.check: finding.summary for finding in report.findings}
        assert int(found["connections"].split()[0]) > len(others)
        assert "that this role may see" in found["pinned rows"]
    finally:
        for other in others:
            await other.close()
        await connection.execute("drop owned by doctors_weak; drop role doctors_weak")


async def test_a_role_without_privileges_gets_the_grants_to_run(connection: asyncpg.Connection, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url, destinations=["kafka"])
    await connection.execute("drop role if exists doctors_weak; create role doctors_weak login password 'weak'")
    address = database_url.partition("@")[2]
    try:
        report = await examined(f"postgresql://doctors_weak:weak@{address}")
        grants = {finding.summary: finding.sql[0] for finding in report.findings if finding.check == "rights" and finding.sql}
        assert grants.keys() == {
            "this role may not delete, select, update in outbox_table",
            "this role may not delete, select, update in outbox_table_kafka",
            "this role may not delete, insert, select, update in outbox_relay",
            "this role may not select in outbox_subscription",
            "this role may not insert in outbox_delivery",
        }
        await connection.execute(";".join(grants.values()))
        assert problems(await examined(f"postgresql://doctors_weak:weak@{address}")) == []
        assert any("by name only" in finding.summary for finding in report.findings)
        await connection.execute("drop index outbox_table_kafka_due_idx")
        [finding] = problems(await examined(f"postgresql://doctors_weak:weak@{address}"))
        assert finding.summary == "index outbox_table_kafka_due_idx is missing in outbox_table_kafka"
    finally:
        await connection.execute("drop owned by doctors_weak; drop role doctors_weak")


async def test_a_role_that_may_not_use_the_schema_gets_more_advice_than_to_migrate(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await connection.execute("drop role if exists doctors_weak; create role doctors_weak login password 'weak'")
    try:
        await connection.execute("revoke usage on schema public from public")
        [finding] = problems(await examined(f"postgresql://doctors_weak:weak@{database_url.partition('@')[2]}"))
        assert "grant usage on schema public to doctors_weak" in finding.summary
    finally:
        await connection.execute("drop role doctors_weak")


async def test_missing_privileges_for_recording_dead_letters_are_reported(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await connection.execute("drop role if exists doctors_weak; create role doctors_weak login password 'weak'")
    address = database_url.partition("@")[2]
    try:
        worker = Consumer("order.*", lambda body: None, "mail", ())
        report = await examined(f"postgresql://doctors_weak:weak@{address}", consumers=[worker])
        said = " ".join(finding.summary for finding in report.findings if finding.check == "rights")
        for wanted in (
            "select in outbox_dead_letter_edition",
            "select in outbox_operation",
            "select, update in outbox_operation_item",
        ):
            assert wanted in said
    finally:
        await connection.execute("drop role doctors_weak")


async def test_settings_that_end_a_relays_transaction_are_named(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute(
        f"alter database {database_url.rpartition('/')[2]} set statement_timeout = 5000; "
        f"alter database {database_url.rpartition('/')[2]} set synchronous_commit = off"
    )
    found = [finding.summary for finding in (await examined(database_url)).findings if finding.check == "settings"]
    assert any("statement_timeout is 5000 ms" in summary for summary in found)
    assert any("synchronous_commit is off" in summary for summary in found)


@pytest.mark.parametrize("in_transaction", [True, False])
async def test_a_setting_that_ends_the_transaction_of_a_waiting_handler_is_named(
    connection: asyncpg.Connection, database_url: str, in_transaction: bool
) -> None:
    """Its messages are dead letters that only say: connection is closed."""
    database = database_url.rpartition("/")[2]
    await connection.execute(f"alter database {database} set idle_in_transaction_session_timeout = '5s'")

    async def handle(body: dict[str, str], connection: asyncpg.Connection) -> None: ...

    consumer = Consumer("order.*", handle if in_transaction else lambda body: None, "mail", ())
    found = [each.summary for each in (await examined(database_url, consumers=[consumer])).findings if each.check == "settings"]
    assert (
        "idle_in_transaction_session_timeout is 5000 ms, which ends a handler's transaction" in str(found)
    ) is in_transaction


async def test_the_connections_of_a_relay_and_a_worker_are_counted(connection: asyncpg.Connection, database_url: str) -> None:
    for broker_url, needed in ((None, 20), ("amqp://127.0.0.1:1", 10)):
        report = await examined(database_url, lanes=2, broker_url=broker_url)
        [finding] = [each for each in report.findings if each.check == "connections"]
        assert finding.summary.endswith(f"a relay and a worker with these settings take up to {needed}")


async def test_a_server_with_too_little_room_is_named(connection: asyncpg.Connection, database_url: str) -> None:
    [finding] = problems(await examined(database_url, lanes=5_000))
    assert finding.check == "connections"


async def test_parked_messages_are_named(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, failed_at, last_error) values ('a', '', now(), 'too large')"
    )
    [finding] = problems(await examined(database_url))
    assert "1 message could not be sent" in finding.summary


async def test_a_server_that_cannot_be_reached_is_a_finding_without_secrets() -> None:
    [finding] = (await examined("postgresql://ada:geheim@127.0.0.1:1/shop")).findings
    assert finding.severity is Severity.ERROR
    assert "cannot be reached" in finding.summary
    assert "geheim" not in finding.summary


async def test_a_server_without_a_free_connection_is_not_taken_for_a_wrong_password(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await connection.execute("drop role if exists doctors_weak")
    await connection.execute("create role doctors_weak login password 'weak' connection limit 0")
    try:
        [finding] = (await examined(f"postgresql://doctors_weak:weak@{database_url.partition('@')[2]}")).findings
    finally:
        await connection.execute("drop role doctors_weak")
    assert "too many connections" in finding.summary
    assert finding.advice == "close connections that are not needed, or raise the limit of the server, the database or the role"


async def test_queues_in_another_database_are_looked_for(
    connection: asyncpg.Connection, database_url: str, own_postgres: OwnPostgres
) -> None:
    [finding] = problems(await examined(database_url, broker_url=own_postgres.url))
    assert "the tables of the Postgres transport" in finding.summary
    await ensure_outbox_schema_async(own_postgres.url)
    assert problems(await examined(database_url, broker_url=own_postgres.url)) == []
    [finding] = problems(await examined(database_url, broker_url="postgresql://ada:geheim@127.0.0.1:1/queues"))
    assert "cannot be reached" in finding.summary


async def test_tables_of_an_older_version_are_one_finding(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        for statement in VERSIONS[0].upgrade(TableName("outbox_table")) + stamp(None, "0001"):
            await connection.execute(statement)
        findings = [finding for finding in problems(await examined(database_url)) if finding.check == "schema"]
        assert [(finding.severity, finding.advice) for finding in findings] == [(Severity.ERROR, "run `outbox migrate`")]
        assert "the schema has version 0001" in findings[0].summary
        await migrate(database_url)
        assert problems(await examined(database_url)) == []
    finally:
        await connection.close()


@pytest.mark.parametrize("arguments", [[], ["tests.nowhere:consumers", "--database-url", "postgresql://db/x"]])
def test_a_failed_examination_is_an_error_and_not_a_warning(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OUTBOX_DATABASE_URL", raising=False)
    answer = CliRunner().invoke(main, ["doctor", *arguments])
    assert (answer.exit_code, answer.output.count("\n")) == (2, 1), answer.output


async def test_findings_with_the_same_advice_get_it_once(connection: asyncpg.Connection, database_url: str) -> None:
    await connection.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids, available_at) "
        """select 'outbox', queue, 'm', 'a', '', '["m"]', now() - interval '1 h' from unnest(array['audit', 'mail']) as queue"""
    )
    answer = await asyncio.to_thread(CliRunner().invoke, main, ["status", "--database-url", database_url])
    assert answer.exit_code == 2, answer.output
    queues, _, advice = answer.output.partition("→ check that its worker runs")
    assert re.findall(r"in the queue '(\w+)'", queues) == ["audit", "mail"]
    assert "→ check that its worker runs" not in advice
