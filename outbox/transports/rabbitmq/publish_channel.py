"""A channel in confirm mode: publishes a batch and reports the broker's answer to each message."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from aiormq.abc import ChannelFrame
from aiormq.exceptions import (
    AMQPChannelError,
    ConnectionChannelError,
    ConnectionClosed,
    ConnectionCommandInvalid,
    ConnectionFrameError,
    ConnectionInternalError,
    ConnectionNotAllowed,
    ConnectionNotImplemented,
    ConnectionResourceError,
    ConnectionSyntaxError,
    ConnectionUnexpectedFrame,
)
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from outbox.core.outcome import Failure
from outbox.core.urls import redacted
from outbox.ports import CONFIRMED, UNROUTABLE, Refused, SendResult
from outbox.transports.rabbitmq.amqp_decoding import HEADER_FRAME, METHOD_FRAME, is_return, raw_properties, read_return
from outbox.transports.rabbitmq.amqp_encoding import FrameWriter, Publication, UnsendableError
from outbox.transports.rabbitmq.connection import LostError, translate_connection_errors
from outbox.transports.rabbitmq.frame_tap import FrameHandler, FrameTap, InterceptedConnection, abandon

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, AbstractConnection

NACKED = Refused(Failure("nack", "the broker could not take the message: a queue is full or failed"), by_queue=True)

_CHUNK = 256 * 1024
"""Bytes handed to the socket at once. A write of this size or more waits until the socket has taken it."""
# A queue that confirms nothing makes RabbitMQ stop processing the channel. Once the channel has as many unprocessed messages as
# its flow control grants (400, renewed after each 200), RabbitMQ stops reading the whole connection, which blocks all channels.
MOST_UNCONFIRMED = 200
"""Most messages of a channel that wait for their confirms at once."""
_CHUNK_MESSAGES = 100


class ChannelCutError(Exception):
    """The channel or the connection was closed or lost before the broker had answered every message.

    `code` is the broker's reply code, 0 if it gave none.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Batch:
    """Publications that are sent together, with a result for each: None until the broker answers.

    `unsent` holds the indices of those of which no byte was sent yet.
    """

    def __init__(self, publications: Sequence[Publication]) -> None:
        self.publications = publications
        self.results: list[SendResult | None] = [None] * len(publications)
        self.unsent = set(range(len(publications)))
        self._returned: set[tuple[str, str, str]] = set()

    def record_return(self, identity: tuple[str, str, str]) -> None:
        """Records that the broker returned a message. Its confirm follows."""
        self._returned.add(identity)

    def finish(self) -> None:
        """Turns the confirms of returned messages into `Unroutable`."""
        # A return has no delivery tag, only message id, exchange and routing key. If several messages share all three, one
        # return makes all of them unroutable: they are sent again, so that none is lost.
        if not self._returned:
            return
        for index, publication in enumerate(self.publications):
            if self.results[index] is CONFIRMED and publication.identity in self._returned:
                self.results[index] = UNROUTABLE


