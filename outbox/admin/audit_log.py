"""Writes the audit log, in the transaction of the change, so that neither exists without the other."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

from outbox.errors import DatabaseUnavailableError
from outbox.postgres.audit import AuditOutcome, Entry, write_entry
from outbox.postgres.pool import Connection

if TYPE_CHECKING:
    from outbox.admin.access import RequestContext
    from outbox.admin.admin import Admin

logger = logging.getLogger("outbox")

MOST_REFUSALS = 100
"""What one principal was denied, or failed to do, that is written down within `REFUSALS_WINDOW` by each process."""
REFUSALS_WINDOW = timedelta(minutes=1)
REQUEST_CONTEXT = "outbox_request_context"
"""Where a request has who asks, once that is known."""

_DEEDS = {
    "outbox_requeue": "dlq.requeue",
    "outbox_discard": "dlq.discard",
    "outbox_restore": "dlq.restore",
    "outbox_dlq_body": "dlq.download",
    "outbox_dlq_show": "dlq.reveal",  # nothing else of it is written down
    "outbox_messages_show": "messages.reveal",
}
_NOTHING: Mapping[str, Any] = {}


async def record(
    connection: Connection,
    context: "RequestContext",
    *,
    action: str,
    target: str = "",
    outcome: AuditOutcome = "done",
    reason: str | None = None,
    details: Mapping[str, Any] = _NOTHING,
) -> None:
    """Writes an entry on `connection`, in the transaction that is open there.

    `action` is a word of the area and what was done, as in `dlq.requeue`; `target` says to what. Texts that are too long are
    cut, and what the database cannot hold is replaced: no entry is refused because of what somebody wrote.
    """
    entry = Entry(
        actor=context.principal.name,
        role=context.principal.role,
        action=action,
        target=target,
        outcome=outcome,
        reason=reason,
        details=details,
        request_id=context.request_id,
        client_request_id=context.client_request_id,
        address=context.address,
    )
    await write_entry(connection, context.admin.table, entry)


def action_of(operation: str) -> str:
    """What the audit calls an operation of the API, done or denied: `dlq.requeue`, `operations.pause`, `pause`."""
    return _DEEDS.get(operation) or operation.removeprefix("outbox_").replace("_", ".")


async def record_refused(
    context: "RequestContext", outcome: AuditOutcome, *, action: str, target: str = "", details: Mapping[str, Any] = _NOTHING
) -> None:
    """Writes down, in a transaction of its own, that somebody tried what they may not do, or what failed.

    Of what one principal tries within a minute the first hundred are written down; the next entry tells how many were not.
    While the database is away, the log tells it.
    """
    left_out = context.admin.shared(_Refusals).count(context.principal.name)
    if left_out is None:
        return
    more = {"left_out": left_out} if left_out else {}
    try:
        async with context.admin.changing("writing to the audit") as connection:
            await record(connection, context, action=action, target=target, outcome=outcome, details={**details, **more})
    except DatabaseUnavailableError as error:
        logger.warning("%s of %s, which was %s, is not in the audit: %s", action, context.principal.name, outcome, error)


class _Refusals:
    """Counts them, for one admin, by principal."""

    def __init__(self, _admin: "Admin") -> None:
        self._windows: dict[str, _Window] = {}

    async def close(self) -> None:
        """There is nothing to close."""

    def count(self, principal: str) -> int | None:
        """How many were left out before this one, which is written down; None: it is left out, too."""
        now = monotonic()
        window = self._windows.get(principal)
        if window is None or now >= window.ends_at:
            left_out = 0 if window is None else max(0, window.count - MOST_REFUSALS)
            self._windows[principal] = _Window(now + REFUSALS_WINDOW.total_seconds(), 1)
            return left_out
        window.count += 1
        if window.count == MOST_REFUSALS + 1:
            logger.warning("%s is refused so often that the audit only counts it for a while", principal)
        return None if window.count > MOST_REFUSALS else 0


@dataclass(slots=True)
class _Window:
    ends_at: float
    count: int
