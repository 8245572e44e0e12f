"""Consumers with an inbox: each message takes effect once, however often it is delivered."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from outbox import Consumer, RetryAfter, Worker, ensure_outbox_schema_async
from outbox.core.message import Message
from outbox.core.outcome import Cause
from outbox.errors import ConfigurationError, SchemaError
from outbox.maintenance import INBOX_RETENTION
from outbox.postgres.inbox import PostgresInbox, inbox_table_of, mark_of
from outbox.postgres.pool import borrow_from
from outbox.postgres.queries import TableName
from outbox.publisher import BoundPublisher
from outbox.transports.memory import MemoryBroker
from tests.contract.support import existing, message
from tests.servers.proxy import Proxy, Towards
from tests.support import eventually
from tests.worker.support import SOON, TIMEOUT, running

pytestmark = pytest.mark.slow

Connection = Any
QUEUE = "mail"


@pytest.fixture
async def shop(database_url: str) -> str:
    """A database with all tables and one business table."""
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute("create table sale (id int)")
    await connection.close()
    return database_url


@pytest.fixture
async def db(shop: str) -> AsyncIterator[Connection]:
    """A connection that sees committed data."""
    connection = await asyncpg.connect(shop)
    yield connection
    await connection.close()


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker(exchange_name="shop")


@pytest.fixture
def duplicates(caplog: pytest.LogCaptureFixture) -> Callable[[], int]:
    """Number of messages skipped so far."""
    caplog.set_level("DEBUG", logger="outbox")
    return lambda: sum(line.startswith("skipped") for line in caplog.messages)


@asynccontextmanager
async def consuming(
    broker: MemoryBroker, url: str, callback: Any, *, inbox: bool = True, retry_delays: tuple[str, ...] = (), **options: Any
) -> AsyncIterator[None]:
    """Runs a worker with one consumer."""
    consumer = Consumer("order.*", callback, queue=QUEUE, retry_delays=retry_delays, inbox=inbox)
    given: dict[str, Any] = {"enable_metrics": False, "exchange_name": "shop", "db_engine_url": url} | options
    await existing(broker, QUEUE, "order.*")
    async with running(Worker(broker=broker, consumers=[consumer], **given)):
        yield


async def handled(broker: MemoryBroker, *messages: Message) -> None:
    """Sends messages and waits until all are handled."""
    await broker.send(messages, timeout=TIMEOUT)
    await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)


async def in_session(body: bytes, session: AsyncSession, publisher: BoundPublisher[Any]) -> None:
    await session.execute(text("insert into sale values (1)"))
    await publisher.publish("order.paid", {})


async def in_connection(body: bytes, connection: Connection, publisher: BoundPublisher[Any]) -> None:
    await connection.execute("insert into sale values (1)")
    await publisher.publish("order.paid", {})


async def marks(db: Connection) -> list[str]:
    return [row["message_id"] for row in await db.fetch("select message_id from outbox_inbox where queue = 'mail' order by 1")]


async def sales(db: Connection) -> int:
    return int(await db.fetchval("select count(*) from sale"))


async def events(db: Connection) -> int:
    return int(await db.fetchval("select count(*) from outbox_table"))


# --- once in effect ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("callback", [in_session, in_connection])
async def test_a_redelivered_message_is_done_without_running_its_handler(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int], callback: Any
) -> None:
    sent = message("order.placed")
    async with consuming(broker, shop, callback):
        await handled(broker, sent)
        await handled(broker, sent, sent)
    assert (await sales(db), await events(db), await marks(db)) == (1, 1, [sent.id])
    assert duplicates() == 2
    assert not broker.dead_letters(QUEUE)


@pytest.mark.parametrize("callback", [in_session, in_connection])
async def test_a_mark_that_a_trigger_refuses_fails_its_message_only(
    shop: str, db: Connection, broker: MemoryBroker, callback: Any
) -> None:
    bad, good = message("order.placed"), message("order.placed")
    await db.execute(f"""
        create function refuse() returns trigger language plpgsql as
        $$ begin if new.message_id = '{bad.id}' then raise exception 'not this one'; end if; return new; end $$;
        create trigger refuse before insert on outbox_inbox for each row execute function refuse()
    """)
    async with consuming(broker, shop, callback):
        await handled(broker, bad, good)
    assert (await sales(db), await marks(db)) == (1, [good.id])
    [dead] = broker.dead_letters(QUEUE)
    assert "not this one" in str(dead.failure)


async def test_a_failed_commit_whose_mark_cannot_be_looked_for_fails_its_message_only(
    shop: str, db: Connection, broker: MemoryBroker
) -> None:
    await db.execute("""
        create sequence mark_number;
        create function refuse() returns trigger language plpgsql as $$ begin
            if tg_table_name = 'sale' or nextval('mark_number') = 2 then raise exception 'not now'; end if;
            return new;
        end $$;
        create trigger refuse before insert on outbox_inbox for each row execute function refuse();
        create constraint trigger refuse after insert on sale deferrable initially deferred
            for each row execute function refuse()
    """)

    async def callback(body: bytes, connection: Connection) -> None:
        if body == b"sale":
            await connection.execute("insert into sale values (1)")

    good = message("order.placed")
    async with consuming(broker, shop, callback):
        await handled(broker, message("order.placed", b"sale"))
        await handled(broker, good)
    assert await marks(db) == [good.id]
    assert len(broker.dead_letters(QUEUE)) == 1


async def test_a_redelivered_message_is_skipped_until_its_mark_is_pruned_and_then_handled_again(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int]
) -> None:
    """The mark's age counts from the first handling; a redelivery does not renew it."""
    sent = message("order.placed")
    async with asyncpg.create_pool(shop, min_size=1, max_size=1) as pool, consuming(broker, shop, in_connection):
        inbox = PostgresInbox(borrow_from(pool), inbox_table_of(TableName("outbox_table")))
        await handled(broker, sent)
        await db.execute("update outbox_inbox set processed_at = now() - interval '29 days'")
        assert await inbox.prune(INBOX_RETENTION, 100) == 0
        await handled(broker, sent)
        assert (await sales(db), duplicates()) == (1, 1)
        await db.execute("update outbox_inbox set processed_at = processed_at - interval '2 days'")
        assert await inbox.prune(INBOX_RETENTION, 100) == 1
        await handled(broker, sent)
        await handled(broker, sent)
    assert (await sales(db), duplicates(), await marks(db)) == (2, 2, [sent.id])
    assert not broker.dead_letters(QUEUE)


