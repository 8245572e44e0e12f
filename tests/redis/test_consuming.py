"""Workers on Redis: nothing is lost, each consumer's promises hold, and entries of any program are handled."""

import asyncio
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from redis.exceptions import ResponseError

from outbox import Consumer, Worker, get_tracking_ids
from outbox.core.message import OutboxMessage
from outbox.errors import BrokerUnavailableError, ConfigurationError, TopologyError
from outbox.ports import Received, Subscription
from outbox.reporting.pauses import Pause, PauseScope, pause
from outbox.transports.redis import RedisSource
from outbox.transports.redis.server import RedisOptions
from outbox.transports.redis.source import RedisReader
from tests.servers.proxy import Proxy
from tests.servers.redis import Redis
from tests.support import eventually
from tests.support.processes import running as running_process
from tests.support.streams import (
    OPTIONS,
    collecting,
    fail_and_requeue,
    is_drained,
    keep_the_order_of_each_key,
    publish,
    relaying,
    working,
)

pytestmark = pytest.mark.redis


def add(redis: Redis, stream: str, *bodies: bytes) -> None:
    """Adds entries of another program."""
    for body in bodies:
        redis.client.xadd(stream, {"body": body})


def pending(redis: Redis, stream: str = "order.placed", group: str = "mail") -> int:
    return int(redis.client.xpending(stream, group)["pending"])


def is_read(redis: Redis, stream: str = "order.placed", group: str = "mail") -> bool:
    """Whether the group has read and acknowledged all entries."""
    last = redis.client.xinfo_stream(stream)["last-generated-id"]
    return any(
        each["name"] == group.encode() and each["pending"] == 0 and each["last-delivered-id"] == last
        for each in redis.client.xinfo_groups(stream)
    )


async def test_a_published_event_reaches_its_handler_through_redis(
    database: str, connection: asyncpg.Connection, redis: Redis
) -> None:
    seen: list[Any] = []

    async def handle(order: dict[str, int], routing_key: str, message: Any, attempt_count: int) -> None:
        seen.append((order, routing_key, message, attempt_count, get_tracking_ids()))

    headers = {"tenant": "acme", "size": 3, "nested": {"a": [1, None]}, "none": None}
    sent = OutboxMessage("order.placed", {"id": 7}, headers=headers, ordering_key="customer 1", expiration=3_600)
    consumer = Consumer("order.placed", handle, queue="mail")
    # The worker creates the stream, and the relay does not.
    async with relaying(database, redis.url), working(database, redis.url, consumer):
        await publish(connection, sent)
        await eventually(lambda: seen)
        [(order, routing_key, message, attempt, tracking)] = seen
        assert (order, routing_key, attempt) == ({"id": 7}, "order.placed", 1)
        assert {name: value for name, value in message.headers.items() if name in headers} == headers
        assert (message.content_type, message.exchange) == ("application/json", "redis")
        assert message.headers["x-outbox-ordering-key"] == "customer 1"
        assert 3_500 < message.expiration <= 3_600
        assert tracking == (message.message_id,)
        await eventually(lambda: is_drained(connection))
        await eventually(lambda: is_read(redis))
    # Other groups may need the entry; the consumer is gone.
    assert len(redis.read("order.placed")) == 1
    assert redis.client.xinfo_consumers("order.placed", "mail") == []


async def test_a_failing_message_is_retried_dead_lettered_and_requeued_to_its_queue_alone(
    database: str, connection: asyncpg.Connection, redis: Redis
) -> None:
    await fail_and_requeue(database, connection, relay_to=redis.url, read_from=redis.url, exchange="redis")


async def test_an_ordered_consumer_keeps_the_order_of_each_key_in_several_workers(
    database: str, connection: asyncpg.Connection, redis: Redis
) -> None:
    await keep_the_order_of_each_key(database, connection, relay_to=redis.url, read_from=redis.url, count=600, workers=3)


