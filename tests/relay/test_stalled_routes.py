"""Routes that take no messages while the broker answers: one of their messages finds out, and the other routes flow."""

from collections import Counter
from datetime import timedelta

import asyncpg
import pytest

from outbox.core.events import DependencyLost, RouteResumed, RouteStalled
from outbox.core.message import Message
from outbox.core.outcome import Failure
from outbox.engine import routes as stalls
from outbox.engine.ordering import OrderingRules
from outbox.ports import CONFIRMED, Confirmed, Refused, SendResult, Unconfirmed
from tests.relay.support import INSERT, ScriptedTransport, policy, relaying, rows_are
from tests.support.eventually import eventually

SILENT = Unconfirmed(Failure("timeout", "no confirm"))
FULL = Refused(Failure("nack", "a queue is full"), by_queue=True)
SEVERAL = "insert into outbox_table (routing_key, body) select $1, convert_to(i::text, 'utf8') from generate_series(1, $2) i"


class SickRoutes(ScriptedTransport):
    """Confirms everything but what goes by the routing keys in `sick`, which get `answer`."""

    def __init__(self, answer: SendResult, *sick: str) -> None:
        self.sick = set(sick)
        super().__init__(lambda message: answer if message.routing_key in self.sick else CONFIRMED)

    def copies(self, routing_key: str) -> Counter[bytes]:
        return Counter(message.body for message in self.sent if message.routing_key == routing_key)


@pytest.fixture
def quick_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "FIRST_PAUSE", timedelta(milliseconds=50))
    monkeypatch.setattr(stalls, "LONGEST_PAUSE", timedelta(milliseconds=200))


async def test_rows_of_a_silent_route_wait_in_the_table_without_an_attempt_and_others_flow(
    url: str, connection: asyncpg.Connection
) -> None:
    transport = SickRoutes(SILENT, "sick")
    await connection.execute(SEVERAL, "sick", 1_000)
    await connection.execute(SEVERAL, "well", 100)
    async with relaying(url, transport) as relay:
        await eventually(lambda: sum(transport.copies("well").values()) == 100)
        stalled = "last_error = 'stalled' and attempts = 0 and send_after = 'infinity' and held_at is not null"
        await eventually(lambda: counted(connection, 1_000, stalled))
        [event] = relay.recorder.of(RouteStalled)
        assert isinstance(event, RouteStalled)
        assert (event.routing_key, event.queue, event.failure) == ("sick", None, SILENT.failure)
        assert relay.recorder.of(DependencyLost) == [], "the broker answers"


async def test_of_a_silent_route_no_more_than_one_batch_of_each_lane_and_one_message_a_probe_is_sent(
    url: str, connection: asyncpg.Connection, quick_probes: None
) -> None:
    """Queues that share the routing key get what is sent, each time that it is."""
    transport = SickRoutes(SILENT, "sick")
    await connection.execute(SEVERAL, "sick", 2_000)
    async with relaying(url, transport, lanes=2) as relay:
        await eventually(lambda: counted(connection, 2_000, "last_error = 'stalled'"))
        first = [len(batch) for batch in transport.batches]
        await eventually(lambda: len(transport.batches) >= len(first) + 5)
        probes = transport.batches[len(first) :]
        assert {len(batch) for batch in probes} == {1}
        assert sum(size for size in first if size > 1) <= 2 * 100, "two batches were under way"
        transport.sick.clear()
        await eventually(lambda: rows_are(connection, 0))
        assert [event.routing_key for event in relay.recorder.of(RouteResumed)] == ["sick"]
    probed = transport.copies("sick").most_common(1)
    assert sum(1 for copies in transport.copies("sick").values() if copies > 2) <= 1, probed


