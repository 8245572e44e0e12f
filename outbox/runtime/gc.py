"""Exempts startup objects from garbage collection."""

import asyncio
import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

_log = logging.getLogger("outbox")

STARTED_AFTER = timedelta(seconds=5)
"""Time after which modules are imported and connections are open."""


@contextmanager
def freeze_gc(after: timedelta = STARTED_AFTER) -> Iterator[None]:
    """Freezes all objects that exist `after` that time in the block: garbage collection skips them permanently.

    For processes that run nothing but Outbox. Must be entered in the running event loop.
    """
    # Imports leave some hundred thousand objects. Each full collection would visit them all, which takes a quarter of a
    # worker's processor time.

    def exempt() -> None:
        gc.collect()
        gc.freeze()
        _log.debug("%d objects are exempt from garbage collection", gc.get_freeze_count())

    exempting = asyncio.get_running_loop().call_later(after.total_seconds(), exempt)
    try:
        yield
    finally:
        exempting.cancel()
