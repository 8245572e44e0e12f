"""Requests and responses about components and pauses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from outbox.admin.models import Error, Model, Moment, ShapedAs
from outbox.masking import Masking
from outbox.reporting.components import ComponentKind, ComponentStatus, KnownComponent
from outbox.reporting.pauses import Pause, PauseScope


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
    return [_now(pause, components) for pause in pauses]


def _now(pause: Pause, components: Sequence[KnownComponent]) -> PauseResponse:
    concerned = [
        PausedComponent(
            id=component.id,
            kind=component.kind,
            name=component.name,
            status=component.condition,
            state=_state(pause, component),
        )
        for component in components
        if component.condition is not ComponentStatus.STOPPED and _concerns(pause, component)
    ]
    states = {component.state for component in concerned} - {"silent"}
    return PauseResponse(
        scope=pause.scope,
        name=pause.name,
        reason=pause.reason,
        requested_by=pause.requested_by,
        requested_at=pause.requested_at,
        expires_at=pause.until,
        state="unmet" if not states else "applied" if states == {"applied"} else "pending",
        components=concerned,
    )


def _concerns(pause: Pause, component: KnownComponent) -> bool:
    if pause.scope is PauseScope.QUEUE:
        return component.kind is ComponentKind.WORKER and any(
            _queue(consumer) == pause.name for consumer in component.consumers
        )
    return component.kind.value == pause.scope.value and pause.name in ("", component.name)


def _state(pause: Pause, component: KnownComponent) -> Applied:
    if component.condition is ComponentStatus.LOST:
        return "silent"
    wish = {"scope": pause.scope.value, "name": pause.name}
    return "applied" if any(dict(applied) == wish for applied in component.applied) else "pending"


def _queue(consumer: Mapping[str, Any]) -> object:
    return consumer.get("queue") if isinstance(consumer, Mapping) else None


class ComponentResponse(Model):
    """A relay, worker, archiver or maintenance task, as its last heartbeat describes it."""

    id: str
    kind: ComponentKind
    name: str
    host: str
    process_id: int
    version: str
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
    return ComponentResponse(
        id=component.id,
        kind=component.kind,
        name=component.name,
        host=component.host,
        process_id=component.process_id,
        version=component.version,
        status=component.condition,
        status_changed_at=_since(component),
        started_at=component.started_at,
        last_heartbeat_at=component.seen_at,
        stopped_at=component.stopped_at,
        heartbeat_interval_seconds=component.every.total_seconds(),
        activity=_activity(component.activity, masking),
        consumers=[dict(consumer) for consumer in component.consumers],
        applied_pauses=[dict(pause) for pause in component.applied],
    )


def _since(component: KnownComponent) -> Any:
    match component.condition:
        case ComponentStatus.STOPPED:
            return component.stopped_at
        case ComponentStatus.ALIVE:
            return component.started_at
        case _:
            return component.seen_at


def _activity(heartbeat: Mapping[str, Any], masking: Masking) -> dict[str, Any]:
    """What a heartbeat says, in the words of the API: heartbeats store older names."""
    activity = {_ACTIVITY.get(name, name): value for name, value in heartbeat.items()}
    if isinstance(state := activity.get("state"), str):
        activity["state"] = state.replace(" ", "_")
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
