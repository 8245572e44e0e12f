"""The way from a fresh machine to .venv, and the list of targets that documents it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.kafka import HAS_CLIENT

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()


def make(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environment |= {"PATH": path} if path else {}
    return subprocess.run(
        [shutil.which("make") or "make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what setting up reads, so that this clone's own .venv is left alone."""
    for path in ("Makefile", "pyproject.toml", "scripts", "requirements"):
        source = ROOT / path
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / path)
    return tmp_path


@pytest.fixture
def stub_python(tmp_path: Path) -> str:
    """A Python for the setup whose environments are made at once. Their pip installs nothing but uv, which is a stub, too."""
    stub = tmp_path / "stub"
    stub.write_text(STUB)
    stub.chmod(0o755)
    return pretending(tmp_path / "stub-python", f'sys.executable = "{stub}"')


STUB = """#!/bin/sh
case "$*" in
    "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip config list") echo "$PIP_CONFIG" ;;
    *uv.lock)
        grep -q "^uv==" .venv/uv.lock && printf '#!/bin/sh\\ntest "$1" = --version || exit $UV_EXITS_WITH\\n' > .venv/bin/uv
        chmod +x .venv/bin/uv ;;
    *) exit 1 ;;
esac
"""


def set_up(
    project: Path, *, python: str = sys.executable, path: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the setup with a PATH of our choice."""
    command = [python, str(project / "scripts" / "setup.py")]
    return subprocess.run(
        command, cwd=project, env={"PATH": path or os.defpath} | variables, capture_output=True, text=True, timeout=60
    )


def pretending(path: Path, pretence: str = 'sys.modules["ensurepip"] = None') -> str:
    """Make a Python that executes `pretence` before a script, and return its path."""
    code = f'import runpy, sys; {pretence}; sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name="__main__")'
    path.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$@\"\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("arguments", [(), ("help",)])
def test_help_lists_every_target_with_what_it_does(arguments: tuple[str, ...]) -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, flags=re.MULTILINE))
    described = dict(re.findall(r"^  ([a-z-]+) +(\S.*)$", make(*arguments).stdout, flags=re.MULTILINE))
    assert targets == described.keys()
    assert targets >= {
        "setup",
        "run",
        "test",
        "test-unit",
        "test-fast",
        "check",
        "bench",
        "bench-peers",
        "migrate",
        "chaos",
        "lock",
        "format",
        "docs",
    }
    declared_phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)
    assert declared_phony is not None
    assert set(declared_phony.group(1).split()) == targets


@pytest.mark.parametrize(
    "target", ["run", "test", "test-unit", "test-fast", "check", "chaos", "bench", "bench-peers", "migrate"]
)
def test_what_needs_the_environment_begins_with_setup(target: str) -> None:
    assert re.search(rf"^{target}: setup ", MAKEFILE, flags=re.MULTILINE)


def test_the_locks_fit_pyproject_and_name_no_place_to_get_packages_from() -> None:
    checked = subprocess.run([sys.executable, "scripts/lock.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    for lock in (ROOT / "requirements").glob("*.lock"):
        assert not re.search(r"https?:|file:|--(extra-)?index|--find-links", lock.read_text())


def test_a_changed_requirement_makes_the_locks_stale(project: Path) -> None:
    pyproject = project / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace('"click>=8.1"', '"click>=8.2"'))
    checked = subprocess.run([sys.executable, project / "scripts" / "lock.py", "--check"], capture_output=True, text=True)
    assert checked.returncode == 1
    assert "run `make lock`" in checked.stdout


def test_every_locked_requirement_has_a_hash() -> None:
    for lock in (ROOT / "requirements").glob("*.lock"):
        blocks = re.split(r"\n(?=[a-z0-9])", lock.read_text())[1:]
        assert blocks
        assert all("--hash=sha256:" in block for block in blocks)


def test_without_the_module_venv_the_message_names_what_to_install(project: Path, tmp_path: Path) -> None:
    done = set_up(project, python=pretending(tmp_path / "crippled"))
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr


@pytest.mark.parametrize(
    ("version", "message"),
    [((3, 9, 2), "Python 3.11 or newer is required"), ((3, 16, 0), "the newest that the locked packages support is 3.15")],
)
def test_with_another_python_the_message_names_what_is_needed(
    project: Path, tmp_path: Path, version: tuple[int, ...], message: str
) -> None:
    done = set_up(project, python=pretending(tmp_path / "other", f"sys.version_info = {version}"))
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.parametrize(
    ("newest", "taken"), [("(3, 15, 0)", "python3.14"), ("(3, 16, 0)", "python3.14"), ("(3, 13, 1)", "python3")]
)
def test_make_takes_the_first_python_that_fits(project: Path, tmp_path: Path, newest: str, taken: str) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    pretending(programs / "python3", f"sys.version_info = {newest}")
    pretending(programs / "python3.14", "sys.version_info = (3, 14, 0)")
    command = [shutil.which("make") or "make", "--dry-run", "setup"]
    done = subprocess.run(command, cwd=project, env={"PATH": f"{programs}:{os.defpath}"}, capture_output=True, text=True)
    assert done.stdout == f"{taken} scripts/setup.py\n"


def test_a_placeholder_for_uv_is_not_taken_for_uv(project: Path, tmp_path: Path, stub_python: str) -> None:
    placeholders = tmp_path / "placeholders"
    placeholders.mkdir()
    (placeholders / "uv").write_text("#!/bin/sh\nexit 127\n")
    (placeholders / "uv").chmod(0o755)
    (project / "requirements" / "dev.lock").write_text("nonsense that pip refuses\n")
    done = set_up(project, python=stub_python, path=f"{placeholders}:{os.defpath}")
    assert done.returncode == 1
    assert "(venv)" in done.stdout
    assert "the dependencies could not be installed" in done.stderr


def test_a_uv_that_fails_is_replaced_by_pip(project: Path, tmp_path: Path, stub_python: str) -> None:
    uv = fake_uv(tmp_path, 'test "$1" = venv && exec mkdir -p .venv; echo "invalid peer certificate" >&2; exit 2')
    (project / "requirements" / "dev.lock").write_text("# nothing\n")
    done = set_up(project, python=stub_python, path=f"{uv}:{os.defpath}")
    assert re.findall(r"\((uv|venv|pip)\)", done.stdout) == ["uv", "uv", "venv", "pip"]
    assert "setup: uv failed (see above): retrying with pip" in done.stdout
    assert "invalid peer certificate" in done.stderr
    assert "setup: the dependencies could not be installed" in done.stderr, "with pip, which installs nothing here"


@pytest.mark.parametrize(("chosen", "expected"), [({}, "true true"), ({"UV_SYSTEM_CERTS": "false"}, "false false")])
def test_uv_uses_the_certificates_of_the_system_unless_configured_otherwise(
    project: Path, tmp_path: Path, stub_python: str, chosen: dict[str, str], expected: str
) -> None:
    uv = fake_uv(tmp_path, f'echo "$UV_SYSTEM_CERTS $UV_NATIVE_TLS" > {tmp_path}/seen; exit 2')
    (project / "requirements" / "dev.lock").write_text("nonsense that pip refuses\n")
    set_up(project, python=stub_python, path=f"{uv}:{os.defpath}", **chosen)
    assert (tmp_path / "seen").read_text().strip() == expected


@pytest.mark.parametrize(
    ("uv_exits_with", "pip_config", "used"),
    [
        ("0", "global.extra-index-url='https://second.invalid'", ["venv", "uv"]),
        ("2", "", ["venv", "uv", "pip"]),
        ("0", ":env:.index-url='https://own.invalid'", ["venv", "pip"]),
    ],
    ids=["works", "fails", "own-registry"],
)
def test_the_locked_uv_installs_the_rest_unless_only_pip_knows_the_registry(
    project: Path, stub_python: str, uv_exits_with: str, pip_config: str, used: list[str]
) -> None:
    done = set_up(project, python=stub_python, UV_EXITS_WITH=uv_exits_with, PIP_CONFIG=pip_config)
    assert re.findall(r"\((uv|venv|pip)\)", done.stdout) == used
    assert ("retrying with pip" in done.stdout) == (uv_exits_with != "0")
    assert (done.returncode == 0) == (used[-1] == "uv"), "this pip installs nothing but uv"


def test_packages_without_a_wheel_for_this_python_are_left_out(project: Path, tmp_path: Path, stub_python: str) -> None:
    newest = pretending(Path(f"{stub_python}-3.15"), f'sys.version_info = (3, 15, 0); sys.executable = "{tmp_path}/stub"')
    done = set_up(project, python=newest, UV_EXITS_WITH="0")
    assert done.returncode == 0
    assert "continuing without confluent-kafka: no wheel for Python 3.15 yet" in done.stdout
    installed = (project / ".venv" / "dev.lock").read_text()
    assert "\nconfluent-kafka==" not in installed
    assert "\nembedded-postgres==" in installed


def test_tests_of_kafka_are_left_out_only_where_its_client_is() -> None:
    command = [sys.executable, "-c", "import setup; print(*setup.left_out())"]
    done = subprocess.run(command, cwd=ROOT / "scripts", capture_output=True, text=True, check=True)
    assert ("confluent-kafka" in done.stdout.split()) == (not HAS_CLIENT)


def fake_uv(folder: Path, script: str) -> Path:
    """A folder with a `uv` that says its version, and otherwise runs the script."""
    (folder / "uv").write_text(f'#!/bin/sh\ntest "$1" = --version && exit 0\n{script}\n')
    (folder / "uv").chmod(0o755)
    return folder


def test_a_setup_that_is_up_to_date_does_nothing(project: Path) -> None:
    """The stamp is the one that a finished setup leaves."""
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "python").touch()
    printed = subprocess.run(
        [sys.executable, "-c", "import setup; print(setup._fingerprint())"],
        cwd=project / "scripts",
        capture_output=True,
        text=True,
        check=True,
    )
    (project / ".venv" / ".outbox-setup").write_text(printed.stdout.strip())
    done = set_up(project)
    assert (done.returncode, done.stdout) == (0, "setup: .venv is up to date\n")
