"""A server process that ends with this one, however this one ends."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from outbox.embedded.binaries import Account, EmbeddedPostgresError

_SUPERVISOR = Path(__file__).with_name("supervisor.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One step of stopping a server: a signal, and how many seconds it has before the next step."""

    signal: signal.Signals
    seconds: float


class Supervised:
    """A running server. Closing it, or the death of this process by whatever means, ends the server.

    The server and its supervisor form a session of their own: a Ctrl-C at the terminal reaches this process only, which
    then stops its servers in the order it wants. `scratch` is a folder of the server's that is deleted when it has ended.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        account: Account,
        folder: Path,
        environment: Mapping[str, str],
        log: Path,
        ending: Sequence[Ending],
        scratch: Path | None = None,
    ) -> None:
        order = {
            "command": [str(part) for part in command],
            "folder": str(folder),
            "environment": dict(environment),
            "ending": [(step.signal, step.seconds) for step in ending],
            "identity": account.popen_arguments(),
            "owner": os.getpid(),
            "scratch": str(scratch) if scratch else "",
        }
        self._patience = sum(step.seconds for step in ending) + 5
        with log.open("ab") as stderr:
            self._supervisor = subprocess.Popen(  # noqa: S603 — our own script, and the command we were given
                [sys.executable, "-I", "-S", str(_SUPERVISOR), json.dumps(order)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                bufsize=0,
            )
        self._control = cast("IO[bytes]", self._supervisor.stdin)
        self.pid = self._learn_pid(str(command[0]))

    def _learn_pid(self, program: str) -> int:
        with cast("IO[bytes]", self._supervisor.stdout) as answer:
            line = answer.readline().decode(errors="replace").strip()
        if not line.isdecimal():
            self.stop()
            raise EmbeddedPostgresError(f"{program} could not be started: {line.removeprefix('error: ') or 'no answer'}")
        return int(line)

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._supervisor.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send the server a signal; nothing happens if it has exited or was stopped."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._control.write(bytes([number]))

    def kill(self) -> None:
        """Kill the server with SIGKILL; it is gone when this returns."""
        self.signal(signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """End the server, step by step; it is gone when this returns. Calling it again does nothing."""
        self._control.close()
        self._supervisor.wait(self._patience)
