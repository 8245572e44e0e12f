"""The wheel, installed alone, has everything that it needs."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import psycopg2
import pytest

from tests.support import eventually_sync

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this working copy."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel and what it requires, without extras."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", str(folder))
    programs = folder / "bin"
    run(str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    return programs


def bare_environment() -> dict[str, str]:
    """Nothing of the working copy, and no settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OUTBOX_", "PYTHON"))}


def run(*command: str, cwd: Path | None = None) -> str:
    environment = bare_environment()
    ended = subprocess.run(command, capture_output=True, text=True, cwd=cwd or Path("/"), env=environment, timeout=240)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_wheel_holds_the_library_with_its_sql_and_types_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"outbox"}
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "outbox").rglob("*") if path.suffix in {".py", ".sql", ".typed"}}
    assert ours <= set(names)


def test_the_wheel_installed_alone_migrates_and_relays(installed: Path, database_url: str, tmp_path: Path) -> None:
    outbox = str(installed / "outbox")
    packages = run(str(installed / "python"), "-m", "pip", "list", "--format", "freeze", "--disable-pip-version-check")
    assert "SQLAlchemy" not in packages
    run(outbox, "migrate", "--database-url", database_url)
    connection = psycopg2.connect(database_url)
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("insert into outbox_subscription (exchange, queue, binding_key) values ('outbox', 'mail', 'order.placed')")
    cursor.execute("insert into outbox_table (routing_key, body) values ('order.placed', 'hello')")
    settings = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_BROKER_URL": database_url, "OUTBOX_MONITORING_PORT": "0"}

    def delivered() -> bool:
        cursor.execute("select body from outbox_delivery where queue = 'mail'")
        return [bytes(body) for (body,) in cursor.fetchall()] == [b"hello"]

    log = tmp_path / "relay.log"
    with log.open("wb") as output:
        relay = subprocess.Popen([outbox, "relay"], cwd="/", env=bare_environment() | settings, stderr=output, stdout=output)
    try:
        eventually_sync(lambda: delivered() or relay.poll() is not None, timeout=20)
        assert delivered(), log.read_text()
        relay.terminate()
        assert relay.wait(timeout=20) == 0
    finally:
        relay.kill()
        connection.close()
