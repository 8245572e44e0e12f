"""Pin the requirements of pyproject.toml in requirements/*.lock, or check that the locks are up to date.

    python scripts/lock.py            rewrite the locks with the newest allowed versions
    python scripts/lock.py --check    fail if pyproject.toml's requirements changed since the locks were written

The header of each lock contains a digest of the requirements. The check compares only digests, so it needs no network and does
not fail when a dependency has a new release.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import setup

_ROOT = Path(__file__).resolve().parent.parent
_IMAGE = ("service", "kafka", "nats", "redis", "aws", "s3")
_LOCKS = {
    "dev.lock": ("pyproject.toml", "--extra", "all", "--group", "dev", "--group", "docs"),
    # Of the image, which relays to every broker that OUTBOX_BROKER_URL can name, and reads large bodies from S3.
    "service.lock": ("pyproject.toml", *(word for extra in _IMAGE for word in ("--extra", extra))),
    "node.lock": ("--group", "node"),
    "peers.lock": ("--group", "peers"),
    # The build backend, read from standard input, in the same versions as in the test environment.
    "build.lock": ("-", "--constraint", "requirements/dev.lock"),
}


def main() -> int:
    """Write or check the locks. Return the exit code."""
    parser = argparse.ArgumentParser(description="Pin the requirements of pyproject.toml.")
    parser.add_argument("--check", action="store_true", help="only check that the locks match pyproject.toml")
    return _check() if parser.parse_args().check else _write()


def _check() -> int:
    stale = [name for name in _LOCKS if _header() not in _read(name)]
    if stale:
        print(f"requirements/{', '.join(stale)} do not match pyproject.toml: run `make lock` and commit the result")
        return 1
    print(f"{len(_LOCKS)} locks match pyproject.toml")
    return 0


def _write() -> int:
    uv = setup.working_uv() or setup.working_uv(str(setup.VENV / "bin" / "uv"))
    if uv is None:
        print("uv is neither on the PATH nor in .venv: install it, for example with `pip install uv`")
        return 1
    for name, selection in _LOCKS.items():
        print(f"lock: requirements/{name}", flush=True)
        _compile(uv, name, selection)
    return 0


def _compile(uv: str, name: str, selection: tuple[str, ...]) -> None:
    resolution = ("--universal", "--python-version", "3.11", "--generate-hashes", "--upgrade")
    # Registries differ between machines, so the locks do not name one. The hashes verify packages from any registry.
    output = ("--no-config", "--no-header", "--no-emit-index-url", "--no-emit-find-links", "--no-annotate", "--quiet")
    command = [uv, "pip", "compile", *selection, *resolution, *output]
    backend = "\n".join(tomllib.loads((_ROOT / "pyproject.toml").read_text())["build-system"]["requires"])
    pinned = subprocess.run(
        command, cwd=_ROOT, env=setup.environment(), check=True, stdout=subprocess.PIPE, input=backend, text=True
    ).stdout
    (_ROOT / "requirements" / name).write_text(_header() + pinned)


def _header() -> str:
    return f"# Made from pyproject.toml by `make lock`; do not edit.\n# requirements: sha256:{_digest()}\n"


def _digest() -> str:
    """Returns a digest of the requirements in pyproject.toml."""
    pyproject = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    project = pyproject["project"]
    required = [
        project["requires-python"],
        project["dependencies"],
        project["optional-dependencies"],
        pyproject["dependency-groups"],
    ]
    return hashlib.sha256(json.dumps(required, sort_keys=True).encode()).hexdigest()


def _read(name: str) -> str:
    path = _ROOT / "requirements" / name
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
