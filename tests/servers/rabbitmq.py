"""RabbitMQ for tests: a private node, separate from the machine's own, or a broker that the environment names."""

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit, urlunsplit

import httpx
import pytest

from outbox.embedded.binaries import Account, account_named
from outbox.embedded.server import StopStep, SupervisedProcess, is_free, wait_until
from tests.servers.certificates import Certificates
from tests.servers.rabbitmq_installation import (
    is_installed,
    is_of_another_release,
    port_mapper_command,
    server_command,
)
from tests.support.processes import free_port
from tests.support.rabbit_admin import RabbitAdmin

MAX_MESSAGE_SIZE = 4 * 1024 * 1024
"""The private broker's limit of a message body in bytes; small, so that tests can exceed it."""

_USER = _PASSWORD = "outbox"
_START_SECONDS = 60.0
_numbers = itertools.count(1)

_CONFIG = """\
listeners.tcp.1 = {address}:{port}
management.tcp.ip = {address}
management.tcp.port = {management_port}
default_user = {user}
default_pass = {password}
loopback_users = none
max_message_size = {max_message_size}
disk_free_limit.absolute = 1MB
collect_statistics_interval = 1000
log.file.level = info
listeners.ssl.1 = {address}:{tls_port}
ssl_options.cacertfile = {certificates.authority}
ssl_options.certfile = {certificates.server}
ssl_options.keyfile = {certificates.server_key}
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = true
"""
_JOINING = """\
cluster_formation.peer_discovery_backend = classic_config
cluster_formation.classic_config.nodes.1 = {first}
cluster_formation.classic_config.nodes.2 = {second}
"""
_COOKIE = "OUTBOXTESTS"
"""What nodes of one cluster have in common. They listen on this machine alone."""
# Queue depths in the management API are as old as a quorum queue's last tick.
_ADVANCED_CONFIG = "[{rabbit, [{quorum_tick_interval, 500}]}].\n"


