"""What people and services do that a command cannot use is answered with a sentence, and Ctrl-C is obeyed at once."""

import asyncio
import os
import pty
import select
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from outbox.admin.repairs.models import OperationResponse
from outbox.cli.client import Client
from outbox.cli.dlq.operations import Progress, conclude
from outbox.dead_letters import DeadLetterFilter, DeadLetters, Operation
from outbox.postgres.pool import Pool
from tests.admin.support import outbox
from tests.dead_letters.repairs import add_dead_letters, operation, statuses

pytestmark = pytest.mark.usefixtures("no_settings_from_outside")
On = Callable[[Callable[[Pool], Awaitable[Any]]], Any]
PLACES = pytest.mark.parametrize(
    "place",
    [["--database-url", "postgresql://ada@127.0.0.1:1/x"], ["--url", "http://127.0.0.1:1/outbox"]],
    ids=["directly", "http"],
)
ANSWERS = {
    "/plain": (b"ok", "text/plain"),
    "/empty": (b"", "application/json"),
    "/list": (b"[]", "application/json"),
    "/other": (b'{"status": "ok"}', "application/json"),
}


class _Stranger(BaseHTTPRequestHandler):
    """Answers everything, and is no admin."""

    def do_GET(self) -> None:
        body, kind = ANSWERS["/" + self.path.split("/")[1]]
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815  so the base class looks for it

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
        """Says nothing."""


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    """The address of a server that is no admin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Stranger) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("arguments", ["requeue 1", "backlog", "operations", "operations 3", "dlq list"])
@pytest.mark.parametrize("path", ANSWERS)
def test_what_answers_and_is_no_admin_is_a_sentence(stranger: str, path: str, arguments: str) -> None:
    answer = outbox(*arguments.split(), "--url", stranger + path)
    assert (answer.exit_code, len(answer.output.splitlines())) == (1, 1), answer.exception
    assert f"{stranger}{path} is not an Outbox admin API" in answer.output


@PLACES
@pytest.mark.parametrize("arguments", [["requeue", "1", "--reason"], ["requeue"], ["dlq", "list", "--queue"]])
def test_arguments_that_are_no_text_are_refused(place: list[str], arguments: list[str]) -> None:
    answer = outbox(*arguments, os.fsdecode(b"caf\xe9"), *place)
    assert (answer.exit_code, "is not UTF-8" in answer.output) == (2, True), answer.exception


@PLACES
@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1e999}', "[" * 100_000, "{", "[]", b"\xff", r'{"a": "\ud800"}'])
def test_headers_that_are_no_json_are_refused(place: list[str], tmp_path: Path, text: str | bytes) -> None:
    file = tmp_path / "headers.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    answer = outbox("requeue", "1", "--version", "1", "--headers", str(file), *place)
    assert (answer.exit_code, "--headers" in answer.output) == (2, True), answer.exception


@pytest.mark.parametrize("text", ["{", "", '{"a": NaN}', '{"a": 1e999}', "[" * 100_000, r'{"a": "\ud800"}', b"\xff"])
def test_a_body_that_is_no_json_is_refused_from_a_file_named_so_and_octets_otherwise(
    url: str, tmp_path: Path, text: str | bytes
) -> None:
    for name in ("body.json", "body"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    publish, place = ("messages", "publish", "order.placed", "--body"), ("--database-url", url)
    answer = outbox(*publish, str(tmp_path / "body.json"), *place)
    assert (answer.exit_code, "body.json is not JSON" in answer.output) == (2, True), answer.exception
    answer = outbox(*publish, str(tmp_path / "body"), *place)
    assert (answer.exit_code, "as application/octet-stream" in answer.output) == (0, True), answer.exception
    assert '"content_type": "application/octet-stream"' in outbox("messages", "--json", *place).output


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_json_body_is_published_as_it_is_in_the_file(url: str, on: On, tmp_path: Path, encoding: str) -> None:
    text = '{ "price": 1.10, "rate": 0.12345678901234567890,\n  "é": 1e-7, "id": 9007199254740993 }\n'
    (tmp_path / "body.json").write_bytes(text.encode(encoding))
    answer = outbox("messages", "publish", "order.placed", "--body", str(tmp_path / "body.json"), "--database-url", url)
    assert (answer.exit_code, "octet-stream" in answer.output) == (0, False), answer.output
    [row] = on(lambda pool: pool.fetch("select body, content_type from outbox_table"))
    assert tuple(row) == (text.encode(), "application/json")


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_of_dots_is_no_other_address(url: str, on: On, name: str) -> None:
    bind = "insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', $1, 'k')"
    on(lambda pool: pool.execute(bind, name))
    assert f'"name": "{name}"' in outbox("queues", name, "--json", "--database-url", url).output
    assert f"the outbox has no row {name!r}" in outbox("messages", "show", name, "--database-url", url).output


@PLACES
@pytest.mark.parametrize("command", [["operations"], ["dlq", "pause"], ["dlq", "resume"], ["dlq", "cancel"]])
def test_a_number_that_no_operation_can_have_is_refused(place: list[str], command: list[str]) -> None:
    answer = outbox(*command, str(2**63), *place)
    assert answer.exit_code == 2
    assert "is not in the range" in answer.output


def test_ctrl_c_ends_the_question_at_once_and_nothing_is_done(url: str, on: On) -> None:
    on(lambda pool: add_dead_letters(pool, 3))
    with _terminal(["requeue", "--all"], {"OUTBOX_DATABASE_URL": url}) as (until, write):
        assert until(b"anything else to cancel")
        write(b"\x03")
        if not until(b"Aborted!", 5):  # it came in the moment between the question and its reading: people press again
            write(b"\x03")
            assert until(b"Aborted!")
    assert on(statuses) == ["open"] * 3


def test_following_an_operation_that_is_paused_ends_with_a_note_that_it_is_not_done(url: str, on: On) -> None:
    async def paused(pool: Pool) -> Operation:
        await add_dead_letters(pool, 3)
        async with DeadLetters(url) as dead_letters:
            created = operation(await dead_letters.requeue(DeadLetterFilter()))
            return await dead_letters.pause(created.id)

    answer = OperationResponse.of(on(paused)).model_dump(mode="json")
    asks_nothing = cast("Client", None)
    assert asyncio.run(conclude(asks_nothing, answer, as_json=False)) == 1


def test_progress_in_a_terminal_is_a_bar(
    url: str,
    on: On,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def begun(pool: Pool) -> Operation:
        await add_dead_letters(pool, 1_000)
        async with DeadLetters(url) as dead_letters:
            created = operation(await dead_letters.requeue(DeadLetterFilter()))
            await (await dead_letters.runner()).run_once()
            found = await dead_letters.operation(created.id)
            assert found is not None
            return found

    found = on(begun)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    Progress(quiet=False).show(OperationResponse.of(found).model_dump(mode="json"))
    shown = capsys.readouterr().err
    assert f"[{'#' * 12}{'.' * 12}]  50%" in shown
    assert "500 of 1,000" in shown


Until = Callable[..., bool]
IN_ITS_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "outbox.cli", *sys.argv[1:]])
"""


@contextmanager
def _terminal(arguments: list[str], settings: dict[str, str]) -> Iterator[tuple[Until, Callable[[bytes], Any]]]:
    """A command in a terminal of its own: waits until it has said something, and types."""
    # Not `pty.fork`, which the threads of other tests may leave in a deadlock.
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", IN_ITS_TERMINAL, *arguments],
        env=os.environ | settings,
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        start_new_session=True,
    )
    os.close(other_end)
    said = b""

    def until(words: bytes, seconds: float = 90) -> bool:
        nonlocal said
        ends = time.monotonic() + seconds
        while words not in said and time.monotonic() < ends:
            if select.select([terminal], [], [], 0.5)[0]:
                try:
                    said += os.read(terminal, 4_096)
                except OSError:  # it has ended
                    break
        return words in said

    try:
        yield until, lambda typed: os.write(terminal, typed)
    finally:
        os.close(terminal)
        process.kill()
        process.wait()
