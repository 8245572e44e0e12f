"""Workers on NATS: nothing is lost, each consumer keeps its promises, and messages of any publisher are handled."""

import asyncio
import json
import re
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import asyncpg
import nats
import pytest

from outbox import Consumer, Worker, get_tracking_ids
from outbox.core.message import OutboxMessage
from outbox.errors import TopologyError
from outbox.ports import Subscription
from outbox.transports.nats_source import NatsSource, _Token, consumer_name, filter_subjects
from tests.servers.nats import Nats
from tests.servers.proxy import Proxy
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


@pytest.fixture
def url(nats_server: Nats, stream: str) -> str:
    """A broker whose subjects are the test's own."""
    return f"{nats_server.url}/?subject={stream}.{{routing_key}}"


async def produce(server: Nats, subject: str, *bodies: bytes, headers: dict[str, str] | None = None) -> None:
    """Stores messages as clients without Outbox do."""
    async with await nats.connect(server.url) as client:
        for body in bodies:
            await client.jetstream().publish(subject, body, headers=headers)


async def unacknowledged(server: Nats, stream: str, queue: str) -> int:
    """How many messages of the stream the queue has not acknowledged, fetched or not."""
    async with await nats.connect(server.url) as client:
        info = await client.jetstream().consumer_info(stream, consumer_name(queue))
    return (info.num_ack_pending or 0) + (info.num_pending or 0)


async def test_a_published_event_reaches_its_handler(
    database: str, connection: asyncpg.Connection, nats_server: Nats, stream: str, url: str
) -> None:
    seen: list[Any] = []

    async def handle(order: dict[str, int], routing_key: str, message: Any, attempt_count: int) -> None:
        seen.append((order, routing_key, message, attempt_count, get_tracking_ids()))

    headers = {"tenant": "acme", "size": 3, "nested": {"a": [1, None]}, "none": None, "lines": "a\r\nb", "empty": ""}
    sent = OutboxMessage("order.placed", {"id": 7}, headers=headers, ordering_key="customer 1", expiration=3_600)
    async with relaying(database, url), working(database, url, Consumer("order.placed", handle, queue="mail")):
        await publish(connection, sent)
        await eventually(lambda: seen)
        [(order, routing_key, message, attempt, tracking)] = seen
        assert (order, routing_key, attempt) == ({"id": 7}, "order.placed", 1)
        assert {name: value for name, value in message.headers.items() if name in headers} == headers
        assert (message.content_type, message.exchange) == ("application/json", "nats")
        assert message.headers["x-outbox-ordering-key"] == "customer 1"
        assert 3_500 < message.expiration <= 3_600
        assert tracking == (message.message_id,)
        await eventually(lambda: is_drained(connection))
        assert await unacknowledged(nats_server, stream, "mail") == 0


async def test_a_failing_message_is_retried_dead_lettered_and_requeued_to_its_queue_alone(
    database: str, connection: asyncpg.Connection, url: str
) -> None:
    await fail_and_requeue(database, connection, relay_to=url, read_from=url, exchange="nats")


async def test_an_ordered_consumer_keeps_the_order_of_each_key_over_two_workers(
    database: str, connection: asyncpg.Connection, url: str
) -> None:
    await keep_the_order_of_each_key(database, connection, relay_to=url, read_from=url, count=400, workers=2)


