"""A private broker in a container, for machines with Docker but without RabbitMQ."""

import os
import signal
import subprocess
import time
from pathlib import Path

from outbox.embedded.binaries import Account
from outbox.embedded.server import StopStep, SupervisedProcess
from tests.servers.rabbitmq import PrivateRabbitMQ
from tests.servers.rabbitmq_installation import DOCKER_IMAGE

_LABEL = "outbox-tests"


class DockerRabbitMQ(PrivateRabbitMQ):
    """A broker in a container that is removed when it ends; its data live in a volume until `close()`.

    The attached client is what is supervised: signalled, it passes the signal on to the container.
    """

    # Inside the container; outside, the ports are published on loopback only.
    _address = "0.0.0.0"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._account = Account(os.geteuid(), os.getegid(), switched=False)
        self._name = f"{_LABEL}-{self._port}"

    def stop(self) -> None:
        """Shut down: clients are notified, all data is written."""
        if self._node is not None:
            _docker("stop", "--time", "15", self._name, check=False)
            self._end_client()

    def kill(self) -> None:
        """SIGKILL: confirmed persistent messages survive."""
        if self._node is not None:
            # The name of a new queue is written within a second, which is not visible from outside the container.
            time.sleep(1.2)
            self._end_at_once()

    def freeze(self) -> None:
        """Stop every process of the container: connections stay open, but nothing responds."""
        _docker("pause", self._name)

    def thaw(self) -> None:
        """Undo `freeze()`."""
        _docker("unpause", self._name, check=False)

    def close(self) -> None:
        """Remove the container and its data."""
        self._end_at_once()
        _docker("volume", "rm", "--force", self._name, check=False)

    def _end_at_once(self) -> None:
        if self._node is not None:
            _docker("kill", self._name, check=False)
            self._end_client()

    def _end_client(self) -> None:
        assert self._node is not None
        self._node.stop()
        self._node = None

    def _make_folder(self) -> None:
        super()._make_folder()
        # Remove volumes that killed sessions left behind. Docker refuses to remove a volume in use.
        _docker("volume", "prune", "--force", "--all", "--filter", f"label={_LABEL}", check=False)
        _docker("volume", "create", "--label", _LABEL, self._name)

    def _start_port_mapper(self) -> None:
        """Does nothing: the container has its own."""

    def _start_node(self) -> SupervisedProcess:
        published = [f"--publish=127.0.0.1:{port}:{port}" for port in (self._port, self._tls_port, self._management_port)]
        settings = f"{self._folder}/rabbitmq.conf:/etc/rabbitmq/conf.d/90-tests.conf:ro"
        certificates = self.certificates.authority.parent
        return SupervisedProcess(
            [
                *("docker", "run", "--rm", f"--name={self._name}", f"--hostname={self._name}", f"--label={_LABEL}"),
                *published,
                *(f"--volume={self._name}:/var/lib/rabbitmq", f"--volume={settings}"),
                *(f"--volume={certificates}:{certificates}:ro", DOCKER_IMAGE),
            ],
            account=self._account,
            folder=self._folder,
            environment=os.environ,
            log=self._folder / "output.log",
            stop_steps=[StopStep(signal=signal.SIGTERM, seconds=20), StopStep(signal=signal.SIGKILL, seconds=5)],
        )


def _docker(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=check, timeout=120)
