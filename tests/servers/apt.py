"""Installs Debian packages that tests need."""

import os
import shutil
import subprocess

import pytest


def can_install() -> bool:
    """Whether this machine has apt-get and the user may use it."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(package: str, advice: str) -> None:
    """Installs a package. On failure the session ends with the output of apt-get and the advice."""
    for arguments in (("update",), ("install", "-y", "--no-install-recommends", package)):
        _apt_get(arguments, advice)


def _apt_get(arguments: tuple[str, ...], advice: str) -> None:
    finished = subprocess.run(
        ["apt-get", "-q", *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if finished.returncode != 0:
        pytest.exit(f"apt-get {' '.join(arguments)} failed: {finished.stdout[-1500:]}\n{advice}", returncode=1)
