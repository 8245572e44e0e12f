"""The commands ask a service over HTTP as they ask the database itself: the same words, the same JSON, the same exit codes."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from click.testing import CliRunner, Result

from outbox import ensure_outbox_schema_sync
from outbox.cli import main
from outbox.environment import KNOWN, OF_COMMANDS
from outbox.postgres.pool import Pool, open_pool
from tests.admin.served import served
from tests.dead_letters.repairs import bury, park, statuses

Run = Callable[..., Result]


@pytest.fixture
def url(database_url: str) -> str:
    """A database with every table."""
    ensure_outbox_schema_sync(database_url)
    return database_url


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KNOWN | OF_COMMANDS:
        monkeypatch.delenv(name, raising=False)


def outbox(*arguments: str, **environment: str) -> Result:
    """Runs `outbox …` in this process."""
    return CliRunner().invoke(main, list(arguments), env=environment)


async def _maintained(admin: Any) -> None:
    """What maintenance does with operations."""
    runner = await admin.dead_letters.runner()
    while True:
        for operation in await admin.dead_letters.operations(going_on=True):
            await runner.run_once(operation.id)
        await asyncio.sleep(0.05)


@pytest.fixture
def service(url: str) -> Iterator[str]:
    """The address of a service on that database."""
    with served(db_engine_url=url, maintain=_maintained) as address:
        yield address


@pytest.fixture(params=["directly", "over HTTP"])
def run(request: pytest.FixtureRequest, url: str) -> Iterator[Run]:
    """Runs a command on the database, or on a service that stands before it."""
    with ExitStack() as stack:
        if request.param == "directly":
            environment = {"OUTBOX_DATABASE_URL": url}
        else:
            address = stack.enter_context(served(db_engine_url=url, maintain=_maintained))
            environment = {"OUTBOX_URL": address, "OUTBOX_TOKEN": "admin"}
        yield lambda *arguments: outbox(*arguments, **environment)


@pytest.fixture
def on(url: str) -> Callable[[Callable[[Pool], Awaitable[Any]]], Any]:
    """Does something on the test's database."""

    async def work(use: Callable[[Pool], Awaitable[Any]]) -> Any:
        pool = await open_pool(url, size=2, application_name="tests")
        try:
            return await use(pool)
        finally:
            await pool.close()

    return lambda use: asyncio.run(work(use))


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of something that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


async def wait_in_the_outbox(pool: Pool) -> None:
    await pool.execute("insert into outbox_table (routing_key, body) select 'order.placed', '' from generate_series(1, 3)")
    await pool.execute(
        "insert into outbox_table (routing_key, body, send_after) values ('order.due', '', now() + interval '1 day')"
    )


def test_the_backlog_is_told(run: Run, on: Any) -> None:
    on(wait_in_the_outbox)
    answer = json.loads(run("backlog", "--json").stdout)
    assert answer["states"]["pending"] == {"value": 3, "relation": "eq"}
    assert [key["routing_key"] for key in answer["routing_keys"]] == ["order.placed", "order.due"]
    told = run("backlog")
    assert told.exit_code == 0
    rows = [line.split() for line in told.output.splitlines()]
    assert ["all", "3", "1", "0", "0", "0", "0"] in rows
    assert ["order.placed", "3", "0", "0", "0", "0", "0"] in rows


def test_messages_are_listed_and_one_says_why_it_is_where_it_is(run: Run, on: Any) -> None:
    on(wait_in_the_outbox)
    on(lambda pool: pool.execute("update outbox_table set body = convert_to('{\"password\": \"hunter2\"}', 'utf8')"))
    listed = run("messages", "--state", "pending", "--limit", "2")
    assert listed.exit_code == 0
    heading, *rows = listed.output.splitlines()
    assert heading.split()[:4] == ["ID", "STATE", "WRITTEN", "DUE"]
    assert [row.split()[:2] for row in rows[:2]] == [["1", "pending"], ["2", "pending"]]
    assert rows[-1] == "2 messages, and there are more: --limit shows them."
    assert run("messages", "--routing-key", "nothing").output == "No messages that fit.\n"

    shown = run("messages", "4")
    assert shown.output.startswith("Message 4, scheduled\n  It is due at ")
    assert "hunter2" not in shown.output
    assert "hunter2" in run("messages", "4", "--reveal").output
    assert json.loads(run("messages", "4", "--json").stdout)["routing_key"] == "order.due"
    gone = run("messages", "17")
    assert (gone.exit_code, gone.output.startswith("outbox: not-found: there is no row '17' in the outbox")) == (1, True)


