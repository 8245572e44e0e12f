"""Claims, outcomes, crashes, elapsed time and requeues in any order, compared with a model of what each policy promises."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from outbox.core.outcome import DONE, RETURNED, Cause, Dead, Failure, Held, RelayOutcome, Retry
from outbox.engine.ordering import OrderingRules
from outbox.postgres.pool import Pool, open_pool
from outbox.postgres.queries import TableName
from outbox.postgres.store import PostgresClaim, PostgresStore

T = TypeVar("T")
KEYS = ("a", "b", "c")
RELAYS = (0, 1)
FAILURE = Failure("TooLarge", "no way")
STUCK: dict[str, RelayOutcome] = {
    "returned": RETURNED,
    "retried": Retry(timedelta(hours=1), FAILURE),
    "parked": Dead(Cause.REFUSED, FAILURE),
    "held": Held(),
}


@dataclass
class Lane:
    """The unsent rows of one key, and those that were sent, in the order in which that happened."""

    rows: list[int] = field(default_factory=list)
    parked: set[int] = field(default_factory=set)
    set_aside: set[int] = field(default_factory=set)
    sent: list[int] = field(default_factory=list)


class Relays(RuleBasedStateMachine):
    """Two relays on one table."""

    loop: asyncio.AbstractEventLoop
    url: str
    policy: str

    def __init__(self) -> None:
        super().__init__()
        self.lanes: defaultdict[str, Lane] = defaultdict(Lane)
        self.claims: dict[int, PostgresClaim] = {}
        self.pools: list[Pool] = []
        self.stores: list[PostgresStore] = []
        self.connection = self.wait(self.begin())

    async def begin(self) -> asyncpg.Connection:
        for _ in RELAYS:
            pool = await open_pool(self.url, size=2, application_name="model")
            self.pools.append(pool)
            self.stores.append(
                PostgresStore(
                    pool,
                    TableName("outbox_table"),
                    keep_sent=False,
                    longest_send=timedelta(seconds=10),
                    ordering=OrderingRules.of(self.policy),
                )
            )
        connection = await asyncpg.connect(self.url)
        await connection.execute("truncate outbox_table")
        return connection

    def wait(self, what: Awaitable[T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(what, 30))

    # --- what producers, time and operators do

    @rule(key=st.sampled_from(KEYS), count=st.integers(1, 4))
    def publish(self, key: str, count: int) -> None:
        rows = self.wait(
            self.connection.fetch(
                "insert into outbox_table (routing_key, body, ordering_key) select $1, '', $1 from generate_series(1, $2) "
                "returning id",
                key,
                count,
            )
        )
        self.lanes[key].rows += [row["id"] for row in rows]

    @rule()
    def let_time_pass(self) -> None:
        """Backoffs end, and queues appear for what was held."""
        self.wait(
            self.connection.execute(
                "update outbox_table set send_after = now(), last_error = null where failed_at is null and id = any(array("
                "select id from outbox_table where last_error <> 'blocked' for update skip locked))"
            )
        )

    @rule(key=st.sampled_from(KEYS))
    def requeue(self, key: str) -> None:
        """In place, as operators do: all parked rows of a key."""
        self.wait(
            self.connection.execute(
                "update outbox_table set failed_at = null, last_error = null, attempts = 0, send_after = now() "
                "where ordering_key = $1 and failed_at is not null",
                key,
            )
        )
        self.lanes[key].parked.clear()

    @rule(key=st.sampled_from(KEYS))
    def delete_the_first(self, key: str) -> None:
        """By hand, unless it is on its way."""
        deleted = self.wait(
            self.connection.fetchval(
                "delete from outbox_table where id = any(array("
                "select id from outbox_table where id = $1 for update skip locked)) returning id",
                min(self.lanes[key].rows, default=0),
            )
        )
        if deleted:
            self.forget(key, deleted)

    @rule()
    def look_after_lanes(self) -> None:
        self.wait(self.stores[0].repair_lanes())

    # --- what relays do

    @rule(relay=st.sampled_from(RELAYS), limit=st.integers(1, 8))
    def claim(self, relay: int, limit: int) -> None:
        if relay in self.claims:
            return
        claim = self.wait(self.stores[relay].claim(limit))
        self.note_what_was_parked_behind()
        if claim is None:
            return
        for key, rows in self.by_key(claim).items():
            lane = self.lanes[key]
            assert rows == sorted(rows)
            if self.policy != "skip":
                assert rows == lane.rows[: len(rows)], "the first rows of the key, and none but those that follow each other"
                assert not [other for other in self.claims.values() if key in self.by_key(other)], "no other claim has the key"
            assert not lane.parked & set(rows)
        self.claims[relay] = claim

    @precondition(lambda self: self.claims)
    @rule(relay=st.sampled_from(RELAYS), passed=st.integers(0, 8), then=st.sampled_from(sorted(STUCK)))
    def settle(self, relay: int, passed: int, then: str) -> None:
        """Some messages of each key are confirmed; what follows is as `then` says, and what is behind that was not sent."""
        claim = self.claims.pop(relay, None)
        if claim is None:
            return
        outcomes: dict[int, RelayOutcome] = {}
        for key, rows in self.by_key(claim).items():
            for place, row in enumerate(rows):
                outcomes[row] = DONE if place < passed else STUCK[then] if place == passed else RETURNED
                if place < passed:
                    self.send(key, row)
                elif place == passed and then != "returned":
                    self.lanes[key].set_aside.add(row)
                    if then == "parked":
                        self.lanes[key].parked.add(row)
        self.wait(self.settled(claim, [outcomes[pending.row_id] for pending in claim.messages]))

    @precondition(lambda self: self.claims)
    @rule(relay=st.sampled_from(RELAYS))
    def crash(self, relay: int) -> None:
        if claim := self.claims.pop(relay, None):
            self.wait(self.killed(claim))

    # --- the end: whatever happened, everything gets there

    def teardown(self) -> None:
        try:
            for relay in RELAYS:
                self.crash(relay)
            for _ in range(100):
                for key in KEYS:
                    self.requeue(key)
                self.let_time_pass()
                self.look_after_lanes()
                self.claim(0, 50)
                if 0 in self.claims:
                    self.settle(0, 50, "returned")
                elif not self.wait(self.connection.fetchval("select count(*) from outbox_table")):
                    break
            assert not self.wait(self.connection.fetchval("select count(*) from outbox_table")), "nothing is left behind"
            assert not [row for lane in self.lanes.values() for row in lane.rows]
        finally:
            for pool in self.pools:
                pool.terminate()
            self.wait(self.connection.close())

    # --- the model

    def send(self, key: str, row: int) -> None:
        lane = self.lanes[key]
        if self.policy != "skip":
            assert lane.rows[0] == row, "in the order of ids"
        elif row not in lane.set_aside:
            assert row > max((sent for sent in lane.sent if sent not in lane.set_aside), default=0)
        lane.sent.append(row)
        self.forget(key, row)

    def forget(self, key: str, row: int) -> None:
        self.lanes[key].rows.remove(row)
        self.lanes[key].parked.discard(row)

    def note_what_was_parked_behind(self) -> None:
        rows = self.wait(
            self.connection.fetch("select id, ordering_key, last_error from outbox_table where failed_at is not null")
        )
        for row in rows:
            lane = self.lanes[row["ordering_key"]]
            if row["id"] not in lane.parked:
                assert self.policy == "park"
                assert row["last_error"].startswith("parked: behind outbox-")
                assert min(lane.parked) < row["id"], "behind a parked one"
                lane.parked.add(row["id"])

    def by_key(self, claim: PostgresClaim) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for pending in claim.messages:
            rows.setdefault(pending.message.ordering_key or "", []).append(pending.row_id)
        return rows

    async def settled(self, claim: PostgresClaim, outcomes: list[RelayOutcome]) -> None:
        async with claim:
            await claim.settle(outcomes)

    async def killed(self, claim: PostgresClaim) -> None:
        pid = claim._connection.get_server_pid()
        claim._connection.terminate()
        await claim.__aexit__(ConnectionResetError, ConnectionResetError(), None)
        while await self.connection.fetchval("select exists(select from pg_stat_activity where pid = $1)", pid):
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("policy", ["block", "park", "skip"])
def test_whatever_happens_keys_stay_in_order_and_nothing_is_left_behind(database_url: str, policy: str) -> None:
    from outbox import ensure_outbox_schema_async

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(ensure_outbox_schema_async(database_url))
        machine = type("Machine", (Relays,), {"loop": loop, "url": database_url, "policy": policy})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=12,
                stateful_step_count=25,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        loop.close()
