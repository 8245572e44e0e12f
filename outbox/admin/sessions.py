"""`GET /access`, `DELETE /access/sessions/{id}` and `DELETE /access/tokens/{id}`: configured tokens and open sessions."""

import hashlib
from datetime import date
from typing import Annotated

from fastapi import Path, status
from pydantic import Field

from outbox.admin.access import Administrator, area, record
from outbox.admin.authentication import RevokedTokens
from outbox.admin.models import Model, Moment
from outbox.admin.principals import Role, TokenEntry
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import satellite_names

router = area("access")


class TokenResponse(Model):
    """A configured token, without the secret and its hash."""

    name: str
    role: Role
    last_day: date | None = Field(description="Last day on which the token is valid, in UTC. Null if it does not expire.")
    expired: bool
    id: str = Field(description="Id for `DELETE /access/tokens/{id}`.")
    revoked_at: Moment | None = Field(description="Null if the token was not revoked.")
    revoked_by: str | None


class SessionResponse(Model):
    """A logged-in browser."""

    id: str
    name: str
    role: Role
    created_at: Moment
    expires_at: Moment
    by_provider: bool = Field(description="Whether the login was at a provider, whose claims gave the role.")


class AccessResponse(Model):
    """Configured tokens and open sessions. Both lists are empty if the host application authenticates users itself."""

    tokens: list[TokenResponse] = Field(description="Tokens as configured in the process that responds.")
    sessions: list[SessionResponse] = Field(description="Open sessions, newest first, up to 1,000.")


@router.get("/access", operation_id="outbox_access_list", summary="List Tokens And Sessions")
async def list_access(context: Administrator) -> AccessResponse:
    """Lists the configured tokens, without their hashes, and the open sessions of all processes."""
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
        elif not by_provider:
            # The login check rejects this session too: its token expired or was removed, or there is no login provider now.
            continue
        assert role is not None  # noqa: S101 — set by the token's entry or by the provider
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
    responses=problem_responses(Code.NOT_FOUND, Code.CROSS_SITE, Code.READ_ONLY),
)
async def end_session(context: Administrator, session_id: Annotated[str, Path(alias="id", max_length=100)]) -> None:
    """Ends a session in every process. The user can log in again; to prevent that, use `DELETE /access/tokens/{id}`."""
    sql = queries("access.sql", **satellite_names(context.admin.table.schema))
    async with context.admin.changing("ending a session") as connection:
        name = await connection.fetchval(sql["end_session"], session_id)
        if name is None:
            raise Problem(Code.NOT_FOUND, "there is no session with this id, or it has ended")
        await record(connection, context, action="access.end", target=session_id, details={"name": name})


@router.delete(
    "/access/tokens/{id}",
    operation_id="outbox_access_revoke",
    summary="Revoke A Token",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=problem_responses(Code.NOT_FOUND, Code.CROSS_SITE, Code.READ_ONLY),
)
async def revoke_token(context: Administrator, token_id: Annotated[str, Path(alias="id", max_length=100)]) -> None:
    """Revokes a token permanently and ends its sessions, in every process within seconds.

    The token's entry stays in the configuration until you remove it there. To grant access again, configure a new token.
    """
    admin = context.admin
    entry = next((entry for entry in admin.tokens.entries if _id_of(entry) == token_id), None)
    if entry is None:
        raise Problem(Code.NOT_FOUND, "no token with this id is configured in the process that responds")
    sql = queries("access.sql", **satellite_names(admin.table.schema))
    async with admin.changing("revoking a token") as connection:
        await connection.execute(sql["revoke_token"], entry.token_hash, entry.name, context.principal.name)
        await record(connection, context, action="access.revoke", target=token_id, details={"name": entry.name})
    # After the commit, so that this process refuses the token at once; the others read the table within seconds.
    admin.shared(RevokedTokens).add(entry.token_hash)


def _id_of(entry: TokenEntry) -> str:
    # Identifies a token without disclosing its hash.
    return hashlib.sha256(entry.token_hash).hexdigest()[:16]
