"""The relay's guarantees, on a real database, with a scripted transport."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import asyncpg
import pytest

from outbox.core.byte_limits import ByteLimits
from outbox.core.events import BatchSent, CleanedUp, Dependency, DependencyLost, DependencyRestored, SendFailed
from outbox.core.message import Message
from outbox.core.outcome import Failure
from outbox.ports import CONFIRMED, UNROUTABLE, NotSent, Refused, SendResult
from tests.relay.support import INSERT, ScriptedTransport, policy, relaying, rows, rows_are
from tests.support.eventually import eventually


async def test_a_committed_message_is_sent_and_leaves_the_table(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport()
    async with relaying(url, transport) as relay:
        await connection.execute(
            "insert into outbox_table (routing_key, body, headers, content_type, tracking_ids, ordering_key, expiration) "
            """values ('user.created', 'body', '{"a": 1}', 'text/plain', '["root", "leaf"]', 'u1', '1 minute')"""
        )
        await eventually(lambda: transport.sent)
        await eventually(lambda: relay.recorder.of(BatchSent))
        assert await rows(connection) == 0
    [message] = transport.sent
    assert message.id == "leaf"
    assert message.tracking_ids == ("root", "leaf")
    assert message.routing_key == "user.created"
    assert message.body == b"body"
    assert message.headers == {"a": 1}
    assert message.content_type == "text/plain"
    assert message.ordering_key == "u1"
    assert message.expiration == timedelta(minutes=1)
    assert message.expires_at is not None


async def test_a_row_of_plain_sql_needs_no_more_than_routing_key_and_body(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport()
    async with relaying(url, transport):
        await connection.execute(INSERT, "plain.sql")
        await eventually(lambda: transport.routing_keys == ["plain.sql"])


async def test_kept_rows_carry_the_time_of_sending_and_go_after_their_retention(
    url: str, connection: asyncpg.Connection
) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, sent_at) "
        "select 'old', '', now() - interval '2 h' from generate_series(1, 2500)"
    )
    transport = ScriptedTransport()
    async with relaying(url, transport, keep_sent=True, retention=timedelta(hours=1)) as relay:
        await connection.execute(INSERT, "kept")
        await eventually(lambda: relay.recorder.of(CleanedUp))
        await eventually(lambda: relay.recorder.of(BatchSent))
        assert await rows(connection, "sent_at is not null and routing_key = 'kept'") == 1
        assert await rows(connection) == 1
    assert transport.routing_keys == ["kept"]


async def test_a_refused_message_backs_off_and_is_parked_while_its_neighbours_flow(
    url: str, connection: asyncpg.Connection
) -> None:
    def answer(message: Message) -> SendResult:
        return Refused(Failure("TooLarge", "no way")) if message.routing_key == "bad" else CONFIRMED

    transport = ScriptedTransport(answer)
    await connection.execute("insert into outbox_table (routing_key, body) select 'bad', '' from generate_series(1, 120)")
    await connection.execute("insert into outbox_table (routing_key, body) select 'good', '' from generate_series(1, 30)")
    slow = policy(max_attempts=2, backoff=timedelta(minutes=5))
    async with relaying(url, transport, sending=slow) as relay:
        await eventually(lambda: transport.routing_keys.count("good") == 30)
        await eventually(lambda: rows_are(connection, 120, "attempts = 1 and send_after > now() + interval '1 minute'"))
        assert Counter(transport.routing_keys)["bad"] == 120
        await connection.execute("update outbox_table set send_after = now()")
        await connection.execute(INSERT, "bell")
        await eventually(lambda: len(relay.recorder.of(SendFailed)) == 240)
        assert await rows(connection, "failed_at is not null and attempts = 2 and last_error = 'TooLarge: no way'") == 120


async def test_an_outage_of_the_broker_spends_no_attempt_and_ends_by_itself(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport(lambda message: NotSent(Failure("Gone", "away")))
    await connection.execute(INSERT, "a")
    async with relaying(url, transport) as relay:
        await eventually(lambda: len(transport.sent) >= 3)
        assert await rows(connection, "attempts = 0 and last_error is null") == 1
        transport.answer = lambda message: CONFIRMED
        await eventually(lambda: relay.recorder.of(BatchSent))
        assert await rows(connection) == 0
        lost = relay.recorder.of(DependencyLost)
        assert [event.dependency for event in lost] == [Dependency.BROKER]
        assert [event.dependency for event in relay.recorder.of(DependencyRestored)] == [Dependency.BROKER]


async def test_nothing_is_claimed_while_the_broker_is_away(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport()
    transport.away = True
    await connection.execute(INSERT, "a")
    async with relaying(url, transport) as relay:
        await eventually(lambda: relay.recorder.of(DependencyLost))
        assert await connection.fetchval("select id from outbox_table for update nowait")
        transport.away = False
        await eventually(lambda: transport.routing_keys == ["a"])


async def test_an_idle_relay_reports_that_the_broker_is_back(url: str) -> None:
    transport = ScriptedTransport()
    transport.away = True
    async with relaying(url, transport) as relay:
        await eventually(lambda: relay.recorder.of(DependencyLost))
        transport.away = False
        await eventually(lambda: relay.recorder.of(DependencyRestored))


async def test_what_was_confirmed_before_the_broker_went_is_settled(url: str, connection: asyncpg.Connection) -> None:
    answers: dict[str, SendResult] = {"a": CONFIRMED, "b": NotSent(Failure("Gone", "away"))}
    transport = ScriptedTransport(lambda message: answers[message.routing_key])
    await connection.executemany(INSERT, [("a",), ("b",)])
    async with relaying(url, transport):
        await eventually(lambda: "b" in transport.routing_keys)
        await eventually(lambda: transport.routing_keys.count("b") >= 2)
        assert transport.routing_keys.count("a") == 1


async def test_an_unroutable_message_is_held_until_its_queue_appears(url: str, connection: asyncpg.Connection) -> None:
    bound: set[str] = set()
    transport = ScriptedTransport(lambda message: CONFIRMED if message.routing_key in bound else UNROUTABLE)
    await connection.execute("insert into outbox_table (routing_key, body) select 'early', '' from generate_series(1, 130)")
    await connection.execute(INSERT, "other")
    bound.add("other")
    async with relaying(url, transport, longest_nap=timedelta(hours=1)):
        await eventually(lambda: "other" in transport.routing_keys)
        held = "last_error = 'unroutable' and attempts = 0 and failed_at is null"
        await eventually(lambda: rows_are(connection, 130, held))
        assert await rows(connection, f"{held} and send_after < 'infinity'") == 1
        await eventually(lambda: transport.routing_keys.count("early") >= 131)
        bound.add("early")
        await eventually(lambda: rows_are(connection, 0))


async def test_a_new_message_that_finds_a_queue_releases_the_held_ones_before_their_probe(
    url: str, connection: asyncpg.Connection
) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, last_error, send_after) "
        "select 'k', '', 'unroutable', case when i = 1 then now() + interval '1 h' else 'infinity' end "
        "from generate_series(1, 3) i"
    )
    transport = ScriptedTransport(lambda message: UNROUTABLE)
    async with relaying(url, transport):
        await connection.execute(INSERT, "k")
        await eventually(lambda: transport.routing_keys == ["k"])
        transport.answer = lambda message: CONFIRMED
        await connection.execute(INSERT, "k")
        await eventually(lambda: rows_are(connection, 0))


async def test_a_key_whose_probe_was_deleted_gets_another(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body, last_error, send_after) "
        "select k, '', 'unroutable', 'infinity' from unnest(array['a', 'a', 'b', 'c']) k"
    )
    transport = ScriptedTransport()
    async with relaying(url, transport):
        await eventually(lambda: rows_are(connection, 0))
    assert sorted(transport.routing_keys) == ["a", "a", "b", "c"]


async def test_unroutable_messages_are_forgotten_if_asked(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport(lambda message: UNROUTABLE)
    await connection.execute(INSERT, "unbound")
    async with relaying(url, transport, sending=policy(drop_unroutable=True)):
        await eventually(lambda: rows_are(connection, 0))


async def test_a_message_of_a_transaction_that_began_long_ago_is_relayed_at_once(
    url: str, connection: asyncpg.Connection
) -> None:
    transport = ScriptedTransport()
    other = await asyncpg.connect(url)
    async with relaying(url, transport):
        old = connection.transaction()
        await old.start()
        await connection.fetchval("select now()")
        await other.execute(INSERT, "younger")
        await eventually(lambda: transport.routing_keys == ["younger"])
        await connection.execute(INSERT, "older")
        await old.commit()
        await eventually(lambda: transport.routing_keys == ["younger", "older"])
    await other.close()


async def test_three_hundred_messages_one_by_one_never_wait_for_a_poll(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport()
    async with relaying(url, transport):
        for number in range(300):
            await connection.execute(INSERT, f"n{number}")
            if number % 3 == 0:
                await eventually(lambda: len(transport.sent) == number + 1, interval=0.001)  # noqa: B023  awaited here
        await eventually(lambda: len(transport.sent) == 300)
    assert transport.routing_keys == [f"n{number}" for number in range(300)]


async def test_a_row_due_later_wakes_a_relay_that_sleeps_for_longer(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport()
    async with relaying(url, transport):
        await connection.execute(
            "insert into outbox_table (routing_key, body, send_after) values ('later', '', now() + interval '2 s')"
        )
        await eventually(lambda: transport.routing_keys == ["later"])
    [message] = transport.sent
    assert message.routing_key == "later"


async def test_two_relays_share_a_table_and_send_each_message_once(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_table (routing_key, body) select i::text, '' from generate_series(1, 20000) i")
    one, two = ScriptedTransport(), ScriptedTransport()
    async with relaying(url, one), relaying(url, two):
        await eventually(lambda: rows_are(connection, 0), timeout=60)
    assert max(Counter(one.routing_keys + two.routing_keys).values()) == 1
    assert len(one.sent) + len(two.sent) == 20000


async def test_stopping_finishes_what_is_in_flight(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport()
    transport.may_answer.clear()
    await connection.execute(INSERT, "a")
    async with relaying(url, transport) as relay:
        await eventually(lambda: transport.sent)
        relay.stopping.request()
        assert not relay.task.done()
        transport.may_answer.set()
        await relay.stopped()
        assert await rows(connection) == 0


async def test_a_sleeping_relay_stops_at_once(url: str) -> None:
    async with relaying(url, ScriptedTransport()) as relay, asyncio.timeout(30):
        await relay.stopped()


async def test_batch_size_one_sends_strictly_one_after_another(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_table (routing_key, body) select i::text, '' from generate_series(1, 20) i")
    transport = ScriptedTransport()
    async with relaying(url, transport, batch_size=1, lanes=1):
        await eventually(lambda: rows_are(connection, 0))
    assert transport.routing_keys == [str(i) for i in range(1, 21)]
    assert {len(batch) for batch in transport.batches} == {1}


async def test_batches_grow_under_backlog(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_table (routing_key, body) select 'a', '' from generate_series(1, 3000) i")
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1):
        await eventually(lambda: rows_are(connection, 0))
    assert [len(batch) for batch in transport.batches][:6] == [50, 100, 200, 400, 500, 500]


class OverlappingTransport(ScriptedTransport):
    """Confirms a batch when the next one has come, so that two are always in flight, until all `expected` messages came."""

    def __init__(self, expected: int) -> None:
        super().__init__()
        self.expected = expected
        self.came = asyncio.Condition()

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        self.batches.append(list(messages))
        number = len(self.batches)
        async with self.came:
            self.came.notify_all()
            await self.came.wait_for(lambda: len(self.batches) > number or len(self.sent) == self.expected)
        return [self.answer(message) for message in messages]


async def test_batches_of_two_lanes_grow_as_those_of_one(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_table (routing_key, body) select 'a', '' from generate_series(1, 3000) i")
    transport = OverlappingTransport(3000)
    async with relaying(url, transport, lanes=2):
        await eventually(lambda: rows_are(connection, 0))
    assert [len(batch) for batch in transport.batches] == [50, 50, 100, 100, 200, 200, 400, 400, 500, 500, 500]


async def test_a_batch_of_large_bodies_ends_early(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into outbox_table (routing_key, body) "
        "select 'big', convert_to(repeat('x', 9000000), 'utf8') from generate_series(1, 6)"
    )
    transport = ScriptedTransport()
    async with relaying(url, transport, lanes=1, byte_limits=ByteLimits(batch=40_000_000)):
        await eventually(lambda: rows_are(connection, 0))
    assert [len(batch) for batch in transport.batches] == [4, 2]


async def test_malformed_rows_are_parked_and_affect_no_other(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("insert into outbox_table (routing_key, body, headers) values ('bad', '', '[1, 2]')")
    await connection.execute(INSERT, "good")
    transport = ScriptedTransport()
    async with relaying(url, transport, sending=policy(max_attempts=1)):
        await eventually(lambda: rows_are(connection, 1))
    assert transport.routing_keys == ["good"]
    assert "headers" in await connection.fetchval("select last_error from outbox_table where failed_at is not null")


@pytest.mark.parametrize("tracking_ids", ['"text"', "[]", "[1]", '{"a": 1}', "null"])
async def test_a_row_without_readable_tracking_ids_keeps_one_id_across_sendings(
    url: str, connection: asyncpg.Connection, tracking_ids: str
) -> None:
    await connection.execute("insert into outbox_table (routing_key, body, tracking_ids) values ('a', '', $1)", tracking_ids)
    transport = ScriptedTransport(lambda message: NotSent(Failure("Gone", "")))
    async with relaying(url, transport):
        await eventually(lambda: len(transport.sent) >= 2)
        transport.answer = lambda message: CONFIRMED
        await eventually(lambda: rows_are(connection, 0))
    assert len({message.id for message in transport.sent}) == 1


async def test_a_relay_whose_backends_are_all_terminated_comes_back(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport()
    async with relaying(url, transport) as relay:
        await connection.execute(INSERT, "before")
        await eventually(lambda: rows_are(connection, 0))
        for _ in range(3):
            await connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'relay%'"
            )
        await connection.execute(INSERT, "after")
        await eventually(lambda: transport.routing_keys == ["before", "after"])
        assert not relay.task.done()


@pytest.mark.parametrize("ordering_key", [None, "customer-7"])
async def test_the_time_in_which_a_message_was_scheduled_is_reported_apart_from_its_age(
    url: str, connection: asyncpg.Connection, ordering_key: str | None
) -> None:
    for name, last_error in (("timer", None), ("retried", "refused")):  # a retried row is due when it is tried again
        await connection.execute(
            "insert into outbox_table (routing_key, body, ordering_key, created_at, send_after, last_error) "
            "values ($1, '', $2, now() - interval '1 h', now() - interval '5 s', $3)",
            name,
            ordering_key,
            last_error,
        )
    async with relaying(url, ScriptedTransport()) as relay:
        await eventually(lambda: rows_are(connection, 0))
        await relay.stopped()
    sent = {message.routing_key: message for event in relay.recorder.of(BatchSent) for message in event.messages}
    assert sent["timer"].scheduled == timedelta(hours=1) - timedelta(seconds=5)
    assert sent["retried"].scheduled == timedelta(0)
    assert min(message.age for message in sent.values()) >= timedelta(hours=1)
