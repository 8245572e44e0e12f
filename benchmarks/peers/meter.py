"""Counts what a handler was called with, in whatever process. Only the standard library: every peer's environment has it."""

import json
import multiprocessing
import sys
import time

BODY = "x" * 256
"""Every benchmark's message."""


class Meter:
    """From the first call to the last of `target`; then it says how long that took, as one line of JSON on the real stdout."""

    def __init__(self, target: int) -> None:
        self._target = target
        # Shared with processes that are forked later, as Celery does.
        self._count = multiprocessing.Value("q", 0)
        self._started = multiprocessing.Value("d", 0.0)

    def handled(self) -> None:
        """Counts one."""
        with self._count.get_lock():
            self._count.value += 1
            count = self._count.value
            if count == 1:
                self._started.value = time.time()
            elif count == self._target:
                seconds = time.time() - self._started.value
                print(json.dumps({"rate": (count - 1) / seconds}), file=sys.__stdout__, flush=True)
