"""The packages have everything that they need, the dashboard included: installed alone, and built from each other."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import psycopg2
import pytest

from tests.support import eventually_sync
from tests.support.dashboard import build_dashboard
from tests.support.processes import free_port

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source distribution of this working copy."""
    build_dashboard()
    wheel, sdist = [build(ROOT, target, tmp_path_factory.mktemp(target)) for target in ("wheel", "sdist")]
    return wheel, sdist


@pytest.fixture(scope="module")
def wheel(packages: tuple[Path, Path]) -> Path:
    """The wheel of this working copy."""
    return packages[0]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel and what it requires, without extras."""
    return environment(tmp_path_factory.mktemp("environment"), str(wheel))


@pytest.fixture(scope="module")
def with_fastapi(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with what the admin requires, and a server."""
    return environment(tmp_path_factory.mktemp("environment"), f"{wheel}[fastapi]", "uvicorn")


@pytest.fixture
def sources(packages: tuple[Path, Path], tmp_path: Path) -> Path:
    """The source distribution of this working copy, unpacked."""
    with tarfile.open(packages[1]) as packed:
        # Before 3.11.4 there is no filter; the archive is ours.
        filtered: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        packed.extractall(tmp_path, **filtered)
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    return unpacked


def environment(folder: Path, *requirements: str) -> Path:
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    python = str(folder / "bin" / "python")
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-config", "--python", python, *requirements]
    trusted = {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true"}  # as in scripts/setup.py
    if subprocess.run(uv, env=bare_environment() | trusted, capture_output=True, timeout=240).returncode != 0:
        # The registry may be known to pip alone. Where uv made the working copy's environment, that has no pip.
        pip = ("-m", "pip", "--python", python, "--disable-pip-version-check", "install", "--quiet", "--no-compile")
        run(sys.executable, *pip, *requirements)
    return folder / "bin"


def build(project: Path, target: str, folder: Path) -> Path:
    """A package, built where there is no Node."""
    run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder), cwd=project, PATH="/nowhere")
    (built,) = (path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz")))
    return built


def bare_environment() -> dict[str, str]:
    """Nothing of the working copy, and no settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OUTBOX_", "PYTHON"))}


def run(*command: str, cwd: Path | None = None, **variables: str) -> str:
    environment = bare_environment() | variables
    ended = subprocess.run(command, capture_output=True, text=True, cwd=cwd or Path("/"), env=environment, timeout=240)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_wheel_holds_the_library_with_its_sql_and_types_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"outbox"}
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "outbox").rglob("*") if path.suffix in {".py", ".sql", ".typed"}}
    assert ours <= set(names)


HOST = """
from fastapi import FastAPI
from outbox.admin import Admin, admin_router

app = FastAPI()
app.include_router(admin_router(Admin("postgresql://user@127.0.0.1:1/none")), prefix="/a/b/outbox")
"""
MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
STATIC = "outbox/admin/ui/static/"


@contextmanager
def hosted(programs: Path, folder: Path) -> Iterator[httpx.Client]:
    """A host application in that environment, and a client of its dashboard."""
    (folder / "host.py").write_text(HOST)
    port, log = free_port(), folder / "host.log"
    command = [str(programs / "uvicorn"), "host:app", "--app-dir", str(folder), "--port", str(port)]
    with log.open("wb") as output, httpx.Client(base_url=f"http://127.0.0.1:{port}/a/b/outbox/ui/", timeout=60) as client:
        host = subprocess.Popen(command, cwd="/", env=bare_environment(), stdout=output, stderr=output)
        try:
            eventually_sync(lambda: b"Uvicorn running" in log.read_bytes() or host.poll() is not None, timeout=60)
            assert host.poll() is None, log.read_text()
            yield client
        finally:
            host.terminate()
            host.wait(timeout=60)


def test_the_dashboard_of_the_wheel_is_served_whole_by_a_host_application(
    wheel: Path, with_fastapi: Path, tmp_path: Path
) -> None:
    packed = zipfile.ZipFile(wheel)
    files = {name.removeprefix(STATIC): packed.read(name) for name in packed.namelist() if name.startswith(STATIC)}
    chunks = json.loads(files[".vite/manifest.json"]).values()
    of_the_chunks = {name for chunk in chunks for name in (chunk["file"], *chunk.get("css", ()), *chunk.get("assets", ()))}
    with hosted(with_fastapi, tmp_path) as client:
        page = client.get("chains/17")
        assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
        assert "../" in addresses(page.text, "base")
        named = addresses(page.text, "script") | addresses(page.text, "link")
        of_the_page = {urljoin("/", name).removeprefix("/") for name in named}
        assert of_the_page & of_the_chunks
        served = of_the_page | of_the_chunks
        compressed = {name for name in files if name.endswith(".gz")}
        assert served == files.keys() - compressed - {"index.html", "build.json", "inter-OFL.txt", ".vite/manifest.json"}
        assert {f"{name}.gz" for name in served if len(files[name]) > 1000 and not name.endswith(".woff2")} <= compressed
        for name in served:
            answer = client.get(name)
            assert (answer.status_code, answer.content) == (200, files[name]), name
            assert answer.headers["content-type"] == MEDIA_TYPES[Path(name).suffix]
            assert ("immutable" in answer.headers["cache-control"]) == name.startswith("assets/")


def test_a_wheel_built_from_the_source_distribution_is_the_same_wheel(wheel: Path, sources: Path, tmp_path: Path) -> None:
    assert (sources / "frontend/src/main.tsx").exists()
    assert not (sources / "frontend/node_modules").exists()
    same = build(sources, "wheel", tmp_path / "again")
    assert contents(same) == contents(wheel)


@pytest.mark.parametrize(
    ("spoiled", "problem"),
    [
        (STATIC, "was not built"),
        (f"{STATIC}index.html", "was changed since it was built"),
        ("frontend/src/main.tsx", "is older than its sources"),
    ],
)
def test_no_package_is_built_with_another_dashboard_than_that_of_its_sources(
    sources: Path, tmp_path: Path, spoiled: str, problem: str
) -> None:
    path = sources / spoiled
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.write_text("spoiled")
    for target in ("wheel", "sdist"):
        with pytest.raises(AssertionError, match=f"the dashboard {problem}.*run `make dashboard` first"):
            build(sources, target, tmp_path / target)
    build(sources, "wheel:editable", tmp_path / "editable")


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def addresses(page: str, element: str) -> set[str]:
    """What the elements of that name in the page lead to."""
    return set(re.findall(rf'<{element} [^>]*?(?:src|href)="([^"]*)"', page))


def test_the_wheel_installed_alone_migrates_and_relays(installed: Path, database_url: str, tmp_path: Path) -> None:
    outbox = str(installed / "outbox")
    names = "from importlib.metadata import distributions; print(*(each.name for each in distributions()))"
    packages = run(str(installed / "python"), "-c", names).split()
    assert "asyncpg" in packages
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
        eventually_sync(lambda: delivered() or relay.poll() is not None)
        assert delivered(), log.read_text()
        relay.terminate()
        assert relay.wait(timeout=60) == 0
    finally:
        relay.kill()
        connection.close()
