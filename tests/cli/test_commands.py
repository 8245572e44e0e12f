"""The commands: help, errors, and effects."""

import asyncio
import logging
import re
import socket
import subprocess
import sys
from pathlib import Path

import asyncpg
import click
import httpx
import pytest
from click.testing import CliRunner

import outbox
from outbox.cli import main
from outbox.cli.processes import Address, monitored
from outbox.runtime.health import HealthChecks
from outbox.schema import ensure_outbox_schema_async
from tests.support.processes import free_port, running

pytestmark = pytest.mark.usefixtures("no_settings_from_outside")
CLI = ["-m", "outbox.cli"]


def test_version_prints_the_version() -> None:
    assert CliRunner().invoke(main, ["--version"]).output.strip() == f"outbox, version {outbox.__version__}"


@pytest.mark.parametrize("command", main.list_commands(click.Context(main)))
def test_each_command_has_help_and_its_first_sentence_is_listed(command: str) -> None:
    answer = CliRunner().invoke(main, [command, "--help"])
    assert answer.exit_code == 0
    assert "Usage:" in answer.output
    loaded = main.get_command(click.Context(main), command)
    assert loaded is not None
    sentence = loaded.get_short_help_str(limit=1_000)
    assert sentence in " ".join(CliRunner().invoke(main, ["--help"], terminal_width=200).output.split())


GROUPS = ("dlq", "messages", "deliveries", "export", "asyncapi")
"""Groups that have no options; their commands may."""


@pytest.mark.parametrize(
    "command",
    [*main.list_commands(click.Context(main)), "dlq show", "dlq requeue", "messages edit", "deliveries list", "export dlq"],
)
def test_connection_options_have_their_own_heading(command: str) -> None:
    text = CliRunner().invoke(main, [*command.split(), "--help"]).output
    options, _, connection = text.partition("\nConnection:\n")
    for option in (
        "--database-url",
        "--table-name",
        "--broker-url",
        "--exchange-name",
        "--management-url",
        "--url",
        "--timeout",
    ):
        assert not re.search(rf"^  {option} ", options, re.MULTILINE), option
    assert ("--database-url" in connection or "--url" in connection) is (command not in ("token", *GROUPS))


def test_output_that_finds_no_room_is_one_line_of_error() -> None:
    command = [sys.executable, "-m", "outbox.cli", "token", "--name", "ada", "--role", "viewer"]
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (process.returncode, process.stderr) == (1, "outbox: cannot write the output: No space left on device\n")


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_listing_commands_imports_none_of_them(argument: str) -> None:
    program = f"import sys; sys.argv = ['outbox', {argument!r}]; from outbox.cli import main; main(standalone_mode=False); "
    process = subprocess.run(
        [sys.executable, "-c", program + "print(*sys.modules, file=sys.stderr)"], capture_output=True, text=True, check=True
    )
    loaded = process.stderr.split()
    assert "click" in loaded
    heavy = {"aio_pika", "asyncio", "asyncpg", "fastapi", "httpx", "prometheus_client", "pydantic", "rich", "sqlalchemy"}
    assert heavy.isdisjoint(loaded)
    assert {name for name in loaded if name.startswith("outbox.cli")} == {
        "outbox.cli", "outbox.cli.command", "outbox.cli.output"
    }  # fmt: skip


def test_defaults_are_not_validated() -> None:
    # Pydantic's first validation looks for plugins in all installed packages, and imports `importlib.metadata` for that.
    program = "import sys; from outbox.cli import main; from outbox.cli.processes import relay; "
    parsed = "relay.make_context('relay', []); print('importlib.metadata' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", program + parsed], capture_output=True, text=True, check=True)
    assert process.stdout == "False\n"


