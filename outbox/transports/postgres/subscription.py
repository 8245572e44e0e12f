"""Consumes one queue: claims due deliveries, hands them to the worker, renews their leases, sleeps until notified."""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any
from uuid import UUID

from outbox.core.byte_limits import ByteLimits
from outbox.core.failures import MOST_FAILURES, FailedAttempt, encode_failures
from outbox.core.outcome import RETURNED, Cause, Dead, DeliveryOutcome, Failure
from outbox.engine.lifecycle import Pauses
from outbox.errors import DatabaseUnavailableError, StaleDeliveryError, StatementTimeoutError
from outbox.ports import Doorbell, Receive, Statement, Subscription
from outbox.postgres.claiming import BatchSizes
from outbox.postgres.dead_letter_writer import DeadLetterWriter
from outbox.postgres.index_positions import ScanStart
from outbox.transports.postgres.delivery import Fetch, FetchAtomically, PostgresDelivery, Ring, Settler
from outbox.transports.postgres.leases import lease_token

HORIZON_SECONDS = 0.25
"""Deliveries are claimed ahead for this long at the current rate."""
MOST_AHEAD = 5_000
"""Most deliveries claimed ahead."""
MOST_BYTES_AHEAD = 16 * 1024 * 1024
"""Most bytes of bodies claimed ahead, estimated from the sizes of recent ones."""
_WINDOW_SECONDS = 0.05


@dataclass(slots=True)
class Pace:
    """Measures how fast deliveries finish, to decide how many to claim ahead. `clock` returns seconds."""

    clock: Callable[[], float]
    _since: float | None = None
    _finished: int = 0
    _rate: float = 0.0
    _size: float = 0.0

    def record_finished(self) -> None:
        """Counts one finished delivery."""
        self._finished += 1

    def record_claimed(self, sizes: list[int]) -> None:
        """Records the body sizes of claimed deliveries."""
        if sizes:
            # Rises at once and falls slowly: one batch of small bodies must not allow a large number of large ones.
            self._size = max(sum(sizes) / len(sizes), self._size * 0.9)

    def ahead(self) -> int:
        """How many deliveries to claim beyond the prefetch count."""
        now = self.clock()
        if self._since is None:
            self._since = now
        elapsed = now - self._since
        if elapsed >= _WINDOW_SECONDS:
            self._rate = self._finished / elapsed
            self._since, self._finished = now, 0
        room = MOST_BYTES_AHEAD / self._size if self._size else MOST_AHEAD
        return int(min(self._rate * HORIZON_SECONDS, room, MOST_AHEAD))


LONGEST_SLEEP = timedelta(seconds=60)
"""Pause between two looks at the queues when nothing is due sooner and no notification arrives."""
CLAIM_GRACE = timedelta(milliseconds=20)
"""A woken claim that finds nothing waits again within this time. The sleeper does not count as awake until then."""

SecondsUntilDue = Mapping[str, float | None]
Wake = Callable[[], None]


class Waker:
    """Wakes the claims that wait for a queue when a delivery is due in it. Works while `run` is running."""

    def __init__(self, doorbell: Doorbell, *, next_due: Callable[[Sequence[str]], Awaitable[SecondsUntilDue]]) -> None:
        self._doorbell = doorbell
        self._next_due = next_due
        self._waiting: dict[Wake, str] = {}
        self._wanted = asyncio.Event()
        self._until_due = LONGEST_SLEEP

    def wake_when_due(self, queue: str, wake: Wake) -> None:
        """Calls `wake` once, when a delivery may be due in `queue`. Registering it twice changes nothing."""
        if wake not in self._waiting:
            self._waiting[wake] = queue
            self._wanted.set()
            self._doorbell.ring()

    def cancel(self, wake: Wake) -> None:
        """Removes `wake`: it is not called any more."""
        self._waiting.pop(wake, None)

    async def run(self) -> None:
        """Looks, sleeps and wakes, until cancelled."""
        while True:
            await self._wanted.wait()
            try:
                if not await self._wake_due():
                    async with self._doorbell.asleep() as nap:
                        # Commits ring from here on; what was committed before is found by one more look. The sleeper stays
                        # registered while looks find nothing: a commit wakes the workers of all processes, and only one of
                        # them gets the delivery, so the others would register again for every message.
                        while self._waiting and not await self._wake_due():
                            await nap.wait(self._until_due)
                            if len(set(self._waiting.values())) == 1:
                                # For one queue a claim costs no more than a look, and saves a round trip if it succeeds.
                                self._wake(list(self._waiting))
                                await nap.wait(CLAIM_GRACE)
            except DatabaseUnavailableError:
                # The claims fail as well while the database is away, and pause with a growing delay.
                self._wake(list(self._waiting))
            if not self._waiting:
                self._wanted.clear()

    async def _wake_due(self) -> bool:
        """Wakes the claims whose queue has a due delivery. Returns False if some wait and none was woken."""
        seconds = await self._next_due(sorted(set(self._waiting.values())))
        due = [wake for wake, queue in self._waiting.items() if (left := seconds.get(queue)) is not None and left <= 0]
        self._wake(due)
        later = [left for left in seconds.values() if left is not None and left > 0]
        # Compared as seconds: a row of another program may be due at infinity, which no `timedelta` holds.
        self._until_due = timedelta(seconds=min([LONGEST_SLEEP.total_seconds(), *later]))
        return bool(due) or not self._waiting

    def _wake(self, sleepers: Sequence[Wake]) -> None:
        for wake in sleepers:
            self._waiting.pop(wake, None)
            wake()


