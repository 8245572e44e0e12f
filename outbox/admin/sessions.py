"""`GET /access`, `DELETE /access/sessions/{id}` and `/tokens/{id}`: who may log in with a token, and who is logged in."""

import hashlib
from datetime import date
from typing import Annotated

from fastapi import Path, status
from pydantic import Field

from outbox.admin.access import Administrator, area, record
from outbox.admin.authentication import RevokedTokens
from outbox.admin.models import Model, Moment
from outbox.admin.principals import Role, TokenEntry
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
    id: str = Field(description="What revokes it.")
    revoked_at: Moment | None = Field(description="Null: it was not revoked.")
    revoked_by: str | None


class SessionResponse(Model):
    """A browser that is logged in, with a token or through a login provider."""

    id: str
    name: str
    role: Role
    created_at: Moment
    expires_at: Moment
    by_provider: bool = Field(description="Through a login provider, whose claims gave the role when it began.")


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
        revoked = {bytes(row["token_hash"]): row for row in await connection.fetch(sql["revoked_tokens"])}
    sessions = []
    for row in rows:
        role = None if row["role"] is None else Role(row["role"])
        by_provider = role is not None and context.admin.oidc is not None
        entry = None if role is not None else tokens.with_hash(bytes(row["login_hash"]))
        if entry is not None and not entry.expired:
            role = entry.role
        elif not by_provider:  # such a session is not accepted any more
            continue
        assert role is not None  # noqa: S101 — one of the two has said it
        sessions.append(
            SessionResponse(
                id=row["id"],
                name=row["name"],
                role=role,
                created_at=row["created_at"],
                expires_at=row["expires_at"],
                by_provider=by_provider,
            )
        )
    return AccessResponse(
        tokens=[
            TokenResponse(
                name=entry.name,
                role=entry.role,
                last_day=entry.last_day,
                expired=entry.expired,
                id=_id_of(entry),
                revoked_at=revoked[entry.token_hash]["revoked_at"] if entry.token_hash in revoked else None,
                revoked_by=revoked[entry.token_hash]["revoked_by"] if entry.token_hash in revoked else None,
            )
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
    """Ends a session in every process. Its token can still log in: `DELETE /access/tokens/{id}` prevents that."""
    sql = queries("access.sql", **satellite_names(context.admin.table.schema))
    async with context.admin.changing("ending a session") as connection:
        name = await connection.fetchval(sql["end_session"], session_id)
        if name is None:
            raise Problem(Code.NOT_FOUND, "there is no such session, or it has ended")
        await record(connection, context, action="access.end", target=session_id, details={"name": name})


@router.delete(
    "/access/tokens/{id}",
    operation_id="outbox_access_revoke",
    summary="Revoke A Token",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=documented(Code.NOT_FOUND, Code.CROSS_SITE, Code.READ_ONLY),
)
async def revoke_token(context: Administrator, token_id: Annotated[str, Path(alias="id", max_length=100)]) -> None:
    """Revokes a token for good, and ends its sessions, in every process within seconds. A new one takes a new entry.

    The entry stays in the configuration until it is removed there.
    """
    admin = context.admin
    entry = next((entry for entry in admin.tokens.entries if _id_of(entry) == token_id), None)
    if entry is None:
        raise Problem(Code.NOT_FOUND, "no token of that id is configured in the process that answers")
    sql = queries("access.sql", **satellite_names(admin.table.schema))
    async with admin.changing("revoking a token") as connection:
        await connection.execute(sql["revoke_token"], entry.token_hash, entry.name, context.principal.name)
        await record(connection, context, action="access.revoke", target=token_id, details={"name": entry.name})
    admin.shared(RevokedTokens).add(entry.token_hash)


def _id_of(entry: TokenEntry) -> str:
    """Says which one it is, and is of no use otherwise."""
    return hashlib.sha256(entry.token_hash).hexdigest()[:16]
