"""Locates Chromium for the browser tests, or installs it.

Debian's `chromium-headless-shell` is preferred: it opens a page with half the processor time of a whole Chromium.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.servers import apt
from tests.servers.session_folder import one_process_at_a_time

_NAMED = "OUTBOX_TEST_CHROMIUM"
_SHELL = "chromium-headless-shell"
_PROGRAMS = (_SHELL, "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_OF_MACOS = (
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
)
_ADVICE = (
    "Chromium is not on this machine and cannot be installed here: install it (Debian: apt-get install chromium; "
    f"macOS: brew install --cask chromium), or name a Chromium or Chrome in {_NAMED}"
)
_QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-quic")


def ensure_chromium() -> None:
    """Makes sure that Chromium is installed; otherwise the session ends with advice."""
    with one_process_at_a_time("chromium-installation"):
        if _NAMED not in os.environ and shutil.which(_SHELL) is None:
            apt.try_install(_SHELL)
        if _found() is None:
            _install()


def chromium_program() -> Path:
    """The browser, for Playwright's `launch(executable_path=…)`."""
    return _found() or pytest.fail(_ADVICE, pytrace=False)


def chromium_arguments() -> list[str]:
    """Arguments without background requests. For root the sandbox is off, because Chromium refuses to start with it."""
    return [*_QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])]


def _found() -> Path | None:
    named = os.environ.get(_NAMED)
    if named:
        return Path(named) if shutil.which(named) else pytest.exit(f"{_NAMED} names no program: {named}", returncode=1)
    found = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    return Path(found) if found else next((program for program in _OF_MACOS if program.exists()), None)


def _install() -> None:
    if not apt.can_install():
        pytest.exit(_ADVICE, returncode=1)
    print("\nChromium is not on this machine: installing Debian's chromium with apt-get …", flush=True)
    apt.install("chromium", _ADVICE)
    if _found() is None:
        pytest.exit(_ADVICE, returncode=1)
