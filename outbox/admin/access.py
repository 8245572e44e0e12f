"""Access control of every route: authentication, roles, error responses, and audit entries."""

import logging
import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from time import monotonic
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints
from urllib.parse import unquote_to_bytes, urlsplit

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Query
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import HTTPConnection
from starlette.routing import Match
from starlette.types import Message, Receive, Scope, Send

import outbox
from outbox.admin.admin import Admin
from outbox.admin.examples import AnswerExample, example_of
from outbox.admin.limits import DeferredBody, Reads
from outbox.admin.principals import Principal, Role
from outbox.admin.problems import Code, Problem, add_problem_responses, answer, problem_of
from outbox.errors import DatabaseUnavailableError
from outbox.masking import Masking
from outbox.postgres.audit import AuditOutcome, Entry, write_entry
from outbox.postgres.pool import Connection

logger = logging.getLogger("outbox")

LOGOUT = "outbox_session_end"
"""The one changing operation that read-only mode allows: it ends a session and changes no message."""
STREAM = "outbox_events_stream"
"""The operation whose response stays open."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
UNKNOWN = "outbox_unknown"
"""The operation of all unknown paths. It changes nothing, whatever the method."""
REQUEST_CONTEXT = "outbox_request_context"
"""Attribute of `request.state` that holds the `RequestContext` after authentication."""
OUTBOX_NAME = "outbox_name"
"""The path parameter with the name of an outbox, in a router that serves several."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """An authenticated request: its admin, its principal, and the client's address."""

    admin: Admin
    principal: Principal
    request_id: str
    address: str
    client_request_id: str | None = None

    @property
    def masking(self) -> Masking:
        """The masking that applies to the principal: error texts are hidden below the role `error_text`."""
        masking = self.admin.masking
        return masking if self.principal.role.includes(self.admin.error_text) else masking.without_errors()


def require_authentication(find: Callable[..., Any], authenticate: Callable[..., Any]) -> Callable[..., AsyncIterator[None]]:
    """Returns a dependency for whole routers. `find` returns the `Admin`, `authenticate` the `Principal`, or None.

    Refuses changes from another site, and all changes if the admin is read-only. Limits how many reads of one principal run
    at a time; further reads wait.
    """

    async def authorize(
        request: Request,
        admin: Admin = Depends(find),  # noqa: B008
        principal: Principal | None = Depends(authenticate),  # noqa: B008
    ) -> AsyncIterator[None]:
        # The host's dependency has returned: errors from here on are answered as problems.
        setattr(request.state, _IN_HOST_DEPENDENCY, False)
        if principal is None:
            raise unauthenticated("log in, or send a token")
        if not isinstance(principal, Principal):
            raise TypeError(f"the authentication dependency must return a Principal or None, not {type(principal)}")
        route = request.scope["route"]
        if isinstance(route, AdminRoute):
            route.check_address(request)
        context = RequestContext(
            admin, principal, request.state.request_id, address_of(request), request.state.client_request_id
        )
        operation = _operation(request)
        if request.method not in SAFE_METHODS and operation != UNKNOWN:
            if (reason := cross_site(request)) is not None:
                await _deny(request, context, Code.CROSS_SITE, reason)
            if admin.read_only and operation != LOGOUT:
                await _deny(request, context, Code.READ_ONLY, "changes are disabled by OUTBOX_ADMIN_READ_ONLY")
        setattr(request.state, REQUEST_CONTEXT, context)
        # A stream stays open for minutes and would block the principal's other reads; `Broadcaster.join` limits streams.
        if request.method not in SAFE_METHODS or operation == STREAM:
            yield
            return
        async with admin.shared(Reads).slot(principal.name):
            yield

    return authorize


@dataclass(frozen=True)
class Require:
    """A dependency that requires a role, then reads the request's body."""

    role: Role

    async def __call__(self, request: Request) -> RequestContext:
        context: RequestContext | None = getattr(request.state, REQUEST_CONTEXT, None)
        # None if `require_authentication` did not run.
        if context is None:
            raise unauthenticated("log in, or send a token")
        if not context.principal.role.includes(self.role):
            await _deny(
                request,
                context,
                Code.FORBIDDEN,
                f"this requires the role {self.role}; {context.principal.name} has the role {context.principal.role}",
            )
        await read_body(request, context.admin.body_limit)
        return context


