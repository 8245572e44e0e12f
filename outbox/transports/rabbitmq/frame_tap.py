"""The stream of frames from the broker, from which deliveries are taken off before aiormq and pamqp read them.

pamqp refuses properties that are not text, or times beyond the year 9999, and aiormq then gives up the connection: one such
message in a queue would cut off every consumer, again and again, for as long as it is there. Besides, that aiormq takes three
times as long for a delivery as it takes to look at one.
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
"""Called with a frame's type, bytes that hold its payload, and where in them that begins and ends; whether it is taken.

Runs in the connection's reader: it neither waits nor raises.
"""

_CHUNK = 64 * 1024
_HEARTBEAT = marshal(Heartbeat(), 0)
_SIGN_OF_LIFE_SECONDS = 1.0
_FRAME_TYPES = (1, 2, 3, FRAME_HEARTBEAT)


class FrameStream:
    """Stands in for the `asyncio.StreamReader` of an aiormq connection, and passes on to it what no channel of ours takes.

    `close_reason` is what the broker closed the connection with, if it did; while connecting, aiormq does not tell.
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
        """From here on `take` is offered each frame of that channel."""
        self._takers[channel_number] = take

    def restore(self, channel_number: int, take: Take) -> None:
        """Ends what `divert` began; the number may belong to another channel by now."""
        if self._takers.get(channel_number) == take:
            del self._takers[channel_number]

    def at_eof(self) -> bool:
        """Whether nothing follows."""
        return not self._for_aiormq and self._at == len(self._received) and self._reader.at_eof()

    async def readexactly(self, count: int) -> bytes:
        """The next bytes of what is left for aiormq. Raises `asyncio.IncompleteReadError` where the stream ends."""
        while len(self._for_aiormq) < count:
            self._for_aiormq += await self._next_frame()
        part, self._for_aiormq = self._for_aiormq[:count], self._for_aiormq[count:]
        return part

    async def read(self, count: int = -1) -> bytes:
        """The rest, which is not looked at."""
        rest = self._for_aiormq + self._received[self._at :]
        self._for_aiormq, self._received, self._at = b"", b"", 0
        return rest + await self._reader.read(count)

    async def _next_frame(self) -> bytes:
        """The next frame that no channel of ours takes, as it came.

        Once a second at least there is one, a heartbeat if need be: aiormq gives up a connection on which it sees nothing.
        """
        while True:
            received, at = self._received, self._at
            start = at + HEAD_SIZE
            if start > len(received):
                await self._have(HEAD_SIZE)
                continue
            type_, channel_number, size = frame_head(received, at)
            if type_ not in _FRAME_TYPES:
                return self._passed_on(start)  # no frame, but a broker of another protocol version
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
            if self._read_at - self._passed_on_at > _SIGN_OF_LIFE_SECONDS:
                self._passed_on_at = self._read_at
                return _HEARTBEAT

    def _passed_on(self, end: int) -> bytes:
        frame, self._at = self._received[self._at : end], end
        self._passed_on_at = self._read_at
        return frame

    async def _have(self, count: int) -> None:
        """Waits until so many bytes are there, from the present place on."""
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
    """An aiormq connection whose deliveries can be taken off its `stream`."""

    stream: FrameStream

    def __init__(self, url: URL) -> None:
        super().__init__(url, transport_factory=_Streaming(self))

    @property
    def close_reason(self) -> str:
        """What the broker closed it with; "" if it did not."""
        return self.stream.close_reason if hasattr(self, "stream") else ""


class _Streaming(TransportFactory):
    def __init__(self, connection: InterceptedConnection) -> None:
        self._connection = connection

    async def create(self, url: URL, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        factory = TLSTransportFactory() if url.scheme == "amqps" else TCPTransportFactory()
        reader, writer = await factory.create(url, **options)
        self._connection.stream = FrameStream(reader)
        return self._connection.stream, writer  # type: ignore[return-value]  # as far as aiormq uses it


FrameHandler = Callable[[Any], None]


class FrameTap:
    """Calls `handlers[type(frame)]` for each frame of `channel`, and leaves frames of other types to aiormq.

    Frames that `watched` names are left to it too, after their handler was called.
    Handlers run in the connection's reader: they neither wait nor raise. `close_reason` is what the broker closed the
    channel with, a code and a text, if it did.
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
        """What the connection calls for each frame."""
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
        """What the channel's reader calls for the frames that are left to it."""
        return cast("tuple[int, Any]", await self._queue.get())

    def task_done(self) -> None:
        """Marks a frame as read, as the channel's reader expects."""
        self._queue.task_done()

    def _on_close(self, frame: Channel.Close) -> None:
        self.close_reason = (frame.reply_code or 0, frame.reply_text or "")


def abandon(channel: "AbstractChannel") -> None:
    """Closes a channel without waiting for the broker: answers that are still to come fit nothing any more."""
    if channel.is_closed:
        return
    close = marshal(Channel.Close(reply_code=200, reply_text="", class_id=0, method_id=0), channel.number)
    try:
        channel.connection.write_queue.put_nowait(ChannelFrame(payload=close, should_close=False))
    except asyncio.QueueFull:
        channel.connection.create_task(channel.close())
