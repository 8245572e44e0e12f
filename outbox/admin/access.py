"""Access: who asks, what they may do, how an error is answered, and what the audit keeps, for the routes of every area."""

import logging
import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints
from urllib.parse import unquote_to_bytes, urlsplit

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Query
from fastapi.routing import APIRoute
from pydantic import BaseModel
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
"""The operation that stays where nothing may be changed: it changes nothing but who asks."""
STREAM = "outbox_events_stream"
"""The operation whose answer does not end."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
UNKNOWN = "outbox_unknown"
"""The operation of all addresses that are none: there is nothing to be changed either."""
REQUEST_CONTEXT = "outbox_request_context"
"""Where a request has who asks, once that is known."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request: who asks, of which admin, from where."""

    admin: Admin
    principal: Principal
    request_id: str
    address: str
    client_request_id: str | None = None

    @property
    def masking(self) -> Masking:
        """What is hidden from the principal."""
        masking = self.admin.masking
        return masking if self.principal.role.includes(self.admin.error_text) else masking.without_errors()


def require_authentication(find: Callable[..., Any], authenticate: Callable[..., Any]) -> Callable[..., AsyncIterator[None]]:
    """A dependency for whole routers. `find` finds the `Admin`, `authenticate` the `Principal`; None: not authenticated.

    What changes something is refused here when it comes from another site, and where the admin is read-only; what reads waits
    for its turn among others of the same principal.
    """

    async def enter(
        request: Request,
        admin: Admin = Depends(find),  # noqa: B008
        principal: Principal | None = Depends(authenticate),  # noqa: B008
    ) -> AsyncIterator[None]:
        came_back(request)
        if principal is None:
            raise unauthenticated("log in, or send a token")
        if not isinstance(principal, Principal):
            raise TypeError(f"the dependency that authenticates has to return a Principal or None, not {type(principal)}")
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
                await _deny(request, context, Code.READ_ONLY, "nothing can be changed here: OUTBOX_ADMIN_READ_ONLY")
        setattr(request.state, REQUEST_CONTEXT, context)
        if request.method not in SAFE_METHODS or operation == STREAM:  # streams have a limit of their own
            yield
            return
        async with admin.shared(Reads).turn(principal.name):
            yield

    return enter


@dataclass(frozen=True)
class Require:
    """A dependency that requires the role, and has the request's body read then."""

    role: Role

    async def __call__(self, request: Request) -> RequestContext:
        context: RequestContext | None = getattr(request.state, REQUEST_CONTEXT, None)
        if context is None:  # `require_authentication` did not run
            raise unauthenticated("log in, or send a token")
        if not context.principal.role.includes(self.role):
            await _deny(
                request,
                context,
                Code.FORBIDDEN,
                f"this takes the role {self.role}; {context.principal.name} is {context.principal.role}",
            )
        await read_body(request, context.admin.body_limit)
        return context


Viewer = Annotated[RequestContext, Depends(Require(Role.VIEWER))]
Operator = Annotated[RequestContext, Depends(Require(Role.OPERATOR))]
Administrator = Annotated[RequestContext, Depends(Require(Role.ADMIN))]


async def require_reveal(request: Request) -> RequestContext:
    """A dependency for what is shown unmasked: for operators, and not because a page of another site asks for it.

    It is a GET, which is written down under a name: a page of another site must not make an operator's browser send it. Where
    browsers do not say which site asks, the cookie, which goes along from the same site only, has to do.
    """
    context = await Require(Role.OPERATOR)(request)
    if (reason := sent_by_another_site(request)) is not None:
        await _deny(request, context, Code.CROSS_SITE, reason)
    return context


async def read_body(request: Request, limit: int) -> None:
    """Reads the body of a request that was authenticated, for FastAPI and for the routes."""
    if isinstance(request, DeferredBody):
        await request.load(limit)


def provider_of(kind: type, given: Any) -> Callable[..., Any]:
    """A dependency that finds `given`, an object of that kind, or `given` itself, if it is such a dependency already."""
    if not isinstance(given, kind):
        return cast("Callable[..., Any]", given)

    async def find() -> Any:
        return given

    return find


def unauthenticated(detail: str) -> Problem:
    """The problem of a request without a valid token or session."""
    return Problem(Code.UNAUTHENTICATED, detail, headers={"www-authenticate": "Bearer"})


def address_of(request: Request) -> str:
    """Where the request comes from, as the server that runs the application has found out."""
    return request.client.host if request.client else ""