async def test_a_worker_that_loses_its_message_between_commit_and_ack_handles_it_once(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int]
) -> None:
    async def handle(body: bytes, connection: Connection) -> None:
        await connection.execute("insert into sale values (1)")
        if not duplicates() and not broker.depth(QUEUE):
            broker.crash(QUEUE)

    async with consuming(broker, shop, handle, prefetch_count=1):
        await handled(broker, message("order.placed"))
    assert (await sales(db), duplicates()) == (1, 1)


async def test_each_queue_has_its_own_marks(shop: str, db: Connection, broker: MemoryBroker) -> None:
    sent = message("order.placed")
    others: list[bytes] = []
    await existing(broker, "O'Brien's \\ café", "order.*")
    consumers = [
        Consumer("order.*", in_connection, queue=QUEUE, inbox=True),
        Consumer("order.*", others.append, queue="O'Brien's \\ café", inbox=True),
    ]
    await existing(broker, QUEUE, "order.*")
    async with running(Worker(broker=broker, consumers=consumers, db_engine_url=shop, exchange_name="shop")):
        await handled(broker, sent, sent)
        await eventually(lambda: broker.is_idle("O'Brien's \\ café"), timeout=SOON)
    assert (await sales(db), len(others)) == (1, 1)
    assert await db.fetchval("select count(*) from outbox_inbox where queue = $1", "O'Brien's \\ café") == 1


