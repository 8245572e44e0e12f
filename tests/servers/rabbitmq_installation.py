"""Locates the RabbitMQ programs, or installs them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import apt
from tests.servers.debian_release import DebianRelease
from tests.servers.session_folder import one_process_at_a_time

# Debian's wrapper on the PATH changes the user and the folder. These are the wrapped programs.
_DEBIAN_SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_SEARCH_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/opt/homebrew/sbin:/usr/local/sbin"
_SERVICE_POLICY = Path("/usr/sbin/policy-rc.d")
_ADVICE = (
    "RabbitMQ is not on this machine and cannot be installed here: install it (Debian: apt-get install rabbitmq-server; "
    "macOS: brew install rabbitmq), start Docker, or name a broker in OUTBOX_TEST_BROKER_URL and OUTBOX_TEST_BROKER_ADMIN_URL"
)

_RELEASE = os.environ.get("OUTBOX_TEST_RABBITMQ")
"""The Debian release whose RabbitMQ replaces that of this machine, such as `trixie`."""

DOCKER_IMAGE = "rabbitmq:4-management"
"""The image for machines with Docker but without RabbitMQ and apt-get."""


def ensure_rabbitmq() -> None:
    """Makes sure that RabbitMQ is available; otherwise the session ends with advice."""
    if os.environ.get("OUTBOX_TEST_BROKER_URL") or is_installed():
        return
    with one_process_at_a_time("rabbitmq-installation"):
        if not is_installed():
            _install()


def _install() -> None:
    if _RELEASE:
        DebianRelease(_RELEASE).install("rabbitmq-server")
    elif apt.can_install():
        print("\nRabbitMQ is not on this machine: installing Debian's rabbitmq-server with apt-get …", flush=True)
        with _no_service_is_started():
            apt.install("rabbitmq-server", _ADVICE)
    elif _docker_has(DOCKER_IMAGE):
        return
    else:
        pytest.exit(_ADVICE, returncode=1)


def is_installed() -> bool:
    """Whether RabbitMQ's programs are on this machine."""
    if _RELEASE:
        return DebianRelease(_RELEASE).has(str(_DEBIAN_SERVER))
    return _find_server() is not None


def is_of_another_release() -> bool:
    """Whether the programs are those of another Debian release, which run as root."""
    return bool(_RELEASE)


def server_command(folder: Path) -> list[str]:
    """Return the command of the server with the working folder `folder`."""
    if _RELEASE:
        return DebianRelease(_RELEASE).command([str(_DEBIAN_SERVER)], folder=folder)
    return [str(_find_server() or _give_up())]


def control_command(folder: Path) -> list[str]:
    """Return the command of rabbitmqctl without arguments."""
    if _RELEASE:
        return DebianRelease(_RELEASE).command([str(_DEBIAN_SERVER.with_name("rabbitmqctl"))], folder=folder)
    return [str((_find_server() or _give_up()).with_name("rabbitmqctl"))]


def port_mapper_command(folder: Path) -> list[str]:
    """Return the command of Erlang's port mapper without arguments."""
    if _RELEASE:
        return DebianRelease(_RELEASE).command(["epmd"], folder=folder)
    return [shutil.which("epmd", path=_SEARCH_PATH) or str(_give_up())]


def _find_server() -> Path | None:
    if _DEBIAN_SERVER.exists():
        return _DEBIAN_SERVER
    found = shutil.which("rabbitmq-server", path=_SEARCH_PATH)
    return Path(found) if found else None


def _docker_has(image: str) -> bool:
    """Whether Docker runs and has the image or can pull it."""
    if shutil.which("docker") is None or subprocess.run(["docker", "version"], capture_output=True).returncode != 0:
        return False
    print(f"\nRabbitMQ is not on this machine: using Docker's image {image} …", flush=True)
    return subprocess.run(["docker", "pull", "--quiet", image], capture_output=True).returncode == 0


def _give_up() -> Path:
    pytest.fail(_ADVICE, pytrace=False)


@contextmanager
def _no_service_is_started() -> Iterator[None]:
    """Keeps Debian from starting a system-wide broker when the package is installed."""
    if _SERVICE_POLICY.exists():
        yield
        return
    _SERVICE_POLICY.write_text("#!/bin/sh\nexit 101\n")
    _SERVICE_POLICY.chmod(0o755)
    try:
        yield
    finally:
        _SERVICE_POLICY.unlink(missing_ok=True)
