"""A small program that runs one server and makes sure that it ends with its owner.

Started by `server.py` as a script, so that it needs nothing but the standard library. Its standard input is a pipe
that the owner holds: each byte is the number of a signal for the server, and the end of the pipe means that the owner
wants the server stopped, or is dead. It prints the server's process id in one line, or `error: …`.

Why a process: a thread of the owner would die with it, and a parent-death signal alone follows the *thread* that started
the server and does not exist on macOS.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

_OWNER_CHECK_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Run the server described by the JSON argument until it exits or the owner is gone."""
    order = json.loads(sys.argv[1])
    # A file descriptor that becomes readable when one of these signals arrives.
    wake_up, writable = os.pipe()
    os.set_blocking(wake_up, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    try:
        server = subprocess.Popen(  # noqa: S603 — the owner's command
            order["command"],
            cwd=order["folder"],
            env=order["environment"],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=sys.stderr,
            preexec_fn=_die_with_parent(signal.Signals(order["ending"][0][0])),  # noqa: PLW1509 — there are no threads here
            **order["identity"],
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"error: {error}", flush=True)  # noqa: T201  the answer to the owner
        return 1
    print(server.pid, flush=True)  # noqa: T201  the answer to the owner
    _obey(server, wake_up, owner=order["owner"])
    _end(server, wake_up, order["ending"])
    if order["scratch"]:
        shutil.rmtree(order["scratch"], ignore_errors=True)
    return 0


def _die_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Have Linux signal the server if this supervisor is killed; elsewhere the next start cleans up."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None
    return lambda: prctl(_PR_SET_PDEATHSIG, int(number))


def _obey(server: subprocess.Popen, wake_up: int, owner: int) -> None:  # type: ignore[type-arg]
    """Pass the owner's signals on until the server has exited or the owner has let go."""
    control = sys.stdin.fileno()
    # A child that the owner forked may hold the pipe open after the owner's death, hence the look at the parent too.
    while server.poll() is None and os.getppid() == owner:
        readable, _, _ = select.select([control, wake_up], [], [], _OWNER_CHECK_SECONDS)
        if wake_up in readable and {signal.SIGTERM, signal.SIGINT}.intersection(os.read(wake_up, 512)):
            return
        if control in readable:
            numbers = os.read(control, 512)
            if not numbers:
                return
            for number in numbers:
                server.send_signal(number)


def _end(server: subprocess.Popen, wake_up: int, steps: list) -> None:  # type: ignore[type-arg]
    """Send each step's signal and give the server that step's seconds, until it is gone."""
    for number, seconds in steps:
        server.send_signal(signal.SIGCONT)
        server.send_signal(number)
        deadline = time.monotonic() + seconds
        while server.poll() is None and (left := deadline - time.monotonic()) > 0:
            select.select([wake_up], [], [], min(left, 0.5))
            with contextlib.suppress(BlockingIOError):
                os.read(wake_up, 512)
        if server.returncode is not None:
            return


if __name__ == "__main__":
    sys.exit(main())