class ConfirmChannel:
    """Publishes one batch at a time on one channel. Abandon it after an error, a timeout or a cancellation."""

    def __init__(self, channel: "AbstractChannel") -> None:
        self._channel = channel
        self._writer = FrameWriter(channel.number, channel.connection.connection_tune.frame_max or 0)
        self._published = 0
        self._pending: _PendingConfirms | None = None
        self._last_return: tuple[str, str] | None = None
        handlers: dict[type, FrameHandler] = {
            Basic.Ack: partial(self._on_answer, CONFIRMED),
            Basic.Nack: partial(self._on_answer, NACKED),
            # A returned message arrives as method, header and body frames. The header has the message id; the body is ignored.
            Basic.Return: self._on_return,
            ContentHeader: lambda header: self._on_return_header(header.properties.message_id or ""),
            ContentBody: lambda _: None,
        }
        self._tap = FrameTap(channel, handlers)
        if isinstance(channel.connection, InterceptedConnection):
            channel.connection.stream.divert(channel.number, self._take_return)
        channel.closing.add_done_callback(self._on_closed)

    @classmethod
    async def open(cls, connection: "AbstractConnection") -> "ConfirmChannel":
        """Opens a channel on `connection`. Has no timeout; the caller sets one."""
        return cls(await connection.channel(publisher_confirms=True))

    @property
    def usable(self) -> bool:
        """Whether another batch can be sent."""
        return not self._channel.is_closed and self._tap.close_reason is None and self._pending is None

    @property
    def connection(self) -> "AbstractConnection":
        """The connection of the channel."""
        return self._channel.connection

    async def publish(self, batch: Batch, indices: Sequence[int]) -> None:
        """Sends the publications of `batch` at `indices`, and returns when each has its result.

        Publications that cannot be encoded for this connection are refused without being sent. Raises `ChannelCutError`;
        results that arrived before stay.
        """
        chunks, sent = self._encode(batch, indices)
        if not sent:
            return
        pending = self._pending = _PendingConfirms(batch, sent, first_tag=self._published + 1)
        # The broker numbers the messages of a channel from 1 and confirms by number, so both sides must count every message.
        self._published += len(sent)
        if self._channel.is_closed:
            raise self._close_error()
        written = 0
        for chunk, end in chunks:
            await pending.wait_for_room(end - MOST_UNCONFIRMED)
            if pending.answered.done():  # with an error: the channel was closed
                break
            # Before the write: part of a failed write may have reached the broker.
            batch.unsent.difference_update(sent[written:end])
            await self._write(chunk)
            written = end
        await pending.answered
        self._pending = None

    def abandon(self) -> None:
        """Closes the channel without waiting for the broker. Later answers are ignored."""
        if self._tap.close_reason is None:
            abandon(self._channel)

    def _encode(self, batch: Batch, indices: Sequence[int]) -> tuple[list[tuple[bytes, int]], list[int]]:
        """Encodes messages in chunks. Returns each chunk with the number of messages up to its end, and the sent indices."""
        chunks: list[tuple[bytes, int]] = []
        pieces: list[bytes] = []
        sent: list[int] = []
        size = 0
        for index in indices:
            try:
                frames = self._writer.frames(batch.publications[index])
            except UnsendableError as error:
                batch.results[index] = Refused(Failure("unsendable", str(error)))
                continue
            sent.append(index)
            pieces.append(frames)
            size += len(frames)
            if size >= _CHUNK or len(pieces) == _CHUNK_MESSAGES:
                chunks.append((b"".join(pieces), len(sent)))
                pieces, size = [], 0
        if pieces:
            chunks.append((b"".join(pieces), len(sent)))
        return chunks, sent

    async def _write(self, chunk: bytes) -> None:
        """Hands `chunk` to the connection. Waits for the socket after a large one."""
        queue = self._channel.connection.write_queue
        try:
            with translate_connection_errors():
                drained = self._channel.create_future() if len(chunk) >= _CHUNK else None
                frame = ChannelFrame(payload=chunk, should_close=False, drain_future=drained)
                try:
                    queue.put_nowait(frame)
                except asyncio.QueueFull:
                    # A task of the channel: if that ends, so does the wait for room.
                    await self._channel.create_task(queue.put(frame))
                if drained is not None:
                    await drained
        except (AMQPChannelError, LostError):
            raise self._close_error() from None

    def _on_answer(self, result: SendResult, frame: Basic.Ack | Basic.Nack) -> None:
        if self._pending is not None:
            self._pending.answer(frame.delivery_tag or 0, multiple=bool(frame.multiple), result=result)

    def _take_return(self, type_: int, frames: bytes, start: int, end: int) -> bool:
        """Takes the frames of returned messages; see `outbox.transports.rabbitmq.frame_tap.Take`."""
        # pamqp cannot read them all: a copy may have properties that pamqp refuses.
        if type_ == METHOD_FRAME:
            if not is_return(frames, start):
                return False
            self._last_return = read_return(frames, start)
        elif type_ == HEADER_FRAME:
            self._on_return_header(raw_properties(frames[start:end]).get("message_id", b"\0")[1:].decode(errors="replace"))
        return True

    def _on_return(self, frame: Basic.Return) -> None:
        self._last_return = (frame.exchange or "", frame.routing_key or "")

    def _on_return_header(self, message_id: str) -> None:
        if self._last_return is not None and self._pending is not None:
            self._pending.batch.record_return((message_id, *self._last_return))

    def _on_closed(self, closing: "asyncio.Future[None]") -> None:
        if isinstance(self._channel.connection, InterceptedConnection):
            self._channel.connection.stream.restore(self._channel.number, self._take_return)
        error = None if closing.cancelled() else closing.exception()
        if self._pending is not None:
            self._pending.fail(self._close_error(error))

    def _close_error(self, error: BaseException | None = None) -> ChannelCutError:
        if self._tap.close_reason is not None:
            return ChannelCutError(*self._tap.close_reason)
        return connection_error(self._channel.connection, error)


