"""Deliveries put together from their frames."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from outbox.core.codec import ATTEMPT
from outbox.core.message import NO_HEADERS
from outbox.transports.rabbitmq.frames import encode_properties
from outbox.transports.rabbitmq.reading import (
    BODY_FRAME,
    HEADER_FRAME,
    METHOD_FRAME,
    Deliver,
    is_deliver,
    read_body_size,
    read_deliver,
    read_properties,
)
from outbox.transports.rabbitmq.tapping import FrameHandler
from outbox.transports.rabbitmq.wire import ISOLATED

_BEFORE_PROPERTIES = 12
"""Bytes of a content header in front of the flags."""


@dataclass(slots=True)
class Arrival:
    """What the broker delivered, as it came.

    `defect` says why its properties cannot be read, which are then empty. `raw_header` is the payload that they stood in, empty
    where the connection is not ours and only its values came. `settling`: its outcome is known. `postponed`: a copy of it
    comes later, and it has no outcome.
    """

    method: Deliver
    properties: Basic.Properties
    body: bytes
    defect: str = ""
    settling: bool = False
    postponed: bool = False
    raw_header: bytes = b""

    @property
    def tag(self) -> int:
        """The number by which the broker knows it on its channel."""
        return self.method.delivery_tag

    @property
    def header(self) -> bytes:
        """The payload of its content header, as it came or as it may have been. Raises `UnsendableError` in the second case."""
        return self.raw_header or bytes(_BEFORE_PROPERTIES) + encode_properties(self.properties)

    @property
    def headers(self) -> Mapping[str, Any]:
        """As they arrived."""
        return self.properties.headers or NO_HEADERS

    @property
    def mark(self) -> str | None:
        """The mark of a message that runs alone."""
        mark = self.headers.get(ISOLATED)
        return None if mark is None else str(mark)

    @property
    def identity(self) -> tuple[str | None, str, str | None]:
        """What tells this entry of the queue from earlier ones with the same id: the broker counts a copy anew."""
        return self.properties.message_id, repr(self.headers.get(ATTEMPT)), self.mark


class Assembly:
    """Calls `completed` for each delivery of one channel, whose frames come as bytes or as pamqp has read them."""

    def __init__(self, completed: Callable[[Arrival], None]) -> None:
        self._completed = completed
        self._arrival: Arrival | None = None
        self._method: Deliver | None = None
        self._pieces: list[bytes] = []
        self._missing = 0

    def take(self, type_: int, frames: bytes, start: int, end: int) -> bool:
        """See `outbox.transports.rabbitmq.streaming.Take`."""
        if type_ == BODY_FRAME:
            self._body(frames[start:end])
        elif type_ == HEADER_FRAME:
            properties, defect = _readable_properties(frames, start, end)
            self._begin(read_body_size(frames, start), properties, defect, frames[start:end])
        elif type_ == METHOD_FRAME and is_deliver(frames, start):
            self._method = read_deliver(frames, start)
        else:
            return False
        return True

    @property
    def handlers(self) -> dict[type, FrameHandler]:
        """For a `Tap`, where the connection belongs to somebody else, and its stream with it."""
        return {Basic.Deliver: self._on_deliver, ContentHeader: self._on_header, ContentBody: self._on_body}

    def _on_deliver(self, frame: Basic.Deliver) -> None:
        self._method = Deliver(
            frame.consumer_tag or "",
            frame.delivery_tag or 0,
            bool(frame.redelivered),
            frame.exchange or "",
            frame.routing_key or "",
        )

    def _on_header(self, frame: ContentHeader) -> None:
        self._begin(frame.body_size, frame.properties)

    def _on_body(self, frame: ContentBody) -> None:
        self._body(frame.value)

    def _begin(self, body_size: int, properties: Basic.Properties, defect: str = "", header: bytes = b"") -> None:
        if self._method is None:
            return
        self._arrival = Arrival(self._method, properties, b"", defect, raw_header=header)
        self._missing = body_size
        if not body_size:
            self._complete()

    def _body(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._missing -= len(piece)
        if self._missing <= 0:
            self._complete()

    def _complete(self) -> None:
        arrival, pieces = self._arrival, self._pieces
        self._arrival, self._pieces = None, []
        if arrival is not None:
            arrival.body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            self._completed(arrival)


def _readable_properties(frames: bytes, start: int, end: int) -> tuple[Basic.Properties, str]:
    """The properties; or none, and why they cannot be read."""
    try:
        return read_properties(frames, start, end), ""
    except Exception as error:  # noqa: BLE001  whatever it is, it lies in what some program wrote
        return Basic.Properties(), f"its properties cannot be read: {error}"
