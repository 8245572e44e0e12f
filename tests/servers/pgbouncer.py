"""Runs PgBouncer, which shares a few database sessions between many clients; installs it if missing."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest

from outbox.embedded.binaries import account_for
from outbox.embedded.server import StopStep, SupervisedProcess, wait_until
from tests.servers import apt
from tests.servers.certificates import Certificates
from tests.servers.session_folder import one_process_at_a_time
from tests.support.processes import free_port

SESSIONS = 8
"""Number of server sessions that all clients share, unless a test asks for another."""
_START_SECONDS = 20.0
_ADVICE = "PgBouncer is not on this machine and cannot be installed here: install it (Debian: apt-get install pgbouncer)"
_SYSTEM_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")
_CONFIG = """
[databases]
* = host={host} port={port} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
"""
_TLS = """\
client_tls_sslmode = verify-full
client_tls_ca_file = {certificates.authority}
client_tls_cert_file = {certificates.server}
client_tls_key_file = {certificates.server_key}
"""


def ensure_pgbouncer() -> None:
    """Makes sure that PgBouncer is installed; otherwise the session ends with advice."""
    with one_process_at_a_time("pgbouncer-installation"):
        if _found() is None:
            if not apt.can_install():
                pytest.exit(_ADVICE, returncode=1)
            print("\nPgBouncer is not on this machine: installing Debian's pgbouncer with apt-get …", flush=True)
            apt.install("pgbouncer", _ADVICE)


@contextmanager
def pooled(url: str, folder: Path, *, sessions: int = SESSIONS, certificates: Certificates | None = None) -> Iterator[str]:
    """Yields the address of the database through a PgBouncer in transaction mode, which stops with the block.

    With `certificates` it takes only clients that have one, over TLS.
    """
    program = _found() or pytest.fail(_ADVICE, pytrace=False)
    server, own_port = urlsplit(url), free_port()
    folder.mkdir()
    config, log = folder / "pgbouncer.ini", folder / "output.log"
    config.write_text(
        _CONFIG.format(
            host=server.hostname,
            port=server.port,
            user=server.username,
            password=server.password or "",
            own_port=own_port,
            sessions=sessions,
        )
        + ("" if certificates is None else _TLS.format(certificates=certificates))
    )
    account = account_for(folder)
    account.own(folder)
    process = SupervisedProcess(
        [program, config],
        account=account,
        folder=folder,
        environment={"PATH": os.defpath},
        log=log,
        stop_steps=[StopStep(signal=signal.SIGKILL, seconds=5)],
    )
    options = "" if certificates is None else certificates.options("sslrootcert", "sslcert", "sslkey") + "&sslmode=verify-full"
    address = urlunsplit(server._replace(netloc=f"{server.username}@127.0.0.1:{own_port}", query=options))
    try:
        if not wait_until(lambda: _answers(address) or not process.alive, _START_SECONDS) or not process.alive:
            pytest.fail(f"PgBouncer did not start: {log.read_text(errors='replace')[-2000:]}", pytrace=False)
        yield address
    finally:
        process.stop()


def _found() -> str | None:
    return shutil.which("pgbouncer", path=os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS)))


def _answers(address: str) -> bool:
    try:
        psycopg2.connect(address).close()
    except psycopg2.OperationalError:
        return False
    return True
