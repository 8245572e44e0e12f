"""Request and response models of dead letters. Values are masked unless the request reveals them."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from outbox.admin.models import (
    BodyAccess,
    DestinationName,
    Error,
    ExternalLinks,
    Instant,
    Model,
    Moment,
    Page,
    Paged,
    Request,
    ShapedAs,
    Text,
    TraceId,
)
from outbox.core.failures import FailedAttempt
from outbox.dead_letters import Action, DeadLetter, DeadLetterFilter, DeadLetterStatus, GroupBy, ItemOutcome, Source
from outbox.dead_letters.policies import RequeuePolicy
from outbox.dead_letters.reader import GroupMark, GroupStatus, RequeueOutcome
from outbox.masking import HIDDEN, READ_LIMIT, Body, Masking, readable

Outcome = Literal["failed_again", "refused", "not_found", "skipped", "pending", "requeued", "discarded", "restored", "purged"]
"""Outcome of a change for one dead letter. Scripts may rely on these values."""
_DONE: Mapping[Action, Outcome] = {
    Action.REQUEUE: "requeued",
    Action.DISCARD: "discarded",
    Action.RESTORE: "restored",
    Action.PURGE: "purged",
}
_OTHERS: Mapping[ItemOutcome, Outcome] = {
    ItemOutcome.FAILED_AGAIN: "failed_again",
    ItemOutcome.REFUSED: "refused",
    ItemOutcome.NOT_FOUND: "not_found",
    ItemOutcome.SKIPPED: "skipped",
    ItemOutcome.PENDING: "pending",
}


def outcome_word(action: Action, outcome: ItemOutcome) -> Outcome:
    """Converts an outcome to its API value, which depends on the action."""
    return _DONE[action] if outcome is ItemOutcome.DONE else _OTHERS[outcome]


def outcome_of(word: Outcome, action: Action) -> ItemOutcome | None:
    """Converts an API value back to an outcome. Returns None if the action cannot have this outcome."""
    for outcome in ItemOutcome:
        if outcome_word(action, outcome) == word:
            return outcome
    return None


_STRING_MAP = {"type": "object", "additionalProperties": {"type": "string"}}


class DeadLetterSummary(Model):
    """A dead letter in the list, without its payload."""

    id: str = Field(description="`17`, or `outbox-17` for a message that the relay parked.")
    source: Source
    status: DeadLetterStatus
    reason: str = Field(description="Why it was dead-lettered: `exhausted`, `rejected`, `undecodable`, `expired`, `refused`, …")
    queue: str = Field(description="Queue where the message failed. Empty if the relay parked it without a target queue.")
    exchange: str
    destination: str | None = Field(
        description="Destination whose relay could not send it, such as `default`. Null if no relay dead-lettered it."
    )
    routing_key: str
    message_id: str | None
    root_id: str | None = Field(description="Id of the first message of the chain.")
    ordering_key: str | None
    error: Error
    group_id: str = Field(description="Fingerprint of the error. Dead letters with similar failures share it.")
    worker: str
    service_version: str | None = Field(description="Service release in which the last attempt failed. Null if unknown.")
    attempt: int
    failure_count: int = Field(description="Total number of failed attempts.")
    dead_letter_count: int = Field(description="How often it was dead-lettered. Above 1 if it failed again after a requeue.")
    requeue_count: int = Field(description="How often the message was requeued, including the requeue that `status` may show.")
    created_at: Moment
    first_failed_at: Moment
    failed_at: Moment
    resolved_at: Moment | None
    resolved_by: str | None
    resolution_reason: str | None = Field(description="Reason that the operator gave for the resolution.")
    version: int = Field(description="Version of the payload. An edit must name it, to detect concurrent edits.")
    content_type: str | None
    size: int = Field(description="Size of the body, in bytes.")
    preview: str = Field(description="Beginning of the body, masked, or its size.")


class Facet(Model):
    """Number of dead letters with one value of a field."""

    value: str
    count: int


class Facets(Model):
    """Counts of matching dead letters by value, for the 20 most frequent values of each field.

    The counts of a field ignore the filter on that field, so a client can offer other values.
    """

    source: list[Facet]
    status: list[Facet]
    queue: list[Facet]
    exception_type: list[Facet]
    routing_key: list[Facet]
    relation: Annotated[Literal["eq", "gte"], Field(description="`gte`: only the latest 50,000 are counted.")]
    as_of: Moment


class Unarchived(Model):
    """Number of dead letters that are still at the broker. Lists do not contain them until an archiver has stored them."""

    count: int
    queues: dict[str, int] = Field(description="Counts by queue, without empty queues.")
    as_of: Moment


class DeadLetterPage(Page[DeadLetterSummary]):
    """One page of the dead letters."""

    facets: Facets | None = Field(default=None, description="Only with `facets=true`.")
    unarchived: Unarchived | None = Field(description="Dead letters still at RabbitMQ. Null without it, or without data.")
    degraded: list[Literal["broker"]] = Field(description="Systems that did not respond, whose data is missing.")


class Note(Model):
    """A note about a group."""

    text: str
    noted_by: str
    noted_at: Moment
    version: int = Field(description="Changes with the note.")


class GroupNoteResponse(Model):
    """The current note of a group."""

    by: GroupBy
    id: str
    note: Note | None


class GroupMarkResponse(Model):
    """An operator's mark of a group. Fields that do not apply are null."""

    marked_as: Literal["open", "fixed", "muted"] = Field(description="`open`: the group is not marked.")
    fixed_in: str | None = Field(description="Release that contains the fix.")
    muted_above: int | None = Field(description="The group reopens when more than this number of its dead letters are open.")
    marked_by: str | None
    marked_at: Moment | None
    count_since: int = Field(description="Number of failures after the group was marked as fixed, counted up to 1,000.")
    failed_since_at: Moment | None = Field(description="When the first of these failures occurred.")

    @classmethod
    def of(cls, mark: GroupMark | None) -> Self:
        """Converts a mark."""
        if mark is None:
            return cls(
                marked_as="open",
                fixed_in=None,
                muted_above=None,
                marked_by=None,
                marked_at=None,
                count_since=0,
                failed_since_at=None,
            )
        return cls(
            marked_as="fixed" if mark.marked_as is GroupStatus.FIXED else "muted",
            fixed_in=mark.fixed_in,
            muted_above=mark.muted_above,
            marked_by=mark.marked_by,
            marked_at=mark.marked_at,
            count_since=mark.since_count,
            failed_since_at=mark.since_at,
        )


