"""The route class of the admin API: request ids, bounded bodies, errors as problem details; tags for OpenAPI."""

import re
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Query
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import Match
from starlette.types import Message, Receive, Scope, Send

import outbox
from outbox.admin.audit_log import REQUEST_CONTEXT, action_of, record_refused
from outbox.admin.examples import example_of
from outbox.admin.problems import Code, Problem, answer, documented_too, problem_of
from outbox.admin.request_body import DeferredBody

_KEY = "outbox_at_the_host"


async def goes_to_the_host(request: Request) -> None:
    """A dependency right before one of the host's."""
    setattr(request.state, _KEY, True)


def came_back(request: Request) -> None:
    """The host's dependency has returned."""
    setattr(request.state, _KEY, False)


def is_at_the_host(request: Request) -> bool:
    """Whether the host is still finding out who asks."""
    found: bool = getattr(request.state, _KEY, False)
    return found


USUAL = (
    Code.UNAUTHENTICATED,
    Code.FORBIDDEN,
    Code.INVALID_REQUEST,
    Code.TOO_MANY_LOGINS,
    Code.TOO_MANY_REQUESTS,
    Code.INTERNAL,
    Code.SCHEMA_OUTDATED,
    Code.DATABASE_UNAVAILABLE,
)
"""What any route may answer with."""
CHANGING = (Code.CROSS_SITE, Code.READ_ONLY, Code.BODY_TOO_SLOW, Code.BODY_TOO_LARGE)
"""What those may answer with that change something."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
UNKNOWN = "outbox_unknown"
"""The operation of all addresses that are none: there is nothing to be changed either."""
NO_FAILURES = (Code.FORBIDDEN, Code.CROSS_SITE, Code.READ_ONLY, Code.REQUEST_RUNNING)
"""What was denied, which is written down already, and what is being done under the same key."""
_HEAD = "outbox_head"
VERSION = "Outbox-Version"
"""The header of answers that says which release answered."""
_VERSION_HEADER = {"description": "The release that answers, to those who are authenticated.", "schema": {"type": "string"}}
_REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


class HeadRoute(APIRoute):
    """A route that answers HEAD where it answers GET: with the same headers, and without the body."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As every route does; where GET fits, HEAD does."""
        return super().matches(self._as_get(scope))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers what fits."""

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        asked = self._as_get(scope)
        await super().handle(asked, receive, send if asked is scope else send_head)

    def _as_get(self, scope: Scope) -> Scope:
        """The document has no HEAD, which it would have if it were a method of the route."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or "GET" not in (self.methods or ()):
            return scope
        return {**scope, "method": "GET", _HEAD: True}


class AdminRoute(HeadRoute):
    """A route of ours. An `HTTPException` that is no `Problem` is the host's, and stays as it is.

    The problems that every route may answer with are documented with its own.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        methods = set(options.get("methods") or ("GET",))
        usual = USUAL if methods <= {"GET", "HEAD"} else USUAL + CHANGING
        options["responses"] = documented_too(options.get("responses") or {}, *usual)
        status = options.get("status_code") or 200
        options["responses"].setdefault(status, {})["headers"] = {VERSION: _VERSION_HEADER}
        example = example_of(options.get("operation_id") or "", min(methods, default=""))
        options["openapi_extra"] = example | (options.get("openapi_extra") or {})
        super().__init__(path, endpoint, **options)
        self._several = frozenset(_taking_several(endpoint))

    def check_address(self, request: Request) -> None:
        """Raises `invalid_request` for an address that cannot be meant as it is written."""
        _require_text(request)
        counted = Counter(name for name, _ in request.query_params.multi_items())
        if repeated := sorted(name for name, count in counted.items() if count > 1 and name not in self._several):
            errors = [
                {"field": f"query.{name}"[:200], "message": "it is given more than once: give it once"} for name in repeated
            ]
            raise Problem(Code.INVALID_REQUEST, f"{errors[0]['field']}: {errors[0]['message']}", errors=errors[:20])

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        """FastAPI's handler, within ours."""
        handle = super().get_route_handler()

        async def handle_with_problems(request: Request) -> Response:
            request.state.request_id = uuid.uuid4().hex
            request.state.client_request_id = _given_id(request)
            try:
                response = await handle(DeferredBody(request))
            except Exception as error:
                problem = problem_of(error)
                if problem is None or (is_at_the_host(request) and not isinstance(error, Problem | RequestValidationError)):
                    raise
                await _record_failure(request, problem)
                response = answer(problem, request, error)
            response.headers["x-request-id"] = request.state.request_id
            if getattr(request.state, REQUEST_CONTEXT, None) is not None:  # strangers do not learn which release runs
                response.headers[VERSION] = outbox.__version__
            response.headers.setdefault("cache-control", "no-store")
            response.headers.setdefault("x-content-type-options", "nosniff")
            return response

        return handle_with_problems


