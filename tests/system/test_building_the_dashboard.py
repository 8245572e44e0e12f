"""Building the dashboard, with programs that stand in for Node and npm: when it is done, and what is said where it fails."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow]
NODE = """#!/bin/sh
if [ "$1" = --version ]; then echo v20.19.0; exit; fi
echo "node $*" >> calls
{node}
mkdir -p ../.cache/dashboard/assets && echo page > ../.cache/dashboard/index.html
printf '%01000d' 0 > ../.cache/dashboard/assets/long.js
echo 0 > ../.cache/dashboard/assets/short.js
"""
NPM = """#!/bin/sh
echo "npm $1" >> calls
{npm}
mkdir -p node_modules && cp package-lock.json node_modules/.package-lock.json
"""
LOCK = {"packages": {"": {}, "node_modules/react": {"integrity": "a"}, "node_modules/elsewhere": {"optional": True}}}


class Project:
    """A working copy with sources of one line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        self.write("requirements/node.lock", "")
        self.write("frontend/package-lock.json", json.dumps(LOCK))
        self.write("frontend/src/main.tsx", "main()")
        self.has_programs()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def has_programs(self, *, node: str = "", npm: str = "") -> None:
        """Lets them do that first."""
        for name, text in (("node", NODE.format(node=node)), ("npm", NPM.format(npm=npm))):
            self.write(f"bin/{name}", text).chmod(0o755)

    def make(self, *arguments: str) -> tuple[int, str]:
        """Status and output."""
        path = f"{self.folder / 'bin'}:/usr/bin:/bin"
        command = [sys.executable, str(self.folder / "scripts/dashboard.py"), *arguments]
        ended = subprocess.run(
            command,
            env=os.environ | {"PATH": path, "PIP_NO_INDEX": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        return ended.returncode, ended.stdout

    @property
    def calls(self) -> list[str]:
        """What was run since the last question, by its first words."""
        path = self.folder / "frontend/calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [" ".join(line.split()[:3]) for line in lines]

    @property
    def page(self) -> Path:
        return self.folder / "outbox/admin/ui/static/index.html"


VITE = "node node_modules/vite/bin/vite.js build"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_it_is_done_step_by_step_and_then_in_no_time_until_something_changes(project: Project) -> None:
    status, output = project.make()
    assert (status, project.calls) == (0, ["npm ci", VITE])
    assert "[1/2] packages, pinned in frontend/package-lock.json (Node 20.19 of this machine)" in output
    assert "[2/2] pages (vite)" in output
    assert project.page.read_text() == "page\n"

    assert project.make() == (0, "dashboard: up to date\n")
    project.write("frontend/src/main.test.tsx", "a test is no source")
    assert project.make() == (0, "dashboard: up to date\n")
    assert project.calls == []

    project.write("frontend/src/main.tsx", "main('changed')")
    assert (project.make()[0], project.calls) == (0, [VITE])
    project.page.write_text("changed by hand")
    assert (project.make()[0], project.calls) == (0, [VITE])
    assert project.page.read_text() == "page\n"

    newer = {"packages": {**LOCK["packages"], "node_modules/react": {"integrity": "b"}}}
    project.write("frontend/package-lock.json", json.dumps(newer))
    assert (project.make()[0], project.calls) == (0, ["npm ci", VITE])


def test_files_get_a_compressed_copy_if_that_is_smaller(project: Project) -> None:
    assert project.make()[0] == 0
    assets = project.page.parent / "assets"
    assert {path.name for path in assets.iterdir()} == {"long.js", "long.js.gz", "short.js"}
    assert gzip.decompress((assets / "long.js.gz").read_bytes()) == (assets / "long.js").read_bytes()


def test_where_packages_cannot_be_fetched_it_says_so_and_what_can_be_done(project: Project) -> None:
    project.has_programs(npm="echo npm error code EAI_AGAIN; echo npm error syscall getaddrinfo; exit 1")
    status, output = project.make()
    assert status == 1
    assert output.splitlines()[-1] == (
        "dashboard: packages could not be downloaded, because the npm registry is unreachable (EAI_AGAIN): "
        "check the network, or set another registry with `npm config set registry ADDRESS`"
    )
    assert "Traceback" not in output
    assert "syscall" not in output


def test_the_service_starts_without_it_or_with_an_older_one(project: Project) -> None:
    project.has_programs(npm="echo npm error code EINTEGRITY; exit 1")
    status, output = project.make("--if-possible")
    assert status == 0
    assert "EINTEGRITY" in output
    assert output.endswith("dashboard: continuing without it; the API and the command line do not need it\n")

    project.has_programs()
    assert project.make()[0] == 0
    project.has_programs(node="echo 'main.tsx: an error'; exit 1")
    project.write("frontend/src/main.tsx", "main('wrong')")
    status, output = project.make("--if-possible")
    assert status == 0
    assert "main.tsx: an error" in output
    assert output.endswith("dashboard: continuing with the previous build\n")
    assert project.page.read_text() == "page\n"
    assert project.make()[0] == 1


def test_all_checks_run_and_the_output_of_failed_ones_is_shown(project: Project) -> None:
    project.has_programs(node='case "$1" in *tsc) echo "main.tsx: no such name"; exit 2;; *budget*) echo "1 kB"; exit;; esac')
    status, output = project.make("--check")
    assert status == 1
    assert "check: dashboard, types (tsc): failed\nmain.tsx: no such name\n" in output
    assert "check: dashboard, tests (vitest)\n" in output
    assert "check: dashboard, first load: 1 kB\n" in output


@pytest.mark.parametrize("version", ["v18.20.0", "v20.18.9", "v21.7.0", "v22.12.0", "no version"])
def test_a_node_that_is_too_old_is_not_used(project: Project, version: str) -> None:
    project.write("bin/node", f"#!/bin/sh\necho {version}\n").chmod(0o755)
    project.write("requirements/node.lock", "outbox-has-no-such-package==1 --hash=sha256:" + "0" * 64)
    status, output = project.make()
    assert (status, project.calls) == (1, [])
    assert "[1/3] Node from the wheel in requirements/node.lock" in output
    assert "Node 20.19, 22.13, 24 or newer, with npm, was not found, and its wheel could not be installed" in output
    assert "Traceback" not in output