def test_commands_are_listed_by_section() -> None:
    text = CliRunner().invoke(main, ["--help"]).output
    headings = re.findall(r"^(\w[\w ]+):$", text, re.MULTILINE)
    assert headings == ["Options", "Run", "Set up and check", "Inspect", "Repair"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["relay"], "no database configured: set OUTBOX_DATABASE_URL, or give --database-url"),
        (["migrate"], "no database configured: set OUTBOX_DATABASE_URL, or give --database-url"),
        (["relay", "--database-url", "mysql://ada:hunter2@db/x"], "--database-url must be a postgresql:// URL, not mysql://"),
        (
            ["backlog", "--database-url", "ada:hunter2@db/x"],
            "--database-url is not a URL: it has no scheme such as postgresql://",
        ),
        (
            ["worker", "tests.cli.slow_consumers:consumers", "--broker-url", "nats://b"],
            "a worker stores the messages of nats in its database",
        ),
        (["relay", "--database-url", "postgresql://db/x", "--broker-url", "mqtt://b"], "--broker-url has the scheme 'mqtt'"),
        (["worker", "tests.cli.slow_consumers:consumers", "--broker-url", "redis://b"], "stores the messages of redis in"),
        (["worker", "tests.cli.slow_consumers:consumers"], "no broker configured"),
        (["worker", "tests.cli.nowhere:consumers", "--broker-url", "amqp://b"], "no module named tests.cli.nowhere"),
        (["worker", "handlers.py:consumers", "--broker-url", "amqp://b"], "write the module without .py"),
        (["worker", "tests.cli.slow_consumers:absent", "--broker-url", "amqp://b"], "has no absent"),
        (["worker", "tests.cli.slow_consumers:nothing", "--broker-url", "amqp://b"], "contains no consumers"),
        (["worker", "tests.cli.slow_consumers:wrong", "--broker-url", "amqp://b"], "'not a consumer', which is not"),
        (["worker", "not a module", "--broker-url", "amqp://b"], "write package.module:consumers"),
        (["worker", "tests.cli.slow_consumers", "--broker-url", "amqp://b"], "db_engine_url"),
        (["demo", "--url", "http://127.0.0.1:1"], "cannot reach http://127.0.0.1:1"),
        (["relay", "--database-url", "postgresql://db/x", "--table-name", "x; drop"], "cannot be a table name"),
    ],
)
def test_a_user_error_is_one_sentence_without_a_traceback(arguments: list[str], sentence: str) -> None:
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == 1
    assert sentence in answer.output
    assert answer.output.startswith("outbox: ")
    assert len(answer.output.strip().splitlines()) == 1
    assert "hunter2" not in answer.output


def test_an_address_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_DATABASE_URL", "mysql://ada:hunter2@db/x")
    answer = CliRunner().invoke(main, ["migrate"])
    assert (answer.exit_code, answer.output) == (1, "outbox: OUTBOX_DATABASE_URL must be a postgresql:// URL, not mysql://\n")


def test_a_misspelt_command_is_answered_with_a_similar_one() -> None:
    answer = CliRunner().invoke(main, ["bcklog"])
    assert answer.exit_code == 2
    assert "No such command 'bcklog'. Did you mean 'backlog'?" in answer.output
    assert "Did you mean" not in CliRunner().invoke(main, ["--backlog"]).output


def test_a_misspelt_variable_stops_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_DATABSE_URL", "postgresql://db/x")
    answer = CliRunner().invoke(main, ["migrate"])
    assert answer.exit_code == 1
    assert "OUTBOX_DATABSE_URL is not a setting, did you mean OUTBOX_DATABASE_URL?" in answer.output


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--publish-timeout", "soon"),
        ("--publish-timeout", "-1"),
        ("--clean-up-after", "soon"),
        ("--clean-up-after", "-1"),
        ("--lanes", "0"),
        ("--on-unroutable", "burn"),
    ],
)
def test_an_invalid_option_is_named(option: str, value: str) -> None:
    answer = CliRunner().invoke(main, ["relay", "--database-url", "postgresql://db/x", option, value])
    assert answer.exit_code == 2
    assert option in answer.output


@pytest.mark.parametrize(
    ("option", "value"), [("--duration", "-3"), ("--mix", "book=nan"), ("--mix", "book=inf"), ("--mix", "")]
)
def test_an_invalid_option_of_the_demo_is_named(option: str, value: str) -> None:
    answer = CliRunner().invoke(main, ["demo", option, value])
    assert answer.exit_code == 2
    assert option in answer.output