async def _deny(request: Request, context: RequestContext, code: Code, detail: str) -> None:
    """Raises the problem, written down before. It is denied also when that is not possible."""
    action, details = action_of(_operation(request)), {"code": code, "method": request.method}
    await record_refused(context, "denied", action=action, target=request.url.path, details=details)
    raise Problem(code, detail)


def _operation(request: Request) -> str:
    route = request.scope.get("route")
    return getattr(route, "operation_id", None) or request.method


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
NO_FAILURES = (Code.FORBIDDEN, Code.CROSS_SITE, Code.READ_ONLY, Code.REQUEST_RUNNING)
"""What was denied, which is written down already, and what is being done under the same key."""
_HEAD = "outbox_head"
VERSION = "Outbox-Version"
"""The header of answers that says which release answered."""
_VERSION_HEADER = {"description": "The release that answers, to those who are authenticated.", "schema": {"type": "string"}}
_REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


class HeadRoute(APIRoute):
    """A route that answers HEAD where it answers GET, with the same headers and without the body; its answers have examples."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        models = {code: response["model"] for code, response in self.responses.items() if "model" in response}
        if self.response_model is not None:
            models[self.status_code or 200] = self.response_model
        for code, model in models.items():
            if int(code) < 300:
                self.responses.setdefault(code, {})["content"] = {"application/json": AnswerExample(model)}

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
        options["responses"] = add_problem_responses(options.get("responses") or {}, *usual)
        status = options.get("status_code") or 200
        answer_of_ours = options["responses"].setdefault(status, {})
        answer_of_ours["headers"] = {VERSION: _VERSION_HEADER, **answer_of_ours.get("headers", {})}
        example = example_of(options.get("operation_id") or "", min(methods, default=""))
        options["openapi_extra"] = example | (options.get("openapi_extra") or {})
        super().__init__(path, endpoint, **options)
        self._several = frozenset(_taking_several(endpoint))

    def check_address(self, request: Request) -> None:
        """Raises `invalid_request` for an address that cannot be meant as it is written."""
        # No name and no value has the character NUL in it, and no database takes one.
        if b"\0" in unquote_to_bytes(request.scope.get("query_string", b"")) or "\0" in request.scope["path"]:
            raise Problem(Code.INVALID_REQUEST, "the address has the character NUL in it")
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
            # The id that a client or a proxy gave it is logged next to ours: any client can choose it, and one twice.
            given = request.headers.get("x-request-id", "")
            request.state.client_request_id = given if _REQUEST_ID.fullmatch(given) else None
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


async def _record_failure(request: Request, problem: Problem) -> None:
    """Writes down a change that a principal asked for, and that failed."""
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


TAGS = [
    {"name": "session", "description": "Log in and out of a browser, and see who is logged in."},
    {"name": "access", "description": "Tokens and sessions of people and scripts."},
    {"name": "backlog", "description": "How much waits, where, since when, and for how much longer."},
    {"name": "queues", "description": "Each queue: who consumes it, what waits in it, and how fast it is handled."},
    {"name": "search", "description": "Everything by one text: ids, numbers, names, words of errors."},
    {"name": "messages", "description": "Messages in the outbox: why each waits, and changes before it is sent."},
    {
        "name": "deliveries",
        "description": "Messages in queues of the database: why each waits, and changes before it is handled.",
    },
    {"name": "dlq", "description": "Dead letters: lists, details, and groups with notes and marks."},
    {"name": "repairing", "description": "Requeue, discard, restore and purge dead letters."},
    {"name": "operations", "description": "Bulk changes of dead letters in batches: progress, pause, resume, cancel."},
    {"name": "chains", "description": "Which message caused which, and the outcome of each."},
    {"name": "attempts", "description": "The latest and the slowest attempts of a queue's handler."},
    {"name": "statistics", "description": "Throughput, failures, latencies and backlog over time."},
    {"name": "components", "description": "Relays, workers, archivers and maintenance: heartbeats and pauses."},
    {"name": "events", "description": "Live events."},
    {"name": "topology", "description": "Exchanges, queues and bindings, with a hint for what is wrong."},
    {"name": "alerts", "description": "What was sent to webhooks about what is wrong."},
    {"name": "audit", "description": "Who changed what, and who was refused."},
    {"name": "export", "description": "Lists as files, CSV or NDJSON."},
    {"name": "health", "description": "Whether the process can do its work, and whether all is well with the installation."},
]
"""Each with a sentence, in the order in which they are shown."""


MOST_REFUSALS = 100
"""What one principal was denied, or failed to do, that is written down within `REFUSALS_WINDOW` by each process."""
REFUSALS_WINDOW = timedelta(minutes=1)

_ACTIONS = {
    "outbox_requeue": "dlq.requeue",
    "outbox_discard": "dlq.discard",
    "outbox_restore": "dlq.restore",
    "outbox_dlq_body": "dlq.download",
    "outbox_dlq_show": "dlq.reveal",  # nothing else of it is written down
    "outbox_messages_show": "messages.reveal",
    "outbox_messages_send_now": "messages.send_now",
    "outbox_deliveries_show": "deliveries.reveal",
    "outbox_deliveries_dead_letter": "deliveries.dead_letter",
}
_NOTHING: Mapping[str, Any] = {}


async def record(
    connection: Connection,
    context: RequestContext,
    *,
    action: str,
    target: str = "",
    outcome: AuditOutcome = "done",
    reason: str | None = None,
    details: Mapping[str, Any] = _NOTHING,
) -> None:
    """Writes an entry on `connection`, in the transaction that is open there.

    `action` is a word of the area and what was done, as in `dlq.requeue`; `target` says to what. Texts that are too long are
    cut, and what the database cannot hold is replaced: no entry is refused because of its texts.
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
    """What the audit calls an operation of the API, done or denied: `dlq.requeue`, `operations.pause`, `pause`."""
    return _ACTIONS.get(operation) or operation.removeprefix("outbox_").replace("_", ".")


