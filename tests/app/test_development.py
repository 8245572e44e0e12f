"""`python -m app` without settings, like `make run`: start, links, shutdown, and recovery after a kill."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import pytest

from app.__main__ import suggested_command
from outbox.admin import Role
from outbox.admin.principals import new_token
from tests.app.support import Service, queues_are_bound
from tests.support import eventually_sync
from tests.support.dashboard import build_dashboard
from tests.support.processes import OurProcess, free_port, running

pytestmark = [pytest.mark.slow]

EVERYTHING = ["-m", "app"]
UP = "Press Ctrl-C to stop."


@pytest.fixture(scope="module", autouse=True)
def _dashboard() -> None:
    build_dashboard()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def settings(data_dir: Path) -> dict[str, str]:
    return {"OUTBOX_DATA_DIR": str(data_dir)}


@contextmanager
def everything(folder: Path, settings: dict[str, str], *, name: str = "app") -> Iterator[Service]:
    with running(EVERYTHING, folder, settings, name=name) as process:
        process.says(UP, timeout=60)
        link = next(line.split()[-1] for line in process.output.splitlines() if line.startswith("  Service"))
        service = Service(process, link)
        service.is_ready()
        queues_are_bound(process, settings)
        yield service


def postgres_processes(data_dir: Path) -> list[str]:
    """Returns the command lines of processes of the data folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                folder = str((entry / "cwd").readlink())
            except OSError:
                continue
            if "app" not in command and (str(data_dir) in command or folder.startswith(str(data_dir))):
                found.append(command)
    return found


def test_it_starts_without_settings_and_confirms_an_order(tmp_path: Path, settings: dict[str, str], data_dir: Path) -> None:
    with everything(tmp_path, settings) as service:
        service.ends_as(service.place(), "confirmed")
        output = service.process.output
        assert str(data_dir) in output, "the folder of the data is printed"
        links = [line for line in output.splitlines() if "http://" in line]
        assert links[0].split()[0] == "Dashboard", "the dashboard's link comes first"
        topics = [line.split()[0] for line in output.splitlines() if line.startswith("  ") and line.split()]
        order = [topics.index(topic) for topic in ("Database", "Data", "Tables", "Broker", "Running", "Dashboard", "Service")]
        assert order == sorted(order)


def test_the_first_link_is_the_dashboards_and_logs_in(tmp_path: Path, settings: dict[str, str]) -> None:
    with everything(tmp_path, settings) as service:
        link = next(line.split()[-1] for line in service.process.output.splitlines() if "http://" in line)
        page, _, token = link.partition("#token=")
        assert page == f"{service.url}/outbox/ui/"
        front_door = service.get("/", follow_redirects=True)
        assert (str(front_door.url), front_door.text) == (page, service.get("/outbox/ui/").text)
        assert httpx.post(f"{service.url}/outbox/session", json={"token": token}, timeout=60).json()["role"] == "admin"
        assert service.process.output.count(token) == 2, "it is in the link and in what can be typed, and in no log"


def test_the_link_contains_no_token_if_tokens_are_configured(tmp_path: Path, settings: dict[str, str]) -> None:
    _, entry = new_token("alice", Role.OPERATOR)
    with everything(tmp_path, settings | {"OUTBOX_ADMIN_TOKENS": str(entry)}) as service:
        assert f"  Dashboard {service.url}/outbox/ui/\n" in service.process.output
        assert "#token" not in service.process.output
        assert "OUTBOX_TOKEN" not in service.process.output


def test_its_output_fits_into_80_columns(tmp_path: Path) -> None:
    settings = {"OUTBOX_LOG_LEVEL": "WARNING", "OUTBOX_DATA_DIR": str(tmp_path / "d")}
    with everything(tmp_path, settings) as service:
        lines = [line.replace(str(tmp_path / "d"), ".data/postgres") for line in service.process.output.splitlines()]
        assert [line for line in lines if len(line) > 80 and "#token=" not in line] == []


def test_it_suggests_no_order_if_the_api_does_not_run(tmp_path: Path, settings: dict[str, str]) -> None:
    with everything(tmp_path, settings | {"OUTBOX_RUN": "relay,worker"}) as service:
        assert service.get("/orders/6b1d0000-0000-0000-0000-000000000000").status_code == 404
        assert "curl" not in service.process.output
        assert "Dashboard" not in service.process.output
        assert service.get("/").headers["location"] == "./docs"
        assert "demo" not in service.process.output


def test_the_suggested_command_works_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv/bin/python"))
    assert suggested_command() == ".venv/bin/outbox"
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    assert suggested_command() == "outbox"


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_stops_everything(times: int, tmp_path: Path, settings: dict[str, str], data_dir: Path) -> None:
    with everything(tmp_path, settings) as service:
        assert postgres_processes(data_dir)
        for _ in range(times):
            service.process.send(signal.SIGINT)
        assert service.process.wait(60) == 0
        assert "Stopped." in service.process.output
        assert "Traceback" not in service.process.output
    eventually_sync(lambda: not postgres_processes(data_dir))