class GroupVersionResponse(Model):
    """A release of the service in which messages of a group failed."""

    service_version: str
    count: int
    first_failed_at: Moment
    last_failed_at: Moment


class RequeuePolicyResponse(Model):
    """The automatic requeue of a group. Fields that do not apply are null."""

    per_hour: int | None = Field(description="Maximum number of requeues per hour. Null if there is no policy.")
    set_by: str | None
    set_at: Moment | None
    operation_id: int | None = Field(description="Latest operation that the policy started.")
    started_at: Moment | None = Field(description="When this operation started.")
    stopped_at: Moment | None = Field(description="When the policy stopped. It requeues nothing until it is set again.")
    stopped_because: str | None

    @classmethod
    def of(cls, policy: RequeuePolicy | None) -> Self:
        """Converts a policy."""
        return cls(**{name: getattr(policy, name, None) for name in cls.model_fields})


class DeadLetterGroup(Model):
    """Dead letters with a common fingerprint, queue or routing key."""

    by: GroupBy
    id: str = Field(description="Value for the filter `group_id`, `queue` or `routing_key`, depending on `by`.")
    title: str
    status: GroupStatus | None = Field(
        description="Status of a group by fingerprint. `reopened`: it was marked as fixed but failed again, or it was muted "
        "and too many of its dead letters are open."
    )
    mark: GroupMarkResponse | None = Field(description="Null if the group has no mark.")
    requeue_policy: RequeuePolicyResponse | None = Field(description="Null if the group has no policy.")
    queue: str | None = Field(description="Queue of a group by fingerprint. Empty for parked messages without a target queue.")
    handlers: list[str] = Field(description="Qualified names of the handlers of this queue.")
    versions: list[GroupVersionResponse] = Field(description="Service releases in which the latest ones failed.")
    count: int
    open_count: int
    first_seen_at: Moment
    last_seen_at: Moment
    last_requeued_at: Moment | None = Field(description="When a dead letter of the group was last requeued.")
    count_since_requeue: int = Field(description="Number of failures since that requeue, or of all if none was requeued.")
    sample_id: str = Field(description="Id of the dead letter recorded last.")
    hourly_counts: list[int] = Field(description="Number of failures in each of the last 24 hours, the current hour last.")
    note: Note | None


class DeadLetterGroups(Model):
    """The largest groups."""

    items: list[DeadLetterGroup]
    truncated: bool = Field(description="Whether there are more groups than `limit`.")
    as_of: Moment = Field(description="When the groups were counted. Marks and notes are current.")


class Content(Model):
    """A body, or the part of it that can be shown."""

    content_type: str | None
    size: int = Field(description="Size of the whole body, in bytes.")
    encoding: Literal["json", "text", "base64"] | None = Field(
        description="Encoding of `content`: JSON as it was written, other text, or bytes in base64. Null if nothing is shown."
    )
    content: str | None
    truncated: bool = Field(description="Whether the body is too large: `content` is then only its beginning, or null.")
    masked: bool = Field(description="Whether values are hidden. `reveal=true` shows them.")
    access: BodyAccess | None = Field(description="Null: the body is in the message, and not encrypted.")


