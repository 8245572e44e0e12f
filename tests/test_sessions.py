"""A test session leaves nothing running and nothing on disk, however it ends."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers.session_folder import processes_in, session_folder
from tests.support import eventually_sync

ROOT = Path(__file__).resolve().parent.parent

SESSION = """
import sys, time
from pathlib import Path

def test_it(request):
    for name in {fixtures}:
        request.getfixturevalue(name)
    print("FOLDER", request.getfixturevalue("servers_folder"), file=sys.__stderr__, flush=True)
    time.sleep(60)
"""


StartSession = Callable[..., tuple["subprocess.Popen[str]", Path]]
"""Starts pytest on one test that holds the named fixtures."""


@pytest.fixture
def session_with(tmp_path: Path) -> Iterator[StartSession]:
    """Start pytest on one test that holds the named fixtures, and return it with its servers' folder."""
    started: list[subprocess.Popen[str]] = []

    def start(*fixtures: str) -> tuple[subprocess.Popen[str], Path]:
        (tmp_path / "test_held.py").write_text(SESSION.format(fixtures=fixtures))
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "tests.conftest"]
        process = subprocess.Popen(
            [*command, "--rootdir", str(tmp_path), "-c", "/dev/null", str(tmp_path / "test_held.py")],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("FOLDER"))
        return process, Path(line.split()[1])

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.rabbitmq
def test_an_interrupted_session_ends_its_servers_and_removes_their_data(session_with: StartSession) -> None:
    session, folder = session_with("database_url", "broker_url", "own_postgres")
    assert len(processes_in(folder)) > 2
    session.send_signal(signal.SIGINT)
    session.wait(60)
    assert processes_in(folder) == []
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.rabbitmq
def test_a_killed_session_ends_its_servers_and_the_next_one_removes_their_data(session_with: StartSession) -> None:
    session, folder = session_with("database_url", "broker_url")
    session.kill()
    eventually_sync(lambda: processes_in(folder) == [])
    with session_folder():
        # Another session on this machine may be removing it just now.
        eventually_sync(lambda: not folder.exists())


def test_the_folder_of_a_living_session_is_left_alone(servers_folder: Path) -> None:
    with session_folder() as other:
        assert other != servers_folder
        assert servers_folder.exists()


def test_what_still_works_in_an_abandoned_folder_is_killed() -> None:
    abandoned = Path(tempfile.mkdtemp(prefix="outbox-tests-"))
    with subprocess.Popen(["sleep", "60"], cwd=abandoned) as leftover:
        with session_folder():
            assert not abandoned.exists()
        assert leftover.wait(60) == -signal.SIGKILL
    assert os.path.lexists(abandoned) is False
