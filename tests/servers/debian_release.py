"""Programs of another Debian release, in a folder of their own: versions that this machine does not have."""

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
"""What programs inside share with this machine, besides the folder for temporary files. `/dev` includes `/dev/shm`."""
_ENTER = """
root=$1 folder=$2; shift 2
for path in {paths}; do mkdir -p "$root$path"; mount --rbind "$path" "$root$path"; done
exec chroot "$root" sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
"""


class DebianRelease:
    """One release, such as `trixie`, made with debootstrap from the mirror that this machine's apt uses. For root only."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._folder = _FOLDERS / name

    def has(self, program: str) -> bool:
        """Whether the release is there with a program, named by its absolute path."""
        return (self._folder / program.lstrip("/")).exists()

    def install(self, package: str) -> None:
        """Make the release if it is missing, and install the package in it; otherwise the session ends with the reason."""
        if not apt.can_install():
            pytest.exit(f"Debian {self._name} for tests can be made by root on Debian only", returncode=1)
        if not self._folder.exists():
            self._make()
        # Debian starts a broker when its package is installed; we only want the programs.
        policy = self._folder / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        # Not every release comes with it, and Erlang's nodes look each other up by name.
        (self._folder / "etc/hosts").write_text("127.0.0.1 localhost\n")
        for arguments in (("update",), ("install", "-y", "--no-install-recommends", package)):
            # Signed lists of a mirror that stands still are good enough for tests, however old.
            _run("chroot", self._folder, "apt-get", "-q", "-o", "Acquire::Check-Valid-Until=false", *arguments)

    def command(self, command: Sequence[str], *, folder: Path) -> list[str]:
        """What runs a command of the release, in a folder of this machine that lies under the one for temporary files.

        Every step becomes the next one, so signals reach the program. It runs as root: to change the user would undo that
        the kernel ends it with its supervisor. The mounts are in a namespace that ends with it, too.
        """
        script = _ENTER.format(paths=" ".join(dict.fromkeys((*_SHARED, tempfile.gettempdir()))))
        entering = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh"]
        return [*entering, str(self._folder), str(folder), *command]

    def _make(self) -> None:
        print(f"\nMaking Debian {self._name} in {self._folder} with debootstrap …", flush=True)
        if shutil.which("debootstrap") is None:
            apt.install("debootstrap", "It makes other releases of Debian.")
        unfinished = self._folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        _run("debootstrap", "--variant=minbase", self._name, unfinished, _mirror())
        unfinished.rename(self._folder)


def _mirror() -> str:
    """Where this machine's apt gets Debian's own packages from."""
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
