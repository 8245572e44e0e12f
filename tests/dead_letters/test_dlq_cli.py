"""`outbox dlq`: output, confirmations, errors, and JSON for scripts."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from outbox.cli import main
from tests.dead_letters.repairs import add_dead_letters, add_fact, outbox, park, statuses
from tests.support import eventually_sync
from tests.support.processes import running

T = TypeVar("T")
Dlq = Callable[..., Result]
AGO = re.compile(r"\d+ (s|min) ago|\bnow\b")


@pytest.fixture
def url(database: str) -> str:
    """A database with every table."""
    return database


@pytest.fixture
def dlq(url: str, no_settings_from_outside: None, monkeypatch: pytest.MonkeyPatch) -> Dlq:
    """Runs `outbox dlq …` on the test's database, in this process."""
    monkeypatch.setenv("OUTBOX_DATABASE_URL", url)

    def run(*arguments: str, typed: bytes | None = None) -> Result:
        return CliRunner().invoke(main, ["dlq", *arguments], input=typed)

    return run


def lines(result: Result) -> list[str]:
    """Printed lines, with times replaced."""
    return [AGO.sub("AGO", line).replace("  AGO", " AGO") for line in result.output.splitlines()]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_operation_ends_the_command_if_its_role_may_not_change_dead_letters(
    url: str, dlq: Dlq, on: Any, options: tuple[str, ...]
) -> None:
    on(lambda pool: add_dead_letters(pool, 2))
    role = f"reader_of_{urlsplit(url).path[1:]}"
    on(
        lambda pool: pool.execute(
            f"create role {role} login password 'secret'; grant all on all tables in schema public to {role}; "
            f"grant all on all sequences in schema public to {role}; revoke update on outbox_dead_letter from {role}"
        )
    )
    try:
        as_role = urlsplit(url)._replace(netloc=f"{role}:secret@{url.rpartition('@')[2].partition('/')[0]}").geturl()
        answer = dlq("requeue", "--queue", "orders.confirm", "--yes", "--database-url", as_role, *options)
        assert answer.exit_code == 1
        assert "permission denied for table outbox_dead_letter: operation 1 waits for maintenance" in answer.output
        listed = dlq("requeue", "1", "--database-url", as_role, *options)
        assert listed.exit_code == 1
        assert "permission denied for table outbox_dead_letter: grant the privilege to the role" in listed.output
    finally:
        on(lambda pool: pool.execute(f"drop owned by {role}; drop role {role}"))
    assert on(statuses) == ["open", "open"]


def test_the_list_is_printed_in_columns(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 2, exception_type="shop.errors.NoStock"))
    on(lambda pool: park(pool, last_error="Nacked: too\nlarge"))
    answer = dlq("list", "--oldest")
    assert answer.exit_code == 0
    heading, *rows = answer.output.splitlines()
    assert heading.split() == ["ID", "STATUS", "FAILED", "FAILURES", "QUEUE", "ROUTING", "KEY", "ERROR"]
    where = heading.index("QUEUE")
    assert [row[where:].split()[0] for row in rows[:3]] == ["orders.confirm", "orders.confirm", "-"]
    assert rows[0].startswith("1         open")
    assert rows[2].startswith("outbox-1  open")
    assert rows[0].endswith("shop.errors.NoStock: no such order")
    assert rows[2].endswith("Nacked: too large")
    assert rows[-1] == "3 dead letters."
    # The filter takes the type as the list prints it.
    assert dlq("list", "--exception", "shop.errors.NoStock").output.splitlines()[-1] == "2 dead letters."


def test_a_long_routing_key_is_cut_in_a_terminal_and_whole_in_a_pipe(url: str, dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, routing_key="k" * 255))
    output, _ = in_terminal(url, ["list"], "")
    assert f"  {'k' * 59}…  ValueError: no such" in output
    assert f"  {'k' * 255}  ValueError: no such order" in dlq("list").output


def test_an_empty_list_says_so(dlq: Dlq, on: Any) -> None:
    assert dlq("list").output == "No open dead letters.\n"
    assert dlq("list", "--queue", "x").output == "No open dead letters match the filter.\n"
    assert dlq("groups").output == "No open dead letters.\n"
    assert dlq("operations").output == "No operations.\n"