class _PendingConfirms:
    """Confirms that a batch waits for: maps delivery tags to messages."""

    def __init__(self, batch: Batch, indices: Sequence[int], *, first_tag: int) -> None:
        self.batch = batch
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._indices = indices
        self._first_tag = first_tag
        self._answered_up_to = 0
        self._missing = len(indices)
        self._room: asyncio.Future[None] | None = None
        self._wanted = 0

    async def wait_for_room(self, answers: int) -> None:
        """Returns when `answers` messages are answered, or when no further answer can arrive."""
        if len(self._indices) - self._missing < answers and not self.answered.done():
            self._wanted = answers
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def answer(self, tag: int, *, multiple: bool, result: SendResult) -> None:
        """Records the broker's answer to `tag`, or with `multiple` to every tag up to it."""
        position = tag - self._first_tag
        if not 0 <= position < len(self._indices):
            return
        start = self._answered_up_to if multiple else position
        results = self.batch.results
        for index in self._indices[start : position + 1]:
            if results[index] is None:
                results[index] = result
                self._missing -= 1
        if multiple:
            self._answered_up_to = position + 1
        if not self._missing and not self.answered.done():
            self.answered.set_result(None)
        if self._room is not None and len(self._indices) - self._missing >= self._wanted:
            self._make_room()

    def fail(self, error: ChannelCutError) -> None:
        """Fails the batch: no further answer can arrive."""
        if not self.answered.done():
            self.answered.set_exception(error)
            # Marks the exception as retrieved: `publish` does not await it if the channel ended while the batch was written.
            self.answered.exception()
        self._make_room()

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)


def connection_error(connection: "AbstractConnection", error: BaseException | None) -> ChannelCutError:
    """Returns why a connection was lost, with the broker's reply code if it gave one."""
    if error is None and connection.closing.done() and not connection.closing.cancelled():
        error = connection.closing.exception()
    if isinstance(error, ConnectionClosed):
        if len(error.args) == 2:
            return ChannelCutError(int(error.args[0] or 0), str(error.args[1]))
        return ChannelCutError(_REPLY_CODES.get(type(error), 0), str(error))
    return ChannelCutError(0, redacted(str(error)) if error is not None else "the connection was lost")


_REPLY_CODES: dict[type[BaseException], int] = {
    ConnectionFrameError: 501,
    ConnectionSyntaxError: 502,
    ConnectionCommandInvalid: 503,
    ConnectionChannelError: 504,
    ConnectionUnexpectedFrame: 505,
    ConnectionResourceError: 506,
    ConnectionNotAllowed: 530,
    ConnectionNotImplemented: 540,
    ConnectionInternalError: 541,
}
