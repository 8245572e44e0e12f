"""`GET /events`: one database poller for all streams of a process, and a buffer for clients that reconnect."""

import asyncio
import json
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from time import monotonic
from typing import Annotated, Any

from fastapi import Header, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from outbox.admin.access import STREAM, Viewer, area, is_head
from outbox.admin.admin import Admin
from outbox.admin.authentication import TokenPrincipal
from outbox.admin.limits import too_many
from outbox.admin.models import Text
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.errors import DatabaseUnavailableError
from outbox.reporting.components import LiveStateReader, Topic
from outbox.runtime.shutdown import running_server, wait_for_exit
from outbox.runtime.tracer import silenced

HEARTBEAT = timedelta(seconds=15)
"""Time without an event after which a `heartbeat` is sent: proxies keep the connection, and clients notice one that is dead."""
MAX_WAITING = 1_000
"""Events that may wait for a client. A client further behind is disconnected, and reloads when it reconnects."""
MAX_DURATION = timedelta(minutes=5)
"""Longest duration of a stream. The client reconnects, and its credentials are checked again."""
_HEARTBEAT = b"event: heartbeat\ndata: {}\n\n"  # an event, because browsers show no comments to the page


@dataclass(slots=True, eq=False)
class Listener:
    """One client. `session` is the hash of its session, if it has one."""

    principal: str
    session: bytes | None = None
    _waiting: deque[bytes] = field(default_factory=deque)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: bool = False
    _ends_at: float = field(default_factory=lambda: monotonic() + MAX_DURATION.total_seconds())

    def send(self, written: bytes) -> None:
        """Queues an event. Ends the stream if the client is too far behind."""
        # A slow client must not fill the memory. It reconnects, and gets what it missed from the buffer, or a `reset`.
        if len(self._waiting) >= MAX_WAITING:
            self.end()
        if not self._ended:
            self._waiting.append(written)
            self._woken.set()

    def end(self) -> None:
        """Ends the stream after the current chunk, and drops queued events."""
        self._ended = True
        self._waiting.clear()
        self._woken.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yields the bytes to send, until the stream ends."""
        while not self._ended and (left := self._ends_at - monotonic()) > 0:
            if self._waiting:
                yield self._waiting.popleft()
                continue
            self._woken.clear()
            try:
                async with asyncio.timeout(min(left, HEARTBEAT.total_seconds())):
                    await self._woken.wait()
            except TimeoutError:
                yield _HEARTBEAT


POLL_INTERVAL = timedelta(seconds=1)
"""Interval of polling the database, while a client listens."""
BUFFER_SIZE = 1_000
"""Events kept for clients that reconnect."""
RECONNECT_DELAY = timedelta(seconds=2)
"""Delay after which a client reconnects."""

logger = logging.getLogger("outbox")


class Broadcaster:
    """Sends changes to all listeners of this process. Polls the database only while there are listeners.

    Events are numbered. A client that reconnects with the id of its last event receives the later ones. If they are no longer
    in the buffer, or the id is from another process, it receives a `reset` and must reload everything.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._reader = LiveStateReader(admin.table)
        self._epoch = secrets.token_hex(4)
        self._number = 0
        self._buffer: deque[bytes] = deque(maxlen=BUFFER_SIZE)
        self._values: Mapping[Topic, Any] | None = None
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._ending = False

    def join(self, principal: str, last_event_id: str | None, session: bytes | None = None) -> Listener:
        """Adds a listener. Raises `too_many_streams` at the process's limit, `too_many_requests` at the principal's."""
        if self._ending or len(self._listeners) >= self._admin.streams:
            reason = "the server is shutting down" if self._ending else f"{self._admin.streams} streams are open"
            raise Problem(Code.TOO_MANY_STREAMS, f"{reason}: try again", headers={"retry-after": "5"})
        most = self._admin.streams_per_principal
        if sum(each.principal == principal for each in self._listeners) >= most:
            raise too_many(f"{most} of your streams are open", seconds=5)
        listener = Listener(principal, session)
        listener.send(f"retry: {RECONNECT_DELAY / timedelta(milliseconds=1):.0f}\n\n".encode())
        epoch, _, digits = (last_event_id or "").partition(".")
        number = int(digits) if digits.isascii() and digits.isdigit() else -1
        missed = self._number - number
        if epoch == self._epoch and 0 <= missed <= len(self._buffer):
            for written in islice(self._buffer, len(self._buffer) - missed, None):
                listener.send(written)
        else:
            is_new = last_event_id is None
            reason = "the stream begins here" if is_new else "the events after that id are no longer available"
            listener.send(self._encode("reset", {"reason": reason}))
        self._listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(silenced(self._run)(), name="outbox events")
        return listener

    def leave(self, listener: Listener) -> None:
        """Removes a listener."""
        self._listeners.discard(listener)

    async def close(self) -> None:
        """Ends every stream, and stops polling."""
        self._end()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        """Polls while a client listens."""
        # uvicorn waits for open responses before it shuts down the application, so streams must end at its signal.
        server = running_server()
        end = None if server is None else asyncio.create_task(wait_for_exit(server))
        if end is not None:
            end.add_done_callback(lambda task: None if task.cancelled() else self._end())
        try:
            while self._listeners:
                await self._poll()
                await asyncio.sleep(POLL_INTERVAL.total_seconds())
        except Exception:
            # Clients reconnect, which starts a new poller.
            logger.exception("polling for events failed: all event streams are ended")
        finally:
            if end is not None:
                end.cancel()
            self._end_streams()

    async def _poll(self) -> None:
        sessions = {each.session for each in self._listeners if each.session is not None}
        try:
            async with self._admin.reading("polling for changes") as connection:
                state = await self._reader.read(connection, sessions)
        except DatabaseUnavailableError:
            # With the last values, or everything would count as changed when the database is back.
            self._send_changes({**(self._values or {}), _DATABASE: {"available": False}})
            return
        for listener in self._listeners:
            if listener.session in sessions - state.sessions:
                listener.end()
        self._send_changes({**state.values, _DATABASE: {"available": True}})

    def _send_changes(self, values: Mapping[Topic, Any]) -> None:
        """Sends the values that have changed since the previous poll. The first poll sends nothing."""
        # Kept while no client listens: a client that reconnects gets what has changed since the last poll.
        before, self._values = self._values, values
        if before is None:
            return
        for topic, value in values.items():
            if before.get(topic) != value:
                self._send(topic[0], value)
        for kind, name in before.keys() - values.keys():
            if kind == "component":
                self._send(kind, {**before[kind, name], "status": "forgotten"})

    def _send(self, event: str, value: Any) -> None:
        self._number += 1
        written = self._encode(event, value)
        self._buffer.append(written)
        for listener in self._listeners:
            listener.send(written)

    def _encode(self, event: str, value: Any) -> bytes:
        """Encodes an event with the current number."""
        # JSON has no raw line breaks, which would end the field `data`.
        return f"id: {self._epoch}.{self._number}\nevent: {event}\ndata: {json.dumps(value)}\n\n".encode()

    def _end(self) -> None:
        self._ending = True
        self._end_streams()

    def _end_streams(self) -> None:
        for listener in self._listeners:
            listener.end()