def test_lists_are_longer_than_a_page(run: Run, on: Any) -> None:
    on(lambda pool: pool.execute("insert into outbox_table (routing_key, body) select 'a', '' from generate_series(1, 450)"))
    answer = json.loads(run("messages", "--json", "--limit", "430").stdout)
    assert len({message["id"] for message in answer["items"]}) == 430
    assert answer["next"] is not None
    assert len(json.loads(run("messages", "--json", "--limit", "1000").stdout)["items"]) == 450


def test_statistics_stand_in_columns(run: Run, on: Any) -> None:
    answer = run("stats", "--from", "-10m", "--step", "60s")
    assert answer.exit_code == 0, answer.output
    assert answer.output.split()[:4] == ["FROM", "CREATED", "SENT", "PROCESSED"]
    assert json.loads(run("stats", "--json", "--group-by", "queue").stdout)["group_by"] == "queue"
    assert run("stats", "--from", "yesterday").output.startswith("outbox: invalid-request: ")


# --- what can go wrong ---------------------------------------------------------------------------------------------------


def test_without_a_token_it_says_which_variable_is_missing(service: str) -> None:
    answer = outbox("backlog", "--url", service)
    assert answer.exit_code == 1
    assert answer.output.startswith("outbox: unauthenticated: ")
    assert "OUTBOX_TOKEN is to hold a token of the service" in answer.output
    assert "; request " in answer.output
    assert len(answer.output.splitlines()) == 1


def test_a_service_that_is_not_there_is_a_sentence_within_the_limit() -> None:
    answer = outbox("backlog", "--url", "http://127.0.0.1:1/outbox", "--timeout", "2")
    assert (answer.exit_code, len(answer.output.splitlines())) == (1, 1)
    assert answer.output.startswith("outbox: there is no service at http://127.0.0.1:1/outbox: ")


def test_a_service_that_does_not_answer_is_a_sentence_within_the_limit(silent: str) -> None:
    answer = outbox("dlq", "list", "--url", f"{silent}/outbox", "--timeout", "200ms")
    assert (answer.exit_code, answer.output) == (1, f"outbox: {silent}/outbox has not answered for 0.2 s\n")


def test_another_server_than_ours_is_a_sentence(service: str) -> None:
    answer = outbox("backlog", "--url", service.removesuffix("/outbox"), OUTBOX_TOKEN="viewer")
    assert answer.exit_code == 1
    assert "there is no admin at this address, or an older one" in answer.output


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--url", "https://ada:hunter2@host/outbox"], 1, "--url has a name or a password in it"),
        (["--url", "ftp://host/outbox"], 1, "write https://host/outbox"),
        (["--url", "https://host/outbox?token=hunter2"], 1, "leave out what follows it"),
        (["--url", "https://host:port/outbox"], 1, "write https://host/outbox"),
        (["--url", "https://host/outbox", "--database-url", "postgresql://host/x"], 2, "are two places"),
        (["--url", "https://host/outbox", "--table-name", "x"], 2, "--table-name is for a database"),
        ([], 1, "say which database: --database-url, or OUTBOX_DATABASE_URL; or which service: --url, or OUTBOX_URL"),
    ],
)
@pytest.mark.parametrize("command", [["backlog"], ["dlq", "list"], ["chain", "1"]])
def test_an_address_that_cannot_be_one_is_refused(command: list[str], arguments: list[str], code: int, sentence: str) -> None:
    answer = outbox(*command, *arguments)
    assert answer.exit_code == code
    assert sentence in " ".join(answer.output.split())
    assert "hunter2" not in answer.output


def test_a_token_that_cannot_be_one_is_refused_and_not_repeated() -> None:
    answer = outbox("backlog", "--url", "http://127.0.0.1:1/outbox", OUTBOX_TOKEN="hünter2")
    assert (answer.exit_code, "OUTBOX_TOKEN is no token" in answer.output) == (1, True)
    assert "hünter2" not in answer.output


def test_what_is_typed_counts_for_more_than_the_environment(url: str) -> None:
    answer = outbox("dlq", "list", "--database-url", url, OUTBOX_URL="http://127.0.0.1:1/outbox")
    assert answer.output == "No open dead letters.\n"
    elsewhere = outbox("dlq", "list", "--url", "http://127.0.0.1:1/outbox", OUTBOX_DATABASE_URL=url)
    assert "there is no service at" in elsewhere.output
