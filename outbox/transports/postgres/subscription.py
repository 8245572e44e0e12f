"""A subscription: claims due deliveries, hands out up to its prefetch count, renews leases, sleeps until it is notified."""

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
from outbox.errors import DatabaseUnavailableError, StaleDeliveryError
from outbox.ports import Doorbell, Receive, Subscription
from outbox.postgres.claiming import BatchSizes
from outbox.postgres.deaths import DeadLetterWriter
from outbox.postgres.index_positions import ScanStart
from outbox.postgres.queries import render
from outbox.transports.postgres.delivery import Fetch, FetchInTurn, PostgresDelivery, Ring, Settling
from outbox.transports.postgres.leases import lease_token

HORIZON_SECONDS = 0.25
MOST_AHEAD = 5_000
"""Most deliveries that are claimed ahead."""
MOST_BYTES_AHEAD = 16 * 1024 * 1024
"""Most bytes of bodies that are claimed ahead, judged by the sizes of those that came."""
_WINDOW_SECONDS = 0.05


@dataclass(slots=True)
class Pace:
    """Counts what is finished; `clock` is in seconds."""

    clock: Callable[[], float]
    _since: float | None = None
    _finished: int = 0
    _rate: float = 0.0
    _size: float = 0.0

    def finished(self) -> None:
        """One more."""
        self._finished += 1

    def claimed(self, sizes: list[int]) -> None:
        """Deliveries with bodies of these sizes came."""
        if sizes:
            self._size = max(sum(sizes) / len(sizes), self._size * 0.9)

    def ahead(self) -> int:
        """How many to claim beyond what can be in flight. After a pause it starts over."""
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
"""Without a ring, and with nothing due sooner, the queues are looked at this often."""
ASKED_AGAIN_WITHIN = timedelta(milliseconds=20)
"""Who was woken and finds nothing waits again about this soon; until then the sleep has not ended."""

SecondsUntilDue = Mapping[str, float | None]
Wake = Callable[[], None]


class Waking:
    """Wakes the claims that wait for a queue when something is due in it, while `run` is running."""

    def __init__(self, doorbell: Doorbell, *, next_due: Callable[[Sequence[str]], Awaitable[SecondsUntilDue]]) -> None:
        self._doorbell = doorbell
        self._next_due = next_due
        self._waiting: dict[Wake, str] = {}
        self._wanted = asyncio.Event()
        self._until_due = LONGEST_SLEEP

    def wake_when_due(self, queue: str, wake: Wake) -> None:
        """Calls `wake` once, when something may be due in `queue`. Asking again before that changes nothing."""
        if wake not in self._waiting:
            self._waiting[wake] = queue
            self._wanted.set()
            self._doorbell.ring()

    def forget(self, wake: Wake) -> None:
        """`wake` is not called any more."""
        self._waiting.pop(wake, None)

    async def run(self) -> None:
        """Looks, sleeps and wakes until cancelled."""
        while True:
            await self._wanted.wait()
            try:
                if not await self._wake_due():
                    async with self._doorbell.asleep() as nap:
                        # Whatever was committed before everybody rings is found by this look. Stays asleep while it finds
                        # nothing: a commit wakes the workers of all processes, and only one of them gets the delivery.
                        while self._waiting and not await self._wake_due():
                            await nap.wait(self._until_due)
                            if len(set(self._waiting.values())) == 1:
                                self._wake(list(self._waiting))  # claiming is as quick as looking
                                await nap.wait(ASKED_AGAIN_WITHIN)
            except DatabaseUnavailableError:
                self._wake(list(self._waiting))  # who finds it still away pauses by itself
            if not self._waiting:
                self._wanted.clear()

    async def _wake_due(self) -> bool:
        """Wakes those whose queue has something due, and returns whether there were any, or none waits."""
        seconds = await self._next_due(sorted(set(self._waiting.values())))
        due = [wake for wake, queue in self._waiting.items() if (left := seconds.get(queue)) is not None and left <= 0]
        self._wake(due)
        later = [left for left in seconds.values() if left is not None and left > 0]
        self._until_due = min(timedelta(seconds=min(later, default=LONGEST_SLEEP.total_seconds())), LONGEST_SLEEP)
        return bool(due) or not self._waiting

    def _wake(self, sleepers: Sequence[Wake]) -> None:
        for wake in sleepers:
            self._waiting.pop(wake, None)
            wake()