MOST_CLAIMED = 1_000
"""Most deliveries in one claim."""
MOST_DEFERRED_KEYS = 10_000
"""Most keys that a worker remembers because it deferred their deliveries. Those of others become due after some minutes."""
EXTRA_ROWS_SCANNED = 1_000
"""Rows that a claim in an ordered queue scans beyond its limit: most of them may be behind others of their key."""
LOOK_AGAIN = timedelta(milliseconds=10)
"""First pause before another look while a different worker's transaction is about to end a delivery."""
LONGEST_LOOK_AGAIN = timedelta(milliseconds=250)
"""Longest such pause. They double, because the transaction may be an operator's, or that of a frozen worker."""
CLOSE_TIMEOUT = timedelta(seconds=5)
"""Longest wait for outcomes to be written when a subscription ends. Later ones are lost, and their leases run out."""
RENEWAL_RETRY = timedelta(seconds=1)
"""Pause after leases could not be renewed."""

PIECE = 1024 * 1024
"""Bytes per read of a body that takes too long to read at once."""
SMALLEST_PIECE = 16 * 1024
"""Smallest read that is tried. If it takes too long, the connection is considered lost."""

NO_BODIES = -1
"""A `max_body_bytes` that every body exceeds, so that the claim reads none."""

_log = logging.getLogger("outbox")

EXPIRED = Dead(Cause.EXPIRED, Failure("Expired", "the message expired before it was handled"))


