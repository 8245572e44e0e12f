"""The programs of README, the tutorial and the cookbook run as they are printed, on real servers."""

import asyncio
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import httpx
import psycopg2
import pytest

from outbox import Reject, RetryAfter, ensure_outbox_schema_async
from outbox.testing import MemoryBroker, RecordingPublisher, work_off
from tests.support import RabbitAdmin
from tests.support.eventually import eventually_sync
from tests.support.processes import free_port

ROOT = Path(__file__).parent.parent
PROGRAM = re.compile(r"```python\n# (?P<name>\w+\.py)\n(?P<text>.*?)```", re.DOTALL)
README = (ROOT / "README.md").read_text()
TUTORIAL = (ROOT / "docs" / "getting-started.md").read_text()
COOKBOOK = (ROOT / "docs" / "cookbook.md").read_text()
LINK = re.compile(r"\]\((?!https?:)(?P<target>[^)#]+)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The programs, as files."""
    for match in PROGRAM.finditer(README + TUTORIAL + COOKBOOK):
        (tmp_path / match["name"]).write_text(match["text"])
    return tmp_path


def environment(**variables: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("OUTBOX_")}
    return ours | {"PYTHONPATH": str(ROOT)} | variables


@contextmanager
def started(folder: Path, *command: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A process, ended with SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
        print(output)
        process.output = output  # type: ignore[attr-defined]


def test_the_program_without_fastapi_and_rabbitmq_greets_until_its_end(folder: Path, database_url: str) -> None:
    with started(folder, "plain", DATABASE_URL=database_url) as program:
        assert program.stdout is not None
        assert "Hello Ada\n" in iter(program.stdout.readline, "")  # warnings may come before it
    assert program.returncode == 0


@pytest.mark.parametrize("broker", ["database_url", "broker_url"])
def test_the_complete_example_brings_an_event_from_a_route_to_a_letter(
    folder: Path, database_url: str, broker: str, request: pytest.FixtureRequest
) -> None:
    port = free_port()
    variables = {"DATABASE_URL": database_url}
    if broker == "broker_url":
        variables["BROKER_URL"] = request.getfixturevalue(broker)
    with started(folder, "uvicorn", "service:app", "--port", str(port), **variables):
        answer = eventually_sync(lambda: posted(f"http://127.0.0.1:{port}/users", {"name": "Ada"}), timeout=30)
        assert answer is not None
        assert answer.status_code == 201
        eventually_sync(lambda: execute(database_url, "select name from letters") == [("Ada",)], timeout=30)
        assert execute(database_url, "select name from users") == [("Ada",)]


def test_the_tutorial_brings_an_event_from_a_route_to_a_letter(
    folder: Path, database_url: str, broker_url: str, broker_admin: RabbitAdmin
) -> None:
    def all_bound() -> bool:
        return {binding["destination"] for binding in asyncio.run(broker_admin.bindings())} >= {"letters", "audit"}

    variables = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_BROKER_URL": broker_url, "OUTBOX_MONITORING_PORT": "0"}
    subprocess.run(
        [sys.executable, "-m", "outbox.cli", "migrate"], cwd=folder, env=environment(**variables), check=True, timeout=60
    )
    (tables,) = re.findall(r"^\$ psql \$OUTBOX_DATABASE_URL -c '(.*)'", TUTORIAL, re.MULTILINE)
    execute(database_url, tables)
    port = free_port()
    service = ("uvicorn", "shop:app", "--port", str(port))
    with (
        started(folder, "outbox.cli", "worker", "handlers:consumers", **variables) as worker,
        started(folder, *service, **variables),
    ):
        eventually_sync(all_bound, timeout=90)  # what is sent before that goes to the other queue only
        answer = eventually_sync(lambda: posted(f"http://127.0.0.1:{port}/users", {"name": "Ada"}))
        assert answer is not None
        assert answer.status_code == 201
        eventually_sync(lambda: execute(database_url, "select name from letters") == [("Ada",)])
        eventually_sync(lambda: execute(database_url, "select 1 from outbox_table") == [])
        time_limit = time.monotonic() + 60
        lines: list[str] = []
        while "user.welcomed" not in "".join(lines) and time.monotonic() < time_limit:
            assert worker.stdout is not None
            lines.append(worker.stdout.readline())
    assert 'user.created {"name":"Ada"}' in "".join(lines)
    assert 'user.welcomed {"name": "Ada", "attempts": 1}' in "".join(lines)


def test_the_service_is_refused_when_it_takes_its_session_without_the_scope(folder: Path, database_url: str) -> None:
    service = (folder / "service.py").read_text()
    assert service.count(', scope="function"') == 1
    (folder / "service.py").write_text(service.replace(', scope="function"', ""))
    variables = {"DATABASE_URL": database_url, "BROKER_URL": database_url}
    completed = subprocess.run(
        [sys.executable, "-m", "uvicorn", "service:app", "--port", str(free_port())],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert completed.returncode != 0
    assert "POST /users depends on get_session with no scope and scope=" in completed.stderr


def imported(folder: Path, name: str) -> ModuleType:
    """A program of a page as a module."""
    spec = importlib.util.spec_from_file_location(f"page_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_the_cookbook_s_plain_function_handles_messages(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broker, publisher = MemoryBroker(), RecordingPublisher()
    consumers = imported(folder, "reports").consumers
    await work_off(broker, consumers)
    await publisher.publish("report.requested", {"id": 7})
    await publisher.send_to(broker)
    await work_off(broker, consumers)
    assert capsys.readouterr().out == "report 7 is made\n"


async def test_the_cookbook_s_nightly_report_schedules_the_next_one_once(folder: Path, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    broker, publisher = MemoryBroker(), RecordingPublisher()
    consumers = imported(folder, "nightly").consumers
    await work_off(broker, consumers, db_engine_url=database_url)
    for _ in range(2):
        await publisher.publish("report.nightly", {})
    await publisher.send_to(broker)
    await work_off(broker, consumers, db_engine_url=database_url)
    assert execute(database_url, "select routing_key, send_after > now() from outbox_table") == [("report.nightly", True)]
    assert not broker.dead_letters("nightly")


@pytest.mark.parametrize(
    ("status", "headers", "outcome"), [(200, {}, None), (429, {"retry-after": "7"}, RetryAfter), (410, {}, Reject)]
)
async def test_the_cookbook_s_webhook_judges_what_is_answered(
    folder: Path, monkeypatch: pytest.MonkeyPatch, status: int, headers: dict[str, str], outcome: type[Exception] | None
) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(status, headers=headers, request=request))
    client = httpx.AsyncClient
    monkeypatch.setattr(httpx, "AsyncClient", lambda **options: client(transport=transport, **options))
    (notify,) = imported(folder, "webhooks").consumers
    handled = notify({"callback": "http://receiver.test/"})
    if outcome is None:
        await handled
    else:
        with pytest.raises(outcome):
            await handled


def posted(url: str, body: dict[str, str]) -> httpx.Response | None:
    try:
        return httpx.post(url, json=body, timeout=60)
    except httpx.TransportError:
        return None


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    connection = psycopg2.connect(url)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


@pytest.mark.parametrize(
    "page", sorted(path.relative_to(ROOT) for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]), ids=str
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text()
    missing = [match["target"] for match in LINK.finditer(text) if not (ROOT / page.parent / match["target"]).exists()]
    assert missing == []
