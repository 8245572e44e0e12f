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
def fresh_database(server_url: str) -> Iterator[str]:
    """The name of an empty database, dropped afterwards with whatever is still connected to it."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    # Copying files beats the write-ahead log by three where nothing is synced; template0 never has other sessions.
    _execute(server_url, f"create database {name} template template0 strategy file_copy")
    try:
        yield name
    finally:
        _execute(server_url, f"drop database if exists {name} with (force)")


def with_every_table(url: str) -> str:
    """The same database anew, as a copy of one with every table of Outbox: a fifth of what making them takes.

    For an empty one that nobody is connected to.
    """
    server, name = with_database(url, "postgres"), urlsplit(url).path.removeprefix("/")
    if server not in _templates:
        _execute(server, f"create database test_{os.getpid()}_template_{len(_templates)} template template0")
        _templates[server] = f"test_{os.getpid()}_template_{len(_templates)}"
        ensure_outbox_schema_sync(with_database(url, _templates[server]))
    _execute(server, f"drop database {name}", f"create database {name} template {_templates[server]} strategy file_copy")
    return url


def drop_templates() -> None:
    """Leaves nothing on servers that stay."""
    for server, name in _templates.items():
        _execute(server, f"drop database {name}")
    _templates.clear()


_templates: dict[str, str] = {}


def with_database(url: str, database: str) -> str:
    """The same server's address with another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


def _execute(url: str, *statements: str) -> None:
    connection = psycopg2.connect(url)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
    finally:
        connection.close()
