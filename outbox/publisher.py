"""The Publisher: writes messages into the outbox table, within the caller's transaction."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, Unpack, overload

from typing_extensions import TypeVar

from outbox.contracts import Event, ModelT
from outbox.core.arguments import body_tools
from outbox.core.clock import HybridClock, as_clock
from outbox.core.destinations import DEFAULT, Destinations, validate_destinations
from outbox.core.message import OutboxMessage, PublishOptions
from outbox.core.outcome import qualified_name
from outbox.engine.rows import Row, as_expiration, positions_above, rows_of, validate_dedup_key, with_stored_bodies
from outbox.errors import ConfigurationError, TransactionRequiredError
from outbox.postgres.handles import async_writer, is_async, sync_writer
from outbox.postgres.handles.insert import Statements, Steps, cancel_steps, execute_async, execute_sync, publish_steps
from outbox.postgres.handles.shapes import AsyncHandle, SyncHandle
from outbox.postgres.queries import TableName
from outbox.runtime.tracer import publishing_span

if TYPE_CHECKING:
    from outbox.encryption import Encryption
    from outbox.large_bodies import LargeBodies

_log = logging.getLogger("outbox")

# The default is for type checkers: `BoundPublisher` without a parameter is one whose methods are awaited.
HandleT_co = TypeVar("HandleT_co", covariant=True, default=AsyncHandle)


class Publisher:
    """Publishes events through the caller's database handle. They are sent if its transaction commits, and never otherwise.

    A handle is a SQLAlchemy session or connection, an asyncpg connection, or a psycopg or psycopg2 connection or cursor. The
    Publisher executes one `insert` through it, and neither commits nor rolls back. With an async handle, await `publish`,
    `bulk_publish` and `cancel`; with a sync one they are done when they return. A Publisher may be shared by any number of
    threads, tasks and handles.

    `expiration` (seconds or a timedelta) is the default for messages without one: how long after its first sending a message
    may still be handled, including retries. Without an open transaction the event is committed by itself, even if the
    caller's work fails: that logs a WARNING, or with `require_transaction` raises `TransactionRequiredError`.

    `serialize` locks the ordering keys of messages until the transaction ends, before the messages are written. Publishers of
    one key then wait for each other, and its messages are in the order of their commits. `clock` stamps messages with a hybrid
    logical clock: a `HybridClock`, or "hlc" for the clock of this process. `destinations` has rules that choose the brokers of
    each message by its routing key; without them everything goes to the default destination. The table of each other
    destination must exist: `outbox migrate --destination kafka` creates it.

    With `enable_tracing`, and once the process has configured a tracer provider of OpenTelemetry, publishing is a span, and its
    trace context travels in the headers `traceparent` and `tracestate`. A `traceparent` that you give stays as it is.

    `encryption`, an `outbox.encryption.Encryption`, encrypts the body of each message. Its content type, headers and routing
    key stay readable. `large_bodies`, an `outbox.large_bodies.LargeBodies`, keeps large bodies in a store. They are stored
    before the rows are written, encrypted if the others are, so that a message never refers to a body that does not exist.
    """

    def __init__(
        self,
        expiration: float | timedelta | None = None,
        table_name: str = "outbox_table",
        *,
        require_transaction: bool = False,
        serialize: bool = False,
        clock: Literal["hlc"] | HybridClock | None = None,
        destinations: Destinations | None = None,
        enable_tracing: bool = True,
        encryption: "Encryption | None" = None,
        large_bodies: "LargeBodies | None" = None,
    ) -> None:
        if destinations is not None and not isinstance(destinations, Destinations):
            raise ConfigurationError(f"destinations must be outbox.Destinations with rules, not {destinations!r:.80}")
        body_tools(encryption=encryption, large_bodies=large_bodies)
        self._expiration = as_expiration(expiration)
        self._table = TableName.parse(table_name)
        self._statements = Statements.on(self._table)
        self._destinations = destinations
        self._by_destination: dict[str, Statements] = {DEFAULT: self._statements}
        for rule in () if destinations is None else destinations.rules:
            for name in rule.names:
                self._statements_of(name)
        self._require_transaction = require_transaction
        self._serialize = serialize
        self._clock = as_clock(clock)
        self._span: Callable[[Iterable[OutboxMessage]], AbstractContextManager[Iterable[OutboxMessage]]]
        self._span = publishing_span if enable_tracing else nullcontext
        self._encryption = encryption
        self._large_bodies = large_bodies

    def __repr__(self) -> str:
        return f"Publisher(table_name={str(self._table)!r})"

    @overload
    def publish(
        self, handle: AsyncHandle, routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None]: ...

    @overload
    def publish(
        self, handle: AsyncHandle, routing_key: Event[ModelT], body: ModelT, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None]: ...

    @overload
    def publish(self, handle: SyncHandle, routing_key: str, body: object, **options: Unpack[PublishOptions]) -> str | None: ...

    @overload
    def publish(
        self, handle: SyncHandle, routing_key: Event[ModelT], body: ModelT, **options: Unpack[PublishOptions]
    ) -> str | None: ...

    def publish(
        self, handle: Any, routing_key: str | Event[Any], body: object, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None] | str | None:
        """Writes one message and returns its id. Await the result if `handle` is async.

        `routing_key`: a key, or an `outbox.contracts.Event`, which requires a `body` of its model and adds its version.
        `body`: a pydantic model is stored as its JSON, bytes unchanged, anything else as the result of `json.dumps`.

        All options are keywords. `expiration`: seconds or a timedelta. `eta`: when to send it, as a datetime (naive means
        local time), or as a timedelta or milliseconds from now. `headers`: JSON values, sent with the message.
        `ordering_key`: messages with the same key are sent one after another, in the order of their row ids. `priority`: 0 to
        9, higher first, and only without an ordering key. `dedup_key`: identifies one logical event or timer, at most 1,000
        bytes. While a message with the same key is pending, `on_conflict="ignore"` (the default) writes nothing and returns
        None; `on_conflict="replace"` replaces the pending message by this one, with a new id. Transactions with the same dedup
        key wait for each other. They never wait for a relay: a message that is being sent is no longer pending. `content_type`:
        the media type of the body, by default "application/json", or "application/octet-stream" for bytes. `destination`: one
        destination or several, such as "kafka", in place of the Publisher's rules. Each gets a row; all have the same id.

        Raises `UnsupportedHandleError`, `ConfigurationError` or `EncodingError` before anything is written, which leaves the
        transaction unchanged; with `large_bodies`, so do `BodyStoreUnavailableError` and the errors of the store. Also raises
        the driver's errors.
        """
        if is_async(handle):
            return self.publish_async(handle, routing_key, body, **options)
        return self.publish_sync(handle, routing_key, body, **options)

    @overload
    async def publish_async(
        self, handle: AsyncHandle, routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> str | None: ...

    @overload
    async def publish_async(
        self, handle: AsyncHandle, routing_key: Event[ModelT], body: ModelT, **options: Unpack[PublishOptions]
    ) -> str | None: ...

    async def publish_async(
        self, handle: AsyncHandle, routing_key: str | Event[Any], body: object, **options: Unpack[PublishOptions]
    ) -> str | None:
        """`publish` for async handles only."""
        (id_,) = await self.bulk_publish_async(handle, [message_of(routing_key, body, options)])
        return id_

    @overload
    def publish_sync(
        self, handle: SyncHandle, routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> str | None: ...

    @overload
    def publish_sync(
        self, handle: SyncHandle, routing_key: Event[ModelT], body: ModelT, **options: Unpack[PublishOptions]
    ) -> str | None: ...

    def publish_sync(
        self, handle: SyncHandle, routing_key: str | Event[Any], body: object, **options: Unpack[PublishOptions]
    ) -> str | None:
        """`publish` for sync handles only."""
        (id_,) = self.bulk_publish_sync(handle, [message_of(routing_key, body, options)])
        return id_

    @overload
    def bulk_publish(self, handle: AsyncHandle, messages: Iterable[OutboxMessage]) -> Awaitable[list[str | None]]: ...

    @overload
    def bulk_publish(self, handle: SyncHandle, messages: Iterable[OutboxMessage]) -> list[str | None]: ...

    def bulk_publish(self, handle: Any, messages: Iterable[OutboxMessage]) -> Awaitable[list[str | None]] | list[str | None]:
        """Writes all `messages` in one statement and returns their ids, in order. Await the result if `handle` is async.

        Returns the same as publishing them one by one: None for a message whose dedup key is pending, in the table or earlier
        in `messages`. Checks and encodes all of them before anything is written, and raises the errors of `publish`. More than
        64 MiB of messages take several statements in the same transaction. Dedup keys, and ordering keys with `serialize`, take
        one more statement.
        """
        if is_async(handle):
            return self.bulk_publish_async(handle, messages)
        return self.bulk_publish_sync(handle, messages)

    async def bulk_publish_async(self, handle: AsyncHandle, messages: Iterable[OutboxMessage]) -> list[str | None]:
        """`bulk_publish` for async handles only."""
        writer = async_writer(handle, self._table)
        with self._span(messages) as traced:
            batch, rows = self._rows(traced)
            if rows and not await writer.in_transaction():
                self._refuse_or_warn(handle, _publishing(rows), locks=self._serialize or _have_dedup_keys(rows))
            if (large := self._large_bodies) is not None and (positions := positions_above(rows, large.above)):
                headers = await large.put_all([rows[position].body for position in positions])
                rows = with_stored_bodies(rows, positions, headers)
            return await execute_async(writer, self._steps(batch, rows))

    def bulk_publish_sync(self, handle: SyncHandle, messages: Iterable[OutboxMessage]) -> list[str | None]:
        """`bulk_publish` for sync handles only."""
        writer = sync_writer(handle, self._table)
        with self._span(messages) as traced:
            batch, rows = self._rows(traced)
            if rows and not writer.in_transaction():
                self._refuse_or_warn(handle, _publishing(rows), locks=self._serialize or _have_dedup_keys(rows))
            if (large := self._large_bodies) is not None and (positions := positions_above(rows, large.above)):
                headers = large.put_all_sync([rows[position].body for position in positions])
                rows = with_stored_bodies(rows, positions, headers)
            return execute_sync(writer, self._steps(batch, rows))

    @overload
    def cancel(self, handle: AsyncHandle, dedup_key: str) -> Awaitable[bool]: ...

    @overload
    def cancel(self, handle: SyncHandle, dedup_key: str) -> bool: ...

    def cancel(self, handle: Any, dedup_key: str) -> Awaitable[bool] | bool:
        """Deletes the pending message with `dedup_key`, within the caller's transaction. Await the result if `handle` is async.

        Deletes it from every destination. Returns False if there is none, or if a relay is sending it; does not wait for the
        relay. Sent and parked messages are not changed. Raises the errors of `publish`.
        """
        if is_async(handle):
            return self.cancel_async(handle, dedup_key)
        return self.cancel_sync(handle, dedup_key)

    async def cancel_async(self, handle: AsyncHandle, dedup_key: str) -> bool:
        """`cancel` for async handles only."""
        writer = async_writer(handle, self._table)
        key = validate_dedup_key(dedup_key)
        if not await writer.in_transaction():
            self._refuse_or_warn(handle, f"cancelling {key!r}", locks=True)
        return await execute_async(writer, cancel_steps(key, self._statements))

    def cancel_sync(self, handle: SyncHandle, dedup_key: str) -> bool:
        """`cancel` for sync handles only."""
        writer = sync_writer(handle, self._table)
        key = validate_dedup_key(dedup_key)
        if not writer.in_transaction():
            self._refuse_or_warn(handle, f"cancelling {key!r}", locks=True)
        return execute_sync(writer, cancel_steps(key, self._statements))

    def _rows(self, messages: Iterable[OutboxMessage]) -> tuple[Sequence[OutboxMessage], list[Row]]:
        batch = list(messages)
        stamp = None if self._clock is None else self._clock.next
        encrypt = None if self._encryption is None else self._encryption.encrypt
        return batch, rows_of(batch, default_expiration=self._expiration, stamp=stamp, encrypt=encrypt)

    def _steps(self, batch: Sequence[OutboxMessage], rows: Sequence[Row]) -> Steps[list[str | None]]:
        """Inserts `rows`, those of `batch`, for all of their destinations. Returns an id for each; None: written to none."""
        if self._destinations is None and all(message.destination is None for message in batch):
            return publish_steps(rows, self._statements, serialize=self._serialize)
        positions: dict[str, list[int]] = {}
        for position, message in enumerate(batch):
            if message.destination is not None:
                names: Sequence[str] = validate_destinations(message.destination)
            else:
                names = (DEFAULT,) if self._destinations is None else self._destinations.of(message.routing_key)
            for name in names:
                positions.setdefault(name, []).append(position)
        # In the order of their names, so that two publishers take the locks of keys in one order.
        wanted = [(self._statements_of(name), positions[name]) for name in sorted(positions)]

        def steps() -> Steps[list[str | None]]:
            ids: list[str | None] = [None] * len(rows)
            for statements, chosen in wanted:
                published = yield from publish_steps([rows[each] for each in chosen], statements, serialize=self._serialize)
                for each, id_ in zip(chosen, published, strict=True):
                    ids[each] = ids[each] or id_
            return ids

        return steps()

    def _statements_of(self, destination: str) -> Statements:
        if (found := self._by_destination.get(destination)) is None:
            # Here, because it takes asyncpg, which a Publisher with one destination does not need.
            from outbox.postgres.schema.objects import destination_table

            found = self._by_destination[destination] = Statements.on(destination_table(self._table, destination))
        return found

    def _refuse_or_warn(self, handle: object, what: str, *, locks: bool) -> None:
        """Raises with `require_transaction`, or else logs a WARNING, because `handle` has no open transaction."""
        handle_type = qualified_name(type(handle))
        if self._require_transaction:
            raise TransactionRequiredError(
                f"{handle_type} has no open transaction (autocommit): nothing was written. Begin a transaction, so that the "
                f"event is committed together with your changes"
            )
        consequence = "; the locks of its keys are released at once, too, and protect nothing" if locks else ""
        _log.warning(
            "%s through %s without an open transaction: it is committed at once, by itself%s", what, handle_type, consequence
        )


def message_of(routing_key: str | Event[Any], body: Any, options: Any) -> OutboxMessage:
    """Returns the message that `publish` writes. Raises `EncodingError` for a body that is not of the event's model."""
    if isinstance(routing_key, Event):
        return routing_key.message(body, **options)
    return OutboxMessage(routing_key, body, **options)


