"""A program that runs one server and stops it when its owner ends.

`server.py` starts it as a script that uses only the standard library. Its standard input is a pipe from the owner: each byte is
the number of a signal for the server, and the end of the pipe means that the owner wants the server stopped, or is dead. It
prints the server's process id, or `error: …`.

It is a separate process because a thread would die with the owner. A parent-death signal alone would not do: it follows the
*thread* that started the server, and macOS has none.
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
    instructions = json.loads(sys.argv[1])
    # A file descriptor that becomes readable when one of these signals arrives.
    wake_up, writable = os.pipe()
    os.set_blocking(wake_up, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    try:
        server = subprocess.Popen(  # noqa: S603 — the owner's command
            instructions["command"],
            cwd=instructions["folder"],
            env=instructions["environment"],
            stdin=subprocess.DEVNULL,
            # The standard output is for the answer to the owner, which closes it after the first line.
            stdout=sys.stderr,
            stderr=sys.stderr,
            preexec_fn=_die_with_parent(signal.Signals(instructions["stop_steps"][0][0])),  # noqa: PLW1509 — no threads
            **instructions["identity"],
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"error: {error}", flush=True)  # noqa: T201  the answer to the owner
        return 1
    print(server.pid, flush=True)  # noqa: T201  the answer to the owner
    _forward_signals(server, wake_up, owner=instructions["owner"])
    _stop(server, wake_up, instructions["stop_steps"])
    if instructions["scratch"]:
        shutil.rmtree(instructions["scratch"], ignore_errors=True)
    return 0


def _die_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Make Linux signal the server if this supervisor is killed. On other systems the next start cleans up."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None
    return lambda: prctl(_PR_SET_PDEATHSIG, int(number))


def _forward_signals(server: subprocess.Popen, wake_up: int, owner: int) -> None:  # type: ignore[type-arg]
    """Forward the owner's signals until the server has exited or the owner has closed the pipe or died."""
    control = sys.stdin.fileno()
    # A child that the owner forked may keep the pipe open after the owner's death, so the parent is checked too.
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


def _stop(server: subprocess.Popen, wake_up: int, steps: list) -> None:  # type: ignore[type-arg]
    """Send the signal of each step and wait its seconds, until the server has exited."""
    for number, seconds in steps:
        # A server that was stopped, as by a debugger, would not see the next signal.
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