def test_an_invalid_retry_delay_is_named() -> None:
    answer = CliRunner().invoke(
        main, ["worker", "tests.cli.slow_consumers", "--broker-url", "amqp://b", "--retry-delays", "1s,1h"]
    )
    assert answer.exit_code == 2
    assert "'1h' is not a duration" in answer.output


def test_an_invalid_retention_is_answered_with_days_and_hours() -> None:
    for command in (["maintain", "--history-retention"], ["dlq", "requeue", "--inbox-retention"]):
        answer = CliRunner().invoke(main, [*command, "1x"])
        assert answer.exit_code == 2
        assert "or days or hours, such as '30d' or '12h'" in answer.output


def test_an_invalid_due_time_is_answered_with_times() -> None:
    for time in ("tomorrow", "1e12"):
        answer = CliRunner().invoke(main, ["messages", "reschedule", "1", "--due", time])
        assert answer.exit_code == 2
        assert f"'{time}' is not a time: write 2030-01-31T12:00Z, or how long from now" in answer.output


@pytest.mark.parametrize(
    "arguments", [["pause", "relay", "--until", "9999-12-31T23:59:59-05:00"], ["attempts", "mail", "--from", "999999d"]]
)
def test_a_time_that_no_calendar_has_is_answered_with_a_sentence(arguments: list[str]) -> None:
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == 2
    assert f"Error: Invalid value for '{arguments[-2]}'" in answer.output


# --- migrate -----------------------------------------------------------------------------------------------------------


async def _tables(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "select schemaname || '.' || tablename from pg_tables where schemaname in ('public', 'events') order by 1"
        )
        return [row[0] for row in rows]
    finally:
        await connection.close()


def test_migrate_creates_the_tables_and_may_be_repeated(database_url: str) -> None:
    for _ in range(2):
        answer = CliRunner().invoke(main, ["migrate"], env={"OUTBOX_DATABASE_URL": database_url})
        assert answer.exit_code == 0, answer.output
    assert {"public.outbox_table", "public.outbox_delivery"} <= set(asyncio.run(_tables(database_url)))


def test_migrate_creates_another_table_in_another_schema(database_url: str) -> None:
    async def make_schema() -> None:
        connection = await asyncpg.connect(database_url)
        await connection.execute("create schema events")
        await connection.close()

    asyncio.run(make_schema())
    answer = CliRunner().invoke(main, ["migrate", "--database-url", database_url, "--table-name", "events.outgoing"])
    assert answer.exit_code == 0, answer.output
    assert {"events.outgoing", "events.outbox_delivery"} <= set(asyncio.run(_tables(database_url)))


def test_the_printed_sql_creates_the_same_schema_as_migrate(database_url: str) -> None:
    printed = CliRunner().invoke(main, ["migrate", "--sql"])
    assert printed.exit_code == 0

    async def execute() -> None:
        connection = await asyncpg.connect(database_url)
        try:
            await connection.execute(printed.output)
        finally:
            await connection.close()
        # Finds nothing to do, since everything is there and stamped.
        await ensure_outbox_schema_async(database_url)

    asyncio.run(execute())
    assert {"public.outbox_table", "public.outbox_delivery"} <= set(asyncio.run(_tables(database_url)))


def test_an_unreachable_database_is_one_sentence() -> None:
    answer = CliRunner().invoke(main, ["migrate", "--database-url", "postgresql://ada:hunter2@127.0.0.1:1/x"])
    assert answer.exit_code == 1
    assert answer.output.startswith("outbox: ")
    assert "hunter2" not in answer.output


@pytest.mark.parametrize("command", ["migrate", "backlog"])
def test_a_host_that_is_not_found_is_named(command: str) -> None:
    answer = CliRunner().invoke(main, [command, "--database-url", "postgresql://ada:hunter2@nohost.invalid:5432/x"])
    assert answer.exit_code == 1
    assert "nohost.invalid:5432" in answer.output
    assert "hunter2" not in answer.output


# --- processes ---------------------------------------------------------------------------------------------------------


def _get(url: str) -> httpx.Response | None:
    try:
        return httpx.get(url, timeout=60)
    except httpx.TransportError:
        return None