Viewer = Annotated[RequestContext, Depends(Require(Role.VIEWER))]
Operator = Annotated[RequestContext, Depends(Require(Role.OPERATOR))]
Administrator = Annotated[RequestContext, Depends(Require(Role.ADMIN))]


async def require_reveal(request: Request) -> RequestContext:
    """A dependency for unmasked data: requires the role operator, and refuses requests that another site sent."""
    # Revealing is a GET that writes an audit entry: another site must not make an operator's browser send it. If the
    # browser does not name the site, the SameSite cookie is the only protection.
    context = await Require(Role.OPERATOR)(request)
    if (reason := sent_by_another_site(request)) is not None:
        await _deny(request, context, Code.CROSS_SITE, reason)
    return context


async def read_body(request: Request, limit: int) -> None:
    """Reads the body of an authenticated request, for FastAPI and for the routes."""
    if isinstance(request, DeferredBody):
        await request.load(limit)


def provider_of(kind: type, given: Any) -> Callable[..., Any]:
    """Returns a dependency that returns `given`, or `given` itself if it is a dependency already."""
    if not isinstance(given, kind):
        return cast("Callable[..., Any]", given)

    async def find() -> Any:
        return given

    return find


def outbox_of(request: HTTPConnection) -> str | None:
    """Returns the name of the outbox in the path; None if the router serves a single one."""
    name: str | None = request.path_params.get(OUTBOX_NAME)
    return name


def unauthenticated(detail: str) -> Problem:
    """The problem of a request without a valid token or session."""
    return Problem(Code.UNAUTHENTICATED, detail, headers={"www-authenticate": "Bearer"})


def address_of(request: Request) -> str:
    """The client's address, as the ASGI server reports it; empty if it reports none."""
    return request.client.host if request.client else ""


async def _deny(request: Request, context: RequestContext, code: Code, detail: str) -> None:
    """Writes an audit entry, then raises the problem. A failing audit does not let the request through."""
    action, details = action_of(_operation(request)), {"code": code, "method": request.method}
    await record_refused(context, "denied", action=action, target=request.url.path, details=details)
    raise Problem(code, detail)


def _operation(request: Request) -> str:
    route = request.scope.get("route")
    return getattr(route, "operation_id", None) or request.method


_IN_HOST_DEPENDENCY = "outbox_in_host_dependency"
"""Attribute of `request.state` that is true while the host's dependency authenticates the request."""


async def enter_host_dependency(request: Request) -> None:
    """A dependency that runs right before one of the host's."""
    setattr(request.state, _IN_HOST_DEPENDENCY, True)


COMMON_PROBLEMS = (
    Code.UNAUTHENTICATED,
    Code.FORBIDDEN,
    Code.INVALID_REQUEST,
    Code.TOO_MANY_LOGINS,
    Code.TOO_MANY_REQUESTS,
    Code.INTERNAL,
    Code.SCHEMA_OUTDATED,
    Code.DATABASE_UNAVAILABLE,
)
"""Problems that every route may return."""
WRITE_PROBLEMS = (Code.CROSS_SITE, Code.READ_ONLY, Code.CONFLICT, Code.BODY_TOO_SLOW, Code.BODY_TOO_LARGE)
"""Problems that every changing route may return in addition."""
NOT_RECORDED = (Code.FORBIDDEN, Code.CROSS_SITE, Code.READ_ONLY, Code.REQUEST_RUNNING)
"""Problems without a `failed` entry: denials have an entry already, and a running request writes its own."""
_HEAD = "outbox_head"
VERSION = "Outbox-Version"
"""The response header that names the release."""
_VERSION_HEADER = {"description": "The release that answered, for authenticated clients only.", "schema": {"type": "string"}}
_REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


