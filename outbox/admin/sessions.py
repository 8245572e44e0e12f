"""`GET /access` and `DELETE /access/sessions/{id}`: who may log in with a token, and who is logged in."""

from datetime import date
from typing import Annotated

from fastapi import Path, status
from pydantic import Field

from outbox.admin.access import Administrator, area, record
from outbox.admin.models import Model, Moment
from outbox.admin.principals import Role
from outbox.admin.problems import Code, Problem, documented
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names

router = area("access")


class TokenResponse(Model):
    """A token that is configured. Nothing that could be used to log in is known of it."""

    name: str
    role: Role
    last_day: date | None = Field(description="The last day on which it is valid, in UTC; null: it does not expire.")
    expired: bool


class SessionResponse(Model):
    """A browser that is logged in with a token."""

    id: str
    name: str
    role: Role
    created_at: Moment
    expires_at: Moment


class AccessResponse(Model):
    """Who may log in, and who is logged in. Both are empty where the application authenticates."""

    tokens: list[TokenResponse] = Field(description="As configured in the process that answers.")
    sessions: list[SessionResponse] = Field(description="The newest first, up to 1,000.")


@router.get("/access", operation_id="outbox_access_list", summary="List Tokens And Sessions")
async def list_access(context: Administrator) -> AccessResponse:
    """Lists the tokens that are configured, without their hashes, and the sessions that are open in all processes."""
    tokens = context.admin.tokens
    sql = queries("access.sql", **satellite_names(context.admin.table.schema))
    async with context.admin.reading("listing sessions") as connection:
        rows = await connection.fetch(sql["list_sessions"])
    sessions = []
    for row in rows:
        entry = tokens.with_hash(bytes(row["login_hash"]))
        if entry is not None and not entry.expired:  # of others the session is not accepted any more
            sessions.append(
                SessionResponse(
                    id=row["id"],
                    name=row["name"],
                    role=entry.role,
                    created_at=row["created_at"],
                    expires_at=row["expires_at"],
                )
            )
    return AccessResponse(
        tokens=[
            TokenResponse(name=entry.name, role=entry.role, last_day=entry.last_day, expired=entry.expired)
            for entry in sorted(tokens.entries, key=lambda entry: (entry.name, entry.role))
        ],
        sessions=sessions,
    )


@router.delete(
    "/access/sessions/{id}",
    operation_id="outbox_access_end",
    summary="End A Session",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=documented(Code.NOT_FOUND, Code.CROSS_SITE, Code.READ_ONLY),
)
async def end_session(context: Administrator, session_id: Annotated[str, Path(alias="id", max_length=100)]) -> None:
    """Ends a session in every process. Its token can still log in: to prevent that, remove it from the configuration."""
    sql = queries("access.sql", **satellite_names(context.admin.table.schema))
    async with context.admin.changing("ending a session") as connection:
        name = await connection.fetchval(sql["end_session"], session_id)
        if name is None:
            raise Problem(Code.NOT_FOUND, "there is no such session, or it has ended")
        await record(connection, context, action="access.end", target=session_id, details={"name": name})