async def record_refused(
    context: RequestContext, outcome: AuditOutcome, *, action: str, target: str = "", details: Mapping[str, Any] = _NOTHING
) -> None:
    """Writes down, in a transaction of its own, what a principal was denied, or what failed.

    Of what one principal tries within a minute the first hundred are written down; the next entry has how many were not.
    While the database is away, the log has it.
    """
    left_out = context.admin.shared(_Refusals).count(context.principal.name)
    if left_out is None:
        return
    more = {"left_out": left_out} if left_out else {}
    try:
        async with context.admin.changing("writing to the audit") as connection:
            await record(connection, context, action=action, target=target, outcome=outcome, details={**details, **more})
    except DatabaseUnavailableError as error:
        logger.warning("%s of %s, which was %s, is not in the audit: %s", action, context.principal.name, outcome, error)


class _Refusals:
    """Counts them, for one admin, by principal."""

    def __init__(self, _admin: Admin) -> None:
        self._windows: dict[str, _Window] = {}

    async def close(self) -> None:
        """There is nothing to close."""

    def count(self, principal: str) -> int | None:
        """How many were left out before this one, which is written down; None: it is left out, too."""
        now = monotonic()
        window = self._windows.get(principal)
        if window is None or now >= window.ends_at:
            left_out = 0 if window is None else max(0, window.count - MOST_REFUSALS)
            self._windows[principal] = _Window(now + REFUSALS_WINDOW.total_seconds(), 1)
            return left_out
        window.count += 1
        if window.count == MOST_REFUSALS + 1:
            logger.warning("%s is refused so often that the audit only counts it for a while", principal)
        return None if window.count > MOST_REFUSALS else 0


@dataclass(slots=True)
class _Window:
    ends_at: float
    count: int


_USUAL_PORTS = {"http": 80, "https": 443}


def cross_site(request: Request) -> str | None:
    """Why the request may come from another site; None if it cannot.

    Browsers say of a page of the same origin `Sec-Fetch-Site: same-origin`, and of an address that was typed `none`. Over
    plain http they say nothing there, but name the `Origin`, which must be the `Host`. What has neither and no cookie comes
    from no browser: a page can make one send cookies, but no token.
    """
    if (reason := sent_by_another_site(request)) is not None:
        return reason
    says_which = "sec-fetch-site" in request.headers or "origin" in request.headers
    if "cookie" in request.headers and not says_which:
        return "with a cookie, the header Origin or Sec-Fetch-Site must say which site asks"
    return None


def sent_by_another_site(request: Request) -> str | None:
    """Why the request does come from another site, by what the browser says; None also if it says nothing."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return None if site in ("same-origin", "none") else f"Sec-Fetch-Site is {site[:50]!r}"
    if origin is not None:
        return None if _is_host(origin, request.headers.get("host", "")) else f"the Origin {origin[:200]!r} is not the Host"
    return None


def _is_host(origin: str, host: str) -> bool:
    """Whether both are the same place; a port may be left out where it is the usual one of the origin's scheme."""
    try:
        theirs = urlsplit(origin)
        ours = urlsplit(f"{theirs.scheme}://{host}")
        usual = _USUAL_PORTS[theirs.scheme]
        return bool(host) and (theirs.hostname, theirs.port or usual) == (ours.hostname, ours.port or usual)
    except (ValueError, KeyError):
        return False