class HeadRoute(APIRoute):
    """A route that answers HEAD as GET, without the body, and documents an example of each response."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        models = {code: response["model"] for code, response in self.responses.items() if "model" in response}
        if self.response_model is not None:
            models[self.status_code or 200] = self.response_model
        for code, model in models.items():
            if int(code) < 300:
                self.responses.setdefault(code, {})["content"] = {"application/json": AnswerExample(model)}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Matches HEAD where it matches GET."""
        return super().matches(self._as_get(scope))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles the request; drops the body for HEAD."""

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        get_scope = self._as_get(scope)
        await super().handle(get_scope, receive, send if get_scope is scope else send_head)

    def _as_get(self, scope: Scope) -> Scope:
        # Not in the route's methods, since the OpenAPI document would then list every HEAD.
        if scope["type"] != "http" or scope["method"] != "HEAD" or "GET" not in (self.methods or ()):
            return scope
        return {**scope, "method": "GET", _HEAD: True}


class AdminRoute(HeadRoute):
    """A route of the admin API. Turns errors into problem details, and documents the problems that every route may return.

    An `HTTPException` other than a `Problem` comes from the host and is passed on unchanged.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        methods = set(options.get("methods") or ("GET",))
        problems = COMMON_PROBLEMS if methods <= {"GET", "HEAD"} else COMMON_PROBLEMS + WRITE_PROBLEMS
        options["responses"] = add_problem_responses(options.get("responses") or {}, *problems)
        status = options.get("status_code") or 200
        success = options["responses"].setdefault(status, {})
        success["headers"] = {VERSION: _VERSION_HEADER, **success.get("headers", {})}
        example = example_of(options.get("operation_id") or "", min(methods, default=""))
        options["openapi_extra"] = example | (options.get("openapi_extra") or {})
        super().__init__(path, endpoint, **options)
        # The query parameters that take several values: the tuples of the endpoint's query models.
        repeatable: list[str] = []
        for hint in get_type_hints(endpoint, include_extras=True).values():
            model, *metadata = get_args(hint) if get_origin(hint) is Annotated else [hint]
            if isinstance(model, type) and issubclass(model, BaseModel) and any(isinstance(each, Query) for each in metadata):
                repeatable += (name for name, field in model.model_fields.items() if _is_tuple(field.annotation))
        self._repeatable = frozenset(repeatable)

    def check_address(self, request: Request) -> None:
        """Raises `invalid_request` for a NUL character, or for a repeated parameter that takes one value."""
        # PostgreSQL stores no NUL, so no name or value can contain it.
        if b"\0" in unquote_to_bytes(request.scope.get("query_string", b"")) or "\0" in request.scope["path"]:
            raise Problem(Code.INVALID_REQUEST, "the address contains the character NUL")
        counted = Counter(name for name, _ in request.query_params.multi_items())
        if repeated := sorted(name for name, count in counted.items() if count > 1 and name not in self._repeatable):
            errors = [{"field": f"query.{name}"[:200], "message": "given more than once"} for name in repeated]
            raise Problem(Code.INVALID_REQUEST, f"{errors[0]['field']}: {errors[0]['message']}", errors=errors[:20])

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        """Wraps FastAPI's handler: adds the request id, problem details, and headers."""
        handle = super().get_route_handler()

        async def handle_with_problems(request: Request) -> Response:
            request.state.request_id = uuid.uuid4().hex
            # Never used as the request's own id: a client can choose any value, and repeat it.
            given = request.headers.get("x-request-id", "")
            request.state.client_request_id = given if _REQUEST_ID.fullmatch(given) else None
            try:
                response = await handle(DeferredBody(request))
            except Exception as error:
                problem = problem_of(error)
                is_hosts = getattr(request.state, _IN_HOST_DEPENDENCY, False)
                if problem is None or (is_hosts and not isinstance(error, Problem | RequestValidationError)):
                    raise
                await _record_failure(request, problem)
                response = answer(problem, request, error)
            response.headers["x-request-id"] = request.state.request_id
            # Unauthenticated clients must not learn the release: it would name the known vulnerabilities.
            if getattr(request.state, REQUEST_CONTEXT, None) is not None:
                response.headers[VERSION] = outbox.__version__
            response.headers.setdefault("cache-control", "no-store")
            response.headers.setdefault("x-content-type-options", "nosniff")
            return response

        return handle_with_problems


def is_head(request: Request) -> bool:
    """Whether the request is a HEAD."""
    return _HEAD in request.scope


class _AnyText(PathConvertor):
    """The rest of a path. Starlette's own `path` matches no line break, which the name of a queue may have."""

    regex = r"[\s\S]*"


