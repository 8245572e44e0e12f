"""`GET /backlog`."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from outbox.admin.access import Viewer
from outbox.admin.backlog.models import BacklogResponse, to_response
from outbox.admin.backlog.view import BacklogView
from outbox.admin.models import Request
from outbox.admin.routing import area

backlog = area("backlog")


class BacklogQuestion(Request):
    """How much of it is listed."""

    routing_keys: Annotated[int, Field(ge=0, le=200, description="How many routing keys are listed one by one.")] = 20


@backlog.get("/backlog", operation_id="outbox_backlog_show", summary="Show Backlog")
async def show(context: Viewer, question: Annotated[BacklogQuestion, Query()]) -> BacklogResponse:
    """Shows how much waits in the outbox, by state and routing key, since when and for how long, and the depths of queues.

    The figures are counted at most every two seconds; `as_of` says when. Beyond ten thousand of a state they are estimates.
    If the broker is unavailable, the answer has no queues, and `degraded` says so.
    """
    return to_response(await context.admin.shared(BacklogView).now(), top=question.routing_keys)
