"""Dead letters as they are answered: lines, groups, the whole of one. Nothing in them is unmasked, unless it was revealed."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, WithJsonSchema

from outbox.admin.models import ErrorSummary, Model, Moment, Page, ShapedAs
from outbox.admin.outcomes import Outcome
from outbox.dead_letters import Action, DeadLetterStatus, GroupBy, Source
from outbox.dead_letters.reading import Fate

_OF_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}


class DeadLetterLine(Model):
    """One line of the list, without its payload."""

    id: str = Field(description="`17`, or `outbox-17` for a message that the relay parked.")
    source: Source
    status: DeadLetterStatus
    cause: str = Field(description="Why it was given up, as in `exhausted`, `rejected`, `undecodable`, `expired` or `refused`.")
    queue: str = Field(description="Empty for a message that the relay parked on its way to any queue.")
    exchange: str
    routing_key: str
    message_id: str | None
    root_id: str | None = Field(description="The first id of its chain.")
    ordering_key: str | None
    error: ErrorSummary
    group_id: str = Field(description="The fingerprint of its error, which those that failed alike share.")
    worker: str
    attempt: int
    failures: int = Field(description="How many attempts failed in all.")
    deaths: int = Field(description="How often it died; more than once after having been requeued.")
    requeue_count: int = Field(description="How often it was sent again, the last time included if that is what `status` says.")
    created_at: Moment
    first_failed_at: Moment
    failed_at: Moment
    resolved_at: Moment | None
    resolved_by: str | None
    resolution: str | None = Field(description="The reason that was given for it.")
    version: int = Field(description="What an edit must name, so that nobody's edit is lost.")
    content_type: str | None
    size: int = Field(description="Bytes of the body.")
    preview: str = Field(description="The beginning of the body, masked, or its size.")


class Facet(Model):
    """How many have one value."""

    value: str
    count: int


class Facets(Model):
    """How many of what the filter means have which value, the most frequent 20 of each.

    A facet disregards the filter on its own field, so that the other values can be chosen.
    """

    source: list[Facet]
    status: list[Facet]
    queue: list[Facet]
    exception_type: list[Facet]
    routing_key: list[Facet]
    relation: Annotated[
        Literal["eq", "gte"], Field(description="`gte`: there are more dead letters than were looked at, the latest ones.")
    ]
    as_of: Moment


class Unarchived(Model):
    """How many dead letters the broker still has, which are in no list."""

    count: int
    queues: dict[str, int] = Field(description="By queue, those that have any.")
    as_of: Moment


class DeadLetterPage(Page[DeadLetterLine]):
    """A part of the list."""

    facets: Facets | None = Field(default=None, description="With `facets=true` only.")
    unarchived: Unarchived | None = Field(
        description="What no archiver has taken from the broker; null where PostgreSQL is the broker, or nobody knows."
    )
    degraded: list[Literal["broker"]] = Field(description="What could not be asked; the rest of the answer is right.")


class Note(Model):
    """What somebody noted about a group."""

    text: str
    noted_by: str
    noted_at: Moment


class GroupNoted(Model):
    """A group, and what is noted about it now."""

    by: GroupBy
    id: str
    note: Note | None


class DeadLetterGroup(Model):
    """Dead letters that have something in common."""

    by: GroupBy
    id: str = Field(description="What a filter takes: as `group_id`, `queue` or `routing_key`.")
    title: str
    count: int
    open: int
    first_seen: Moment
    last_seen: Moment
    last_requeued_at: Moment | None = Field(description="When one of them was requeued last.")
    since_requeue: int = Field(description="How many died after that; all of them if none was requeued.")
    sample_id: str = Field(description="One of them, recorded last.")
    sparkline: list[int] = Field(description="Deaths in each of the last 24 hours, the present one last.")
    note: Note | None


class DeadLetterGroups(Model):
    """The largest groups."""

    items: list[DeadLetterGroup]
    truncated: bool = Field(description="Whether there are more groups than `limit`.")
    as_of: Moment = Field(description="When they were counted. Notes are as they are now.")


class Content(Model):
    """A body, as far as it can be shown."""

    content_type: str | None
    size: int = Field(description="Bytes of the whole.")
    encoding: Literal["json", "text", "base64"] | None = Field(
        description="What `content` is: JSON as it was written, other text, or bytes in base64; null: nothing is shown."
    )
    content: str | None
    truncated: bool = Field(description="Whether `content` is only the beginning, or nothing because the body is too large.")
    masked: bool = Field(description="Whether anything was hidden; `reveal=true` shows it.")


class FailureShown(ErrorSummary):
    """One attempt that failed."""

    at: Moment | None
    attempt: int
    traceback: str
    worker: str


class EditionShown(Model):
    """The payload as it was before an edit."""

    version: int
    body: Content
    headers: dict[str, Any] | None
    replaced_at: Moment
    replaced_by: str | None


class LifeShown(Model):
    """What became of the message after it was requeued once."""

    requeued_at: Moment
    requeued_by: str
    queue: str | None = Field(description="Where it was requeued to; null: wherever its routing key leads.")
    fate: Fate = Field(description="`duplicate`: the queue's inbox knew it, and it was not processed again.")
    ended_at: Moment | None


class OperationShown(Model):
    """What an operation is or was to do with it."""

    id: str
    action: Action
    outcome: Outcome
    detail: str | None
    settled_at: Moment | None


class DeadLetterLinks(BaseModel):
    """Where there is more of a dead letter. What has a default may be missing."""

    self: str
    body: str
    group: str
    chain: str | None = Field(default=None, description="Of the message, if it has an id.")
    operation: str | None = Field(default=None, description="The one that is to do something with it.")


class DeadLetterShown(DeadLetterLine):
    """The whole of one."""

    error: FailureShown  # a line's, and more
    tracking_ids: list[str] = Field(description="The chain that led to it, from its first message to itself.")
    body: Content
    headers: dict[str, Any]
    header_types: Annotated[dict[str, Any], WithJsonSchema(_OF_TEXTS)] = Field(
        description="By JSON pointer, the type of a header where AMQP tells more than JSON."
    )
    properties: dict[str, Any]
    hlc: str | None = Field(description="Its place in the order of events, a large number.")
    trail: list[FailureShown] = Field(description="What failed, oldest first.")
    editions: list[EditionShown]
    lives: list[LifeShown] = Field(description="What came of each requeue, oldest first, as far as the history goes.")
    operation_id: str | None = Field(description="The operation that is to do something with it.")
    operations: list[OperationShown] = Field(description="Those that had it, the latest first.")
    revealed: bool
    links: Annotated[dict[str, str], ShapedAs(DeadLetterLinks)] = Field(
        description="Relative to where the dead letters are listed."
    )
