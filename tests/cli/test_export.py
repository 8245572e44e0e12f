"""`outbox export`: the same file over HTTP and from a database, complete or absent."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
from click.testing import CliRunner, Result

from outbox.admin.dlq.routes import list_dead_letters
from outbox.cli import main
from tests.admin.served import served
from tests.dead_letters.repairs import add_dead_letters

pytestmark = pytest.mark.usefixtures("no_settings_from_outside")
Run = Callable[..., Result]
LISTS = ("dlq", "messages", "audit", "operations")


@pytest.fixture
def url(database: str) -> str:
    """A database with all tables."""
    return database


@pytest.fixture(params=["directly", "over HTTP"])
def run(request: pytest.FixtureRequest, url: str) -> Iterator[Run]:
    """Runs a command on the database, or on a service that uses it."""
    with ExitStack() as stack:
        if request.param == "directly":
            environment = {"OUTBOX_DATABASE_URL": url}
        else:
            address = stack.enter_context(served(db_engine_url=url))
            environment = {"OUTBOX_URL": address, "OUTBOX_TOKEN": "operator"}
        yield lambda *arguments: CliRunner().invoke(main, ["export", *arguments], env=environment)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_a_list_is_exported_with_its_filter(run: Run, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 450, queue="mail"))
    on(lambda pool: add_dead_letters(pool, 2, queue="stock", routing_key='=1+1, "x"\nnext'))
    answer = run("dlq", "--queue", "mail", "--failed-after", "1h")
    assert answer.exit_code == 0, answer.output
    assert answer.stderr == ""
    rows = rows_of(answer.stdout)
    assert len(rows) == 450
    assert {row["queue"] for row in rows} == {"mail"}
    assert [row["id"] for row in rows] == [str(number) for number in range(450, 0, -1)]
    assert [row["id"] for row in rows_of(run("dlq", "--oldest", "--limit", "2").stdout)] == ["1", "2"]
    [first, *_] = rows_of(run("dlq", "--queue", "stock").stdout)
    assert first["routing_key"] == '\'=1+1, "x"\nnext'
    lines = run("dlq", "--format", "ndjson", "--queue", "stock").stdout.splitlines()
    assert [json.loads(line)["routing_key"] for line in lines] == ['=1+1, "x"\nnext'] * 2


def test_every_list_has_its_filters(run: Run, on: Any) -> None:
    on(lambda pool: pool.execute("insert into outbox_table (routing_key, body) values ('a', ''), ('b', '')"))
    on(
        lambda pool: pool.execute(
            "insert into outbox_audit (actor, role, action, target, outcome, details) "
            "values ('ann', 'operator', 'pause', 'mail', 'done', '{\"n\": 1}')"
        )
    )
    for name in LISTS:
        assert run(name).exit_code == 0
    assert [row["routing_key"] for row in rows_of(run("messages", "--state", "pending", "--routing-key", "a").stdout)] == ["a"]
    [entry] = rows_of(run("audit", "--actor", "ann", "--outcome", "done", "--created-after", "1h").stdout)
    assert json.loads(entry["details"]) == {"n": 1}
    for others in (["--actor", "bob"], ["--action", "resume"], ["--target", "stock"], ["--created-before", "1h"]):
        assert rows_of(run("audit", *others).stdout) == []
    assert rows_of(run("operations", "--active").stdout) == []


def test_an_export_that_reaches_its_limit_says_so(run: Run, on: Any) -> None:
    on(lambda pool: add_dead_letters(pool, 3, routing_key='two\r\n"lines"'))
    for format_ in ("csv", "ndjson"):
        for limit in (2, 3):
            cut = run("dlq", "--limit", str(limit), "--format", format_)
            assert cut.exit_code == 0
            assert cut.stderr == (
                f"outbox: stopped at the limit of {limit} items: raise --limit or narrow the filter for the rest\n"
            )
        assert run("dlq", "--limit", "4", "--format", format_).stderr == ""


def test_a_file_appears_only_when_it_is_complete(run: Run, on: Any, tmp_path: Path) -> None:
    on(lambda pool: add_dead_letters(pool, 3))
    file = tmp_path / "letters.csv"
    file.write_text("old")
    answer = run("dlq", "--output", str(file))
    assert (answer.exit_code, answer.output) == (0, "")
    assert len(rows_of(file.read_bytes().decode())) == 3
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_bytes() == run("dlq").stdout_bytes


def test_an_interrupted_export_leaves_no_file(run: Run, on: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(context: Any, wanted: Any) -> Any:
        if wanted.cursor is not None:
            raise asyncpg.PostgresConnectionError("gone")
        return await list_dead_letters(context, wanted)

    monkeypatch.setattr("outbox.admin.export.list_dead_letters", failing)
    on(lambda pool: add_dead_letters(pool, 201))
    file = tmp_path / "letters.csv"
    file.write_text("old")
    for output in (["--output", str(file)], []):
        answer = run("dlq", *output)
        assert answer.exit_code == 1
        assert "was cut off" in answer.stderr
        assert "Traceback" not in answer.output
        assert len(answer.stderr.splitlines()) == 1
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_failed_export_is_one_sentence(run: Run, tmp_path: Path) -> None:
    nowhere = run("dlq", "--output", str(tmp_path / "nowhere" / "letters.csv"))
    assert nowhere.exit_code == 1
    assert nowhere.output == f"outbox: cannot write {tmp_path / 'nowhere' / 'letters.csv'}: No such file or directory\n"
    assert run("dlq", "--output", str(tmp_path)).exit_code == 2
    device = run("dlq", "--output", "/dev/null")
    assert (device.exit_code, "is not a regular file" in device.output) == (1, True)
    refused = run("dlq", "--tracking-id", "a\0b", "--output", str(tmp_path / "letters.csv"))
    assert refused.exit_code == 1
    assert refused.output.startswith("outbox: invalid_request: ")
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_gets_text(run: Run, on: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    on(lambda pool: add_dead_letters(pool, 40, routing_key="€" * 300 + "\x1b[31m"))
    monkeypatch.setattr("outbox.cli.export.sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))
    text = run("dlq").stdout_bytes.decode()
    assert "\r" not in text
    assert text.count("€" * 300 + "\\u001b[31m,") == 40


def test_links_are_followed(run: Run, tmp_path: Path) -> None:
    file, link = tmp_path / "letters.csv", tmp_path / "link.csv"
    link.symlink_to(file)
    assert run("dlq", "--output", str(link)).exit_code == 0
    assert link.is_symlink()
    assert file.read_text().startswith("id,source,")


def test_a_viewer_cannot_export_the_audit_log(url: str, tmp_path: Path) -> None:
    with served(db_engine_url=url) as address:
        environment = {"OUTBOX_URL": address, "OUTBOX_TOKEN": "viewer"}
        refused = CliRunner().invoke(main, ["export", "audit", "--output", str(tmp_path / "audit.csv")], env=environment)
    assert refused.exit_code == 1
    assert refused.output.startswith("outbox: forbidden: ")
    assert list(tmp_path.iterdir()) == []
