"""A delivery from a table: the message, its lease, and how it is settled."""

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg

from outbox.core import codec
from outbox.core.failures import FailedAttempt
from outbox.core.message import NO_HEADERS, Message
from outbox.core.outcome import DeliveryOutcome
from outbox.errors import MalformedMessageError, StaleDeliveryError

if TYPE_CHECKING:
    from outbox.transports.postgres.subscription import PostgresIntake

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST = (datetime.min.replace(tzinfo=UTC) - _EPOCH).total_seconds()
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH).total_seconds() - 1


class PostgresDelivery:
    """Implements the Delivery port. Its row is decoded when it is asked for."""

    __slots__ = (
        "_failed_in_hand",
        "_intake",
        "_row",
        "_taken",
        "body",
        "deadline",
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
        """Until when nobody else can have claimed it, on the same clock."""
        self.lost = False
        """Whether it is known to be somebody else's now."""
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
