"""Responses about chains."""

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from outbox.admin.models import Error, Model, Moment, Page
from outbox.chains import AttemptOutcome, ChainState, WaitReason


def _in_seconds(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


def _as_error(value: Any) -> Any:
    return None if value is None else Error(type="", message=value)


Length = Annotated[float, BeforeValidator(_in_seconds), Field(ge=0)]
"""A length of time, which the library has as a timedelta, in seconds."""


class ChainAttempt(Model):
    """One attempt of a handler."""

    ended_at: Moment | None = Field(validation_alias="at")
    attempt: int
    outcome: AttemptOutcome = Field(description="`duplicate`: it had been handled before.")
    handling_seconds: Length | None = Field(validation_alias="handling", description="How long the handler ran.")
    error: Error | None
    component: str = Field(description="The worker that it ran in.")


class DeliveryWait(Model):
    """Why a delivery waits."""

    reason: WaitReason = Field(
        description="`paused`; `no_consumer`: no worker consumes the queue; `retry`: its next attempt is due later; `behind`: "
        "others are due before it; `next`: no worker has taken it yet."
    )
    text: str = Field(description="The same in words.")
    ahead_count: int | None = Field(
        validation_alias="ahead", description="How many are due before it, up to 10,001; null: no data, as on RabbitMQ."
    )
    paused_by: str | None
    paused_at: Moment | None
    pause_reason: str | None


class ChainDelivery(Model):
    """The delivery of a message to one queue."""

    queue: str
    state: ChainState
    attempt_count: int = Field(validation_alias="attempts")
    received_at: Moment | None = Field(description="When a handler began with it first.")
    waited_seconds: Length | None = Field(validation_alias="waited", description="In the broker, before the first attempt.")
    handling_seconds: Length | None = Field(
        validation_alias="handling", description="How long handlers ran, all attempts together."
    )
    due_at: Moment | None = Field(description="When it is tried again.")
    waiting: DeliveryWait | None = Field(description="Why it waits in the queue; null: it does not.")
    attempts: list[ChainAttempt] = Field(validation_alias="tries", description="Those on record, oldest first.")


class ChainMessage(Model):
    """One message: its time in the outbox, then its delivery to each queue."""

    id: str
    parent_id: str | None = Field(description="The message whose handling published it.")
    depth: int = Field(description="0 for the beginning of a chain.")
    state: ChainState = Field(description="The most urgent of its deliveries', or what it waits for in the outbox.")
    routing_key: str
    published_at: Moment | None
    sent_at: Moment | None = Field(description="When it left the outbox.")
    waited_seconds: Length | None = Field(validation_alias="waited", description="In the outbox.")
    due_at: Moment | None = Field(description="When it is sent, for a message that waits for its time.")
    held_at: Moment | None = Field(description="Since when it is unroutable, or its route is stalled.")
    relay: str
    last_error: Annotated[Error | None, BeforeValidator(_as_error)] = Field(description="What keeps it in the outbox.")
    requeue_count: int = Field(description="How often it was sent again after it had failed for good.")
    deliveries: list[ChainDelivery] = Field(validation_alias="legs")


class ChainResponse(Model):
    """A tree of messages as a list: each after its parent, and before its next sibling."""

    root_id: str
    state: ChainState = Field(description="The worst of any message's.")
    duration_seconds: Length | None = Field(
        validation_alias="duration", description="Time from its first to its last recorded event."
    )
    critical_path: list[str] = Field(description="The ids from the beginning to the message to which something happened last.")
    truncated: bool = Field(description="There are more messages: ask for more with `max_nodes`.")
    gaps: list[str] = Field(validation_alias="unknown", description="What is not on record, and why, as sentences.")
    nodes: list[ChainMessage]


class ChainSummary(Model):
    """A chain in a list, from its first 200 facts of the history."""

    root_id: str
    routing_key: str = Field(description="The routing key of its first message.")
    state: ChainState = Field(description="The worst state of its messages in the history.")
    sent_at: Moment | None = Field(description="When its first message left the outbox.")
    last_activity_at: Moment | None = Field(validation_alias="last_at", description="When something last happened.")
    duration_seconds: Length | None = Field(validation_alias="duration", description="From the one to the other.")
    message_count: int = Field(validation_alias="messages", description="How many of its messages are on record.")
    dead_letter_count: int = Field(validation_alias="deaths")
    truncated: bool = Field(
        validation_alias="more", description="There are more facts than were looked at: the numbers are those of the first 200."
    )


class ChainPage(Page[ChainSummary]):
    """Chains, the newest first. Under a filter a page may hold fewer than asked for, though `next` leads on."""