@pytest.mark.parametrize("callback", [in_session, in_connection])
async def test_a_failed_handler_leaves_no_mark_and_is_retried(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int], callback: Any
) -> None:
    attempts: list[int] = []

    async def with_session(body: bytes, session: AsyncSession, publisher: Any, attempt_count: int) -> None:
        await in_session(body, session, publisher)
        await failing(attempt_count)

    async def with_connection(body: bytes, connection: Connection, publisher: Any, attempt_count: int) -> None:
        await in_connection(body, connection, publisher)
        await failing(attempt_count)

    async def failing(attempt: int) -> None:
        attempts.append(attempt)
        assert await marks(db) == []
        if attempt == 1:
            raise LookupError("no such customer")
        if attempt == 2:
            raise RetryAfter(timedelta(0))

    handle = with_session if callback is in_session else with_connection
    sent = message("order.placed")
    async with consuming(broker, shop, handle, retry_delays=("0",)):
        await handled(broker, sent)
    assert attempts == [1, 2, 3]
    assert (await sales(db), await events(db), await marks(db), duplicates()) == (1, 1, [sent.id], 0)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_handler_without_a_resource_has_its_message_marked_when_it_has_returned(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int], is_async: bool
) -> None:
    calls: list[bytes] = []

    async def handle(body: bytes) -> None:
        calls.append(body)

    sent = message("order.placed")
    async with consuming(broker, shop, handle if is_async else calls.append):
        await handled(broker, sent)
        await handled(broker, sent)
    assert (len(calls), duplicates(), await marks(db)) == (1, 1, [sent.id])


# --- at the same time --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("succeeds", [True, False])
@pytest.mark.parametrize("with_session", [True, False])
async def test_a_concurrent_duplicate_waits_for_the_first_and_follows_its_outcome(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int], succeeds: bool, with_session: bool
) -> None:
    begun = 0
    let_go = asyncio.Event()

    async def handle() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            await let_go.wait()
            if not succeeds:
                raise LookupError("no such customer")

    async def for_session(body: bytes, session: AsyncSession) -> None:
        await session.execute(text("insert into sale values (1)"))
        await handle()

    async def for_connection(body: bytes, connection: Connection) -> None:
        await connection.execute("insert into sale values (1)")
        await handle()

    sent = message("order.placed")
    async with consuming(broker, shop, for_session if with_session else for_connection):
        await broker.send([sent, sent], timeout=TIMEOUT)
        await eventually(lambda: begun == 1, timeout=SOON)
        await _a_session_waits(db)
        assert begun == 1
        let_go.set()
        await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)
    assert await sales(db) == 1
    assert (begun, duplicates(), len(broker.dead_letters(QUEUE))) == ((1, 1, 0) if succeeds else (2, 0, 1))


async def _a_session_waits(db: Connection) -> None:
    await eventually(
        lambda: db.fetchval("select count(*) from pg_stat_activity where wait_event = 'transactionid'"), timeout=SOON
    )


@pytest.fixture
def put_off(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> list[timedelta]:
    """The pauses of postponed messages so far. Each is short."""
    monkeypatch.setattr("outbox.engine.transactions.HELD_PAUSE", timedelta(milliseconds=100))
    pauses: list[timedelta] = []
    put_after = type(broker._queue(QUEUE)).put_after

    def note(queue: Any, delay: timedelta, entry: Any) -> None:
        pauses.append(delay)
        put_after(queue, delay, entry)

    monkeypatch.setattr(type(broker._queue(QUEUE)), "put_after", note)
    return pauses


async def test_a_duplicate_does_not_wait_longer_than_it_may_and_comes_back_later(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int], put_off: list[timedelta]
) -> None:
    calls: list[int] = []
    let_go = asyncio.Event()

    async def handle(body: bytes, attempt_count: int) -> None:
        calls.append(attempt_count)
        await let_go.wait()

    sent = message("order.placed")
    async with consuming(broker, shop, handle, inbox_wait=0.05):
        await broker.send([sent, sent], timeout=TIMEOUT)
        await eventually(lambda: len(put_off) >= 2, timeout=SOON)
        let_go.set()
        await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)
    assert (calls, duplicates()) == ([1], 1)


