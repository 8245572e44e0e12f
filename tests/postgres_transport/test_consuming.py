"""Consuming: workers are woken at once, keep to the prefetch count, survive outages, and lose or repeat nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from outbox import ensure_outbox_schema_async
from outbox.core import codec
from outbox.core.events import Dependency, DependencyLost, DependencyRestored
from outbox.core.outcome import DONE, RETURNED, Cause, Dead, Failure, Retry
from outbox.dead_letters import DeadLetters
from outbox.errors import ConfigurationError, MalformedMessageError, TopologyError
from outbox.ports import Delivery, Intake, Subscription
from outbox.postgres.pool import Pool, open_pool
from outbox.runtime.brokers import destination_of, own_database
from outbox.transports.postgres import PostgresBroker
from outbox.transports.postgres.subscription import PostgresIntake
from tests.contract.harness import EXCHANGE, Recorder
from tests.contract.support import FAILURE, existing, message, send, taking
from tests.postgres_transport.support import TABLE, TABLES, a_session_waits, deliveries, fill_deliveries, new_broker
from tests.servers.postgres import OwnPostgres
from tests.servers.proxy import Proxy, Towards
from tests.support import eventually
from tests.support.streams import collecting, relaying, working

KEPT = ("body", "exception_message", "failures")
"""Columns with unmasked contents; the API masks them when it reads them."""


@dataclass
class Handling:
    """Handlers that take a moment and settle as done."""

    moment: float = 0.0
    handled: list[bytes] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    failed: list[BaseException] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def receive(self, delivery: Delivery) -> None:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        task = asyncio.create_task(self._handle(delivery))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _handle(self, delivery: Delivery) -> None:
        await asyncio.sleep(self.moment)
        self.handled.append(delivery.message.body)
        self.running -= 1
        try:
            await delivery.settle(DONE)
        except Exception as error:  # noqa: BLE001  # the test looks at it
            self.failed.append(error)


@asynccontextmanager
async def handling(
    broker: PostgresBroker, handlers: Handling, *, queue: str = "mail", prefetch: int = 10
) -> AsyncIterator[Intake]:
    subscription = Subscription(queue=queue, binding_key="#", exchange_name=EXCHANGE, prefetch_count=prefetch, retry_delays=())
    async with broker.subscribe(subscription, handlers.receive) as intake:
        yield intake


async def test_a_worker_that_freezes_while_it_binds_its_queue_keeps_no_other_one(broker: PostgresBroker, pool: Pool) -> None:
    frozen = await pool.acquire()
    await frozen.execute("begin")
    await frozen.execute(TABLES.queries("delivery.sql")["lock_bindings"])
    async with taking(broker, "mail", "#"):
        with pytest.raises(asyncpg.InterfaceError):  # the pool has it back, because the server closed it
            await frozen.execute("select 1")


# --- waking


async def test_an_idle_worker_is_woken_by_each_of_many_commits(broker: PostgresBroker, other_broker: PostgresBroker) -> None:
    async with taking(broker, "mail", "#") as taken:
        await other_broker.open()
        for number in range(100):
            await send(other_broker, message("order.placed", str(number).encode()))
            delivery = await taken.next()  # the poll would come after an hour
            await delivery.settle(DONE)


@pytest.mark.parametrize("ordered", [True, False])
async def test_a_delivery_that_is_announced_while_a_claim_runs_is_claimed_by_the_next(
    broker: PostgresBroker, pool: Pool, monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    """The claim has not seen it, and the worker is still registered to be woken from before, so nothing else announces it."""
    handled: list[str] = []
    fetch, is_armed = PostgresBroker._fetch_bodies, False

    async def released_too_late(self: PostgresBroker, name: str, *arguments: Any) -> Any:
        nonlocal is_armed
        rows = await fetch(self, name, *arguments)
        if is_armed:
            is_armed = False
            await pool.execute("update outbox_delivery set available_at = now()")
            wake()
        return rows

    async def sleeps() -> bool:
        return bool(
            await pool.fetchval("select exists(select from pg_locks where locktype = 'advisory' and mode = 'ShareLock')")
        )

    monkeypatch.setattr(PostgresBroker, "_fetch_bodies", released_too_late)
    await existing(broker, "mail", "a.*")
    await fill_deliveries(pool, "mail", 1)
    await pool.execute("update outbox_delivery set available_at = now() + interval '1 hour'")
    subscription = Subscription(
        queue="mail", binding_key="a.*", exchange_name=EXCHANGE, prefetch_count=10, retry_delays=(), ordered=ordered
    )
    async with broker.subscribe(subscription, lambda delivery: handled.append(delivery.message.id)) as intake:
        assert isinstance(intake, PostgresIntake)
        wake = intake._wake
        await eventually(sleeps)
        is_armed = True
        wake()
        await eventually(lambda: handled == ["1"])


async def test_deliveries_of_one_claim_are_handled_in_the_order_in_which_they_are_due(
    broker: PostgresBroker, pool: Pool
) -> None:
    """Those that an operator moved to the front of the queue have higher ids than those behind them."""
    handled: list[int] = []

    def receive(delivery: Delivery) -> None:
        handled.append(int(delivery.message.id))

    await existing(broker, "mail", "a.*")
    await fill_deliveries(pool, "mail", 30)
    due = "case when message_id::int > 20 then 2 when message_id::int > 10 then 0 else 1 end * interval '1 minute'"
    await pool.execute(f"update outbox_delivery set available_at = now() - interval '1 hour' + {due}")
    subscription = Subscription(queue="mail", binding_key="a.*", exchange_name=EXCHANGE, prefetch_count=30, retry_delays=())
    async with broker.subscribe(subscription, receive):
        await eventually(lambda: len(handled) == 30)
    assert handled == [*range(11, 21), *range(1, 11), *range(21, 31)]


async def test_an_outcome_that_cannot_be_written_does_not_block_others_and_is_delivered_again(
    broker: PostgresBroker, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.postgres.delivery.BROKEN_PAUSE", timedelta(milliseconds=50))
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed", b"good"), message("order.placed", b"bad"))
        by_body = {delivery.message.body: delivery for delivery in (await taken.next(), await taken.next())}

        with monkeypatch.context() as patch:

            def broken(*_: object, **__: object) -> None:
                raise LookupError("a bug of ours")

            patch.setattr("outbox.postgres.dead_letter_writer.DeadLetterWriter.of_delivery", broken)
            answers = await asyncio.gather(
                by_body[b"good"].settle(DONE),
                by_body[b"bad"].settle(Dead(Cause.REJECTED, FAILURE)),
                return_exceptions=True,
            )
        assert answers[0] is None
        assert isinstance(answers[1], LookupError)
        again = await taken.next()
        assert (again.message.body, again.attempt) == (b"bad", 1)
        await again.settle(Dead(Cause.REJECTED, FAILURE))
    assert await pool.fetchval("select count(*) from outbox_dead_letter") == 1


async def test_an_outcome_that_a_trigger_refuses_does_not_block_others_and_is_delivered_again(
    database: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.postgres.delivery.BROKEN_PAUSE", timedelta(milliseconds=50))
    await pool.execute("""
        create function refuse() returns trigger language plpgsql as
        $$ begin if new.routing_key = 'order.bad' then raise exception 'not this one'; end if; return new; end $$;
        create trigger refuse before insert on outbox_dead_letter for each row execute function refuse()
    """)
    recorder = Recorder()
    broker = new_broker(database, observer=recorder)
    try:
        async with taking(broker, "mail", "#") as taken:
            await send(broker, *(message(f"order.{word}") for word in ("placed", "bad", "paid")))
            three = [await taken.next() for _ in range(3)]
            dead = Dead(Cause.REJECTED, FAILURE)
            async with asyncio.timeout(20):
                answers = await asyncio.gather(*(each.settle(dead) for each in three), return_exceptions=True)
            assert [str(answer) for answer in answers if answer is not None] == [
                "dead_letter at the broker in PostgreSQL: RaiseError: not this one"
            ]
            again = await taken.next()
            assert (again.message.routing_key, again.attempt) == ("order.bad", 1)
            await again.settle(DONE)
    finally:
        await broker.close()
    assert await pool.fetchval("select array_agg(routing_key order by routing_key) from outbox_dead_letter") == [
        "order.paid",
        "order.placed",
    ]
    assert not recorder.of(DependencyLost)


async def test_half_a_surrogate_pair_under_a_masked_key_becomes_a_dead_letter(broker: PostgresBroker, pool: Pool) -> None:
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed", b'{"token":"\\ud800abcdefgh"}'))
        await (await taken.next()).settle(Dead(Cause.REJECTED, Failure("ValueError", "refused \ud800abcdefgh")))
    [row] = await pool.fetch("select * from outbox_dead_letter")
    shown = {name: value for name, value in row.items() if name not in KEPT}
    assert not [name for name, value in shown.items() if "abcdefgh" in str(value)]


async def test_rows_that_another_program_inserts_wake_the_worker(broker: PostgresBroker, pool: Pool) -> None:
    async with taking(broker, "mail", "#") as taken, taking(broker, "stock", "#") as stock:
        await fill_deliveries(pool, "mail", 1)
        await (await taken.next()).settle(DONE)
        await fill_deliveries(pool, "stock", 1)
        await (await stock.next()).settle(DONE)


async def test_an_idle_worker_takes_over_the_retry_of_a_stopped_worker_in_time(
    broker: PostgresBroker, other_broker: PostgresBroker
) -> None:
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"))
        delivery = await taken.next()
        async with taking(other_broker, "mail", "#") as other:
            await delivery.settle(Retry(timedelta(seconds=1), FAILURE))
            assert taken.intake is not None
            await taken.intake.stop()
            again = await other.next()
            assert again.attempt == 2
            await again.settle(DONE)


async def test_an_idle_worker_takes_what_a_stopping_worker_gives_back_at_once(
    broker: PostgresBroker, other_broker: PostgresBroker
) -> None:
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"))
        delivery = await taken.next()
        async with taking(other_broker, "mail", "#") as other:
            assert taken.intake is not None
            await taken.intake.stop()
            await delivery.settle(RETURNED)
            assert (await other.next()).attempt == 1


# --- in flight and prefetched


async def test_two_workers_handle_each_message_once_within_their_prefetch_counts(
    broker: PostgresBroker, other_broker: PostgresBroker, pool: Pool
) -> None:
    await pool.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids) "
        "select 'shop', 'mail', n::text, 'a.b', n::text::bytea, jsonb_build_array(n::text) from generate_series(1, 10000) as n"
    )
    one, other = Handling(), Handling()
    async with handling(broker, one, prefetch=7), handling(other_broker, other, prefetch=3):
        await eventually(lambda: len(one.handled) + len(other.handled) >= 10_000, timeout=60)
    assert sorted(int(body) for body in one.handled + other.handled) == list(range(1, 10_001))
    assert (one.most_running, other.most_running) == (7, 3)
    assert one.failed + other.failed == []
    assert await deliveries(pool) == []


async def test_a_slow_worker_claims_almost_nothing_ahead(broker: PostgresBroker, pool: Pool) -> None:
    await fill_deliveries(pool, "mail", 1000)
    slow = Handling(moment=0.2)
    async with handling(broker, slow, prefetch=2):
        await eventually(lambda: len(slow.handled) >= 12)
        # Ten a second, so a quarter second's worth is two or three beyond the two in flight.
        assert await pool.fetchval("select count(*) from outbox_delivery where lease_token is not null") <= 8


async def test_a_message_that_expires_before_its_turn_is_dead_lettered_unhandled(broker: PostgresBroker, pool: Pool) -> None:
    await existing(broker, "mail", "#")
    await send(broker, *(message("order.placed", str(number).encode()) for number in range(200)))
    await send(broker, message("order.placed", b"late", expiration=timedelta(seconds=3)))
    await send(broker, message("order.placed", b"last"))
    handled = []
    async with taking(broker, "mail", "#", prefetch_count=1) as taken:
        while await pool.fetchval("select lease_token is null from outbox_delivery where body = 'late'"):
            handled.append(await _done(await taken.next()))  # fast, so that it is claimed ahead
        assert b"late" not in handled
        blocking = await taken.next()
        await asyncio.sleep(3)  # its time runs out while it waits for a handler
        handled.append(await _done(blocking))
        while handled[-1] != b"last":
            handled.append(await _done(await taken.next()))
        await eventually(lambda: _count(pool, "outbox_dead_letter", 1))
    [dead] = await pool.fetch("select * from outbox_dead_letter")
    assert (dead["body"], dead["cause"], dead["source"], dead["queue"]) == (b"late", "expired", "broker", "mail")
    assert len(handled) == 201
    assert b"late" not in handled


async def _done(delivery: Delivery) -> bytes:
    await delivery.settle(DONE)
    return delivery.message.body


async def _count(pool: Pool, table: str, expected: int) -> bool:
    return bool(await pool.fetchval(f"select count(*) from {table}") == expected)


# --- what arrives


async def test_the_incoming_message_reads_like_aio_pikas(broker: PostgresBroker) -> None:
    async with taking(broker, "mail", "#") as taken:
        sent = message("order.placed", b"{}", headers={"tenant": "acme"}, expiration=timedelta(hours=1))
        await send(broker, sent)
        incoming: Any = (await taken.next()).incoming
    assert (incoming.body, incoming.body_size, incoming.message_id) == (b"{}", 2, sent.id)
    assert (incoming.routing_key, incoming.exchange) == ("order.placed", EXCHANGE)
    assert incoming.headers["tenant"] == "acme"
    assert incoming.headers[codec.ATTEMPT] == 1
    assert codec.decode_tracking_ids(incoming.headers[codec.TRACKING_IDS], source="") == sent.tracking_ids
    assert codec.decode_instant(incoming.headers[codec.EXPIRES_AT], source="") == sent.expires_at
    assert abs(incoming.timestamp - datetime.now(UTC)) < timedelta(minutes=1)
    assert 3590 < incoming.expiration <= 3600
    assert incoming.delivery_tag > 0
    assert incoming.redelivered is False
    assert (incoming.content_type, incoming.content_encoding, incoming.priority) == ("application/json", None, 0)
    for attribute in ("correlation_id", "reply_to", "type", "app_id", "user_id", "cluster_id", "consumer_tag", "message_count"):
        assert getattr(incoming, attribute) is None


@pytest.mark.parametrize(
    "column", ["headers = '[1]'", "tracking_ids = '{}'", "tracking_ids = '[]'", "tracking_ids = '[7]'", "headers = '3'"]
)
async def test_a_row_that_cannot_be_read_says_so_and_can_be_settled(broker: PostgresBroker, pool: Pool, column: str) -> None:
    await existing(broker, "mail", "#")
    await fill_deliveries(pool, "mail", 1)
    await pool.execute(f"update outbox_delivery set {column}")
    async with taking(broker, "mail", "#") as taken:
        delivery = await taken.next()
        assert delivery.attempt == 1
        with pytest.raises(MalformedMessageError):
            assert delivery.message is not None
        await delivery.settle(Dead(Cause.UNDECODABLE, FAILURE))
    assert await broker.count_dead_letters("mail") == 1


async def test_times_out_of_pythons_range_do_not_stop_a_worker(broker: PostgresBroker, pool: Pool) -> None:
    await fill_deliveries(pool, "mail", 4)
    for number, value in enumerate(("'infinity'", "'-infinity'", "'4000-01-01 BC'", "'200000-01-01'"), start=1):
        await pool.execute(f"update outbox_delivery set created_at = {value} where message_id = '{number}'")
    await pool.execute("update outbox_delivery set expires_at = 'infinity' where message_id = '1'")
    async with taking(broker, "mail", "#") as taken:
        for delivery in await taken.several(4):
            assert delivery.message.created_at.tzinfo is not None
            await delivery.settle(DONE)


async def test_an_idle_worker_is_woken_although_its_queue_has_a_delivery_that_is_never_due(
    broker: PostgresBroker, other_broker: PostgresBroker, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, a slow claim would have the worker look again before anything is due.
    monkeypatch.setattr("outbox.postgres.index_positions.SLOW_SECONDS", 3_600)
    await existing(broker, "mail", "#")
    await fill_deliveries(pool, "mail", 1)
    await pool.execute("update outbox_delivery set available_at = 'infinity'")
    async with taking(broker, "mail", "#") as taken:
        asleep = (
            "select exists(select from pg_locks join pg_database on pg_database.oid = database "
            "where locktype = 'advisory' and datname = current_database())"
        )
        await eventually(lambda: pool.fetchval(asleep), timeout=10)
        await send(other_broker, message("order.placed", b"later"))
        assert (await taken.next()).message.body == b"later"


async def test_the_depth_of_a_queue_counts_a_delivery_that_has_always_been_due(broker: PostgresBroker, pool: Pool) -> None:
    await existing(broker, "mail", "#")
    await fill_deliveries(pool, "mail", 1)
    await pool.execute("update outbox_delivery set available_at = '-infinity'")
    depth = await broker.queue_depth("mail")
    assert depth is not None
    assert depth.ready == 1
    assert depth.oldest_due is not None
    assert depth.oldest_due > timedelta(days=36_500)


async def test_a_failure_with_text_that_postgres_cannot_store_is_recorded(broker: PostgresBroker, pool: Pool) -> None:
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"))
        failure = Failure("shop.Error", "a \0 and half a pair \ud800", "Traceback: \udcff")
        await (await taken.next()).settle(Dead(Cause.REJECTED, failure))
    [dead] = await pool.fetch("select * from outbox_dead_letter")
    assert dead["exception_message"] == "a \N{SYMBOL FOR NULL} and half a pair ?"
    assert (dead["source"], dead["attempt"], dead["status"]) == ("worker", 1, "open")


async def test_a_retry_may_have_any_delay(broker: PostgresBroker, pool: Pool) -> None:
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"))
        await (await taken.next()).settle(Retry(timedelta.max, FAILURE))
    assert await pool.fetchval("select attempt from outbox_delivery where available_at > now() + interval '900 years'") == 2


async def test_the_depth_of_a_large_queue_is_estimated(
    broker: PostgresBroker, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.transports.postgres.broker.DEPTH_COUNTED", 100)
    await existing(broker, "mail", "#")
    await fill_deliveries(pool, "mail", 1_000)
    await fill_deliveries(pool, "stock", 500)
    await pool.execute(
        "update outbox_delivery set available_at = now() - interval '1 minute' where queue = 'mail' and id % 2 = 0"
    )
    await pool.execute(
        "update outbox_delivery set available_at = now() + interval '1 hour' where queue = 'mail' and id % 2 = 1"
    )
    depth = await broker.queue_depth("mail")
    assert depth is not None
    assert depth.ready == 500  # all pages of so small a table are looked at
    assert depth.oldest_due is not None
    assert depth.oldest_due >= timedelta(minutes=1)


async def test_only_open_dead_letters_of_the_queue_are_counted(broker: PostgresBroker, pool: Pool) -> None:
    async with taking(broker, "mail", "#") as taken, taking(broker, "stock", "#") as stock:
        await send(broker, message("order.placed"), message("order.placed"))
        for delivery in [*await taken.several(2), *await stock.several(2)]:
            await delivery.settle(Dead(Cause.REJECTED, FAILURE))
        assert await broker.count_dead_letters("mail") == 2
        await pool.execute(
            "update outbox_dead_letter set status = 'discarded' where id = (select min(id) from outbox_dead_letter)"
        )
        assert await broker.count_dead_letters("mail") + await broker.count_dead_letters("stock") == 3
        assert await broker.count_dead_letters("unknown") == 0


# --- outages


async def test_a_server_restart_under_load_loses_nothing_and_is_reported(own_postgres: OwnPostgres) -> None:
    await ensure_outbox_schema_async(own_postgres.url)
    recorder, handlers = Recorder(), Handling(moment=0.001)
    broker = new_broker(own_postgres.url, observer=recorder)
    async with handling(broker, handlers):
        pool = await open_pool(own_postgres.url, size=2, application_name="tests")
        await fill_deliveries(pool, "mail", 3000)
        for how in (own_postgres.restart, own_postgres.kill):
            done = len(handlers.handled)
            await eventually(lambda: len(handlers.handled) > done + 300)  # noqa: B023  # waited for at once
            await asyncio.to_thread(how)
        await asyncio.to_thread(own_postgres.start)
        await eventually(lambda: _count(pool, "outbox_delivery", 0), timeout=60)
        assert handlers.failed == []
        assert await pool.fetchval("select count(*) from outbox_dead_letter") == 0
        # And idle as it is now, it is woken again.
        await fill_deliveries(pool, "mail", 1)
        await eventually(lambda: _count(pool, "outbox_delivery", 0))
        pool.terminate()
    await broker.close()
    assert {event.dependency for event in recorder.of(DependencyLost)} == {Dependency.BROKER}
    assert len(recorder.of(DependencyLost)) == len(recorder.of(DependencyRestored)) >= 1


async def test_a_broker_whose_server_has_too_few_connections_is_reported_as_lost_once(
    database: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = f"crowded_{database.rpartition('/')[2]}"
    await pool.execute(f"create role {role} login password 'secret'")
    await pool.execute(f"grant all on all tables in schema public to {role}")
    await pool.execute(f"grant all on all sequences in schema public to {role}")
    address = urlsplit(database)
    url = urlunsplit(address._replace(netloc=f"{role}:secret@{address.netloc.rpartition('@')[2]}"))
    crowded = await open_pool(url, size=6, application_name="tests")
    recorder = Recorder()
    broker = PostgresBroker(pool=crowded, table=TABLE, exchange_name=EXCHANGE, observer=recorder)
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"), message("order.placed"))
        for delivery in await taken.several(2):
            # The connection that listens is the only one that is left, and every other use needs a new one.
            await pool.execute(f"alter role {role} connection limit 1")
            await crowded.expire_connections()
            settling = asyncio.create_task(delivery.settle(DONE))
            await eventually(lambda: bool(recorder.of(DependencyLost)))
            with pytest.raises(asyncpg.TooManyConnectionsError):
                await asyncpg.connect(url)
            assert not settling.done()
            await pool.execute(f"alter role {role} connection limit -1")
            await settling
        assert (len(recorder.of(DependencyLost)), recorder.of(DependencyRestored)) == (1, [])
        monkeypatch.setattr("outbox.transports.postgres.broker.CROWDED_FOR", timedelta(0))
        await send(broker, message("order.placed"))
        await (await taken.next()).settle(DONE)
        await eventually(lambda: len(recorder.of(DependencyRestored)) == 1)
    await broker.close()
    await crowded.close()
    await pool.execute(f"drop owned by {role}; drop role {role}")


async def test_repeatedly_terminated_backends_lose_nothing(broker: PostgresBroker, pool: Pool) -> None:
    handlers = Handling(moment=0.001)
    async with handling(broker, handlers):
        await fill_deliveries(pool, "mail", 3000)
        for _ in range(10):
            await asyncio.sleep(0.05)
            await pool.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outbox broker'"
            )
        await eventually(lambda: _count(pool, "outbox_delivery", 0), timeout=60)
        assert handlers.failed == []
        await fill_deliveries(pool, "mail", 1)
        await eventually(lambda: _count(pool, "outbox_delivery", 0))


@pytest.mark.parametrize(
    ("outcome", "attempt", "dead"),
    [
        (DONE, None, 0),
        (Retry(timedelta(hours=1), FAILURE), 2, 0),
        (Dead(Cause.REJECTED, FAILURE), None, 1),
    ],
    ids=["done", "retry", "dead"],
)
async def test_an_outcome_whose_answer_was_lost_is_written_once_and_reported_as_written(
    database: str,
    pool: Pool,
    proxied: Callable[[str], Proxy],
    outcome: Any,
    attempt: int | None,
    dead: int,
) -> None:
    proxy = proxied(database)
    broker = new_broker(proxy.url)
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"))
        delivery = await taken.next()
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("select from outbox_delivery for update")
            settling = asyncio.create_task(delivery.settle(outcome))
            await eventually(lambda: a_session_waits(pool))
            proxy.swallow(Towards.CLIENT)
        await eventually(lambda: _settled(pool, attempt))
        proxy.resume()
        proxy.cut()
        async with asyncio.timeout(30):
            await settling
        rows = await deliveries(pool)
        assert [row["attempt"] for row in rows] == ([] if attempt is None else [attempt])
        assert await pool.fetchval("select count(*) from outbox_dead_letter") == dead
    await broker.close()


async def _settled(pool: Pool, attempt: int | None) -> bool:
    return [row["attempt"] for row in await deliveries(pool)] == ([] if attempt is None else [attempt])


async def test_deliveries_of_a_claim_whose_answer_was_lost_come_at_once_and_count_no_crash(
    database: str, pool: Pool, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(database)
    broker = new_broker(proxy.url)
    async with taking(broker, "mail", "#") as taken:
        await pool.execute(STOP_AT_THE_GATE)
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("select pg_advisory_xact_lock(42)")
            await fill_deliveries(pool, "mail", 1)
            await eventually(lambda: a_session_waits(pool))  # the claim, with its work done but not committed
            proxy.swallow(Towards.CLIENT)
        await eventually(lambda: _is_leased(pool))
        proxy.resume()
        proxy.cut()
        delivery = await taken.next()
        assert (delivery.crashes, delivery.attempt) == (0, 1)
        await delivery.settle(DONE)
    await broker.close()


STOP_AT_THE_GATE = """
    create function stop_at_the_gate() returns trigger language plpgsql as $$
    begin
        perform pg_advisory_xact_lock(42);
        return null;
    end $$;
    create trigger stop_at_the_gate after update on outbox_delivery for each row execute function stop_at_the_gate()