FILTERS: list[tuple[list[str], list[str]]] = [
    ([], ["1", "2", "3"]),
    (["--queue", "other"], ["3"]),
    (["--exception", "KeyError"], ["3"]),
    (["--group", "f1"], ["1", "2"]),
    (["--source", "broker"], []),
    (["--status", "discarded"], []),
    (["--message-id", "m2"], ["2"]),
    (["--destination", "kafka"], []),
    (["--tracking-id", "root", "--routing-key", "order.placed", "--min-failures", "5"], ["1", "2", "3"]),
    (["--failed-after", "1h"], ["1", "2", "3"]),
    (["--failed-before", "2020-01-31"], []),
    (["--failed-before", "2020-01-31T12:00Z"], []),
]


def test_each_filter_is_a_flag(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 2))
    on(lambda pool: add_dead_letters(pool, queue="other", exception_type="KeyError", fingerprint="f2"))
    for arguments, ids in FILTERS:
        answer = dlq("list", "--json", "--oldest", *arguments)
        assert [letter["id"] for letter in json.loads(answer.output)["items"]] == ids, arguments


def test_a_dead_letter_of_a_relay_is_shown_with_its_destination(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, source="relay", destination="kafka"))
    assert "destination   kafka" in dlq("show", "1").output
    assert [letter["id"] for letter in json.loads(dlq("list", "--json", "--destination", "kafka").output)["items"]] == ["1"]


def test_a_dead_letter_is_shown_completely_and_masked(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, body=b'{"id": 7, "password": "hunter2"}', headers='{"authorization": "abc"}'))
    answer = dlq("show", "1")
    assert answer.exit_code == 0
    assert "Dead letter 1, open, dead-lettered by the worker" in answer.output
    assert "chain         root → m1" in answer.output
    assert '"password": "***"' in answer.output
    assert '"authorization": "***"' in answer.output
    assert "hunter2" not in answer.output
    assert "hunter2" not in dlq("show", "1", "--json").output
    [line], whole = json.loads(dlq("list", "--json").output)["items"], json.loads(dlq("show", "1", "--json").output)
    assert line["error"] == {"type": "ValueError", "message": "no such order", "traceback": None}
    assert line["error"] | {"traceback": whole["error"]["traceback"]} == whole["error"]
    assert "hunter2" in dlq("show", "1", "--reveal").output
    assert dlq("show", "1", "--body").stdout_bytes == b'{"id": 7, "password": "hunter2"}'


def test_revealing_masked_values_is_audited_or_refused(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, body=b'{"password": "hunter2"}'))
    dlq("show", "1")
    dlq("show", "1", "--reveal")
    dlq("show", "1", "--body")
    written = on(lambda pool: pool.fetch("select action, target from outbox_audit where actor like 'cli:%' order by id"))
    assert [tuple(entry) for entry in written] == [("dlq.reveal", "1"), ("dlq.download", "1")]
    on(lambda pool: pool.execute("drop table outbox_audit"))
    for how in ("--reveal", "--body"):
        answer = dlq("show", "1", how)
        assert answer.exit_code == 1
        assert "hunter2" not in answer.output


def test_keys_that_the_installation_configures_are_masked(
    dlq: Dlq, on: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTBOX_MASK_KEYS", "shoe size")
    secret, edited = b'{"shoe_size": "gigantic"}', tmp_path / "body.json"
    edited.write_bytes(secret)
    on(lambda pool: add_dead_letters(pool, 2, body=secret, exception_message="shoe_size=gigantic", preview="?"))
    on(lambda pool: park(pool, body=secret, last_error="Nacked: shoe_size=gigantic"))
    for arguments in (["list"], ["list", "--json"], ["groups"], ["show", "1"], ["show", "outbox-1", "--json"]):
        answer = dlq(*arguments)
        assert answer.exit_code == 0
        assert "gigantic" not in answer.output, arguments
    assert dlq("requeue", "1", "--body", str(edited), "--version", "1").exit_code == 0
    assert "gigantic" not in dlq("list", "--json", "--status", "requeued").output


def test_control_sequences_are_not_printed(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, body=b"\x1b[2Jgone", exception_message="\x1b]0;title\x07no"))
    for command in (["list"], ["show", "1"], ["groups"]):
        assert "\x1b" not in dlq(*command).output


