"""Statistics: summed by every process, and exact even while old ones are merged."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import asyncpg

from outbox import Consumer, MessageRelay, Worker
from outbox.core.events import BacklogMeasured, BatchSent, Processed, ProcessingStatus, QueueMeasured, SentMessage
from outbox.core.message import Message
from outbox.core.outcome import DONE, Cause, Dead, DeliveryOutcome, Failure, Retry
from outbox.postgres.queries import TableName
from outbox.reporting.statistics import LATENCY_BOUNDS, MOST_KEYS, OTHERS, Counts, Key, Statistics
from outbox.reporting.tables import ReportingTables, thin_stats
from tests.reporting.support import at_work, published
from tests.support import eventually

NOON = datetime(2030, 1, 1, 12, 0, 30, tzinfo=UTC)
MINUTE = NOON.replace(second=0)
FAILURE = Failure("ValueError", "no luck")


def _processed(outcome: DeliveryOutcome, routing_key: str = "order.placed", queue: str = "mail") -> Processed:
    message = Message(id="1", routing_key=routing_key, body=b"", created_at=NOON, tracking_ids=("1",))
    status = ProcessingStatus.SUCCESS if outcome == DONE else ProcessingStatus.FAILED
    seconds = timedelta(seconds=0.003)
    return Processed(
        queue=queue, exchange_name="o", message=message, attempt=1, status=status, outcome=outcome, duration=seconds
    )


def _sent(*ages: float) -> BatchSent:
    return BatchSent(exchange_name="o", messages=[SentMessage("1", "order.placed", timedelta(seconds=age)) for age in ages])


def test_events_add_up_by_minute_routing_key_and_queue() -> None:
    statistics = Statistics(NOON.timestamp)
    statistics.sent(_sent(0.0005, 45))
    for outcome in (DONE, DONE, Retry(timedelta(0), FAILURE), Dead(Cause.EXHAUSTED, FAILURE)):
        statistics.processed(_processed(outcome))
    statistics.processed(_processed(DONE), duplicate=True)
    statistics.measured(BacklogMeasured(exchange_name="o", unsent=7, oldest_due=timedelta(seconds=3)))
    statistics.measured(BacklogMeasured(exchange_name="o", unsent=5, oldest_due=None))
    statistics.measured(QueueMeasured(queue="mail", depth=4, oldest_due=timedelta(seconds=9)))
    statistics.measured(QueueMeasured(queue="mail", depth=2, oldest_due=timedelta(seconds=11)))
    statistics.measured(QueueMeasured(queue="stock", depth=1, oldest_due=None))
    taken = dict(statistics.take())
    assert set(taken) == {
        Key(MINUTE, "", "mail"),
        Key(MINUTE, "", "stock"),
        Key(MINUTE - timedelta(minutes=1), "order.placed", ""),
        Key(MINUTE, "", ""),
        Key(MINUTE, "order.placed", ""),
        Key(MINUTE, "order.placed", "mail"),
    }
    assert taken[Key(MINUTE - timedelta(minutes=1), "order.placed", "")].created == 1
    relay, worker = taken[Key(MINUTE, "order.placed", "")], taken[Key(MINUTE, "order.placed", "mail")]
    assert (relay.created, relay.sent) == (1, 2)
    assert relay.latency is not None
    assert (relay.latency[0], relay.latency[LATENCY_BOUNDS.index(60)], sum(relay.latency)) == (1, 1, 2)
    assert (worker.processed, worker.failed, worker.retried, worker.dead, worker.duplicates) == (2, 2, 1, 1, 1)
    measured = taken[Key(MINUTE, "", "")]
    assert (measured.backlog, measured.oldest_age) == (7, timedelta(seconds=3))
    mail, stock = taken[Key(MINUTE, "", "mail")], taken[Key(MINUTE, "", "stock")]
    assert (mail.backlog, mail.oldest_age, stock.backlog, stock.oldest_age) == (4, timedelta(seconds=11), 1, None)
    assert statistics.take() == []


def test_a_measurement_is_written_again_if_it_is_higher_or_of_another_minute() -> None:
    now = NOON.timestamp()
    statistics = Statistics(lambda: now)

    def written(backlog: int, seconds: int | None = None) -> bool:
        oldest = None if seconds is None else timedelta(seconds=seconds)
        statistics.measured(QueueMeasured(queue="mail", depth=backlog, oldest_due=oldest))
        return [(counts.backlog, counts.oldest_age) for _, counts in statistics.take()] == [(backlog, oldest)]

    assert written(0)
    assert not written(0)
    assert written(3, 1)
    assert written(2, 2)
    assert not written(3, 2)
    assert not written(3)
    now += 60
    assert written(0)
    assert written(0, 0)


def test_a_limited_number_of_names_is_counted_separately_and_the_rest_together() -> None:
    statistics = Statistics(NOON.timestamp)
    for number in range(3 * MOST_KEYS):
        statistics.processed(_processed(DONE, f"key.{number}"))
    taken = dict(statistics.take())
    assert len(taken) == MOST_KEYS + 1
    assert taken[Key(MINUTE, OTHERS, OTHERS)].processed == 2 * MOST_KEYS


def test_what_could_not_be_added_is_added_later() -> None:
    statistics = Statistics(NOON.timestamp)
    statistics.processed(_processed(DONE))
    statistics.give_back(statistics.take())
    statistics.processed(_processed(DONE))
    [(_, counts)] = statistics.take()
    assert counts.processed == 2
    assert counts.latency is not None
    assert sum(counts.latency) == 2


async def test_processes_add_to_the_same_rows_at_once_without_deadlocks(
    connection: asyncpg.Connection, database_url: str
) -> None:
    tables = ReportingTables(TableName("outbox_table"))

    def rows(order: Sequence[int]) -> list[tuple[Key, Counts]]:
        return [(Key(MINUTE, f"é.{n}", "mail"), Counts(processed=1, latency=[1] * 21, backlog=n)) for n in order]

    async def add(number: int) -> None:
        own = await asyncpg.connect(database_url)
        try:
            for turn in range(10):
                await tables.add_stats(own, rows(range(50) if (number + turn) % 2 else range(49, -1, -1)))
        finally:
            await own.close()

    await asyncio.gather(*(add(number) for number in range(4)))
    found = await connection.fetch("select processed, latency, backlog from outbox_stats order by backlog")
    assert [row["processed"] for row in found] == [40] * 50
    assert all(row["latency"] == [40] * 21 for row in found)
    assert [row["backlog"] for row in found] == list(range(50))


async def test_a_relay_and_a_worker_write_statistics(connection: asyncpg.Connection, database_url: str) -> None:
    async def handle(body: int) -> None:
        if body == 3:
            raise ValueError("three")

    consumer = Consumer("order.*", handle, queue="mail", retry_delays=())
    worker = Worker(broker=database_url, consumers=[consumer])
    async with at_work(MessageRelay(database_url, broker=database_url), worker):
        await eventually(lambda: connection.fetchval("select exists(select from outbox_subscription)"))
        for body in range(5):
            await published(connection, body=body)
        await eventually(lambda: connection.fetchval("select count(*) = 5 from outbox_history where queue is not null"))
    totals = "select sum(created), sum(sent), sum(processed), sum(failed), sum(dead) from outbox_stats"
    counted = await connection.fetchrow(totals)
    assert counted is not None
    assert tuple(counted) == (5, 5, 4, 1, 1)


_TOTALS = """
    select sum(created)::int as created, sum(sent)::int as sent, sum(processed)::int as processed, max(backlog) as backlog,
        (
            select array_agg(total order by number)
            from (
                select number, sum(count)::int as total
                from outbox_stats cross join unnest(latency) with ordinality as bucket (count, number)
                group by number
            ) as bucket
        ) as latency
    from outbox_stats
"""


async def test_old_statistics_grow_coarser_and_add_up_exactly(connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_stats (starts_at, seconds, routing_key, queue, created, sent, processed, backlog, latency)"
        " select date_trunc('minute', now()) - make_interval(mins => n * 97), 60, 'k' || n % 3, repeat('q', n % 2),"
        " n, 2 * n, 3 * n, n, case when n % 5 > 0 then array[n, 1, 2 * n] end from generate_series(0, 999) as n"
    )
    before = await connection.fetchrow(_TOTALS)
    while await thin_stats(connection, batch=300):
        assert await connection.fetchrow(_TOTALS) == before
    spans = await connection.fetch(
        "select seconds, bool_and(extract(epoch from starts_at)::bigint % seconds = 0) as whole,"
        " min(now() - starts_at) as youngest, max(now() - starts_at) as oldest from outbox_stats group by 1 order by 1"
    )
    assert [row["seconds"] for row in spans] == [60, 3600, 86400]
    assert all(row["whole"] for row in spans)
    assert spans[0]["oldest"] < timedelta(days=2, hours=1)
    assert timedelta(days=1, hours=23) < spans[1]["youngest"]
    assert timedelta(days=59) < spans[2]["youngest"]
    assert await thin_stats(connection) == 0
