"""Very many held routing keys: memory and the rate of probes are limited."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import asyncpg

from outbox.core.message import Message, Way
from outbox.core.outcome import Held
from outbox.engine.routes import LONGEST_PROBE, LONGEST_WAIT, MOST_KEYS, Holds
from outbox.ports import CONFIRMED, SendResult
from outbox.ports import Unroutable as NoQueue
from outbox.transports.postgres.handover import MOST_KEYS as MOST_INTERVALS
from outbox.transports.postgres.handover import HandedMessage, HandoverResult, HandoverRounds, HandoverState
from tests.relay.support import ScriptedTransport, relaying
from tests.support import eventually

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_probes_of_more_keys_than_are_remembered_are_far_between() -> None:
    holds = Holds()
    keys = [f"key{number}" for number in range(3 * MOST_KEYS)]
    for key in keys:
        holds.hold(Way(key), was_held=False, now=NOW)
    now, outcomes = NOW, list[Held]()
    for _ in range(5):
        now += timedelta(seconds=20)
        outcomes = [holds.hold(Way(key), was_held=True, now=now) for key in keys]
    assert outcomes == [Held(LONGEST_PROBE)] * len(keys)


def test_once_there_are_too_many_keys_new_messages_of_them_wait_for_the_probe_that_the_table_has() -> None:
    holds = Holds()
    for number in range(MOST_KEYS):
        assert holds.hold(Way(f"key{number}"), was_held=False, now=NOW) == Held(timedelta(seconds=1))
    assert holds.hold(Way("one more"), was_held=False, now=NOW) == Held()


class Unroutable:
    """A hand-over that finds no queue, and records the requested waits."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.first_probes: list[timedelta] = []

    async def hand_over(
        self, limit: int, *, probe_delays: Mapping[str, timedelta] | None = None, first_probe: timedelta
    ) -> HandoverResult:
        self.first_probes.append(first_probe)
        taken, self.keys = self.keys[:limit], self.keys[limit:]
        age = timedelta(0)
        return HandoverResult([HandedMessage(1, "id", key, HandoverState.HELD, was_held=False, age=age) for key in taken])


async def test_within_the_database_too() -> None:
    handover = Unroutable()
    handover.keys = [f"key{number}" for number in range(MOST_INTERVALS + 1)]
    rounds = HandoverRounds(handover, exchange_name="ex")  # type: ignore[arg-type]
    for _ in range(3):
        await rounds.start(MOST_INTERVALS // 2)
    assert handover.first_probes == [timedelta(seconds=1), timedelta(seconds=1), LONGEST_PROBE]


async def test_a_queue_that_is_missing_holds_back_only_what_is_for_it_alone(url: str, connection: asyncpg.Connection) -> None:
    there = False

    def answer(message: Message) -> SendResult:
        return NoQueue() if message.target_queue and not there else CONFIRMED

    transport = ScriptedTransport(answer)
    insert = "insert into outbox_table (routing_key, body, target_queue) values ('k', $1, $2)"
    async with relaying(url, transport):
        await connection.execute(insert, b"1", "gone")
        await connection.execute(insert, b"2", "gone")
        held = "select count(*) = 2 from outbox_table where last_error = 'unroutable' and send_after < 'infinity'"
        await eventually(lambda: connection.fetchval(held))
        await connection.execute(insert, b"3", None)
        await eventually(lambda: connection.fetchval("select count(*) = 2 from outbox_table"))
        assert await connection.fetchval(held)  # the success of another one did not release them
        there = True
        await eventually(lambda: connection.fetchval("select count(*) = 0 from outbox_table"))


def test_a_message_for_one_queue_waits_for_the_probe_of_that_queue_and_not_for_ever() -> None:
    holds = Holds()
    assert holds.hold(Way("k", "gone"), was_held=False, now=NOW) == Held(timedelta(seconds=1))
    assert holds.hold(Way("k"), was_held=False, now=NOW) == Held(timedelta(seconds=1))
    assert holds.hold(Way("k", "gone"), was_held=False, now=NOW) == Held(LONGEST_WAIT)
    assert holds.hold(Way("k"), was_held=False, now=NOW) == Held()
    assert not holds.record_routed(Way("k", "other"), was_held=False)
    assert holds.record_routed(Way("k", "gone"), was_held=False)
