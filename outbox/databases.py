"""Databases: runs a relay, worker, archiver or maintenance for each of several databases in one process."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from os import PathLike
from pathlib import Path
from urllib.parse import unquote, urlsplit

from outbox.core import arguments
from outbox.core.threads import Threads
from outbox.core.urls import postgres_url, redacted
from outbox.engine.lifecycle import GRACE_PERIOD, Stopping, run_until_stopped
from outbox.engine.observers import SERVED, ServedDatabase
from outbox.engine.tasks import ungrouped
from outbox.errors import ConfigurationError, HandlersAbandonedError, OutboxError
from outbox.runtime.health import OK, STARTING, UNAVAILABLE
from outbox.runtime.observing import METRICS
from outbox.runtime.supervision import CANCEL_TIMEOUT, LONGEST_PAUSE, Part, SupervisedPart, cancel, drain

REFRESH = timedelta(seconds=30)
"""Default interval at which a source is read again."""
READ_TIMEOUT = timedelta(seconds=30)
"""Maximum time for reading a source once."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_ENTRY = re.compile(r"(?:(?P<name>[^\s=:/]+)(?:\s*=\s*|\s+))?(?P<url>\S+)")

Found = Mapping[str, str]
Source = Found | str | PathLike[str] | Callable[[], Found | Awaitable[Found]]

logger = logging.getLogger("outbox")


