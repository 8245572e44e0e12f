"""Components as they are told."""

from typing import Annotated, Any

from pydantic import Field

from outbox.admin.components.pausing import PauseNow
from outbox.admin.components.shapes import ComponentActivity, DescribedConsumer, PauseKey
from outbox.admin.models import Model, Moment, ShapedAs
from outbox.masking import Masking
from outbox.reporting.components import ComponentKind, Condition, KnownComponent


class ComponentNow(Model):
    """A relay, worker, archiver or maintenance task, as its last sign of life tells."""

    id: str
    kind: ComponentKind
    name: str
    host: str
    process_id: int
    version: str
    condition: Condition = Field(
        description="`late`: two signs of life are missing; `lost`: six are; `stopped`: it ended in order."
    )
    since: Moment = Field(description="Since when it is in that condition.")
    started_at: Moment
    seen_at: Moment = Field(description="Its last sign of life.")
    stopped_at: Moment | None
    every_seconds: float = Field(description="How often it gives one.")
    activity: Annotated[dict[str, Any], ShapedAs(ComponentActivity)] = Field(description="What it said that it was doing.")
    consumers: list[Annotated[dict[str, Any], ShapedAs(DescribedConsumer)]] = Field(description="What a worker runs.")
    applied: list[Annotated[dict[str, Any], ShapedAs(PauseKey)]] = Field(description="The pauses that it honours.")


class Components(Model):
    """Everybody who has given a sign of life lately, and the pauses that are wanted."""

    as_of: Moment
    items: list[ComponentNow]
    pauses: list[PauseNow]


class Pauses(Model):
    """The pauses that are wanted now."""

    as_of: Moment
    items: list[PauseNow]


def told(component: KnownComponent, masking: Masking) -> ComponentNow:
    """The component; what its last error quotes is masked."""
    return ComponentNow(
        id=component.id,
        kind=component.kind,
        name=component.name,
        host=component.host,
        process_id=component.process_id,
        version=component.version,
        condition=component.condition,
        since=_since(component),
        started_at=component.started_at,
        seen_at=component.seen_at,
        stopped_at=component.stopped_at,
        every_seconds=component.every.total_seconds(),
        activity=_masked(dict(component.activity), masking),
        consumers=[dict(consumer) for consumer in component.consumers],
        applied=[dict(pause) for pause in component.applied],
    )


def _since(component: KnownComponent) -> Any:
    match component.condition:
        case Condition.STOPPED:
            return component.stopped_at
        case Condition.ALIVE:
            return component.started_at
        case _:
            return component.seen_at


def _masked(activity: dict[str, Any], masking: Masking) -> dict[str, Any]:
    error = activity.get("last_error")
    if isinstance(error, dict) and isinstance(error.get("text"), str):
        return {**activity, "last_error": {**error, "text": masking.error_text(error["text"])}}
    return activity
