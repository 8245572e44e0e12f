"""Alarms and time limits on a private broker."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers.rabbitmq import PrivateRabbitMQ
from tests.servers.rabbitmq_installation import control_command


@contextmanager
def memory_alarm(server: PrivateRabbitMQ) -> Iterator[None]:
    """Makes the broker raise its memory alarm: it then reads nothing from connections that publish."""
    # Asking for the alarms waits until the alarm has reached each connection: what it publishes before would be confirmed.
    alarm = "vm_memory_monitor:set_vm_memory_high_watermark(0.0000001), [_ | _] = rabbit_alarm:get_alarms()."
    _control(server, "eval", alarm)
    try:
        yield
    finally:
        _control(server, "set_vm_memory_high_watermark", "0.4")


@contextmanager
def consumer_timeout(server: PrivateRabbitMQ, seconds: float) -> Iterator[None]:
    """Limits how long channels that are opened from now on may keep a message, checked every half second."""
    set_ = "application:set_env(rabbit, {}, {})".format
    limit, tick = set_("consumer_timeout", round(seconds * 1000)), set_("channel_tick_interval", 500)
    _control(server, "eval", f"{limit}, {tick}.")
    try:
        yield
    finally:
        limit, tick = set_("consumer_timeout", 1_800_000), set_("channel_tick_interval", 60_000)
        _control(server, "eval", f"{limit}, {tick}.")


def _control(server: PrivateRabbitMQ, *command: str) -> None:
    environment = server._environment()
    subprocess.run(
        [*control_command(server._folder), "-n", environment["RABBITMQ_NODENAME"], *command],
        env=environment,
        check=True,
        capture_output=True,
        timeout=120,
        **server._account.popen_arguments(),
    )
