"""Several outboxes in one router: finds the `Admin` that a path names, lists the outboxes, and redirects to a dashboard."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any
from urllib.parse import quote

import asyncpg
from fastapi import APIRouter, Depends, Path, Request, Response, Security
from pydantic import Field

from outbox.admin.access import address_of, area, enter_host_dependency, unauthenticated
from outbox.admin.admin import Admin
from outbox.admin.authentication import (
    EnvironmentResponse,
    FailedLogins,
    RevokedTokens,
    bearer_token,
    principal_of_cookie,
    session_cookie,
)
from outbox.admin.models import Model
from outbox.admin.principals import Principal
from outbox.admin.problems import Code, Problem
from outbox.admin.ui import LAST_COOKIE
from outbox.errors import ConfigurationError, DatabaseUnavailableError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", re.ASCII)
_RESERVED = ("health", "outboxes", "ui")
"""Paths of the router itself."""
_PATIENCE = 3.0
"""Seconds until an outbox whose database does not answer counts as unknown."""


class OutboxResponse(Model):
    """An outbox that this address serves."""

    name: str = Field(description="Its API is below `{name}/`, its dashboard below `{name}/ui/`.")
    may_enter: bool | None = Field(
        description="Whether the client's token or session is valid there. Null: unknown, because its database does not "
        "answer, or because the host application decides for each request."
    )
    environment: EnvironmentResponse | None = Field(description="Null if it has none, or if the client may not enter.")


class OutboxesResponse(Model):
    """The outboxes, in the order of the configuration."""

    items: list[OutboxResponse]


def check_outbox_name(name: str) -> None:
    """Raises `ConfigurationError` for a name that cannot be a segment of a path and a part of a cookie's name."""
    if not _NAME.fullmatch(name) or name in _RESERVED:
        reserved = ", ".join(_RESERVED)
        raise ConfigurationError(
            f"an outbox's name must be 1 to 40 letters, digits, - and _, not {name!r}, and none of {reserved}"
        )


class Outboxes:
    """The admins of a router, by name.

    Raises `ConfigurationError` like `check_outbox_name`, without any admin, and for a value that is no `Admin`.
    """

    def __init__(self, admins: Mapping[str, Admin]) -> None:
        if not admins:
            raise ConfigurationError("admin_router needs at least one Admin")
        for name, admin in admins.items():
            check_outbox_name(name)
            if not isinstance(admin, Admin):
                raise ConfigurationError(f"the value of {name!r} must be an Admin, not {type(admin).__name__}")
        self.admins = dict(admins)

    async def find(self, outbox_name: Annotated[str, Path(description="Name of the outbox, as in `GET /outboxes`.")]) -> Admin:
        """Returns the admin that the path names. Raises `not_found` for another name."""
        if (admin := self.admins.get(outbox_name)) is None:
            raise Problem(
                Code.NOT_FOUND, f"no outbox is named {outbox_name[:40]!r}: the address needs a name that GET /outboxes lists"
            )
        return admin

    def routes(self, authenticate: Callable[..., Any] | None) -> APIRouter:
        """Returns `GET /outboxes`, and the redirects to a dashboard. `authenticate` is the host's dependency, if any."""
        listing = area("session")
        find_entries = self.client_entries if authenticate is None else self.host_entries(authenticate)
        before = [] if authenticate is None else [Depends(enter_host_dependency)]

        @listing.get("/outboxes", operation_id="outbox_outboxes_list", summary="List Outboxes", dependencies=before)
        async def list_outboxes(entries: Annotated[Mapping[str, bool | None], Depends(find_entries)]) -> OutboxesResponse:
            """Lists the outboxes that this address serves, and which of them the client may enter.

            A client that may enter none of them is unauthenticated, and learns nothing.
            """
            items = []
            for name, may_enter in entries.items():
                environment = None if may_enter is False else self.admins[name].environment
                items.append(OutboxResponse.model_validate({"name": name, "may_enter": may_enter, "environment": environment}))
            return OutboxesResponse(items=items)

        async def redirect(request: Request) -> Response:
            entries = await self._sessions(request) if authenticate is None else {}
            last = request.cookies.get(LAST_COOKIE)
            name = min(self.admins, key=lambda each: (entries.get(each) is not True, each != last))
            # Relative, so that it is correct under every prefix. From the path as it was sent: an encoded slash stays one.
            sent = (request.scope.get("raw_path") or quote(str(request.scope["path"])).encode()).decode("latin-1")
            address = request.path_params.get("address")
            depth = 0 if address is None else 1 + max(0, address.count("/") - sent.upper().count("%2F"))
            page = "/".join(sent.split("/")[-depth:]) if depth else ""
            query = f"?{request.url.query}" if request.url.query else ""
            location = f"{'../' * depth}{name}/ui/{page}{query}"
            return Response(status_code=307, headers={"Location": location, "Cache-Control": "no-store"})

        router = APIRouter()
        router.include_router(listing)
        for path in ("/", "/ui", "/ui/{address:path}"):
            router.add_api_route(path, redirect, methods=["GET", "HEAD"], include_in_schema=False)
        return router

    async def client_entries(
        self, request: Request, header: Annotated[Any, Security(bearer_token)], _: Annotated[Any, Security(session_cookie)]
    ) -> Mapping[str, bool | None]:
        """Whether each outbox accepts the client's token or session. Raises `unauthenticated` if none does."""
        if header is None:
            entries = await self._sessions(request)
        else:
            entries = dict[str, bool | None]()
            for name, admin in self.admins.items():
                entry = admin.tokens.find(header.credentials)
                entries[name] = (
                    entry is not None and not entry.expired and not await admin.shared(RevokedTokens).has(entry.token_hash)
                )
            if True not in entries.values():
                # Counted once, not for each outbox that the token is not for.
                await next(iter(self.admins.values())).shared(FailedLogins).count(address_of(request))
        if True not in entries.values():
            if None in entries.values():
                raise DatabaseUnavailableError("the database did not answer while looking for a session")
            raise unauthenticated("log in to one of the outboxes, or send a token")
        return entries

    def host_entries(self, authenticate: Callable[..., Any]) -> Callable[..., Awaitable[Mapping[str, bool | None]]]:
        """Returns a dependency for all outboxes with None. It raises `unauthenticated` if the host does not know the client."""

        async def entries(principal: Annotated[Principal | None, Depends(authenticate)]) -> Mapping[str, bool | None]:
            if principal is None:
                raise unauthenticated("log in")
            return dict.fromkeys(self.admins)

        return entries

    async def _sessions(self, request: Request) -> Mapping[str, bool | None]:
        """Whether the browser has a session at each outbox; None where its database does not answer, or lacks the tables."""

        async def has_session(name: str, admin: Admin) -> bool | None:
            try:
                async with asyncio.timeout(_PATIENCE):
                    return await principal_of_cookie(admin, request, name) is not None
            except (TimeoutError, DatabaseUnavailableError, asyncpg.PostgresError):
                return None

        found = await asyncio.gather(*(has_session(name, admin) for name, admin in self.admins.items()))
        return dict(zip(self.admins, found, strict=True))