async def test_a_duplicate_that_waits_until_statement_timeout_comes_back_later_as_well(
    shop: str, db: Connection, broker: MemoryBroker, put_off: list[timedelta], caplog: pytest.LogCaptureFixture
) -> None:
    await db.execute("do $$ begin execute 'alter database ' || current_database() || ' set statement_timeout = 300'; end $$")
    calls: list[bytes] = []
    let_go = asyncio.Event()

    async def handle(body: bytes) -> None:
        calls.append(body)
        await let_go.wait()

    sent = message("order.placed")
    async with consuming(broker, shop, handle):
        await broker.send([sent, sent], timeout=TIMEOUT)
        await eventually(lambda: len(put_off) >= 2, timeout=SOON)
        let_go.set()
        await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)
    assert len(calls) == 1
    assert not [line for line in caplog.messages if "database" in line]


@pytest.mark.parametrize("with_session", [True, False])
async def test_the_handlers_own_statements_wait_for_locks_as_they_would_without_an_inbox(
    shop: str, db: Connection, broker: MemoryBroker, with_session: bool
) -> None:
    seen: list[object] = []
    await db.execute("do $$ begin execute 'alter database ' || current_database() || ' set lock_timeout = 1234'; end $$")

    async def for_session(body: bytes, session: AsyncSession) -> None:
        seen.append(await session.scalar(text("show lock_timeout")))

    async def for_connection(body: bytes, connection: Connection) -> None:
        seen.append(await connection.fetchval("show lock_timeout"))

    async with consuming(broker, shop, for_session if with_session else for_connection):
        await handled(broker, message("order.placed"))
    assert seen == ["1234ms"]


# --- handlers that end the transaction themselves ----------------------------------------------------------------------


async def test_a_handler_may_not_commit_the_session_that_marks(shop: str, db: Connection, broker: MemoryBroker) -> None:
    async def handle(body: bytes, session: AsyncSession) -> None:
        await session.execute(text("insert into sale values (1)"))
        async with session.begin_nested():
            await session.execute(text("insert into sale values (2)"))
        await session.commit()

    async with consuming(broker, shop, handle):
        await handled(broker, message("order.placed"))
    [dead] = broker.dead_letters(QUEUE)
    assert dead.cause is Cause.REJECTED
    assert "the worker commits" in dead.failure.message
    assert (await sales(db), await marks(db)) == (0, [])


async def test_a_session_that_its_handler_rolled_back_still_marks(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int]
) -> None:
    """As after a statement that failed because the work had been done before."""

    async def handle(body: bytes, session: AsyncSession, publisher: BoundPublisher[Any]) -> None:
        try:
            await session.execute(text("select 1 / 0"))
        except DBAPIError:
            await session.rollback()
        if body == b"goes on":
            await publisher.publish("order.paid", {})

    first, second = message("order.placed", b"goes on"), message("order.placed", b"returns")
    async with consuming(broker, shop, handle):
        await handled(broker, first, second)
        await handled(broker, first, second)
    assert not broker.dead_letters(QUEUE)
    assert (await events(db), await marks(db), duplicates()) == (1, sorted([first.id, second.id]), 2)


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_message_taken_over_after_its_handler_rolled_back_is_postponed_and_not_dead(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int], put_off: list[timedelta], at_once: bool
) -> None:
    """Between the rollback and the new mark another transaction may mark the message. Writes since then are rolled back."""
    calls = 0

    async def handle(body: bytes, session: AsyncSession) -> None:
        nonlocal calls
        calls += 1
        await session.rollback()
        await db.execute("begin")
        await db.execute("insert into outbox_inbox (queue, message_id) values ('mail', $1)", sent.id)
        if at_once:
            await db.execute("commit")
        await session.execute(text("insert into sale values (1)"))

    sent = message("order.placed")
    async with consuming(broker, shop, handle, inbox_wait=0.1):
        await broker.send([sent], timeout=TIMEOUT)
        await eventually(lambda: put_off, timeout=SOON)
        if not at_once:
            await db.execute("commit")
        await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)
    assert (calls, duplicates(), len(broker.dead_letters(QUEUE)), await sales(db)) == (1, 1, 0, 0)