async def test_binding_keys_choose_streams_and_routing_keys(
    database: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.redis.source.LOOK_AGAIN", 0)
    monkeypatch.setattr("outbox.transports.redis.source.LONGEST_WAIT", timedelta(milliseconds=100))
    url = f"{redis.url}?stream=shop:{{routing_key}}&create=true"
    for name in ("shop:order", "shop:order.placed", "shop:invoice.placed", "order.placed", "shop[order].placed"):
        add(redis, name, name.encode())
    redis.client.set("shop:order.text", "no stream")
    found: dict[str, list[bytes]] = {key: [] for key in ("order.*", "order.#", "order.placed", "#")}
    consumers = [collecting(bodies, key, queue=f"queue {key}") for key, bodies in found.items()]
    expected = {
        "order.*": [b"later", b"shop:order.placed"],
        "order.#": [b"later", b"shop:order", b"shop:order.placed"],
        "order.placed": [b"shop:order.placed"],
        "#": [b"later", b"shop:invoice.placed", b"shop:order", b"shop:order.placed"],
    }
    async with working(database, url, *consumers):
        await eventually(lambda: found["order.*"] == [b"shop:order.placed"])
        add(redis, "shop:order.paid", b"later")
        await eventually(lambda: {key: sorted(bodies) for key, bodies in found.items()} == expected)


async def test_one_stream_has_all_messages_and_what_matches_no_binding_is_acknowledged(database: str, redis: Redis) -> None:
    for key in ("order.placed", "invoice.placed", "order.paid"):
        redis.client.xadd("events", {"body": key, "x-outbox-message-id": key, "x-outbox-routing-key": key})
    found: list[bytes] = []
    async with working(database, f"{redis.url}?stream=events", collecting(found, "order.*")):
        await eventually(lambda: is_read(redis, "events"))
        await eventually(lambda: sorted(found) == [b"order.paid", b"order.placed"])


async def test_entries_of_other_programs_are_messages(database: str, redis: Redis) -> None:
    seen: list[Any] = []

    async def handle(body: bytes, message: Any) -> None:
        seen.append((body, message, get_tracking_ids()))

    unreadable = {
        "body": b"odd",
        "x-outbox-message-id": "m-1",
        "x-outbox-tracking-ids": "no JSON",
        "x-outbox-created-at": "yesterday",
        "x-outbox-expires-at": b"\xff",
        "x-outbox-hlc": "soon",
        "x-outbox-requeue-count": "often",
        "content-type": "text/plain",
        "headers": "[1",
    }
    entries: list[Any] = [
        {"body": b"plain\xff"},
        {"data": b"data"},
        {"name": "ż", "raw": b"\xff"},
        unreadable,
        {"x-outbox-message-id": "m-2"},
    ]
    for number, fields in enumerate(entries):
        redis.client.xadd("order.placed", fields, id=f"{1_779_019_200_000 + number}-0")
    async with working(database, redis.url, Consumer("order.placed", handle, queue="mail"), prefetch_count=1):
        await eventually(lambda: len(seen) == 5)
    (plain, first, tracking), (data, _, _), (fields, third, _), (_, odd, odd_tracking), (empty, _, _) = seen
    id_ = "redis:order.placed:1779019200000-0"
    assert (plain, first.message_id, tracking) == (b"plain\xff", id_, (id_,))
    assert (first.routing_key, first.timestamp, first.content_type) == (
        "order.placed",
        datetime(2026, 5, 17, 12, tzinfo=UTC),
        None,
    )
    assert (data, fields, third.content_type, empty) == (
        b"data",
        b'{"name": "\\u017c", "raw": "\\u00ff"}',
        "application/json",
        b"",
    )
    assert (odd.message_id, odd_tracking, odd.content_type, odd.expiration) == ("m-1", ("m-1",), "text/plain", None)


async def test_entries_that_cannot_be_stored_or_are_too_large_are_dead_letters_and_others_are_handled(
    database: str, connection: asyncpg.Connection, redis: Redis
) -> None:
    add(redis, "order.placed", b"1")
    redis.client.xadd("order.placed", {"body": "unstorable", "x-outbox-message-id": "na\0me"})
    add(redis, "order.placed", b"x" * 300_000, b"2")
    found: list[bytes] = []
    async with working(database, redis.url, collecting(found), max_body_bytes=100_000, max_batch_bytes=100_000):
        await eventually(lambda: sorted(found) == [b"1", b"2"])
        await eventually(lambda: connection.fetchval("select count(*) = 2 from outbox_dead_letter"))
        await eventually(lambda: is_read(redis))
    dead = await connection.fetch("select length(body) as size, cause from outbox_dead_letter order by 1")
    assert [(row["size"], row["cause"]) for row in dead] == [(10, "undecodable"), (300_000, "undecodable")]


async def test_a_server_that_is_away_or_has_lost_everything_stops_no_worker(
    database: str, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "outbox")
    add(redis, "order.placed", *(b"%d" % n for n in range(10)))
    found: list[bytes] = []
    async with working(database, redis.url, collecting(found)):
        await eventually(lambda: len(found) == 10)
        redis.kill()
        await eventually(lambda: "Redis is unavailable" in caplog.text)
        redis.start()
        add(redis, "order.placed", *(b"%d" % n for n in range(10, 20)))
        await eventually(lambda: set(found) == {b"%d" % n for n in range(20)})
        await eventually(lambda: "the broker is back" in caplog.text)
        redis.client.flushall()
        add(redis, "order.placed", b"after")
        await eventually(lambda: b"after" in found)


async def test_the_end_of_an_outage_is_reported_although_a_queue_was_paused_meanwhile(
    database: str, connection: asyncpg.Connection, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "outbox")
    mail: list[bytes] = []
    stock: list[bytes] = []
    consumers = [collecting(mail), collecting(stock, queue="stock")]
    async with working(database, redis.url, *consumers, reporting=True):
        add(redis, "order.placed", b"1")
        await eventually(lambda: mail == stock == [b"1"])
        redis.kill()
        await eventually(lambda: "lost the broker" in caplog.text)
        await pause(connection, Pause(scope=PauseScope.QUEUE, name="stock"))
        await eventually(lambda: connection.fetchval("select applied::text like '%stock%' from outbox_component"))
        redis.start()
        add(redis, "order.placed", b"2")
        await eventually(lambda: mail == [b"1", b"2"])
        await eventually(lambda: "the broker is back" in caplog.text)
        assert stock == [b"1"]


async def test_a_database_that_is_away_loses_nothing(
    database: str, connection: asyncpg.Connection, redis: Redis, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(database)
    found: list[bytes] = []
    async with working(proxy.url, redis.url, collecting(found)):
        add(redis, "order.placed", b"first")
        await eventually(lambda: found == [b"first"])
        proxy.refuse()
        proxy.cut()
        add(redis, "order.placed", *(b"%d" % n for n in range(1_000)))
        proxy.accept()
        await eventually(lambda: {b"%d" % n for n in range(1_000)} <= set(found))
    await eventually(lambda: is_drained(connection))


# --- a reader by itself ------------------------------------------------------------------------------------------------------


def subscription(*, ordered: bool = False) -> Subscription:
    return Subscription(
        queue="mail",
        binding_key="order.placed",
        exchange_name="redis",
        prefetch_count=10,
        retry_delays=(),
        ordered=ordered,
    )


async def fetched(reader: RedisReader, count: int) -> list[Received]:
    """So many messages, in as many fetches as that takes."""
    received: list[Received] = []
    async with asyncio.timeout(30):
        while len(received) < count:
            received += await reader.fetch(count - len(received))
    return received


def bodies(received: list[Received]) -> list[bytes]:
    return [each.message.body for each in received]


async def test_what_was_not_acknowledged_goes_to_another_reader_at_once_when_the_first_one_ends(redis: Redis) -> None:
    source = RedisSource(redis.url)
    add(redis, "order.placed", *(b"%d" % n for n in range(5)))
    async with source.read(subscription()) as reader:
        received = await fetched(reader, 5)
        await reader.acknowledge(received[:2])
    async with source.read(subscription()) as reader:
        received = await fetched(reader, 3)
        assert bodies(received) == [b"2", b"3", b"4"]
        await reader.acknowledge(received)
    assert pending(redis) == 0


async def test_a_reader_without_a_heartbeat_loses_its_entries_to_another_one(redis: Redis) -> None:
    add(redis, "order.placed", b"1", b"2")
    redis.client.xgroup_create("order.placed", "mail", id="0")
    redis.client.xreadgroup("mail", "dead", {"order.placed": ">"}, count=1)
    async with RedisSource(f"{redis.url}?claim_after=1").read(subscription()) as reader:
        assert sorted(bodies(await fetched(reader, 2))) == [b"1", b"2"]
        # Its own entries stay its own for as long as it lives.
        async with RedisSource(f"{redis.url}?claim_after=1").read(subscription()) as other:
            for _ in range(2):
                assert await other.fetch(10) == []


async def test_ordered_readers_take_turns_so_that_entries_are_stored_in_their_order(redis: Redis) -> None:
    source = RedisSource(redis.url)
    add(redis, "order.placed", *(b"%d" % n for n in range(4)))
    async with source.read(subscription(ordered=True)) as first, source.read(subscription(ordered=True)) as second:
        received = await fetched(first, 2)
        assert bodies(received) == [b"0", b"1"]
        waiting = asyncio.create_task(second.fetch(10))
        await asyncio.wait([waiting], timeout=0.2)
        assert not waiting.done()
        await first.acknowledge(received)
        assert bodies(list(await waiting)) == [b"2", b"3"]


async def test_an_ordered_reader_claims_all_that_a_dead_one_has_so_that_no_other_one_overtakes_it(redis: Redis) -> None:
    add(redis, "order.placed", *(b"%d" % n for n in range(4)))
    redis.client.xgroup_create("order.placed", "mail", id="0")
    redis.client.xreadgroup("mail", "dead", {"order.placed": ">"})
    source = RedisSource(f"{redis.url}?claim_after=1")
    async with source.read(subscription(ordered=True)) as first, source.read(subscription(ordered=True)) as second:
        received = await fetched(first, 2)
        assert bodies(received) == [b"0", b"1"]
        for _ in range(2):
            assert await second.fetch(10) == []
        assert bodies(await fetched(first, 2)) == [b"2", b"3"]


async def test_an_answer_that_was_lost_with_its_connection_is_read_again(redis: Redis, proxied: Callable[[str], Proxy]) -> None:
    proxy = proxied(redis.url)
    async with RedisSource(proxy.url).read(subscription()) as reader:
        assert await reader.fetch(10) == []
        fetching = asyncio.create_task(reader.fetch(10))
        await eventually(lambda: redis.client.info("clients")["blocked_clients"] == 1)
        proxy.swallow()
        add(redis, "order.placed", b"1", b"2")
        # The first entry ends the wait, so the second one is not given yet.
        await eventually(lambda: pending(redis) == 1)
        fetching.cancel()
        await asyncio.wait([fetching])
        proxy.resume()
        received = await fetched(reader, 2)
        assert bodies(received) == [b"1", b"2"]
        await reader.acknowledge(received)
    assert pending(redis) == 0


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    ("count", "size", "rate"),
    [
        pytest.param(300, 20_000, 2_000_000, id="a third of all in the time for one request"),
        pytest.param(2, 1_000_000, 600_000, id="half of a body in the time for one request"),
    ],
)
async def test_large_bodies_over_a_slow_network_are_read_with_smaller_or_longer_requests(
    count: int,
    size: int,
    rate: int,
    ordered: bool,
    redis: Redis,
    proxied: Callable[[str], Proxy],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outbox.transports.redis.server.CONNECT_TIMEOUT", timedelta(seconds=1))
    add(redis, "order.placed", *(b"%d" % n + b" " * size for n in range(count)))
    proxy = proxied(redis.url)
    proxy.limit(rate)
    received: list[Received] = []
    async with RedisSource(proxy.url).read(subscription(ordered=ordered)) as reader, asyncio.timeout(60):
        while len(received) < count:
            with suppress(BrokerUnavailableError):
                more = await reader.fetch(500)
                await reader.acknowledge(more)
                received += more
    assert [int(each.message.body) for each in received] == list(range(count))


async def test_an_ordered_reader_takes_what_it_knows_nothing_of_before_what_follows(redis: Redis) -> None:
    add(redis, "order.placed", b"1", b"2")
    async with RedisSource(redis.url).read(subscription(ordered=True)) as reader:
        assert bodies(await fetched(reader, 1)) == [b"1"]
        # As if the answer to an abandoned read had been lost after the reader looked for it.
        redis.client.xreadgroup("mail", reader._name, {"order.placed": ">"})
        add(redis, "order.placed", b"3")
        assert bodies(await fetched(reader, 1)) == [b"2"]
        assert bodies(await fetched(reader, 1)) == [b"3"]


@pytest.mark.parametrize("before", ["", "Error running script (call to f_0a1b): @user_script:2: @user_script: 2: "])
async def test_a_group_that_is_gone_is_created_again_whatever_a_script_writes_before_the_error(
    before: str, redis: Redis
) -> None:
    async with RedisSource(redis.url).read(subscription(ordered=True)) as reader:
        redis.client.delete("order.placed")
        await reader._receive(ResponseError(f"{before}NOGROUP No such key 'order.placed' or consumer group 'mail'"))
        assert len(redis.client.xinfo_groups("order.placed")) == 1


async def test_a_reader_whose_end_is_cancelled_leaves_no_connection(redis: Redis, proxied: Callable[[str], Proxy]) -> None:
    proxy = proxied(redis.url)
    reader = RedisReader(RedisOptions.parse(proxy.url), subscription())
    await reader.start()
    assert await reader.fetch(10) == []
    proxy.swallow()
    ending = asyncio.create_task(reader.end())
    await asyncio.sleep(0)  # it begins to wait for an answer
    ending.cancel()
    await asyncio.wait([ending])
    assert not any(session.is_alive for session in reader._sessions.values())


async def test_a_key_that_is_no_stream_stops_the_worker_at_its_start(database: str, redis: Redis) -> None:
    redis.client.set("order.placed", "text")
    with pytest.raises(TopologyError, match=r"does not create the group 'mail' in 'order.placed': WRONGTYPE"):
        await Worker(broker=redis.url, db_engine_url=database, consumers=[collecting([])], **OPTIONS).run(handle_signals=False)


async def test_consumers_of_dead_processes_are_removed_once_they_have_nothing(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.redis.source.CLEAN_UP_EVERY", 0)
    monkeypatch.setattr("outbox.transports.redis.source.FORGET_AFTER", timedelta(milliseconds=1))
    add(redis, "order.placed", b"1")
    redis.client.xgroup_create("order.placed", "mail", id="0")
    redis.client.xgroup_createconsumer("order.placed", "mail", "empty")
    redis.client.xreadgroup("mail", "holding", {"order.placed": ">"})
    async with RedisSource(redis.url).read(subscription()) as reader:

        async def names() -> bool:
            await reader.fetch(1)
            return {each["name"] for each in redis.client.xinfo_consumers("order.placed", "mail")} >= {b"holding"} and not any(
                each["name"] == b"empty" for each in redis.client.xinfo_consumers("order.placed", "mail")
            )

        await eventually(names)


async def test_trimming_deletes_only_what_every_group_has_read(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.transports.redis.source.CLEAN_UP_EVERY", 0)
    monkeypatch.setattr("outbox.transports.redis.source.LONGEST_WAIT", timedelta(milliseconds=10))
    for n in range(1_000):
        redis.client.xadd("order.placed", {"body": b"%d" % n})
    redis.client.xgroup_create("order.placed", "slow", id="0")
    async with RedisSource(f"{redis.url}?trim=true").read(subscription()) as reader:
        await reader.acknowledge(await fetched(reader, 1_000))
        await reader.fetch(1)
        assert redis.client.xlen("order.placed") == 1_000
        [(_, entries)] = redis.client.xreadgroup("slow", "one", {"order.placed": ">"}, count=500)
        await reader.fetch(1)
        assert redis.client.xlen("order.placed") == 1_000  # it has read them, and not acknowledged any
        redis.client.xack("order.placed", "slow", *(id_ for id_, _ in entries))
        await reader.fetch(1)
        assert 500 <= redis.client.xlen("order.placed") < 700


# --- processes that are killed -----------------------------------------------------------------------------------------------

WORKER = """
from outbox import Consumer

async def deposit(number: int, connection) -> None:
    await connection.execute("insert into deposit (number) values ($1)", number)

consumers = [Consumer("order.placed", deposit, queue="bank", inbox=True)]
"""


async def test_a_worker_that_is_killed_loses_nothing_and_an_inbox_handles_each_message_once(
    database: str, connection: asyncpg.Connection, redis: Redis, tmp_path: Path
) -> None:
    await connection.execute("create table deposit (number int not null)")
    (tmp_path / "bank.py").write_text(WORKER)
    pipeline = redis.client.pipeline(transaction=False)
    for n in range(800):
        pipeline.xadd("order.placed", {"body": b"%d" % n})
    pipeline.execute()
    settings = {
        "OUTBOX_DATABASE_URL": database,
        "OUTBOX_BROKER_URL": f"{redis.url}?claim_after=1",
        "OUTBOX_MONITORING_PORT": "0",
        "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}",
    }
    arguments = ["-m", "outbox.cli", "worker", "bank:consumers"]
    with running_process(arguments, tmp_path, settings, name="first") as worker:
        await eventually(lambda: connection.fetchval("select count(*) > 100 from deposit"))
        worker.send(signal.SIGKILL)
        worker.wait()
        # The lease of the dead worker runs out.
        await connection.execute(
            "update outbox_delivery set leased_until = now(), available_at = now() where lease_token is not null"
        )
    with running_process(arguments, tmp_path, settings, name="last") as worker:
        distinct = "select count(distinct number) = 800 from deposit"
        await eventually(lambda: connection.fetchval(distinct), timeout=60)
        await eventually(lambda: is_read(redis, group="bank"))
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    assert await connection.fetchval("select count(*) from deposit") == 800


async def test_the_consumer_on_the_page_prints_a_receipt(
    database: str, connection: asyncpg.Connection, redis: Redis, tmp_path: Path
) -> None:
    page = Path(__file__).parents[2] / "docs" / "redis.md"
    [program] = re.findall(r"^```python\n(# mail\.py\n.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    [insert] = re.findall(r"^```sql\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "mail.py").write_text(program)
    settings = {
        "OUTBOX_DATABASE_URL": database,
        "OUTBOX_BROKER_URL": redis.url,
        "OUTBOX_MONITORING_PORT": "0",
        "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}",
        "PYTHONUNBUFFERED": "1",
    }
    await connection.execute(insert)
    with (
        running_process(["-m", "outbox.cli", "worker", "mail:consumers"], tmp_path, settings, name="worker") as worker,
        running_process(["-m", "outbox.cli", "relay"], tmp_path, settings, name="relay"),
    ):
        worker.says("receipt for order 7")


async def test_a_worker_without_a_database_is_refused(redis: Redis) -> None:
    with pytest.raises(ConfigurationError, match="stores the messages of redis in its database"):
        Worker(broker=redis.url, consumers=[collecting([])])
