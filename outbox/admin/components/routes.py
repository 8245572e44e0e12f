"""`GET /components`, `GET /pauses`, `POST /pause` and `POST /resume`."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from pydantic import Field

from outbox.admin.access import Operator, RequestContext, Viewer
from outbox.admin.audit_log import record
from outbox.admin.components.models import Components, PauseResponse, Pauses, pauses_now, to_response
from outbox.admin.models import Instant, Model, Request, Text
from outbox.admin.problems import Code, Problem
from outbox.admin.routing import area
from outbox.postgres.pool import Connection
from outbox.reporting.components import KnownComponent, recent_components
from outbox.reporting.pauses import Pause, PauseScope, pause, pauses, resume

components = area("components")


class ComponentsQuestion(Request):
    """Which components are listed, and how."""

    schemas: Annotated[bool, Field(description="With the JSON schemas of the bodies that consumers take.")] = False
    ended: Annotated[int, Field(ge=0, le=500, description="How many lost and stopped ones are listed, the latest.")] = 50


class PauseRequest(Request):
    """What is to take nothing new."""

    scope: PauseScope
    name: Text = Field(
        default="", description="Of the relay, worker or queue; empty: all relays, or all workers. A queue needs its name."
    )
    reason: Text | None = Field(default=None, description="Why, for other operators.")
    expires_at: Instant | None = Field(default=None, description="When it ends by itself; null: when it is resumed.")


class ResumeRequest(Request):
    """Which pause is taken back, in the words in which it was asked for."""

    scope: PauseScope
    name: Text = ""
    reason: Text | None = Field(default=None, description="For the audit.")


class Resumed(Model):
    """The outcome of ending a pause."""

    resumed: bool = Field(description="False: there was no such pause.")
    still_paused_by: list[PauseResponse] = Field(description="Other pauses that cover some of the same components.")


@components.get("/components", operation_id="outbox_components_list")
async def list_components(context: Viewer, question: Annotated[ComponentsQuestion, Query()]) -> Components:
    """Lists relays, workers, archivers and maintenance: status, activity, consumers, and the pauses that they apply.

    Of the lost and stopped ones the latest are listed, for up to a day.
    """
    async with context.admin.reading("listing components") as connection:
        known = await _known(connection, context, ended=question.ended, schemas=question.schemas)
        wanted = await _wanted(connection, context)
        at = await connection.fetchval("select now()")
    masking = context.masking
    return Components(
        as_of=at, items=[to_response(component, masking) for component in known], pauses=pauses_now(wanted, known)
    )


@components.get("/pauses", operation_id="outbox_pauses_list")
async def list_pauses(context: Viewer) -> Pauses:
    """Lists the active pauses, and where each is applied."""
    async with context.admin.reading("listing pauses") as connection:
        known, wanted = await _known(connection, context), await _wanted(connection, context)
        at = await connection.fetchval("select now()")
    return Pauses(as_of=at, items=pauses_now(wanted, known))


@components.post("/pause", operation_id="outbox_pause", summary="Pause Relays, Workers Or A Queue")
async def pause_it(context: Operator, wanted: PauseRequest) -> PauseResponse:
    """Pauses a relay, a worker, or a queue within a second. What is in flight is finished.

    Repeating the request replaces reason and end. The answer says where the pause is applied so far: poll `/pauses`.
    """
    if wanted.expires_at is not None and wanted.expires_at <= datetime.now(UTC):
        raise Problem(Code.INVALID_REQUEST, f"the pause would be over already: {wanted.expires_at.isoformat()} is past")
    _require_name(wanted.scope, wanted.name)
    async with context.admin.changing("pausing") as connection:
        schema = context.admin.table.schema
        by = context.principal.name[:1_000]
        asking = Pause(scope=wanted.scope, name=wanted.name, reason=wanted.reason, requested_by=by, until=wanted.expires_at)
        await pause(connection, asking, schema=schema)
        until = None if wanted.expires_at is None else wanted.expires_at.isoformat()
        await record(
            connection, context, action="pause", target=_target(wanted), reason=wanted.reason, details={"expires_at": until}
        )
        [now] = [one for one in await _now(connection, context) if (one.scope, one.name) == (wanted.scope, wanted.name)]
    return now


@components.post("/resume", operation_id="outbox_resume", summary="End A Pause")
async def resume_it(context: Operator, wanted: ResumeRequest) -> Resumed:
    """Ends a pause. Other pauses that cover the same relay, worker or queue stay, and are listed in the answer."""
    _require_name(wanted.scope, wanted.name)
    async with context.admin.changing("resuming") as connection:
        before = await _now(connection, context)
        taken_back = await resume(connection, wanted.scope, wanted.name, schema=context.admin.table.schema)
        if taken_back:
            await record(connection, context, action="resume", target=_target(wanted), reason=wanted.reason)
    return Resumed(resumed=taken_back, still_paused_by=_others(before, wanted))


def _others(pauses_before: list[PauseResponse], wanted: ResumeRequest) -> list[PauseResponse]:
    """Those that concern a component of the pause that was taken back."""
    key = (wanted.scope, wanted.name)
    concerned = {one.id for each in pauses_before if (each.scope, each.name) == key for one in each.components}
    return [
        each
        for each in pauses_before
        if (each.scope, each.name) != key and concerned & {component.id for component in each.components}
    ]


async def _now(connection: Connection, context: RequestContext) -> list[PauseResponse]:
    return pauses_now(await _wanted(connection, context), await _known(connection, context))


async def _known(
    connection: Connection, context: RequestContext, *, ended: int = 50, schemas: bool = False
) -> list[KnownComponent]:
    return list(await recent_components(connection, schema=context.admin.table.schema, ended=ended, schemas=schemas))


async def _wanted(connection: Connection, context: RequestContext) -> list[Pause]:
    return list(await pauses(connection, schema=context.admin.table.schema))


def _target(wanted: PauseRequest | ResumeRequest) -> str:
    return f"{wanted.scope.value} {wanted.name}".strip()


def _require_name(scope: PauseScope, name: str) -> None:
    if scope is PauseScope.QUEUE and not name:
        raise Problem(Code.INVALID_REQUEST, "a pause of a queue names the queue")
