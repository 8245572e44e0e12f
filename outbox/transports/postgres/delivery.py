"""A delivery from a table: its message, its lease, and its settlement."""

import asyncio
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
from outbox.postgres.dead_letter_writer import DeadLetterWriter, Payload
from outbox.postgres.pool import REFUSALS

if TYPE_CHECKING:
    from outbox.ports import Statement
    from outbox.transports.postgres.subscription import PostgresIntake


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST = (datetime.min.replace(tzinfo=UTC) - _EPOCH).total_seconds()
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH).total_seconds() - 1


class PostgresDelivery:
    """Implements `outbox.ports.Delivery`. Decodes its row on access."""

    __slots__ = (
        "_intake",
        "_local_failures",
        "_row",
        "_settling",
        "body",
        "deadline",
        "ended",
        "id",
        "in_doubt",
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
        """Until then no other worker can claim it; on the same clock."""
        self.lost = False
        """Whether another worker is known to have it."""
        self.ended = False
        """Whether its handler's transaction has deleted it."""
        self.in_doubt = False
        """Whether its handler's transaction may have deleted it: the answer to the commit was lost."""
        self._settling = False
        self._local_failures = 0
        self._row = row
        self._intake = intake
        self.body: bytes = row["body"] or b""
        """Empty until it is read."""
        self.size: int = row["size"]
        """Size of the body in bytes, read or not."""

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
        try:
            headers = self._headers()
        except MalformedMessageError:  # which `message` raises
            headers = NO_HEADERS
        # On RabbitMQ these arrive as headers, so handlers find them there on both brokers.
        own_headers = {
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
            headers=MappingProxyType({**headers, **{name: value for name, value in own_headers.items() if value is not None}}),
            content_type=row["content_type"],
            timestamp=_instant(row["created_seconds"]),
            redelivered=row["crashes"] > 0,
            delivery_tag=self.id,
            expiration=row["seconds_left"],
        )

    @property
    def attempt(self) -> int:
        attempt: int = self._row["attempt"]
        return attempt + self._local_failures

    @property
    def gone(self) -> bool:
        return self._settling or self.lost or self.safe_until <= asyncio.get_running_loop().time()

    @property
    def ending(self) -> "PostgresDelivery | None":
        # The end of an ordered delivery also releases the next one of its key, which is more than one statement.
        return None if self._intake.ordered or self._intake.database is None else self

    @property
    def database(self) -> str:
        return self._intake.database or ""

    def statement(self, *, marked: bool) -> "Statement":
        return self._intake.done_in_transaction(self, marked=marked)

    def committed(self) -> None:
        self.ended = True
        self.lost = False  # a renewal that came between the commit and its answer found nothing

    def unknown(self) -> None:
        self.in_doubt = True

    async def note_failed(self, failed: FailedAttempt) -> None:
        self._local_failures += 1
        await self._intake.note_failed(self, failed)

    @property
    def crashes(self) -> int:
        crashes: int = self._row["crashes"]
        return crashes

    @property
    def blamed(self) -> bool:
        # The mark is still there, so the worker that set it ended without settling the delivery.
        isolated: bool = self._row["isolated"]
        return isolated

    async def isolate(self) -> bool:
        await self._intake.isolate(self)
        return True

    async def settle(self, outcome: DeliveryOutcome) -> None:
        await self._intake.settle(self, outcome)

    def __str__(self) -> str:
        return f"delivery {self.id} of message {self._row['message_id']}"

    def begin_settling(self) -> None:
        """Lets the first caller settle the delivery. Raises `StaleDeliveryError` for all others."""
        if self._settling or self.lost:
            raise StaleDeliveryError(f"the lease of {self} was lost, or it was settled already")
        self._settling = True

    @property
    def settling(self) -> bool:
        """Whether settling it has begun."""
        return self._settling

    @property
    def row(self) -> asyncpg.Record:
        """The row that the claim returned."""
        return self._row

    def _headers(self) -> Mapping[str, Any]:
        headers = codec.decode_headers(self._row["headers"], source="the column headers")
        headers.pop(codec.AMQP, None)
        return MappingProxyType(headers) if headers else NO_HEADERS


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage:
    """The `message` parameter of a handler, with the read attributes of aio-pika's incoming message.

    `expiration` is the number of seconds that the message had left when it was claimed, None if it does not expire.
    Properties that only AMQP has are None.
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
    """Returns the time, limited to what `datetime` can hold: PostgreSQL has a wider range, and infinity."""
    return _EPOCH + timedelta(seconds=min(max(seconds, _EARLIEST), _LATEST))


MOST_AT_ONCE = 1_000
"""Most outcomes in one statement."""
BROKEN_PAUSE = timedelta(seconds=5)
"""Delay of a delivery whose outcome caused an unexpected error."""
LONGEST_DELAY = timedelta(days=365_000)
"""Longest delay of a retry, about a thousand years; a longer one is cut to it."""

Fetch = Callable[..., Awaitable[Sequence[Any]]]
"""Runs the statement of that name with arguments and returns its rows. Raises `DatabaseUnavailableError`."""
FetchAtomically = Callable[..., Awaitable[Sequence[Sequence[Any]]]]
"""Runs several statements, each a name with arguments, in one transaction. Raises `DatabaseUnavailableError`."""
Ring = Callable[[], Awaitable[None]]
"""Wakes idle workers of other processes. Raises `DatabaseUnavailableError`."""


@dataclass(eq=False, slots=True)
class _Settlement:
    """One outcome to write. `cut_off`: the answer to a write was lost, so the outcome may have been written."""

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

    def postpone_after(self, error: Exception) -> None:
        """Raises `error` for the caller and postpones the delivery."""
        self._raise(error)
        # With a pause: the same error is likely to happen again.
        self.outcome = Postponed(BROKEN_PAUSE)

    def _raise(self, error: Exception) -> None:
        if not self.written.done():
            self.written.set_exception(error)
            # Marks the exception as retrieved: asyncio would otherwise log it if the caller was cancelled and no longer waits.
            self.written.exception()


_Row = tuple[_Settlement, tuple[object, ...]]
"""An outcome, and its row in the arrays of a statement."""
_ENDING = frozenset({"done", "dead_letter"})
"""Statements that delete the delivery."""
_RINGING = frozenset({"retry", "postpone", "give_back"})
"""Statements that make a delivery due earlier than idle workers expect."""


class Settler:
    """Writes outcomes in the order in which they are submitted, while `run` is running.

    Each write names the token of the lease, so an outcome changes nothing after the lease was lost. While the database is away,
    outcomes are kept until their leases end. `forget` is called with each delivery whose settlement ended.

    In an `ordered` queue, the transaction that ends a delivery also makes the next one of its key due. `can_claim_released` is
    called then; if it returns False, other workers are notified.
    """

    def __init__(
        self,
        fetch: Fetch,
        *,
        fetch_atomically: FetchAtomically,
        ring: Ring,
        forget: Callable[[PostgresDelivery], None],
        can_claim_released: Callable[[], bool],
        writer: DeadLetterWriter,
        queue: str,
        ordered: bool,
    ) -> None:
        self._fetch = fetch
        self._fetch_atomically = fetch_atomically
        self._can_claim_released = can_claim_released
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
        """Queues `outcome`. The future is done when it is durable, or raises `StaleDeliveryError`."""
        written = asyncio.get_running_loop().create_future()
        # An end that was committed after all must not look like a lease that was lost.
        in_doubt = delivery.in_doubt and isinstance(outcome, Done)
        self._waiting.append(_Settlement(delivery, outcome, source, written, cut_off=in_doubt))
        self._idle.clear()
        self._wanted.set()
        return written

    async def all_written(self) -> None:
        """Returns when no outcome is left to write."""
        await self._idle.wait()

    async def run(self) -> None:
        """Writes outcomes until cancelled."""
        pauses = Pauses()
        while True:
            await self._wanted.wait()
            # Cleared before the queue is emptied: an outcome that is submitted meanwhile sets it again.
            self._wanted.clear()
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_AT_ONCE))]
                groups: dict[str, list[_Row]] = {}
                for settlement in batch:
                    try:
                        statement, arguments = self._statement(settlement)
                    except Exception as error:  # noqa: BLE001  one outcome that cannot be encoded must not block the others
                        settlement.postpone_after(error)
                        statement, arguments = self._statement(settlement)
                    groups.setdefault(statement, []).append((settlement, arguments))
                left = [each for statement, rows in groups.items() for each in await self._write(statement, rows)]
                if not left:
                    pauses.reset()
                    continue
                now = asyncio.get_running_loop().time()
                # Back to the front: in an ordered queue, a later outcome must not be written first.
                for settlement in reversed(left):
                    if settlement.delivery.safe_until > now:
                        self._waiting.appendleft(settlement)
                    else:
                        self._end(settlement, succeeded=False)
                await asyncio.sleep(pauses.next().total_seconds())
            self._idle.set()

    def _statement(self, settlement: _Settlement) -> tuple[str, tuple[object, ...]]:
        """Returns the name of the statement that writes the outcome, and one row of its array arguments."""
        delivery, lease = settlement.delivery, (settlement.delivery.id, settlement.delivery.token)
        match settlement.outcome:
            case Done():
                return "done", lease
            case Retry(delay, failure):
                failed = FailedAttempt(at=datetime.now(UTC), attempt=delivery.attempt, failure=failure)
                return "retry", (*lease, min(delay, LONGEST_DELAY), self._writer.failures_json([failed]))
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
        """Writes outcomes. Returns those that the database did not answer."""
        given = rows
        try:
            if any(settlement.cut_off for settlement, _ in rows):
                # Written twice, an outcome would find no lease and be reported as stale.
                rows = await self._still_unwritten(rows)
            if not rows:
                return []
            columns = map(list, zip(*(arguments for _, arguments in rows), strict=True))
            keys: set[str] = set()
            if self._ordered and statement in _ENDING:
                keys = {key for settlement, _ in rows if (key := settlement.delivery.row["ordering_key"]) is not None}
            if keys:
                # In one transaction: if only the end were committed, the next delivery of the key would wait forever.
                answer, released = await self._fetch_atomically((statement, *columns), ("release", self._queue, sorted(keys)))
            else:
                answer, released = await self._fetch(statement, *columns), []
            written = {row["id"] for row in answer}
            for settlement, _ in rows:
                self._end(settlement, succeeded=settlement.delivery.id in written)
            # After the commit: a worker that is woken earlier does not see the change.
            if statement in _RINGING or (released and not self._can_claim_released()):
                await self._ring()
        except DatabaseUnavailableError as error:
            if isinstance(error.__cause__, REFUSALS):
                return await self._write_without_refused(statement, rows, error)
            left = [settlement for settlement, _ in given if not settlement.written.done()]
            for settlement in left:
                settlement.cut_off = True
            return left
        return []

    async def _write_without_refused(self, statement: str, rows: Sequence[_Row], error: Exception) -> list[_Settlement]:
        """Writes the outcomes that the database does not refuse, and postpones the others. Returns those without an answer."""
        if middle := len(rows) // 2:
            return [*await self._write(statement, rows[:middle]), *await self._write(statement, rows[middle:])]
        [(settlement, _)] = rows
        if isinstance(settlement.outcome, Postponed):  # refused as well: its lease runs out
            self._end(settlement, succeeded=False)
            return []
        settlement.postpone_after(error)
        statement, arguments = self._statement(settlement)
        return await self._write(statement, [(settlement, arguments)])

    async def _still_unwritten(self, rows: Sequence[_Row]) -> Sequence[_Row]:
        """Returns `rows` without those that were written although the answer was lost."""
        answer = await self._fetch("whereabouts", [settlement.delivery.id for settlement, _ in rows])
        found = {row["id"]: row for row in answer}
        unwritten = []
        for settlement, arguments in rows:
            delivery = settlement.delivery
            row = found.get(delivery.id)
            if row is not None and row["lease_token"] == delivery.token:
                unwritten.append((settlement, arguments))
                continue
            # The token is gone. What is left of the row shows whether this outcome was written or the lease ran out.
            match settlement.outcome:
                case Retry():
                    written = row is None or row["attempt"] > delivery.attempt
                case Returned() | Postponed():
                    # Written, or run out: either way the delivery is due again, and has spent no attempt.
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
