"""`GET /session`: who is asking, and what they may do."""

from typing import Annotated, Literal

from pydantic import Field

from outbox.admin import models
from outbox.admin.access import Viewer
from outbox.admin.admin import Admin
from outbox.admin.principals import Principal, Role
from outbox.admin.routing import area
from outbox.admin.security.authentication import Known

identity = area("session")


class Permissions(models.Model):
    """What whoever asks may do now: by their role, and by whether anything can be changed here at all."""

    repair: Annotated[bool, Field(description="Requeue, discard, restore, run operations, set notes.")]
    pause: Annotated[bool, Field(description="Pause and resume relays, workers and queues.")]
    purge: Annotated[bool, Field(description="Delete dead letters for good.")]
    reveal: Annotated[bool, Field(description="See what is masked.")]
    read_audit: Annotated[bool, Field(description="See who did what.")]


class Identity(models.Model):
    """Who is asking."""

    name: str
    role: Role
    authenticated_by: Annotated[
        Literal["token", "session", "host"],
        Field(description="A token in the header, a session's cookie, or the application that the admin is part of."),
    ]
    expires_at: Annotated[models.Moment | None, Field(description="When the session ends; null without one.")]
    read_only: Annotated[bool, Field(description="Whether nothing can be changed here, whatever the role.")]
    may: Permissions


@identity.get("/session", operation_id="outbox_session_show", summary="Show Who Is Asking")
async def show_identity(asked: Viewer) -> Identity:
    """Tells who is asking, by what that is known, and what they may do."""
    return identity_of(asked.admin, asked.principal)


def identity_of(admin: Admin, principal: Principal) -> Identity:
    """The answer about `principal`."""
    known = principal if isinstance(principal, Known) else None
    return Identity(
        name=principal.name,
        role=principal.role,
        authenticated_by="host" if known is None else known.by,
        expires_at=None if known is None else known.until,
        read_only=admin.read_only,
        may=_permissions(principal.role, read_only=admin.read_only),
    )


def _permissions(role: Role, *, read_only: bool) -> Permissions:
    operates = role.includes(Role.OPERATOR)
    return Permissions(
        repair=operates and not read_only,
        pause=operates and not read_only,
        purge=role.includes(Role.ADMIN) and not read_only,
        reveal=operates,
        read_audit=operates,
    )