ANY_TEXT = "outbox_any_text"
register_url_convertor(ANY_TEXT, _AnyText())


def area(name: str) -> APIRouter:
    """Returns a router for one area, tagged with its name. Each endpoint sets `operation_id`: `outbox_<area>_<verb>`."""
    return _Area(route_class=AdminRoute, tags=[name])


class _Area(APIRouter):
    """A router whose routes FastAPI builds on the first request for one of their paths, not for a path of a later area."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(scope) if any(ending.search(scope["path"]) for ending in self.endings) else (Match.NONE, {})

    @cached_property
    def endings(self) -> list[re.Pattern[str]]:
        """The paths of the routes, which an application prefixes."""
        return [re.compile(route.path_regex.pattern.removeprefix("^")) for route in self.routes if isinstance(route, APIRoute)]


async def _record_failure(request: Request, problem: Problem) -> None:
    """Writes an audit entry for a change that failed."""
    context = getattr(request.state, REQUEST_CONTEXT, None)
    operation = getattr(request.scope.get("route"), "operation_id", None)
    if context is None or operation in (None, UNKNOWN) or request.method in SAFE_METHODS or problem.code in NOT_RECORDED:
        return
    details = {"code": problem.code, "method": request.method}
    await record_refused(context, "failed", action=action_of(operation), target=request.url.path, details=details)


def _is_tuple(annotation: Any) -> bool:
    return get_origin(annotation) is tuple or any(_is_tuple(each) for each in get_args(annotation))


TAGS = [
    {"name": "session", "description": "Log in and out with a browser, and show the current principal."},
    {"name": "access", "description": "List tokens and sessions, and revoke them."},
    {"name": "backlog", "description": "Waiting messages: counts, ages, rates, and the time to drain."},
    {"name": "queues", "description": "Queues: consumers, depth, rates, failures, and handling times."},
    {"name": "search", "description": "Search all areas for an id, a number, a name, or an error text."},
    {"name": "messages", "description": "Messages in the outbox: list them, show why they wait, and change them."},
    {"name": "deliveries", "description": "Messages in PostgreSQL queues: list them, show why they wait, and change them."},
    {"name": "dlq", "description": "Dead letters: lists, details, and groups with notes and marks."},
    {"name": "repairing", "description": "Requeue, discard, restore and purge dead letters."},
    {"name": "operations", "description": "Bulk operations on dead letters: progress, pause, resume, cancel."},
    {"name": "chains", "description": "Chains of messages: causes, effects, and the outcome of each."},
    {"name": "attempts", "description": "Latest and slowest attempts of a queue's handler."},
    {"name": "statistics", "description": "Throughput, failures, latencies and backlog over time."},
    {"name": "components", "description": "Relays, workers, archivers and maintenance: heartbeats and pauses."},
    {"name": "events", "description": "Live events."},
    {"name": "topology", "description": "Exchanges, queues and bindings, and warnings with a hint each."},
    {"name": "alerts", "description": "Alerts that were sent to webhooks."},
    {"name": "audit", "description": "Changes and refused requests, with the principal of each."},
    {"name": "export", "description": "Download lists as CSV or NDJSON."},
    {"name": "health", "description": "Liveness and readiness of the process, and the health verdict of the installation."},
]
"""Areas of the API, in display order."""


MOST_REFUSALS = 100
"""Audit entries that each process writes within `REFUSALS_WINDOW` for denied and failed requests of one principal."""
REFUSALS_WINDOW = timedelta(minutes=1)

_ACTIONS = {
    "outbox_requeue": "dlq.requeue",
    "outbox_discard": "dlq.discard",
    "outbox_restore": "dlq.restore",
    "outbox_dlq_body": "dlq.download",
    # Reading without `reveal` writes no entry.
    "outbox_dlq_show": "dlq.reveal",
    "outbox_messages_show": "messages.reveal",
    "outbox_messages_send_now": "messages.send_now",
    "outbox_deliveries_show": "deliveries.reveal",
    "outbox_deliveries_dead_letter": "deliveries.dead_letter",
}
_NO_DETAILS: Mapping[str, Any] = {}


async def record(
    connection: Connection,
    context: RequestContext,
    *,
    action: str,
    target: str = "",
    outcome: AuditOutcome = "done",
    reason: str | None = None,
    details: Mapping[str, Any] = _NO_DETAILS,
) -> None:
    """Writes an audit entry in the open transaction of `connection`.

    `action` names the area and the change, as in `dlq.requeue`; `target` names the changed object. Cuts texts that are too
    long, and replaces characters that PostgreSQL cannot store, so no text makes an entry fail.
    """
    entry = Entry(
        actor=context.principal.name,
        role=context.principal.role,
        action=action,
        target=target,
        outcome=outcome,
        reason=reason,
        details=details,
        request_id=context.request_id,
        client_request_id=context.client_request_id,
        address=context.address,
    )
    await write_entry(connection, context.admin.table, entry)


def action_of(operation: str) -> str:
    """The audit's name of an operation: `dlq.requeue`, `operations.pause`, `pause`."""
    return _ACTIONS.get(operation) or operation.removeprefix("outbox_").replace("_", ".")


