"""A delivery from a table: the message, its lease, and how it is settled."""

import asyncio
import json
import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, assert_never
from uuid import UUID

import asyncpg

from outbox.core import codec
from outbox.core.failures import FailedAttempt
from outbox.core.message import NO_HEADERS, Message
from outbox.core.outcome import Dead, DeliveryOutcome, Done, Postponed, Retry, Returned
from outbox.engine.lifecycle import Pauses
from outbox.errors import DatabaseUnavailableError, MalformedMessageError, StaleDeliveryError
from outbox.postgres.deaths import DeadLetterWriter, Payload

if TYPE_CHECKING:
    from outbox.transports.postgres.subscription import PostgresIntake


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST = (datetime.min.replace(tzinfo=UTC) - _EPOCH).total_seconds()
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH).total_seconds() - 1


class PostgresDelivery:
    """Implements the Delivery port. Its row is decoded when it is asked for."""

    __slots__ = (
        "_failed_in_hand",
        "_in_doubt",
        "_intake",
        "_row",
        "_taken",
        "body",
        "deadline",
        "ended",
        "id",
        "lost",
        "safe_until",
        "size",
        "token",
    )

    def __init__(
        self, row: asyncpg.Record, *, token: UUID, claimed_at: float, safe_until: float, intake: "PostgresIntake"
    ) -> None:
        self.id: int = row["id"]
        self.token = token
        seconds_left = row["seconds_left"]
        self.deadline = math.inf if seconds_left is None else claimed_at + seconds_left
        """When the message expires, on the event loop's clock."""
        self.safe_until = safe_until
        """Until when no other worker can have claimed it, on the same clock."""
        self.lost = False
        """Whether it is known to be another worker's now."""
        self.ended = False
        """Whether its handler's transaction has deleted it."""
        self._in_doubt = False
        self._taken = False
        self._failed_in_hand = 0
        self._row = row
        self._intake = intake
        self.body: bytes = row["body"] or b""
        """Empty as long as it is not read."""
        self.size: int = row["size"]
        """How many bytes its body has, read or not."""

    @property
    def message(self) -> Message:
        row = self._row
        tracking_ids = codec.decode_tracking_ids(row["tracking_ids"], source=f"the tracking ids of {row['message_id']!r}")
        if not tracking_ids:
            raise MalformedMessageError(f"the tracking ids of {row['message_id']!r} are empty")
        expires = row["expires_seconds"]
        return Message(
            id=row["message_id"],
            routing_key=row["routing_key"],
            body=self.body,
            created_at=_instant(row["created_seconds"]),
            tracking_ids=tracking_ids,
            content_type=row["content_type"],
            headers=self._headers(),
            expires_at=None if expires is None else _instant(expires),
            ordering_key=row["ordering_key"],
            hlc=row["hlc"],
            requeue_count=row["requeue_count"],
        )

    @property
    def incoming(self) -> "IncomingMessage":
        row = self._row
        expires = row["expires_seconds"]
        # What would be headers of ours on a broker.
        ours = {
            codec.TRACKING_IDS: row["tracking_ids"],
            codec.ATTEMPT: row["attempt"],
            codec.ROUTING_KEY: row["routing_key"],
            codec.ORDERING_KEY: row["ordering_key"],
            codec.HLC: row["hlc"],
            codec.REQUEUE_COUNT: row["requeue_count"] or None,
            codec.EXPIRES_AT: None if expires is None else codec.encode_instant(_instant(expires)),
        }
        return IncomingMessage(
            body=self.body,
            body_size=len(self.body),
            message_id=row["message_id"],
            routing_key=row["routing_key"],
            exchange=row["exchange"],
            headers=MappingProxyType({**self._headers(), **{name: value for name, value in ours.items() if value is not None}}),
            content_type=row["content_type"],
            timestamp=_instant(row["created_seconds"]),
            redelivered=row["crashes"] > 0,
            delivery_tag=self.id,
            expiration=row["seconds_left"],
        )

    @property
    def attempt(self) -> int:
        attempt: int = self._row["attempt"]
        return attempt + self._failed_in_hand

    @property
    def gone(self) -> bool:
        return self._taken or self.lost or self.safe_until <= asyncio.get_running_loop().time()

    @property
    def ending(self) -> "PostgresDelivery | None":
        # The end of an ordered delivery also releases the next one of its key, which is more than one statement.
        return None if self._intake.ordered or self._intake.database is None else self

    @property
    def database(self) -> str:
        return self._intake.database or ""

    @property
    def statement(self) -> str:
        return self._intake.done_in_transaction(self)

    def committed(self) -> None:
        self.ended = True
        self.lost = False  # a renewal that came between the commit and its answer found nothing

    def unknown(self) -> None:
        self._in_doubt = True

    @property
    def in_doubt(self) -> bool:
        """Whether its handler's transaction may have deleted it: the answer to the commit was lost."""
        return self._in_doubt

    async def note_failed(self, failed: FailedAttempt) -> None:
        self._failed_in_hand += 1
        await self._intake.note_failed(self, failed)

    @property
    def crashes(self) -> int:
        crashes: int = self._row["crashes"]
        return crashes

    @property
    def blamed(self) -> bool:
        # The worker that isolated it settled nothing, or the mark would be gone.
        isolated: bool = self._row["isolated"]
        return isolated

    async def isolate(self) -> bool:
        await self._intake.isolate(self)
        return True

    async def settle(self, outcome: DeliveryOutcome) -> None:
        await self._intake.settle(self, outcome)

    def __str__(self) -> str:
        return f"delivery {self.id} of message {self._row['message_id']}"

    def take(self) -> None:
        """The first caller may settle the delivery. Raises `StaleDeliveryError` for all others."""
        if self._taken or self.lost:
            raise StaleDeliveryError(f"{self} is not ours any more")
        self._taken = True

    @property
    def taken(self) -> bool:
        """Whether its settling has begun."""
        return self._taken

    @property
    def row(self) -> asyncpg.Record:
        """What the claim returned of it."""
        return self._row

    def _headers(self) -> Mapping[str, Any]:
        text = self._row["headers"]
        if text is None:
            return NO_HEADERS
        headers = json.loads(text)
        if not isinstance(headers, dict):
            raise MalformedMessageError(f"the headers of {self._row['message_id']!r} are not a JSON object")
        headers.pop(codec.AMQP, None)
        return MappingProxyType(headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage:
    """What a handler's `message` parameter receives: the attributes that one reads from aio-pika's incoming message.

    `expiration` is how many seconds the message had left when it was claimed, None if it does not expire. What an AMQP client
    sets and we do not carry is None.
    """

    body: bytes
    body_size: int
    message_id: str
    routing_key: str
    exchange: str
    headers: Mapping[str, Any]
    content_type: str | None
    timestamp: datetime
    redelivered: bool
    delivery_tag: int
    expiration: float | None = None
    consumer_tag: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    content_encoding: str | None = None
    type: str | None = None
    app_id: str | None = None
    user_id: str | None = None
    cluster_id: str | None = None
    priority: int = 0
    delivery_mode: int = 2
    message_count: int | None = None


def _instant(seconds: float) -> datetime:
    """A moment that Python can hold; PostgreSQL has earlier and later ones, and infinity."""
    return _EPOCH + timedelta(seconds=min(max(seconds, _EARLIEST), _LATEST))


MOST_AT_ONCE = 1_000
"""Most outcomes in one statement."""
BROKEN_PAUSE = timedelta(seconds=5)
"""Before a delivery comes again whose outcome could not be written for a reason that none should have."""
LONGEST_DELAY = timedelta(days=365_000)
"""A retry that is asked for later comes then: no calendar holds more."""

Fetch = Callable[..., Awaitable[Sequence[Any]]]
"""Runs a statement by its name, with its arguments, and returns its rows. Raises `DatabaseUnavailableError`."""
FetchInTurn = Callable[..., Awaitable[Sequence[Sequence[Any]]]]
"""The same for several of them in one transaction, each with its name and its arguments."""
Ring = Callable[[], Awaitable[None]]
"""Wakes the sleepers of other processes. Raises `DatabaseUnavailableError`."""


@dataclass(eq=False, slots=True)
class _Settlement:
    """One outcome on its way; `cut_off` says that an answer was lost, so that it may have been written already."""

    delivery: PostgresDelivery
    outcome: DeliveryOutcome
    source: str
    written: asyncio.Future[None]
    cut_off: bool = False

    def succeed(self) -> None:
        if not self.written.done():
            self.written.set_result(None)

    def fail(self, reason: str) -> None:
        self._raise(StaleDeliveryError(reason))

    def break_with(self, error: Exception) -> None:
        """The caller gets `error`, and the delivery comes again in a while, so that it does not spin."""
        self._raise(error)
        self.outcome = Postponed(BROKEN_PAUSE)

    def _raise(self, error: Exception) -> None:
        if not self.written.done():
            self.written.set_exception(error)
            self.written.exception()  # marks it as seen: a caller that was cancelled waits no more


_Row = tuple[_Settlement, tuple[object, ...]]
"""An outcome, and its row of a statement's arrays."""
_ENDING = frozenset({"done", "dead_letter"})
"""After these the delivery is not there any more."""
_RINGING = frozenset({"retry", "postpone", "give_back"})
"""These make rows due sooner than a sleeper elsewhere believes."""


class Settling:
    """Writes outcomes in the order in which they come, while `run` is running.

    Each write names the lease's token, so that an outcome for a delivery that is not ours any more changes nothing. While the
    database is away outcomes are kept for as long as their leases may still hold. `forget` is called with each that ended.

    In an `ordered` queue the end of a delivery makes the next one of its key due, in one transaction. `takes_released` is told,
    and says whether these are claimed here.
    """

    def __init__(
        self,
        fetch: Fetch,
        *,
        fetch_in_turn: FetchInTurn,
        ring: Ring,
        forget: Callable[[PostgresDelivery], None],
        takes_released: Callable[[], bool],
        writer: DeadLetterWriter,
        queue: str,
        ordered: bool,
    ) -> None:
        self._fetch = fetch
        self._fetch_in_turn = fetch_in_turn
        self._takes_released = takes_released
        self._ordered = ordered
        self._writer = writer
        self._queue = queue
        self._ring = ring
        self._forget = forget
        self._waiting: deque[_Settlement] = deque()
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def submit(self, delivery: PostgresDelivery, outcome: DeliveryOutcome, *, source: str = "worker") -> asyncio.Future[None]:
        """Puts `outcome` in line. The future is done when it is durable, or raises `StaleDeliveryError`."""
        written = asyncio.get_running_loop().create_future()
        # An end that was committed after all must not look like a lease that was lost.
        in_doubt = delivery.in_doubt and isinstance(outcome, Done)
        self._waiting.append(_Settlement(delivery, outcome, source, written, cut_off=in_doubt))
        self._idle.clear()
        self._wanted.set()
        return written

    async def all_written(self) -> None:
        """Returns when nothing is in line."""
        await self._idle.wait()

    async def run(self) -> None:
        """Writes until cancelled."""
        pauses = Pauses()
        while True:
            await self._wanted.wait()
            # Before the line is emptied: what is put in line from here on sets it again.
            self._wanted.clear()
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_AT_ONCE))]
                groups: dict[str, list[_Row]] = {}
                for settlement in batch:
                    try:
                        statement, arguments = self._statement(settlement)
                    except Exception as error:  # noqa: BLE001  one that cannot be put in words must not keep the others
                        settlement.break_with(error)
                        statement, arguments = self._statement(settlement)
                    groups.setdefault(statement, []).append((settlement, arguments))
                left = [each for statement, rows in groups.items() for each in await self._write(statement, rows)]
                if not left:
                    pauses.reset()
                    continue
                now = asyncio.get_running_loop().time()
                # In front of what came since: a queue that keeps an order must not see a later outcome first.
                for settlement in reversed(left):
                    if settlement.delivery.safe_until > now:
                        self._waiting.appendleft(settlement)
                    else:
                        self._end(settlement, succeeded=False)
                await asyncio.sleep(pauses.next().total_seconds())
            self._idle.set()

    def _statement(self, settlement: _Settlement) -> tuple[str, tuple[object, ...]]:
        """The name of the statement that writes the outcome, and one row of the statement's arrays."""
        delivery, lease = settlement.delivery, (settlement.delivery.id, settlement.delivery.token)
        match settlement.outcome:
            case Done():
                return "done", lease
            case Retry(delay, failure):
                failed = FailedAttempt(at=datetime.now(UTC), attempt=delivery.attempt, failure=failure)
                return "retry", (*lease, min(delay, LONGEST_DELAY), self._writer.trail(failed))
            case Postponed(delay):
                return "postpone", (*lease, min(delay, LONGEST_DELAY))
            case Dead(cause, failure):
                row = delivery.row
                dead_letter = self._writer.of_delivery(
                    queue=self._queue,
                    failure=failure,
                    failed=FailedAttempt(at=datetime.now(UTC), attempt=delivery.attempt, failure=failure),
                    cause=cause.value,
                    source=settlement.source,
                    words=(self._queue, row["routing_key"], row["message_id"], row["tracking_ids"]),
                    payload=Payload(delivery.body, row["content_type"], row["headers"]),
                )
                return "dead_letter", (*lease, *dead_letter)
            case Returned():
                return "give_back", (*lease, delivery.blamed)
            case _:
                assert_never(settlement.outcome)

    async def _write(self, statement: str, rows: Sequence[_Row]) -> list[_Settlement]:
        """Writes what it can, and returns what the database did not answer to."""
        given = rows
        try:
            if any(settlement.cut_off for settlement, _ in rows):
                # Written a second time, an outcome would find no lease, and look like one that came too late.
                rows = await self._still_unwritten(rows)
            if not rows:
                return []
            columns = map(list, zip(*(arguments for _, arguments in rows), strict=True))
            keys: set[str] = set()
            if self._ordered and statement in _ENDING:
                keys = {key for settlement, _ in rows if (key := settlement.delivery.row["ordering_key"]) is not None}
            if keys:
                # In one transaction: an end that is committed without the release leaves the next of its key waiting for ever.
                answer, released = await self._fetch_in_turn((statement, *columns), ("release", self._queue, sorted(keys)))
            else:
                answer, released = await self._fetch(statement, *columns), []
            written = {row["id"] for row in answer}
            for settlement, _ in rows:
                self._end(settlement, succeeded=settlement.delivery.id in written)
            # After the commit: a sleeper that is woken before it finds nothing new.
            if statement in _RINGING or (released and not self._takes_released()):
                await self._ring()
        except DatabaseUnavailableError:
            left = [settlement for settlement, _ in given if not settlement.written.done()]
            for settlement in left:
                settlement.cut_off = True
            return left
        return []

    async def _still_unwritten(self, rows: Sequence[_Row]) -> Sequence[_Row]:
        """`rows` without those that had been written after all when their answer was cut off."""
        answer = await self._fetch("whereabouts", [settlement.delivery.id for settlement, _ in rows])
        found = {row["id"]: row for row in answer}
        unwritten = []
        for settlement, arguments in rows:
            delivery = settlement.delivery
            row = found.get(delivery.id)
            if row is not None and row["lease_token"] == delivery.token:
                unwritten.append((settlement, arguments))
                continue
            # It is not under our token any more: because our outcome was written, or because the lease ran out?
            match settlement.outcome:
                case Retry():
                    written = row is None or row["attempt"] > delivery.attempt
                case Returned() | Postponed():
                    written = True
                case _:
                    written = row is None
            self._end(settlement, succeeded=written)
        return unwritten

    def _end(self, settlement: _Settlement, *, succeeded: bool) -> None:
        self._forget(settlement.delivery)
        if succeeded:
            settlement.succeed()
        else:
            settlement.fail(f"the lease of {settlement.delivery} ran out before it was settled")