class RabbitServer(Protocol):
    """The operations of a broker in tests."""

    @property
    def url(self) -> str:
        """The `amqp://` address of its default virtual host."""

    @property
    def admin(self) -> RabbitAdmin:
        """The management API of its default virtual host."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...

    def freeze(self) -> None: ...

    def thaw(self) -> None: ...


class PrivateRabbitMQ:
    """A node in a folder of its own, on ports of its own, with a port mapper of its own."""

    _address = "127.0.0.1"

    def __init__(self, folder: Path, *, first: "PrivateRabbitMQ | None" = None) -> None:
        """`first`: a running node whose cluster this one joins when it is started for the first time."""
        self._folder = folder
        self._first = first
        self._port, self._tls_port, self._management_port = free_port(), free_port(), free_port()
        self._distribution_port = free_port()
        self._mapper_port: int = free_port() if first is None else first._mapper_port
        self._account = _account()
        self._mapper: SupervisedProcess | None = None
        self._node: SupervisedProcess | None = None
        self.url = f"amqp://{_USER}:{_PASSWORD}@127.0.0.1:{self._port}/%2F"
        self.admin_url = f"http://{_USER}:{_PASSWORD}@127.0.0.1:{self._management_port}"
        self.certificates = Certificates(folder.with_name(f"{folder.name}-certificates"))
        self.tls_url = f"amqps://{_USER}:{_PASSWORD}@127.0.0.1:{self._tls_port}/%2F?" + self.certificates.options(
            "cafile", "certfile", "keyfile"
        )
        """Its address for clients with a certificate."""

    @property
    def admin(self) -> RabbitAdmin:
        """The management API of its default virtual host."""
        return RabbitAdmin(self.admin_url, self.url)

    @property
    def pid(self) -> int:
        """The node's process id."""
        assert self._node is not None
        return self._node.pid

    @property
    def running(self) -> bool:
        """Whether the node's process is alive."""
        return self._node is not None and self._node.alive

    def start(self) -> None:
        """Start the node with its stored data, and wait until it and the management API are ready (about 4 s)."""
        if self.running:
            return
        if not self._folder.exists():
            self._make_folder()
        self._start_port_mapper()
        self._node = self._start_node()
        if not wait_until(lambda: self._ready() or not self.running, _START_SECONDS) or not self.running:
            self.close()
            pytest.fail(f"RabbitMQ did not start: {self._log_tail()}", pytrace=False)

    def stop(self) -> None:
        """Shut down: clients are notified, all data is written (about 0.1 s).

        When all that is done, Erlang lingers for six seconds more; that is cut short.
        """
        if self._node is not None:
            self._node.signal(signal.SIGCONT)
            self._node.signal(signal.SIGTERM)
            wait_until(lambda: is_free(self._port) and self._queue_names_are_written(), 10.0)
            self._end_at_once()

    def kill(self) -> None:
        """SIGKILL: confirmed persistent messages survive (at once, or a second after a queue was declared).

        RabbitMQ 3.10 writes down a new quorum queue's name within a second; killed before, it comes back with a queue of
        that name that swallows everything. No client can do anything about it, so this waits until the name is written.
        """
        if self._node is not None:
            self._node.signal(signal.SIGCONT)
            wait_until(self._queue_names_are_written, 5.0)
            self._end_at_once()

    def freeze(self) -> None:
        """SIGSTOP: connections stay open, but nothing responds (immediate)."""
        if self._node is not None:
            self._node.signal(signal.SIGSTOP)
            wait_until(self._is_frozen, 5.0)

    def thaw(self) -> None:
        """Undo `freeze()`: the broker continues. Does nothing if it was not frozen."""
        if self._node is not None:
            self._node.signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill all processes and delete the data."""
        self._end_at_once()
        if self._mapper is not None:
            self._mapper.stop()
            self._mapper = None

    @property
    def node_name(self) -> str:
        """The node's Erlang name."""
        return f"outbox{self._port}@localhost"

    def _start_port_mapper(self) -> None:
        if self._mapper is None and self._first is None:
            self._mapper = self._launch(
                [*port_mapper_command(self._folder), "-port", str(self._mapper_port), "-address", "127.0.0.1"]
            )

    def _start_node(self) -> SupervisedProcess:
        return self._launch(server_command(self._folder))

    def _is_frozen(self) -> bool:
        assert self._node is not None
        state = Path(f"/proc/{self._node.pid}/stat")
        return not state.exists() or state.read_text().rpartition(") ")[2].startswith("T")

    def _end_at_once(self) -> None:
        if self._node is not None:
            self._node.kill()
            self._node = None

    def _queue_names_are_written(self) -> bool:
        """Whether the table of queue names is marked as clean: bytes 8 to 11 of an Erlang DETS file."""
        tables = self._folder.glob("mnesia/*/quorum/*/names.dets")
        return all(table.read_bytes()[8:12] == b"\x00\x00\x00\x01" for table in tables)

    def _make_folder(self) -> None:
        self._folder.mkdir()
        self.certificates.renew()
        (self._folder / "enabled_plugins").write_text("[rabbitmq_management].\n")
        (self._folder / "advanced.config").write_text(_ADVANCED_CONFIG)
        (self._folder / "rabbitmq.conf").write_text(
            _CONFIG.format(
                address=self._address,
                port=self._port,
                tls_port=self._tls_port,
                certificates=self.certificates,
                management_port=self._management_port,
                user=_USER,
                password=_PASSWORD,
                max_message_size=MAX_MESSAGE_SIZE,
            )
            + ("" if self._first is None else _JOINING.format(first=self._first.node_name, second=self.node_name))
        )
        cookie = self._folder / ".erlang.cookie"
        cookie.write_text(_COOKIE)
        cookie.chmod(0o400)
        self._account.own(self._folder)

    def _launch(self, command: list[str]) -> SupervisedProcess:
        return SupervisedProcess(
            command,
            account=self._account,
            folder=self._folder,
            environment=self._environment(),
            log=self._folder / "output.log",
            # The data is not needed any more, so the node is killed; `stop()` is for tests that continue.
            stop_steps=[StopStep(signal=signal.SIGKILL, seconds=5)],
        )

    def _environment(self) -> dict[str, str]:
        folder = str(self._folder)
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": folder,
            "RABBITMQ_NODENAME": self.node_name,
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
            "RABBITMQ_LOG_BASE": f"{folder}/log",
            "RABBITMQ_SCHEMA_DIR": f"{folder}/schema",
            "RABBITMQ_GENERATED_CONFIG_DIR": f"{folder}/generated",
            "RABBITMQ_PID_FILE": f"{folder}/pid",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/enabled_plugins",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{folder}/advanced.config",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            # Makes the start script exec the node instead of waiting for it, so that signals reach the node.
            "RABBITMQ_ALLOW_INPUT": "true",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput -start_epmd false +S 2:2",
        }

    def _ready(self) -> bool:
        try:
            answer = httpx.get(f"{self.admin_url}/api/health/checks/port-listener/{self._port}", timeout=5)
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK

    def _log_tail(self) -> str:
        logs = [self._folder / "output.log", *(self._folder / "log").glob("*.log")]
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in logs if log.exists())


