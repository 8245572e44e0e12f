"""`GET /components`, `GET /pauses`, `POST /pause` and `POST /resume`."""

from collections.abc import Iterable, Sequence
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
    """The key of a pause."""

    scope: PauseScope
    name: str = Field(description="Name of the relay, worker or queue. Empty: all relays, or all workers.")


class ComponentFailure(BaseModel):
    """The latest failure of a component."""

    failed_at: Moment
    subject: str = Field(description="The routing key or the queue that it concerns.")
    error: Error


class PoisonMessage(BaseModel):
    """A message that crashed its workers more often than its consumer allows."""

    queue: str
    message_id: str
    step: Literal["waiting", "running", "postponed"] = Field(
        description="`waiting` for other handlers to end; `running` alone; `postponed`, because the others did not end in time."
    )


class ComponentActivity(BaseModel):
    """The activity that a component reports."""

    state: str = Field(
        description="`starting`, `running`, `standing_by`, `paused`, `draining`, `isolating_a_poison_message`, "
        "`waiting_for_broker` or `waiting_for_database`."
    )
    totals: dict[str, int] = Field(description="Messages since it started, by outcome, such as `sent` or `success`.")
    per_second: dict[str, float] = Field(description="Messages per second by outcome, over about the last ten seconds.")
    in_flight: int | None = Field(default=None, description="Messages that it has taken and not yet settled.")
    destination: str | None = Field(
        default=None, description="Relays only: the destination that it serves; missing: an older release does not report it."
    )
    unsent: int | None = Field(default=None, description="Relays only: unsent messages for its destination.")
    oldest_due_age_seconds: float | None = Field(
        default=None, description="Relays only: how long the oldest due message has been due."
    )
    last_sent_at: Moment | None = Field(default=None, description="Relays only: when it last sent a message.")
    history_lost_count: int | None = Field(
        default=None, description="History entries that it failed to write since it started; missing: none."
    )
    history_lost_at: Moment | None = Field(default=None, description="When it last failed to write one.")
    wakes_by: Literal["listening", "polling"] | None = Field(
        default=None, description="Relays only: how it detects new messages."
    )
    paused_queues: list[str] | None = Field(default=None, description="Paused queues.")
    failing_queues: list[str] | None = Field(
        default=None, description="Queues that pause themselves because of the errors of their handlers."
    )
    poison_messages: list[PoisonMessage] | None = Field(
        default=None, description="Messages that crashed workers too often, and run alone or wait to run alone; the latest ten."
    )
    pending_pauses: list[PauseKey] | None = Field(default=None, description="Pauses that wait for messages in flight.")
    waiting_for: dict[str, str] | None = Field(default=None, description="Why the `broker` or the `database` is unavailable.")
    last_failure: ComponentFailure | None = None


class RetryPlan(BaseModel):
    """Retry delays of a consumer."""

    delays_seconds: list[float] = Field(description="The fixed delays.")
    computed: bool = Field(description="Whether a function computes further delays.")


class EventVersions(BaseModel):
    """The versions of a typed event that a consumer accepts."""

    version: int
    oldest: int
    default_version: int = Field(default=1, description="The version of a message without the header `event-version`.")


class ConsumerResponse(BaseModel):
    """A consumer, as its worker reports it."""

    queue: str
    handler: str = Field(
        default="", description="The qualified name of its callback. Empty: the worker's release does not report it."
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
        default=None, description="With `schemas=true`: the JSON schema of the body, if declared."
    )
    event: EventVersions | None = Field(
        default=None, description="Of a typed event: its versions. Missing for other consumers."
    )


Applied = Literal["applied", "pending", "silent"]


class PausedComponent(Model):
    """A component that a pause covers."""

    id: str
    kind: ComponentKind
    name: str
    status: ComponentStatus
    state: Applied = Field(
        description="`applied`: it takes no new messages and has none in flight; `pending`: it has not confirmed the pause, "
        "or finishes messages in flight; `silent`: it is lost and cannot confirm."
    )


class PauseResponse(Model):
    """A pause, and the components that apply it."""

    scope: PauseScope
    name: str = Field(description="Name of the relay, worker or queue. Empty: all relays, or all workers.")
    reason: str | None
    requested_by: str | None
    requested_at: Moment
    expires_at: Moment | None = Field(description="When the pause ends by itself; null: when it is resumed.")
    state: Literal["applied", "pending", "unmet"] = Field(
        description="`applied`: by all running components; `pending`: not yet by all; `unmet`: it covers no running component."
    )
    components: list[PausedComponent]


