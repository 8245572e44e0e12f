"""PostgreSQL for tests: fresh databases on a server that is started once, or on one that the environment names."""

import itertools
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest

from outbox import ensure_outbox_schema_sync
from outbox.embedded import EmbeddedPostgres
from outbox.embedded.binaries import account_for, installed_binaries
from outbox.embedded.server import StopStep, SupervisedProcess, free_port, wait_until

_numbers = itertools.count(1)


class PostgresServer(Protocol):
    """The operations of a server in tests."""

    @property
    def url(self) -> str:
        """The address of a database on the server, as a superuser or a user that may create databases."""

    def start(self) -> str: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...

    def restart(self) -> str: ...


class NamedPostgres:
    """A server that the environment names. Tests never stop it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def start(self) -> str:
        return self.url

    def stop(self) -> None:
        pytest.skip("the server named by OUTBOX_TEST_DATABASE_URL must not be stopped; use the fixture own_postgres")

    kill = stop

    def restart(self) -> str:
        self.stop()
        return self.url


class OwnPostgres:
    """A private server with a fresh database, which its test may stop, kill and restart."""

    def __init__(self, server: EmbeddedPostgres, database: str) -> None:
        self.server = server
        self._database = database

    @property
    def url(self) -> str:
        """The address of the test's own database; the same after a restart."""
        return with_database(self.server.url, self._database)

    def start(self) -> str:
        """Start it; ready when this returns (about 0.05 s)."""
        self.server.start()
        return self.url

    def stop(self) -> None:
        """Fast shutdown: sessions are ended with an error (about 0.02 s)."""
        self.server.stop()

    def kill(self) -> None:
        """SIGKILL to every process of the server; committed data survives (about 0.02 s)."""
        self.server.kill()

    def restart(self) -> str:
        """Stop and start."""
        self.stop()
        return self.start()


def private_postgres(folder: Path) -> EmbeddedPostgres:
    """A server that is fast but does not survive a power failure."""
    return EmbeddedPostgres(folder, durable=False)


def standby_of(primary: EmbeddedPostgres, folder: Path) -> EmbeddedPostgres:
    """Create, but do not start, a hot standby of a running server with the same password."""
    folder.mkdir(mode=0o711)
    shutil.copy(primary.data_dir / "password", folder / "password")
    command = [str(installed_binaries().bin / "pg_basebackup"), "-d", primary.url, "-D", str(folder / "cluster")]
    subprocess.run([*command, "-R", "-X", "stream", "-c", "fast", "--no-sync"], check=True, capture_output=True, timeout=60)
    account_for(primary.data_dir / "cluster").own(folder / "cluster")
    return private_postgres(folder)


@contextmanager
def postgres_of(programs: Path, folder: Path) -> Iterator[str]:
    """The address of a private server of any release, configured as its makers chose, for instance with JIT."""
    folder.mkdir(mode=0o711)
    account, cluster, port = account_for(folder / "cluster"), folder / "cluster", free_port()
    cluster.mkdir(mode=0o700)
    (folder / "password").write_text(password := secrets.token_urlsafe())
    for path in (cluster, folder / "password"):
        account.own(path)
    access = ("-U", "outbox", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}")
    command = [str(programs / "initdb"), "-D", str(cluster), "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", *access]
    subprocess.run(command, check=True, capture_output=True, timeout=60, cwd=folder, **account.popen_arguments())
    settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": 400}
    settings |= {
        "fsync": "off",
        "full_page_writes": "off",
        "autovacuum_naptime": "5s",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }
    server = SupervisedProcess(
        [programs / "postgres", "-D", cluster, *(f"--{name}={value}" for name, value in settings.items())],
        account=account,
        folder=cluster,
        environment={"LC_ALL": "C.UTF-8"},
        log=folder / "log",
        stop_steps=[StopStep(signal=signal.SIGINT, seconds=10), StopStep(signal=signal.SIGKILL, seconds=5)],
    )
    try:
        url = f"postgresql://outbox:{password}@127.0.0.1:{port}/postgres"
        assert wait_until(lambda: _answers(url), 30), (folder / "log").read_text()[-800:]
        yield url
    finally:
        server.stop()


def _answers(url: str) -> bool:
    try:
        psycopg2.connect(url).close()
    except psycopg2.OperationalError:
        return False
    return True


@contextmanager
def session_postgres(folder: Path) -> Iterator[PostgresServer]:
    """The server of OUTBOX_TEST_DATABASE_URL, or of the programs in OUTBOX_TEST_POSTGRESQL; else a private one.

    A private one, and that of these programs, ends with the session.
    """
    if named := os.environ.get("OUTBOX_TEST_DATABASE_URL"):
        yield NamedPostgres(named)
        return
    if programs := os.environ.get("OUTBOX_TEST_POSTGRESQL"):
        with postgres_of(Path(programs), folder) as url:
            yield NamedPostgres(url)
        return
    with private_postgres(folder) as server:
        yield server


@contextmanager
def fresh_database(server_url: str, *, tables: bool = False) -> Iterator[str]:
    """Yield the name of a new database, empty or with all tables of Outbox. It is dropped afterwards, with its connections.

    Tables are copied from a template database, which takes a fifth of the time of creating them.
    """
    name = f"test_{os.getpid()}_{next(_numbers)}"
    template = "template0"  # never has other sessions, which would block the copy
    if tables:
        if server_url not in _templates:
            made = f"test_{os.getpid()}_template_{len(_templates)}"
            _execute(server_url, f"create database {made} template template0")
            ensure_outbox_schema_sync(with_database(server_url, made))
            _templates[server_url] = made
        template = _templates[server_url]
    # Copying files is three times as fast as the write-ahead log if nothing is synced.
    _execute(server_url, f"create database {name} template {template} strategy file_copy")
    try:
        yield name
    finally:
        _execute(server_url, f"drop database if exists {name} with (force)")


def drop_templates() -> None:
    """Drop the template databases, for servers that outlive the session."""
    for server, name in _templates.items():
        _execute(server, f"drop database {name}")
    _templates.clear()


_templates: dict[str, str] = {}
"""Template database by server URL."""
_connections: dict[str, psycopg2.extensions.connection] = {}
"""Persistent connection by server URL, because each test creates and drops a database."""


def with_database(url: str, database: str) -> str:
    """The same server's address with another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


def _execute(url: str, statement: str) -> None:
    for is_again in (False, True):
        if url not in _connections:
            _connections[url] = psycopg2.connect(url)
            _connections[url].autocommit = True
        try:
            with _connections[url].cursor() as cursor:
                cursor.execute(statement)
        except (psycopg2.OperationalError, psycopg2.InterfaceError):
            _connections.pop(url).close()
            if is_again:  # the first failure may be from a restarted server; then nothing was executed
                raise
        else:
            return
