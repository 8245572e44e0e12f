"""The answer that goes on: events as they are told, until either side ends it."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from outbox.admin.events.listeners import Listener

logger = logging.getLogger("outbox")

SEND_TIMEOUT = timedelta(seconds=20)
"""A client that takes nothing for so long is dropped."""


class EventStream(StreamingResponse):
    """Server-sent events. Calls `leave` when the stream has ended, whoever ended it.

    FastAPI's own stream of events came with a later release than the first that is supported, and waits for a client that takes
    nothing as long as that likes.
    """

    media_type = "text/event-stream"

    def __init__(self, listener: Listener, leave: Callable[[Listener], None]) -> None:
        self._listener = listener
        self._leave = leave
        super().__init__(listener.chunks(), headers={"cache-control": "no-store", "x-accel-buffering": "no"})

    async def __call__(
        self,
        scope: Scope,  # noqa: ARG002  every ASGI application is called with it
        receive: Receive,
        send: Send,
    ) -> None:
        """Sends until the stream ends, or its client is gone or takes nothing any more."""
        gone = asyncio.create_task(self._end_when_gone(receive))
        try:
            await self._send_all(send)
        except TimeoutError:
            logger.info("a stream of events is dropped: its client took nothing for %g s", SEND_TIMEOUT.total_seconds())
        finally:
            gone.cancel()
            self._leave(self._listener)

    async def _send_all(self, send: Send) -> None:
        async with asyncio.timeout(SEND_TIMEOUT.total_seconds()) as limit:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for chunk in self._listener.chunks():
                limit.reschedule(asyncio.get_running_loop().time() + SEND_TIMEOUT.total_seconds())
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _end_when_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._listener.end()