def pause_responses(pauses: Iterable[Pause], components: Sequence[KnownComponent]) -> list[PauseResponse]:
    """Returns each pause with the components that it covers, without stopped ones."""
    found = []
    for each in pauses:
        key = {"scope": each.scope.value, "name": each.name}
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
                    if any(dict(applied) == key for applied in component.applied)
                    else "pending"
                ),
            )
            for component in components
            if component.condition is not ComponentStatus.STOPPED and _concerns(each, component)
        ]
        # A lost component cannot confirm a pause, so it must not keep one pending forever.
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
            consumer.get("queue") == pause.name for consumer in component.consumers
        )
    return component.kind.value == pause.scope.value and pause.name in ("", component.name)


class ComponentResponse(Model):
    """A relay, worker, archiver or maintenance task, from its last heartbeat."""

    id: str
    kind: ComponentKind
    name: str
    host: str
    process_id: int
    version: str
    service_version: str | None = Field(description="Release of the service; null: not configured.")
    status: ComponentStatus = Field(
        description="`late`: two heartbeats are missing; `lost`: six are missing; `stopped`: it stopped cleanly."
    )
    status_changed_at: Moment = Field(description="Since when it has had this status.")
    started_at: Moment
    last_heartbeat_at: Moment
    stopped_at: Moment | None
    heartbeat_interval_seconds: float = Field(description="Interval of its heartbeats.")
    activity: Annotated[dict[str, Any], ShapedAs(ComponentActivity)] = Field(description="Its reported activity.")
    consumers: list[Annotated[dict[str, Any], ShapedAs(ConsumerResponse)]] = Field(description="Consumers of a worker.")
    applied_pauses: list[Annotated[dict[str, Any], ShapedAs(PauseKey)]] = Field(description="Pauses that it applies.")


class Components(Model):
    """Every component with a recent heartbeat, and the active pauses."""

    as_of: Moment
    items: list[ComponentResponse]
    pauses: list[PauseResponse]


class Pauses(Model):
    """The active pauses."""

    as_of: Moment
    items: list[PauseResponse]


def to_response(component: KnownComponent, masking: Masking) -> ComponentResponse:
    """Builds the response. Masks the last error."""
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
    activity = dict(component.activity)
    # Heartbeats report `paused` even if only some queues are.
    if isinstance(state := activity.get("state"), str):
        paused = activity.get("paused_queues")
        consumed = {consumer.get("queue") for consumer in component.consumers}
        is_partly = isinstance(paused, list) and bool(consumed - set(map(str, paused)))
        activity["state"] = "running" if state == "paused" and is_partly else state.replace(" ", "_")
    failure = activity.pop("last_failure", None)
    if isinstance(failure, dict):
        error = Error(type="", message=masking.error_text(str(failure.get("text", ""))))
        activity["last_failure"] = {
            "failed_at": failure.get("failed_at"),
            "subject": failure.get("subject", ""),
            "error": error.model_dump(),
        }
    return activity


components = area("components")


class ComponentListParameters(Request):
    """Query parameters of `GET /components`."""

    schemas: Annotated[bool, Field(description="Include the JSON schemas of message bodies.")] = False
    ended: Annotated[int, Field(ge=0, le=500, description="Lost and stopped components to list, the latest.")] = 50


class PauseRequest(Request):
    """A pause to set."""

    scope: PauseScope
    name: Text = Field(default="", description="Name of the relay, worker or queue. Empty: all relays, or all workers.")
    reason: Text | None = Field(default=None, description="Reason, shown to other operators.")
    expires_at: Instant | None = Field(default=None, description="When it ends by itself; null: when resumed.")


class ResumeRequest(Request):
    """A pause to end, by its scope and name."""

    scope: PauseScope
    name: Text = ""
    reason: Text | None = Field(default=None, description="Reason, for the audit log.")


class Resumed(Model):
    """The outcome of ending a pause."""

    resumed: bool = Field(description="False: no such pause was active.")
    still_paused_by: list[PauseResponse] = Field(description="Other active pauses that cover some of the same components.")


