"""Databases: which ones there are, and a component for each, that starts, fails, is replaced and stops by itself."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from outbox import Databases, LogFields
from outbox.cli.logs import PlainFormatter
from outbox.core.events import Dependency, DependencyLost, DependencyRestored
from outbox.core.threads import Threads
from outbox.databases import parse_databases
from outbox.engine.observers import SERVED
from outbox.errors import ConfigurationError, HandlersAbandonedError, OutboxError, SchemaError
from outbox.runtime import supervision
from outbox.runtime.observing import build_observer
from tests.support import eventually

A, B, C = (f"postgresql://ada:hunter2@db/{name}" for name in "abc")


class Component:
    """Works until it is asked to stop and `may_end`, or fails at once."""

    def __init__(self, name: str, url: str, failure: Exception | None) -> None:
        self.name, self.url, self._failure = name, url, failure
        self.is_running = self.is_asked = False
        self.may_end = asyncio.Event()
        self.may_end.set()
        self._asked = asyncio.Event()

    async def run(self, *, handle_signals: bool = True) -> None:
        assert not handle_signals
        if self._failure is not None:
            raise self._failure
        self.is_running = True
        self.observer = build_observer(enable_metrics=False)
        served = SERVED.get()
        assert served is not None
        assert served.name == self.name
        served.is_started = True
        logging.getLogger("outbox").info("works")
        try:
            await self._asked.wait()
            await self.may_end.wait()
        finally:
            self.is_running = False

    def stop(self) -> None:
        self.is_asked = True
        self._asked.set()


class Fleet:
    """What `make` has made, and the failures that the next components begin with."""

    def __init__(self) -> None:
        self.made: list[Component] = []
        self.failures: dict[str, Exception] = {}

    def make(self, name: str, url: str) -> Component:
        self.made.append(Component(name, url, self.failures.get(name)))
        return self.made[-1]

    @property
    def at_work(self) -> dict[str, str]:
        return {each.name: each.url for each in self.made if each.is_running}

    def of(self, name: str) -> Component:
        """The newest component of a database."""
        return [each for each in self.made if each.name == name][-1]


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", supervision.FIRST_PAUSE / 100)


@asynccontextmanager
async def running(databases: Databases) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(databases.run(handle_signals=False))
    try:
        yield task
    finally:
        databases.stop()
        await task


def of_file(path: Path, fleet: Fleet, **options: Any) -> Databases:
    return Databases(path, fleet.make, refresh=0.01, **options)


def replace_file(path: Path, text: str) -> None:
    """As an operator should: the file is never seen half written."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


# --- entries ---------------------------------------------------------------------------------------------------------


def test_an_entry_is_a_name_and_a_url_or_a_url_that_names_the_database() -> None:
    entries = [f"acme={A}", f"globex {B}?sslmode=require", "postgresql+asyncpg://db/ini%74ech?application_name=x"]
    assert parse_databases(entries) == {
        "acme": A,
        "globex": f"{B}?sslmode=require",
        "initech": "postgresql://db/ini%74ech?application_name=x",
    }


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([f"acme={A}", f"acme={B}"], "database 2: the name acme is used twice"),
        ([A, A], "database 2: the name a is used twice"),
        (["acme=mysql://ada:hunter2@db/a"], "the database acme must be a postgresql:// URL, not mysql://"),
        (["acme=amqp://ada:hunter2@mq/a"], "the database acme must be a postgresql:// URL"),
        (["acme=hunter2"], "the database acme is not a URL"),
        (["postgresql://ada:hunter2@db/"], "database 1: a database needs a name"),
        (["hunter2"], "database 1: the database hunter2"),
        ([f"a/b={A}"], "a database needs a name"),
        ([f"{'x' * 64}={A}"], "a database needs a name of up to 63"),
        (["acme = two words"], "a database needs a name"),
    ],
)
def test_an_invalid_entry_is_refused_without_its_password(entries: list[str], problem: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_databases(entries)
    assert problem in str(refused.value)
    assert ":hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({}, "the list of databases is empty"),
        ({"acme": "mysql://db/a"}, "not mysql://"),
        ({"": A}, "entry 1: a database needs a name"),
        ({A: "a"}, "entry 1: a database needs a name of up to 63 letters, digits, _, . and -, as acme=postgresql://…$"),
        ({"acme": 5}, "must be a URL as text"),
        (["acme"], "not list"),
    ],
)
def test_a_mapping_is_checked_when_it_is_passed(source: Any, problem: str, fleet: Fleet) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Databases(source, fleet.make)


