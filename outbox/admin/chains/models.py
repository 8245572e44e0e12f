"""Responses about chains."""

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from outbox.admin.models import ErrorSummary, Model, Moment, Page
from outbox.chains import ChainState, TryOutcome, WaitReason


def _in_seconds(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


Length = Annotated[float, BeforeValidator(_in_seconds), Field(ge=0)]
"""A length of time, which the library has as a timedelta, in seconds."""


class TryAnswer(Model):
    """One attempt of a handler."""

    at: Moment | None = Field(description="When it had ended.")
    attempt: int
    outcome: TryOutcome = Field(description="`duplicate`: it had been handled before.")
    handling_seconds: Length | None = Field(validation_alias="handling", description="How long the handler ran.")
    error: ErrorSummary | None
    component: str = Field(description="The worker that it ran in.")


class WaitingAnswer(Model):
    """Why a delivery waits."""

    reason: WaitReason = Field(
        description="`paused`; `no_consumer`: no worker consumes the queue; `retry`: its next attempt is due later; `behind`: "
        "others are due before it; `next`: no worker has taken it yet."
    )
    text: str = Field(description="The same in words.")
    ahead: int | None = Field(description="How many are due before it, up to 10,001; null: not known, as at RabbitMQ.")
    paused_by: str | None
    paused_at: Moment | None
    pause_reason: str | None


class LegAnswer(Model):
    """What became of a message in one queue."""

    queue: str
    state: ChainState
    attempts: int
    received_at: Moment | None = Field(description="When a handler began with it first.")
    waited_seconds: Length | None = Field(validation_alias="waited", description="In the broker, before the first attempt.")
    handling_seconds: Length | None = Field(
        validation_alias="handling", description="How long handlers ran, all attempts together."
    )
    due_at: Moment | None = Field(description="When it is tried again.")
    waiting: WaitingAnswer | None = Field(description="Why it waits in the queue; null: it does not.")
    tries: list[TryAnswer]


class NodeAnswer(Model):
    """One message: its time in the outbox, then a leg for each queue that it came to."""

    id: str
    parent_id: str | None = Field(description="The message whose handling published it.")
    depth: int = Field(description="0 for the beginning of a chain.")
    state: ChainState = Field(description="The most urgent of its legs', or what it waits for in the outbox.")
    routing_key: str
    published_at: Moment | None
    sent_at: Moment | None = Field(description="When it left the outbox.")
    waited_seconds: Length | None = Field(validation_alias="waited", description="In the outbox.")
    due_at: Moment | None = Field(description="When it is sent, for a message that waits for its time.")
    held_at: Moment | None = Field(description="Since when it is unroutable, or its route is stalled.")
    relay: str
    last_error: str | None = Field(description="What keeps it in the outbox, masked.")
    requeue_count: int = Field(description="How often it was sent again after it had died.")
    legs: list[LegAnswer]


class ChainAnswer(Model):
    """A tree of messages as a list: each after its parent, and before its next sibling."""

    root_id: str
    state: ChainState = Field(description="The worst of any message's.")
    duration_seconds: Length | None = Field(
        validation_alias="duration", description="From the first thing that is known of it to the last."
    )
    critical_path: list[str] = Field(description="The ids from the beginning to the message to which something happened last.")
    truncated: bool = Field(description="There are more messages: ask for more with `max_nodes`.")
    unknown: list[str] = Field(description="What cannot be known of it, and why, in sentences.")
    nodes: list[NodeAnswer]


class ChainLine(Model):
    """A chain in a list: what the history tells of it, up to 200 facts."""

    root_id: str
    routing_key: str = Field(description="That of its first message.")
    state: ChainState = Field(description="The worst that a message of it was left in, as far as the history tells.")
    sent_at: Moment | None = Field(description="When its first message left the outbox.")
    last_at: Moment | None = Field(description="When something last happened.")
    duration_seconds: Length | None = Field(validation_alias="duration", description="From the one to the other.")
    messages: int = Field(description="How many messages of it are known.")
    deaths: int
    more: bool = Field(description="There are more facts than were looked at: the numbers are those of the first 200.")


class ChainPage(Page[ChainLine]):
    """Chains, the newest first. Under a filter a page may hold fewer than asked for, though `next` leads on."""