@components.get("/components", operation_id="outbox_components_list")
async def list_components(context: Viewer, parameters: Annotated[ComponentListParameters, Query()]) -> Components:
    """Lists relays, workers, archivers and maintenance tasks: status, activity, consumers, and applied pauses.

    Includes the latest lost and stopped components, for up to a day.
    """
    async with context.admin.reading("listing components") as connection:
        known = await _read_components(connection, context, ended=parameters.ended, schemas=parameters.schemas)
        active = await _read_pauses(connection, context)
        at = await connection.fetchval("select now()")
    masking = context.masking
    return Components(
        as_of=at, items=[to_response(component, masking) for component in known], pauses=pause_responses(active, known)
    )


@components.get("/pauses", operation_id="outbox_pauses_list")
async def list_pauses(context: Viewer) -> Pauses:
    """Lists active pauses, each with the components that apply it."""
    async with context.admin.reading("listing pauses") as connection:
        known, active = await _read_components(connection, context), await _read_pauses(connection, context)
        at = await connection.fetchval("select now()")
    return Pauses(as_of=at, items=pause_responses(active, known))


@components.post("/pause", operation_id="outbox_pause", summary="Pause Relays, Workers Or A Queue")
async def start_pause(context: Operator, body: PauseRequest) -> PauseResponse:
    """Pauses a relay, a worker, or a queue within a second. Messages in flight are finished.

    A repeated request replaces reason and end. The response lists the components that apply the pause so far: poll `/pauses`.
    """
    if body.expires_at is not None and body.expires_at <= datetime.now(UTC):
        raise Problem(Code.INVALID_REQUEST, f"expires_at must be in the future, not {body.expires_at.isoformat()}")
    _require_name(body.scope, body.name)
    async with context.admin.changing("pausing") as connection:
        schema = context.admin.table.schema
        by = context.principal.name[:1_000]
        request = Pause(scope=body.scope, name=body.name, reason=body.reason, requested_by=by, until=body.expires_at)
        await pause(connection, request, schema=schema)
        until = None if body.expires_at is None else body.expires_at.isoformat()
        await record(
            connection, context, action="pause", target=_target(body), reason=body.reason, details={"expires_at": until}
        )
        # In the transaction, so that the response describes the pause that this request wrote.
        [now] = [one for one in await _responses(connection, context) if (one.scope, one.name) == (body.scope, body.name)]
    return now


@components.post("/resume", operation_id="outbox_resume", summary="End A Pause")
async def end_pause(context: Operator, body: ResumeRequest) -> Resumed:
    """Ends a pause. Other pauses of the same relay, worker or queue stay active, and are in the response."""
    _require_name(body.scope, body.name)
    async with context.admin.changing("resuming") as connection:
        # Read before the pause ends: afterwards the components that it covered are unknown.
        before = await _responses(connection, context)
        is_resumed = await resume(connection, body.scope, body.name, schema=context.admin.table.schema)
        if is_resumed:
            await record(connection, context, action="resume", target=_target(body), reason=body.reason)
    key = (body.scope, body.name)
    concerned = {one.id for each in before if (each.scope, each.name) == key for one in each.components}
    others = [each for each in before if (each.scope, each.name) != key and concerned & {one.id for one in each.components}]
    return Resumed(resumed=is_resumed, still_paused_by=others)


async def _responses(connection: Connection, context: RequestContext) -> list[PauseResponse]:
    return pause_responses(await _read_pauses(connection, context), await _read_components(connection, context))


async def _read_components(
    connection: Connection, context: RequestContext, *, ended: int = 50, schemas: bool = False
) -> list[KnownComponent]:
    return list(await recent_components(connection, schema=context.admin.table.schema, ended=ended, schemas=schemas))


async def _read_pauses(connection: Connection, context: RequestContext) -> list[Pause]:
    return list(await pauses(connection, schema=context.admin.table.schema))


def _target(body: PauseRequest | ResumeRequest) -> str:
    return f"{body.scope.value} {body.name}".strip()


def _require_name(scope: PauseScope, name: str) -> None:
    if scope is PauseScope.QUEUE and not name:
        raise Problem(Code.INVALID_REQUEST, "a queue cannot be paused without its name: set `name`")
