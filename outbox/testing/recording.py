"""Publishers that remember what was published through them, with or without a database behind them."""

import json
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from outbox import codec
from outbox.engine.publishing import rows_of
from outbox.message import Message, OutboxMessage
from outbox.ports import CONFIRMED, Transport
from outbox.publisher import BoundPublisher, Publisher
from outbox.topics import matches

ANYTHING: Any = object()
SEND_TIMEOUT = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One message that was published. `body` is what a consumer without an annotation gets: JSON's values, else bytes."""

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
    """What was published, in order, and assertions about it."""

    def __init__(self) -> None:
        self._published: list[Published] = []
        self._sent = 0

    @property
    def published(self) -> Sequence[Published]:
        """Everything, in the order in which it was published."""
        return tuple(self._published)

    def of(self, binding_key: str) -> list[Published]:
        """What a queue bound with `binding_key` would get: `*` stands for one word of a routing key, `#` for any number."""
        return [published for published in self._published if matches(binding_key, published.routing_key)]

    def assert_published(self, binding_key: str, body: object = ANYTHING, *, times: int | None = None) -> Published:
        """The first message whose routing key matches and whose body is, or contains, `body`.

        A mapping contains another one if it has all of its keys, with values that contain the other's. A pydantic model stands
        for its JSON. `times`: exactly so many. Raises `AssertionError` that lists what was published instead.
        """
        wanted = ANYTHING if body is ANYTHING else _decoded(*codec.encode_body(body, routing_key=binding_key))
        found = [published for published in self.of(binding_key) if wanted is ANYTHING or _contains(published.body, wanted)]
        if found and times in (None, len(found)):
            return found[0]
        what = f"{binding_key!r}" if wanted is ANYTHING else f"{binding_key!r} with {wanted!r}"
        how_often = "" if times is None else f" {times} times, but {len(found)}"
        raise AssertionError(f"{what} was not published{how_often}.\n{self._account()}")

    def assert_not_published(self, binding_key: str = "#") -> None:
        """Raises `AssertionError` if a message was published whose routing key matches."""
        if self.of(binding_key):
            raise AssertionError(f"{binding_key!r} was published.\n{self._account()}")

    def clear(self) -> None:
        """Forgets everything."""
        self._published.clear()
        self._sent = 0

    async def send_to(self, transport: Transport) -> None:
        """Sends what was not sent before, as a relay would: to a `MemoryBroker`, for its consumers to handle.

        Raises `AssertionError` for a message that no queue is bound for.
        """
        waiting, self._sent = self._published[self._sent :], len(self._published)
        messages = [_message(published) for published in waiting]
        for published, result in zip(waiting, await transport.send(messages, timeout=SEND_TIMEOUT), strict=True):
            assert result == CONFIRMED, f"{published} could not be sent: {result}"  # noqa: S101  it is an assertion

    def _note(self, messages: Iterable[OutboxMessage], ids: Iterable[str | None] | None = None) -> list[str]:
        """Records `messages` under these `ids` (None: it was not published), or under new ones."""
        batch = list(messages)
        rows = rows_of(batch)
        given = [row.id for row in rows] if ids is None else list(ids)
        for message, row, id_ in zip(batch, rows, given, strict=True):
            if id_ is not None:
                ancestors = codec.decode_tracking_ids(row.tracking_ids, source="tracking ids")[:-1]
                self._published.append(
                    Published(
                        id=id_,
                        routing_key=row.routing_key,
                        body=_decoded(row.body, row.content_type),
                        message=message,
                        tracking_ids=(*ancestors, id_),
                        content=row.body,
                        content_type=row.content_type,
                    )
                )
        return [id_ for id_ in given if id_ is not None]

    def _account(self) -> str:
        if not self._published:
            return "Nothing was published."
        return "\n".join(["Published was:", *(f"  {published}" for published in self._published)])


