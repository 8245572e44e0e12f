"""Installs Debian packages that tests need."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


def can_install() -> bool:
    """Whether this machine has apt-get and the user may use it."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(package: str, advice: str) -> None:
    """Installs a package. On failure the session ends with the output of apt-get and the advice."""
    for arguments in (("update",), ("install", "-y", "--no-install-recommends", package)):
        _apt_get(arguments, advice)


def try_install(package: str) -> bool:
    """Installs a package if this machine can, and returns whether it did."""
    return can_install() and _run("apt-get", "-q", "install", "-y", "--no-install-recommends", package).returncode == 0


def unpack(packages: Sequence[str], folder: Path, advice: str) -> None:
    """Unpacks them into `folder`, without what they depend on and without starting anything."""
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    # Old lists are good enough if the mirror still has the packages; fetching new ones takes longer than everything else.
    if _run("apt-get", "-q", "download", *packages, folder=unfinished).returncode != 0:
        _apt_get(("update",), advice)
        _apt_get(("download", *packages), advice, folder=unfinished)
    for package in unfinished.glob("*.deb"):
        unpacked = _run("dpkg-deb", "--extract", str(package), str(unfinished))
        if unpacked.returncode != 0:
            pytest.exit(f"dpkg-deb cannot unpack {package.name}: {unpacked.stdout[-1500:]}\n{advice}", returncode=1)
        package.unlink()
    unfinished.rename(folder)


def _apt_get(arguments: tuple[str, ...], advice: str, *, folder: Path | None = None) -> None:
    finished = _run("apt-get", "-q", *arguments, folder=folder)
    if finished.returncode != 0:
        pytest.exit(f"apt-get {' '.join(arguments)} failed: {finished.stdout[-1500:]}\n{advice}", returncode=1)


def _run(*command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