@pytest.mark.parametrize(("statement", "with_session"), [("commit", True), ("commit", False), ("rollback", False)])
async def test_a_transaction_that_was_ended_by_hand_makes_a_dead_letter_if_the_mark_is_out_of_reach(
    shop: str, db: Connection, broker: MemoryBroker, statement: str, with_session: bool
) -> None:
    async def for_session(body: bytes, session: AsyncSession) -> None:
        await session.execute(text(statement))
        await session.execute(text("insert into sale values (1)"))

    async def for_connection(body: bytes, connection: Connection) -> None:
        await connection.execute(statement)

    async with consuming(broker, shop, for_session if with_session else for_connection, retry_delays=("0",)):
        await handled(broker, message("order.placed"))
    [dead] = broker.dead_letters(QUEUE)
    assert (dead.cause, dead.attempt) == (Cause.REJECTED, 1)
    assert "ended its transaction itself" in dead.failure.message


@pytest.mark.parametrize("with_session", [True, False])
async def test_a_handler_that_commits_by_hand_and_fails_is_not_taken_for_one_that_has_succeeded(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int], with_session: bool
) -> None:
    async def for_session(body: bytes, session: AsyncSession) -> None:
        await session.execute(text("insert into sale values (1)"))
        await (await session.connection()).commit()
        raise ConnectionError("before the rest was done")

    async def for_connection(body: bytes, connection: Connection) -> None:
        await connection.execute("insert into sale values (1); commit")
        raise ConnectionError("before the rest was done")

    async with consuming(broker, shop, for_session if with_session else for_connection, retry_delays=("0",)):
        await handled(broker, message("order.placed"))
    [dead] = broker.dead_letters(QUEUE)
    assert (dead.cause, dead.attempt, duplicates(), await sales(db)) == (Cause.REJECTED, 1, 0, 1)
    assert "ended its transaction itself" in dead.failure.message
    assert "before the rest was done" in dead.failure.traceback


@pytest.mark.parametrize("with_session", [True, False])
async def test_a_handler_that_rolls_back_by_hand_and_fails_is_retried(
    shop: str, db: Connection, broker: MemoryBroker, with_session: bool
) -> None:
    async def for_session(body: bytes, session: AsyncSession, attempt_count: int) -> None:
        await session.execute(text("insert into sale values (1)"))
        if attempt_count == 1:
            await session.execute(text("rollback"))
            raise ConnectionError

    async def for_connection(body: bytes, connection: Connection, attempt_count: int) -> None:
        await connection.execute("insert into sale values (1)")
        if attempt_count == 1:
            await connection.execute("rollback")
            raise ConnectionError

    async with consuming(broker, shop, for_session if with_session else for_connection, retry_delays=("0",)):
        await handled(broker, message("order.placed"))
    assert (broker.dead_letters(QUEUE), await sales(db)) == ((), 1)


# --- ids ---------------------------------------------------------------------------------------------------------------


async def test_a_message_without_an_id_is_a_dead_letter_that_says_so(shop: str, db: Connection, broker: MemoryBroker) -> None:
    nameless = [replace(message("order.placed"), anonymous=True), replace(message("order.placed"), id="")]
    async with consuming(broker, shop, in_connection, retry_delays=("0",)):
        await handled(broker, *nameless)
    assert {(dead.cause, dead.attempt) for dead in broker.dead_letters(QUEUE)} == {(Cause.UNDECODABLE, 1)}
    assert "has no id" in broker.dead_letters(QUEUE)[0].failure.message
    assert await sales(db) == 0


STRANGE_IDS = (
    "x" * 100_000,
    "O'Brien",
    "back\\slash",
    "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
    "nul\0",
    "\ud800",
    "%s $1 :x {queue}",
    "two\nlines",
)


@pytest.mark.parametrize("callback", [in_session, in_connection])
async def test_any_id_can_be_marked(
    shop: str, db: Connection, broker: MemoryBroker, duplicates: Callable[[], int], callback: Any
) -> None:
    sent = [replace(message("order.placed"), id=id_) for strange in STRANGE_IDS for id_ in (strange, strange + "x")]
    async with consuming(broker, shop, callback):
        await handled(broker, *sent)
        await handled(broker, *sent)
    assert (await sales(db), duplicates()) == (len(sent), len(sent))
    assert not broker.dead_letters(QUEUE)