def test_a_missing_dead_letter_is_an_error_in_one_sentence(dlq: Dlq) -> None:
    for id_ in ("17", "outbox-17", "nonsense"):
        answer = dlq("show", id_)
        assert answer.exit_code == 1
        assert answer.output == f"outbox: no dead letter {id_}: it was purged or sent, or never existed\n"


def test_groups_are_counted(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 3))
    on(lambda pool: add_dead_letters(pool, queue="other", exception_type="KeyError", fingerprint="f2"))
    by_error = dlq("groups").output.splitlines()
    assert by_error[0].split() == ["GROUP", "STATUS", "QUEUE", "COUNT", "FIRST", "LAST", "REQUEUED", "SINCE", "ERROR"]
    assert [row.split()[:4] for row in by_error[1:]] == [["f1", "open", "orders.confirm", "3"], ["f2", "open", "other", "1"]]
    assert [row.split()[0] for row in dlq("groups", "--by", "queue").output.splitlines()] == [
        "QUEUE",
        "orders.confirm",
        "other",
    ]


def test_a_group_is_shown_and_marked(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 3, service_version="1.4"))
    assert "  dead letters  3, 3 open" in dlq("group", "f1").output.splitlines()
    assert [line.split()[:2] for line in lines(dlq("group", "f1"))[-1:]] == [["1.4", "3"]]
    assert lines(dlq("mark", "f1", "fixed", "--in", "1.5")) == ["f1 marked as fixed."]
    assert "fixed: marked as fixed in 1.5 by" in dlq("group", "f1").output
    assert lines(dlq("groups", "--group-status", "open")) == ["No open dead letters."]
    assert lines(dlq("groups", "--group-status", "fixed"))[1].split()[:2] == ["f1", "fixed"]
    assert lines(dlq("mark", "f1", "muted", "--above", "2")) == ["f1 marked as muted."]
    assert "reopened: marked as muted up to 2 open by" in dlq("group", "f1").output
    assert lines(dlq("mark", "f1", "open")) == ["Mark of f1 removed."]
    refused, missing = dlq("mark", "f1", "muted"), dlq("group", "f9")
    assert (refused.exit_code, missing.exit_code) == (1, 1)
    assert "give muted_above with the status muted, and only then" in refused.output
    assert "no group f9" in missing.output


def test_ids_are_changed_at_once_with_an_outcome_for_each(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 2))
    answer = dlq("requeue", "1", "9", "--reason", "fixed", "--by", "ada")
    assert answer.exit_code == 1
    assert lines(answer) == [
        "ID  OUTCOME    REASON",
        "1   requeued",
        "9   not found  no such dead letter: it was purged or sent, or never existed",
        "",
        "1 requeued, 1 not found.",
    ]
    again = dlq("requeue", "1")
    assert (again.exit_code, lines(again)[1]) == (0, "1   skipped  already requeued")
    assert dlq("discard", "2").exit_code == 0
    assert dlq("restore", "2", "--json").exit_code == 0
    assert on(statuses) == ["requeued", "open"]


def test_what_was_skipped_and_is_not_done_is_a_failure(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 3))
    assert dlq("discard", "1").exit_code == 0
    again, requeued = dlq("discard", "1"), dlq("requeue", "1")
    assert (again.exit_code, lines(again)[1]) == (0, "1   skipped  already discarded")
    assert (requeued.exit_code, lines(requeued)[1]) == (1, "1   skipped  already discarded")
    later = dlq("requeue", "2", "--at", "2h")
    assert (later.exit_code, re.fullmatch(r"Operation 1 starts at .{25}: 1 pending\.\n", later.output) is not None) == (0, True)
    busy, all_others = dlq("discard", "2"), dlq("discard", "--all", "--yes")
    assert (busy.exit_code, lines(busy)[1]) == (1, "2   skipped  in operation 1")
    assert (all_others.exit_code, "1 discarded, 1 skipped." in all_others.output) == (1, True)


