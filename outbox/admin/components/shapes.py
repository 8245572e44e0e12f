"""What components write of themselves, which is answered as it is. What has a default may be missing."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from outbox.admin.models import Moment
from outbox.reporting.pauses import PauseScope


class PauseKey(BaseModel):
    """What names a pause."""

    scope: PauseScope
    name: str = Field(description="Of the relay, worker or queue; empty: all relays, or all workers.")


class LastError(BaseModel):
    """What went wrong last."""

    at: Moment
    about: str = Field(description="The routing key, or the queue.")
    text: str = Field(description="Masked.")


class PoisonMessage(BaseModel):
    """A message with which workers died more often than its consumer allows."""

    queue: str
    message_id: str
    step: Literal["waiting", "running", "postponed"] = Field(
        description="`waiting` for other handlers to end, `running` alone, or `postponed` because they did not end in time."
    )


class ComponentActivity(BaseModel):
    """What a component said that it was doing."""

    state: str = Field(
        description="`starting`, `running`, `standing by`, `paused`, `draining`, `isolating a poison message`, "
        "or `waiting for` the broker or the database."
    )
    totals: dict[str, int] = Field(description="Messages since it started, by what became of them: `sent`, `success`, …")
    per_second: dict[str, float] = Field(description="The same over about the last ten seconds.")
    in_hand: int | None = Field(default=None, description="Messages that it has in hand.")
    unsent: int | None = Field(default=None, description="Of a relay: messages in the outbox.")
    oldest_due_seconds: float | None = Field(default=None, description="Of a relay: how long the first message has been due.")
    last_sent_at: Moment | None = Field(default=None, description="Of a relay: when it last sent something.")
    wakes_by: Literal["listening", "polling"] | None = Field(
        default=None, description="Of a relay: how it learns of new messages."
    )
    paused_queues: list[str] | None = Field(default=None, description="Those that take nothing because somebody paused them.")
    failing_queues: list[str] | None = Field(
        default=None, description="Those that take nothing because their handlers fail with what they pause on."
    )
    poison_messages: list[PoisonMessage] | None = Field(
        default=None, description="Messages that workers died of too often, which run alone or wait to; the latest ten."
    )
    pausing: list[PauseKey] | None = Field(default=None, description="Pauses that wait for what is in hand.")
    waiting_for: dict[str, str] | None = Field(default=None, description="Why the `broker` or the `database` is not there.")
    last_error: LastError | None = None


class RetryPlan(BaseModel):
    """When a consumer tries again."""

    delays_seconds: list[float] = Field(description="The delays that are known beforehand.")
    computed: bool = Field(description="Whether there may be others.")


class DescribedConsumer(BaseModel):
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
    history: bool = Field(default=False, description="Whether the worker writes down what becomes of each message.")
    body: dict[str, Any] | None = Field(
        default=None, description="With `schemas=true`: the JSON schema of the body, if it has one."
    )
