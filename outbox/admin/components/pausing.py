"""Pauses as they were asked for, beside what components make of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from outbox.admin.models import Model, Moment
from outbox.reporting.components import ComponentKind, Condition, KnownComponent
from outbox.reporting.pauses import Pause, PauseScope

Applied = Literal["applied", "pending", "silent"]


class PausedComponent(Model):
    """A component that a pause concerns."""

    id: str
    kind: ComponentKind
    name: str
    condition: Condition
    state: Applied = Field(
        description="`applied`: it takes nothing new, and has nothing of it in hand; `pending`: it has not said so yet, or "
        "finishes what is in hand; `silent`: it is lost, and cannot say."
    )


class PauseNow(Model):
    """A pause, and how far it has come."""

    scope: PauseScope
    name: str = Field(description="Of the relay, worker or queue; empty: all relays, or all workers.")
    reason: str | None
    requested_by: str | None
    requested_at: Moment
    until: Moment | None = Field(description="When it ends by itself.")
    state: Literal["applied", "pending", "unmet"] = Field(
        description="`applied`: by all that live; `pending`: not by all yet; `unmet`: there is nobody whom it concerns."
    )
    components: list[PausedComponent]


def pauses_now(pauses: Iterable[Pause], components: Sequence[KnownComponent]) -> list[PauseNow]:
    """Each pause with the components that it concerns, those that ended aside."""
    return [_now(pause, components) for pause in pauses]


def _now(pause: Pause, components: Sequence[KnownComponent]) -> PauseNow:
    concerned = [
        PausedComponent(
            id=component.id,
            kind=component.kind,
            name=component.name,
            condition=component.condition,
            state=_state(pause, component),
        )
        for component in components
        if component.condition is not Condition.STOPPED and _concerns(pause, component)
    ]
    states = {component.state for component in concerned} - {"silent"}
    return PauseNow(
        scope=pause.scope,
        name=pause.name,
        reason=pause.reason,
        requested_by=pause.requested_by,
        requested_at=pause.requested_at,
        until=pause.until,
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
    if component.condition is Condition.LOST:
        return "silent"
    wish = {"scope": pause.scope.value, "name": pause.name}
    return "applied" if any(dict(applied) == wish for applied in component.applied) else "pending"


def _queue(consumer: Mapping[str, Any]) -> object:
    return consumer.get("queue") if isinstance(consumer, Mapping) else None
