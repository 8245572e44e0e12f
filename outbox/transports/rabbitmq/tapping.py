"""Taking frames of a channel as they arrive, before aiormq's own reader sees them.

aiormq hands every frame of a channel to the queue `channel.frames`, and a task of the channel takes it from there; each
message then gets a task of its own, and each confirm a callback. A tap stands in for that queue: it handles the frames
that come by the thousand at once, and passes everything else on to aiormq. Deliveries on
connections of our own do not get here: see `streaming.py`.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from aiormq.abc import ChannelFrame
from pamqp.commands import Channel
from pamqp.frame import marshal

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel

FrameHandler = Callable[[Any], None]


class Tap:
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
        """Likewise."""
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