@pytest.mark.parametrize("option", [{"refresh": 0}, {"longest_pause": -1}, {"grace_period": 0}])
def test_invalid_times_are_refused(option: dict[str, Any], fleet: Fleet) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(option))):
        Databases({"a": A}, fleet.make, **option)


# --- sources ---------------------------------------------------------------------------------------------------------


async def test_databases_come_and_go_with_the_lines_of_a_file(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "databases"
    path.write_text(f"# tenants\n\na={A}\n  b   {B}\n")
    databases = of_file(path, fleet)
    async with running(databases):
        await eventually(lambda: fleet.at_work == {"a": A, "b": B})
        stays = fleet.of("a")
        replace_file(path, f"a={A}\nc={C}\n")
        await eventually(lambda: fleet.at_work == {"a": A, "c": C})
        assert fleet.of("b").is_asked, "it was drained, not cancelled"
        assert fleet.of("a") is stays
        assert databases.states() == {"a": "ok", "c": "ok"}
    assert fleet.at_work == {}


async def test_another_url_is_served_once_the_component_of_the_old_one_has_drained(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "databases"
    path.write_text(f"a={A}\n")
    async with running(of_file(path, fleet)):
        await eventually(lambda: fleet.at_work == {"a": A})
        old = fleet.of("a")
        old.may_end.clear()
        replace_file(path, f"a={B}\nc={C}\n")
        await eventually(lambda: "c" in fleet.at_work)
        assert old.is_running
        assert fleet.made == [old, fleet.of("c")], "no second component works on it meanwhile"
        old.may_end.set()
        await eventually(lambda: fleet.at_work == {"a": B, "c": C})


async def test_a_file_that_is_invalid_at_the_start_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "databases"
    with pytest.raises(ConfigurationError, match="No such file"):
        await of_file(path, fleet).run(handle_signals=False)
    path.write_text(f"a={A}\nb=mysql://ada:hunter2@db/b\n")
    with pytest.raises(ConfigurationError, match="line 2: the database b must be a postgresql:// URL, not mysql://") as refused:
        await of_file(path, fleet).run(handle_signals=False)
    assert "hunter2" not in str(refused.value)
    assert fleet.made == []


async def test_later_an_invalid_line_is_left_out_and_a_known_database_stays(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "databases"
    path.write_text(f"a={A}\n")
    with caplog.at_level(logging.INFO):
        async with running(of_file(path, fleet)):
            await eventually(lambda: fleet.at_work == {"a": A})
            replace_file(path, f"a=oops\nb={B}\n!={C}\n")
            await eventually(lambda: fleet.at_work == {"a": A, "b": B})
            path.unlink()
            await eventually(lambda: "cannot be read, trying again: No such file" in caplog.text)
            replace_file(path, "")
            await eventually(lambda: f"the file {path} is empty: the known databases stay" in caplog.text)
            assert fleet.at_work == {"a": A, "b": B}
            replace_file(path, f"a={A}\nb={B}")
            await eventually(lambda: "is valid again" in caplog.text)
    assert len(fleet.made) == 2
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 3, "once for each problem, not at each reading"
    assert "line 1: the database a is not a URL" in warnings[0]
    assert "line 3: a database needs a name" in warnings[0]


def _sync(found: Mapping[str, str]) -> Callable[[], Any]:
    return lambda: dict(found)


def _async(found: Mapping[str, str]) -> Callable[[], Any]:
    async def ask() -> Mapping[str, str]:
        return dict(found)

    return ask


@pytest.mark.parametrize("kind", [_sync, _async])
async def test_a_callable_is_asked_again(kind: Callable[[Mapping[str, str]], Callable[[], Any]], fleet: Fleet) -> None:
    found = {"a": A}
    async with running(Databases(kind(found), fleet.make, refresh=0.01)):
        await eventually(lambda: fleet.at_work == {"a": A})
        found["b"] = B
        await eventually(lambda: fleet.at_work == {"a": A, "b": B})


async def test_a_callable_that_fails_is_asked_again_and_the_known_databases_stay(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    answers: Iterator[Any] = iter([OSError("no route to postgresql://ada:hunter2@db/tenants"), {"a": A}, OSError("again"), 5])
    last = {"a": A, "b": B}

    def ask() -> Any:
        answer = next(answers, last)
        if isinstance(answer, Exception):
            raise answer
        return answer

    databases = Databases(ask, fleet.make, refresh=0.01)
    async with running(databases):
        await eventually(lambda: fleet.at_work == {"a": A, "b": B})
    assert len(fleet.made) == 2
    assert "the list of databases cannot be read, trying again: again" in caplog.text
    assert "it must be a mapping of names to URLs, not int" in caplog.text
    assert "hunter2" not in caplog.text


async def test_a_callable_that_never_returns_takes_one_thread_that_keeps_no_process_alive(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    callers: list[threading.Thread] = []
    may_return = threading.Event()
    reads, call = 0, Threads.call

    async def counted(threads: Threads, function: Callable[[], Any]) -> Any:
        nonlocal reads
        reads += 1
        return await call(threads, function)

    monkeypatch.setattr(Threads, "call", counted)

    def ask() -> Mapping[str, str]:
        callers.append(threading.current_thread())
        if len(callers) == 1:
            # From the second read on.
            monkeypatch.setattr("outbox.databases.READ_TIMEOUT", timedelta(milliseconds=10))
            return {"a": A}
        may_return.wait(30)
        return {"b": B}

    try:
        async with running(Databases(ask, fleet.make, refresh=0.01)):
            await eventually(lambda: "cannot be read, trying again: TimeoutError" in caplog.text)
            await eventually(lambda: reads >= 5)
            assert len(callers) == 2, "nothing is asked while an answer is missing"
            assert all(caller.daemon for caller in callers)
            assert fleet.at_work == {"a": A}
            may_return.set()
            await eventually(lambda: fleet.at_work == {"b": B})
    finally:
        may_return.set()
    await eventually(lambda: not any(caller.is_alive() for caller in callers))


async def test_what_a_callable_answers_at_the_start_must_be_valid(fleet: Fleet) -> None:
    with pytest.raises(ConfigurationError, match="not mysql://"):
        await Databases(lambda: {"a": A, "b": "mysql://db/b"}, fleet.make).run(handle_signals=False)
    assert fleet.made == []


async def test_an_error_of_make_at_the_start_is_raised(fleet: Fleet) -> None:
    def make(name: str, url: str) -> Component:
        if name == "b":
            raise ConfigurationError("lanes must be a number")
        return fleet.make(name, url)

    with pytest.raises(ConfigurationError, match="lanes must be"):
        await Databases({"a": A, "b": B}, make).run(handle_signals=False)
    assert fleet.at_work == {}


# --- components ------------------------------------------------------------------------------------------------------


async def test_a_component_that_fails_is_replaced_after_growing_pauses_and_alone(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.failures["b"] = SchemaError("no table: run outbox migrate")
    databases = Databases({"a": A, "b": B}, fleet.make, longest_pause=0.02)
    async with running(databases):
        await eventually(lambda: len(fleet.made) == 5)
        assert fleet.at_work == {"a": A}
        assert databases.states() == {"a": "ok", "b": "unavailable"}
        del fleet.failures["b"]
        await eventually(lambda: fleet.at_work == {"a": A, "b": B})
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert lines[:3] == [
        f"The component of the database b has failed and is restarted in {pause} s: no table: run outbox migrate"
        for pause in (0.01, 0.02, 0.02)
    ]


async def test_all_are_asked_to_stop_at_once(fleet: Fleet) -> None:
    databases = Databases({"a": A, "b": B}, fleet.make)
    async with running(databases) as task:
        await eventually(lambda: len(fleet.at_work) == 2)
        for component in fleet.made:
            component.may_end.clear()
        databases.stop()
        await eventually(lambda: all(component.is_asked for component in fleet.made))
        assert len(fleet.at_work) == 2
        fleet.of("b").may_end.set()
        await eventually(lambda: fleet.at_work == {"a": A})
        assert not task.done()
        fleet.of("a").may_end.set()
    assert fleet.at_work == {}


async def test_one_that_does_not_stop_is_cancelled_after_the_grace_period(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervision, "CANCEL_TIMEOUT", supervision.CANCEL_TIMEOUT / 100)
    async with running(Databases({"a": A, "b": B}, fleet.make, grace_period=0.05)):
        await eventually(lambda: len(fleet.at_work) == 2)
        fleet.of("b").may_end.clear()
    assert fleet.at_work == {}
    assert "component of the database b did not finish within the grace period of 0.05 s and is cancelled" in caplog.text


async def test_a_run_that_is_cancelled_drains_and_may_be_repeated(fleet: Fleet) -> None:
    databases = Databases({"a": A}, fleet.make)
    task = asyncio.create_task(databases.run(handle_signals=False))
    await eventually(lambda: fleet.at_work == {"a": A})
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert fleet.of("a").is_asked
    assert fleet.at_work == {}
    async with running(databases):
        await eventually(lambda: fleet.at_work == {"a": A})


async def test_abandoned_handlers_are_reported_at_the_end(fleet: Fleet) -> None:
    fleet.failures["b"] = HandlersAbandonedError(count=1, handlers=["stubborn"])
    databases = Databases({"a": A, "b": B}, fleet.make)
    with pytest.raises(HandlersAbandonedError, match="stubborn"):
        async with running(databases):
            await eventually(lambda: fleet.at_work == {"a": A})


async def test_states_follow_the_servers_that_a_component_loses(fleet: Fleet) -> None:
    databases = Databases({"a": A}, fleet.make)
    with pytest.raises(OutboxError, match="not known yet"):
        await databases.check()
    async with running(databases):
        await eventually(lambda: databases.states() == {"a": "ok"})
        observer = fleet.of("a").observer
        observer.notify(DependencyLost(dependency=Dependency.DATABASE, reason="gone", timed_out=False))
        assert databases.states() == {"a": "unavailable"}
        await databases.check()
        observer.notify(DependencyRestored(dependency=Dependency.DATABASE))
        assert databases.states() == {"a": "ok"}


# --- logs and metrics --------------------------------------------------------------------------------------------------


async def test_records_of_a_component_have_the_name_of_its_database(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(filter_ := LogFields())
    try:
        with caplog.at_level(logging.INFO):
            async with running(Databases({"a": A, "b": B}, fleet.make)):
                await eventually(lambda: len(fleet.at_work) == 2)
                logging.getLogger("outbox").info("of the process")
    finally:
        caplog.handler.removeFilter(filter_)
    records = {record.__dict__["database"]: record for record in caplog.records if record.getMessage() == "works"}
    assert records.keys() == {"a", "b"}
    assert PlainFormatter(colours=False).format(records["a"]).endswith(" INFO    outbox [a]: works")
    (other,) = [record for record in caplog.records if record.getMessage() == "of the process"]
    assert other.__dict__["database"] is None
    assert PlainFormatter(colours=False).format(other).endswith(" INFO    outbox: of the process")


METRICS = """
from datetime import timedelta
from prometheus_client import REGISTRY, generate_latest
from outbox.engine.observers import SERVED, ServedDatabase
from outbox.core.events import BacklogMeasured, HistoryLost
from outbox.runtime.observing import METRICS, build_observer

def observe(name, unsent):
    SERVED.set(None if name is None else ServedDatabase(name))
    observer = build_observer(enable_metrics=True)
    observer.notify(BacklogMeasured(exchange_name="outbox", unsent=unsent, oldest_due=None))
    observer.notify(HistoryLost(count=unsent, reason="x"))

for name, unsent in {order}:
    observe(name, unsent)
METRICS.forget("b")
observe("a", 4)
for line in generate_latest().decode().splitlines():
    if line.startswith(("outbox_table_backlog", "outbox_history_lost_total")):
        print(line)
"""


def _exposed(order: list[tuple[str | None, int]]) -> tuple[list[str], str]:
    program = METRICS.replace("{order}", repr(order))
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, env=dict(os.environ)
    )
    return finished.stdout.splitlines(), finished.stderr


def test_metrics_have_the_database_as_a_label_until_it_is_no_longer_served() -> None:
    lines, log = _exposed([("a", 1), ("b", 2), (None, 3)])
    assert lines == [
        'outbox_table_backlog{database="a",exchange_name="outbox"} 4.0',
        'outbox_table_backlog{database="",exchange_name="outbox"} 3.0',
        'outbox_history_lost_total{database="a"} 5.0',
        'outbox_history_lost_total{database=""} 3.0',
    ]
    assert "label" not in log


def test_metrics_that_were_registered_without_the_label_keep_their_labels() -> None:
    lines, log = _exposed([(None, 3), ("a", 1), ("b", 2)])
    assert lines == ['outbox_table_backlog{exchange_name="outbox"} 4.0', "outbox_history_lost_total 10.0"]
    assert log.count("metrics have no label `database`") == 1
