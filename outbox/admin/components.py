"""`GET /components`, `GET /pauses`, `POST /pause` and `POST /resume`."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, Field

from outbox.admin.access import Operator, RequestContext, Viewer, area, record
from outbox.admin.models import Error, Instant, Model, Moment, Request, ShapedAs, Text
from outbox.admin.problems import Code, Problem
from outbox.masking import Masking
from outbox.postgres.pool import Connection
from outbox.reporting.components import ComponentKind, ComponentStatus, KnownComponent, recent_components
from outbox.reporting.pauses import Pause, PauseScope, pause, pauses, resume


class PauseKey(BaseModel):
    """What names a pause."""

    scope: PauseScope
    name: str = Field(description="Of the relay, worker or queue; empty: all relays, or all workers.")


class ComponentFailure(BaseModel):
    """What failed last."""

    failed_at: Moment
    subject: str = Field(description="The routing key, or the queue.")
    error: Error


class PoisonMessage(BaseModel):
    """A message with which workers crashed more often than its consumer allows."""

    queue: str
    message_id: str
    step: Literal["waiting", "running", "postponed"] = Field(
        description="`waiting` for other handlers to end, `running` alone, or `postponed` because they did not end in time."
    )


class ComponentActivity(BaseModel):
    """What a component reports."""

    state: str = Field(
        description="`starting`, `running`, `standing_by`, `paused`, `draining`, `isolating_a_poison_message`, "
        "`waiting_for_broker` or `waiting_for_database`."
    )
    totals: dict[str, int] = Field(description="Messages since it started, by outcome: `sent`, `success`, …")
    per_second: dict[str, float] = Field(description="Messages a second, over about the last ten seconds.")
    in_flight: int | None = Field(default=None, description="Messages that it has taken and not yet settled.")
    unsent: int | None = Field(default=None, description="Of a relay: messages in the outbox.")
    oldest_due_age_seconds: float | None = Field(
        default=None, description="Of a relay: how long the first message has been due."
    )
    last_sent_at: Moment | None = Field(default=None, description="Of a relay: when it last sent something.")
    history_lost_count: int | None = Field(
        default=None, description="Entries of the history that it could not write since it started; missing: none."
    )
    history_lost_at: Moment | None = Field(default=None, description="When it reported that last.")
    wakes_by: Literal["listening", "polling"] | None = Field(
        default=None, description="Of a relay: how it learns of new messages."
    )
    paused_queues: list[str] | None = Field(default=None, description="Queues that are paused.")
    failing_queues: list[str] | None = Field(
        default=None, description="Queues that pause themselves because their handlers fail with what they pause on."
    )
    poison_messages: list[PoisonMessage] | None = Field(
        default=None, description="Messages with which workers crashed too often, which run alone or wait to; the latest ten."
    )
    pending_pauses: list[PauseKey] | None = Field(default=None, description="Pauses that wait for what is in flight.")
    waiting_for: dict[str, str] | None = Field(default=None, description="Why the `broker` or the `database` is not there.")
    last_failure: ComponentFailure | None = None


class RetryPlan(BaseModel):
    """When a consumer tries again."""

    delays_seconds: list[float] = Field(description="The delays that are fixed.")
    computed: bool = Field(description="Whether there may be others.")


class ConsumerResponse(BaseModel):
    """A consumer, as its worker runs it."""

    queue: str
    handler: str = Field(
        default="", description="The qualified name of its callback; empty: an older release does not report it."
    )
    binding_key: str
    retry: RetryPlan
    timeout_seconds: float | None
    prefetch_count: int
    max_deliveries: int
    ordered: bool
    inbox: bool
    batch: bool
    history: bool = Field(default=False, description="Whether the worker records the outcome of each message in the history.")
    body: dict[str, Any] | None = Field(
        default=None, description="With `schemas=true`: the JSON schema of the body, if it has one."
    )


Applied = Literal["applied", "pending", "silent"]


class PausedComponent(Model):
    """A component that a pause concerns."""

    id: str
    kind: ComponentKind
    name: str
    status: ComponentStatus
    state: Applied = Field(
        description="`applied`: it takes nothing new, and has nothing of it in flight; `pending`: it has not said so yet, or "
        "finishes what is in flight; `silent`: it is lost, and cannot say."
    )


class PauseResponse(Model):
    """A pause, and where it is applied."""

    scope: PauseScope
    name: str = Field(description="Of the relay, worker or queue; empty: all relays, or all workers.")
    reason: str | None
    requested_by: str | None
    requested_at: Moment
    expires_at: Moment | None = Field(description="When it ends by itself.")
    state: Literal["applied", "pending", "unmet"] = Field(
        description="`applied`: by all running components; `pending`: not by all yet; `unmet`: it concerns no component."
    )
    components: list[PausedComponent]


def pauses_now(pauses: Iterable[Pause], components: Sequence[KnownComponent]) -> list[PauseResponse]:
    """Each pause with the components that it concerns, those that ended aside."""
    found = []
    for each in pauses:
        wish = {"scope": each.scope.value, "name": each.name}
        concerned = [
            PausedComponent(
                id=component.id,
                kind=component.kind,
                name=component.name,
                status=component.condition,
                state=(
                    "silent"
                    if component.condition is ComponentStatus.LOST
                    else "applied"
                    if any(dict(applied) == wish for applied in component.applied)
                    else "pending"
                ),
            )
            for component in components
            if component.condition is not ComponentStatus.STOPPED and _concerns(each, component)
        ]
        # A lost component cannot say whether it pauses, and keeps no pause pending.
        states = {component.state for component in concerned} - {"silent"}
        found.append(
            PauseResponse(
                scope=each.scope,
                name=each.name,
                reason=each.reason,
                requested_by=each.requested_by,
                requested_at=each.requested_at,
                expires_at=each.until,
                state="unmet" if not states else "applied" if states == {"applied"} else "pending",
                components=concerned,
            )
        )
    return found


def _concerns(pause: Pause, component: KnownComponent) -> bool:
    if pause.scope is PauseScope.QUEUE:
        return component.kind is ComponentKind.WORKER and any(
            isinstance(consumer, Mapping) and consumer.get("queue") == pause.name for consumer in component.consumers
        )
    return component.kind.value == pause.scope.value and pause.name in ("", component.name)


class ComponentResponse(Model):
    """A relay, worker, archiver or maintenance task, as its last heartbeat describes it."""

    id: str
    kind: ComponentKind
    name: str
    host: str
    process_id: int
    version: str
    service_version: str | None = Field(description="The release of the service, as configured; null: not configured.")
    status: ComponentStatus = Field(
        description="`late`: two heartbeats are missing; `lost`: six are; `stopped`: it ended cleanly."
    )
    status_changed_at: Moment = Field(description="Since when it has that status.")
    started_at: Moment
    last_heartbeat_at: Moment
    stopped_at: Moment | None
    heartbeat_interval_seconds: float = Field(description="How often it sends a heartbeat.")
    activity: Annotated[dict[str, Any], ShapedAs(ComponentActivity)] = Field(description="What it reports.")
    consumers: list[Annotated[dict[str, Any], ShapedAs(ConsumerResponse)]] = Field(description="What a worker runs.")
    applied_pauses: list[Annotated[dict[str, Any], ShapedAs(PauseKey)]] = Field(description="The pauses that it applies.")


class Components(Model):
    """Every component with a recent heartbeat, and the active pauses."""

    as_of: Moment
    items: list[ComponentResponse]
    pauses: list[PauseResponse]


class Pauses(Model):
    """The pauses that are wanted now."""

    as_of: Moment
    items: list[PauseResponse]


def to_response(component: KnownComponent, masking: Masking) -> ComponentResponse:
    """The component; what its last error quotes is masked."""
    changed_at = {ComponentStatus.STOPPED: component.stopped_at, ComponentStatus.ALIVE: component.started_at}
    return ComponentResponse(
        id=component.id,
        kind=component.kind,
        name=component.name,
        host=component.host,
        process_id=component.process_id,
        version=component.version,
        service_version=component.service_version,
        status=component.condition,
        status_changed_at=changed_at.get(component.condition, component.seen_at),
        started_at=component.started_at,
        last_heartbeat_at=component.seen_at,
        stopped_at=component.stopped_at,
        heartbeat_interval_seconds=component.every.total_seconds(),
        activity=_activity(component, masking),
        consumers=[dict(consumer) for consumer in component.consumers],
        applied_pauses=[dict(pause) for pause in component.applied],
    )


def _activity(component: KnownComponent, masking: Masking) -> dict[str, Any]:
    """What a heartbeat says, in the words of the API: heartbeats store older names, and say `paused` for one queue of many."""
    activity = {_ACTIVITY.get(name, name): value for name, value in component.activity.items()}
    if isinstance(state := activity.get("state"), str):
        paused = activity.get("paused_queues")
        consumed = {consumer.get("queue") for consumer in component.consumers if isinstance(consumer, Mapping)}
        is_partly = isinstance(paused, list) and bool(consumed - set(map(str, paused)))
        activity["state"] = "running" if state == "paused" and is_partly else state.replace(" ", "_")
    failure = activity.pop("last_failure", None)
    if isinstance(failure, dict):
        error = Error(type="", message=masking.error_text(str(failure.get("text", ""))))
        activity["last_failure"] = {
            "failed_at": failure.get("at"),
            "subject": failure.get("about", ""),
            "error": error.model_dump(),
        }
    return activity


_ACTIVITY = {
    "in_hand": "in_flight",
    "oldest_due_seconds": "oldest_due_age_seconds",
    "pausing": "pending_pauses",
    "last_error": "last_failure",
}


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
        [now] = [one for one in await _pauses_now(connection, context) if (one.scope, one.name) == (wanted.scope, wanted.name)]
    return now


@components.post("/resume", operation_id="outbox_resume", summary="End A Pause")
async def resume_it(context: Operator, wanted: ResumeRequest) -> Resumed:
    """Ends a pause. Other pauses that cover the same relay, worker or queue stay, and are listed in the answer."""
    _require_name(wanted.scope, wanted.name)
    async with context.admin.changing("resuming") as connection:
        # Before the pause ends: afterwards nothing says which components it covered.
        before = await _pauses_now(connection, context)
        taken_back = await resume(connection, wanted.scope, wanted.name, schema=context.admin.table.schema)
        if taken_back:
            await record(connection, context, action="resume", target=_target(wanted), reason=wanted.reason)
    key = (wanted.scope, wanted.name)
    concerned = {one.id for each in before if (each.scope, each.name) == key for one in each.components}
    others = [each for each in before if (each.scope, each.name) != key and concerned & {one.id for one in each.components}]
    return Resumed(resumed=taken_back, still_paused_by=others)


async def _pauses_now(connection: Connection, context: RequestContext) -> list[PauseResponse]:
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