async def test_binding_keys_choose_messages(database: str, nats_server: Nats, stream: str, url: str) -> None:
    for key in ("order", "order.placed", "order.placed.eu", "invoice.placed", "invoice.eu"):
        await produce(nats_server, f"{stream}.{key}", key.encode())
    await produce(nats_server, f"{stream}.shared", b"routed", headers={"x-outbox-routing-key": "payment.made"})
    found: dict[str, list[bytes]] = {key: [] for key in ("order.*", "order.#", "order.placed", "#", "#.eu", "*.placed")}
    consumers = [collecting(bodies, key, queue=f"queue {key}") for key, bodies in found.items()]
    everything = [b"invoice.eu", b"invoice.placed", b"order", b"order.placed", b"order.placed.eu", b"routed"]
    expected = {
        "order.*": [b"order.placed"],
        "order.#": [b"order", b"order.placed", b"order.placed.eu"],
        "order.placed": [b"order.placed"],
        "#": everything,
        "#.eu": [b"invoice.eu", b"order.placed.eu"],
        "*.placed": [b"invoice.placed", b"order.placed"],
    }

    async def has_acknowledged_all() -> bool:
        return not any([await unacknowledged(nats_server, stream, consumer.queue) for consumer in consumers])

    async with working(database, url, *consumers):
        await eventually(lambda: {key: sorted(bodies) for key, bodies in found.items()} == expected)
        # What does not match is acknowledged, too.
        await eventually(has_acknowledged_all)
    of_one_subject: list[bytes] = []
    fixed = f"{nats_server.url}?subject={stream}.shared"
    async with working(database, fixed, collecting(of_one_subject, "payment.*", queue="one subject")):
        await eventually(lambda: of_one_subject == [b"routed"])


@pytest.mark.parametrize(
    ("binding_key", "subject", "expected"),
    [
        ("order.placed", "{routing_key}", ["order.placed"]),
        ("order.*", "events.{routing_key}", ["events.order.*"]),
        ("order.#", "events.{routing_key}", ["events.order", "events.order.>"]),
        ("#", "events.{routing_key}", ["events", "events.>"]),
        ("#", "{routing_key}", [">"]),
        ("order.#.eu", "{routing_key}", ["order.>"]),
        ("#.eu", "events.{routing_key}", ["events.>"]),
        ("order.#", "{routing_key}.v1", ["order.>"]),
        ("#.#", "events.{routing_key}", ["events.>"]),
        ("order.*", "events", ["events"]),
        ("order.*", "{routing_key}-v1", ["order.*"]),
    ],
)
def test_a_binding_key_names_the_subjects_to_read(binding_key: str, subject: str, expected: list[str]) -> None:
    assert filter_subjects(binding_key, subject) == expected


def test_the_name_of_a_consumer_has_only_characters_that_nats_allows() -> None:
    assert [consumer_name(queue) for queue in ("mail", "mail.eu", "a b/ż=*>")] == [
        "mail",
        "mail=2Eeu",
        "a=20b=2F=C5=BC=3D=2A=3E",
    ]


@pytest.mark.parametrize(
    "reply",
    [
        b"$JS.ACK.orders.mail.1.7.3.1780000000000000000.0",
        b"$JS.ACK._.hash.orders.mail.1.7.3.1780000000000000000.0",
        b"$JS.ACK.hub.hash.orders.mail.1.7.3.1780000000000000000.0.random",
    ],
)
def test_the_place_of_a_message_is_read_with_and_without_a_domain(reply: bytes) -> None:
    assert _Token.of(reply) == ("orders", 7, 1_780_000_000_000_000_000, reply)


async def test_messages_of_other_publishers_are_handled(database: str, nats_server: Nats, stream: str, url: str) -> None:
    seen: list[Any] = []

    async def handle(body: bytes, message: Any) -> None:
        seen.append((body, message, get_tracking_ids()))

    subject = f"{stream}.order.placed"
    unreadable = {
        "Nats-Msg-Id": "m-1",
        "x-outbox-tracking-ids": "no JSON",
        "x-outbox-created-at": "yesterday",
        "x-outbox-expires-at": "soon",
        "x-outbox-hlc": "soon",
        "x-outbox-requeue-count": "-1",
        "x-outbox-json-headers": json.dumps(["size", 3, "x-outbox-message-id"]),
        "x-outbox-message-id": "",
        "size": "{",
        "Content-Type": "text/plain",
        "tenant": "acme",
    }
    await produce(nats_server, subject, b"plain")
    await produce(nats_server, subject, b"odd", headers=unreadable)
    await produce(nats_server, subject, b"deep", headers={"x-outbox-json-headers": "[" * 3_000})
    async with working(database, url, Consumer("order.placed", handle, queue="mail"), prefetch_count=1):
        await eventually(lambda: len(seen) == 3)
    (_, plain, tracking), (_, odd, odd_tracking), (deep, *_) = seen
    assert deep == b"deep"
    assert (plain.message_id, tracking) == (f"nats:{stream}:1", (f"nats:{stream}:1",))
    assert (plain.routing_key, plain.content_type) == ("order.placed", None)
    assert abs(plain.timestamp - datetime.now(UTC)) < timedelta(minutes=5)
    assert (odd.message_id, odd_tracking, odd.content_type, odd.expiration) == ("m-1", ("m-1",), "text/plain", None)
    assert abs(odd.timestamp - datetime.now(UTC)) < timedelta(minutes=5)
    assert {name: value for name, value in odd.headers.items() if not name.startswith("x-")} == {"size": "{", "tenant": "acme"}