class FailureResponse(Model):
    """A failed attempt."""

    failed_at: Moment | None
    attempt: int
    worker: str
    service_version: str | None
    error: Error

    @classmethod
    def of(cls, failed: FailedAttempt, error: Error) -> Self:
        """Converts an attempt, with its error already masked."""
        return cls(
            failed_at=failed.at,
            attempt=failed.attempt,
            worker=failed.failure.worker,
            service_version=failed.failure.version or None,
            error=error,
        )


class EditionResponse(Model):
    """The payload before an edit."""

    version: int
    body: Content
    headers: dict[str, Any] | None
    replaced_at: Moment
    replaced_by: str | None


class RequeueResponse(Model):
    """One requeue of the message, and its outcome."""

    requeued_at: Moment
    requeued_by: str
    queue: str | None = Field(description="Queue that it was requeued to. Null: all queues bound for its routing key.")
    outcome: RequeueOutcome = Field(description="`duplicate`: skipped, because the inbox already contained it.")
    ended_at: Moment | None


class DeadLetterOperation(Model):
    """An operation that includes the dead letter."""

    id: str
    action: Action
    outcome: Outcome
    reason: str | None = Field(description="Why the action was not done, or the error of the new attempt.")
    settled_at: Moment | None


class DeadLetterLinks(BaseModel):
    """Links to related resources. Fields with a default may be missing."""

    self: str
    body: str
    group: str
    chain: str | None = Field(default=None, description="Chain of the message, if it has an id.")
    operation: str | None = Field(default=None, description="Operation in which the dead letter is pending.")


class DeadLetterResponse(DeadLetterSummary):
    """One dead letter with all its details."""

    trace_id: TraceId
    external: ExternalLinks
    tracking_ids: list[str] = Field(description="Ids of the messages that led to this one, from the first to its own.")
    body: Content
    headers: dict[str, Any]
    header_types: Annotated[dict[str, Any], WithJsonSchema(_STRING_MAP)] = Field(description="AMQP types by JSON pointer.")
    properties: dict[str, Any]
    hlc: str | None = Field(description="Hybrid logical clock: a number that orders the message among all events.")
    failures: list[FailureResponse] = Field(description="All failed attempts, oldest first.")
    editions: list[EditionResponse]
    requeues: list[RequeueResponse] = Field(description="Requeues in the history, oldest first.")
    operation_id: str | None = Field(description="Operation in which the dead letter is pending.")
    operations: list[DeadLetterOperation] = Field(description="Operations that included the dead letter, latest first.")
    revealed: bool
    links: Annotated[dict[str, str], ShapedAs(DeadLetterLinks)] = Field(description="Links relative to the parent of `/dlq`.")


LONGEST_MESSAGE = 500
"""Maximum length, in characters, of an error's message in a summary."""


def to_summary(letter: DeadLetter, masking: Masking) -> DeadLetterSummary:
    """Converts a dead letter whose message and preview are already masked."""
    return DeadLetterSummary(**summary_fields(letter, masking))


def summary_fields(letter: DeadLetter, masking: Masking) -> dict[str, object]:
    """Returns the fields of a `DeadLetterSummary`."""
    return {name: getattr(letter, name) for name in _UNCHANGED} | {
        "reason": letter.cause,
        "failure_count": letter.failures,
        "dead_letter_count": letter.dead_letter_count,
        "resolution_reason": letter.resolution,
        "root_id": letter.tracking_ids[0] if letter.tracking_ids else None,
        "group_id": letter.fingerprint,
        "error": error_of(letter, masking),
    }


_UNCHANGED = DeadLetterSummary.model_fields.keys() & {field.name for field in fields(DeadLetter)}


def error_of(letter: DeadLetter, masking: Masking) -> Error:
    """Returns the last error, hidden or shortened as `masking` requires."""
    message = HIDDEN if masking.hides_errors and letter.exception_message else letter.exception_message
    return Error(
        type=masking.error_type(letter.exception_type),
        message=message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…",
    )


def content(body: Body, masking: Masking | None, access: BodyAccess | None = None) -> Content:
    """Converts a body for display: masked, or without `masking` the first `READ_LIMIT` bytes unmasked."""
    kind, text = readable(body, masking)
    if access is not None and (masking is not None or not body.size):
        # Ciphertext may look like text, and what is in a store like an empty body.
        kind, text = None, None
        body = body if access.stored_size is None else replace(body, size=access.stored_size)
    return Content(
        access=access,
        content_type=body.content_type,
        size=body.size,
        encoding=kind,
        content=text,
        truncated=body.size > READ_LIMIT,
        masked=masking is not None and (text is None or text != readable(body, None)[1]),
    )


