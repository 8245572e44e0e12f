"""An httpx transport that calls an ASGI application in this process and streams its responses.

httpx's own `ASGITransport` buffers each response, and takes a response that was cut off for complete.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import httpx

Message = Mapping[str, Any]


class InProcessTransport(httpx.AsyncBaseTransport):
    """Runs the application in a task for each request. The task ends with the response, or when the response is closed."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Returns the response as soon as its headers are available."""
        content = [await request.aread()]
        messages = asyncio.Queue[Message | None]()

        async def receive() -> Message:
            if content:
                return {"type": "http.request", "body": content.pop(), "more_body": False}
            # Never returns: closing the response cancels the task instead of sending a disconnect message.
            await asyncio.Event().wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            messages.put_nowait(message)
            await messages.join()  # backpressure: the application continues when the client has read this part

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "scheme": request.url.scheme,
            "path": request.url.path,
            "raw_path": request.url.raw_path.partition(b"?")[0],
            "query_string": request.url.query,
            "server": (request.url.host, request.url.port),
            "client": ("127.0.0.1", 0),
            "root_path": "",
        }
        body = _Body(asyncio.ensure_future(self._app(scope, receive, send)), messages)
        try:
            start = await body.next_message()
        except BaseException:
            await body.aclose()
            raise
        if start is None:
            await body.aclose()
            return httpx.Response(HTTPStatus.INTERNAL_SERVER_ERROR)
        return httpx.Response(start["status"], headers=start["headers"], stream=body)


class _Body(httpx.AsyncByteStream):
    """The body of a response. The message None means that the application has returned."""

    def __init__(self, running: asyncio.Future[None], messages: asyncio.Queue[Message | None]) -> None:
        self._running = running
        self._messages = messages
        self._is_complete = False
        running.add_done_callback(lambda _: messages.put_nowait(None))

    async def next_message(self) -> Message | None:
        message = await self._messages.get()
        self._messages.task_done()
        return message

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (message := await self.next_message()) is not None:
            self._is_complete = not message.get("more_body", False)
            yield message.get("body", b"")
            if self._is_complete:
                return
        error = self._running.exception()
        raise httpx.RemoteProtocolError("" if error is None else str(error.__cause__ or error))

    async def aclose(self) -> None:
        if not self._is_complete:
            self._running.cancel()
        await asyncio.wait([self._running])
        if not self._running.cancelled():
            self._running.exception()  # marks the exception as retrieved, so that asyncio does not log it