def test_a_failure_among_many_skipped_is_not_overlooked(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 202))
    ids = [str(number) for number in range(1, 203)]
    assert dlq("discard", *ids[:201]).exit_code == 0
    assert dlq("requeue", ids[201], "--at", "2h").exit_code == 0
    again, all_of_them = dlq("discard", *ids[:201]), dlq("discard", *ids)
    assert (again.exit_code, "201 skipped." in again.output) == (0, True)
    assert (all_of_them.exit_code, "202 skipped." in all_of_them.output) == (1, True)


def test_scripts_get_json(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 2))
    assert json.loads(dlq("requeue", "1", "--json").stdout) == {
        "action": "requeue",
        "counts": {"requeued": 1},
        "items": [{"id": "1", "outcome": "requeued", "reason": "", "done_already": False}],
    }
    done = json.loads(dlq("requeue", "--all", "--yes", "--json").stdout)
    assert (done["id"], done["state"], done["item_count"], done["counts"]) == ("1", "finished", 1, {"requeued": 1})
    assert [operation["id"] for operation in json.loads(dlq("operations", "--json").stdout)["items"]] == ["1"]
    assert json.loads(dlq("operations", "1", "--outcome", "requeued", "--json").stdout)["items"] == [
        {
            "id": "2",
            "outcome": "requeued",
            "reason": "",
            "done_already": False,
            "position": 1,
            "result": "waiting",
            "failed_attempt_count": 0,
        }
    ]


def test_a_dry_run_says_what_would_be_done_and_does_nothing(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 3, ordering_key="order-7"))
    on(lambda pool: add_dead_letters(pool, queue="gone", subscribed=False))
    on(lambda pool: pool.execute("update outbox_dead_letter set created_at = now() - interval '40 days' where id < 3"))
    on(lambda pool: pool.execute("insert into outbox_table (routing_key, body, ordering_key) values ('a', '', 'order-7')"))
    answer = dlq("requeue", "--all", "--dry-run")
    assert answer.exit_code == 0
    printed = answer.output.splitlines()
    assert printed[0] == "Requeue of 4 dead letters"
    assert printed[1].split("queues")[1].strip() == "orders.confirm (3), gone (1)"
    assert printed[-3:] == [
        "warning  2 will be refused: they are older than the deduplication window (use --force to requeue them)",
        "warning  3 share an ordering key with waiting messages, and will be sent after those",
        "warning  1 will be refused: the queue gone does not exist in PostgreSQL",
    ]
    assert json.loads(dlq("requeue", "--all", "--dry-run", "--json").output)["count"] == 4
    assert on(statuses) == ["open"] * 4


def test_a_dry_run_of_an_edit_shows_the_new_body_masked(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, body=b'{"id": 7}'))
    edit = "--body", "-", "--version", "1"
    answer = dlq("requeue", "1", *edit, "--dry-run", typed=b'{"id": 8, "password": "hunter2"}')
    assert answer.output.splitlines()[-1].endswith('{"id": 8, "password": "***"}')
    [item] = json.loads(dlq("requeue", "1", *edit, "--dry-run", "--json", typed=b"\xff\xfe").output)["sample"]
    assert item["size"] == 2


def test_an_action_by_filter_needs_a_confirmation(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 2))
    for arguments in (["requeue", "--group", "f1"], ["discard", "--all"], ["purge", "1", "--force", "--reason", "old"]):
        answer = dlq(*arguments)
        assert answer.exit_code == 2
        assert "review it with --dry-run, then add --yes" in answer.output
    assert on(statuses) == ["open", "open"]


