"""Runs programs of another Debian release in a chroot, for versions that this machine does not have."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.servers import apt

_FOLDERS = Path("/var/cache/outbox-tests")
_SHARED = ("/dev", "/proc", "/sys")
"""Folders that the chroot shares with this machine, in addition to the temporary folder. `/dev` includes `/dev/shm`."""
_ENTER = """
root=$1 folder=$2; shift 2
for path in {paths}; do mkdir -p "$root$path"; mount --rbind "$path" "$root$path"; done
exec chroot "$root" sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
"""


class DebianRelease:
    """A release such as `trixie`, created by debootstrap from the mirror of this machine's apt. Requires root."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._folder = _FOLDERS / name

    def has(self, program: str) -> bool:
        """Whether the release is installed and contains the program at the absolute path."""
        return (self._folder / program.lstrip("/")).exists()

    def install(self, package: str) -> None:
        """Create the release if it is missing and install the package in it. On failure the session ends with the reason."""
        if not apt.can_install():
            pytest.exit(f"Debian {self._name} for tests requires root on Debian", returncode=1)
        if not self._folder.exists():
            self._make()
        # Debian would start the broker when its package is installed, but tests only need the programs.
        policy = self._folder / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        # Not every release has this file, and Erlang nodes resolve each other by name.
        (self._folder / "etc/hosts").write_text("127.0.0.1 localhost\n")
        for arguments in (("update",), ("install", "-y", "--no-install-recommends", package)):
            # Accepts outdated package lists, because the mirror of an old release is no longer updated.
            _run("chroot", self._folder, "apt-get", "-q", "-o", "Acquire::Check-Valid-Until=false", *arguments)

    def command(self, command: Sequence[str], *, folder: Path) -> list[str]:
        """Return the command line that runs a command of the release in a folder below the temporary folder.

        Each step replaces its process by the next one, so signals reach the program. It runs as root, because changing the user
        would reset the parent-death signal. The mounts are in a namespace that ends with the program.
        """
        script = _ENTER.format(paths=" ".join(dict.fromkeys((*_SHARED, tempfile.gettempdir()))))
        entering = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh"]
        return [*entering, str(self._folder), str(folder), *command]

    def _make(self) -> None:
        print(f"\nMaking Debian {self._name} in {self._folder} with debootstrap …", flush=True)
        if shutil.which("debootstrap") is None:
            apt.install("debootstrap", "It is required to create other releases of Debian.")
        unfinished = self._folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        _run("debootstrap", "--variant=minbase", self._name, unfinished, _mirror())
        unfinished.rename(self._folder)


def _mirror() -> str:
    """Return the Debian mirror of this machine's apt."""
    targets = _run("apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages").splitlines()
    for target in targets:
        label, _, address = target.partition(" ")
        if label == "Debian":
            return address
    pytest.exit("apt-get knows no mirror of Debian: run apt-get update", returncode=1)


def _run(*command: str | Path) -> str:
    finished = subprocess.run(
        command,
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if finished.returncode != 0:
        pytest.exit(f"{command[0]} failed: {finished.stdout[-1500:]}", returncode=1)
    return finished.stdout