def test_an_id_that_looks_like_a_digest_is_not_mistaken_for_one() -> None:
    digest = mark_of("x" * 256)
    assert mark_of(digest) != digest
    assert mark_of("x" * 255) == "x" * 255


# --- the database ------------------------------------------------------------------------------------------------------


def test_an_inbox_needs_a_database() -> None:
    async def handle(body: bytes) -> None: ...

    consumer = Consumer("order.*", handle, queue=QUEUE, inbox=True)
    with pytest.raises(ConfigurationError, match="mail use inbox, which needs a database"):
        Worker(broker=MemoryBroker(), consumers=[consumer])


@pytest.mark.parametrize("wait", [0, -1, 31, "long"])
def test_the_wait_for_a_mark_is_limited(wait: Any) -> None:
    with pytest.raises(ConfigurationError, match="inbox_wait"):
        Worker(broker=MemoryBroker(), consumers=[], inbox_wait=wait)


async def test_a_worker_whose_inbox_is_missing_does_not_start(database_url: str) -> None:
    async def handle(body: bytes) -> None: ...

    consumer = Consumer("order.*", handle, queue=QUEUE, inbox=True)
    worker = Worker(broker=MemoryBroker(), consumers=[consumer], db_engine_url=database_url)
    with pytest.raises(SchemaError, match="outbox_inbox"):
        await worker.run(handle_signals=False)


async def test_the_inbox_is_the_only_table_that_is_needed(shop: str, db: Connection, broker: MemoryBroker) -> None:
    tables = await db.fetch(
        "select relname from pg_class where relname like 'outbox%' and relkind in ('r', 'p') and relname <> 'outbox_inbox'"
        " and not relispartition"
    )
    await db.execute("".join(f"drop table {row['relname']} cascade;" for row in tables))

    async def handle(body: bytes, connection: Connection) -> None:
        await connection.execute("insert into sale values (1)")

    async with consuming(broker, shop, handle):
        await handled(broker, message("order.placed"))
    assert await sales(db) == 1


@pytest.mark.parametrize("callback", [in_session, in_connection])
async def test_while_the_database_is_unavailable_messages_wait_and_use_no_attempt(
    shop: str, db: Connection, broker: MemoryBroker, proxied: Callable[[str], Proxy], callback: Any
) -> None:
    attempts: list[int] = []

    async def with_session(body: bytes, session: AsyncSession, publisher: Any, attempt_count: int) -> None:
        attempts.append(attempt_count)
        await in_session(body, session, publisher)

    async def with_connection(body: bytes, connection: Connection, publisher: Any, attempt_count: int) -> None:
        attempts.append(attempt_count)
        await in_connection(body, connection, publisher)

    proxy = proxied(shop)
    handle = with_session if callback is in_session else with_connection
    async with consuming(broker, proxy.url, handle, prefetch_count=3):
        await handled(broker, message("order.placed"))
        proxy.refuse()
        await broker.send([message("order.placed") for _ in range(8)], timeout=TIMEOUT)
        await eventually(lambda: broker.depth(QUEUE) == 5, timeout=SOON)
        proxy.accept()
        await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)
    assert attempts == [1] * 9
    assert (await sales(db), len(await marks(db))) == (9, 9)
    assert not broker.dead_letters(QUEUE)


@pytest.mark.parametrize("callback", [in_session, in_connection])
@pytest.mark.parametrize("inbox", [True, False])
async def test_the_inbox_takes_no_round_trip_of_its_own(
    shop: str, db: Connection, broker: MemoryBroker, proxied: Callable[[str], Proxy], callback: Any, inbox: bool
) -> None:
    """One to begin and mark, two for the handler's statements, which are prepared, and one to check and commit."""
    proxy = proxied(shop)
    async with consuming(broker, proxy.url, callback, inbox=inbox, reporting=False):
        await handled(broker, message("order.placed"))
        before = proxy.parts[Towards.SERVER]
        for _ in range(10):
            await handled(broker, message("order.placed"))
        assert proxy.parts[Towards.SERVER] - before == 10 * 4
    assert (await sales(db), len(await marks(db))) == (11, 11 if inbox else 0)