@pytest.mark.parametrize(("typed", "code", "status"), [("2", 0, "requeued"), ("y", 1, "open"), ("", 1, "open")])
def test_in_a_terminal_the_count_has_to_be_typed(url: str, on: Any, typed: str, code: int, status: str) -> None:
    on(lambda pool: add_dead_letters(pool, 2))
    output, exit_code = in_terminal(url, ["requeue", "--group", "f1"], typed)
    assert "Type 2 to requeue them, anything else to cancel:" in output
    assert exit_code == code
    assert on(statuses) == [status, status]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["requeue"], "nothing selected: give ids such as 17 or outbox-17, a filter such as --group, or --all"),
        (["requeue", "1", "--queue", "x"], "select dead letters by ids or by a filter, not both"),
        (["discard", "--all", "--queue", "x"], "--all cannot be combined"),
        (["requeue", "1", "--to-queue", "x", "--original-routing"], "use one of them"),
        (["requeue", "1", "--body", __file__], "--body and --headers require --version"),
        (["requeue", "1", "2", "--body", __file__, "--version", "1"], "require exactly one id"),
        (["requeue", "1", "--headers", __file__, "--version", "1"], "--headers is not JSON"),
        (["requeue", "1", "--version", "1"], "--version requires --body or --headers"),
        (["requeue", "1", "--at", "2020-01-31T22:00Z"], "--at has passed: leave it out to start now"),
        (["list", "--failed-after", "yesterday"], "'yesterday' is not a time: write 2030-01-31"),
        (["requeue", "1", "--rate", "0"], "--rate"),
        (["list", "--limit", "0"], "--limit"),
    ],
)
def test_invalid_arguments_are_reported_before_the_database_is_read(arguments: list[str], sentence: str) -> None:
    answer = CliRunner().invoke(main, ["dlq", *arguments, "--database-url", "postgresql://127.0.0.1:1/nowhere"])
    assert answer.exit_code == 2
    assert sentence in " ".join(answer.output.split())


def test_an_edited_body_is_sent_and_the_old_one_kept_by_the_command(dlq: Dlq, on: Any, tmp_path: Path) -> None:
    on(add_dead_letters)
    body = tmp_path / "body.json"
    body.write_bytes(dlq("show", "1", "--body").stdout_bytes.replace(b"7", b"8"))
    assert dlq("requeue", "1", "--body", str(body), "--version", "1").exit_code == 0
    assert [row["body"] for row in on(outbox)] == [b'{"id": 8}']
    assert "2, 1 replaced by edits" in dlq("show", "1").output
    stale = dlq("requeue", "1", "--body", "-", "--version", "1", typed=b"{}")
    assert (stale.exit_code, "already requeued: the edit was not applied" in stale.output) == (1, True), stale.output


def test_operations_are_shown_paused_and_cancelled(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 3))
    started = dlq("requeue", "--group", "f1", "--yes", "--detach", "--reason", "fixed", "--by", "ada")
    assert started.exit_code == 0
    assert started.output.splitlines()[0] == "Operation 1 is running: 3 pending."
    assert dlq("pause", "1").output == "Operation 1 is paused: 3 pending.\n"
    row = dlq("operations", "--active").output.splitlines()[1].split()
    assert (row[:3], row[-8:]) == (["1", "requeue", "paused"], ["3", "3", "0", "0", "0", "0", "cli:ada", "fixed"])
    assert dlq("resume", "1").stdout == "Operation 1 is finished: 3 requeued.\nOf 3 requeued messages, 3 are waiting.\n"
    assert dlq("cancel", "1").output == "outbox: conflict: operation 1 is finished and cannot be cancelled\n"
    assert dlq("cancel", "7").output == "outbox: not_found: there is no operation 7\n"
    shown = dlq("operations", "1").output
    assert "reason        fixed" in shown
    assert "dead letters  group_id f1, status open" in shown or "dead letters  status open, group_id f1" in shown
    on(lambda pool: add_fact(pool, "processed", "m1"))
    on(lambda pool: add_fact(pool, "retried", "m2", error="token=abc was refused"))
    assert lines(dlq("operations", "1"))[1] == "Of 3 requeued messages, 1 is handled, 1 is waiting, 1 is being retried."
    assert dlq("operations").output.splitlines()[1].split()[-8:-2] == ["3", "0", "3", "1", "1", "0"]
    assert [line.split(maxsplit=3) for line in lines(dlq("operations", "1", "--outcome", "requeued"))[-3:]] == [
        ["1", "requeued", "handled"],
        ["2", "requeued", "retrying", "ValueError: token=*** was refused"],
        ["3", "requeued", "waiting"],
    ]