class NamedRabbitMQ:
    """A broker that the environment names. Tests never stop it."""

    def __init__(self, url: str, admin_url: str) -> None:
        self.url = url
        self.admin_url = admin_url

    @property
    def admin(self) -> RabbitAdmin:
        """The management API of the virtual host that the address names."""
        return RabbitAdmin(self.admin_url, self.url)

    def start(self) -> None:
        """Does nothing: it is running."""

    def stop(self) -> None:
        pytest.skip("the broker named by OUTBOX_TEST_BROKER_URL is not ours to stop; use the fixture own_rabbitmq")

    kill = freeze = thaw = stop

    def close(self) -> None:
        """Does nothing: it keeps running."""


class OwnRabbitMQ:
    """A private broker with a fresh virtual host, which its test may stop, freeze and kill."""

    def __init__(self, server: PrivateRabbitMQ, vhost: str) -> None:
        self.server = server
        self.url, self.tls_url = with_vhost(server.url, vhost), with_vhost(server.tls_url, vhost)
        self.start, self.stop, self.kill = server.start, server.stop, server.kill
        self.freeze, self.thaw = server.freeze, server.thaw

    @property
    def admin(self) -> RabbitAdmin:
        """The management API of the test's own virtual host."""
        return RabbitAdmin(self.server.admin_url, self.url)


def session_rabbitmq(folder: Path) -> PrivateRabbitMQ | NamedRabbitMQ:
    """Return the broker named by OUTBOX_TEST_BROKER_URL, or else a private one, not yet started."""
    named = os.environ.get("OUTBOX_TEST_BROKER_URL")
    if not named:
        return private_rabbitmq(folder)
    admin_url = os.environ.get("OUTBOX_TEST_BROKER_ADMIN_URL")
    if not admin_url:
        pytest.fail("OUTBOX_TEST_BROKER_URL needs OUTBOX_TEST_BROKER_ADMIN_URL, too, e.g. http://guest:guest@localhost:15672")
    return NamedRabbitMQ(named, admin_url)


def private_rabbitmq(folder: Path) -> PrivateRabbitMQ:
    """Return a private broker, not yet started, from the installed programs or else from Docker."""
    from tests.servers.rabbitmq_docker import DockerRabbitMQ

    return PrivateRabbitMQ(folder) if is_installed() else DockerRabbitMQ(folder)


@contextmanager
def fresh_vhost(server: PrivateRabbitMQ | NamedRabbitMQ) -> Iterator[str]:
    """Yield the name of an empty virtual host, deleted afterwards if the broker still responds."""
    name = f"test-{os.getpid()}-{next(_numbers)}"
    user = urlsplit(server.url).username
    with httpx.Client(base_url=server.admin_url, timeout=30) as client:
        client.put(f"/api/vhosts/{name}").raise_for_status()
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        client.put(f"/api/permissions/{name}/{user}", json=everything).raise_for_status()
    try:
        yield name
    finally:
        if getattr(server, "running", True):
            with httpx.Client(base_url=server.admin_url, timeout=30) as client:
                client.delete(f"/api/vhosts/{name}")


def with_vhost(url: str, vhost: str) -> str:
    """The same broker's address with another virtual host."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{quote(vhost, safe='')}"))


def _account() -> Account:
    if os.geteuid() != 0 or is_of_another_release():
        return Account(os.geteuid(), os.getegid(), switched=False)
    return account_named("rabbitmq", "nobody")