def _publishing(rows: Sequence[Row]) -> str:
    first = f"{rows[0].id} with the routing key {rows[0].routing_key!r}"
    return f"publishing {first}" if len(rows) == 1 else f"publishing {len(rows)} messages, the first {first},"


def _have_dedup_keys(rows: Sequence[Row]) -> bool:
    return any(row.extras is not None and row.extras.dedup_key is not None for row in rows)


class BoundPublisher(Generic[HandleT_co]):
    """A Publisher bound to a handle: the session of a request, or the session or connection of a message handler.

    It is valid until the end of its transaction. After `close`, its methods raise `TransactionRequiredError`.
    """

    def __init__(self, publisher: Publisher, handle: HandleT_co) -> None:
        self._publisher = publisher
        self._handle = handle
        self._closed = False

    def __repr__(self) -> str:
        return f"BoundPublisher({self._publisher!r}, {qualified_name(type(self._handle))})"

    def close(self) -> None:
        """Closes the publisher; called when its transaction is about to end. Idempotent."""
        # A session begins another transaction when it is used again. A background task's messages would never be committed
        # in it, and the connection would stay open in that transaction.
        self._closed = True

    @overload
    def publish(
        self: "BoundPublisher[AsyncHandle]", routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None]: ...

    @overload
    def publish(
        self: "BoundPublisher[AsyncHandle]", routing_key: Event[ModelT], body: ModelT, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None]: ...

    @overload
    def publish(
        self: "BoundPublisher[SyncHandle]", routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> str | None: ...

    @overload
    def publish(
        self: "BoundPublisher[SyncHandle]", routing_key: Event[ModelT], body: ModelT, **options: Unpack[PublishOptions]
    ) -> str | None: ...

    def publish(
        self: "BoundPublisher[Any]", routing_key: str | Event[Any], body: object, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None] | str | None:
        """`Publisher.publish` through the handle. Await the result if the handle is async."""
        answer: Awaitable[str | None] | str | None = self._call(
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
        """`Publisher.bulk_publish` through the handle. Await the result if the handle is async."""
        answer: Awaitable[list[str | None]] | list[str | None] = self._call(
            lambda: self._publisher.bulk_publish(self._handle, messages)
        )
        return answer

    @overload
    def cancel(self: "BoundPublisher[AsyncHandle]", dedup_key: str) -> Awaitable[bool]: ...

    @overload
    def cancel(self: "BoundPublisher[SyncHandle]", dedup_key: str) -> bool: ...

    def cancel(self: "BoundPublisher[Any]", dedup_key: str) -> Awaitable[bool] | bool:
        """`Publisher.cancel` through the handle. Await the result if the handle is async."""
        answer: Awaitable[bool] | bool = self._call(lambda: self._publisher.cancel(self._handle, dedup_key))
        return answer

    def _call(self, work: Callable[[], Any]) -> Any:
        self._require_open()

        async def later() -> Any:
            self._require_open()  # again: a task created before the end of the transaction may start after it
            return await work()

        return later() if is_async(self._handle) else work()

    def _require_open(self) -> None:
        if self._closed:
            raise TransactionRequiredError(
                "the transaction of this publisher has ended with its request or its handler: nothing was written. Code that "
                "runs later, such as a background task, needs a new session: "
                "`async with sessions.begin() as session: await Publisher().publish(session, …)`"
            )
