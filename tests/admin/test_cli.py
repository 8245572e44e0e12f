"""The commands do the same over HTTP and in their own process on a database: the same output, JSON and exit codes."""

import asyncio
import json
import re
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self, get_args

import pytest
from click.testing import Result

from outbox.admin.dlq.models import Outcome
from outbox.cli.client import Client
from outbox.cli.dlq import repair
from outbox.cli.dlq.operations import OUTCOMES
from outbox.postgres.pool import Pool
from tests.admin.served import served
from tests.admin.support import outbox
from tests.dead_letters.repairs import add_dead_letters, park, statuses
from tests.support import eventually_sync
from tests.support.processes import running

pytestmark = pytest.mark.usefixtures("no_settings_from_outside")
Run = Callable[..., Result]
AGO = re.compile(r"\d+ (s|min|h) ago|\bnow\b")
VOLATILE = re.compile(r"; request \w+|\"(as_of|confirm_token|expires_at|starts_at|updated_at)\": .*")


async def _maintained(admin: Any) -> None:
    """What maintenance does with operations."""
    runner = await admin.dead_letters.runner()
    while True:
        for operation in await admin.dead_letters.operations(active=True):
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
def silent() -> Iterator[str]:
    """The address of something that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


async def wait_in_the_outbox(pool: Pool) -> None:
    await pool.execute("insert into outbox_table (routing_key, body) select 'order.placed', '' from generate_series(1, 3)")
    await pool.execute(
        "insert into outbox_table (routing_key, body, send_after) values ('order.due', '', now() + interval '1 day')"
    )


async def wait_for_one(pool: Pool) -> None:
    """A relay that has sent a heartbeat."""
    await pool.execute(
        "insert into outbox_component (id, kind, name, host, process_id, version, every) "
        "values ('1', 'relay', 'relay-1', 'here', 1, '1', interval '1 minute')"
    )


def test_the_backlog_is_printed(run: Run, on: Any) -> None:
    on(wait_in_the_outbox)
    answer = json.loads(run("backlog", "--json").stdout)
    assert answer["states"]["pending"] == {"value": 3, "relation": "eq"}
    assert [key["routing_key"] for key in answer["routing_keys"]] == ["order.placed", "order.due"]
    printed = run("backlog")
    assert printed.exit_code == 0
    rows = [line.split() for line in printed.output.splitlines()]
    assert ["all", "3", "1", "0", "0", "0", "0", "0"] in rows
    assert ["order.placed", "3", "0", "0", "0", "0", "0", "0"] in rows


def test_an_empty_backlog_is_printed_without_a_time_to_drain(run: Run, on: Any) -> None:
    on(
        lambda pool: pool.execute(
            "insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'mail', 'a')"
        )
    )
    for command in (["backlog"], ["queues", "mail"]):
        assert json.loads(run(*command, "--json").stdout)["drained_in_seconds"] == 0
        printed = run(*command)
        assert printed.exit_code == 0
        assert "drained in" not in printed.output


def test_an_unavailable_broker_is_reported_in_a_sentence(url: str) -> None:
    away = {"OUTBOX_DATABASE_URL": url, "OUTBOX_BROKER_URL": "amqp://guest:guest@127.0.0.1:1"}
    for command, beginning in (("backlog", "Queues unavailable: "), ("queues", "Depths unavailable: ")):
        answer = outbox(command, **away)
        assert answer.exit_code == 0, answer.output
        assert answer.output.splitlines()[-1].startswith(beginning), answer.output
        assert "{" not in answer.output


def test_a_backlog_that_is_not_counted_yet_is_shown_without_queues(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def count_for_long(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(60)

    monkeypatch.setattr("outbox.admin.backlog_reader.BacklogReader.figures", count_for_long)
    monkeypatch.setattr("outbox.cli.backlog._COUNTING_LIMIT", timedelta(0))
    answer = outbox("backlog", OUTBOX_DATABASE_URL=url)
    assert answer.exit_code == 0, answer.output
    assert answer.output.splitlines()[-1] == "Queues unavailable: they are not counted yet."


def test_messages_are_listed_and_one_says_why_it_is_where_it_is(run: Run, on: Any) -> None:
    on(wait_in_the_outbox)
    on(lambda pool: pool.execute("update outbox_table set body = convert_to('{\"password\": \"hunter2\"}', 'utf8')"))
    listed = run("messages", "--state", "pending", "--limit", "2")
    assert listed.exit_code == 0
    heading, *rows = listed.output.splitlines()
    assert heading.split()[:4] == ["ID", "STATE", "CREATED", "DUE"]
    assert [row.split()[:2] for row in rows[:2]] == [["1", "pending"], ["2", "pending"]]
    assert rows[-1] == "2 messages, more available: raise --limit."
    assert run("messages", "--routing-key", "nothing").output == "No messages match the filter.\n"

    shown = run("messages", "4")
    assert shown.output.startswith("Message 4, scheduled\n  It is due at ")
    assert "hunter2" not in shown.output
    assert "hunter2" in run("messages", "4", "--reveal").output
    assert json.loads(run("messages", "4", "--json").stdout)["routing_key"] == "order.due"
    on(lambda pool: pool.execute("update outbox_table set last_error = 'unroutable', held_at = '2026-11-20 17:23:46.5Z'"))
    assert "unroutable since" in run("messages", "4").output
    gone = run("messages", "17")
    assert (gone.exit_code, gone.output.startswith("outbox: not_found: the outbox has no row '17'")) == (1, True)


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
    longer = run("stats", "--from", "-7d", "--step", "60s").output
    assert "at most 2,000 points" in longer.splitlines()[-1]
    assert run("stats", "--from", "yesterday").output.startswith("outbox: invalid_request: ")


async def be_handled_in_vain(pool: Pool) -> None:
    await pool.execute("""
        insert into outbox_history (at, fact, message_id, root_id, routing_key, queue, attempt, waited, ran, error_type,
            error_message, component)
        values ('2026-03-01 12:00:00Z', 'sent', 'm1', 'm1', 'order.placed', null, null, '2 s', null, null, null, 'r'),
            ('2026-03-01 12:00:05Z', 'died', 'm1', 'm1', 'order.placed', 'mail', 1, '5 s', '1 s', 'ValueError', 'no', 'w')
    """)


async def be_dead(pool: Pool) -> None:
    """Two dead letters of a worker, one of the relay, and an operation that has ended."""
    await add_dead_letters(pool, 2, body=b'{"password": "hunter2"}', headers='{"authorization": "abc"}')
    await park(pool, last_error="Nacked: too large")
    await add_dead_letters(pool, body=b"\xff\x00", queue="other", exception_type="KeyError", fingerprint="f2")


SAME = [
    ["dlq", "list", "--oldest"],
    ["dlq", "list", "--status", "discarded"],
    ["dlq", "list", "--search", "order", "--failed-after", "2020-01-31"],
    ["dlq", "groups"],
    ["dlq", "groups", "--by", "queue"],
    ["dlq", "show", "1"],
    ["dlq", "show", "1", "--reveal"],
    ["dlq", "show", "3"],
    ["dlq", "show", "outbox-1"],
    ["dlq", "show", "17"],
    ["dlq", "show", "1", "--body"],
    ["dlq", "requeue", "--all", "--dry-run"],
    ["dlq", "purge", "1", "2", "--dry-run"],
    ["requeue", "17"],
    ["requeue", "1", "--body", __file__, "--version", "7"],
    ["requeue", "1", "--to-queue", "nowhere"],
    ["dlq", "restore", "1"],
    ["operations"],
    ["operations", "1"],
    ["operations", "2"],
    ["dlq", "cancel", "1"],
    ["dlq", "pause", "2"],
    ["chain", "m1"],
    ["chain", "nothing"],
    ["components"],
    ["messages"],
    ["messages", "1"],
    ["messages", "17"],
    ["queues", "nothing"],
    ["stats"],
    ["stats", "--from", "yesterday"],
    ["pause"],
    ["resume", "relay"],
    ["resume", "queue"],
    ["attempts", "mail", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-02T00:00:00Z", "--outcome", "retried"],
    ["attempts", "mail", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-02T00:00:00Z", "--slowest"],
]


def _ageless(output: str) -> list[str]:
    """The words of an output, without what differs from one request to the next: ages, and how wide they made their columns."""
    return VOLATILE.sub("", AGO.sub("", output)).split()


def test_over_http_and_on_a_database_the_output_is_equal(url: str, service: str, on: Any) -> None:
    on(be_dead)
    on(be_handled_in_vain)
    on(wait_for_one)
    assert outbox("dlq", "discard", "--group", "f2", "--yes", OUTBOX_DATABASE_URL=url).exit_code == 0
    for command in SAME:
        for form in ([], ["--json"]):
            here = outbox(*command, *form, OUTBOX_DATABASE_URL=url)
            there = outbox(*command, *form, OUTBOX_URL=service, OUTBOX_TOKEN="admin")
            assert (_ageless(there.output), there.exit_code) == (_ageless(here.output), here.exit_code), command
            assert not isinstance(here.exception, Exception) or isinstance(here.exception, SystemExit), command
            if "--reveal" not in command and "--body" not in command:
                assert "hunter2" not in here.output + there.output, command


def test_a_message_that_failed_once_is_shown_with_one_time_of_failure(
    run: Run, on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(datetime):
        """A clock that is another second further on whenever it is read."""

        passed = timedelta(0)

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            cls.passed += timedelta(seconds=1)
            return super().now(tz) + cls.passed

    monkeypatch.setattr("outbox.cli.output.datetime", Later)
    on(lambda pool: add_dead_letters(pool, 1))
    shown = run("dlq", "show", "1").output
    assert "failed" in shown
    assert "first failed" not in shown


def test_a_chain_is_printed_in_seconds(run: Run, on: Any) -> None:
    on(be_handled_in_vain)
    assert run("chain", "m1").exit_code == 0
    printed = json.loads(run("chain", "m1", "--json").output)
    [node] = printed["nodes"]
    [delivery] = node["deliveries"]
    assert (printed["duration_seconds"], node["waited_seconds"], delivery["waited_seconds"]) == (7.0, 2.0, 4.0)
    assert delivery["attempts"] == [
        {
            "ended_at": "2026-03-01T12:00:05.000Z",
            "attempt": 1,
            "outcome": "dead_lettered",
            "handling_seconds": 1.0,
            "error": {"type": "ValueError", "message": "no", "traceback": None},
            "component": "w",
            "trace_id": None,
            "external": {"log_url": None, "trace_url": None},
        }
    ]


def test_ids_are_requeued_at_once_and_each_is_answered(run: Run, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 2))
    answer = run("requeue", "1", "9", "--reason", "fixed")
    assert answer.exit_code == 1
    assert answer.output.splitlines() == [
        "ID  OUTCOME    REASON",
        "1   requeued",
        "9   not found  no such dead letter: it was purged or sent, or never existed",
        "",
        "1 requeued, 1 not found.",
    ]
    assert json.loads(run("dlq", "discard", "2", "--json").stdout) == {
        "action": "discard",
        "counts": {"discarded": 1},
        "items": [{"id": "2", "outcome": "discarded", "reason": "", "done_already": False}],
    }
    assert on(statuses) == ["requeued", "discarded"]
    assert run("dlq", "restore", "2").exit_code == 0
    assert on(statuses) == ["requeued", "open"]


def test_a_filter_becomes_an_operation_that_is_followed_to_its_end(run: Run, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 3))
    unconfirmed = run("requeue", "--group", "f1")
    assert (unconfirmed.exit_code, "review it with --dry-run, then add --yes" in unconfirmed.output) == (2, True)
    answer = run("requeue", "--group", "f1", "--yes", "--reason", "fixed", "--canary", "3", "--canary-wait", "0.1")
    said = "Operation 1 is finished: 3 requeued.\nOf 3 requeued messages, 3 are waiting.\n"
    assert (answer.exit_code, answer.stdout) == (0, said)
    assert "Operation 1: requeue of 3 dead letters." in answer.stderr
    found = json.loads(run("operations", "1", "--outcome", "requeued", "--json").stdout)
    assert (found["id"], found["state"], found["reason"], found["counts"]) == ("1", "finished", "fixed", {"requeued": 3})
    assert found["options"]["canary"] == {"count": 3, "wait_seconds": 0.1}
    assert [(item["id"], item["result"]) for item in found["items"]] == [("1", "waiting"), ("2", "waiting"), ("3", "waiting")]
    assert found["results"]["waiting"] == 3
    assert run("operations").output.splitlines()[1].split()[:3] == ["1", "requeue", "finished"]


def test_what_fails_while_a_person_looks_at_a_dry_run_stops_the_change(
    run: Run, on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(lambda pool: add_dead_letters(pool, 3))

    def confirm(action: str, number: int, *_: Any) -> None:
        assert (action, number) == ("discard", 3)
        with ThreadPoolExecutor() as elsewhere:
            elsewhere.submit(on, lambda pool: add_dead_letters(pool, queue="late")).result()

    monkeypatch.setattr(repair, "confirm", confirm)
    answer = run("dlq", "discard", "--all")
    assert (answer.exit_code, answer.output.startswith("outbox: count_drifted: ")) == (1, True)
    assert on(statuses) == ["open"] * 4


def test_what_fails_meanwhile_is_changed_with_the_rest_if_there_is_no_person_to_ask(
    run: Run, on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(lambda pool: add_dead_letters(pool, 3))
    post = Client.post
    added: list[Any] = []

    async def post_slowly(client: Client, path: str, body: Any = None) -> Any:
        answer = await post(client, path, body)
        if "confirm_token" in answer and not added:
            added.append(await asyncio.to_thread(on, lambda pool: add_dead_letters(pool, queue="late")))
        return answer

    monkeypatch.setattr(Client, "post", post_slowly)
    answer = run("dlq", "discard", "--all", "--yes")
    assert (answer.exit_code, answer.stdout) == (0, "Operation 2 is finished: 4 discarded.\n")
    assert on(statuses) == ["discarded"] * 4


def test_operations_are_held_and_ended(run: Run, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 3))
    started = run("requeue", "--all", "--yes", "--detach", "--rate", "0.01")
    assert started.exit_code == 0
    assert "Operation 1 is paused" in run("dlq", "pause", "1").output
    assert json.loads(run("operations", "--active", "--json").stdout)["items"][0]["state"] == "paused"
    assert "Operation 1 was cancelled" in run("dlq", "cancel", "1").output
    assert run("operations", "--active").output == "No active operations.\n"
    again = run("dlq", "cancel", "1")
    assert (again.exit_code, "operation 1 is cancelled and cannot be cancelled" in again.output) == (1, True)
    nowhere = run("dlq", "cancel", "7")
    assert (nowhere.exit_code, "there is no operation 7" in nowhere.output) == (1, True)
    assert run("operations", "7").output == "outbox: no operation 7\n"


def test_an_edit_is_for_the_version_that_was_read(run: Run, on: Any, tmp_path: Path) -> None:
    on(lambda pool: add_dead_letters(pool, 2))
    (tmp_path / "body").write_bytes(b'{"id": 8}')
    assert run("requeue", "1", "--body", str(tmp_path / "body"), "--version", "1").exit_code == 0
    rows = on(lambda pool: pool.fetch("select body from outbox_table"))
    assert [row["body"] for row in rows] == [b'{"id": 8}']
    shown = run("dlq", "show", "1")
    assert (shown.exit_code, "2, 1 replaced by edits" in shown.output) == (0, True), shown.output
    stale = run("requeue", "2", "--body", str(tmp_path / "body"), "--version", "7")
    assert stale.exit_code == 1
    assert on(statuses) == ["requeued", "open"]


def test_what_is_purged_is_gone(run: Run, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 3))
    assert run("dlq", "discard", "--all", "--yes").exit_code == 0
    assert run("dlq", "purge", "1", "--yes", "--reason", "asked for by law").exit_code == 0
    assert run("dlq", "purge", "--all", "--yes", "--reason", "all of it").exit_code == 0
    assert on(statuses) == []


def test_purging_takes_a_reason(run: Run, on: Any) -> None:
    on(add_dead_letters)
    answer = run("dlq", "purge", "1", "--force", "--yes")
    assert (answer.exit_code, answer.output) == (1, "outbox: purge requires a reason: give --reason\n")
    assert on(statuses) == ["open"]


def test_what_is_done_is_in_the_audit(run: Run, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 3))
    run("requeue", "1", "--reason", "fixed")
    run("dlq", "discard", "--all", "--yes")
    written = on(lambda pool: pool.fetch("select action, outcome, reason from outbox_audit order by id"))
    assert [(row["action"], row["outcome"], row["reason"]) for row in written] == [
        ("dlq.requeue", "done", "fixed"),
        ("dlq.discard", "done", None),
    ]


def test_pauses_are_listed_until_they_end(run: Run, on: Any) -> None:
    assert run("pause").output == "Nothing is paused.\n"
    paused = run("pause", "relay", "--reason", "moving")
    assert paused.output == "Paused every relay. No running component is affected.\n"
    assert json.loads(run("pause", "queue", "mail", "--until", "30m", "--json").stdout)["state"] == "unmet"
    listed = run("pause").output.splitlines()
    assert [line.split(",")[0] for line in listed] == ["the queue mail", "every relay"]
    assert listed[1].endswith("no running component is affected: moving")
    assert run("resume", "relay").output == "Resumed every relay.\n"
    again = run("resume", "relay")
    assert (again.exit_code, "no pause of exactly every relay" in again.output) == (1, True)
    assert run("pause", "queue").exit_code == 1
    written = on(lambda pool: pool.fetch("select action, target from outbox_audit where outcome = 'done' order by id"))
    assert [tuple(row) for row in written] == [("pause", "relay"), ("pause", "queue mail"), ("resume", "relay")]


def test_components_are_listed_with_their_activity(run: Run, on: Any) -> None:
    assert run("components").output == "No components have reported.\n"
    on(wait_for_one)
    answer = run("components")
    rows = [line.split() for line in answer.output.splitlines()]
    assert rows[1][:3] == ["relay-1", "relay", "alive"]
    assert json.loads(run("components", "--json").stdout)["items"][0]["name"] == "relay-1"


def test_the_commands_know_every_outcome_of_the_api() -> None:
    assert set(OUTCOMES) == set(get_args(Outcome))


# --- over HTTP only ------------------------------------------------------------------------------------------------------


def test_a_role_that_is_missing_is_named(service: str, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 1))
    answer = outbox("requeue", "1", "--url", service, OUTBOX_TOKEN="viewer")
    assert answer.exit_code == 1
    assert answer.output.startswith("outbox: forbidden: this requires the role operator")
    assert "set OUTBOX_TOKEN to a token of that role" in answer.output
    assert on(statuses) == ["open"]


def test_ctrl_c_leaves_an_operation_running_there_and_says_how_to_follow_it(service: str, on: Any, tmp_path: Path) -> None:
    on(lambda pool: add_dead_letters(pool, 100))
    settings = {"OUTBOX_URL": service, "OUTBOX_TOKEN": "operator"}
    arguments = ["-m", "outbox.cli", "requeue", "--all", "--yes", "--rate", "20"]
    with running(arguments, tmp_path, settings) as process:
        process.says("Operation 1: requeue of 100 dead letters.")
        process.send(signal.SIGINT)
        assert process.wait() == 1
    assert "Operation 1 is still running" in process.output
    assert "`outbox dlq resume 1`" in process.output
    assert "Traceback" not in process.output
    eventually_sync(lambda: "requeued" in on(statuses))


# --- what can go wrong ---------------------------------------------------------------------------------------------------


def test_without_a_token_it_says_which_variable_is_missing(service: str) -> None:
    answer = outbox("backlog", "--url", service)
    assert answer.exit_code == 1
    assert answer.output.startswith("outbox: unauthenticated: ")
    assert "set OUTBOX_TOKEN to a token that the service accepts" in answer.output
    assert "; request " in answer.output
    assert len(answer.output.splitlines()) == 1


def test_a_service_that_is_not_there_is_a_sentence_within_the_limit() -> None:
    answer = outbox("backlog", "--url", "http://127.0.0.1:1/outbox", "--timeout", "2")
    assert (answer.exit_code, len(answer.output.splitlines())) == (1, 1)
    assert answer.output.startswith("outbox: cannot reach http://127.0.0.1:1/outbox: ")


def test_a_service_that_does_not_answer_is_a_sentence_within_the_limit(silent: str) -> None:
    answer = outbox("dlq", "list", "--url", f"{silent}/outbox", "--timeout", "200ms")
    assert (answer.exit_code, answer.output) == (1, f"outbox: {silent}/outbox did not respond within 0.2 s\n")


def test_another_server_than_ours_is_a_sentence(service: str) -> None:
    answer = outbox("backlog", "--url", service.removesuffix("/outbox"), OUTBOX_TOKEN="viewer")
    assert answer.exit_code == 1
    assert "no admin API at this path, or an older version" in answer.output


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--url", "https://ada:hunter2@host/outbox"], 1, "must not contain a user or a password; set OUTBOX_TOKEN instead"),
        (["--url", "ftp://host/outbox"], 1, "write https://host/outbox"),
        (["--url", "https://host/outbox?token=hunter2"], 1, "remove the query and fragment"),
        (["--url", "https://host:port/outbox"], 1, "write https://host/outbox"),
        (["--url", "https://host/outbox", "--database-url", "postgresql://host/x"], 2, "cannot be combined"),
        (["--url", "https://host/outbox", "--table-name", "x"], 2, "--table-name cannot be combined with --url"),
        ([], 1, "set OUTBOX_DATABASE_URL or OUTBOX_URL, or give --database-url or --url"),
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
    assert (answer.exit_code, "OUTBOX_TOKEN is not a token" in answer.output) == (1, True)
    assert "hünter2" not in answer.output


def test_what_is_typed_counts_for_more_than_the_environment(url: str) -> None:
    answer = outbox("dlq", "list", "--database-url", url, OUTBOX_URL="http://127.0.0.1:1/outbox")
    assert answer.output == "No open dead letters.\n"
    elsewhere = outbox("dlq", "list", "--url", "http://127.0.0.1:1/outbox", OUTBOX_DATABASE_URL=url)
    assert "cannot reach" in elsewhere.output