async def test_a_route_that_takes_messages_again_is_given_few_at_first_and_then_all(
    url: str, connection: asyncpg.Connection, quick_probes: None
) -> None:
    transport = SickRoutes(SILENT, "sick")
    await connection.execute(SEVERAL, "sick", 500)
    async with relaying(url, transport, lanes=1):
        await eventually(lambda: counted(connection, 500, "last_error = 'stalled'"))
        before = len(transport.batches)
        transport.sick.clear()
        await eventually(lambda: rows_are(connection, 0))
    sizes = [len(batch) for batch in transport.batches[before:]]
    assert [size for size in sizes if size][:6] == [1, 2, 4, 8, 16, 32]


async def test_what_comes_later_for_a_stalled_route_waits_with_the_others_and_is_not_sent(
    url: str, connection: asyncpg.Connection
) -> None:
    transport = SickRoutes(SILENT, "sick")
    await connection.execute(SEVERAL, "sick", 1)
    async with relaying(url, transport) as relay:
        await eventually(lambda: relay.recorder.of(RouteStalled))
        await eventually(lambda: counted(connection, 1, "last_error = 'stalled'"))
        await connection.execute(INSERT, "sick")
        await eventually(lambda: counted(connection, 2, "last_error = 'stalled'"))
    assert b"" not in transport.copies("sick")


async def test_a_queue_that_is_addressed_directly_stalls_by_itself(url: str, connection: asyncpg.Connection) -> None:
    transport = ScriptedTransport(lambda message: SILENT if message.target_queue == "sick" else CONFIRMED)
    for queue in ("sick", "well", None):
        await connection.execute("insert into outbox_table (routing_key, body, target_queue) values ('a', '', $1)", queue)
    async with relaying(url, transport):
        await eventually(lambda: counted(connection, 1, "last_error = 'stalled'"))
        await eventually(lambda: rows_are(connection, 1))


async def test_a_relay_that_starts_goes_on_with_routes_that_another_left_stalled(
    url: str, connection: asyncpg.Connection
) -> None:
    await connection.execute(SEVERAL, "a", 100)
    await connection.execute("update outbox_table set last_error = 'stalled', send_after = 'infinity', held_at = now()")
    transport = ScriptedTransport()
    async with relaying(url, transport) as relay:
        await eventually(lambda: rows_are(connection, 0))
        assert relay.recorder.of(RouteStalled)
        assert relay.recorder.of(RouteResumed)


async def test_behind_a_stalled_head_its_key_waits_and_goes_on_in_order(
    url: str, connection: asyncpg.Connection, quick_probes: None
) -> None:
    transport = SickRoutes(SILENT, "sick")
    for number, routing_key in enumerate(["sick", "well", "sick", "well"]):
        await connection.execute(
            "insert into outbox_table (routing_key, body, ordering_key) values ($1, convert_to($2, 'utf8'), 'k')",
            routing_key,
            str(number),
        )
    async with relaying(url, transport):
        await eventually(lambda: counted(connection, 1, "last_error = 'stalled'"))
        await connection.execute(INSERT, "other")
        await eventually(lambda: "other" in transport.routing_keys)
        assert "well" not in transport.routing_keys
        transport.sick.clear()
        await eventually(lambda: rows_are(connection, 0))
    firsts = list(dict.fromkeys(message.body for message in transport.sent if message.ordering_key == "k"))
    assert firsts == [b"0", b"1", b"2", b"3"]


async def test_under_skip_later_ones_of_the_key_go_ahead_of_a_stalled_one(url: str, connection: asyncpg.Connection) -> None:
    transport = SickRoutes(SILENT, "sick")
    for routing_key in ("sick", "well"):
        await connection.execute("insert into outbox_table (routing_key, body, ordering_key) values ($1, '', 'k')", routing_key)
    async with relaying(url, transport, ordering=OrderingRules.of("skip")):
        await eventually(lambda: rows_are(connection, 1))
        await eventually(lambda: counted(connection, 1, "last_error = 'stalled'"))


