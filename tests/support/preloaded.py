"""A process that has imported Outbox and forks itself for each program to run, which saves every program two seconds.

`tests/support/processes.py` starts it and talks to it over a socket pair: each request is a JSON object with two descriptors,
of the program's output, and of a socket on which its process id and then its exit code are reported.
"""

import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
from typing import Any

LARGEST_REQUEST = 1 << 20
_MODULES = (
    "app.__main__",
    "outbox.cli.doctor",
    "outbox.cli.migrate",
    "outbox.cli.processes",
    "outbox.transports.kafka_source",
    "outbox.transports.postgres",
    "outbox.transports.rabbitmq.broker",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)


def main() -> None:
    """Serves requests until the other end of the socket is closed. In each fork, runs the program."""
    for module in _MODULES:
        importlib.import_module(module)
    del sys.modules["app.__main__"]  # it runs as a program, of which Python warns if it is a module already
    # Neither collected nor copied by the forks.
    gc.collect()
    gc.freeze()
    program = _serve(socket.socket(fileno=int(sys.argv[1])))
    if program is not None:
        # Here, outside of every handler: exceptions and exit codes end the process as they end one that was started.
        sys.argv = ["", *program["arguments"]]
        runpy.run_module(program["module"], run_name="__main__", alter_sys=True)


def _serve(requests: socket.socket) -> dict[str, Any] | None:
    """Returns the program to run, in a fork, or None when the requests end."""
    running: dict[int, socket.socket] = {}
    ended, notify = os.pipe()
    os.set_blocking(notify, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(notify)
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if ended in ready:
                os.read(ended, 4096)
                _report_exits(running)
            if requests.fileno() not in ready:
                continue
            request, descriptors, *_ = socket.recv_fds(requests, LARGEST_REQUEST, 2)
            if not request:
                return None
            output, reports = descriptors[0], socket.socket(fileno=descriptors[1])
            process = os.fork()
            if process == 0:
                os.setsid()  # before its id is known: the test may kill the group at once
                reports.sendall(f"{os.getpid()}\n".encode())
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for end in (requests, reports, *running.values()):
                    end.close()
                os.close(ended)
                os.close(notify)
                return _begin(json.loads(request), output)
            os.close(output)
            running[process] = reports


def _begin(program: dict[str, Any], output: int) -> dict[str, Any]:
    for number in (1, 2):
        os.dup2(output, number)
    os.close(output)
    os.environ.clear()
    os.environ.update(program["environment"])
    return program


def _report_exits(running: dict[int, socket.socket]) -> None:
    while running:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        with running.pop(process) as reports:
            reports.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()
