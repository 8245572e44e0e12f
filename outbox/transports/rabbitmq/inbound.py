"""Assembles deliveries from their frames, and batches their acknowledgements."""

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from outbox.core.codec import ATTEMPT
from outbox.core.message import NO_HEADERS
from outbox.transports.rabbitmq.amqp_decoding import (
    BODY_FRAME,
    HEADER_FRAME,
    METHOD_FRAME,
    Deliver,
    is_deliver,
    read_body_size,
    read_deliver,
    read_properties,
)
from outbox.transports.rabbitmq.amqp_encoding import encode_properties
from outbox.transports.rabbitmq.frame_tap import FrameHandler
from outbox.transports.rabbitmq.message_format import ISOLATED

_BEFORE_PROPERTIES = 12
"""Bytes of a content header before the flags."""


@dataclass(slots=True)
class Arrival:
    """A delivery as it arrived.

    `defect` says why the properties cannot be read, which are empty then. `raw_header` is the payload of the content header; it
    is empty on a connection of the host, where pamqp decodes it. `settling`: its outcome is known. `postponed`: it was replaced
    by a delayed copy, and has no outcome.
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
        """The delivery tag."""
        return self.method.delivery_tag

    @property
    def header(self) -> bytes:
        """The payload of the content header, as it arrived or encoded again, which may raise `UnsendableError`."""
        return self.raw_header or bytes(_BEFORE_PROPERTIES) + encode_properties(self.properties)

    @property
    def headers(self) -> Mapping[str, Any]:
        """The headers as they arrived."""
        return self.properties.headers or NO_HEADERS

    @property
    def mark(self) -> str | None:
        """The mark of a message that must run alone; None without one."""
        mark = self.headers.get(ISOLATED)
        return None if mark is None else str(mark)

    @property
    def identity(self) -> tuple[str | None, str, str | None]:
        """Identifies this copy of the message."""
        # Copies have the id of their original, but the broker counts the deliveries of each copy from zero.
        return self.properties.message_id, repr(self.headers.get(ATTEMPT)), self.mark


class Assembly:
    """Calls `completed` for each delivery of one channel. Takes its frames as bytes or as decoded by pamqp."""

    def __init__(self, completed: Callable[[Arrival], None]) -> None:
        self._completed = completed
        self._arrival: Arrival | None = None
        self._method: Deliver | None = None
        self._pieces: list[bytes] = []
        self._missing = 0

    def take(self, type_: int, frames: bytes, start: int, end: int) -> bool:
        """See `outbox.transports.rabbitmq.frame_tap.Take`."""
        if type_ == BODY_FRAME:
            self._body(frames[start:end])
        elif type_ == HEADER_FRAME:
            try:
                properties, defect = read_properties(frames, start, end), ""
            except Exception as error:  # noqa: BLE001  invalid properties of another program may raise anything
                properties, defect = Basic.Properties(), f"its properties cannot be read: {error}"
            self._begin(read_body_size(frames, start), properties, defect, frames[start:end])
        elif type_ == METHOD_FRAME and is_deliver(frames, start):
            self._method = read_deliver(frames, start)
        else:
            return False
        return True

    @property
    def handlers(self) -> dict[type, FrameHandler]:
        """Handlers for a `FrameTap`, on a connection of the host, whose stream cannot be intercepted."""
        return {
            Basic.Deliver: self._on_deliver,
            ContentHeader: lambda frame: self._begin(frame.body_size, frame.properties),
            ContentBody: lambda frame: self._body(frame.value),
        }

    def _on_deliver(self, frame: Basic.Deliver) -> None:
        self._method = Deliver(
            frame.consumer_tag or "",
            frame.delivery_tag or 0,
            bool(frame.redelivered),
            frame.exchange or "",
            frame.routing_key or "",
        )

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


_method = struct.Struct(">BHIHHQB").pack
_METHOD, _SIZE, _BASIC, _END = 1, 13, 60, b"\xce"
_ACK, _REJECT, _NACK = 80, 90, 120
_MULTIPLE, _REQUEUE = 1, 2

Write = Callable[[bytes], None]


class Acknowledgements:
    """Tracks the delivery tags in flight in order of arrival, and sends answers to the broker through `write`.

    One frame acknowledges all finished deliveries before the first unfinished one; finished deliveries after it get a frame
    each. Answers of one iteration of the event loop are sent together at its end, or with `flush`.
    """

    def __init__(self, channel_number: int, write: Write) -> None:
        self._channel = channel_number
        self._write = write
        self._in_flight: deque[int] = deque()
        self._finished: set[int] = set()
        self._answered: set[int] = set()
        self._refusals: list[bytes] = []
        self._scheduled = False
        self._held = False

    def arrived(self, tag: int) -> None:
        """Adds a delivery in flight."""
        self._in_flight.append(tag)

    def ack(self, tag: int) -> None:
        """Acknowledges a delivery."""
        self._finished.add(tag)
        self._schedule()

    def give_back(self, tag: int) -> None:
        """Returns a delivery to its queue."""
        # With nack: unlike reject, newer brokers do not count it as a failed delivery.
        self._refuse(tag, _NACK, _REQUEUE)

    def reject(self, tag: int) -> None:
        """Has the broker dead-letter a delivery."""
        self._refuse(tag, _REJECT, 0)

    def give_back_all(self) -> None:
        """Sends the answers so far, and returns all unanswered deliveries to their queue."""
        self.release()
        unfinished = [tag for tag in self._in_flight if tag not in self._answered]
        if unfinished:
            self._in_flight.clear()
            self._answered.clear()
            self._write(self._frame(_NACK, unfinished[-1], _MULTIPLE | _REQUEUE))

    def hold(self) -> None:
        """Holds all answers back until `release`."""
        self._held = True

    def release(self) -> None:
        """Sends the answers that were held back, and holds back no more."""
        self._held = False
        self.flush()

    def flush(self) -> None:
        """Sends the answers so far, unless they are held back."""
        self._scheduled = False
        if self._held:
            return
        # Refusals first: an acknowledgement with `multiple` would also cover deliveries that are refused.
        frames = self._refusals
        self._refusals = []
        # Remove answered deliveries from the front, and count those among them that this call acknowledges.
        run = last = 0
        while self._in_flight:
            tag = self._in_flight[0]
            if tag in self._finished:
                self._finished.discard(tag)
                run, last = run + 1, tag
            elif tag in self._answered:
                self._answered.discard(tag)
            else:
                break
            self._in_flight.popleft()
        if run:
            frames.append(self._frame(_ACK, last, _MULTIPLE if run > 1 else 0))
        frames.extend(self._frame(_ACK, tag, 0) for tag in self._finished)
        self._answered |= self._finished
        self._finished = set()
        if frames:
            self._write(b"".join(frames))

    def _refuse(self, tag: int, method: int, bits: int) -> None:
        # The bits of nack are `multiple` and `requeue`. Reject has only `requeue`, in the place of `multiple`.
        self._refusals.append(self._frame(method, tag, bits))
        self._answered.add(tag)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self.flush)

    def _frame(self, method: int, tag: int, bits: int) -> bytes:
        return _method(_METHOD, self._channel, _SIZE, _BASIC, method, tag, bits) + _END