async def test_a_withdrawn_message_of_a_stalled_route_is_not_sent_again(
    url: str, connection: asyncpg.Connection, quick_probes: None
) -> None:
    transport = SickRoutes(SILENT, "sick")
    await connection.execute(SEVERAL, "sick", 3)
    async with relaying(url, transport):
        await eventually(lambda: counted(connection, 3, "last_error = 'stalled'"))
        await connection.execute("delete from outbox_table where body = '2'")
        before = len(transport.sent)
        transport.sick.clear()
        await eventually(lambda: rows_are(connection, 0))
    assert b"2" not in [message.body for message in transport.sent[before:]]


async def test_a_full_queue_costs_each_message_few_attempts_and_others_flow(
    url: str, connection: asyncpg.Connection, quick_probes: None
) -> None:
    """The first batch is refused as it is; after that one message at a time finds out."""
    transport = SickRoutes(FULL, "full")
    await connection.execute(SEVERAL, "full", 300)
    async with relaying(url, transport, lanes=1, batch_size=50, sending=policy(backoff=timedelta(milliseconds=50))):
        await eventually(lambda: counted(connection, 300, "last_error = 'stalled' or attempts > 0"))
        began = len(transport.batches)
        await connection.execute(INSERT, "well")
        await eventually(lambda: len([batch for batch in transport.batches[began:] if batch]) >= 10)
        assert "well" in transport.routing_keys
        assert {len(batch) for batch in transport.batches[began:] if batch} == {1}
        transport.sick.clear()
        await eventually(lambda: rows_are(connection, 0))


async def test_a_queue_with_little_room_gives_its_neighbours_few_copies_of_each_message(
    url: str, connection: asyncpg.Connection, quick_probes: None
) -> None:
    """It takes ten messages every few times that it is sent some, and refuses the others."""
    room, batches = 0, 0

    def answer(message: Message) -> SendResult:
        nonlocal room, batches
        if len(transport.batches) >= batches + 4:
            room, batches = 10, len(transport.batches)
        room -= 1
        return CONFIRMED if room >= 0 else FULL

    transport = ScriptedTransport(answer)
    await connection.execute(SEVERAL, "full", 300)
    async with relaying(url, transport, lanes=1, batch_size=50, sending=policy(backoff=timedelta(milliseconds=50))):
        await eventually(lambda: rows_are(connection, 0, "failed_at is null"), timeout=90)
    assert await connection.fetchval("select count(*) from outbox_table") == 0, "nothing was parked"
    assert len(transport.sent) < 3 * 300


async def test_a_message_that_is_refused_for_its_own_sake_is_parked_and_the_others_of_its_route_flow(
    url: str, connection: asyncpg.Connection, quick_probes: None
) -> None:
    transport = ScriptedTransport(lambda message: FULL if message.body == b"1" else CONFIRMED)
    await connection.execute(SEVERAL, "a", 50)
    sending = policy(max_attempts=4, backoff=timedelta(milliseconds=50))
    async with relaying(url, transport, lanes=1, batch_size=10, sending=sending):
        await eventually(lambda: counted(connection, 1, "failed_at is not null and attempts = 4"))
        await eventually(lambda: rows_are(connection, 1))
    assert Counter(message.body for message in transport.sent)[b"1"] == 4


async def counted(connection: asyncpg.Connection, count: int, where: str) -> bool:
    return bool(await connection.fetchval(f"select count(*) = {count} from outbox_table where {where}"))


async def test_a_transport_need_not_answer_with_the_constant_of_the_ports(
    url: str, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others were confirmed on the route, so the refused message is probed at once, and not after the first pause."""
    monkeypatch.setattr("outbox.engine.rounds.FIRST_PAUSE", timedelta(hours=1))
    refused: list[Message] = []

    def answer(message: Message) -> SendResult:
        if message.body == b"1" and not refused:
            refused.append(message)
            return FULL
        return Confirmed()

    transport = ScriptedTransport(answer)
    await connection.execute(SEVERAL, "a", 3)
    async with relaying(url, transport, sending=policy(backoff=timedelta(milliseconds=50))):
        await eventually(lambda: rows_are(connection, 0))