"""


async def _is_leased(pool: Pool) -> bool:
    return bool(await pool.fetchval("select exists(select from outbox_delivery where lease_token is not null)"))


async def test_an_outcome_waits_for_the_database_to_come_back(own_postgres: OwnPostgres) -> None:
    await ensure_outbox_schema_async(own_postgres.url)
    broker = new_broker(own_postgres.url)
    async with taking(broker, "mail", "#") as taken:
        await send(broker, message("order.placed"))
        delivery = await taken.next()
        await asyncio.to_thread(own_postgres.stop)
        settling = asyncio.create_task(delivery.settle(DONE))
        await asyncio.wait([settling], timeout=0.5)
        assert not settling.done()
        await asyncio.to_thread(own_postgres.start)
        async with asyncio.timeout(30):
            await settling
    await broker.close()


async def test_ending_a_subscription_while_the_database_is_away_takes_bounded_time(own_postgres: OwnPostgres) -> None:
    await ensure_outbox_schema_async(own_postgres.url)
    broker = new_broker(own_postgres.url)
    async with asyncio.timeout(30):
        async with taking(broker, "mail", "#") as taken:
            await send(broker, message("order.placed"))
            await taken.next()
            await asyncio.to_thread(own_postgres.stop)
        await broker.close()


# --- settings of the database


async def test_another_default_isolation_level_changes_nothing(database: str, pool: Pool) -> None:
    name = database.rpartition("/")[2]
    await pool.execute(f"alter database {name} set default_transaction_isolation = 'serializable'")
    await pool.execute(
        "insert into outbox_delivery (exchange, queue, message_id, routing_key, body, tracking_ids) "
        "select 'shop', 'mail', n::text, 'a.b', n::text::bytea, jsonb_build_array(n::text) from generate_series(1, 3000) as n"
    )
    one, other = Handling(), Handling()
    recorder = Recorder()
    brokers = [new_broker(database, observer=recorder) for _ in range(2)]
    async with handling(brokers[0], one), handling(brokers[1], other):
        await eventually(lambda: len(one.handled) + len(other.handled) >= 3000, timeout=60)
    assert sorted(int(body) for body in one.handled + other.handled) == list(range(1, 3001))
    assert recorder.of(DependencyLost) == []
    for broker in brokers:
        await broker.close()


# --- subscribing


async def test_a_binding_key_that_postgres_cannot_hold_is_refused_at_the_start(broker: PostgresBroker) -> None:
    with pytest.raises(ConfigurationError):
        async with taking(broker, "mail", "order.\0"):
            pass
    with pytest.raises(ConfigurationError):
        async with taking(broker, "mail", "".join(str(number) for number in range(5000))):
            pass


async def test_a_worker_without_the_privilege_to_bind_uses_a_provisioned_binding(
    database: str, broker: PostgresBroker, pool: Pool
) -> None:
    await existing(broker, "mail", "order.*")
    await pool.execute(
        f"""
        do $$ begin create role {RESTRICTED} login password 'secret'; exception when duplicate_object then null; end $$;
        grant select on outbox_table, outbox_subscription to {RESTRICTED};
        grant select, insert, update, delete on outbox_delivery to {RESTRICTED};
        grant select, insert, update on outbox_dead_letter to {RESTRICTED};
        grant select on outbox_dead_letter_edition, outbox_operation to {RESTRICTED};
        grant select, update on outbox_operation_item to {RESTRICTED}
        """
    )
    restricted = new_broker(_as_user(database, RESTRICTED, "secret"))
    try:
        async with taking(restricted, "mail", "order.*") as taken:
            await send(restricted, message("order.placed"), message("order.paid"))
            await (await taken.next()).settle(DONE)
            await (await taken.next()).settle(Dead(Cause.REJECTED, FAILURE))
        with pytest.raises(TopologyError, match=r"'mail'.*'invoice\.\*'"):
            async with taking(restricted, "mail", "invoice.*"):
                pass
    finally:
        await restricted.close()
        await pool.execute(f"drop owned by {RESTRICTED}; drop role {RESTRICTED}")


async def test_a_worker_without_privileges_to_settle_messages_and_for_dead_letters_does_not_start(
    database: str, broker: PostgresBroker, pool: Pool
) -> None:
    await existing(broker, "mail", "order.*")
    await pool.execute(
        f"""
        do $$ begin create role {RESTRICTED} login password 'secret'; exception when duplicate_object then null; end $$;
        grant select on outbox_table, outbox_subscription to {RESTRICTED};
        grant select, insert, update on outbox_delivery to {RESTRICTED};
        grant select, insert on outbox_dead_letter to {RESTRICTED}
        """
    )
    restricted = new_broker(_as_user(database, RESTRICTED, "secret"))
    try:
        missing = "delete on outbox_delivery, update on outbox_dead_letter, select on outbox_dead_letter_edition, select on"
        with pytest.raises(TopologyError, match=missing):
            async with taking(restricted, "mail", "order.*"):
                pass
    finally:
        await restricted.close()
        await pool.execute(f"drop owned by {RESTRICTED}; drop role {RESTRICTED}")


RESTRICTED = "outbox_restricted_worker"


def _as_user(url: str, user: str, password: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{user}:{password}@{rest.rpartition('@')[2]}"


async def test_a_row_of_another_program_with_headers_that_are_no_object_harms_no_other(database_url: str, pool: Pool) -> None:
    handled: list[bytes] = []
    broken = ['"s"', "5", "[1]", "1" * 5_000]
    async with relaying(database_url, database_url), working(database_url, database_url, collecting(handled, "a.x")):
        for body, headers in enumerate(["null", *broken, "{}"]):
            await pool.execute(
                "insert into outbox_table (routing_key, body, headers) values ('a.x', $1, $2)", str(body).encode(), headers
            )
        await eventually(lambda: sorted(handled) == [b"0", b"5"])
        await eventually(lambda: pool.fetchval("select count(*) = 0 from outbox_delivery"))
    async with DeadLetters(database_url) as letters:
        found = [await letters.get(str(row["id"])) for row in await pool.fetch("select id from outbox_dead_letter")]
    assert {letter.letter.cause for letter in found if letter} == {"undecodable"}
    assert sorted(letter.body for letter in found if letter) == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize(
    ("destinations", "warned"),
    [
        (["amqp://ada@here/"], True),
        (["amqp://ada@here/", "postgresql://ada@here/a"], False),
        (["amqp://ada@here/", None], False),
        ([], False),
    ],
)
async def test_a_worker_whose_relays_send_to_another_broker_says_so(
    broker: PostgresBroker, pool: Pool, caplog: pytest.LogCaptureFixture, destinations: list[str | None], warned: bool
) -> None:
    for url in destinations:
        destination = own_database(exchange_name="a") if url is None else destination_of(url, exchange_name="a")
        await pool.execute(
            "insert into outbox_relay (id, outbox_table, destination, name, held_until) "
            "values (gen_random_uuid(), 'outbox_table'::regclass::oid, $1, 'relay-1', now() + interval '1 minute')",
            destination,
        )
    async with taking(broker, "mail", "#"), taking(broker, "other", "#"):
        pass
    lines = [line for line in caplog.messages if "OUTBOX_BROKER_URL" in line]
    assert len(lines) == warned
    assert all("the relay relay-1 sends to RabbitMQ at here:5672" in line for line in lines)


async def test_a_worker_without_the_table_of_relays_consumes(
    broker: PostgresBroker, pool: Pool, other_broker: PostgresBroker
) -> None:
    await pool.execute("drop table outbox_relay")
    async with taking(broker, "mail", "#") as taken:
        await send(other_broker, message("order.placed"))
        await (await taken.next()).settle(DONE)


async def test_a_worker_that_nothing_would_wake_any_more_fails_instead_of_waiting_for_ever(
    broker: PostgresBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_broker: PostgresBroker, _queues: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(PostgresBroker, "_next_due", fail)
    with pytest.raises(ZeroDivisionError):
        async with asyncio.timeout(60), handling(broker, Handling()), handling(broker, Handling(), queue="other"):
            await asyncio.Event().wait()
