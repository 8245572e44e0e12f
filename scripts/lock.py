"""Pin the requirements of pyproject.toml in requirements/*.lock, or tell whether they are pinned as they stand.

    python scripts/lock.py            write the locks anew, with the newest allowed versions (needs uv)
    python scripts/lock.py --check    fail if pyproject.toml's requirements changed since the locks were written

Each lock names, in its first lines, a digest of the requirements that it was made from. Nothing but that is compared, so
that the check needs no network and a new release of a dependency fails nobody's build.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import setup

_ROOT = Path(__file__).resolve().parent.parent
_LOCKS = {
    "dev.lock": ("pyproject.toml", "--extra", "all", "--group", "dev", "--group", "docs"),
    "service.lock": ("pyproject.toml", "--extra", "service"),
    "node.lock": ("--group", "node"),
    "peers.lock": ("--group", "peers"),
    # What builds the wheel, read from standard input, in the versions that the tests build it with.
    "build.lock": ("-", "--constraint", "requirements/dev.lock"),
}


def main() -> int:
    """Write or check the locks; the exit status."""
    parser = argparse.ArgumentParser(description="Pin the requirements of pyproject.toml.")
    parser.add_argument("--check", action="store_true", help="only tell whether the locks fit pyproject.toml")
    return _check() if parser.parse_args().check else _write()


def _check() -> int:
    stale = [name for name in _LOCKS if _header() not in _read(name)]
    if stale:
        print(f"requirements/{', '.join(stale)} do not fit pyproject.toml: run `make lock` and commit the result")
        return 1
    print(f"{len(_LOCKS)} locks fit pyproject.toml")
    return 0


def _write() -> int:
    uv = shutil.which("uv")
    if uv is None:
        print("uv writes the locks and is not on the PATH: install it, for instance with `pip install uv`")
        return 1
    for name, selection in _LOCKS.items():
        print(f"lock: requirements/{name}", flush=True)
        _compile(uv, name, selection)
    return 0


def _compile(uv: str, name: str, selection: tuple[str, ...]) -> None:
    resolution = ("--universal", "--python-version", "3.11", "--generate-hashes", "--upgrade")
    # Where packages come from is each machine's own business; the hashes hold wherever that is.
    silence = ("--no-config", "--no-header", "--no-emit-index-url", "--no-emit-find-links", "--no-annotate", "--quiet")
    command = [uv, "pip", "compile", *selection, *resolution, *silence]
    backend = "\n".join(tomllib.loads((_ROOT / "pyproject.toml").read_text())["build-system"]["requires"])
    pinned = subprocess.run(
        command, cwd=_ROOT, env=setup.environment(), check=True, stdout=subprocess.PIPE, input=backend, text=True
    ).stdout
    (_ROOT / "requirements" / name).write_text(_header() + pinned)


def _header() -> str:
    return f"# Made from pyproject.toml by `make lock`; do not edit.\n# requirements: sha256:{_digest()}\n"


def _digest() -> str:
    """A digest of what pyproject.toml requires, whatever else it says."""
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
