"""Who may pass: every route but the public ones is behind `entrance`, and asks for the role that it needs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from outbox.admin.admin import Admin
from outbox.admin.principals import Principal, Role
from outbox.admin.problems import Code, Problem

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_KEY = "outbox_asked"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: who asks, of which admin, from where."""

    admin: Admin
    principal: Principal
    request_id: str
    address: str


def entrance(find: Callable[..., Any], authenticate: Callable[..., Any]) -> Callable[..., Awaitable[None]]:
    """A dependency for whole routers. `find` finds the `Admin`, `authenticate` the `Principal`; None is nobody known."""

    async def enter(
        request: Request,
        admin: Admin = Depends(find),  # noqa: B008
        principal: Principal | None = Depends(authenticate),  # noqa: B008
    ) -> None:
        if principal is None:
            raise Problem(Code.UNAUTHENTICATED, "log in, or send a token", headers={"www-authenticate": "Bearer"})
        address = request.client.host if request.client else ""
        setattr(request.state, _KEY, Asked(admin, principal, request.state.request_id, address))

    return enter


def require(role: Role) -> Callable[[Request], Awaitable[Asked]]:
    """A dependency that lets pass whoever has `role`."""

    async def dependency(request: Request) -> Asked:
        asked: Asked = getattr(request.state, _KEY)
        if not asked.principal.role.includes(role):
            raise Problem(Code.FORBIDDEN, f"this takes the role {role}, and {asked.principal.name} is {asked.principal.role}")
        return asked

    return dependency


Viewer = Annotated[Asked, Depends(require(Role.VIEWER))]
Operator = Annotated[Asked, Depends(require(Role.OPERATOR))]
Administrator = Annotated[Asked, Depends(require(Role.ADMIN))]
