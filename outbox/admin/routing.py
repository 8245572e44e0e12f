"""The routes of the admin: each request has an id and a bounded body, and errors become problem details."""

import re
import uuid
from collections.abc import Callable, Coroutine

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from outbox.admin.bounds import bounded
from outbox.admin.problems import answer, problem_of

_REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


class AdminRoute(APIRoute):
    """A route of ours. An `HTTPException` that is no `Problem` is the host's, and stays as it is."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        """FastAPI's handler, within ours."""
        handle = super().get_route_handler()

        async def handle_with_problems(request: Request) -> Response:
            request.state.request_id = _request_id(request)
            try:
                response = await handle(bounded(request))
            except Exception as error:
                problem = problem_of(error)
                if problem is None:
                    raise
                response = answer(problem, request, error)
            response.headers["x-request-id"] = request.state.request_id
            response.headers.setdefault("cache-control", "no-store")
            response.headers.setdefault("x-content-type-options", "nosniff")
            return response

        return handle_with_problems


def area(name: str) -> APIRouter:
    """A router for the endpoints of one area, tagged with its name. Each names its `operation_id`: `outbox_<area>_<verb>`."""
    return APIRouter(route_class=AdminRoute, tags=[name])


def _request_id(request: Request) -> str:
    """The id that a proxy gave the request, or a new one."""
    given = request.headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
