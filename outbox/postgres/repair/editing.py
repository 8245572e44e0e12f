"""Requeueing one dead letter with another body or other headers; what they replace is kept as an edition."""

from dataclasses import dataclass
from typing import Any

import asyncpg

from outbox.core.codec import OCTETS, decode_tracking_ids, encode_body, encode_headers
from outbox.errors import MalformedMessageError
from outbox.masking import Masking, preview, searchable
from outbox.postgres.dead_letters.letters import PARKED_PREFIX
from outbox.postgres.dead_letters.selecting import dead_ids, parked_ids
from outbox.postgres.deaths import Storable
from outbox.postgres.names import TableName
from outbox.postgres.pool import Connection, Pool
from outbox.postgres.repair.changes import Changes, Request
from outbox.postgres.repair.statements import TIMEOUT, Statements
from outbox.postgres.repair.values import Also, Edit, Item, ItemOutcome, Repaired

_SAME_DEATH = "edited so, it would be another dead letter of this message: requeue that one"

_KNOWN_DEATH = "there is a dead letter of the same message with this body: restore and requeue that one, and discard this one"


class Editing:
    """Edits and requeues in one transaction: either both happened, or neither."""

    def __init__(self, pool: Pool, table: TableName, changes: Changes, masking: Masking) -> None:
        self._sql = Statements(pool, table, "repair.sql")
        self._changes = changes
        self._masking = masking

    async def requeue(self, request: Request, id_: str, edit: Edit, *, also: Also[Repaired] | None = None) -> Repaired:
        """Requeues the dead letter `id_` as `edit` wants it, if it is still the version that was read.

        `also` is done in the transaction of it; if nothing came of it, in one of its own, because everything was taken back.
        Raises `EncodingError` for a body or headers that cannot be stored, reserved headers among them.
        """
        queues = await self._changes.known_queues(request, [id_])
        try:
            async with self._sql.transaction("requeueing an edited dead letter") as connection:
                await self._changes.lock(connection, request, [id_])
                await self._edit(connection, request, id_, edit)
                [change] = await self._changes.apply(connection, request, [id_], queues)
                _require_done(change.item)
                return await _told(connection, Repaired(request.action, [change.item]), also)
        except _UndoneError as undone:
            async with self._sql.transaction("telling of an edit that was refused") as connection:
                return await _told(connection, Repaired(request.action, [undone.item]), also)

    async def _edit(self, connection: Connection, request: Request, id_: str, edit: Edit) -> None:
        """Changes what is there; what is not, or is no dead letter any more, is told by the requeue that follows."""
        if id_.startswith(PARKED_PREFIX):
            await self._edit_parked(connection, request, id_, edit)
            return
        for number in dead_ids([id_]):
            row = await connection.fetchrow(self._sql["letter_to_edit"], number, timeout=TIMEOUT)
            if row is not None and row["status"] == "open":
                _require_version(id_, edit, row["version"])
                try:
                    await self._replace(connection, request, number, row, _edited(row, edit))
                except asyncpg.UniqueViolationError:
                    raise _UndoneError(Item(id_, ItemOutcome.REFUSED, _SAME_DEATH)) from None

    async def _edit_parked(self, connection: Connection, request: Request, id_: str, edit: Edit) -> None:
        for number in parked_ids([id_]):
            parked = await connection.fetchrow(self._sql["copy_parked"], number, request.by, request.reason, timeout=TIMEOUT)
            if parked is None:
                return
            _require_version(id_, edit, 1)
            copy = parked["id"]
            if copy is None:
                raise _UndoneError(Item(id_, ItemOutcome.REFUSED, _KNOWN_DEATH))
            row = await connection.fetchrow(self._sql["letter_to_edit"], copy, timeout=TIMEOUT)
            payload = _edited(row, edit)
            try:
                await self._replace(connection, request, copy, row, payload)
            except asyncpg.UniqueViolationError:
                raise _UndoneError(Item(id_, ItemOutcome.REFUSED, _SAME_DEATH)) from None
            await connection.execute(
                self._sql["edit_parked"], number, payload.body, payload.content_type, payload.headers, timeout=TIMEOUT
            )

    async def _replace(self, connection: Connection, request: Request, number: int, row: Any, payload: "_Payload") -> None:
        storable = Storable(connection.get_settings().server_encoding)
        words = (row["queue"], row["routing_key"], *_ids(row["tracking_ids"]), row["message_id"] or "")
        error = f"{row['exception_type']} {row['exception_message']}"
        # The error quotes what was published, the preview what is published now.
        masking = self._masking.of_message(row["body"], row["headers"]).of_message(payload.body, payload.headers)
        search = searchable(payload.body, payload.content_type, masking, error=error, words=words)
        await connection.execute(
            self._sql["edit_letter"],
            number,
            row["version"],
            payload.body,
            payload.content_type,
            payload.headers,
            request.by,
            storable.text(preview(payload.body, payload.content_type, masking)),
            storable.text(search),
            timeout=TIMEOUT,
        )


class _UndoneError(Exception):
    """The requeue was not done, so the edit must not be either."""

    def __init__(self, item: Item) -> None:
        super().__init__(item.reason)
        self.item = item


@dataclass(frozen=True, slots=True)
class _Payload:
    """A body, its kind, and headers as JSON."""

    body: bytes
    content_type: str | None
    headers: str | None


async def _told(connection: Connection, repaired: Repaired, also: Also[Repaired] | None) -> Repaired:
    if also is not None:
        await also(connection, repaired)
    return repaired


def _require_done(item: Item) -> None:
    if item.outcome is not ItemOutcome.DONE:
        raise _UndoneError(item)


def _require_version(id_: str, edit: Edit, version: int) -> None:
    if edit.version != version:
        reason = f"version {edit.version} was read, and version {version} is there now: look at it again"
        raise _UndoneError(Item(id_, ItemOutcome.REFUSED, reason))


def _edited(row: Any, edit: Edit) -> _Payload:
    """What `row` carries after `edit`. Bytes say nothing of their kind, so it stays."""
    body, content_type, headers = row["body"], row["content_type"], row["headers"]
    if edit.body is not None:
        body, kind = encode_body(edit.body, routing_key=row["routing_key"])
        content_type = content_type if kind == OCTETS and content_type is not None else kind
    if edit.headers is not None:
        headers = encode_headers(edit.headers, routing_key=row["routing_key"])
    return _Payload(body, content_type, headers)


def _ids(text: str) -> tuple[str, ...]:
    try:
        return decode_tracking_ids(text, source="the column tracking_ids")
    except MalformedMessageError:
        return ()
