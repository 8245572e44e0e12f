"""What a process keeps for as long as it lives, its garbage collector need not look at again and again."""

import asyncio
import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

_log = logging.getLogger("outbox")

STARTED_AFTER = timedelta(seconds=5)
"""By then modules are imported and connections are open."""


@contextmanager
def freeze_gc(after: timedelta = STARTED_AFTER) -> Iterator[None]:
    """`after` that time in the block, whatever there is by then is exempt from garbage collection, for good.

    For a process that does nothing else. Imports leave some hundred thousand objects, and each full collection walks over
    them: a quarter of a worker's processor time. Must be entered where the event loop runs.
    """

    def exempt() -> None:
        gc.collect()
        gc.freeze()
        _log.debug("%d objects are exempt from garbage collection from now on", gc.get_freeze_count())

    exempting = asyncio.get_running_loop().call_later(after.total_seconds(), exempt)
    try:
        yield
    finally:
        exempting.cancel()
