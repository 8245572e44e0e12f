"""The Publisher: writes messages into the outbox table, within the caller's own transaction."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, Generic, Literal, Unpack, overload

from typing_extensions import TypeVar

from outbox.core.clock import HybridClock, as_clock
from outbox.core.message import OutboxMessage, PublishOptions
from outbox.core.outcome import qualified_name
from outbox.engine.rows import Row, as_expiration, checked_dedup_key, rows_of
from outbox.errors import TransactionRequiredError
from outbox.postgres.handles import async_writer, is_async, sync_writer
from outbox.postgres.handles.insert import Statements, cancel_steps, execute_async, execute_sync, publish_steps
from outbox.postgres.handles.shapes import AsyncHandle, SyncHandle
from outbox.postgres.queries import TableName

_log = logging.getLogger("outbox")

# The default is for type checkers: `BoundPublisher` without a parameter is one whose methods are awaited.
HandleT_co = TypeVar("HandleT_co", covariant=True, default=AsyncHandle)


class Publisher:
    """Publishes events through a handle of the caller's: they are sent if its transaction commits, and never otherwise.

    A handle is a SQLAlchemy session or connection, an asyncpg connection, or a psycopg or psycopg2 connection or cursor; the
    Publisher executes one `insert` through it, and neither commits nor rolls back. With an async handle `publish`,
    `bulk_publish` and `cancel` have to be awaited, with a sync one they have done it when they return. One Publisher serves any
    number of threads, tasks and handles.

    `expiration` (seconds or a timedelta) is for messages that name none: how long after its first sending a message is of use,
    retries included. A handle without an open transaction publishes with a WARNING, or, with `require_transaction`, raises
    `TransactionRequiredError`: its event would be committed by itself, whatever becomes of the work that it speaks of.

    `serialize`: before messages with an ordering key are written their keys are locked until the transaction ends, so that
    publishers of one key wait for each other, and its order is that of their commits. `clock` stamps messages with a hybrid
    logical clock: a `HybridClock`, or "hlc" for the one of this process.
    """

    def __init__(
        self,
        expiration: float | timedelta | None = None,
        table_name: str = "outbox_table",
        *,
        require_transaction: bool = False,
        serialize: bool = False,
        clock: Literal["hlc"] | HybridClock | None = None,
    ) -> None:
        self._expiration = as_expiration(expiration)
        self._table = TableName.parse(table_name)
        self._statements = Statements.on(self._table)
        self._require_transaction = require_transaction
        self._serialize = serialize
        self._clock = as_clock(clock)

    def __repr__(self) -> str:
        return f"Publisher(table_name={str(self._table)!r})"

    @overload
    def publish(
        self, handle: AsyncHandle, routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None]: ...

    @overload
    def publish(self, handle: SyncHandle, routing_key: str, body: object, **options: Unpack[PublishOptions]) -> str | None: ...

    def publish(
        self, handle: Any, routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None] | str | None:
        """Writes one message and returns its id; to be awaited if `handle` is async.

        `body`: a pydantic model becomes its JSON, bytes stay as they are, anything else goes through `json.dumps`.

        Options, all of them keywords: `expiration`: seconds or a timedelta. `eta`: when to send it, as a datetime (naive means
        local time), or as a timedelta or milliseconds from now. `headers`: JSON values, which travel with it.
        `ordering_key`: messages of one key leave one after another, in the order of their row ids. `priority`: 0 to 9, higher
        first, and only without an ordering key. `dedup_key`: the name of one logical event or timer, of at most 1,000 bytes.
        While a message with it is pending, `on_conflict="ignore"` (the default) writes nothing and returns None;
        `on_conflict="replace"` withdraws the pending one and writes this one, with an id of its own. Callers of one dedup key
        wait until each other's transactions end, and never for a relay: what it is just sending is not pending any more.

        Raises `UnsupportedHandleError`, `ConfigurationError` or `EncodingError` before anything is written, with the
        transaction as it was, and the driver's own errors.
        """
        if is_async(handle):
            return self.publish_async(handle, routing_key, body, **options)
        return self.publish_sync(handle, routing_key, body, **options)

    async def publish_async(
        self, handle: AsyncHandle, routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> str | None:
        """`publish` for async handles only."""
        (id_,) = await self.bulk_publish_async(handle, [OutboxMessage(routing_key, body, **options)])
        return id_

    def publish_sync(self, handle: SyncHandle, routing_key: str, body: object, **options: Unpack[PublishOptions]) -> str | None:
        """`publish` for sync handles only."""
        (id_,) = self.bulk_publish_sync(handle, [OutboxMessage(routing_key, body, **options)])
        return id_

    @overload
    def bulk_publish(self, handle: AsyncHandle, messages: Iterable[OutboxMessage]) -> Awaitable[list[str | None]]: ...

    @overload
    def bulk_publish(self, handle: SyncHandle, messages: Iterable[OutboxMessage]) -> list[str | None]: ...

    def bulk_publish(self, handle: Any, messages: Iterable[OutboxMessage]) -> Awaitable[list[str | None]] | list[str | None]:
        """Writes all `messages` in one statement and returns their ids, in order; to be awaited if `handle` is async.

        The answer is that of publishing one after another: None for what met a pending message, be it in the table or earlier
        in `messages`. All are checked and encoded before anything is written; raises what `publish` raises. More than 64 MiB of
        messages are split over several statements, still in the one transaction; dedup keys, and ordering keys with
        `serialize`, take one statement more.
        """
        if is_async(handle):
            return self.bulk_publish_async(handle, messages)
        return self.bulk_publish_sync(handle, messages)

    async def bulk_publish_async(self, handle: AsyncHandle, messages: Iterable[OutboxMessage]) -> list[str | None]:
        """`bulk_publish` for async handles only."""
        writer = async_writer(handle, self._table)
        rows = self._rows(messages)
        if rows and not await writer.in_transaction():
            self._object_to_no_transaction(handle, _publishing(rows), locks=self._serialize or _have_dedup_keys(rows))
        return await execute_async(writer, publish_steps(rows, self._statements, serialize=self._serialize))

    def bulk_publish_sync(self, handle: SyncHandle, messages: Iterable[OutboxMessage]) -> list[str | None]:
        """`bulk_publish` for sync handles only."""
        writer = sync_writer(handle, self._table)
        rows = self._rows(messages)
        if rows and not writer.in_transaction():
            self._object_to_no_transaction(handle, _publishing(rows), locks=self._serialize or _have_dedup_keys(rows))
        return execute_sync(writer, publish_steps(rows, self._statements, serialize=self._serialize))

    @overload
    def cancel(self, handle: AsyncHandle, dedup_key: str) -> Awaitable[bool]: ...

    @overload
    def cancel(self, handle: SyncHandle, dedup_key: str) -> bool: ...

    def cancel(self, handle: Any, dedup_key: str) -> Awaitable[bool] | bool:
        """Withdraws the pending message with `dedup_key`, within the caller's transaction; to be awaited if `handle` is async.

        False: there is none, or a relay is just sending it, which is not waited for; what was sent or parked stays as it is.
        Raises what `publish` raises.
        """
        if is_async(handle):
            return self.cancel_async(handle, dedup_key)
        return self.cancel_sync(handle, dedup_key)

    async def cancel_async(self, handle: AsyncHandle, dedup_key: str) -> bool:
        """`cancel` for async handles only."""
        writer = async_writer(handle, self._table)
        key = checked_dedup_key(dedup_key)
        if not await writer.in_transaction():
            self._object_to_no_transaction(handle, f"cancelling {key!r}", locks=True)
        return await execute_async(writer, cancel_steps(key, self._statements))

    def cancel_sync(self, handle: SyncHandle, dedup_key: str) -> bool:
        """`cancel` for sync handles only."""
        writer = sync_writer(handle, self._table)
        key = checked_dedup_key(dedup_key)
        if not writer.in_transaction():
            self._object_to_no_transaction(handle, f"cancelling {key!r}", locks=True)
        return execute_sync(writer, cancel_steps(key, self._statements))

    def _rows(self, messages: Iterable[OutboxMessage]) -> list[Row]:
        stamp = None if self._clock is None else self._clock.next
        return rows_of(messages, default_expiration=self._expiration, stamp=stamp)

    def _object_to_no_transaction(self, handle: object, what: str, *, locks: bool) -> None:
        handle_type = qualified_name(type(handle))
        if self._require_transaction:
            raise TransactionRequiredError(
                f"{handle_type} has no open transaction (autocommit): nothing was written. Begin one, so that the event "
                f"and the work that it speaks of are committed together"
            )
        consequence = "; the locks of its keys end at once, too, and keep nobody away" if locks else ""
        _log.warning(
            "%s through %s without an open transaction: it is committed at once, by itself%s", what, handle_type, consequence
        )


def _publishing(rows: Sequence[Row]) -> str:
    first = f"{rows[0].id} with the routing key {rows[0].routing_key!r}"
    return f"publishing {first}" if len(rows) == 1 else f"publishing {len(rows)} messages, the first {first},"


def _have_dedup_keys(rows: Sequence[Row]) -> bool:
    return any(row.extras is not None and row.extras.dedup_key is not None for row in rows)


class BoundPublisher(Generic[HandleT_co]):
    """A Publisher together with the handle that it publishes through: a request's session, or a message handler's.

    It lasts as long as the transaction that it was made for. After `close`, its methods raise `TransactionRequiredError`.
    """

    def __init__(self, publisher: Publisher, handle: HandleT_co) -> None:
        self._publisher = publisher
        self._handle = handle
        self._closed = False

    def __repr__(self) -> str:
        return f"BoundPublisher({self._publisher!r}, {qualified_name(type(self._handle))})"

    def close(self) -> None:
        """Ends the publisher; its maker calls this when the transaction is about to end. Idempotent.

        A session may begin another transaction by itself when it is used again. What a background task wrote there would
        never be committed, and its connection would stay open in that transaction.
        """
        self._closed = True

    @overload
    def publish(
        self: "BoundPublisher[AsyncHandle]", routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None]: ...

    @overload
    def publish(
        self: "BoundPublisher[SyncHandle]", routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> str | None: ...

    def publish(
        self: "BoundPublisher[Any]", routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None] | str | None:
        """`Publisher.publish` through the handle; to be awaited if that is async."""
        answer: Awaitable[str | None] | str | None = self._while_open(
            lambda: self._publisher.publish(self._handle, routing_key, body, **options)
        )
        return answer

    @overload
    def bulk_publish(self: "BoundPublisher[AsyncHandle]", messages: Iterable[OutboxMessage]) -> Awaitable[list[str | None]]: ...

    @overload
    def bulk_publish(self: "BoundPublisher[SyncHandle]", messages: Iterable[OutboxMessage]) -> list[str | None]: ...

    def bulk_publish(
        self: "BoundPublisher[Any]", messages: Iterable[OutboxMessage]
    ) -> Awaitable[list[str | None]] | list[str | None]:
        """`Publisher.bulk_publish` through the handle; to be awaited if that is async."""
        answer: Awaitable[list[str | None]] | list[str | None] = self._while_open(
            lambda: self._publisher.bulk_publish(self._handle, messages)
        )
        return answer

    @overload
    def cancel(self: "BoundPublisher[AsyncHandle]", dedup_key: str) -> Awaitable[bool]: ...

    @overload
    def cancel(self: "BoundPublisher[SyncHandle]", dedup_key: str) -> bool: ...

    def cancel(self: "BoundPublisher[Any]", dedup_key: str) -> Awaitable[bool] | bool:
        """`Publisher.cancel` through the handle; to be awaited if that is async."""
        answer: Awaitable[bool] | bool = self._while_open(lambda: self._publisher.cancel(self._handle, dedup_key))
        return answer

    def _while_open(self, work: Callable[[], Any]) -> Any:
        self._require_open()

        async def later() -> Any:
            self._require_open()  # again: a task that was made before the end of the transaction may begin to run after it
            return await work()

        return later() if is_async(self._handle) else work()

    def _require_open(self) -> None:
        if self._closed:
            raise TransactionRequiredError(
                "the transaction of this publisher has ended, with its request or its handler: nothing was written. What runs "
                "later, such as a background task, publishes through a session of its own: "
                "`async with sessions.begin() as session: await Publisher().publish(session, …)`"
            )
