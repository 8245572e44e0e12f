"""Who is told of the engine's events: the log, and the metrics where they are wanted and possible."""

import logging
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from outbox.engine.observing import Observers
from outbox.observers.logging import LoggingObserver
from outbox.ports import Observer

_log = logging.getLogger("outbox")


def build_observer(*, enable_metrics: bool) -> Observer:
    """Log lines always; metrics where they are wanted and prometheus-client is installed, on its global registry."""
    metrics = _metrics() if enable_metrics else None
    return Observers((LoggingObserver(),) if metrics is None else (LoggingObserver(), metrics))


@cache
def _metrics() -> Observer | None:
    """One for the whole process, since a registry takes each metric once: every relay and worker shares it."""
    if find_spec("prometheus_client") is None:
        _log.info('metrics are off: prometheus-client is not installed (pip install "outbox[metrics]")')
        return None
    observer: Observer = import_module("outbox.observers.prometheus").PrometheusObserver()
    return observer