async def test_a_worker_without_its_stream_does_not_start(database: str, nats_server: Nats, word: str) -> None:
    worker = Worker(
        broker=f"{nats_server.url}?subject={word}.{{routing_key}}",
        db_engine_url=database,
        consumers=[collecting([])],
        **OPTIONS,
    )
    with pytest.raises(
        TopologyError, match=f"no stream stores the subjects {word}.order.placed of the queue 'mail': create one"
    ):
        await worker.run(handle_signals=False)
    for name in ("a", "b"):
        await nats_server.create_stream(f"{word}-{name}", f"{word}.*.{name}")
    both = Worker(
        broker=f"{nats_server.url}?subject={word}.{{routing_key}}",
        db_engine_url=database,
        consumers=[collecting([], "order.*")],
        **OPTIONS,
    )
    with pytest.raises(TopologyError, match=r"name one of them, as \?stream="):
        await both.run(handle_signals=False)
    found: list[bytes] = []
    named = f"{nats_server.url}?subject={word}.{{routing_key}}&stream={word}-a"
    async with working(database, named, collecting(found, "order.*")):
        await produce(nats_server, f"{word}.order.a", b"a")
        await eventually(lambda: found == [b"a"])


async def test_a_consumer_that_is_deleted_is_created_again(database: str, nats_server: Nats, stream: str, url: str) -> None:
    found: list[bytes] = []
    async with working(database, url, collecting(found)):
        await produce(nats_server, f"{stream}.order.placed", b"1")
        await eventually(lambda: found == [b"1"])
        async with await nats.connect(nats_server.url) as client:
            await client.jetstream().delete_consumer(stream, "mail")
        await produce(nats_server, f"{stream}.order.placed", b"2")
        await eventually(lambda: b"2" in found)


async def test_what_a_reader_did_not_acknowledge_goes_to_the_next_one_at_once(nats_server: Nats, stream: str, url: str) -> None:
    await produce(nats_server, f"{stream}.order.placed", b"1", b"2", b"3")
    source = NatsSource(url)
    subscription = Subscription(
        queue="mail", binding_key="order.*", exchange_name="nats", prefetch_count=1, retry_delays=(), ordered=True
    )
    async with source.read(subscription) as reader:
        received = list(await reader.fetch(500))
        assert [each.message.body for each in received] == [b"1", b"2", b"3"]
        await reader.acknowledge(received[:1])
    async with source.read(subscription) as reader:
        again = list(await reader.fetch(1))
        assert [each.message.body for each in again] == [b"2"]
        again += await reader.fetch(1)
        assert [each.message.body for each in again] == [b"2", b"3"]
        await reader.acknowledge(again)
    assert await unacknowledged(nats_server, stream, "mail") == 0
    await source.close()


