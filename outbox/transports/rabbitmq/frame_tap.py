"""Intercepts deliveries in the stream of frames from the broker, before aiormq and pamqp decode them.

pamqp refuses properties that are not text and times beyond the year 9999, and aiormq then closes the connection. One such
message in a queue would disconnect every consumer again and again. Decoding a delivery here also takes a third of the time.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import aiormq
from aiormq.abc import ChannelFrame
from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
from pamqp.commands import Channel
from pamqp.constants import FRAME_HEARTBEAT
from pamqp.frame import marshal
from pamqp.heartbeat import Heartbeat
from yarl import URL

from outbox.transports.rabbitmq.amqp_decoding import HEAD_SIZE, frame_head, is_close, read_close

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel


Take = Callable[[int, bytes, int, int], bool]
"""Called with a frame's type, a buffer, and the start and end of the payload in it. Returns whether it takes the frame.

Runs in the connection's reader task: it must neither wait nor raise.
"""

_CHUNK = 64 * 1024
_HEARTBEAT = marshal(Heartbeat(), 0)
_HEARTBEAT_SECONDS = 1.0
_FRAME_TYPES = (1, 2, 3, FRAME_HEARTBEAT)


class FrameStream:
    """Replaces the `asyncio.StreamReader` of an aiormq connection. Passes on the frames that no `Take` callback takes.

    `close_reason` is the reason that the broker gave for closing the connection; aiormq does not report it while connecting.
    """

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._takers: dict[int, Take] = {}
        self._received = b""
        self._at = 0
        self._for_aiormq = b""
        self._read_at = self._passed_on_at = asyncio.get_running_loop().time()
        self.close_reason = ""

    def divert(self, channel_number: int, take: Take) -> None:
        """Offers each further frame of the channel to `take`."""
        self._takers[channel_number] = take

    def restore(self, channel_number: int, take: Take) -> None:
        """Ends what `divert` began."""
        # The number may belong to a newer channel already.
        if self._takers.get(channel_number) == take:
            del self._takers[channel_number]

    def at_eof(self) -> bool:
        """Whether the stream has ended."""
        return not self._for_aiormq and self._at == len(self._received) and self._reader.at_eof()

    async def readexactly(self, count: int) -> bytes:
        """Returns the next bytes for aiormq. Raises `asyncio.IncompleteReadError` at the end of the stream."""
        while len(self._for_aiormq) < count:
            self._for_aiormq += await self._next_frame()
        part, self._for_aiormq = self._for_aiormq[:count], self._for_aiormq[count:]
        return part

    async def read(self, count: int = -1) -> bytes:
        """Returns the remaining bytes, unexamined."""
        rest = self._for_aiormq + self._received[self._at :]
        self._for_aiormq, self._received, self._at = b"", b"", 0
        return rest + await self._reader.read(count)

    async def _next_frame(self) -> bytes:
        """Returns the next frame that no `Take` callback takes, or a heartbeat after a second without one."""
        while True:
            received, at = self._received, self._at
            start = at + HEAD_SIZE
            if start > len(received):
                await self._have(HEAD_SIZE)
                continue
            type_, channel_number, size = frame_head(received, at)
            if type_ not in _FRAME_TYPES:
                return self._passed_on(start)  # not a frame: the broker speaks another protocol version
            end = start + size
            if end >= len(received):
                await self._have(HEAD_SIZE + size + 1)
                continue
            take = self._takers.get(channel_number)
            if take is None or not take(type_, received, start, end):
                if channel_number == 0 and is_close(received, start):
                    self.close_reason = read_close(received, start)
                return self._passed_on(end + 1)
            self._at = end + 1
            # aiormq closes a connection on which it sees no frames, and under load all frames may be taken here.
            if self._read_at - self._passed_on_at > _HEARTBEAT_SECONDS:
                self._passed_on_at = self._read_at
                return _HEARTBEAT

    def _passed_on(self, end: int) -> bytes:
        frame, self._at = self._received[self._at : end], end
        self._passed_on_at = self._read_at
        return frame

    async def _have(self, count: int) -> None:
        """Reads until the buffer has `count` bytes from the current position on."""
        # As much as is available, not only the missing bytes: under load one read then returns many frames.
        rest = self._received[self._at :]
        missing = count - len(rest)
        more = await self._reader.read(max(missing, _CHUNK))
        if not more:
            raise asyncio.IncompleteReadError(rest, count)
        if len(more) < missing:
            more += await self._reader.readexactly(missing - len(more))
        self._received, self._at = rest + more, 0
        self._read_at = asyncio.get_running_loop().time()


class InterceptedConnection(aiormq.Connection):
    """An aiormq connection with a `FrameStream`, which can intercept deliveries."""

    stream: FrameStream

    def __init__(self, url: URL) -> None:
        super().__init__(url, transport_factory=_Streaming(self))

    @property
    def close_reason(self) -> str:
        """The reason that the broker gave for closing the connection; "" without one."""
        return self.stream.close_reason if hasattr(self, "stream") else ""


class _Streaming(TransportFactory):
    def __init__(self, connection: InterceptedConnection) -> None:
        self._connection = connection

    async def create(self, url: URL, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        factory = TLSTransportFactory() if url.scheme == "amqps" else TCPTransportFactory()
        reader, writer = await factory.create(url, **options)
        self._connection.stream = FrameStream(reader)
        return self._connection.stream, writer  # type: ignore[return-value]  # has the methods that aiormq uses


FrameHandler = Callable[[Any], None]


class FrameTap:
    """Calls `handlers[type(frame)]` for each frame of `channel`, and passes frames of other types on to aiormq.

    Frames with a handler in `watched` are also passed on, after their handler was called. Handlers run in the connection's
    reader task: they must neither wait nor raise. `close_reason` is the reply code and text if the broker closed the channel.
    """

    def __init__(
        self, channel: "AbstractChannel", handlers: dict[type, FrameHandler], *, watched: dict[type, FrameHandler] | None = None
    ) -> None:
        self._queue = channel.frames
        self._handler = handlers.get
        self._watched = {Channel.Close: self._on_close} | (watched or {})
        self.close_reason: tuple[int, str] | None = None
        channel.frames = cast("asyncio.Queue[Any]", self)

    async def put(self, item: tuple[int, Any]) -> None:
        """Called by the connection for each frame."""
        frame = item[1]
        handle = self._handler(type(frame))
        if handle is not None:
            handle(frame)
            return
        watch = self._watched.get(type(frame))
        if watch is not None:
            watch(frame)
        await self._queue.put(item)

    async def get(self) -> tuple[int, Any]:
        """Called by the channel's reader for each frame that is passed on."""
        return cast("tuple[int, Any]", await self._queue.get())

    def task_done(self) -> None:
        """Marks a frame as read, as the channel's reader expects."""
        self._queue.task_done()

    def _on_close(self, frame: Channel.Close) -> None:
        self.close_reason = (frame.reply_code or 0, frame.reply_text or "")


def abandon(channel: "AbstractChannel") -> None:
    """Closes a channel without waiting for the broker, so that later answers are ignored."""
    # aiormq closes a channel by itself, but sets `is_closed` later, when a call on it is cancelled. A second Close would reach
    # the broker after the channel is gone, and the broker would end the connection.
    closing = getattr(channel, "_Channel__close_event", None)
    if channel.is_closed or (closing is not None and closing.is_set()):
        return
    close = marshal(Channel.Close(reply_code=200, reply_text="", class_id=0, method_id=0), channel.number)
    try:
        channel.connection.write_queue.put_nowait(ChannelFrame(payload=close, should_close=False))
    except asyncio.QueueFull:
        # The queue of writes is full, so a task waits for room in it.
        channel.connection.create_task(channel.close())
