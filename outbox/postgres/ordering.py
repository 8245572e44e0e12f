"""Lanes of the outbox table: locks them, marks rows that must wait, and releases rows that wait for nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import perf_counter

import asyncpg

from outbox.core.message import Lane, OrderingPolicy
from outbox.engine.ordering import OrderingRules
from outbox.postgres.index_positions import ScanStart
from outbox.postgres.pool import COMMAND_TIMEOUT, Connection
from outbox.postgres.queries import TableName, begin_queries, queries

LONGEST_IDLE = timedelta(seconds=10)
"""Time that the server lets a transaction that locks lanes idle, between two statements."""
LOCK_TIMEOUT = timedelta(seconds=1)
"""Longest wait for a lock: publishers wait meanwhile."""
LONGEST_RUN = 100
"""Most rows of one lane in one claim. Each is sent only after the one before it is confirmed."""
WINDOW = 1_000
"""Due rows that a claim scans to find lanes."""
LARGE_WINDOW = 5_000
"""Due rows that are scanned at once to mark those that must wait."""
CROWDED_BELOW = 100
"""A full window with fewer lanes is crowded: the rows behind the heads are marked, so that the next scan finds other lanes."""
REPAIR_BATCH = 5_000
"""Lanes with blocked rows that one repair checks."""
_TIMEOUT = COMMAND_TIMEOUT.total_seconds()
_LEAST = -(2**63)


@dataclass(frozen=True, slots=True)
class Runs:
    """Arguments of statements about the locked lanes: their numbers, their policies, and the most rows to take from each."""

    numbers: Sequence[int]
    policies: Sequence[str]
    longest: int


@dataclass(frozen=True, slots=True)
class _WaitingLane:
    """A lane with due rows that must wait for its head."""

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
    """The lanes of `table`. A relay that has locked the head of a lane owns the lane; see `ordering.sql`."""

    def __init__(self, table: TableName, rules: OrderingRules) -> None:
        self._rules = rules
        self.sql = {**queries("ordering.sql", table=table.sql), **begin_queries(idle=LONGEST_IDLE, locks=LOCK_TIMEOUT)}
        self._waiting: list[_WaitingLane] = []
        self._crowd: list[_WaitingLane] = []
        self._repaired_to = _LEAST
        self.scan_start = ScanStart()

    @property
    def has_waiting(self) -> bool:
        """Whether the last scan found due rows that must wait. They hide other rows from the scan."""
        return bool(self._waiting or self._crowd)

    @property
    def crowded(self) -> bool:
        """Whether the rows of a few lanes filled the last scan."""
        return bool(self._crowd)

    async def take(self, connection: Connection, limit: int) -> Runs | None:
        """Locks up to `limit` lanes in the current transaction. Returns None if none is available.

        Read their rows in another statement, whose snapshot is newer than the locks.
        """
        window = max(WINDOW, 2 * limit)
        since, began = self.scan_start.due_times, perf_counter()
        arguments = (*self._by_prefix(), window, *since, limit)
        rows: Sequence[asyncpg.Record] = await connection.fetch(self.sql["find_lanes"], *arguments, timeout=_TIMEOUT)
        firsts = {0: rows[0]["due"]} if rows else {}
        self.scan_start.record_claim(since=since, seconds=perf_counter() - began, firsts=firsts)
        self._waiting = [_to_waiting_lane(row) for row in rows if not row["ready"]]
        crowded = len(rows) < CROWDED_BELOW and sum(row["rows_due"] for row in rows) >= window
        self._crowd = [_to_waiting_lane(row) for row in rows if row["ours"] and row["rows_due"] > 1] if crowded else []
        ours = [row for row in rows if row["ours"]]
        if not ours:
            return None
        # An equal share for each lane, rounded up, so that one long lane does not fill the batch.
        longest = min(LONGEST_RUN, -(-limit // len(ours)))
        return Runs([row["lane"] for row in ours], [row["policy"] for row in ours], longest)

    async def claim_head_unread(self, connection: Connection, runs: Runs) -> Sequence[asyncpg.Record]:
        """Locks the first row of the first lane of `runs`, and returns it without texts that the server may fail to return."""
        lane = (runs.numbers[0], runs.policies[0])
        rows: Sequence[asyncpg.Record] = await connection.fetch(self.sql["claim_head_unread"], *lane, timeout=_TIMEOUT)
        return rows

    async def mark_waiting(self, connection: Connection) -> bool:
        """Marks due rows that must wait, so that the next scan skips them. Returns whether there were any.

        Deletes a head that a later message with its dedup key has replaced. Begins and commits a transaction. It is short,
        because publishers that withdraw one of the rows wait for its end.
        """
        waiting = {lane.number: lane for lane in (*self._waiting, *self._crowd)}
        self._waiting, self._crowd = [], []
        if not waiting:
            return False
        heads, policies = [lane.head for lane in waiting.values()], [lane.policy for lane in waiting.values()]
        await connection.execute(self.sql["begin"], timeout=_TIMEOUT)
        changed = 0
        if deduplicated := [lane.head for lane in waiting.values() if lane.deduplicated]:
            changed += _count(await connection.execute(self.sql["supersede_heads"], deduplicated, timeout=_TIMEOUT))
        # Only rows behind a locked head are marked. A head that is just being settled releases the next row before that row is
        # marked, and nothing would release it again.
        rows = await connection.fetch(self.sql["share_heads"], heads, policies, timeout=_TIMEOUT)
        shared = {row["id"] for row in rows}
        staying = [lane for lane in waiting.values() if lane.head in shared]
        since = self.scan_start.due_times
        if parking := [lane for lane in staying if lane.parks]:
            changed += await _mark_rows(connection, self.sql["park_behind"], parking, *since)
            # With very many rows, some are left. Making the first of them due brings them into the next round.
            await self.release(connection, [Lane(lane.number, OrderingPolicy.PARK) for lane in parking])
        if deferring := [lane for lane in staying if not lane.parks]:
            changed += await _mark_rows(connection, self.sql["defer"], deferring, *since)
        await connection.execute("commit", timeout=_TIMEOUT)
        return changed > 0

    async def release(self, connection: Connection, lanes: Sequence[Lane]) -> None:
        """Makes the next row of each lane due, if it waits for a row that this transaction has settled."""
        numbers, policies = [lane.number for lane in lanes], [lane.policy.value for lane in lanes]
        await connection.execute(self.sql["release_next"], numbers, policies, timeout=_TIMEOUT)

    async def repair(self, connection: Connection) -> int:
        """Releases rows that wait although no earlier row is left, in the next `REPAIR_BATCH` lanes. Returns their number."""
        arguments = (*self._by_prefix(), self._repaired_to, REPAIR_BATCH)
        row = await connection.fetchrow(self.sql["repair_lanes"], *arguments, timeout=_TIMEOUT)
        assert row is not None  # noqa: S101  the statement always returns one row
        self._repaired_to = _LEAST if row["last_lane"] is None else row["last_lane"]
        released: int = row["released"]
        return released

    def _by_prefix(self) -> tuple[list[str], list[str]]:
        return self._rules.prefixes, self._rules.policies


def lane_of(row: asyncpg.Record) -> Lane:
    """Returns the lane of a claimed row."""
    return Lane(row["lane"], OrderingPolicy(row["policy"]))


def _to_waiting_lane(row: asyncpg.Record) -> _WaitingLane:
    return _WaitingLane(row["lane"], row["policy"], row["head"], row["parked"], row["deduplicated"])


async def _mark_rows(connection: Connection, statement: str, lanes: Sequence[_WaitingLane], since: float) -> int:
    numbers, heads = [lane.number for lane in lanes], [lane.head for lane in lanes]
    status = await connection.execute(statement, numbers, heads, LARGE_WINDOW, since, timeout=_TIMEOUT)
    return _count(status)


def _count(status: str) -> int:
    """Returns the number of changed rows from the end of a command tag."""
    return int(status.rpartition(" ")[2])