@pytest.mark.parametrize("ordered", [False, True])
async def test_what_a_living_reader_has_goes_to_no_other_one_however_long_storing_takes(
    ordered: bool, nats_server: Nats, stream: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.nats_source.ACK_WAIT", timedelta(seconds=1))
    await produce(nats_server, f"{stream}.order.placed", b"1", b"2")
    source = NatsSource(url)
    subscription = Subscription(
        queue="mail", binding_key="order.*", exchange_name="nats", prefetch_count=1, retry_delays=(), ordered=ordered
    )
    async with source.read(subscription) as reader, source.read(subscription) as other:
        received = list(await reader.fetch(500))
        assert [each.message.body for each in received] == [b"1", b"2"]
        end = monotonic() + 4
        while monotonic() < end:
            assert list(await other.fetch(500)) == []
        await reader.acknowledge(received)
    assert await unacknowledged(nats_server, stream, "mail") == 0
    await source.close()


async def test_a_message_of_the_new_binding_key_that_an_old_reader_gets_is_not_lost(
    nats_server: Nats, stream: str, url: str
) -> None:
    def subscription(binding_key: str) -> Subscription:
        return Subscription(
            queue="mail", binding_key=binding_key, exchange_name="nats", prefetch_count=1, retry_delays=(), ordered=False
        )

    source = NatsSource(url)
    async with source.read(subscription("order.*.eu")) as old, source.read(subscription("order.#")):
        await produce(nats_server, f"{stream}.order.paid.us", b"of the new one")
        await produce(nats_server, f"{stream}.order.placed.eu", b"of both")
        found: list[bytes] = []
        async with asyncio.timeout(20):
            while b"of both" not in found:
                found += [each.message.body for each in await old.fetch(10)]
    assert found == [b"of the new one", b"of both"]
    await source.close()


async def test_an_ordered_reader_takes_no_more_than_it_is_asked_for_unless_a_dead_one_had_more(
    nats_server: Nats, stream: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.nats_source.ACK_WAIT", timedelta(seconds=1))
    await produce(nats_server, f"{stream}.order.placed", *(b"%d" % n for n in range(100)))
    source = NatsSource(url)
    subscription = Subscription(
        queue="mail", binding_key="order.*", exchange_name="nats", prefetch_count=1, retry_delays=(), ordered=True
    )
    async with await nats.connect(nats_server.url) as client:

        async def taken() -> int:
            return (await client.jetstream().consumer_info(stream, "mail")).num_ack_pending or 0

        async with source.read(subscription) as reader:
            received = list(await reader.fetch(16))
            assert (len(received), await taken()) == (16, 16)
            await reader.acknowledge(received)
            received += await reader.fetch(60)
            assert (len(received), await taken()) == (76, 60)
            monkeypatch.setattr(reader, "_give_back", lambda _pull: None)  # as if it were killed
        async with source.read(subscription) as reader, asyncio.timeout(30):
            del received[16:]
            while len(received) < 100:
                more = await reader.fetch(16)
                received += more
                await reader.acknowledge(more)
    assert [int(each.message.body) for each in received] == list(range(100))
    await source.close()


async def test_an_ordered_reader_waits_for_large_messages_over_a_slow_network(
    nats_server: Nats, stream: str, url: str, proxied: Callable[[str], Proxy]
) -> None:
    await produce(nats_server, f"{stream}.order.placed", *(b"%d" % n + b" " * 50_000 for n in range(120)))
    proxy = proxied(url)
    proxy.limit(1_000_000)  # for longer than a request to the server may take
    source = NatsSource(proxy.url)
    subscription = Subscription(
        queue="mail", binding_key="order.*", exchange_name="nats", prefetch_count=1, retry_delays=(), ordered=True
    )
    received: list[int] = []
    async with source.read(subscription) as reader, asyncio.timeout(30):
        while len(received) < 120:
            more = await reader.fetch(500)
            received += [int(each.message.body) for each in more]
            await reader.acknowledge(more)
    assert received == list(range(120))
    await source.close()


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_message_that_takes_longer_than_a_request_over_a_slow_network_is_read(
    ordered: bool, nats_server: Nats, stream: str, url: str, proxied: Callable[[str], Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.nats_source.GRACE", timedelta(seconds=1))
    await produce(nats_server, f"{stream}.order.placed", b"1" * 1_000_000)
    proxy = proxied(url)
    proxy.limit(300_000)
    source = NatsSource(proxy.url)
    subscription = Subscription(
        queue="mail", binding_key="order.*", exchange_name="nats", prefetch_count=1, retry_delays=(), ordered=ordered
    )
    async with source.read(subscription) as reader, asyncio.timeout(30):
        while not (received := await reader.fetch(1)):
            pass
        await reader.acknowledge(received)
    assert received[0].message.body == b"1" * 1_000_000
    await source.close()


async def test_a_server_that_is_away_loses_nothing(
    database: str, connection: asyncpg.Connection, own_nats: Nats, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "outbox")
    await own_nats.create_stream("orders", "order.>")
    found: list[bytes] = []
    numbers = [str(n).encode() for n in range(200)]
    async with relaying(database, own_nats.url), working(database, own_nats.url, collecting(found)):
        await publish(connection, *(OutboxMessage("order.placed", number) for number in numbers[:100]))
        await eventually(lambda: len(found) == 100)
        own_nats.kill()
        await eventually(lambda: "NATS" in caplog.text)
        await publish(connection, *(OutboxMessage("order.placed", number) for number in numbers[100:]))
        assert await connection.fetchval("select count(*) from outbox_table where attempts = 0") == 100
        own_nats.start()
        await eventually(lambda: set(found) == set(numbers))
        await eventually(lambda: "the broker is back" in caplog.text)
    assert await own_nats.count("orders") == 200


WORKER = """
from datetime import timedelta

from outbox import Consumer
from outbox.transports import nats_source

nats_source.ACK_WAIT = timedelta(seconds=1)

async def deposit(number: int, connection) -> None:
    await connection.execute("insert into deposit (number) values ($1)", number)

consumers = [Consumer("order.placed", deposit, queue="bank", inbox=True)]
"""


async def test_a_worker_that_is_killed_loses_nothing_and_an_inbox_handles_each_message_once(
    database: str, connection: asyncpg.Connection, nats_server: Nats, stream: str, url: str, tmp_path: Path
) -> None:
    await connection.execute("create table deposit (number int not null)")
    (tmp_path / "bank.py").write_text(WORKER)
    count = 800
    await publish(connection, *(OutboxMessage("order.placed", n) for n in range(count)))
    async with relaying(database, url):
        await eventually(lambda: connection.fetchval("select not exists (select from outbox_table)"))
    settings = {
        "OUTBOX_DATABASE_URL": database,
        "OUTBOX_BROKER_URL": url,
        "OUTBOX_MONITORING_PORT": "0",
        "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}",
    }
    arguments = ["-m", "outbox.cli", "worker", "bank:consumers"]
    with running_process(arguments, tmp_path, settings, name="killed") as worker:
        await eventually(
            lambda: connection.fetchval("select count(*) > 100 from deposit"), message="the worker handles nothing"
        )
        worker.send(signal.SIGKILL)
        worker.wait()
    # The lease of the dead worker runs out.
    await connection.execute(
        "update outbox_delivery set leased_until = now(), available_at = now() where lease_token is not null"
    )
    with running_process(arguments, tmp_path, settings, name="last") as worker:
        await eventually(lambda: connection.fetchval("select count(distinct number) = $1 from deposit", count), timeout=60)
        await eventually(lambda: is_acknowledged(nats_server, stream))
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    assert await connection.fetchval("select count(*) from deposit") == count


async def is_acknowledged(server: Nats, stream: str) -> bool:
    return not await unacknowledged(server, stream, "bank")


async def test_the_program_on_the_page_handles_the_message_on_the_page(
    database: str, connection: asyncpg.Connection, own_nats: Nats, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "nats.md").read_text()
    [program] = re.findall(r"^```python\n(# receipts\.py\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    [statement] = re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "receipts.py").write_text(program)
    await own_nats.create_stream("orders", "order.>")
    await connection.execute(statement)
    settings = {
        "OUTBOX_DATABASE_URL": database,
        "OUTBOX_BROKER_URL": own_nats.url,
        "OUTBOX_MONITORING_PORT": "0",
        "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}",
    }
    arguments = ["-m", "outbox.cli", "worker", "receipts:consumers"]
    async with relaying(database, own_nats.url):
        with running_process(arguments, tmp_path, settings) as worker:
            await asyncio.to_thread(worker.says, "receipt for order 7")
