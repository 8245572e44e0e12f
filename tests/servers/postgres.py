"""The tests' PostgreSQL: fresh databases on a server that is started once, or that the environment names."""

import itertools
import os
import shutil
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

_numbers = itertools.count(1)


class PostgresServer(Protocol):
    """What tests may do to a server."""

    @property
    def url(self) -> str:
        """The address of a database on the server, as a superuser or a user that may create databases."""

    def start(self) -> str: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...

    def restart(self) -> str: ...


class NamedPostgres:
    """A server that the environment names: used, and never stopped."""

    def __init__(self, url: str) -> None:
        self.url = url

    def start(self) -> str:
        return self.url

    def stop(self) -> None:
        pytest.skip("the server named by OUTBOX_TEST_DATABASE_URL is not ours to stop; use the fixture own_postgres")

    kill = stop

    def restart(self) -> str:
        self.stop()
        return self.url


class OwnPostgres:
    """A private server with a fresh database in it, which one test may stop, kill and restart as it likes."""

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
    """A server that is quick rather than safe against power cuts."""
    return EmbeddedPostgres(folder, durable=False)


def standby_of(primary: EmbeddedPostgres, folder: Path) -> EmbeddedPostgres:
    """A hot standby that follows a running server, with the same passwords; it is made here, and not started."""
    folder.mkdir(mode=0o711)
    shutil.copy(primary.data_dir / "password", folder / "password")
    command = [str(installed_binaries().bin / "pg_basebackup"), "-d", primary.url, "-D", str(folder / "cluster")]
    subprocess.run([*command, "-R", "-X", "stream", "-c", "fast", "--no-sync"], check=True, capture_output=True, timeout=60)
    account_for(primary.data_dir / "cluster").own(folder / "cluster")
    return private_postgres(folder)


@contextmanager
def session_postgres(folder: Path) -> Iterator[PostgresServer]:
    """The server named by OUTBOX_TEST_DATABASE_URL, else a private one that ends with the session."""
    named = os.environ.get("OUTBOX_TEST_DATABASE_URL")
    if named:
        yield NamedPostgres(named)
        return
    with private_postgres(folder) as server:
        yield server


@contextmanager
def fresh_database(server_url: str, *, tables: bool = False) -> Iterator[str]:
    """The name of a database, dropped afterwards with whatever is still connected to it: empty, or with every table of Outbox.

    Tables are copied from one database that has them, a fifth of what making them takes.
    """
    name = f"test_{os.getpid()}_{next(_numbers)}"
    template = "template0"  # which never has other sessions
    if tables:
        if server_url not in _templates:
            made = f"test_{os.getpid()}_template_{len(_templates)}"
            _execute(server_url, f"create database {made} template template0")
            ensure_outbox_schema_sync(with_database(server_url, made))
            _templates[server_url] = made
        template = _templates[server_url]
    # Copying files beats the write-ahead log by three where nothing is synced.
    _execute(server_url, f"create database {name} template {template} strategy file_copy")
    try:
        yield name
    finally:
        _execute(server_url, f"drop database if exists {name} with (force)")


def drop_templates() -> None:
    """Leaves nothing on servers that stay."""
    for server, name in _templates.items():
        _execute(server, f"drop database {name}")
    _templates.clear()


_templates: dict[str, str] = {}
"""By server: its database with every table."""
_connections: dict[str, psycopg2.extensions.connection] = {}
"""By server: a connection that stays, as each test makes and drops a database."""


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
            if is_again:  # a server of a test's own was restarted meanwhile; nothing was done with the first one
                raise
        else:
            return