def test_sigterm_stops_everything(tmp_path: Path, settings: dict[str, str], data_dir: Path) -> None:
    with everything(tmp_path, settings) as service:
        service.process.send(signal.SIGTERM)
        service.process.wait(60)
        assert "Traceback" not in service.process.output
    eventually_sync(lambda: not postgres_processes(data_dir))


def test_ctrl_c_during_startup_stops_everything(tmp_path: Path, settings: dict[str, str], data_dir: Path) -> None:
    with running(EVERYTHING, tmp_path, settings) as process:
        process.says("embedded PostgreSQL")
        process.send(signal.SIGINT)
        assert process.wait(60) == 0
        assert "Traceback" not in process.output
    eventually_sync(lambda: not postgres_processes(data_dir))


def test_after_a_kill_the_next_start_cleans_up_and_data_survives(
    tmp_path: Path, settings: dict[str, str], data_dir: Path
) -> None:
    with everything(tmp_path, settings) as service:
        order = service.place()
        service.ends_as(order, "confirmed")
        service.process.send(signal.SIGKILL)
        service.process.wait()
    with everything(tmp_path, settings, name="again") as service:
        assert service.order(order)["status"] == "confirmed"
        service.ends_as(service.place(), "confirmed")
        service.process.send(signal.SIGINT)
        service.process.wait(60)
    eventually_sync(lambda: not postgres_processes(data_dir))


def test_a_second_instance_on_the_same_data_folder_fails_with_a_sentence(tmp_path: Path, settings: dict[str, str]) -> None:
    with everything(tmp_path, settings) as service:
        with running(EVERYTHING, tmp_path, settings, name="second") as second:
            assert second.wait() == 1
            assert "Traceback" not in second.output
            assert "is taken" in second.output
            assert "choose another folder with OUTBOX_DATA_DIR" in second.output
            assert sum("outbox: " in line for line in second.output.splitlines()) == 1
        service.ends_as(service.place(), "confirmed")


def test_a_taken_port_is_avoided_or_reported_if_it_was_configured(tmp_path: Path, settings: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        asked = settings | {"OUTBOX_HTTP_PORT": str(taken.getsockname()[1])}
        with running(EVERYTHING, tmp_path, asked) as process:
            assert process.wait() == 1
            assert "set OUTBOX_HTTP_PORT to another port" in process.output
            assert "Traceback" not in process.output


# --- uvicorn app:main --------------------------------------------------------------------------------------------------


def _uvicorn(folder: Path, settings: dict[str, str], port: int) -> AbstractContextManager[OurProcess]:
    return running(["-m", "uvicorn", "app:main", "--port", str(port)], folder, settings)


def test_uvicorn_app_main_does_the_same(tmp_path: Path, settings: dict[str, str], data_dir: Path) -> None:
    port = free_port()
    with _uvicorn(tmp_path, settings, port) as process:
        service = Service(process, f"http://127.0.0.1:{port}")
        process.says("Uvicorn running on", timeout=60)
        service.is_ready()
        queues_are_bound(process, settings)
        service.ends_as(service.place(), "confirmed")
        process.send(signal.SIGTERM)
        process.wait(60)
        assert "Traceback" not in process.output
    eventually_sync(lambda: not postgres_processes(data_dir))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"OUTBOX_DATABSE_URL": "postgresql://db/x"}, "OUTBOX_DATABSE_URL is not a setting, did you mean OUTBOX_DATABASE_URL?"),
        ({"OUTBOX_LANES": "many"}, "OUTBOX_LANES: "),
        ({"OUTBOX_DATABASE_URL": "postgresql://db/x", "OUTBOX_DATA_DIR": "/x"}, "unset one of them"),
        ({"OUTBOX_DATABASE_URL": "postgresql://db/x", "OUTBOX_CONSUMERS": "no.such:thing"}, "no module named no"),
        (
            {"OUTBOX_DATABASE_URL": "postgresql://ada:hunter2@127.0.0.1:1/x", "OUTBOX_MIGRATE": "true"},
            "connecting to the database",
        ),
    ],
)
def test_a_failed_start_is_one_sentence(settings: dict[str, str], sentence: str, tmp_path: Path) -> None:
    with _uvicorn(tmp_path, settings, free_port()) as process:
        assert process.wait() != 0
        assert sentence in process.output
        assert "Traceback" not in process.output
        assert "hunter2" not in process.output


def test_importing_app_needs_no_environment_and_is_cheap() -> None:
    program = (
        "import sys, app\n"
        "assert not {'fastapi', 'sqlalchemy', 'pydantic'} & set(sys.modules), 'importing app is not cheap'\n"
        "assert callable(app.main)\n"
        "assert app.main is app.main\n"
        "assert 'app.main' not in sys.modules\n"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OUTBOX_")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
