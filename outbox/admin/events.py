"""`GET /events`: one reader of the database for all streams, and a buffer for clients that reconnect."""

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

HEARTBEAT = timedelta(seconds=15)
"""After so long without an event a comment is sent, so that neither side takes the other for gone."""
MOST_WAITING = 1_000
"""Events that wait for a client; one that is so far behind is dropped, and has to read again when it comes back."""
MOST_TIME = timedelta(minutes=5)
"""A stream ends after this time, and its client comes back: with the name of its last event, and with its credentials."""
_HEARTBEAT = b": still here\n\n"


@dataclass(slots=True, eq=False)
class Listener:
    """One client. `session` is the hash of the session that it came with."""

    principal: str
    session: bytes | None = None
    _waiting: deque[bytes] = field(default_factory=deque)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: bool = False
    _ends_at: float = field(default_factory=lambda: monotonic() + MOST_TIME.total_seconds())

    def tell(self, written: bytes) -> None:
        """Has this sent; ends the stream of a client that is too far behind."""
        if len(self._waiting) >= MOST_WAITING:
            self.end()
        if not self._ended:
            self._waiting.append(written)
            self._woken.set()

    def end(self) -> None:
        """Ends the stream after what is being sent; what waits is not sent any more."""
        self._ended = True
        self._waiting.clear()
        self._woken.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """What is sent, until the stream ends."""
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


EVERY = timedelta(seconds=1)
"""Between two looks, while a client listens."""
MOST_KEPT = 1_000
"""Events that are kept for clients that come back."""
COME_BACK = timedelta(seconds=2)
"""When a client tries again whose stream ended."""

logger = logging.getLogger("outbox")


class Broadcaster:
    """Sends all listeners of this process what has changed. Looks only while there are any.

    Events are numbered. A client that comes back and names the last one that it saw gets what it missed, as far as that is kept
    here; if not, or after another process, a `reset` has it read everything again.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._reader = LiveStateReader(admin.table)
        self._epoch = secrets.token_hex(4)
        self._number = 0
        self._kept: deque[bytes] = deque(maxlen=MOST_KEPT)
        self._seen: Mapping[Topic, Any] | None = None
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._ending = False

    def join(self, principal: str, last_event_id: str | None, session: bytes | None = None) -> Listener:
        """A new listener. Raises `too_many_streams` if there is no place, `too_many_requests` if the principal has enough."""
        if self._ending or len(self._listeners) >= self._admin.streams:
            reason = "the server is shutting down" if self._ending else f"{self._admin.streams} streams are open"
            raise Problem(Code.TOO_MANY_STREAMS, f"{reason}: try again", headers={"retry-after": "5"})
        most = self._admin.streams_per_principal
        if sum(each.principal == principal for each in self._listeners) >= most:
            raise too_many(f"{most} streams of yours are open", seconds=5)
        listener = Listener(principal, session)
        listener.tell(f"retry: {COME_BACK / timedelta(milliseconds=1):.0f}\n\n".encode())
        epoch, _, digits = (last_event_id or "").partition(".")
        number = int(digits) if digits.isascii() and digits.isdigit() else -1
        missed = self._number - number
        if epoch == self._epoch and 0 <= missed <= len(self._kept):
            for written in islice(self._kept, len(self._kept) - missed, None):
                listener.tell(written)
        else:
            begins = last_event_id is None
            reason = "the stream begins here" if begins else "what came after that event is not known here any more"
            listener.tell(self._written("reset", {"reason": reason}))
        self._listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="outbox events")
        return listener

    def leave(self, listener: Listener) -> None:
        """Sends it no more, and gives its place to another."""
        self._listeners.discard(listener)

    async def close(self) -> None:
        """Ends every stream, and looks no more."""
        self._end()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # --- looking -------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Looks while a client listens. Where the server's end can be seen coming, it ends the streams."""
        server = running_server()
        end = None if server is None else asyncio.create_task(wait_for_exit(server))
        if end is not None:
            end.add_done_callback(lambda task: None if task.cancelled() else self._end())
        try:
            while self._listeners:
                await self._look()
                await asyncio.sleep(EVERY.total_seconds())
        except Exception:
            # Whatever it is, clients come back, and are looked for again.
            logger.exception("the streams of events are ended")
        finally:
            if end is not None:
                end.cancel()
            self._end_streams()

    async def _look(self) -> None:
        sessions = {each.session for each in self._listeners if each.session is not None}
        try:
            async with self._admin.reading("looking for changes") as connection:
                state = await self._reader.read(connection, sessions)
        except DatabaseUnavailableError:
            self._note({**(self._seen or {}), _DATABASE: {"available": False}})
            return
        for listener in self._listeners:
            if listener.session in sessions - state.sessions:
                listener.end()
        self._note({**state.values, _DATABASE: {"available": True}})

    def _note(self, values: Mapping[Topic, Any]) -> None:
        """Sends what is another than at the last look. What was never looked at before is nothing new."""
        before, self._seen = self._seen, values
        if before is None:
            return
        for topic, value in values.items():
            if before.get(topic) != value:
                self._tell(topic[0], value)
        for kind, name in before.keys() - values.keys():
            if kind == "component":
                self._tell(kind, {**before[kind, name], "status": "forgotten"})

    # --- telling -------------------------------------------------------------------------------------------------------

    def _tell(self, event: str, value: Any) -> None:
        self._number += 1
        written = self._written(event, value)
        self._kept.append(written)
        for listener in self._listeners:
            listener.tell(written)

    def _written(self, event: str, value: Any) -> bytes:
        """The event under the present number. JSON has no line breaks."""
        return f"id: {self._epoch}.{self._number}\nevent: {event}\ndata: {json.dumps(value)}\n\n".encode()

    def _end(self) -> None:
        self._ending = True
        self._end_streams()

    def _end_streams(self) -> None:
        for listener in self._listeners:
            listener.end()


