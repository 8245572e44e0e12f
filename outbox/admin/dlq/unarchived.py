"""What the broker still has of dead letters, counted once for all who ask."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.admin.dlq.models import Unarchived
from outbox.admin.snapshots import Snapshots
from outbox.postgres.archive import PostgresArchive

if TYPE_CHECKING:
    from outbox.admin.admin import Admin

MAX_AGE = timedelta(seconds=5)
TIMEOUT = timedelta(seconds=10)
PATIENCE = timedelta(milliseconds=120)
"""How long a list waits for the broker."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found: by queue, or why nothing is known."""

    queues: Mapping[str, int]
    problem: str | None


class UnarchivedView:
    """The dead letters at the broker that no archiver has taken. With PostgreSQL as the broker there are none of the kind."""

    def __init__(self, admin: "Admin") -> None:
        self._admin = admin
        self._broker = admin.shared(BrokerView)
        self._found = Snapshots(self._look, max_age=MAX_AGE, timeout=TIMEOUT)

    async def now(self) -> tuple[Unarchived | None, list[Literal["broker"]]]:
        """What there is, None if nobody knows; and what could not be asked."""
        if self._broker.kind is not BrokerKind.RABBITMQ:
            return None, []
        try:
            found = await self._found.get(patience=PATIENCE)
        except Exception:  # noqa: BLE001  whatever it is, the list has an answer without it
            return None, ["broker"]
        if found.error is not None or found.value.problem is not None:
            return None, ["broker"]
        queues = {queue: count for queue, count in found.value.queues.items() if count}
        return Unarchived(count=sum(queues.values()), queues=queues, as_of=found.as_of), []

    async def close(self) -> None:
        """Ends what is being asked."""
        await self._found.close()

    async def _look(self) -> Found:
        from outbox.transports.rabbitmq.topology import dead_letter_queue

        known = await PostgresArchive(self._admin.pool, self._admin.table).known_queues()
        dead_letters = {dead_letter_queue(queue): queue for queue in known}
        depths = await self._broker.depths(dead_letters)
        queues = {
            dead_letters[seen.name]: (seen.ready or 0) + (seen.unacked or 0)
            for seen in depths.queues
            if seen.name in dead_letters
        }
        return Found(queues, depths.problem)