MOST_CLAIMED = 1_000
"""Most deliveries in one claim."""
LOOKED_AT_BEYOND = 1_000
"""In an ordered queue so many more are looked at than are wanted: most may be behind others of their key."""
LOOK_AGAIN = timedelta(milliseconds=10)
"""Wait for a transaction that is about to end a delivery: no other worker learns of the one that follows."""
LEAVING_TIMEOUT = timedelta(seconds=5)
"""Longest wait for what is still to be written when a subscription is left; what is not comes back when its lease ends."""
RENEWAL_RETRY = timedelta(seconds=1)
"""Wait before leases are renewed that could not be renewed."""

PIECE = 1024 * 1024
"""Bytes of a body that are read at once, where a whole one takes too long."""
SMALLEST_PIECE = 16 * 1024
"""Less than that is not tried: what takes longer is an outage."""

NOTHING = -1
"""Shorter than any body."""

_log = logging.getLogger("outbox")

EXPIRED = Dead(Cause.EXPIRED, Failure("Expired", "the message expired before it was handled"))


class PostgresIntake:
    """Implements the Intake port while `run` is running.

    A delivery is leased from its claim until its outcome is written. Meanwhile it is claimed ahead, or in flight (at most
    `prefetch_count` are), or being settled; an outcome on its way makes room for the next delivery.
    """

    def __init__(
        self,
        subscription: Subscription,
        receive: Receive,
        *,
        fetch: Fetch,
        fetch_bodies: Fetch,
        fetch_in_turn: FetchInTurn,
        ring: Ring,
        waking: Waking,
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
        self._storable = writer.storable
        self._waking = waking
        self._lease = lease
        self._settling = Settling(
            fetch,
            fetch_in_turn=fetch_in_turn,
            ring=ring,
            forget=self._forget,
            takes_released=self._takes_released,
            writer=writer,
            queue=self._queue,
            ordered=self.ordered,
        )
        self._clock = asyncio.get_running_loop().time
        self._pace = Pace(self._clock)
        self._scan_start = scan_start
        self._leased: dict[int, PostgresDelivery] = {}
        self._ahead: deque[PostgresDelivery] = deque()
        self._in_hand: set[PostgresDelivery] = set()
        self._may_be_due = True
        self._unanswered: UUID | None = None
        self._handing_out = False
        self._changed = asyncio.Event()
        self._stopped = asyncio.Event()
        self._left = asyncio.Event()

    async def run(self) -> None:
        """Claims, hands out, settles and renews, until everything was given back; repairs itself after an outage."""
        async with asyncio.TaskGroup() as tasks:
            companions = [tasks.create_task(self._settling.run()), tasks.create_task(self._keep_leases())]
            pauses = Pauses()
            while not self._stopped.is_set():
                # Cleared before the look, so that what changes during it is not missed.
                self._changed.clear()
                # None while enough lies ahead, so that claims are few and large when there is much to do.
                ahead = self._pace.ahead()
                enough = len(self._ahead) > ahead // 2 or 2 * self._leased_bytes > self._sizes.max_bytes
                wanted = 0 if enough else min(self._prefetch_count + ahead - len(self._leased), MOST_CLAIMED)
                if wanted <= 0:
                    await self._changed.wait()
                elif not self._may_be_due:
                    self._waking.wake_when_due(self._queue, self._wake)
                    await self._changed.wait()
                else:
                    try:
                        await self._claim(wanted)
                        pauses.reset()
                    except DatabaseUnavailableError:
                        await self._pause(pauses.next())
            await self._left.wait()
            await self._settling.all_written()
            for companion in companions:
                companion.cancel()

    async def stop(self) -> None:
        """See `outbox.ports.Intake.stop`. What was claimed ahead is given back."""
        self._stopped.set()
        self._waking.forget(self._wake)
        self._give_back_ahead()
        self._changed.set()

    async def give_back(self) -> None:
        """Stops, and gives back everything that is not settled yet. `run` returns when that is written."""
        await self.stop()
        for delivery in self._in_hand:
            if not delivery.taken and not delivery.ended:
                self._end(delivery, RETURNED)
        self._in_hand.clear()
        self._left.set()

    # --- claiming and handing out

    async def _claim(self, limit: int) -> None:
        # A claim that was cut off may have been committed: no worker would have its deliveries until their leases end.
        if self._unanswered is not None:
            await self._fetch("unclaim", self._queue, self._unanswered)
            self._unanswered = None
        token, asked, limit = lease_token(datetime.now(UTC)), self._clock(), self._sizes.rows(limit)
        in_pieces = limit == 1 and self._sizes.alone
        limits = (self._sizes.max_bytes - self._leased_bytes, NOTHING if in_pieces else self._max_body_bytes)
        try:
            rows = await (self._claim_in_order if self.ordered else self._claim_any)(limit, token, *limits)
        except TimeoutError:
            # Not an outage, unless giving back what may have been claimed fails, too.
            self._unanswered = token
            self._sizes.too_slow(limit)
            _log.warning("claiming %d messages of %r took too long: fewer are claimed at once for a while", limit, self._queue)
            return
        except DatabaseUnavailableError:
            self._unanswered = token
            raise
        safe_until = asked + self._lease.total_seconds()
        for row in sorted(rows, key=itemgetter("id")):
            delivery = PostgresDelivery(row, token=token, claimed_at=asked, safe_until=safe_until, intake=self)
            if (earlier := self._leased.get(delivery.id)) is not None:
                earlier.lost = True
                self._leased_bytes -= earlier.size
            self._leased[delivery.id] = delivery
            self._leased_bytes += delivery.size
            if in_pieces and delivery.size <= self._max_body_bytes:
                await self._read_body(delivery)
            self._ahead.append(delivery)
        self._sizes.in_time()
        self._pace.claimed([delivery.size for delivery in self._ahead])
        if self._stopped.is_set():
            self._give_back_ahead()
        else:
            self._hand_out()

    async def _read_body(self, delivery: PostgresDelivery) -> None:
        """Reads a body piece by piece, on a connection on which a whole one takes too long; the lease is kept meanwhile."""
        pieces: list[bytes] = []
        position, size = 0, PIECE
        try:
            while position < delivery.size and not delivery.lost:
                try:
                    rows = await self._fetch_bodies("read_piece", delivery.id, delivery.token, position, size)
                except TimeoutError:
                    size //= 4
                    if size < SMALLEST_PIECE:
                        raise DatabaseUnavailableError(f"not even {4 * size} bytes of {delivery} come in time") from None
                    continue
                if not rows:
                    delivery.lost = True
                else:
                    pieces.append(rows[0][0])
                    position += size
        except DatabaseUnavailableError:
            self._unanswered = delivery.token
            self._forget(delivery)
            raise
        delivery.body = b"".join(pieces)

    async def _claim_any(self, limit: int, token: UUID, max_bytes: int, max_body_bytes: int) -> Sequence[Any]:
        since, began = self._scan_start.due_times, self._clock()
        rows = await self._fetch_bodies("claim", self._queue, limit, token, self._lease, *since, max_bytes, max_body_bytes)
        firsts = {0: rows[0]["first_due"]} if rows else {}
        self._scan_start.record_claim(since=since, seconds=self._clock() - began, firsts=firsts)
        self._may_be_due = bool(rows) and (rows[0]["seen"] == limit or rows[0]["seen"] > len(rows))
        return rows

    async def _claim_in_order(self, limit: int, token: UUID, max_bytes: int, max_body_bytes: int) -> Sequence[Any]:
        """Of each key the first one. While another worker is ending one whose follower is due, only waiting helps."""
        looked_at = limit + LOOKED_AT_BEYOND
        rows = await self._fetch_bodies(
            "claim_ordered", self._queue, limit, token, self._lease, looked_at, max_bytes, max_body_bytes
        )
        seen, left = rows[0]["seen"], rows[0]["left"]
        claimed = [row for row in rows if row["id"] is not None]
        self._may_be_due = seen == looked_at or left > 0
        if left and not claimed:
            await self._pause(LOOK_AGAIN)
        return claimed

    def _hand_out(self) -> None:
        if self._handing_out:
            return  # called by `receive`
        self._handing_out = True
        try:
            while self._ahead and len(self._in_hand) < self._prefetch_count and not self._stopped.is_set():
                delivery, now = self._ahead.popleft(), self._clock()
                if delivery.lost or delivery.safe_until <= now:
                    self._forget(delivery)
                elif delivery.deadline <= now:
                    self._end(delivery, EXPIRED, source="broker")
                elif delivery.size > self._max_body_bytes:
                    text = f"the body has {delivery.size} bytes, and max_body_bytes is {self._max_body_bytes}"
                    self._end(delivery, Dead(Cause.UNDECODABLE, Failure("too large", text)))
                else:
                    self._in_hand.add(delivery)
                    self._receive(delivery)
        finally:
            self._handing_out = False

    def _give_back_ahead(self) -> None:
        while self._ahead:
            self._end(self._ahead.popleft(), RETURNED)

    def _takes_released(self) -> bool:
        """Followers are due. Whether they are claimed here, at once; otherwise others should know of them."""
        self._wake()
        return not self._stopped.is_set() and len(self._in_hand) < self._prefetch_count

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
        """Returns when the outcome is durable. Raises `StaleDeliveryError`."""
        self._in_hand.discard(delivery)
        written: asyncio.Future[None] | None = None
        try:
            delivery.take()
            self._pace.finished()
            if delivery.ended:
                self._forget(delivery)
            else:
                written = self._settling.submit(delivery, outcome)
        finally:
            self._hand_out()
            self._changed.set()
        if written is not None:
            await written

    def done_in_transaction(self, delivery: PostgresDelivery) -> str:
        """The statement that ends a delivery in its handler's transaction."""
        return render(self._done_in_transaction, id=str(delivery.id), token=str(delivery.token))

    def _end(self, delivery: PostgresDelivery, outcome: DeliveryOutcome, *, source: str = "worker") -> None:
        """Settles without anybody waiting for it."""
        delivery.take()
        self._settling.submit(delivery, outcome, source=source)

    async def isolate(self, delivery: PostgresDelivery) -> None:
        """Marks the delivery, so that a crash from here on is blamed on it. Raises `StaleDeliveryError`."""
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
            raise StaleDeliveryError(f"{delivery} is not ours any more")

    async def note_failed(self, delivery: PostgresDelivery, failed: FailedAttempt) -> None:
        """Writes it down for other workers; what cannot be written now is left out, for nothing waits for it."""
        trail = self._storable.json(json.loads(encode_failures([failed])))
        with suppress(DatabaseUnavailableError):
            delivery.lost = not await self._fetch(
                "note_failed", delivery.id, delivery.token, failed.attempt + 1, trail, MOST_FAILURES - 2
            )
        if delivery.lost:
            raise StaleDeliveryError(f"{delivery} is not ours any more")

    def _forget(self, delivery: PostgresDelivery) -> None:
        if self._leased.get(delivery.id) is delivery:
            del self._leased[delivery.id]
            self._leased_bytes -= delivery.size
            self._changed.set()

    # --- keeping leases

    async def _keep_leases(self) -> None:
        """Renews each lease after a third of it, so that two renewals may fail before it is lost."""
        third = self._lease / 3
        while True:
            asked, pause = self._clock(), third
            youngest = asked + (self._lease - third).total_seconds()
            old = [delivery for delivery in self._leased.values() if delivery.safe_until <= youngest]
            for start in range(0, len(old), MOST_CLAIMED):
                batch = old[start : start + MOST_CLAIMED]
                ids, tokens = [delivery.id for delivery in batch], [delivery.token for delivery in batch]
                try:
                    kept = {row["id"] for row in await self._fetch("renew", ids, tokens, self._lease)}
                except DatabaseUnavailableError:
                    pause = min(RENEWAL_RETRY, third)
                    break
                for delivery in batch:
                    if delivery.id in kept:
                        delivery.safe_until = asked + self._lease.total_seconds()
                    elif not delivery.taken and not delivery.ended:  # else it may just have been settled
                        delivery.lost = True
                        self._forget(delivery)
            await asyncio.sleep(pause.total_seconds())
