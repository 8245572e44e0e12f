"""One outbox that feeds several brokers: each destination has its own rows, relays, retries, order and dedup keys."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import psycopg
import pytest

from outbox import DeadLetters, Destinations, MessageRelay, OutboxMessage, Publisher, Route, ensure_outbox_schema_async
from outbox.core.message import Message
from outbox.core.outcome import Failure
from outbox.errors import ConfigurationError, IdentifierError, SchemaError
from outbox.ports import CONFIRMED, UNROUTABLE, NotSent, Refused, SendResult
from tests.relay.support import ScriptedTransport, policy, relaying, running
from tests.support.eventually import eventually

RULES = Destinations(
    rules=[
        Route("audit.*", to="kafka"),
        Route("order.#", to=["default", "kafka"]),
        Route("#", to="default"),
    ]
)
KAFKA = "outbox_table_kafka"
DOWN = NotSent(Failure("down", "the broker is away"))


@pytest.fixture
async def url(database: str) -> str:
    """A database with the destinations `kafka` and `lake` besides the default one."""
    await ensure_outbox_schema_async(database, destinations=["kafka", "lake"])
    return database


@pytest.fixture
async def connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


async def waiting(connection: asyncpg.Connection, table: str = "outbox_table") -> list[str]:
    """The routing keys of unsent rows of this table alone, in order."""
    rows = await connection.fetch(f"select routing_key from only {table} where sent_at is null order by id")
    return [row["routing_key"] for row in rows]


async def publish(connection: asyncpg.Connection, *keys: str, **options: Any) -> None:
    async with connection.transaction():
        await Publisher(destinations=RULES).bulk_publish(connection, [OutboxMessage(key, {}, **options) for key in keys])


async def is_empty(connection: asyncpg.Connection, table: str) -> bool:
    return await waiting(connection, table) == []


# --- publishing


async def test_the_first_route_that_matches_decides_where_a_message_goes(connection: asyncpg.Connection) -> None:
    await publish(connection, "audit.login", "order.placed", "mail.sent", "audit.deep.down")
    assert await waiting(connection) == ["order.placed", "mail.sent", "audit.deep.down"]
    assert await waiting(connection, KAFKA) == ["audit.login", "order.placed"]


async def test_a_message_has_one_id_in_all_of_its_destinations(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        ids = await Publisher(destinations=RULES).bulk_publish(
            connection, [OutboxMessage(key, {}) for key in ("mail.sent", "order.placed", "audit.login")]
        )
    rows = await connection.fetch("select routing_key, tracking_ids ->> -1 as id, id as row_id from outbox_table")
    assert len(set(ids)) == 3
    assert {(row["routing_key"], row["id"]) for row in rows} == set(
        zip(("mail.sent", "order.placed", "audit.login"), ids, strict=True)
    )
    assert len({row["row_id"] for row in rows}) == len(rows) == 4


async def test_a_message_that_names_its_destinations_overrules_the_routes(connection: asyncpg.Connection) -> None:
    publisher = Publisher(destinations=RULES)
    async with connection.transaction():
        await publisher.publish(connection, "audit.login", {}, destination=["lake", "default", "lake"])
        await Publisher().publish(connection, "mail.sent", {}, destination="lake")
    assert await waiting(connection) == ["audit.login"]
    assert await waiting(connection, KAFKA) == []
    assert await waiting(connection, "outbox_table_lake") == ["audit.login", "mail.sent"]


def test_a_sync_handle_publishes_to_all_destinations_in_its_transaction(url: str) -> None:
    publisher = Publisher(destinations=RULES)
    with psycopg.connect(url) as connection:
        publisher.publish(connection, "order.placed", {})
        connection.rollback()
        publisher.publish(connection, "order.paid", {})
        connection.commit()
        found = connection.execute("select tableoid::regclass::text, routing_key from outbox_table order by 1").fetchall()
    assert found == [("outbox_table", "order.paid"), (KAFKA, "order.paid")]


async def test_a_destination_without_a_table_fails_the_transaction_of_its_publisher(connection: asyncpg.Connection) -> None:
    with pytest.raises(asyncpg.UndefinedTableError, match="outbox_table_kafak"):
        async with connection.transaction():
            await Publisher().publish(connection, "order.placed", {}, destination=["default", "kafak"])
    assert await waiting(connection) == []


@pytest.mark.parametrize("name", ["", "Kafka", "a-b", "1st", "a" * 31, 7, None])
def test_a_name_that_no_table_can_have_is_refused_when_the_route_is_made(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="destination"):
        Route("audit.*", to=name)


@pytest.mark.parametrize("to", [[], (), {"kafka"}])
def test_a_route_leads_somewhere(to: Any) -> None:
    with pytest.raises(ConfigurationError, match="list of them that is not empty"):
        Route("audit.*", to=to)


def test_rules_that_are_none_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="pattern"):
        Route("", to="kafka")
    with pytest.raises(ConfigurationError, match="is a Route"):
        Destinations([("audit.*", "kafka")])  # type: ignore[list-item]
    with pytest.raises(ConfigurationError, match="Destinations"):
        Publisher(destinations=[Route("#", to="kafka")])  # type: ignore[arg-type]


@pytest.mark.parametrize("destination", ["Kafka", [], ["kafka", "a b"]])
async def test_an_invalid_destination_leaves_the_transaction_usable(connection: asyncpg.Connection, destination: Any) -> None:
    async with connection.transaction():
        with pytest.raises(ConfigurationError, match="destination"):
            await Publisher().publish(connection, "order.placed", {}, destination=destination)
        await Publisher().publish(connection, "order.paid", {})
    assert await waiting(connection) == ["order.paid"]


def test_a_destination_whose_table_is_another_one_is_refused() -> None:
    with pytest.raises(IdentifierError, match="outbox_history"):
        Publisher(table_name="outbox", destinations=Destinations([Route("#", to="history")]))


# --- relaying


async def test_each_relay_sends_the_messages_of_its_destination_only(url: str, connection: asyncpg.Connection) -> None:
    to_rabbit, to_kafka = ScriptedTransport(), ScriptedTransport()
    options: dict[str, Any] = {"reporting": False, "history": False}
    async with (
        running(MessageRelay(url, broker=to_rabbit, **options)),
        running(MessageRelay(url, broker=to_kafka, destination="kafka", **options)),
    ):
        await publish(connection, "audit.login", "order.placed", "mail.sent")
        await eventually(lambda: len(to_rabbit.sent) == len(to_kafka.sent) == 2)
    assert to_rabbit.routing_keys == ["order.placed", "mail.sent"]
    assert to_kafka.routing_keys == ["audit.login", "order.placed"]
    assert to_rabbit.sent[0].id == to_kafka.sent[1].id
    assert await connection.fetchval("select count(*) from outbox_table") == 0


async def test_a_relay_reports_which_destination_it_serves(url: str, connection: asyncpg.Connection) -> None:
    reported = "select array_agg(activity::jsonb ->> 'destination' order by name) = '{default,kafka}' from outbox_component"
    async with (
        running(MessageRelay(url, broker=ScriptedTransport(), name="one")),
        running(MessageRelay(url, broker=ScriptedTransport(), name="other", destination="kafka")),
    ):
        await eventually(lambda: connection.fetchval(reported))


async def test_a_destination_that_is_away_keeps_no_other_waiting(url: str, connection: asyncpg.Connection) -> None:
    to_rabbit, to_kafka = ScriptedTransport(), ScriptedTransport(lambda message: DOWN)
    async with relaying(url, to_rabbit), relaying(url, to_kafka, table=KAFKA):
        await publish(connection, *["order.placed"] * 3)
        await eventually(lambda: to_kafka.sent)
        await eventually(lambda: is_empty(connection, "outbox_table"))
        assert await waiting(connection, KAFKA) == ["order.placed"] * 3
        to_kafka.answer = lambda message: CONFIRMED
        await eventually(lambda: is_empty(connection, KAFKA))
    assert await connection.fetchval("select count(*) from outbox_table") == 0


async def test_holding_and_parking_are_those_of_one_destination(url: str, connection: asyncpg.Connection) -> None:
    def answer(message: Message) -> SendResult:
        return UNROUTABLE if message.routing_key == "order.held" else Refused(Failure("bad", "refused by the script"))

    to_rabbit, to_kafka = ScriptedTransport(), ScriptedTransport(answer)
    async with relaying(url, to_rabbit), relaying(url, to_kafka, table=KAFKA, sending=policy(max_attempts=1)):
        await publish(connection, "order.held", "order.bad")
        await eventually(lambda: is_empty(connection, "outbox_table"))
        await eventually(lambda: connection.fetchval(f"select count(*) = 2 from {KAFKA} where last_error is not null"))
        assert {
            row[0]: row[1] for row in await connection.fetch(f"select routing_key, failed_at is not null from {KAFKA}")
        } == {
            "order.held": False,
            "order.bad": True,
        }
        # A success elsewhere releases nothing here.
        await publish(connection, "order.held")
        await eventually(lambda: is_empty(connection, "outbox_table"))
        assert len(await waiting(connection, KAFKA)) == 3


async def test_an_ordering_key_is_kept_in_each_destination_by_itself(url: str, connection: asyncpg.Connection) -> None:
    broken = True

    def answer(message: Message) -> SendResult:
        return DOWN if broken else CONFIRMED

    to_rabbit, to_kafka = ScriptedTransport(), ScriptedTransport(answer)
    keys = [f"order.{number}" for number in range(20)]
    async with relaying(url, to_rabbit), relaying(url, to_kafka, table=KAFKA):
        for key in keys:
            await publish(connection, key, ordering_key="order 7")
        await eventually(lambda: is_empty(connection, "outbox_table"))
        assert await waiting(connection, KAFKA) == keys
        broken = False
        await eventually(lambda: is_empty(connection, KAFKA))
    assert to_rabbit.routing_keys == keys
    assert to_kafka.routing_keys[-len(keys) :] == keys


async def test_within_one_database_a_hand_over_takes_its_destination_only(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_subscription (exchange, queue, binding_key, pattern) "
        "values ('outbox', 'everything', '#', '^'), ('copies', 'copied', '#', '^')"
    )
    await publish(connection, "audit.login", "order.placed")
    await publish(connection, "mail.sent", "order.paid", ordering_key="k")
    options: dict[str, Any] = {"reporting": False}
    async with running(MessageRelay(url, broker=url, **options)):
        await eventually(lambda: is_empty(connection, "outbox_table"))
        assert await waiting(connection, KAFKA) == ["audit.login", "order.placed", "order.paid"]
        async with running(MessageRelay(url, broker=url, exchange_name="copies", destination="kafka", **options)):
            await eventually(lambda: is_empty(connection, KAFKA))
    found = await connection.fetch(
        "select queue, array_agg(routing_key order by routing_key) from outbox_delivery group by queue"
    )
    assert {row[0]: row[1] for row in found} == {
        "everything": ["mail.sent", "order.paid", "order.placed"],
        "copied": ["audit.login", "order.paid", "order.placed"],
    }


async def test_a_relay_without_its_table_says_how_to_create_it(database: str) -> None:
    relay = MessageRelay(database, broker=ScriptedTransport(), destination="nowhere", reporting=False, history=False)
    with pytest.raises(SchemaError, match="outbox_table_nowhere does not exist"):
        async with asyncio.timeout(30):
            await relay.run(handle_signals=False)


# --- dedup keys


async def test_a_dedup_key_is_pending_in_each_destination_by_itself(url: str, connection: asyncpg.Connection) -> None:
    publisher = Publisher(destinations=RULES)

    async def remind(**options: Any) -> str | None:
        async with connection.transaction():
            return await publisher.publish(connection, "order.unpaid", {}, dedup_key="unpaid 7", **options)

    first = await remind()
    assert first is not None
    assert await remind() is None
    transport = ScriptedTransport()
    async with relaying(url, transport):
        await eventually(lambda: is_empty(connection, "outbox_table"))
    # Sent there, and pending here.
    second = await remind()
    assert second is not None
    assert await waiting(connection) == await waiting(connection, KAFKA) == ["order.unpaid"]
    third = await remind(on_conflict="replace")
    rows = await connection.fetch("select tableoid::regclass::text, tracking_ids ->> -1 from outbox_table order by 1")
    assert [tuple(row) for row in rows] == [("outbox_table", third), (KAFKA, third)]


async def test_cancelling_withdraws_from_all_destinations_and_wakes_their_relays(
    url: str, connection: asyncpg.Connection
) -> None:
    publisher = Publisher(destinations=RULES)
    to_kafka = ScriptedTransport(lambda message: DOWN if message.routing_key == "order.first" else CONFIRMED)
    async with relaying(url, to_kafka, table=KAFKA):
        async with connection.transaction():
            await publisher.publish(connection, "order.first", {}, ordering_key="k", dedup_key="first")
            await publisher.publish(connection, "order.second", {}, ordering_key="k")
        await eventually(lambda: to_kafka.sent)
        await eventually(lambda: _cancelled(connection, publisher))
        # Nothing else wakes this relay: its naps and polls are longer than the test.
        await eventually(lambda: is_empty(connection, KAFKA))
    assert await waiting(connection) == ["order.second"]
    assert to_kafka.routing_keys[-1] == "order.second"


async def _cancelled(connection: asyncpg.Connection, publisher: Publisher) -> bool:
    """Withdraws the message, unless a relay is just sending one of the two."""
    async with connection.transaction():
        await publisher.cancel(connection, "first")
    return "order.first" not in [*await waiting(connection), *await waiting(connection, KAFKA)]


async def test_cancelling_waits_for_publishers_of_the_key_for_any_destination(url: str, connection: asyncpg.Connection) -> None:
    publisher = Publisher(destinations=RULES)
    other = await asyncpg.connect(url)
    try:
        async with asyncio.TaskGroup() as tasks, connection.transaction():
            await publisher.publish(connection, "audit.due", {}, dedup_key="due")
            withdrawn = tasks.create_task(_withdraw(other, publisher, "due"))
            await eventually(lambda: _waits(connection))
    finally:
        await other.close()
    assert await withdrawn
    assert await is_empty(connection, KAFKA)


async def _withdraw(connection: asyncpg.Connection, publisher: Publisher, dedup_key: str) -> bool:
    async with connection.transaction():
        return await publisher.cancel(connection, dedup_key)


async def test_a_requeue_waits_for_publishers_of_the_key_for_its_destination(url: str, connection: asyncpg.Connection) -> None:
    await publish(connection, "audit.due", dedup_key="due")
    await connection.execute("update outbox_table set failed_at = now(), attempts = 20, last_error = 'Refused: no'")
    [(parked,)] = await connection.fetch("select 'outbox-' || id from outbox_table")
    async with DeadLetters(url) as dead_letters:
        async with asyncio.TaskGroup() as tasks, connection.transaction():
            await Publisher(destinations=RULES).publish(connection, "audit.due", {}, dedup_key="due")
            later = tasks.create_task(dead_letters.requeue(parked))
            await eventually(lambda: _waits(connection))
        [item] = (await later).items  # type: ignore[union-attr]
    assert "has its dedup key and stands for it" in item.reason


# --- repairing


async def test_what_a_relay_parked_is_requeued_to_its_destination(url: str, connection: asyncpg.Connection) -> None:
    refusing = ScriptedTransport(lambda message: Refused(Failure("bad", "refused by the script")))
    async with relaying(url, refusing, table=KAFKA, sending=policy(max_attempts=1)):
        await publish(connection, "audit.kept", "audit.discarded")
        await eventually(lambda: connection.fetchval("select count(*) = 2 from outbox_table where failed_at is not null"))
    kept, discarded = (f"outbox-{id_}" for (id_,) in await connection.fetch("select id from outbox_table order by id"))
    async with DeadLetters(url) as dead_letters:
        await dead_letters.discard([discarded])
        [(restored,)] = await connection.fetch("select id::text from outbox_dead_letter")
        await dead_letters.restore([restored])
        to_kafka, to_rabbit = ScriptedTransport(), ScriptedTransport()
        async with relaying(url, to_kafka, table=KAFKA), relaying(url, to_rabbit):
            # Nothing but the bell of that destination wakes its relay.
            await dead_letters.requeue([kept])
            await eventually(lambda: to_kafka.routing_keys == ["audit.kept"])
            await dead_letters.requeue([restored])
            await eventually(lambda: to_kafka.routing_keys == ["audit.kept", "audit.discarded"])
    assert to_rabbit.sent == []


async def test_a_row_behind_a_discarded_one_is_released_in_its_destination(url: str, connection: asyncpg.Connection) -> None:
    def answer(message: Message) -> SendResult:
        return Refused(Failure("bad", "refused by the script")) if message.routing_key == "audit.bad" else CONFIRMED

    to_kafka = ScriptedTransport(answer)
    async with relaying(url, to_kafka, table=KAFKA, sending=policy(max_attempts=1)):
        await publish(connection, "audit.bad", "audit.next", ordering_key="k")
        [(row_id,)] = await eventually(lambda: connection.fetch("select id from outbox_table where failed_at is not null"))
        # An older row of the key in another destination is not the one to release.
        await publish(connection, "mail.later", ordering_key="k")
        async with DeadLetters(url) as dead_letters:
            await dead_letters.discard([f"outbox-{row_id}"])
        await eventually(lambda: is_empty(connection, KAFKA))
    assert to_kafka.routing_keys[-1] == "audit.next"


async def test_a_message_that_is_parked_for_two_destinations_is_discarded_and_requeued_in_both(
    url: str, connection: asyncpg.Connection
) -> None:
    await publish(connection, "order.placed", "order.paid")
    await connection.execute("update outbox_table set failed_at = now(), attempts = 20, last_error = 'Refused: no'")
    parked = [f"outbox-{id_}" for (id_,) in await connection.fetch("select id from outbox_table order by id")]
    async with DeadLetters(url) as dead_letters:
        await dead_letters.discard(parked[:3])  # both destinations of one message together
        await dead_letters.discard(parked[3:])
        letters = [id_ for (id_,) in await connection.fetch("select id::text from outbox_dead_letter order by id")]
        assert len(letters) == 4
        await dead_letters.restore(letters)
        await dead_letters.requeue(letters)
    for table in ("outbox_table", KAFKA):
        assert await waiting(connection, table) == ["order.placed", "order.paid"]


async def test_a_dead_letter_of_a_destination_that_was_dropped_is_refused_alone(
    url: str, connection: asyncpg.Connection
) -> None:
    await publish(connection, "audit.login", "mail.sent")
    await connection.execute("update outbox_table set failed_at = now(), attempts = 20, last_error = 'Refused: no'")
    async with DeadLetters(url) as dead_letters:
        await dead_letters.discard([f"outbox-{id_}" for (id_,) in await connection.fetch("select id from outbox_table")])
        letters = {key: str(id_) for id_, key in await connection.fetch("select id, routing_key from outbox_dead_letter")}
        await dead_letters.restore(letters.values())
        await connection.execute(f"drop table {KAFKA}")
        answer = await dead_letters.requeue(letters.values())
        outcomes = {item.id: (item.outcome, item.reason) for item in answer.items}  # type: ignore[union-attr]
        assert outcomes[letters["mail.sent"]] == ("done", "")
        assert outcomes[letters["audit.login"]] == (
            "refused",
            "the destination kafka has no table: `outbox migrate --destination kafka` creates it",
        )
        assert await waiting(connection) == ["mail.sent"]
        await ensure_outbox_schema_async(url, destinations=["kafka"])
        await dead_letters.requeue([letters["audit.login"]])
    assert await waiting(connection, KAFKA) == ["audit.login"]


async def test_transactions_that_discard_one_message_of_two_destinations_record_both(
    url: str, connection: asyncpg.Connection
) -> None:
    await publish(connection, "order.placed")
    await connection.execute("update outbox_table set failed_at = now(), attempts = 20, last_error = 'Refused: no'")
    first, second = [f"outbox-{id_}" for (id_,) in await connection.fetch("select id from outbox_table order by id")]
    async with DeadLetters(url) as dead_letters, asyncio.TaskGroup() as tasks, connection.transaction():
        await dead_letters.discard_within(connection, [first])
        later = tasks.create_task(dead_letters.discard(second))
        await eventually(lambda: _waits(connection))
    await later
    assert await connection.fetchval("select count(*) from outbox_dead_letter") == 2


async def _waits(connection: asyncpg.Connection) -> bool:
    """Whether another session waits for a lock."""
    waits: bool = await connection.fetchval(
        "select exists (select from pg_locks where not granted and database = "
        "(select oid from pg_database where datname = current_database()))"
    )
    return waits