class PostgresIntake:
    """Implements `outbox.ports.Intake` while `run` is running.

    A delivery is leased from its claim until its outcome is written. In between it is claimed ahead, in flight (at most
    `prefetch_count` at once) or being settled. The next delivery is handed out as soon as an outcome is known; it does not
    wait for the write.
    """

    def __init__(
        self,
        subscription: Subscription,
        receive: Receive,
        *,
        fetch: Fetch,
        fetch_bodies: Fetch,
        fetch_atomically: FetchAtomically,
        replace_connections: Callable[[], Awaitable[None]],
        ring: Ring,
        waker: Waker,
        lease: timedelta,
        writer: DeadLetterWriter,
        scan_start: ScanStart,
        byte_limits: ByteLimits,
        database: str | None,
        done_in_transaction: str,
    ) -> None:
        self.database = database
        self.ordered = subscription.ordered
        self._done_in_transaction = done_in_transaction
        self._fetch_bodies = fetch_bodies
        self._max_body_bytes = byte_limits.body
        self._sizes = BatchSizes(byte_limits.batch)
        self._leased_bytes = 0
        self._queue = subscription.queue
        self._prefetch_count = subscription.prefetch_count
        self._receive = receive
        self._fetch = fetch
        self._replace_connections = replace_connections
        self._storable = writer.storable
        self._waker = waker
        self._ring = ring
        self._lease = lease
        self._settler = Settler(
            fetch,
            fetch_atomically=fetch_atomically,
            ring=ring,
            forget=self._forget,
            can_claim_released=self._can_claim_released,
            writer=writer,
            queue=self._queue,
            ordered=self.ordered,
        )
        self._clock = asyncio.get_running_loop().time
        self._pace = Pace(self._clock)
        self._scan_start = scan_start
        self._looks = Pauses(first=LOOK_AGAIN, longest=LONGEST_LOOK_AGAIN)
        self._deferred_keys: dict[str, None] = {}
        self._leased: dict[int, PostgresDelivery] = {}
        self._ahead: deque[PostgresDelivery] = deque()
        self._in_flight: set[PostgresDelivery] = set()
        self._may_be_due = True
        self._unconfirmed_claim: UUID | None = None
        self._handing_out = False
        self._changed = asyncio.Event()
        self._stopped = asyncio.Event()
        self._left = asyncio.Event()

    async def run(self) -> None:
        """Claims, hands out, settles and renews, until everything is given back. Continues after an outage."""
        async with asyncio.TaskGroup() as tasks:
            companions = [tasks.create_task(self._settler.run()), tasks.create_task(self._renew_leases())]
            if self.ordered:
                companions.append(tasks.create_task(self._release_abandoned()))
            pauses = Pauses()
            while not self._stopped.is_set():
                # Cleared before the look, so that a change during the look is not missed.
                self._changed.clear()
                # Claims wait until half of what is ahead is used up, so that under load they are few and large.
                ahead = self._pace.ahead()
                enough = len(self._ahead) > ahead // 2 or 2 * self._leased_bytes > self._sizes.max_bytes
                wanted = 0 if enough else min(self._prefetch_count + ahead - len(self._leased), MOST_CLAIMED)
                if wanted <= 0:
                    await self._changed.wait()
                elif not self._may_be_due:
                    self._waker.wake_when_due(self._queue, self._wake)
                    await self._changed.wait()
                else:
                    try:
                        await self._claim(wanted)
                        pauses.reset()
                    except DatabaseUnavailableError:
                        await self._pause(pauses.next())
            if self.ordered and self._may_be_due:
                # Deliveries that it was about to claim itself when it was stopped were not announced.
                with suppress(DatabaseUnavailableError):
                    await self._ring()
            # The companions go on: leases are renewed, and outcomes written, until the last handler has ended.
            await self._left.wait()
            await self._settler.all_written()
            for companion in companions:
                companion.cancel()

    async def stop(self) -> None:
        """See `outbox.ports.Intake.stop`. Gives back what was claimed ahead."""
        self._stopped.set()
        self._waker.cancel(self._wake)
        self._give_back_ahead()
        self._changed.set()

    async def give_back(self) -> None:
        """Stops, and gives back every unsettled delivery. `run` returns when that is written."""
        await self.stop()
        for delivery in self._in_flight:
            if not delivery.settling and not delivery.ended:
                self._end(delivery, RETURNED)
        self._in_flight.clear()
        self._left.set()

    # --- claiming and handing out

    async def _claim(self, limit: int) -> None:
        # A claim whose answer was lost may have been committed. Without this, no worker would get its deliveries until their
        # leases end.
        if self._unconfirmed_claim is not None:
            await self._fetch("unclaim", self._queue, self._unconfirmed_claim)
            self._unconfirmed_claim = None
        token, asked, limit = lease_token(datetime.now(UTC)), self._clock(), self._sizes.rows(limit)
        in_pieces = limit == 1 and self._sizes.is_reduced
        limits = (self._sizes.max_bytes - self._leased_bytes, NO_BODIES if in_pieces else self._max_body_bytes)
        # Before the claim, which may not see what `_wake` announces meanwhile.
        self._may_be_due = False
        try:
            rows = await (self._claim_in_order if self.ordered else self._claim_any)(limit, token, *limits)
        except TimeoutError:
            # Not reported as an outage: large bodies may be the reason. If it is one, `unclaim` fails as well.
            self._may_be_due, self._unconfirmed_claim = True, token
            self._sizes.record_timeout(limit)
            _log.warning("claiming %d messages of %r took too long; using smaller claims for a while", limit, self._queue)
            return
        except DatabaseUnavailableError:
            self._may_be_due, self._unconfirmed_claim = True, token
            raise
        # Counted from before the claim was sent: the server's lease began later, so this process stops first.
        safe_until = asked + self._lease.total_seconds()
        for row in rows:
            delivery = PostgresDelivery(row, token=token, claimed_at=asked, safe_until=safe_until, intake=self)
            # Its lease ran out here, and this claim took it again: only the new token can settle it.
            if (earlier := self._leased.get(delivery.id)) is not None:
                earlier.lost = True
                self._leased_bytes -= earlier.size
            self._leased[delivery.id] = delivery
            self._leased_bytes += delivery.size
            if in_pieces and delivery.size <= self._max_body_bytes:
                await self._read_body(delivery)
            self._ahead.append(delivery)
        self._sizes.record_success()
        self._pace.record_claimed([delivery.size for delivery in self._ahead])
        if self._stopped.is_set():
            self._give_back_ahead()
        else:
            self._hand_out()

    async def _read_body(self, delivery: PostgresDelivery) -> None:
        """Reads a body in pieces, for connections too slow to read it at once. The lease is renewed meanwhile."""
        pieces: list[bytes] = []
        position, size = 0, PIECE
        try:
            while position < delivery.size and not delivery.lost:
                try:
                    rows = await self._fetch_bodies("read_piece", delivery.id, delivery.token, position, size)
                except TimeoutError:
                    size //= 4
                    if size < SMALLEST_PIECE:
                        raise DatabaseUnavailableError(f"reading {4 * size} bytes of {delivery} took too long") from None
                    continue
                if not rows:
                    delivery.lost = True
                else:
                    pieces.append(rows[0][0])
                    position += size
        except DatabaseUnavailableError:
            self._may_be_due, self._unconfirmed_claim = True, delivery.token
            self._forget(delivery)
            raise
        delivery.body = b"".join(pieces)

    async def _claim_any(self, limit: int, token: UUID, max_bytes: int, max_body_bytes: int) -> Sequence[Any]:
        since, began = self._scan_start.due_times, self._clock()
        rows = await self._fetch_bodies("claim", self._queue, limit, token, self._lease, *since, max_bytes, max_body_bytes)
        firsts = {0: rows[0]["first_due"]} if rows else {}
        self._scan_start.record_claim(since=since, seconds=self._clock() - began, firsts=firsts)
        # The claim stopped at its limit, or left rows because of their bytes: more are due.
        if rows and (rows[0]["seen"] == limit or rows[0]["seen"] > len(rows)):
            self._may_be_due = True
        # An update returns its rows in no order. By id would be wrong for deliveries that an operator moved to the front.
        numbers = {each: number for row in rows for number, each in enumerate(row["due_order"] or ())}
        return sorted(rows, key=lambda row: numbers[row["id"]])

    async def _claim_in_order(self, limit: int, token: UUID, max_bytes: int, max_body_bytes: int) -> Sequence[Any]:
        """Claims the first delivery of each ordering key."""
        scanned = limit + EXTRA_ROWS_SCANNED
        rows = await self._fetch_bodies(
            "claim_ordered", self._queue, limit, token, self._lease, scanned, max_bytes, max_body_bytes
        )
        seen, left = rows[0]["seen"], rows[0]["left"]
        claimed = sorted((row for row in rows if row["id"] is not None), key=itemgetter("id"))
        if len(self._deferred_keys) < MOST_DEFERRED_KEYS:
            self._deferred_keys.update(dict.fromkeys(key for row in rows for key in row["deferred_keys"] or ()))
        for row in claimed:
            self._deferred_keys.pop(row["ordering_key"], None)  # its end releases the next one
        if seen == scanned or left > 0:
            self._may_be_due = True
        if left and not claimed:
            # Another worker is just ending the delivery before a due one. It notifies no one if it can claim the next itself.
            await self._pause(self._looks.next())
        else:
            self._looks.reset()
        return claimed

    async def _release_abandoned(self) -> None:
        """Releases what this worker deferred, where the delivery before it ended and no process released the next one."""
        while True:
            await asyncio.sleep((self._lease / 3).total_seconds())
            if keys := list(self._deferred_keys)[:MOST_CLAIMED]:
                with suppress(DatabaseUnavailableError):
                    rows = await self._fetch("release_abandoned", self._queue, keys)
                    for key in keys:
                        self._deferred_keys.pop(key, None)
                    # At the end, so that all have their turn.
                    self._deferred_keys.update(dict.fromkeys(row["ordering_key"] for row in rows))
                    if any(row["released"] for row in rows) and not self._can_claim_released():
                        await self._ring()

    def _hand_out(self) -> None:
        if self._handing_out:
            return  # `receive` settled a delivery, which calls this again
        self._handing_out = True
        try:
            while self._ahead and len(self._in_flight) < self._prefetch_count and not self._stopped.is_set():
                delivery, now = self._ahead.popleft(), self._clock()
                if delivery.lost or delivery.safe_until <= now:
                    self._forget(delivery)
                elif delivery.deadline <= now:
                    self._end(delivery, EXPIRED, source="broker")
                elif delivery.size > self._max_body_bytes:
                    text = f"the body has {delivery.size} bytes, and max_body_bytes is {self._max_body_bytes}"
                    self._end(delivery, Dead(Cause.UNDECODABLE, Failure("too large", text)))
                else:
                    self._in_flight.add(delivery)
                    self._receive(delivery)
        finally:
            self._handing_out = False

    def _give_back_ahead(self) -> None:
        while self._ahead:
            self._end(self._ahead.popleft(), RETURNED)

    def _can_claim_released(self) -> bool:
        """Wakes the claim after `release` made deliveries due. Returns False if other workers must be notified of them."""
        self._wake()
        return not self._stopped.is_set() and len(self._in_flight) < self._prefetch_count

    def _wake(self) -> None:
        self._may_be_due = True
        self._changed.set()

    async def _pause(self, pause: timedelta) -> None:
        try:
            async with asyncio.timeout(pause.total_seconds()):
                await self._stopped.wait()
        except TimeoutError:
            pass

    # --- settling

    async def settle(self, delivery: PostgresDelivery, outcome: DeliveryOutcome) -> None:
        """Settles a delivery. Returns when the outcome is durable. Raises `StaleDeliveryError`."""
        self._in_flight.discard(delivery)
        written: asyncio.Future[None] | None = None
        try:
            delivery.begin_settling()
            self._pace.record_finished()
            if delivery.ended:
                self._forget(delivery)
            else:
                written = self._settler.submit(delivery, outcome)
        finally:
            self._hand_out()
            self._changed.set()
        if written is not None:
            await written

    def done_in_transaction(self, delivery: PostgresDelivery, *, marked: bool) -> Statement:
        """See `outbox.ports.Ending.statement`."""
        literals = (str(delivery.id), f"'{delivery.token}'", "true" if marked else "false")
        return Statement(self._done_in_transaction, "bigint, uuid, boolean", literals, needs_index=True)

    def _end(self, delivery: PostgresDelivery, outcome: DeliveryOutcome, *, source: str = "worker") -> None:
        """Settles a delivery without waiting for the write. Does nothing if its lease was lost: another worker has it."""
        if not delivery.lost:
            delivery.begin_settling()
            self._settler.submit(delivery, outcome, source=source)

    async def isolate(self, delivery: PostgresDelivery) -> None:
        """Marks the delivery: if the worker crashes from now on, this message is the cause. Raises `StaleDeliveryError`."""
        pauses = Pauses()
        while not delivery.lost and self._clock() < delivery.safe_until:
            try:
                delivery.lost = not await self._fetch("isolate", delivery.id, delivery.token)
            except DatabaseUnavailableError:
                await asyncio.sleep(pauses.next().total_seconds())
            else:
                break
        else:
            delivery.lost = True
        if delivery.lost:
            raise StaleDeliveryError(f"the lease of {delivery} was lost")

    async def note_failed(self, delivery: PostgresDelivery, failed: FailedAttempt) -> None:
        """Records a failed attempt for other workers. Does nothing while the database is away. Raises `StaleDeliveryError`."""
        failures = self._storable.json(json.loads(encode_failures([failed])))
        with suppress(DatabaseUnavailableError):
            delivery.lost = not await self._fetch(
                "note_failed", delivery.id, delivery.token, failed.attempt + 1, failures, MOST_FAILURES - 2
            )
        if delivery.lost:
            raise StaleDeliveryError(f"the lease of {delivery} was lost")

    def _forget(self, delivery: PostgresDelivery) -> None:
        if self._leased.get(delivery.id) is delivery:
            del self._leased[delivery.id]
            self._leased_bytes -= delivery.size
            self._changed.set()

    # --- keeping leases

    async def _renew_leases(self) -> None:
        """Renews each lease after a third of its time. A renewal may take another third, and leaves time for one more."""
        lease = self._lease.total_seconds()
        third = pause = lease / 3
        while True:
            await asyncio.sleep(pause)
            asked = self._clock()
            due = min((delivery.safe_until for delivery in self._leased.values()), default=asked + lease) - 2 * third
            if due > asked:
                pause = min(due - asked, third)
                continue
            # Younger ones are renewed in the same statement. The others become due after this pause at the earliest.
            pause = third / 2
            old = [delivery for delivery in self._leased.values() if delivery.safe_until <= asked + lease - pause]
            for start in range(0, len(old), MOST_CLAIMED):
                batch = old[start : start + MOST_CLAIMED]
                ids, tokens = [delivery.id for delivery in batch], [delivery.token for delivery in batch]
                try:
                    # A connection that was lost silently must leave time for another renewal, over a new one.
                    async with asyncio.timeout(third):
                        kept = {row["id"] for row in await self._fetch("renew", ids, tokens, self._lease)}
                except (TimeoutError, DatabaseUnavailableError) as error:
                    if isinstance(error, TimeoutError | StatementTimeoutError):
                        # The others of the pool may be lost, too, and each would take a third of the lease to notice.
                        await self._replace_connections()
                    pause = min(RENEWAL_RETRY.total_seconds(), pause)
                    break
                for delivery in batch:
                    if delivery.id in kept:
                        delivery.safe_until = asked + lease
                    # A delivery that is being settled may be missing because its outcome was just written.
                    elif not delivery.settling and not delivery.ended:
                        delivery.lost = True
                        self._forget(delivery)