class RecordingPublisher(Recording):
    """Stands in for a publisher that is bound to a session: checks and encodes as the real one, and writes nothing.

    `app.dependency_overrides[get_publisher] = lambda: publisher` puts it into a FastAPI application. With `sync` its methods
    have published when they return; otherwise they are awaited.
    """

    def __init__(self, *, sync: bool = False) -> None:
        super().__init__()
        self._sync = sync

    def publish(self, routing_key: str, body: object, **options: Any) -> "Awaitable[str | None] | str | None":
        """`BoundPublisher.publish`, with the same options and errors."""
        (id_,) = self._noted([OutboxMessage(routing_key, body, **options)])
        return id_ if self._sync else _answer(id_)

    def bulk_publish(self, messages: Iterable[OutboxMessage]) -> "Awaitable[Sequence[str | None]] | Sequence[str | None]":
        """`BoundPublisher.bulk_publish`, with the same errors."""
        ids = self._noted(messages)
        return ids if self._sync else _answer(ids)

    def cancel(self, dedup_key: str) -> "Awaitable[bool] | bool":
        """`BoundPublisher.cancel`: forgets a recorded message with this key; False without one."""
        index = self._pending(dedup_key)
        if index is not None:
            del self._published[index]
        return index is not None if self._sync else _answer(index is not None)

    def _noted(self, messages: Iterable[OutboxMessage]) -> list[str | None]:
        """One after another, because each may meet the one before."""
        return [self._noted_one(message) for message in list(messages)]

    def _noted_one(self, message: OutboxMessage) -> str | None:
        pending = None if message.dedup_key is None else self._pending(message.dedup_key)
        (id_,) = self._note([message])
        if pending is None:
            return id_
        if message.on_conflict == "ignore":
            del self._published[-1]
            return None
        del self._published[pending]
        return id_

    def _pending(self, dedup_key: str) -> int | None:
        """Where the recorded message with this key is, if it was not sent yet."""
        for index in range(self._sent, len(self._published)):
            if self._published[index].message.dedup_key == dedup_key:
                return index
        return None


class RecordedPublisher(Recording):
    """A real publisher that is listened to. Made by `recorded`."""

    def __init__(self, publisher: "Publisher | BoundPublisher[Any]") -> None:
        super().__init__()
        self._publisher: Any = publisher
        self._with_handle = isinstance(publisher, Publisher)

    def publish(self, *arguments: Any, **options: Any) -> Any:
        """`publish` of the publisher; recorded when it has succeeded."""
        routing_key, body = arguments[self._with_handle :]
        return self._recorded(
            self._publisher.publish(*arguments, **options), [OutboxMessage(routing_key, body, **options)], one=True
        )

    def bulk_publish(self, *arguments: Any) -> Any:
        """`bulk_publish` of the publisher; recorded when it has succeeded."""
        messages = list(arguments[-1])
        return self._recorded(self._publisher.bulk_publish(*arguments[:-1], messages), messages, one=False)

    def cancel(self, *arguments: Any) -> Any:
        """`cancel` of the publisher. What was recorded stays so: it was published."""
        return self._publisher.cancel(*arguments)

    def _recorded(self, result: Any, messages: Sequence[OutboxMessage], *, one: bool) -> Any:
        def note(ids: Any) -> Any:
            self._note(messages, [ids] if one else ids)
            return ids

        async def note_later() -> Any:
            return note(await result)

        return note_later() if isinstance(result, Awaitable) else note(result)


def recorded(publisher: "Publisher | BoundPublisher[Any]") -> RecordedPublisher:
    """`publisher`, with everything that is published through what this returns recorded, and published all the same.

    A message that `dedup_key` ignored was not published. What a rollback takes back stays in the record.
    """
    return RecordedPublisher(publisher)


async def _answer(value: Any) -> Any:
    return value


def _decoded(content: bytes, content_type: str) -> Any:
    return json.loads(content) if content_type == codec.JSON else content


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        return all(key in value and _contains(value[key], part) for key, part in wanted.items())
    return bool(value == wanted)


def _message(published: Published) -> Message:
    message = published.message
    return Message(
        id=published.id,
        routing_key=published.routing_key,
        body=published.content,
        created_at=datetime.now(UTC),
        tracking_ids=published.tracking_ids,
        content_type=published.content_type,
        headers=dict(message.headers or {}),
        ordering_key=message.ordering_key,
    )