def is_head(request: Request) -> bool:
    """Whether only the headers of the answer to GET are wanted."""
    return _HEAD in request.scope


def area(name: str) -> APIRouter:
    """A router for the endpoints of one area, tagged with its name. Each names its `operation_id`: `outbox_<area>_<verb>`."""
    return APIRouter(route_class=AdminRoute, tags=[name])


def _given_id(request: Request) -> str | None:
    """The id that the client or a proxy gave the request. It is told next to ours: anybody can choose it, and one twice."""
    given = request.headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else None


async def _record_failure(request: Request, problem: Problem) -> None:
    """What somebody known wanted to change, and did not."""
    context = getattr(request.state, REQUEST_CONTEXT, None)
    operation = getattr(request.scope.get("route"), "operation_id", None)
    if context is None or operation in (None, UNKNOWN) or request.method in SAFE_METHODS or problem.code in NO_FAILURES:
        return
    details = {"code": problem.code, "method": request.method}
    await record_refused(context, "failed", action=action_of(operation), target=request.url.path, details=details)


def _taking_several(endpoint: Callable[..., Any]) -> Iterator[str]:
    """The query parameters that take several values: tuples of the models that an endpoint takes."""
    for hint in get_type_hints(endpoint, include_extras=True).values():
        model, *metadata = get_args(hint) if get_origin(hint) is Annotated else [hint]
        if isinstance(model, type) and issubclass(model, BaseModel) and any(isinstance(each, Query) for each in metadata):
            yield from (name for name, field in model.model_fields.items() if _is_tuple(field.annotation))


def _is_tuple(annotation: Any) -> bool:
    return get_origin(annotation) is tuple or any(_is_tuple(each) for each in get_args(annotation))


def _require_text(request: Request) -> None:
    """No name and no value has the character NUL in it, and no database takes one."""
    if b"\0" in unquote_to_bytes(request.scope.get("query_string", b"")) or "\0" in request.scope["path"]:
        raise Problem(Code.INVALID_REQUEST, "the address has the character NUL in it")


TAGS = [
    {"name": "session", "description": "Log in and out of a browser, and see who is logged in."},
    {"name": "backlog", "description": "How much waits, where, since when, and for how much longer."},
    {"name": "messages", "description": "Messages in the outbox, and why each of them waits."},
    {"name": "dlq", "description": "Dead letters: lists, groups, details and notes."},
    {"name": "repairing", "description": "Requeue, discard, restore and purge dead letters."},
    {"name": "operations", "description": "Bulk changes of dead letters in batches: progress, pause, resume, cancel."},
    {"name": "chains", "description": "Which message caused which, and the outcome of each."},
    {"name": "statistics", "description": "Throughput, failures, latencies and backlog over time."},
    {"name": "components", "description": "Relays, workers, archivers and maintenance: heartbeats and pauses."},
    {"name": "events", "description": "Live events."},
    {"name": "topology", "description": "Exchanges, queues and bindings, with a hint for what is wrong."},
    {"name": "audit", "description": "Who changed what, and who was refused."},
    {"name": "health", "description": "Whether the process can do its work, and whether all is well with the installation."},
]
"""Each with a sentence, in the order in which they are shown."""