class Databases:
    """Runs a component for each of several databases, until it is stopped. A database that fails delays no other one.

    `source` says which databases there are. It is a mapping of names to URLs; the path of a file with a line `name=url` or
    `name url` for each, where a line with `#` is a comment; or a callable, async or not, that returns a mapping. A callable
    that is not async runs in a thread. Files and callables are read again every `refresh` seconds. A name has up to 63 letters,
    digits, `_`, `.` and `-`. Logs, metrics and health show the name, and never the URL.

    `make` is called with a name and a URL, and returns a new `MessageRelay`, `Worker`, `Archiver` or `Maintenance` for that
    database. Each runs in a task of its own. One that fails is replaced by a new one, after a pause that doubles from a second
    to `longest_pause` seconds. `grace_period`, in seconds, should be that of the components.

    Raises `ConfigurationError` for invalid arguments.
    """

    def __init__(
        self,
        source: Source,
        make: Callable[[str, str], Part],
        *,
        refresh: float | timedelta = REFRESH,
        longest_pause: float | timedelta = LONGEST_PAUSE,
        grace_period: float = GRACE_PERIOD.total_seconds(),
    ) -> None:
        if not isinstance(source, Mapping | str | PathLike) and not callable(source):
            raise ConfigurationError(
                f"databases are a mapping of names to URLs, the path of a file, or a callable, not {type(source).__name__}"
            )
        if isinstance(source, Mapping):
            if not source:
                raise ConfigurationError("the list of databases is empty")
            _refuse(_checked(_entries(source))[1], "the list of databases")
        self._source = source
        self._make = make
        self._refresh = arguments.interval("refresh", refresh)
        self._longest_pause = arguments.interval("longest_pause", longest_pause)
        self._grace_period = arguments.grace_period(grace_period)
        self._stopping = Stopping()
        self._thread = Threads(1, "databases")
        self._serving: dict[str, _Serving] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The last task of each database, which may still drain after the database has disappeared."""
        self._is_known = False
        self._problem: str | None = None
        self._abandoned: HandlersAbandonedError | None = None

    async def run(self, *, handle_signals: bool = True) -> None:
        """Serves all databases until `stop()`, SIGINT or SIGTERM; then all components drain at the same time.

        While it runs, a database that appears in the source is served, one that disappears is drained, and one whose URL has
        changed is drained and served with the new URL. If the source cannot be read, or has no databases any more, those that
        are known stay. An entry that is invalid is left out, or stays as it was. Both are logged.

        At the start, raises `ConfigurationError` for an entry or a file that is invalid, and errors of `make`. A callable that
        raises another error is called again later. Cancelled, it drains within the grace period and re-raises; cancelled twice,
        it cancels all components. Raises `HandlersAbandonedError` at the end if handlers of a worker still run.
        """
        self._serving.clear()
        self._is_known, self._abandoned = False, None
        # Only one: reads that never end must not become more and more threads.
        self._thread = Threads(1, "databases")
        # The components end themselves within the grace period: the margins are for those that do not.
        margin = 2 * CANCEL_TIMEOUT
        METRICS.served.append(self._served)
        try:
            await run_until_stopped(
                self._work, self._stopping, grace_period=self._grace_period + margin, handle_signals=handle_signals
            )
        finally:
            METRICS.served.remove(self._served)
            self._thread.close()
        if self._abandoned is not None:
            raise self._abandoned

    def stop(self) -> None:
        """Asks `run` to drain and return. May be called from any thread or signal handler, and more than once.

        A later `run` returns at once.
        """
        self._stopping.request()

    def states(self) -> dict[str, str]:
        """Returns the state of each database by its name.

        `ok`: its component runs. `starting`: it looks for its tables. `unavailable`: it has failed and will be replaced, or it
        waits for the database or the broker.
        """
        return {name: serving.state for name, serving in sorted(self._serving.items())}

    def _served(self) -> dict[str, bool]:
        return {name: state == OK for name, state in self.states().items()}

    async def check(self) -> None:
        """Raises `OutboxError` until the source was read and each of its databases has started or was found unavailable.

        A sick database does not count: the others are served, and a process without it would serve no more of them.
        """
        if not self._is_known:
            raise OutboxError(self._problem or "the databases are not known yet")
        if starting := [name for name, state in self.states().items() if state == STARTING]:
            raise OutboxError(f"starting: {', '.join(starting)}")

    async def _work(self, stopping: Stopping) -> None:
        with ungrouped():
            async with asyncio.TaskGroup() as group:
                following = group.create_task(self._follow(group))
                try:
                    await stopping.wait()
                    following.cancel()
                    for serving in self._serving.values():
                        serving.part.stop()
                    await drain(list(self._tasks.values()), self._grace_period)
                except BaseException:
                    await cancel(list(self._tasks.values()))
                    raise

    # --- the source ------------------------------------------------------------------------------------------------------

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        """Reads the source, and starts and stops components accordingly, until it is cancelled."""
        while True:
            try:
                async with asyncio.timeout(READ_TIMEOUT.total_seconds()):
                    found, problems = await self._read()
            # A callable may raise anything, for example if it needs a server that is away.
            except Exception as error:
                reason = redacted(str(error)) or type(error).__name__
                if not self._is_known and isinstance(error, ConfigurationError):
                    raise ConfigurationError(f"{self._description} cannot be read: {reason}") from error
                self._report(f"{self._description} cannot be read, trying again: {reason}")
            else:
                if not self._is_known:
                    _refuse(problems, self._description)
                self._apply(found, problems, group)
            if isinstance(self._source, Mapping):
                return
            await asyncio.sleep(self._refresh.total_seconds())

    @property
    def _description(self) -> str:
        return f"the file {self._source}" if isinstance(self._source, str | PathLike) else "the list of databases"

    async def _read(self) -> tuple[dict[str, str], dict[str, str]]:
        """Returns the databases, and the problems of entries that are left out, by the name or the line of the entry."""
        if isinstance(self._source, str | PathLike):
            try:
                text = await self._thread.call(partial(Path(self._source).read_text, "utf-8"))
            except (OSError, ValueError) as error:
                reason = (error.strerror if isinstance(error, OSError) else None) or "it is not text"
                raise ConfigurationError(reason) from error
            lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
            return _checked((f"line {number}", *_parse(line)) for number, line in lines if line and not line.startswith("#"))
        if isinstance(self._source, Mapping):
            found = self._source
        else:
            # In a thread, because a query that blocks the event loop would delay every database.
            answer = await (self._source() if iscoroutinefunction(self._source) else self._thread.call(self._source))
            found = await answer if isawaitable(answer) else answer
        if not isinstance(found, Mapping):
            raise ConfigurationError(f"it must be a mapping of names to URLs, not {type(found).__name__}")
        return _checked(_entries(found))

    def _report(self, problem: str | None) -> None:
        """Logs a problem of the source when it appears, and when it is over."""
        if problem is not None and problem != self._problem:
            logger.warning("%s", problem)
        elif problem is None and self._problem is not None:
            logger.info("%s is valid again", self._description)
        self._problem = problem

    # --- the components --------------------------------------------------------------------------------------------------

    def _apply(self, found: dict[str, str], problems: dict[str, str], group: asyncio.TaskGroup) -> None:
        """Serves the databases `found`. The first time, all components are made before one starts, and errors are raised."""
        if not found and not problems:
            self._report(f"{self._description} is empty" + (": the known databases stay" if self._serving else ""))
            # A file that is being written, or a query of the wrong table, is more likely than the end of all databases.
            if self._serving:
                return
        else:
            self._report("; ".join(problems.values()) or None)
        for name in problems.keys() & self._serving.keys():
            found.setdefault(name, self._serving[name].url)
        made = {} if self._is_known else {name: self._make(name, url) for name, url in found.items()}
        for name, serving in list(self._serving.items()):
            if found.get(name) != serving.url:
                change = "has another URL" if name in found else "is no longer listed"
                logger.info("the database %s %s: its component stops", name, change, extra={"database": name})
                serving.part.stop()
                del self._serving[name]
        for name, url in found.items():
            if name not in self._serving:
                if self._is_known:
                    logger.info("the database %s is listed: its component starts", name, extra={"database": name})
                self._start(name, url, made.get(name), group)
        self._is_known = True

    def _start(self, name: str, url: str, first: Part | None, group: asyncio.TaskGroup) -> None:
        served = ServedDatabase(name)

        def make() -> Part:
            # A new component knows nothing of what the last one has lost, and would never report that it is back.
            served.is_started = False
            served.lost.clear()
            return self._make(name, url)

        part = SupervisedPart(f"component of the database {name}", first, make, longest_pause=self._longest_pause)
        self._serving[name] = _Serving(url, part, served)
        serve = self._serve(self._serving[name], predecessor=self._tasks.get(name))
        self._tasks[name] = group.create_task(serve, name=f"outbox {part.name}")

    async def _serve(self, serving: "_Serving", predecessor: asyncio.Task[None] | None) -> None:
        """Runs a component and its replacements until it is stopped, after the predecessor with another URL has ended."""
        name = serving.served.name
        SERVED.set(serving.served)
        if predecessor is not None:
            await drain([predecessor], self._grace_period)
        await serving.part.keep_running()
        self._abandoned = self._abandoned or serving.part.abandoned
        # Unless a successor waits for the end of this task.
        if self._tasks.get(name) is asyncio.current_task():
            del self._tasks[name]
            if name not in self._serving:
                METRICS.forget(name)


@dataclass(frozen=True, slots=True)
class _Serving:
    """A database and its component."""

    url: str
    part: SupervisedPart
    served: ServedDatabase

    @property
    def state(self) -> str:
        if self.part.problem is not None or self.served.lost:
            return UNAVAILABLE
        return OK if self.served.is_started else STARTING


def parse_databases(entries: Iterable[str]) -> dict[str, str]:
    """Parses entries `name=url`, or only `url`, where the name is that of the database in the URL. Returns URLs by name.

    Raises `ConfigurationError` for entries that are invalid or have the same name. Its message contains no URL.
    """
    numbered = ((f"database {number}", *_parse(entry)) for number, entry in enumerate(entries, 1))
    found, problems = _checked(numbered)
    _refuse(problems, "the list of databases")
    return found


def _parse(entry: str) -> tuple[str, str]:
    """Returns the name and the URL of an entry; what cannot be read is empty."""
    match = _ENTRY.fullmatch(entry)
    if match is None:
        return "", ""
    url = match["url"]
    try:
        return match["name"] or unquote(urlsplit(url).path.removeprefix("/")), url
    except ValueError:
        return "", url


def _entries(found: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    # Not by the name: it is a URL with a password in a mapping that is the wrong way round.
    return ((f"entry {number}", name, url) for number, (name, url) in enumerate(found.items(), 1))


def _checked(entries: Iterable[tuple[str, object, object]]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the URLs of valid entries by name, and the problems of the others. An entry has a position, a name and a URL."""
    found, problems = dict[str, str](), dict[str, str]()
    for position, name, url in entries:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            problems[position] = (
                f"{position}: a database needs a name of up to 63 letters, digits, _, . and -, as acme=postgresql://…"
            )
        elif name in found:
            problems[position] = f"{position}: the name {name} is used twice"
        else:
            try:
                found[name] = postgres_url(url, argument=f"the database {name}")  # type: ignore[arg-type]  # it checks the type
            except ConfigurationError as error:
                problems[name] = f"{position}: {error}"
    return found, problems


def _refuse(problems: Mapping[str, str], source: str) -> None:
    if problems:
        raise ConfigurationError(f"{source}: {'; '.join(problems.values())}")