@pytest.mark.parametrize("callback", [in_session, in_connection])
async def test_a_commit_whose_answer_was_lost_counts_as_committed(
    shop: str, db: Connection, broker: MemoryBroker, proxied: Callable[[str], Proxy], callback: Any
) -> None:
    """A deferred trigger holds the commit until the answers of the server are swallowed; then the connections are cut."""
    await db.execute(
        "create function slow() returns trigger language plpgsql as"
        " $$ begin perform pg_advisory_xact_lock_shared(7); return null; end $$;"
        "create constraint trigger slow after insert on sale deferrable initially deferred"
        " for each row execute function slow();"
        "select pg_advisory_lock(7)"
    )
    proxy = proxied(shop)
    sent = message("order.placed")
    async with consuming(broker, proxy.url, callback):
        await broker.send([sent], timeout=TIMEOUT)
        await _waits_for(db, "%commit;")
        proxy.swallow(Towards.CLIENT)
        await db.execute("select pg_advisory_unlock(7)")
        await eventually(lambda: marks(db), timeout=SOON)
        proxy.cut()
        proxy.resume()
        await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)
    # No attempt was left, so a failure would have made it a dead letter.
    assert not broker.dead_letters(QUEUE)
    assert (await sales(db), await events(db), await marks(db)) == (1, 1, [sent.id])


@pytest.mark.parametrize("callback", [in_session, in_connection])
async def test_a_lost_commit_is_repeated(
    shop: str, db: Connection, broker: MemoryBroker, proxied: Callable[[str], Proxy], callback: Any
) -> None:
    """The server crashes during the commit: nothing was committed, and the next attempt handles the message."""
    await db.execute(
        "create function die() returns trigger language plpgsql as"
        " $$ begin perform pg_advisory_xact_lock_shared(7); return null; end $$;"
        "create constraint trigger die after insert on sale deferrable initially deferred for each row execute function die();"
        "select pg_advisory_lock(7)"
    )
    sent = message("order.placed")
    async with consuming(broker, shop, callback, retry_delays=("0",)):
        await broker.send([sent], timeout=TIMEOUT)
        pid = await _waits_for(db, "%commit;")
        await db.execute("select pg_terminate_backend($1, 5000)", pid)
        await db.execute("select pg_advisory_unlock(7)")
        await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)
    assert not broker.dead_letters(QUEUE)
    assert (await sales(db), await events(db), await marks(db)) == (1, 1, [sent.id])


async def _waits_for(db: Connection, query: str) -> int:
    """The process that waits for an advisory lock in such a statement."""
    waiting = "select pid from pg_stat_activity where wait_event = 'advisory' and query ilike $1"
    return int(await eventually(lambda: db.fetchval(waiting, query), timeout=SOON))


async def test_a_worker_that_is_stopped_while_the_database_is_unavailable_returns_its_messages(
    shop: str, db: Connection, broker: MemoryBroker, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(shop)
    async with consuming(broker, proxy.url, in_connection):
        await handled(broker, message("order.placed"))
        proxy.refuse()
        await broker.send([message("order.placed")], timeout=TIMEOUT)
        await eventually(lambda: broker.depth(QUEUE) == 0, timeout=SOON)
    assert broker.depth(QUEUE) == 1


async def test_messages_whose_transaction_cannot_begin_for_long_are_postponed(
    shop: str, db: Connection, broker: MemoryBroker, proxied: Callable[[str], Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.engine.transactions.DATABASE_PATIENCE", timedelta(milliseconds=100))
    monkeypatch.setattr("outbox.engine.transactions.DATABASE_PAUSE", timedelta(milliseconds=200))
    proxy = proxied(shop)
    async with consuming(broker, proxy.url, in_connection):
        await handled(broker, message("order.placed"))
        proxy.refuse()
        await broker.send([message("order.placed")], timeout=TIMEOUT)
        await eventually(lambda: broker.depth(QUEUE) == 1, timeout=SOON)
        proxy.accept()
        await eventually(lambda: broker.is_idle(QUEUE), timeout=SOON)
    assert await sales(db) == 2