_DATABASE: Topic = ("database", "")


SEND_TIMEOUT = timedelta(seconds=20)
"""A client that takes nothing for so long is dropped."""


class EventStream(StreamingResponse):
    """Server-sent events. Calls `leave` when the stream has ended, by either side.

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
            async with asyncio.timeout(SEND_TIMEOUT.total_seconds()) as limit:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async for chunk in self._listener.chunks():
                    # The limit is one of each send: a stream that says something every few seconds goes on.
                    limit.reschedule(asyncio.get_running_loop().time() + SEND_TIMEOUT.total_seconds())
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            logger.info("a stream of events is dropped: its client took nothing for %g s", SEND_TIMEOUT.total_seconds())
        finally:
            gone.cancel()
            self._leave(self._listener)

    async def _end_when_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._listener.end()


router = area("events")

_EVENTS = {"text/event-stream": {"schema": {"type": "string", "description": "Server-sent events, each with an id and JSON."}}}


@router.get(
    "/events",
    operation_id=STREAM,
    status_code=200,  # FastAPI looks for it in the class otherwise
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
        Text | None, Header(description="The id of the last event that was seen; browsers send it when they come back.")
    ] = None,
) -> Response:
    """Streams hints that something has changed: `backlog`, `dead_letters`, `operation`, `component`, `pauses`, `statistics` (a
    minute is complete), `database`.

    A client that sends `Last-Event-ID` receives what it missed. Otherwise, or if that is no longer known, a `reset` comes
    first: reload everything that you show. A comment is sent every 15 seconds. After five minutes the stream ends, and the
    client reconnects. It ends earlier when the session ends, when the client falls behind, and when the server stops.
    """
    if is_head(request):  # who asks for headers only does not listen
        return Response(media_type=EventStream.media_type)
    broadcaster = context.admin.shared(Broadcaster)
    session = context.principal.session_hash if isinstance(context.principal, TokenPrincipal) else None
    return EventStream(broadcaster.join(context.principal.name, last_event_id, session), broadcaster.leave)