_DATABASE: Topic = ("database", "")


SEND_TIMEOUT = timedelta(seconds=20)
"""A client that reads nothing for this long is disconnected."""


class EventStream(StreamingResponse):
    """Server-sent events. Calls `leave` when either side has ended the stream."""

    # FastAPI's own `EventSourceResponse` is newer than the oldest supported release, and waits forever for a stalled client.

    media_type = "text/event-stream"

    def __init__(self, listener: Listener, leave: Callable[[Listener], None]) -> None:
        self._listener = listener
        self._leave = leave
        super().__init__(listener.chunks(), headers={"cache-control": "no-store", "x-accel-buffering": "no"})

    async def __call__(
        self,
        scope: Scope,  # noqa: ARG002  part of the ASGI signature
        receive: Receive,
        send: Send,
    ) -> None:
        """Sends until the stream ends, the client disconnects, or a send exceeds `SEND_TIMEOUT`."""
        gone = asyncio.create_task(self._end_on_disconnect(receive))
        try:
            async with asyncio.timeout(SEND_TIMEOUT.total_seconds()) as limit:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async for chunk in self._listener.chunks():
                    # The timeout applies to each send, not to the whole stream.
                    limit.reschedule(asyncio.get_running_loop().time() + SEND_TIMEOUT.total_seconds())
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            logger.info("an event stream is ended: its client read nothing for %g s", SEND_TIMEOUT.total_seconds())
        finally:
            gone.cancel()
            self._leave(self._listener)

    async def _end_on_disconnect(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._listener.end()


router = area("events")

_EVENTS = {"text/event-stream": {"schema": {"type": "string", "description": "Server-sent events, each with an id and JSON."}}}


@router.get(
    "/events",
    operation_id=STREAM,
    status_code=200,  # otherwise FastAPI reads it from the response class
    response_class=EventStream,
    responses={
        **problem_responses(Code.TOO_MANY_STREAMS),
        200: {"description": "Events, until the stream ends.", "content": _EVENTS},
    },
)
async def stream_events(
    context: Viewer,
    request: Request,
    last_event_id: Annotated[
        Text | None, Header(description="Id of the last received event. Browsers send it when they reconnect.")
    ] = None,
) -> Response:
    """Streams an event for each change of `backlog`, `dead_letters`, `operation`, `component`, `pauses`, `statistics` (a
    minute is complete), or `database`.

    A client that sends `Last-Event-ID` receives the events that it missed. Without it, or if they are no longer available, the
    first event is `reset`: reload everything that you show. After 15 seconds without an event, a `heartbeat` is sent: if it is
    missing, the connection is dead. The stream ends after five minutes, or earlier when the session ends, the client falls
    behind, or the server stops: reconnect.
    """
    # A HEAD request has no stream, so it must not take a listener's place.
    if is_head(request):
        return Response(media_type=EventStream.media_type)
    broadcaster = context.admin.shared(Broadcaster)
    session = context.principal.session_hash if isinstance(context.principal, TokenPrincipal) else None
    return EventStream(broadcaster.join(context.principal.name, last_event_id, session), broadcaster.leave)
