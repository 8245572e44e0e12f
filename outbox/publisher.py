"""The Publisher: writes messages into the outbox table, within the caller's own transaction."""

import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, overload

from outbox.engine.publishing import Row, as_expiration, rows_of
from outbox.errors import TransactionRequiredError
from outbox.message import OutboxMessage
from outbox.outcome import qualified_name
from outbox.postgres.handles import async_writer, is_async, sync_writer
from outbox.postgres.handles.insert import Insert, statements
from outbox.postgres.handles.shapes import AsyncHandle, SyncHandle
from outbox.postgres.names import TableName

_log = logging.getLogger("outbox")

HandleT_co = TypeVar("HandleT_co", covariant=True)


class Publisher:
    """Publishes events through a handle of the caller's: they are sent if its transaction commits, and never otherwise.

    A handle is a SQLAlchemy session or connection, an asyncpg connection, or a psycopg or psycopg2 connection or cursor; the
    Publisher executes one `insert` through it, and neither commits nor rolls back. With an async handle `publish` and
    `bulk_publish` have to be awaited, with a sync one they have done it when they return. One Publisher serves any number of
    threads, tasks and handles.

    `expiration` (seconds or a timedelta) is for messages that name none: how long after its first sending a message is of use,
    retries included. A handle without an open transaction publishes with a WARNING, or, with `require_transaction`, raises
    `TransactionRequiredError`: its event would be committed by itself, whatever becomes of the work that it speaks of.
    """

    def __init__(
        self,
        expiration: float | timedelta | None = None,
        table_name: str = "outbox_table",
        *,
        require_transaction: bool = False,
    ) -> None:
        self._expiration = as_expiration(expiration)
        self._insert = Insert.into(TableName.parse(table_name))
        self._require_transaction = require_transaction

    def __repr__(self) -> str:
        return f"Publisher(table_name={str(self._insert.table)!r})"

    @overload
    def publish(
        self,
        handle: AsyncHandle,
        routing_key: str,
        body: object,
        *,
        expiration: float | timedelta | None = None,
        eta: datetime | timedelta | float | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> Awaitable[str | None]: ...

    @overload
    def publish(
        self,
        handle: SyncHandle,
        routing_key: str,
        body: object,
        *,
        expiration: float | timedelta | None = None,
        eta: datetime | timedelta | float | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> str | None: ...

    def publish(
        self,
        handle: Any,
        routing_key: str,
        body: object,
        *,
        expiration: float | timedelta | None = None,
        eta: datetime | timedelta | float | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> Awaitable[str | None] | str | None:
        """Writes one message and returns its id; to be awaited if `handle` is async.

        `body`: a pydantic model becomes its JSON, bytes stay as they are, anything else goes through `json.dumps`.
        `expiration`: seconds or a timedelta. `eta`: when to send it, as a datetime (naive means local time), or as a timedelta
        or milliseconds from now. `headers`: JSON values, which travel with it.

        Raises `UnsupportedHandleError`, `ConfigurationError` or `EncodingError` before anything is written, with the
        transaction as it was, and the driver's own errors.
        """
        if is_async(handle):
            return self.publish_async(handle, routing_key, body, expiration=expiration, eta=eta, headers=headers)
        return self.publish_sync(handle, routing_key, body, expiration=expiration, eta=eta, headers=headers)

    async def publish_async(
        self,
        handle: AsyncHandle,
        routing_key: str,
        body: object,
        *,
        expiration: float | timedelta | None = None,
        eta: datetime | timedelta | float | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> str | None:
        """`publish` for async handles only."""
        message = OutboxMessage(routing_key, body, expiration, eta, headers=headers)
        (id_,) = await self.bulk_publish_async(handle, [message])
        return id_

    def publish_sync(
        self,
        handle: SyncHandle,
        routing_key: str,
        body: object,
        *,
        expiration: float | timedelta | None = None,
        eta: datetime | timedelta | float | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> str | None:
        """`publish` for sync handles only."""
        message = OutboxMessage(routing_key, body, expiration, eta, headers=headers)
        (id_,) = self.bulk_publish_sync(handle, [message])
        return id_

    @overload
    def bulk_publish(self, handle: AsyncHandle, messages: Iterable[OutboxMessage]) -> Awaitable[list[str | None]]: ...

    @overload
    def bulk_publish(self, handle: SyncHandle, messages: Iterable[OutboxMessage]) -> list[str | None]: ...

    def bulk_publish(self, handle: Any, messages: Iterable[OutboxMessage]) -> Awaitable[list[str | None]] | list[str | None]:
        """Writes all `messages` in one statement and returns their ids, in order; to be awaited if `handle` is async.

        All are checked and encoded before anything is written; raises what `publish` raises. More than 64 MiB of messages
        are split over several statements, still in the one transaction.
        """
        if is_async(handle):
            return self.bulk_publish_async(handle, messages)
        return self.bulk_publish_sync(handle, messages)

    async def bulk_publish_async(self, handle: AsyncHandle, messages: Iterable[OutboxMessage]) -> list[str | None]:
        """`bulk_publish` for async handles only."""
        writer = async_writer(handle, self._insert)
        rows = rows_of(messages, default_expiration=self._expiration)
        if rows and not await writer.in_transaction():
            self._object_to_no_transaction(handle, rows)
        for values in statements(rows):
            await writer.write(values)
        return [row.id for row in rows]

    def bulk_publish_sync(self, handle: SyncHandle, messages: Iterable[OutboxMessage]) -> list[str | None]:
        """`bulk_publish` for sync handles only."""
        writer = sync_writer(handle, self._insert)
        rows = rows_of(messages, default_expiration=self._expiration)
        if rows and not writer.in_transaction():
            self._object_to_no_transaction(handle, rows)
        for values in statements(rows):
            writer.write(values)
        return [row.id for row in rows]

    def _object_to_no_transaction(self, handle: object, rows: Sequence[Row]) -> None:
        what = f"{rows[0].id} with the routing key {rows[0].routing_key!r}"
        if len(rows) > 1:
            what = f"{len(rows)} messages, the first {what},"
        handle_type = qualified_name(type(handle))
        if self._require_transaction:
            raise TransactionRequiredError(
                f"{handle_type} has no open transaction (autocommit): nothing was published. Begin one, so that the event "
                f"and the work that it speaks of are committed together"
            )
        _log.warning(
            "publishing %s through %s without an open transaction: it is committed at once, by itself", what, handle_type
        )


class BoundPublisher(Generic[HandleT_co]):
    """A Publisher together with the handle that it publishes through: a request's session, or a message handler's."""

    def __init__(self, publisher: Publisher, handle: HandleT_co) -> None:
        self._publisher = publisher
        self._handle = handle

    def __repr__(self) -> str:
        return f"BoundPublisher({self._publisher!r}, {qualified_name(type(self._handle))})"

    @overload
    def publish(
        self: "BoundPublisher[AsyncHandle]",
        routing_key: str,
        body: object,
        *,
        expiration: float | timedelta | None = None,
        eta: datetime | timedelta | float | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> Awaitable[str | None]: ...

    @overload
    def publish(
        self: "BoundPublisher[SyncHandle]",
        routing_key: str,
        body: object,
        *,
        expiration: float | timedelta | None = None,
        eta: datetime | timedelta | float | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> str | None: ...

    def publish(
        self: "BoundPublisher[Any]",
        routing_key: str,
        body: object,
        *,
        expiration: float | timedelta | None = None,
        eta: datetime | timedelta | float | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> Awaitable[str | None] | str | None:
        """`Publisher.publish` through the handle; to be awaited if that is async."""
        published: Awaitable[str | None] | str | None = self._publisher.publish(
            self._handle, routing_key, body, expiration=expiration, eta=eta, headers=headers
        )
        return published

    @overload
    def bulk_publish(self: "BoundPublisher[AsyncHandle]", messages: Iterable[OutboxMessage]) -> Awaitable[list[str | None]]: ...

    @overload
    def bulk_publish(self: "BoundPublisher[SyncHandle]", messages: Iterable[OutboxMessage]) -> list[str | None]: ...

    def bulk_publish(
        self: "BoundPublisher[Any]", messages: Iterable[OutboxMessage]
    ) -> Awaitable[list[str | None]] | list[str | None]:
        """`Publisher.bulk_publish` through the handle; to be awaited if that is async."""
        published: Awaitable[list[str | None]] | list[str | None] = self._publisher.bulk_publish(self._handle, messages)
        return published