async def record_refused(
    context: RequestContext, outcome: AuditOutcome, *, action: str, target: str = "", details: Mapping[str, Any] = _NO_DETAILS
) -> None:
    """Writes an audit entry for a denied or failed request, in a separate transaction.

    Writes the first hundred of one principal in a minute; the next minute's first entry has the number of omitted ones. Logs
    the entry instead while the database is unavailable.
    """
    left_out = context.admin.shared(_Refusals).count(context.principal.name)
    if left_out is None:
        return
    more = {"left_out": left_out} if left_out else {}
    try:
        async with context.admin.changing("writing to the audit") as connection:
            await record(connection, context, action=action, target=target, outcome=outcome, details={**details, **more})
    except DatabaseUnavailableError as error:
        logger.warning("no audit entry was written: %s by %s was %s: %s", action, context.principal.name, outcome, error)


class _Refusals:
    """Counts denied and failed requests of one admin, by principal."""

    def __init__(self, _admin: Admin) -> None:
        self._windows: dict[str, _Window] = {}

    async def close(self) -> None:
        """There is nothing to close."""

    def count(self, principal: str) -> int | None:
        """Returns how many entries were omitted before this one; None if this one is to be omitted too."""
        now = monotonic()
        window = self._windows.get(principal)
        if window is None or now >= window.ends_at:
            left_out = 0 if window is None else max(0, window.count - MOST_REFUSALS)
            self._windows[principal] = _Window(now + REFUSALS_WINDOW.total_seconds(), 1)
            return left_out
        window.count += 1
        if window.count == MOST_REFUSALS + 1:
            logger.warning("%s is refused too often: further audit entries are omitted for a while", principal)
        return None if window.count > MOST_REFUSALS else 0


@dataclass(slots=True)
class _Window:
    ends_at: float
    count: int


_DEFAULT_PORTS = {"http": 80, "https": 443}


def cross_site(request: Request) -> str | None:
    """Returns why the request may come from another site; None if it cannot.

    Browsers send `Sec-Fetch-Site: same-origin` for a page of the same origin, and `none` for a typed address. Over plain HTTP
    they omit it, and send an `Origin` that must match the `Host`.
    """
    if (reason := sent_by_another_site(request)) is not None:
        return reason
    # A request with neither header and no cookie comes from no browser: a page can make one send cookies, but no token.
    names_site = "sec-fetch-site" in request.headers or "origin" in request.headers
    if "cookie" in request.headers and not names_site:
        return "a request with a cookie needs the header Origin or Sec-Fetch-Site"
    return None


def sent_by_another_site(request: Request) -> str | None:
    """Returns why the request comes from another site, by the browser's headers; None without such headers."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return None if site in ("same-origin", "none") else f"Sec-Fetch-Site is {site[:50]!r}"
    if origin is None:
        return None
    host = request.headers.get("host", "")
    try:
        sent = urlsplit(origin)
        expected = urlsplit(f"{sent.scheme}://{host}")
        default = _DEFAULT_PORTS[sent.scheme]  # either of them may omit it
        same = bool(host) and (sent.hostname, sent.port or default) == (expected.hostname, expected.port or default)
    except (ValueError, KeyError):
        same = False
    return None if same else f"the Origin {origin[:200]!r} is not the Host"
