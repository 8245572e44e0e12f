"""Helpers for tests of dead letters: failed messages, and rows of the table."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from outbox.core.failures import FailedAttempt
from outbox.core.outcome import Failure
from outbox.ports import DeadMessage
from outbox.postgres.pool import Pool
from outbox.postgres.queries import TableName

TABLE = TableName("outbox_table")
FAILURE = Failure("shop.PaymentError", "the card 4711 was declined", "", "host:7")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def dead(message_id: str | None = "m1", body: bytes = b'{"n": 1}', *, failure: Failure = FAILURE, **fields: Any) -> DeadMessage:
    """A message that was dead-lettered at a broker."""
    at = fields.pop("failed_at", NOON)
    attempt = fields.get("attempt", 1)
    defaults: dict[str, Any] = {
        "queue": "mail",
        "exchange": "shop",
        "routing_key": "order.placed",
        "cause": "exhausted",
        "by_broker": False,
        "content_type": "application/json",
        "tracking_ids": () if message_id is None else (message_id,),
        "created_at": NOON,
        "failures": (FailedAttempt(at=at, attempt=attempt, failure=failure),),
    }
    return DeadMessage(message_id=message_id, body=body, failure=failure, failed_at=at, **(defaults | fields))


async def letters(pool: Pool) -> Sequence[Any]:
    """All rows of the dead letters, oldest first."""
    return await pool.fetch("select * from outbox_dead_letter order by id")


def failures_of(row: Any) -> list[dict[str, Any]]:
    """The failures of a row."""
    failures: list[dict[str, Any]] = json.loads(row["failures"])
    return failures