@pytest.mark.parametrize("command", [["relay"], ["worker", "tests.cli.slow_consumers:consumers"]])
def test_each_process_serves_metrics_and_health_on_its_own_port(command: list[str], database_url: str, tmp_path: Path) -> None:
    asyncio.run(ensure_outbox_schema_async(database_url))
    port = free_port()
    settings = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_MONITORING_PORT": str(port)}
    with running([*CLI, *command], tmp_path, settings) as process:
        process.says(f"http://127.0.0.1:{port}/outbox/health/ready")
        process.is_ready(f"http://127.0.0.1:{port}/outbox/health/ready")
        live = _get(f"http://127.0.0.1:{port}/outbox/health/live")
        metrics = _get(f"http://127.0.0.1:{port}/metrics")
        missing = _get(f"http://127.0.0.1:{port}/nothing")
        assert live is not None
        assert live.json() == {"status": "alive"}
        assert metrics is not None
        assert "outbox_messages_published_total" in metrics.text
        assert missing is not None
        assert missing.status_code == 404


def test_a_monitoring_port_that_is_taken_is_named(database_url: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_MONITORING_PORT": str(taken.getsockname()[1])}
        with running([*CLI, "relay"], tmp_path, settings) as process:
            assert process.wait() == 1
            assert "set OUTBOX_MONITORING_PORT to another port" in process.output
            assert "Traceback" not in process.output


def test_a_monitoring_host_of_another_machine_is_named(database_url: str, tmp_path: Path) -> None:
    settings = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_MONITORING_HOST": "192.0.2.1"}
    with running([*CLI, "relay"], tmp_path, settings) as process:
        assert process.wait() == 1
        assert "set OUTBOX_MONITORING_HOST to an address of this machine" in process.output


def test_a_relay_without_its_table_exits_with_the_hint_to_migrate(database_url: str, tmp_path: Path) -> None:
    settings = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_MONITORING_PORT": "0"}
    with running([*CLI, "relay"], tmp_path, settings) as process:
        assert process.wait() == 1
        assert "outbox migrate" in process.output
        assert "Traceback" not in process.output


def test_an_unreachable_broker_is_logged_once_and_not_for_each_attempt(database_url: str, tmp_path: Path) -> None:
    asyncio.run(ensure_outbox_schema_async(database_url))
    away = {"OUTBOX_BROKER_URL": "amqp://ada:hunter2@127.0.0.1:1/", "OUTBOX_MONITORING_PORT": "0"}
    with running([*CLI, "relay"], tmp_path, {"OUTBOX_DATABASE_URL": database_url, **away}) as process:
        process.says("lost the broker, trying again")
        assert "aiormq" not in process.output


@pytest.mark.parametrize("command", ["status", "doctor", "backlog"])
def test_a_command_reports_an_unreachable_broker_itself_without_log_lines(database: str, tmp_path: Path, command: str) -> None:
    settings = {"OUTBOX_DATABASE_URL": database, "OUTBOX_BROKER_URL": "amqp://ada:hunter2@127.0.0.1:1/"}
    with running([*CLI, command], tmp_path, settings) as process:
        process.wait()
        assert "no connection to amqp://ada:***@127.0.0.1:1/" in process.output
        assert "error when creating transport" not in process.output


async def test_a_free_port_is_used_if_the_usual_monitoring_port_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address("127.0.0.1", port=None, usual_port=taken.getsockname()[1])
        with caplog.at_level(logging.INFO, "outbox"), monitored(address, HealthChecks(), metrics=False):
            link = caplog.messages[-1].split()[-1]
            answer = await asyncio.to_thread(httpx.get, link)
    assert answer.json() == {"status": "ready", "parts": {}}
    assert "is taken, serving health and metrics on port" in caplog.text


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
async def test_health_and_metrics_are_served_on_ipv6_too(caplog: pytest.LogCaptureFixture) -> None:
    address = Address("::1", port=None, usual_port=free_port())
    with caplog.at_level(logging.INFO, "outbox"), monitored(address, HealthChecks(), metrics=False):
        link = caplog.messages[-1].split()[-1]
        assert link.startswith("http://[::1]:")
        answer = await asyncio.to_thread(httpx.get, link)
    assert answer.json() == {"status": "ready", "parts": {}}
