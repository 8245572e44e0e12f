"""Access: every route but the public ones requires authentication, and the role that it names."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from outbox.admin.admin import Admin
from outbox.admin.audit_log import REQUEST_CONTEXT, action_of, record_refused
from outbox.admin.limits import Reads
from outbox.admin.principals import Principal, Role
from outbox.admin.problems import Code, Problem
from outbox.admin.request_body import DeferredBody
from outbox.admin.routing import SAFE_METHODS, UNKNOWN, AdminRoute, came_back
from outbox.admin.security.origin import cross_site, sent_by_another_site
from outbox.masking import Masking

LOGOUT = "outbox_session_end"
"""The operation that stays where nothing may be changed: it changes nothing but who asks."""
STREAM = "outbox_events_stream"
"""The operation whose answer does not end."""


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
        """What is hidden from whoever asks."""
        masking = self.admin.masking
        return masking if self.principal.role.includes(self.admin.error_text) else masking.without_errors()


def require_authentication(find: Callable[..., Any], authenticate: Callable[..., Any]) -> Callable[..., AsyncIterator[None]]:
    """A dependency for whole routers. `find` finds the `Admin`, `authenticate` the `Principal`; None is nobody known.

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
            await _require_may_change(request, context)
        setattr(request.state, REQUEST_CONTEXT, context)
        if request.method not in SAFE_METHODS or operation == STREAM:  # streams have a limit of their own
            yield
            return
        async with admin.shared(Reads).turn(principal.name):
            yield

    return enter


@dataclass(frozen=True)
class Require:
    """A dependency that lets pass whoever has the role, and has the request's body read then."""

    role: Role

    async def __call__(self, request: Request) -> RequestContext:
        context: RequestContext | None = getattr(request.state, REQUEST_CONTEXT, None)
        if context is None:  # the entrance was not passed, whatever the reason
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

    It is a GET, which is written down under a name: a page of another site must not make somebody's browser send it. Where
    browsers do not say which site asks, the cookie, which goes along from the same site only, has to do.
    """
    context = await Require(Role.OPERATOR)(request)
    if (reason := sent_by_another_site(request)) is not None:
        await _deny(request, context, Code.CROSS_SITE, reason)
    return context


async def read_body(request: Request, limit: int) -> None:
    """Reads the body of a request that was let in, for FastAPI and for whoever asks the request for it."""
    if isinstance(request, DeferredBody):
        await request.load(limit)


def unauthenticated(detail: str) -> Problem:
    """Nobody known is asking."""
    return Problem(Code.UNAUTHENTICATED, detail, headers={"www-authenticate": "Bearer"})


def address_of(request: Request) -> str:
    """Where the request comes from, as the server that runs the application has found out."""
    return request.client.host if request.client else ""


async def _require_may_change(request: Request, context: RequestContext) -> None:
    if (reason := cross_site(request)) is not None:
        await _deny(request, context, Code.CROSS_SITE, reason)
    if context.admin.read_only and _operation(request) != LOGOUT:
        await _deny(request, context, Code.READ_ONLY, "nothing can be changed here: OUTBOX_ADMIN_READ_ONLY")


async def _deny(request: Request, context: RequestContext, code: Code, detail: str) -> None:
    """Raises the problem, written down before. It is denied also when that is not possible."""
    action, details = action_of(_operation(request)), {"code": code, "method": request.method}
    await record_refused(context, "denied", action=action, target=request.url.path, details=details)
    raise Problem(code, detail)


def _operation(request: Request) -> str:
    route = request.scope.get("route")
    return getattr(route, "operation_id", None) or request.method