def test_lists_that_end_at_the_limit_say_so(dlq: Dlq, on: Any) -> None:
    for group in ("f1", "f2"):
        on(lambda pool, group=group: add_dead_letters(pool, 2, queue=group, fingerprint=group))
        dlq("discard", "--group", group, "--yes", "--detach")
        dlq("cancel", group[1])
    more = "1 shown: raise --limit to see more."
    assert "1 shown: raise --limit or narrow the filter to see more." in dlq("groups", "--limit", "1").output
    assert more in dlq("operations", "--limit", "1").output
    assert more in dlq("operations", "1", "--limit", "1").output
    assert not [name for name in ("groups", "operations") if "shown" in dlq(name, "--limit", "2").output]
    assert "shown" not in dlq("operations", "1", "--limit", "2").output


def test_a_stopped_operation_is_a_failure(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 3))
    dlq("requeue", "--all", "--yes", "--detach")
    assert dlq("cancel", "1").exit_code == 0
    on(lambda pool: add_dead_letters(pool, queue="gone", subscribed=False))
    refused = dlq("requeue", "--queue", "gone", "--yes")
    assert refused.exit_code == 1
    assert refused.stdout.splitlines() == [
        "Operation 2 is finished: 1 refused.",
        "`outbox dlq operations 2` shows the reasons.",
    ]
    assert "4   refused  -       the queue gone does not exist in PostgreSQL" in dlq("operations", "2").output


def test_ctrl_c_leaves_an_operation_running_and_another_command_continues_it(url: str, on: Any, tmp_path: Path) -> None:
    on(lambda pool: add_dead_letters(pool, 100))
    arguments = ["-m", "outbox.cli", "dlq", "requeue", "--all", "--yes", "--rate", "20"]
    with running(arguments, tmp_path, {"OUTBOX_DATABASE_URL": url}) as process:
        process.says("Operation 1: requeue of 100 dead letters.")
        eventually_sync(lambda: on(outbox))
        process.send(signal.SIGINT)
        assert process.wait() == 1
    assert "Operation 1 is still running" in process.output
    assert "Traceback" not in process.output
    sent = len(on(outbox))
    assert 0 < sent < 100
    on(lambda pool: pool.execute("update outbox_operation set options = options - 'rate', continue_at = now()"))
    with running(["-m", "outbox.cli", "dlq", "resume", "1"], tmp_path, {"OUTBOX_DATABASE_URL": url}) as process:
        assert process.wait() == 0
    assert "Operation 1 is finished: 100 requeued." in process.output
    assert len(on(outbox)) == 100


@pytest.mark.usefixtures("no_settings_from_outside")
def test_missing_tables_and_a_database_that_is_away_are_errors_in_one_sentence(database_url: str) -> None:
    run = CliRunner().invoke
    assert "no database and no service configured" in run(main, ["dlq", "list"]).output
    empty = run(main, ["dlq", "requeue", "1", "--database-url", database_url])
    assert (empty.exit_code, "run `outbox migrate`" in empty.output) == (1, True)
    away = run(main, ["dlq", "requeue", "1", "--database-url", "postgresql://ada:hunter2@127.0.0.1:1/x"])
    assert away.exit_code == 1
    assert "hunter2" not in away.output
    assert len(away.output.splitlines()) == 1


def in_terminal(url: str, arguments: list[str], typed: str) -> tuple[str, int]:
    """Runs the command in a terminal with typed input; returns its output and exit code."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OUTBOX_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "outbox.cli", "dlq", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment | {"OUTBOX_DATABASE_URL": url, "COLUMNS": "100"},
    )
    os.close(theirs)
    os.write(ours, f"{typed}\n".encode())
    output = b""
    while chunk := _read(ours):
        output += chunk
    os.close(ours)
    return output.decode(), process.wait(60)


def _read(terminal: int) -> bytes:
    """Reads the next output; empty at the end, which a terminal reports as an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def test_a_filter_that_matches_nothing_records_no_operation(dlq: Dlq, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 1))
    for command in ("requeue", "discard"):
        answer = dlq(command, "--queue", "none", "--yes")
        assert (answer.exit_code, answer.stdout) == (0, "No dead letter matches. Nothing was changed.\n")
    assert json.loads(dlq("discard", "--queue", "none", "--yes", "--json").stdout)["count"] == 0
    assert dlq("operations").stdout == "No operations.\n"
