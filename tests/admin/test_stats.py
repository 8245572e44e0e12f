"""`GET /stats`: columns over time, summed over processes, with null where no component reported."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from outbox.admin.admin import _READING
from outbox.admin.stats import default_step, fit_steps, quantile, steps_between
from outbox.reporting.statistics import SeriesReader
from outbox.reporting.tables import thin_stats
from tests.postgres_transport.support import explained, rows_read

ROW = """
    insert into outbox_stats (
        starts_at, seconds, routing_key, queue, created, sent, processed, failed, retried, dead, backlog, oldest_age, latency
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, make_interval(secs => $12), $13::bigint[])
"""


class Statistics:
    """Writes rows like relays and workers do."""

    def __init__(self, connection: asyncpg.Connection, minute: datetime) -> None:
        self.connection = connection
        self.minute = minute

    def at(self, minutes_ago: int) -> datetime:
        """Start of the minute that was `minutes` ago."""
        return self.minute - timedelta(minutes=minutes_ago)

    async def of_relay(
        self, at: datetime, key: str = "e", sent: int = 0, backlog: int | None = None, latency: Any = None, seconds: int = 60
    ) -> None:
        """Writes a relay's row: of a routing key, or, with a backlog, of the table."""
        age = None if backlog is None else backlog / 10
        key = key if backlog is None else ""
        values = (key, "", sent, sent, 0, 0, 0, 0, backlog, age, latency)
        await self.connection.execute(ROW, at, seconds, *values)

    async def of_worker(
        self, at: datetime, queue: str, processed: int, dead: int = 0, key: str = "e", latency: Any = None, seconds: int = 60
    ) -> None:
        """Writes a worker's row of a queue."""
        values = (key, queue, 0, 0, processed, dead, 0, dead, None, None, latency)
        await self.connection.execute(ROW, at, seconds, *values)


@pytest.fixture
async def stats(database: str) -> AsyncIterator[Statistics]:
    connection = await asyncpg.connect(database)
    now = await connection.fetchval("select date_trunc('minute', clock_timestamp())")
    yield Statistics(connection, now)
    await connection.close()


def buckets(**counts: int) -> list[int]:
    """Builds a histogram; omitted buckets are 0. `b3=7` is seven in the fourth bucket."""
    return [counts.get(f"b{number}", 0) for number in range(21)]


