"""Lanes in the outbox table: taking them, making those that must wait leave the way, and repairing those that wait in vain."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import asyncpg

from outbox.core.message import Lane, OrderingPolicy
from outbox.engine.ordering import OrderingRules
from outbox.postgres.index_positions import ScanStart
from outbox.postgres.pool import COMMAND_TIMEOUT, Connection
from outbox.postgres.queries import TableName, queries

LONGEST_RUN = 100
"""Rows of one lane in one claim: each is sent when the one before it is confirmed."""
WINDOW = 1_000
"""Due rows that a claim looks at to find lanes."""
LARGE_WINDOW = 5_000
"""Due rows of which those that must wait are marked in one go."""
MOST_LANES_OF_A_CROWD = 100
"""A full window with fewer lanes is crowded: what is due behind the heads is marked, so that other lanes come into view."""
REPAIRED_AT_ONCE = 5_000
"""Lanes with blocked rows that one round of repair looks at."""
_TIMEOUT = COMMAND_TIMEOUT.total_seconds()
_LEAST = -(2**63)


@dataclass(frozen=True, slots=True)
class Runs:
    """What a statement about our lanes' runs takes: their numbers, their policies, and how long a run may be."""

    numbers: Sequence[int]
    policies: Sequence[str]
    longest: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """A lane that has rows due behind a head that is not ours."""

    number: int
    policy: str
    head: int
    parked: bool
    deduplicated: bool

    @property
    def parks(self) -> bool:
        """Whether rows behind the head are parked with it."""
        return self.parked and self.policy == OrderingPolicy.PARK


class Lanes:
    """The lanes of `table`. Who holds a lane's head has the lane; see `ordering.sql`."""

    def __init__(self, table: TableName, rules: OrderingRules) -> None:
        self._rules = rules
        self.sql = queries("ordering.sql", table=table.sql)
        self._waiting: list[_Seen] = []
        self._crowd: list[_Seen] = []
        self._repaired_to = _LEAST
        self.scan_start = ScanStart()

    @property
    def obstructed(self) -> bool:
        """Whether rows were seen that are due and must wait, and stand in the way of others."""
        return bool(self._waiting or self._crowd)

    @property
    def crowded(self) -> bool:
        """Whether a few lanes were all that could be seen."""
        return bool(self._crowd)

    async def take(self, connection: Connection, limit: int) -> Runs | None:
        """Locks up to `limit` lanes in the transaction that is open; None if there is none to be had.

        The runs are to be read in another statement, whose snapshot is younger than the locks.
        """
        window = max(WINDOW, 2 * limit)
        since, began = self.scan_start.due_times, perf_counter()
        arguments = (*self._by_prefix(), window, *since, limit)
        rows: Sequence[asyncpg.Record] = await connection.fetch(self.sql["find_lanes"], *arguments, timeout=_TIMEOUT)
        firsts = {0: rows[0]["due"]} if rows else {}
        self.scan_start.record_claim(since=since, seconds=perf_counter() - began, firsts=firsts)
        self._waiting = [_seen(row) for row in rows if not row["ready"]]
        crowded = len(rows) < MOST_LANES_OF_A_CROWD and sum(row["rows_due"] for row in rows) >= window
        self._crowd = [_seen(row) for row in rows if row["ours"] and row["rows_due"] > 1] if crowded else []
        ours = [row for row in rows if row["ours"]]
        if not ours:
            return None
        longest = min(LONGEST_RUN, -(-limit // len(ours)))
        return Runs([row["lane"] for row in ours], [row["policy"] for row in ours], longest)

    async def claim_head_unread(self, connection: Connection, runs: Runs) -> Sequence[asyncpg.Record]:
        """The first row of the first lane of `runs`, locked, without any text that the server may be unable to show."""
        lane = (runs.numbers[0], runs.policies[0])
        rows: Sequence[asyncpg.Record] = await connection.fetch(self.sql["claim_head_unread"], *lane, timeout=_TIMEOUT)
        return rows

    async def make_way(self, connection: Connection) -> bool:
        """Marks rows that were seen to be due and must wait; True if there were any. Needs a transaction of its own.

        A head that a later message of its dedup key stands for is removed instead. The transaction is short, because publishers
        that withdraw one of the rows wait for its end.
        """
        seen = {lane.number: lane for lane in (*self._waiting, *self._crowd)}
        self._waiting, self._crowd = [], []
        if not seen:
            return False
        heads, policies = [lane.head for lane in seen.values()], [lane.policy for lane in seen.values()]
        await connection.execute(self.sql["begin"], timeout=_TIMEOUT)
        changed = 0
        if deduplicated := [lane.head for lane in seen.values() if lane.deduplicated]:
            changed += _count(await connection.execute(self.sql["supersede_heads"], deduplicated, timeout=_TIMEOUT))
        # Only rows behind a head that stays are marked: a head that is leaving would release nothing that is marked after it.
        rows = await connection.fetch(self.sql["share_heads"], heads, policies, timeout=_TIMEOUT)
        shared = {row["id"] for row in rows}
        staying = [lane for lane in seen.values() if lane.head in shared]
        since = self.scan_start.due_times
        if parking := [lane for lane in staying if lane.parks]:
            changed += await _changed(connection, self.sql["park_behind"], parking, *since)
            # What is left over when there is very much comes due by its first row, and is parked in the next round.
            await self.release(connection, [Lane(lane.number, OrderingPolicy.PARK) for lane in parking])
        if deferring := [lane for lane in staying if not lane.parks]:
            changed += await _changed(connection, self.sql["defer"], deferring, *since)
        await connection.execute("commit", timeout=_TIMEOUT)
        return changed > 0

    async def release(self, connection: Connection, lanes: Sequence[Lane]) -> None:
        """Makes the next row of each lane due, if it waits for one that this transaction took away."""
        numbers, policies = [lane.number for lane in lanes], [lane.policy.value for lane in lanes]
        await connection.execute(self.sql["release_next"], numbers, policies, timeout=_TIMEOUT)

    async def repair(self, connection: Connection) -> int:
        """Releases rows that wait for no earlier one, in the next few thousand lanes; how many there were."""
        arguments = (*self._by_prefix(), self._repaired_to, REPAIRED_AT_ONCE)
        row = await connection.fetchrow(self.sql["repair_lanes"], *arguments, timeout=_TIMEOUT)
        assert row is not None  # noqa: S101  it counts
        self._repaired_to = _LEAST if row["last_lane"] is None else row["last_lane"]
        released: int = row["released"]
        return released

    def _by_prefix(self) -> tuple[list[str], list[str]]:
        return self._rules.prefixes, self._rules.policies


def lane_of(row: asyncpg.Record) -> Lane:
    """The lane of a row of a run."""
    return Lane(row["lane"], OrderingPolicy(row["policy"]))


def _seen(row: asyncpg.Record) -> _Seen:
    return _Seen(row["lane"], row["policy"], row["head"], row["parked"], row["deduplicated"])


async def _changed(connection: Connection, statement: str, lanes: Sequence[_Seen], since: float) -> int:
    numbers, heads = [lane.number for lane in lanes], [lane.head for lane in lanes]
    status = await connection.execute(statement, numbers, heads, LARGE_WINDOW, since, timeout=_TIMEOUT)
    return _count(status)


def _count(status: str) -> int:
    """How many rows a statement changed, which ends its command tag."""
    return int(status.rpartition(" ")[2])
