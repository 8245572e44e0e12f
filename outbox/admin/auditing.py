"""Writes down who did what: in the transaction of the deed, so that there is neither one without the other."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from outbox.postgres.access.audit import AuditOutcome, Entry, write_entry
from outbox.postgres.pool import Connection

if TYPE_CHECKING:
    from outbox.admin.access import Asked

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
    asked: "Asked",
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
        actor=asked.principal.name,
        role=asked.principal.role,
        action=action,
        target=target,
        outcome=outcome,
        reason=reason,
        details=details,
        request_id=asked.request_id,
        address=asked.address,
    )
    await write_entry(connection, asked.admin.table, entry)


def action_of(operation: str) -> str:
    """What the audit calls an operation of the API, done or denied: `dlq.requeue`, `operations.pause`, `pause`."""
    return _DEEDS.get(operation) or operation.removeprefix("outbox_").replace("_", ".")


async def record_denied(asked: "Asked", *, action: str, target: str = "", details: Mapping[str, Any] = _NOTHING) -> None:
    """Writes down, in a transaction of its own, that somebody tried what they may not do."""
    async with asked.admin.changing("writing to the audit") as connection:
        await record(connection, asked, action=action, target=target, outcome="denied", details=details)