async def read(viewer: httpx.AsyncClient, **parameters: Any) -> Any:
    """The answer."""
    answer = await viewer.get("/stats", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_last_hour_is_by_the_minute_and_the_newest_minute_is_incomplete(
    viewer: httpx.AsyncClient, stats: Statistics
) -> None:
    await stats.of_relay(stats.at(2), sent=5, latency=buckets(b3=4, b4=1))
    await stats.of_relay(stats.at(2), "f", sent=2, latency=buckets(b3=2))
    await stats.of_relay(stats.at(2), backlog=40)
    await stats.of_relay(stats.at(1), backlog=3)
    await stats.of_worker(stats.at(2), "stock", processed=4, dead=1, latency=buckets(b8=5))
    answer = await read(viewer)
    assert (answer["step_seconds"], answer["step_reason"], answer["group_by"]) == (60, None, "none")
    assert len(answer["starts_at"]) in (60, 61)
    assert len(answer["complete"]) == len(answer["starts_at"])
    assert (answer["complete"][0], answer["complete"][-1]) == (True, False)
    [series] = answer["series"]
    at = answer["starts_at"].index(stats.at(2).isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    assert [series[name][at : at + 2] for name in ("sent", "created")] == [[7, 0], [7, 0]]
    assert series["sent"][at - 1] is None
    assert (series["backlog"][at : at + 2], series["oldest_age_seconds"][at]) == ([40, 3], 4.0)
    assert [series[name][at : at + 2] for name in ("processed", "failed", "dead")] == [[4, None], [1, None], [1, None]]
    assert series["latency_seconds"]["p50"][at] == pytest.approx(0.005 + 0.005 * 3.5 / 6, abs=1e-6)
    assert series["handling_seconds"]["p99"][at] == pytest.approx(0.25 + 0.25 * 4.95 / 5, abs=1e-6)
    assert series["latency_seconds"]["p99"][at + 1] is None
    assert (series["latency_buckets"], len(answer["bucket_bounds_seconds"])) == (None, 20)


async def test_statistics_of_several_processes_are_summed_by_queue_and_by_routing_key(
    viewer: httpx.AsyncClient, stats: Statistics
) -> None:
    await stats.of_worker(stats.at(1), "stock", processed=4, key="a")
    await stats.of_worker(stats.at(1), "stock", processed=3, key="b")
    await stats.of_worker(stats.at(1), "mail", processed=1, key="a")
    await stats.of_relay(stats.at(1), "a", sent=9)
    by_queue = await read(viewer, group_by="queue", step="60s")
    assert [(each["group"], sum(filter(None, each["processed"]))) for each in by_queue["series"]] == [("stock", 7), ("mail", 1)]
    assert {value for each in by_queue["series"] for name in ("sent", "created") for value in each[name]} == {None}
    by_key = await read(viewer, group_by="routing_key", buckets=True)
    totals = [
        (each["group"], sum(filter(None, each["sent"])), sum(filter(None, each["processed"]))) for each in by_key["series"]
    ]
    assert totals == [("a", 9, 5), ("b", 0, 3)]
    assert len(by_key["series"][0]["latency_buckets"]) == len(by_key["starts_at"])


async def test_only_the_most_active_groups_have_a_series_and_points_are_limited(
    viewer: httpx.AsyncClient, stats: Statistics
) -> None:
    for number in range(25):
        await stats.of_worker(stats.at(3), f"q{number:02}", processed=100 - number)
    answer = await read(viewer, group_by="queue", step="60s", **{"from": "-12h"})
    names = [each["group"] for each in answer["series"]]
    assert (len(names), names[0], names[-1]) == (21, "q00", "(others)")
    assert sum(filter(None, answer["series"][-1]["processed"])) == sum(100 - number for number in range(20, 25))
    assert len(answer["starts_at"]) * 21 <= 2_000
    assert (answer["step_seconds"], "2,000 points" in answer["step_reason"]) == (600, True)


async def test_more_groups_than_fit_with_any_step_are_refused(viewer: httpx.AsyncClient, stats: Statistics) -> None:
    for number in range(9):
        await stats.of_worker(stats.at(3), f"q{number}", processed=1)
    answer = await viewer.get("/stats", params={"from": "-7300d", "group_by": "queue"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert "2,000 points" in answer.json()["detail"]


async def test_rows_without_a_routing_key_show_that_relays_and_workers_ran(
    viewer: httpx.AsyncClient, stats: Statistics
) -> None:
    await stats.of_relay(stats.at(4), backlog=7)
    await stats.of_worker(stats.at(3), "stock", processed=0, key="")
    await stats.of_relay(stats.at(2), "a", sent=5)
    await stats.of_worker(stats.at(2), "stock", processed=5, key="a")
    answer = await read(viewer, group_by="routing_key")
    [series] = answer["series"]
    at = answer["starts_at"].index(stats.at(4).isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    assert (series["group"], series["sent"][at : at + 3]) == ("a", [0, None, 5])
    assert series["processed"][at : at + 3] == [None, 0, 5]
    assert set(series["backlog"]) == {None}


async def test_old_statistics_have_steps_of_hours_or_days(viewer: httpx.AsyncClient, stats: Statistics) -> None:
    day = timedelta(days=1)
    for minutes in range(0, 180, 30):
        await stats.of_worker(stats.at(3 * 1_440 + minutes), "q", processed=1, latency=buckets(b2=1))
    await stats.of_worker(stats.minute - 100 * day, "q", processed=7, latency=buckets(b2=7))
    while await thin_stats(stats.connection):
        pass
    answer = await read(viewer, step="5m", **{"from": "-4d", "to": "-2d"})
    assert (answer["step_seconds"], answer["step_reason"]) == (3_600, "statistics of that time are kept per hour")
    assert sum(filter(None, answer["series"][0]["processed"])) == 6
    medians = answer["series"][0]["handling_seconds"]["p50"]
    assert next(value for value in medians if value is not None) == pytest.approx(0.00375)
    inside = (stats.minute - 100 * day).replace(hour=3, minute=10)
    part = await read(viewer, step="60s", **{"from": inside.isoformat(), "to": (inside + timedelta(minutes=5)).isoformat()})
    assert (part["step_seconds"], part["series"][0]["processed"]) == (86_400, [7])
    whole = await read(viewer, **{"from": "-200d"})
    assert (sum(filter(None, whole["series"][0]["processed"])), whole["step_reason"]) == (13, None)


@pytest.mark.parametrize(
    "parameters",
    [
        {"from": "yesterday"},
        {"from": "2026-01-01"},
        {"from": "-0s"},
        {"from": "-9999999w"},
        {"from": "0001-01-01T00:00:00Z"},
        {"from": "0001-01-01T00:00:00Z", "to": "0001-01-01T00:05:00Z"},
        {"from": "0001-01-01T00:00:00Z", "to": "0001-06-01T00:00:00Z"},
        {"to": "-2h"},
        {"from": "2999-01-01T00:00:00Z"},
        {"step": "0s"},
        {"step": "1y"},
        {"step": "٣s"},
        {"group_by": "id"},
        {"bucket": "1"},
    ],
)
async def test_invalid_times_and_steps_are_refused(viewer: httpx.AsyncClient, parameters: dict[str, str]) -> None:
    answer = await viewer.get("/stats", params=parameters)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


async def test_without_data_a_series_has_nulls_and_not_zeros(viewer: httpx.AsyncClient) -> None:
    answer = await read(viewer, step="1h", **{"from": "-1d"})
    [series] = answer["series"]
    assert set(series["sent"]) == set(series["backlog"]) == set(series["processed"]) == {None}
    assert (await read(viewer, group_by="queue"))["series"] == []


def test_steps_cover_the_time_range_within_the_limit_of_points() -> None:
    since, until = datetime(2026, 3, 1, 10, 0, 30, tzinfo=UTC), datetime(2026, 3, 1, 11, 0, 30, tzinfo=UTC)
    steps = steps_between(since, until, 60)
    assert (steps.since.second, steps.count, steps.until) == (0, 61, until.replace(minute=1, second=0))
    assert default_step(since, until) == 60
    assert default_step(since - timedelta(days=1), until) == 900
    widened = fit_steps(since, until, 60, series=50)
    assert widened is not None
    assert (widened.seconds, widened.count) == (120, 31)
    assert fit_steps(since - timedelta(days=400_000), until, 60, series=21) is None


def test_quantiles_are_within_their_bucket() -> None:
    assert quantile([0] * 21, 0.5) is None
    assert quantile([10] + [0] * 20, 0.5) == 0.0005
    assert quantile([0] * 20 + [1], 0.99) == 86_400
    assert quantile([1] + [0] * 18 + [1, 0], 0.5) == 0.001
    assert quantile([50, 50, *[0] * 19], 0.75) == pytest.approx(0.00175)


KEYS = 25


@pytest.fixture
async def much(stats: Statistics) -> asyncpg.Connection:
    """Adds a day of rows by the minute, for as many routing keys as queues."""
    connection = stats.connection
    await connection.execute(
        "insert into outbox_stats (starts_at, seconds, routing_key, queue, sent, processed, latency)"
        " select date_trunc('minute', now()) - n * interval '1 minute', 60, 'k' || k,"
        " case when relay then '' else 'q' || k end, relay::integer, (not relay)::integer, array_fill(1, array[21])"
        f" from generate_series(1, 24 * 60) as n, generate_series(1, {KEYS}) as k, unnest(array[true, false]) as relay"
    )
    await connection.execute("vacuum analyze outbox_stats")
    return connection


def _series(group_by: str, span: tuple[datetime, datetime], step: int) -> tuple[str, tuple[Any, ...]]:
    """Returns the statement that reads steps of that length, and its parameters."""
    if group_by == "none":
        return "series", (*span, step)
    return "series_by_name", (*span, step, *span, [step] * 21, 20, "b", group_by == "queue")


@pytest.mark.parametrize("group_by", ["none", "queue", "routing_key"])
async def test_statistics_are_read_once_by_an_index_on_time(much: asyncpg.Connection, stats: Statistics, group_by: Any) -> None:
    hour = (stats.at(60), stats.at(0))
    sql = SeriesReader(much, None, group_by)._sql
    series = _series(group_by, hour, 60)
    for name, arguments in (("coarsest", (*hour, True)), series):
        nodes = await explained(much, sql[name], *arguments)
        scans = [node for node in nodes if node.get("Relation Name") == "outbox_stats"]
        assert {node["Node Type"] for node in scans} <= {"Index Scan", "Index Only Scan", "Bitmap Heap Scan"}
        if name == series[0]:
            assert [rows_read(node) for node in scans] == [60 * KEYS * 2]


@pytest.mark.parametrize(("group_by", "groups"), [("none", 2), ("queue", KEYS), ("routing_key", 2 * KEYS)])
async def test_many_rows_are_summed_while_they_are_read(
    much: asyncpg.Connection, stats: Statistics, group_by: Any, groups: int
) -> None:
    day = (stats.at(24 * 60), stats.at(0))
    name, arguments = _series(group_by, day, 1_800)
    async with much.transaction():
        await much.execute(_READING)
        nodes = await explained(much, SeriesReader(much, None, group_by)._sql[name], *arguments)
    [reading] = [node for node in nodes if node.get("Relation Name") == "outbox_stats"]
    assert rows_read(reading) <= 24 * 60 * KEYS * 2
    sorted_ = [node["Actual Rows"] for node in nodes if "Sort" in node["Node Type"]]
    assert max(sorted_, default=0) <= 49 * groups, "the rows themselves were sorted"
    assert all(node["Disk Usage"] == 0 for node in nodes if "Disk Usage" in node)


async def test_time_ranges_above_a_day_are_cached(viewer: httpx.AsyncClient, stats: Statistics) -> None:
    """Concurrent requests for the same chart share one read."""
    await stats.of_relay(stats.at(5), sent=3)
    first = await read(viewer, **{"from": "-30d"})
    await stats.of_relay(stats.at(4), sent=4)
    again, shorter = await read(viewer, **{"from": "-30d"}), await read(viewer, **{"from": "-1h"})
    assert again == first
    assert sum(count or 0 for count in shorter["series"][0]["sent"]) == 7
