"""Dead letters leave RabbitMQ for the database: committed first, then acknowledged, through every outage."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pamqp.commands import Basic

from outbox import MessageRelay, ensure_outbox_schema_async
from outbox.archiver import Archiver
from outbox.core.events import Archived, DeadLettersMeasured, DependencyLost, DependencyRestored
from outbox.core.outcome import Cause, Dead, Failure
from outbox.core.urls import server_address
from outbox.dead_letters import DeadLetters
from outbox.dead_letters.model import DeadLetterFilter
from outbox.dead_letters.reader import DeadLetterListing
from outbox.engine.archive import ArchiveRunner, ArchiveSettings
from outbox.engine.lifecycle import Stopping
from outbox.errors import ConfigurationError, DatabaseUnavailableError, SchemaError
from outbox.ports import CONFIRMED
from outbox.postgres.archive import PostgresArchive
from outbox.postgres.pool import Pool, open_pool
from outbox.runtime.brokers import CountingArchived
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq.amqp_encoding import Publication, RawField, encode_properties
from outbox.transports.rabbitmq.dead_letters import RabbitDeadLetterQueues
from outbox.transports.rabbitmq.header_json import read_content
from tests.dead_letters.failed_messages import TABLE, dead, letters
from tests.rabbitmq.support import FAILURE, Recorder, bound, consuming, deliver, message
from tests.servers.postgres import OwnPostgres
from tests.servers.proxy import Proxy
from tests.support import RabbitAdmin, eventually
from tests.support.processes import peak_memory, running

pytestmark = pytest.mark.rabbitmq

MIB = 1024 * 1024
KEPT = ("body", "exception_message", "failures", "properties")
"""Columns that store text as it came; the API masks it when it is read."""


@pytest.fixture
async def broker(broker_url: str) -> AsyncIterator[RabbitBroker]:
    made = RabbitBroker(broker_url, exchange_name="shop", observer=Recorder())
    yield made
    await made.close()


@asynccontextmanager
async def archiving(database: str, broker_url: str, *queues: str, **options: Any) -> AsyncIterator[Archiver]:
    """Runs an archiver within the block, and stops it cleanly."""
    made = Archiver(database, broker=broker_url, queues=queues, enable_metrics=False, **options)
    archiver = asyncio.create_task(made.run(handle_signals=False))
    try:
        yield made
    finally:
        made.stop()
        await archiver


async def die(broker: RabbitBroker, *ids: str, queue: str = "mail") -> None:
    """Has a worker dead-letter messages, one after another."""
    async with consuming(broker, queue) as inbox:
        for id_ in ids:
            await deliver(broker, message(id=id_, headers={"tenant": "acme"}))
            await (await inbox.next()).settle(Dead(Cause.REJECTED, FAILURE))


async def archived(pool: Pool, count: int, timeout: float = 90) -> Any:
    """The rows, once there are `count` of them."""

    async def rows() -> Any:
        found = await letters(pool)
        assert len(found) == count
        return found

    return await eventually(rows, timeout=timeout)


async def empty(broker_admin: RabbitAdmin) -> bool:
    """Whether all messages were acknowledged: a stopped archiver returns the rest."""
    return await broker_admin.depth("mail.dlq") == 0


async def test_a_dead_letter_is_archived_with_its_failure_and_leaves_the_broker(
    database: str,
    pool: Pool,
    broker_url: str,
    broker: RabbitBroker,
    broker_admin: RabbitAdmin,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="outbox")
    await die(broker, "m1")
    async with archiving(database, broker_url, "mail"):
        [row] = await archived(pool, 1)
    started, taken, *_ = [line for line in caplog.messages if "archive" in line]
    assert started == f"archiver started: dead letters come from {server_address(broker_url)}"
    assert taken == "archives the dead letters of queue mail"
    assert await empty(broker_admin)
    assert (row["message_id"], row["queue"], row["routing_key"], row["exchange"]) == ("m1", "mail", "order.placed", "shop")
    assert (row["source"], row["cause"], row["status"]) == ("worker", "rejected", "open")
    assert (row["exception_type"], row["exception_message"]) == ("shop.PaymentError", "the card was declined")
    assert json.loads(row["headers"]) == {"tenant": "acme"}
    assert [entry["type"] for entry in json.loads(row["failures"])] == ["shop.PaymentError"]


async def test_half_a_surrogate_pair_under_a_masked_key_is_archived(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    async with consuming(broker) as inbox:
        await deliver(broker, message(id="m1", body=b'{"token":"\\ud800abcdefgh"}'))
        failure = Failure("shop.PaymentError", "refused \ud800abcdefgh")
        await (await inbox.next()).settle(Dead(Cause.REJECTED, failure))
    async with archiving(database, broker_url, "mail"):
        [row] = await archived(pool, 1)
    shown = {name: value for name, value in row.items() if name not in KEPT}
    assert not [name for name, value in shown.items() if "abcdefgh" in str(value)]
    assert await empty(broker_admin)


async def test_an_archiver_killed_between_commit_and_ack_leaves_one_row(
    database: str,
    pool: Pool,
    broker_url: str,
    broker: RabbitBroker,
    broker_admin: RabbitAdmin,
) -> None:
    await die(broker, "m1", "m2")
    script = Path(__file__).with_name("dying_archiver.py")
    dying = await asyncio.create_subprocess_exec(
        sys.executable, script, database, broker_url, "mail", cwd=Path(__file__).parents[2], env={"PYTHONPATH": "."}
    )
    assert await asyncio.wait_for(dying.wait(), 30) == -signal.SIGKILL
    first = await archived(pool, len(await letters(pool)))
    assert first
    recorder, stopping = Recorder(), Stopping()
    queues = RabbitDeadLetterQueues(broker_url)
    settings = ArchiveSettings(queues=frozenset({"mail"}))
    archiver = asyncio.create_task(ArchiveRunner(queues, PostgresArchive(pool, TABLE), recorder, settings).run(stopping))
    await eventually(lambda: sum(event.count for event in recorder.of(Archived)) == 2)
    stopping.request()
    await archiver
    await queues.close()
    assert await empty(broker_admin)
    assert [row["message_id"] for row in await letters(pool)] == ["m1", "m2"]


@pytest.mark.parametrize("state", ["P0001", "23514"])
async def test_a_dead_letter_that_the_database_refuses_stays_in_the_broker_and_keeps_no_other_one(
    database: str,
    pool: Pool,
    broker_url: str,
    broker: RabbitBroker,
    broker_admin: RabbitAdmin,
    caplog: pytest.LogCaptureFixture,
    state: str,
) -> None:
    await die(broker, "m1", "m2", "m3")
    await pool.execute(
        "create function refuse() returns trigger language plpgsql as "
        "$$ begin if new.message_id = 'm2' then "
        f"raise using errcode = '{state}', message = 'not this one'; end if; return new; end $$; "
        "create trigger refuse before insert on outbox_dead_letter for each row execute function refuse()"
    )
    async with archiving(database, broker_url, "mail"):
        assert {row["message_id"] for row in await archived(pool, 2)} == {"m1", "m3"}
        await eventually(lambda: "refuses the dead letter m2 of queue mail" in caplog.text)
    assert "lost the database" not in caplog.text
    await eventually(lambda: _ready(broker_admin, 1))
    await pool.execute("drop trigger refuse on outbox_dead_letter")
    async with archiving(database, broker_url, "mail"):
        await archived(pool, 3)
    assert await empty(broker_admin)


@pytest.mark.parametrize("size", [1, 40_000])
async def test_any_number_of_refused_dead_letters_keep_no_other_one(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin, size: int
) -> None:
    await pool.execute(
        "alter table outbox_dead_letter add constraint own check (message_id not like 'refused%') not valid",
    )
    await bound(broker)
    refused = [f"refused-{number}" for number in range(130)]
    good = [f"good-{number}" for number in range(130)]
    ids = [*refused[:1], *good[:1], *refused[1:120], *good[1:], *refused[120:]]
    await deliver(broker, *(message(id=id_, body=b"x" * size, target_queue="mail.dlq") for id_ in ids))
    async with archiving(database, broker_url, "mail", max_batch_bytes=1_000_000):
        assert {row["message_id"] for row in await archived(pool, 130)} == set(good)
        await deliver(broker, message(id="later", target_queue="mail.dlq"))
        await archived(pool, 131)
    await eventually(lambda: _ready(broker_admin, 130))
    await pool.execute("alter table outbox_dead_letter drop constraint own")
    async with archiving(database, broker_url, "mail"):
        assert {row["message_id"] for row in await archived(pool, 261)} == {*ids, "later"}
    assert await empty(broker_admin)


async def test_an_archiver_that_freezes_while_it_records_keeps_no_other_one(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.postgres.archive.IDLE_TIMEOUT", timedelta(seconds=1))
    written, thawed = asyncio.Event(), asyncio.Event()

    class Freezing(PostgresArchive):
        async def _execute(self, *arguments: Any) -> None:
            await super()._execute(*arguments)
            written.set()
            await thawed.wait()

    frozen = asyncio.create_task(Freezing(pool, TABLE).record([dead("m1")]))
    await written.wait()
    assert await PostgresArchive(pool, TABLE).record([dead("m1")]) == ()
    thawed.set()
    with pytest.raises(DatabaseUnavailableError):
        await frozen
    assert len(await letters(pool)) == 1


async def test_two_foreign_messages_without_an_id_are_two_rows(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    await bound(broker)
    for _ in range(2):
        await broker_admin.publish("", "mail.dlq", b"the same")
    async with archiving(database, broker_url, "mail"):
        first, second = await archived(pool, 2)
    assert first["message_id"] is second["message_id"] is None
    assert {first["source"], second["source"]} == {"broker"}


async def test_a_message_that_the_broker_dead_lettered_says_so(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    await bound(broker)
    await broker_admin.publish("shop", "order.placed", b"late", properties={"expiration": "1", "message_id": "m1"})
    async with archiving(database, broker_url, "mail"):
        [row] = await archived(pool, 1)
    assert (row["source"], row["cause"], row["exception_type"]) == ("broker", "expired", "Expired")
    assert (row["routing_key"], row["message_id"]) == ("order.placed", "m1")


@pytest.mark.parametrize(
    "headers",
    [
        {"x-outbox-tracking-ids": "not json", "x-outbox-attempt": "many", "x-outbox-failures": "{", "x-outbox-hlc": "x"},
        {"x-original-routing-key": "user.created", "x-delay": 3, "tracking_ids": [1, 2]},
        {"x-outbox-attempt": -5, "x-outbox-requeue-count": 2**62, "x-outbox-tracking-ids": '["\\u0000"]'},
    ],
)
async def test_malformed_and_foreign_headers_do_not_stop_the_archiver(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin, headers: dict[str, Any]
) -> None:
    await bound(broker)
    await broker_admin.publish("", "mail.dlq", b"\x00\xff", headers=headers, properties={"message_id": "m1"})
    async with archiving(database, broker_url, "mail"):
        [row] = await archived(pool, 1)
    assert await empty(broker_admin)
    assert row["body"] == b"\x00\xff"
    assert row["preview"] == "<binary, 2 B>"


async def test_a_queue_is_found_by_its_workers_heartbeat_and_by_its_binding(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker
) -> None:
    await die(broker, "m1")
    await die(broker, "m2", queue="billing")
    await pool.execute(
        "insert into outbox_component (id, kind, name, host, process_id, version, every, consumers) "
        "values ('w', 'worker', 'w', 'h', 1, '1', '5 s', '[{\"queue\": \"mail\"}, {}, 7]')"
    )
    async with archiving(database, broker_url, discover_every=0.2):
        await archived(pool, 1)
        await pool.execute("insert into outbox_subscription (exchange, queue, binding_key) values ('shop', 'billing', '#')")
        rows = await archived(pool, 2)
    assert {row["queue"] for row in rows} == {"mail", "billing"}


async def test_the_archiver_waits_for_a_missing_queue(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    async with archiving(database, broker_url, "mail", discover_every=3600):
        await eventually(broker_admin.connections)
        await die(broker, "m1")
        await archived(pool, 1)


async def test_a_lost_connection_is_repaired(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(broker_url)
    await die(broker, "m1")
    async with archiving(database, proxy.url, "mail"):
        await archived(pool, 1)
        proxy.cut()
        await die(broker, "m2")
        await archived(pool, 2)
    assert await empty(broker_admin)


async def test_while_the_database_is_away_nothing_is_lost_and_nothing_spins(
    own_postgres: OwnPostgres, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    await ensure_outbox_schema_async(own_postgres.url)
    recorder, stopping = Recorder(), Stopping()
    await die(broker, *map(str, range(7)))
    pool = await open_pool(own_postgres.url, size=3, application_name="tests")
    archive = Counting(pool, TABLE)
    queues = RabbitDeadLetterQueues(broker_url)
    settings = ArchiveSettings(queues=frozenset({"mail"}), batch_size=5, hold=timedelta(seconds=0.5))
    own_postgres.server.stop()
    archiver = asyncio.create_task(ArchiveRunner(queues, archive, recorder, settings).run(stopping))
    await eventually(lambda: archive.attempts >= 8)
    assert recorder.of(DependencyLost)
    assert archive.per_second < 20
    # It holds on for a while, then gives back; no message is in flight any more.
    await eventually(lambda: _ready(broker_admin, 7))
    await die(broker, "7")
    own_postgres.server.start()
    await eventually(lambda: sum(event.count for event in recorder.of(Archived)) == 8)
    assert [row["message_id"] for row in await letters(pool)] == [str(number) for number in range(8)]
    assert recorder.of(DependencyRestored)
    stopping.request()
    await archiver
    await queues.close()
    assert await empty(broker_admin)
    pool.terminate()


async def test_an_archiver_stops_while_the_database_is_away(
    own_postgres: OwnPostgres, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    await ensure_outbox_schema_async(own_postgres.url)
    recorder, stopping = Recorder(), Stopping()
    await die(broker, "m1")
    pool = await open_pool(own_postgres.url, size=3, application_name="tests")
    archive = Counting(pool, TABLE)
    queues = RabbitDeadLetterQueues(broker_url)
    own_postgres.server.stop()
    settings = ArchiveSettings(queues=frozenset({"mail"}))
    archiver = asyncio.create_task(ArchiveRunner(queues, archive, recorder, settings).run(stopping))
    await eventually(lambda: archive.attempts >= 2)
    stopping.request()
    await asyncio.wait_for(archiver, 30)
    await queues.close()
    assert await eventually(lambda: _ready(broker_admin, 1))
    pool.terminate()


async def test_dead_letters_are_counted_wherever_they_are(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker
) -> None:
    recorder, stopping = Recorder(), Stopping()
    await die(broker, "m1", "m2", "m3")
    queues = RabbitDeadLetterQueues(broker_url)
    settings = ArchiveSettings(queues=frozenset({"mail"}), measure_every=timedelta(seconds=0.1))
    archiver = asyncio.create_task(ArchiveRunner(queues, PostgresArchive(pool, TABLE), recorder, settings).run(stopping))
    await archived(pool, 3)
    await pool.execute("update outbox_dead_letter set status = 'discarded' where message_id = 'm2'")
    await eventually(lambda: recorder.of(DeadLettersMeasured)[-1:] == [DeadLettersMeasured(queue="mail", count=2)])
    stopping.request()
    await archiver
    await queues.close()


async def test_a_hundred_reads_of_the_listing_change_neither_depth_nor_order_of_a_queue(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    await die(broker, "archived")
    async with archiving(database, broker_url, "mail"):
        await archived(pool, 1)
    await die(broker, "m1", "m2", "m3")
    listing = DeadLetterListing(pool, TABLE)
    for _ in range(25):
        [letter] = await listing.list(DeadLetterFilter(queue="mail"))
        await listing.get(letter.id)
        await listing.groups()
        await listing.count()
    assert await broker_admin.depth("mail.dlq") == 3
    taken = await broker_admin.get("mail.dlq", count=10)
    assert [found["properties"]["message_id"] for found in taken] == ["m1", "m2", "m3"]
    assert [found["redelivered"] for found in taken] == [False] * 3


async def test_a_requeued_message_keeps_its_rabbitmq_headers_and_properties(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin
) -> None:
    """Types that JSON does not know, and properties that the outbox does not; a queue named in CC gets nothing again."""
    when, given = datetime(2026, 3, 1, 12, tzinfo=UTC), {"small": RawField(b"b\xff"), "raw": bytearray(b"\x00\xff")}
    headers: dict[str, Any] = {
        **given,
        "when": when,
        "sum": Decimal("12.50"),
        "deep": {"list": [1, when]},
        "n": 3,
        "CC": ["billing"],
    }
    properties: dict[str, Any] = {
        "content_encoding": "gzip",
        "correlation_id": "c1",
        "message_type": "t",
        "app_id": "shop",
        "priority": 3,
    }
    await bound(broker, "billing", "billing")
    async with consuming(broker) as inbox:
        await publish(broker_url, "order.placed", Basic.Properties(headers=headers, message_id="m1", **properties))
        await (await inbox.next()).settle(Dead(Cause.REJECTED, FAILURE))
        async with archiving(database, broker_url, "mail"):
            [row] = await archived(pool, 1)
        async with DeadLetters(database, broker=broker_url) as dead_letters:
            await dead_letters.requeue(str(row["id"]))
        relay = MessageRelay(database, broker=broker_url, exchange_name="shop", enable_metrics=False)
        relaying = asyncio.create_task(relay.run(handle_signals=False))
        again = await inbox.next()
        relay.stop()
        await relaying
        arrived = again.arrival.properties
        assert {name: getattr(arrived, name) for name in properties} == properties
        assert again.message.id == "m1"
        assert "x-outbox-amqp" not in (arrived.headers or {})
        content = read_content(bytes(12) + encode_properties(Basic.Properties(headers=dict(again.message.headers))))
        assert content.headers == {
            "small": -1,
            "raw": "AP8=",
            "when": "2026-03-01T12:00:00+00:00",
            "sum": "1250E-2",
            "deep": {"list": [1, "2026-03-01T12:00:00+00:00"]},
            "n": 3,
        }
        assert {pointer: type_ for pointer, type_ in content.types.items() if pointer != "/raw"} == {
            "/when": "timestamp",
            "/sum": "decimal",
            "/deep/list/1": "timestamp",
        }
        await again.settle(Dead(Cause.REJECTED, FAILURE))
    async with archiving(database, broker_url, "mail"):
        await eventually(lambda: _dead_lettered(pool, 2))
    [letter] = await letters(pool)
    assert (letter["status"], letter["requeue_count"]) == ("open", 1)
    assert json.loads(letter["header_types"]) == json.loads(row["header_types"])
    assert await broker_admin.depth("billing") == 1


async def publish(url: str, routing_key: str, properties: Basic.Properties) -> None:
    """Publishes like a foreign program, with any properties."""
    foreign = RabbitBroker(url, exchange_name="shop", observer=Recorder())
    await foreign.open()
    publication = Publication("shop", routing_key, properties.message_id or "", encode_properties(properties), b"{}")
    assert list(await foreign._pipeline.send([publication], timeout=timedelta(seconds=10))) == [CONFIRMED]
    await foreign.close()


async def _dead_lettered(pool: Pool, count: int) -> bool:
    return bool(await pool.fetchval("select deaths = $1 from outbox_dead_letter", count))


async def test_the_command_archives_until_it_is_stopped(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin, tmp_path: Path
) -> None:
    await die(broker, "m1")
    settings = {
        "OUTBOX_DATABASE_URL": database,
        "OUTBOX_BROKER_URL": broker_url,
        "OUTBOX_ARCHIVE_QUEUES": "mail, billing",
        "OUTBOX_MASK_KEYS": "shoe size",
        "OUTBOX_MONITORING_PORT": "0",
    }
    with running(["-m", "outbox.cli", "archiver"], tmp_path, settings) as process:
        await archived(pool, 1)
        assert await eventually(lambda: pool.fetchval("select count(*) from outbox_component where kind = 'archiver'")) == 1
        process.send(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait) == 0
    assert "archived 1 dead letters of queue mail" in process.output
    assert await empty(broker_admin)


async def test_a_worker_counts_what_was_archived_from_its_queue(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker
) -> None:
    await die(broker, "m1", "m2")
    async with archiving(database, broker_url, "mail"):
        await archived(pool, 2)
    await die(broker, "m3")
    await pool.execute("update outbox_dead_letter set status = 'requeued' where message_id = 'm1'")
    assert await CountingArchived(broker, PostgresArchive(pool, TABLE)).count_dead_letters("mail") == 2
    nowhere = await open_pool("postgresql://user@127.0.0.1:1/none", size=1, application_name="tests")
    assert await CountingArchived(broker, PostgresArchive(nowhere, TABLE)).count_dead_letters("mail") == 1


async def test_an_archiver_without_its_tables_or_rights_does_not_begin(database_url: str, database: str, pool: Pool) -> None:
    await pool.execute("drop table outbox_operation_item")
    with pytest.raises(SchemaError, match="outbox_operation_item, which an archiver uses, does not exist"):
        await Archiver(database, broker="amqp://127.0.0.1:1").run()


@pytest.mark.parametrize(
    "arguments",
    [
        {"broker": "amqp://h"},
        {"db_engine_url": "postgresql://h/d"},
        {"db_engine_url": "postgresql://h/d", "broker": "postgresql://h/d"},
        {"db_engine_url": "postgresql://h/d", "broker": object()},
        {"db_engine_url": "postgresql://h/d", "broker": "amqp://h", "queues": [""]},
        {"db_pool": object(), "broker": "amqp://h"},
    ],
)
def test_invalid_arguments_are_refused_at_once(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Archiver(**arguments)


class Counting(PostgresArchive):
    """Counts the calls of its methods."""

    attempts = 0
    first_at: float | None = None

    async def record(self, dead: Any) -> Any:
        self._count()
        return await super().record(dead)

    async def known_queues(self) -> frozenset[str]:
        self._count()
        return await super().known_queues()

    def _count(self) -> None:
        self.first_at = self.first_at or asyncio.get_running_loop().time()
        self.attempts += 1

    @property
    def per_second(self) -> float:
        return self.attempts / max(asyncio.get_running_loop().time() - (self.first_at or 0), 1e-9)


async def _ready(broker_admin: RabbitAdmin, count: int) -> bool:
    return await broker_admin.depth("mail.dlq") == count


@pytest.mark.slow
async def test_an_archiver_holds_a_few_batches_in_memory_however_large_the_dead_letters_are(
    database: str, pool: Pool, broker_url: str, broker: RabbitBroker, broker_admin: RabbitAdmin, tmp_path: Path
) -> None:
    await bound(broker)
    for number in range(100):
        [sent] = await broker.send(
            [message(id=f"m{number}", body=b"x" * 3 * MIB, target_queue="mail.dlq")], timeout=timedelta(seconds=60)
        )
        assert sent == CONFIRMED
    settings = {
        "OUTBOX_DATABASE_URL": database,
        "OUTBOX_BROKER_URL": broker_url,
        "OUTBOX_ARCHIVE_QUEUES": "mail",
        "OUTBOX_MAX_BATCH_BYTES": str(16 * MIB),
    }
    with running(["-m", "outbox.cli", "archiver", "--monitoring-port", "0"], tmp_path, settings) as archiver:
        await eventually(lambda: _count(pool, 100), timeout=240, interval=0.5)
        assert peak_memory(archiver.pid) < 100 * MIB + 6 * 16 * MIB
    assert await empty(broker_admin)


async def _count(pool: Pool, count: int) -> bool:
    return bool(await pool.fetchval("select count(*) = $1 from outbox_dead_letter", count))
