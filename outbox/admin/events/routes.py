"""`GET /events`, a stream of server-sent events."""

from typing import Annotated

from fastapi import Header, Request, Response

from outbox.admin.access import STREAM, Viewer
from outbox.admin.events.broadcaster import Broadcaster, EventStream
from outbox.admin.models import Text
from outbox.admin.problems import Code, documented
from outbox.admin.routing import area, is_head
from outbox.admin.security.authentication import TokenPrincipal

router = area("events")

_EVENTS = {"text/event-stream": {"schema": {"type": "string", "description": "Server-sent events, each with an id and JSON."}}}


@router.get(
    "/events",
    operation_id=STREAM,
    status_code=200,  # FastAPI looks for it in the class otherwise
    response_class=EventStream,
    responses={**documented(Code.TOO_MANY_STREAMS), 200: {"description": "Events, until the stream ends.", "content": _EVENTS}},
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