T = TypeVar("T")

LARGEST_COUNT = 1_000_000
MAX_VALUES = 50
"""Maximum number of values in one field of a filter."""

Status = Literal["open", "requeued", "discarded", "any"]


class _OneOrSeveral:
    """JSON schema of a field that accepts one value or several."""

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        [array] = [each for each in schema.get("anyOf", [schema]) if each.get("type") == "array"]
        return {"anyOf": [array["items"], *schema.get("anyOf", [array])]}


Several = Annotated[
    tuple[T, ...],
    Field(min_length=1, max_length=MAX_VALUES),
    BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
    # Sorted, without repetitions: equivalent filters must be equal, because cursors and confirmation tokens are bound to them.
    AfterValidator(lambda values: tuple(sorted(set(values)))),
    _OneOrSeveral(),
]
"""One value or several, one of which must match."""


class DeadLetterFilters(Request):
    """Conditions that a dead letter must match, all of them. Without `status`, only open ones match; `any` matches all.

    `queue`, `routing_key`, `exception_type` and `status` accept several values, one of which must match.
    """

    source: Annotated[
        Source | None,
        Field(
            description="What dead-lettered the message: a `relay` that could not send it, a `worker` whose handler failed, or "
            "the `broker`."
        ),
    ] = None
    queue: Annotated[Several[Text] | None, Field(description="Queue where the message failed.")] = None
    routing_key: Annotated[Several[Text] | None, Field(description="Exact routing key.")] = None
    exception_type: Annotated[Several[Text] | None, Field(description="Type of the exception, with its module.")] = None
    group_id: Annotated[Text | None, Field(description="Fingerprint of the group, as `outbox_dlq_groups` returns it.")] = None
    status: Annotated[
        Several[Status],
        Field(description="Status. `open`: neither requeued nor discarded.", json_schema_extra={"default": "open"}),
    ] = ("open",)
    tracking_id: Annotated[Text | None, Field(description="Id of the message, or of one of its causes.")] = None
    message_id: Annotated[Text | None, Field(description="Id of the message itself.")] = None
    failed_after: Annotated[Instant | None, Field(description="Dead-lettered at this time or later.")] = None
    failed_before: Annotated[Instant | None, Field(description="Dead-lettered before this time.")] = None
    min_failures: Annotated[int | None, Field(ge=1, le=LARGEST_COUNT, description="Minimum number of failed attempts.")] = None
    destination: Annotated[DestinationName | None, Field(description="Destination whose relay could not send the message.")] = (
        None
    )
    q: Annotated[Text | None, Field(min_length=1, description='Search in errors and bodies: words, "phrases", or, -word.')] = (
        None
    )

    def as_filter(self) -> DeadLetterFilter:
        """Converts to the library's filter."""
        wanted = {name: _one_or_several(getattr(self, name)) for name in DeadLetterFilters.model_fields if name != "status"}
        statuses = tuple(DeadLetterStatus(each) for each in self.status if each != "any")
        return DeadLetterFilter(**wanted, status=None if "any" in self.status else _one_or_several(statuses))

    def bound_to(self) -> Mapping[str, Any]:
        """Returns the conditions for comparison: equal for equivalent filters, without a request's other parameters."""
        return {name: value for name in DeadLetterFilters.model_fields if (value := getattr(self, name)) is not None}


def _one_or_several(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


class DeadLetterListFilters(DeadLetterFilters):
    """Filters and order of the list of dead letters."""

    sort: Annotated[Literal["newest", "oldest"], Field(description="By time of dead-lettering.")] = "newest"


class DeadLetterListParameters(DeadLetterListFilters, Paged):
    """Query parameters of `GET /dlq`."""

    facets: Annotated[bool, Field(description="Count by source, status, queue, exception type and routing key.")] = False


class DeadLetterGroupsParameters(DeadLetterFilters):
    """Query parameters of `GET /dlq/groups`."""

    by: Annotated[GroupBy, Field(description="Field to group by. `fingerprint` identifies similar errors.")] = "fingerprint"
    group_status: Annotated[
        Several[GroupStatus] | None, Field(description="Only groups with these statuses. Requires `by=fingerprint`.")
    ] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number of groups, the largest first.")] = 50

    @model_validator(mode="after")
    def _require_fingerprint(self) -> Self:
        if self.group_status is not None and self.by != "fingerprint":
            raise ValueError("group_status requires by=fingerprint: other groups have no status")
        return self
