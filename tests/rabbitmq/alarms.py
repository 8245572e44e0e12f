"""Alarms of a private broker: it then reads nothing from connections that publish."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers.rabbitmq import PrivateRabbitMQ
from tests.servers.rabbitmq_installation import server_program


@contextmanager
def memory_alarm(server: PrivateRabbitMQ) -> Iterator[None]:
    """The broker believes that it has used up its memory."""
    _control(server, "set_vm_memory_high_watermark", "0.0000001")
    try:
        yield
    finally:
        _control(server, "set_vm_memory_high_watermark", "0.4")


def _control(server: PrivateRabbitMQ, *command: str) -> None:
    environment = server._environment()
    program = server_program().with_name("rabbitmqctl")
    subprocess.run(
        [program, "-n", environment["RABBITMQ_NODENAME"], *command],
        env=environment,
        check=True,
        capture_output=True,
        timeout=30,
        **server._account.popen_arguments(),
    )
