"""Publishers that record published messages, with or without a database."""

import json
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from inspect import signature
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

from outbox.contracts import Event, ModelT
from outbox.core import codec
from outbox.core.arguments import at_least_one
from outbox.core.destinations import DEFAULT, validate_destinations
from outbox.core.message import Message, OutboxMessage, PublishOptions
from outbox.core.topics import matches
from outbox.engine.rows import Row, as_expiration, rows_of, validate_dedup_key
from outbox.ports import CONFIRMED, Transport
from outbox.postgres.handles.shapes import AsyncHandle, SyncHandle
from outbox.publisher import BoundPublisher, HandleT_co, Publisher, message_of

T = TypeVar("T")
ANYTHING: Any = object()
SEND_TIMEOUT = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One published message. `body` is a JSON value if the content type is that of JSON, or else bytes."""

    id: str
    routing_key: str
    body: Any
    message: OutboxMessage
    tracking_ids: tuple[str, ...]
    content: bytes = field(repr=False)
    content_type: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.routing_key!r} {self.body!r}"


class Recording:
    """Published messages in order, and assertions about them."""

    def __init__(self) -> None:
        self._published: list[Published] = []
        self._sent: set[str] = set()
        self._unawaited: list[str] = []

    @property
    def published(self) -> Sequence[Published]:
        """All messages in the order of publishing."""
        return tuple(self._published)

    def of(self, binding_key: str | Event[Any]) -> list[Published]:
        """Messages for a queue bound with `binding_key`: `*` matches one word of a routing key, `#` any number of words.

        An `outbox.contracts.Event` stands for its routing key, here and in the assertions.
        """
        return self._matching(binding_key, ANYTHING)[0]

    def assert_published(
        self, binding_key: str | Event[Any], body: object = ANYTHING, *, times: int | None = None
    ) -> Published:
        """Returns the first message whose routing key matches and whose body equals or contains `body`.

        A mapping contains another if it has all its keys, with values that contain the other's values. A pydantic model is
        compared by its JSON. With `times`, exactly that many messages must match, at least one. Raises `AssertionError` with a
        list of the published messages.
        """
        if times is not None:
            at_least_one("times", times, because="assert_not_published is for messages that were not published")
        self.assert_awaited()
        found, what = self._matching(binding_key, body)
        if found and times in (None, len(found)):
            return found[0]
        how_often = "" if times is None else f" {times} times, but {len(found)}"
        raise AssertionError(f"{what} was not published{how_often}.\n{self._listing()}")

    def assert_not_published(self, binding_key: str | Event[Any] = "#", body: object = ANYTHING) -> None:
        """Raises `AssertionError` if a message was published that `assert_published` would find."""
        self.assert_awaited()
        found, what = self._matching(binding_key, body)
        if found:
            raise AssertionError(f"{what} was published.\n{self._listing()}")

    def assert_awaited(self) -> None:
        """Raises `AssertionError` with the calls that were not awaited: they would publish nothing.

        The other assertions and `send_to` call this first.
        """
        if self._unawaited:
            raise AssertionError(
                "\n".join(["Without `await` nothing is published:", *(f"  {call}" for call in self._unawaited)])
            )

    def clear(self) -> None:
        """Removes the recorded messages. Calls that were not awaited stay recorded."""
        self._published.clear()
        self._sent.clear()

    async def send_to(self, transport: Transport) -> None:
        """Sends the messages that were not sent before, as a relay would, usually to a `MemoryBroker` for its consumers.

        Does not wait for the `eta` of a message.
        Raises `AssertionError` if no queue is bound for a message.
        """
        self.assert_awaited()
        waiting = [published for published in self._published if published.id not in self._sent]
        messages = [
            Message(
                id=published.id,
                routing_key=published.routing_key,
                body=published.content,
                created_at=datetime.now(UTC),
                tracking_ids=published.tracking_ids,
                content_type=published.content_type,
                expiration=None if published.message.expiration is None else as_expiration(published.message.expiration),
                headers=dict(published.message.headers or {}),
                ordering_key=published.message.ordering_key,
            )
            for published in waiting
        ]
        results = await transport.send(messages, timeout=SEND_TIMEOUT)
        self._sent |= {message.id for message, result in zip(messages, results, strict=True) if result == CONFIRMED}
        for published, result in zip(waiting, results, strict=True):
            assert result == CONFIRMED, f"{published} could not be sent: {result}"  # noqa: S101  it is an assertion

    def _matching(self, binding_key: str | Event[Any], body: object) -> tuple[list[Published], str]:
        """Returns the messages that match, and a description of what they match."""
        key = binding_key.routing_key if isinstance(binding_key, Event) else binding_key
        wanted = ANYTHING if body is ANYTHING else _decoded(*codec.encode_body(body, routing_key=key))
        found = [
            published
            for published in self._published
            if matches(key, published.routing_key) and (wanted is ANYTHING or _contains(published.body, wanted))
        ]
        return found, repr(key) if wanted is ANYTHING else f"{key!r} with {wanted!r}"

    def _record(self, message: OutboxMessage, row: Row, id_: str) -> None:
        """Records a message that was published as `row` with the id `id_`."""
        ancestors = codec.decode_tracking_ids(row.tracking_ids, source="tracking ids")[:-1]
        # As they were written: the caller may change its mapping and publish with it again.
        headers = None if message.headers is None else json.loads(row.headers or "{}")
        self._published.append(
            Published(
                id=id_,
                routing_key=row.routing_key,
                body=_decoded(row.body, row.content_type),
                message=replace(message, headers=headers),
                tracking_ids=(*ancestors, id_),
                content=row.body,
                content_type=row.content_type,
            )
        )

    def _track_await(self, what: str, work: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
        """Wraps `work`; until it is awaited, `assert_awaited` reports the call with the line of the caller."""
        # The caller is behind up to three frames of this file.
        caller = next(frame for frame in reversed(traceback.extract_stack(limit=4)) if frame.filename != __file__)
        call = f"{what} in {caller.filename}, line {caller.lineno}"
        self._unawaited.append(call)

        async def done() -> Any:
            self._unawaited.remove(call)
            return await work()

        return done()

    def _listing(self) -> str:
        if not self._published:
            return "Nothing was published."
        return "\n".join(["Published was:", *(f"  {published}" for published in self._published)])


class RecordingPublisher(Recording, Generic[HandleT_co]):
    """Replaces a publisher that is bound to a session: validates and encodes messages like the real one, but writes nothing.

    Use it in a FastAPI application with `app.dependency_overrides[get_publisher] = lambda: publisher`. With `sync`, its methods
    publish when they are called; otherwise when they are awaited, and the assertions fail for a call that was not awaited.
    """

    @overload
    def __init__(self: "RecordingPublisher[AsyncHandle]", *, sync: Literal[False] = False) -> None: ...

    @overload
    def __init__(self: "RecordingPublisher[SyncHandle]", *, sync: Literal[True]) -> None: ...

    def __init__(self, *, sync: bool = False) -> None:
        super().__init__()
        self._sync = sync
        self._destinations: dict[str, set[str]] = {}
        """Of each recorded message, by its id, those where it has not been replaced."""

    @overload
    def publish(
        self: "RecordingPublisher[AsyncHandle]", routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None]: ...

    @overload
    def publish(
        self: "RecordingPublisher[AsyncHandle]", routing_key: Event[ModelT], body: ModelT, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None]: ...

    @overload
    def publish(
        self: "RecordingPublisher[SyncHandle]", routing_key: str, body: object, **options: Unpack[PublishOptions]
    ) -> str | None: ...

    @overload
    def publish(
        self: "RecordingPublisher[SyncHandle]", routing_key: Event[ModelT], body: ModelT, **options: Unpack[PublishOptions]
    ) -> str | None: ...

    def publish(
        self: "RecordingPublisher[Any]", routing_key: str | Event[Any], body: object, **options: Unpack[PublishOptions]
    ) -> Awaitable[str | None] | str | None:
        """Records a message. Options and errors are those of `BoundPublisher.publish`."""

        def record() -> str | None:
            return self._record_deduplicated([message_of(routing_key, body, options)])[0]

        return record() if self._sync else self._track_await(f"publish({routing_key!r}, …)", _async(record))

    @overload
    def bulk_publish(
        self: "RecordingPublisher[AsyncHandle]", messages: Iterable[OutboxMessage]
    ) -> Awaitable[list[str | None]]: ...

    @overload
    def bulk_publish(self: "RecordingPublisher[SyncHandle]", messages: Iterable[OutboxMessage]) -> list[str | None]: ...

    def bulk_publish(
        self: "RecordingPublisher[Any]", messages: Iterable[OutboxMessage]
    ) -> Awaitable[list[str | None]] | list[str | None]:
        """Records messages. Errors are those of `BoundPublisher.bulk_publish`."""

        def record() -> list[str | None]:
            return self._record_deduplicated(messages)

        return record() if self._sync else self._track_await("bulk_publish(…)", _async(record))

    @overload
    def cancel(self: "RecordingPublisher[AsyncHandle]", dedup_key: str) -> Awaitable[bool]: ...

    @overload
    def cancel(self: "RecordingPublisher[SyncHandle]", dedup_key: str) -> bool: ...

    def cancel(self: "RecordingPublisher[Any]", dedup_key: str) -> Awaitable[bool] | bool:
        """Removes a recorded message with this key, like `BoundPublisher.cancel`; False if there is none."""

        def remove() -> bool:
            pending = self._pending(validate_dedup_key(dedup_key))
            for published in pending:
                self._published.remove(published)
            return bool(pending)

        return remove() if self._sync else self._track_await(f"cancel({dedup_key!r})", _async(remove))

    def _record_deduplicated(self, messages: Iterable[OutboxMessage]) -> list[str | None]:
        batch = list(messages)
        rows = rows_of(batch)  # before any is recorded, as the real publisher writes all or none
        ids: list[str | None] = []
        # One after another, because a message may have the dedup key of an earlier one in the batch.
        for message, row in zip(batch, rows, strict=True):
            # A key is pending in each destination by itself.
            destinations = set(validate_destinations(message.destination or DEFAULT))
            for published in () if message.dedup_key is None else self._pending(message.dedup_key):
                others = self._destinations[published.id]
                if message.on_conflict == "ignore":
                    destinations -= others
                elif others <= destinations:
                    self._published.remove(published)
                else:
                    others -= destinations
            if destinations:
                self._record(message, row, row.id)
                self._destinations[row.id] = destinations
            ids.append(row.id if destinations else None)
        return ids

    def _pending(self, dedup_key: str) -> list[Published]:
        """Recorded messages with this key that were not sent yet."""
        return [
            published
            for published in self._published
            if published.id not in self._sent and published.message.dedup_key == dedup_key
        ]


class RecordedPublisher(Recording):
    """Records the messages of a real publisher. Created by `recorded`."""

    def __init__(self, publisher: "Publisher | BoundPublisher[Any]") -> None:
        super().__init__()
        self._publisher: Any = publisher
        # Of the publisher that a bound one is made of.
        self._expiration = getattr(getattr(publisher, "_publisher", publisher), "_expiration", None)

    def publish(self, *arguments: Any, **options: Any) -> Any:
        """Calls `publish` of the publisher, and records the message when it succeeds."""
        call = self._publisher.publish
        given = signature(call).bind(*arguments, **options).arguments
        message = message_of(given["routing_key"], given["body"], given.get("options", {}))
        return self._recorded(call(*arguments, **options), [message], one=True)

    def bulk_publish(self, *arguments: Any, **named: Any) -> Any:
        """Calls `bulk_publish` of the publisher, and records the messages when it succeeds."""
        call = self._publisher.bulk_publish
        given = signature(call).bind(*arguments, **named)
        messages = given.arguments["messages"] = list(given.arguments["messages"])
        return self._recorded(call(*given.args, **given.kwargs), messages, one=False)

    def cancel(self, *arguments: Any, **named: Any) -> Any:
        """Calls `cancel` of the publisher. The message stays recorded, because it was published."""
        return self._publisher.cancel(*arguments, **named)

    publish_async = publish_sync = publish
    bulk_publish_async = bulk_publish_sync = bulk_publish
    cancel_async = cancel_sync = cancel

    def _recorded(self, result: Any, messages: Sequence[OutboxMessage], *, one: bool) -> Any:
        def record(ids: Any) -> Any:
            rows = rows_of(messages, default_expiration=self._expiration)
            for message, row, id_ in zip(messages, rows, [ids] if one else ids, strict=True):
                if id_ is not None:
                    self._record(replace(message, expiration=row.expiration), row, id_)
            return ids

        async def record_later() -> Any:
            return record(await result)

        if not isinstance(result, Awaitable):
            return record(result)
        # When it is awaited, the publisher refuses what is no message.
        keys = ", ".join(repr(getattr(message, "routing_key", message)) for message in messages)
        return self._track_await(f"publish({keys}, …)" if one else f"bulk_publish({keys})", record_later)


def recorded(publisher: "Publisher | BoundPublisher[Any]") -> RecordedPublisher:
    """Wraps `publisher`: messages published through the returned object are published and recorded.

    A message that is ignored because of its `dedup_key` is not recorded. A rollback does not remove recorded messages.
    """
    return RecordedPublisher(publisher)


def _async(work: Callable[[], T]) -> Callable[[], Awaitable[T]]:
    async def done() -> T:
        return work()

    return done


def _decoded(content: bytes, content_type: str) -> Any:
    if codec.is_json(content_type):
        with suppress(ValueError):  # bytes are published unchanged, whatever their content type
            return json.loads(content)
    return content


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        return all(key in value and _contains(value[key], part) for key, part in wanted.items())
    return _is_equal(value, wanted)


def _is_equal(value: Any, wanted: Any) -> bool:
    """Whether two values are equal in JSON, where `true` is not 1."""
    if isinstance(value, dict) and isinstance(wanted, dict):
        return value.keys() == wanted.keys() and all(_is_equal(value[key], part) for key, part in wanted.items())
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_is_equal, value, wanted))
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)
