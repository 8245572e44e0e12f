"""Builds the observers of engine events: log, metrics, and reports to the database."""

import logging
import os
import platform
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, cast

from outbox.core.arguments import interval
from outbox.core.clock import DatabaseClock
from outbox.engine.index_keys import IndexKeys
from outbox.engine.lifecycle import Stopping
from outbox.engine.observers import SERVED, MaskingObserver, Observers
from outbox.errors import ConfigurationError
from outbox.masking import Masking
from outbox.observers.logging import LoggingObserver
from outbox.ports import Observer

if TYPE_CHECKING:
    from outbox.postgres.pool import Pool
    from outbox.postgres.queries import TableName
    from outbox.reporting import Reporter

LONGEST_NAME = 250
"""Maximum characters of a component's name."""
LONGEST_VERSION = 100
"""Maximum characters of a service's version."""
HEARTBEAT_INTERVAL = 5.0
"""Seconds between two heartbeats."""
_BORROWING = timedelta(seconds=2)
"""Maximum wait for a connection from a pool that was passed in."""

_log = logging.getLogger("outbox")


def build_observer(*, enable_metrics: bool, meters: Observer | None = None, masking: Masking | None = None) -> Observer:
    """Returns an observer that logs and, with `enable_metrics` and prometheus-client, counts in its global registry.

    `meters` observes, too. `masking`, by default the built-in rules, is applied to failures before they are logged or counted.
    In a task that serves one of several databases, the metrics are labelled with its name, and its state is followed.
    """
    served = SERVED.get()
    metrics = METRICS.of(None if served is None else served.name) if enable_metrics else None
    members = tuple(each for each in (LoggingObserver(), metrics, meters, served) if each is not None)
    return MaskingObserver(Observers(members), masking or Masking())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Reports of a component to the database: their content, and the URL or pool to write them with, if any.

    `destination` is the one that a relay serves. With a database, `clock` follows the database's clock while reports are open,
    even if `reporting` is off.
    """

    kind: Literal["relay", "worker", "archiver", "maintenance"]
    name: str | None
    table: "TableName"
    service_version: str | None = None
    destination: str | None = None
    url: str | None = None
    pool: "Pool | None" = None
    reporting: bool = True
    history: bool = True
    heartbeat_interval: float = HEARTBEAT_INTERVAL
    clock: DatabaseClock = field(default_factory=DatabaseClock)

    def __post_init__(self) -> None:
        if self.name is not None and not (isinstance(self.name, str) and 0 < len(self.name) <= LONGEST_NAME):
            raise ConfigurationError(f"name must be text of 1 to {LONGEST_NAME} characters, not {self.name!r}")
        if self.name is not None and not self.name.isprintable():
            raise ConfigurationError(f"name must be printable text, not {self.name!r}")
        if (version := self.service_version) is not None and not (
            isinstance(version, str) and 0 < len(version) <= LONGEST_VERSION and version.isprintable()
        ):
            raise ConfigurationError(
                f"service_version must be printable text of 1 to {LONGEST_VERSION} characters, not {self.service_version!r}"
            )
        interval("heartbeat_interval", self.heartbeat_interval)

    @asynccontextmanager
    async def open(
        self,
        observer: Observer,
        stopping: Stopping,
        *,
        consumers: Sequence[Mapping[str, Any]] = (),
        index_keys: Mapping[str, IndexKeys] | None = None,
    ) -> AsyncIterator["Reporter | None"]:
        """Runs a reporter during the block; yields None if reporting is off or there is no database.

        `index_keys`: index keys of the history, by queue.
        """
        if (served := SERVED.get()) is not None:
            served.is_started = True  # components open their reports once they have found their database
        if self.url is None and self.pool is None:
            yield None
            return
        from outbox.postgres.pool import borrow_from, connect_to
        from outbox.reporting import Component, ComponentKind, ReportingSettings, reporting, synchronizing

        if self.url is not None:
            connect = connect_to(self.url, application_name=f"outbox {self.kind} reports")
        else:
            connect = borrow_from(self.pool, connect_timeout=_BORROWING)  # type: ignore[arg-type]  # set, because the URL is not
        if not self.reporting:
            async with synchronizing(connect, self.clock):
                yield None
            return
        # Consumers report whether they write history: without it, a chain cannot distinguish waiting and handled messages.
        described = [{**consumer, "history": self.history} for consumer in consumers]
        component = Component(
            kind=ComponentKind(self.kind),
            name=component_name(self.name),
            service_version=self.service_version,
            destination=self.destination,
            consumers=described,
        )
        settings = ReportingSettings(
            history=self.history,
            index_keys=index_keys or {},
            borrows=self.url is None,
            heartbeat=timedelta(seconds=self.heartbeat_interval),
        )
        async with reporting(connect, self.table, component, observer, stopping, settings, self.clock) as reporter:
            yield reporter


def component_name(name: str | None) -> str:
    """Returns the component's name; by default host and process id."""
    return f"{platform.node()}:{os.getpid()}"[:LONGEST_NAME] if name is None else name


def observed_by(observer: Observer, reporter: "Reporter | None") -> Observer:
    """Adds a reporter to an observer."""
    if reporter is None:
        return observer
    if isinstance(observer, MaskingObserver):
        # Behind the masking: what the reporter writes to the database must be masked as well.
        return replace(observer, observer=observed_by(observer.observer, reporter))
    others = observer.members if isinstance(observer, Observers) else (observer,)
    return Observers((*others, reporter))


class ProcessMetrics:
    """The metrics of this process. Its first component decides whether they have a label `database`."""

    # A registry accepts each metric once, and with the same labels: all components of a database share an observer.
    def __init__(self) -> None:
        self._observers: dict[str | None, Any] = {}
        self._by_database: bool | None = None
        self.served: list[Callable[[], Mapping[str, bool]]] = []
        """Functions that return, by its name, whether a database is served at the moment."""

    def of(self, database: str | None) -> Observer | None:
        """Returns the observer for a database by its name, or for components without one; None without prometheus-client."""
        if find_spec("prometheus_client") is None:
            _log_once(
                logging.INFO, 'metrics are off: prometheus-client is not installed (pip install "fastapi-outbox[metrics]")'
            )
            return None
        prometheus = import_module("outbox.observers.prometheus")
        if self._by_database is None:
            self._by_database = database is not None
            if self._by_database:
                import_module("prometheus_client").REGISTRY.register(prometheus.DatabaseCollector(self.served))
        if database is not None and not self._by_database:
            _log_once(logging.WARNING, "metrics have no label `database`: a component without one was started before")
        label = (database or "") if self._by_database else None
        if label not in self._observers:
            self._observers[label] = prometheus.PrometheusObserver(label)
        return cast("Observer", self._observers[label])

    def forget(self, database: str) -> None:
        """Removes the series of a database that is no longer served."""
        if (observer := self._observers.pop(database, None)) is not None:
            observer.remove_series()


METRICS = ProcessMetrics()


@cache
def _log_once(level: int, text: str) -> None:
    _log.log(level, text)
