"""Runs the processes that work until they are told to end, and sees to it that they do end then."""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from outbox.errors import HandlersAbandonedError

EXIT_ABANDONED = 70
"""The exit code of a process that ended while handlers, or threads that they started, still ran. It is `EX_SOFTWARE`."""
LAST_WAIT = timedelta(seconds=5)
"""How long tasks and threads that the work left behind may take, before the process ends without them."""

_logger = logging.getLogger("outbox")


def run_process(main: Coroutine[Any, Any, None]) -> None:
    """Runs `main` as `asyncio.run` does, and ends the process with `EXIT_ABANDONED` if something does not end after it.

    `asyncio.run`, and the interpreter after it, wait without a limit for tasks and threads that handlers have started.
    """
    runner = asyncio.Runner()
    watch = threading.Timer(LAST_WAIT.total_seconds(), _end_now, ("tasks or threads that handlers started are still running",))
    watch.daemon = True
    try:
        runner.run(main)
    except HandlersAbandonedError as error:
        _end_now(str(error))
    finally:
        watch.start()
        runner.close()
        if not _others():
            watch.cancel()


def _others() -> list[threading.Thread]:
    """The threads that the interpreter waits for before it ends."""
    return [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]


def _end_now(reason: str) -> None:
    _logger.error("the process ends with exit code %d: %s", EXIT_ABANDONED, reason)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(EXIT_ABANDONED)
