"""Requests and responses about dead letters. Values are masked unless the request reveals them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from outbox.admin.models import Error, ExternalLinks, Instant, Model, Moment, Page, Paged, Request, ShapedAs, Text
from outbox.core.failures import FailedAttempt
from outbox.dead_letters import Action, DeadLetter, DeadLetterFilter, DeadLetterStatus, GroupBy, ItemOutcome, Source
from outbox.dead_letters.policies import RequeuePolicy
from outbox.dead_letters.reader import GroupMark, GroupStatus, RequeueOutcome
from outbox.masking import HIDDEN, READ_LIMIT, Body, Masking, readable

Outcome = Literal["failed_again", "refused", "not_found", "skipped", "pending", "requeued", "discarded", "restored", "purged"]
"""What came of a dead letter, in a word that scripts may rely on."""
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
    """The word for what came of a dead letter."""
    return _DONE[action] if outcome is ItemOutcome.DONE else _OTHERS[outcome]


def outcome_of(word: Outcome, action: Action) -> ItemOutcome | None:
    """What the library calls it; None for what does not come of this action."""
    for outcome in ItemOutcome:
        if outcome_word(action, outcome) == word:
            return outcome
    return None


_OF_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}


class DeadLetterSummary(Model):
    """One line of the list, without its payload."""

    id: str = Field(description="`17`, or `outbox-17` for a message that the relay parked.")
    source: Source
    status: DeadLetterStatus
    reason: str = Field(description="Why it failed for good: `exhausted`, `rejected`, `undecodable`, `expired`, `refused`, …")
    queue: str = Field(description="Empty for a message that the relay parked on its way to any queue.")
    exchange: str
    routing_key: str
    message_id: str | None
    root_id: str | None = Field(description="The first id of its chain.")
    ordering_key: str | None
    error: Error
    group_id: str = Field(description="The fingerprint of its error, which those that failed alike share.")
    worker: str
    service_version: str | None = Field(
        description="The release of the service whose handler failed last, as configured; null: not known."
    )
    attempt: int
    failure_count: int = Field(description="How many attempts failed in all.")
    dead_letter_count: int = Field(
        description="How often it was dead-lettered: more than once if it failed again after a requeue."
    )
    requeue_count: int = Field(description="How often it was sent again, the last time included if that is what `status` says.")
    created_at: Moment
    first_failed_at: Moment
    failed_at: Moment
    resolved_at: Moment | None
    resolved_by: str | None
    resolution_reason: str | None = Field(description="The reason that was given for it.")
    version: int = Field(description="What an edit must name, so that it overwrites no other edit.")
    content_type: str | None
    size: int = Field(description="Bytes of the body.")
    preview: str = Field(description="The beginning of the body, masked, or its size.")


class Facet(Model):
    """How many have one value."""

    value: str
    count: int


class Facets(Model):
    """How many matches have which value, with the 20 most frequent values of each field.

    A facet ignores the filter on its own field, so that other values can be chosen.
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


class DeadLetterPage(Page[DeadLetterSummary]):
    """A part of the list."""

    facets: Facets | None = Field(default=None, description="With `facets=true` only.")
    unarchived: Unarchived | None = Field(
        description="Dead letters that are still at the broker; null if PostgreSQL is the broker, or if there is no data."
    )
    degraded: list[Literal["broker"]] = Field(description="What could not be asked; the rest of the answer is right.")


class Note(Model):
    """A note about a group."""

    text: str
    noted_by: str
    noted_at: Moment


class GroupNoteResponse(Model):
    """A group, and what is noted about it now."""

    by: GroupBy
    id: str
    note: Note | None


class GroupMarkResponse(Model):
    """What an operator marked a group as. Null: does not apply."""

    marked_as: Literal["open", "fixed", "muted"] = Field(description="`open`: there is no mark.")
    fixed_in: str | None = Field(description="The release that the fix is part of.")
    muted_above: int | None = Field(description="The group is reopened when more than so many are open.")
    marked_by: str | None
    marked_at: Moment | None
    count_since: int = Field(description="How many failed after the group was marked as fixed; counted up to 1,000.")
    failed_since_at: Moment | None = Field(description="When the first of those failed.")

    @classmethod
    def of(cls, mark: GroupMark | None) -> Self:
        """The mark, as the API shows it."""
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
    """A release of the service in which dead letters of a group failed."""

    service_version: str
    count: int
    first_failed_at: Moment
    last_failed_at: Moment


class RequeuePolicyResponse(Model):
    """How dead letters of a group are requeued by themselves. Null: does not apply."""

    per_hour: int | None = Field(description="Once an hour at most so many open ones are requeued; null: there is no policy.")
    set_by: str | None
    set_at: Moment | None
    operation_id: int | None = Field(description="The latest operation that it started.")
    started_at: Moment | None = Field(description="When that was.")
    stopped_at: Moment | None = Field(description="Nothing is requeued any more, until the policy is set again.")
    stopped_because: str | None

    @classmethod
    def of(cls, policy: RequeuePolicy | None) -> Self:
        """The policy, as the API shows it."""
        return cls(**{name: getattr(policy, name, None) for name in cls.model_fields})


class DeadLetterGroup(Model):
    """Dead letters with a common fingerprint, queue or routing key."""

    by: GroupBy
    id: str = Field(description="What a filter takes: as `group_id`, `queue` or `routing_key`.")
    title: str
    status: GroupStatus | None = Field(
        description="Of groups by fingerprint. `reopened`: it was fixed or muted, but failed again, or too often."
    )
    mark: GroupMarkResponse | None = Field(description="Null: it has none.")
    requeue_policy: RequeuePolicyResponse | None = Field(description="Null: it has none.")
    queue: str | None = Field(description="Of groups by fingerprint; empty for messages that the relay parked on no queue.")
    handlers: list[str] = Field(description="The qualified names of the callbacks of that queue.")
    versions: list[GroupVersionResponse] = Field(
        description="The releases in which the latest of the group failed, the latest first; as far as they are configured."
    )
    count: int
    open_count: int
    first_seen_at: Moment
    last_seen_at: Moment
    last_requeued_at: Moment | None = Field(description="When one of them was requeued last.")
    count_since_requeue: int = Field(description="How many failed after that; all of them if none was requeued.")
    sample_id: str = Field(description="One of them, recorded last.")
    hourly_counts: list[int] = Field(description="How many failed in each of the last 24 hours, the current one last.")
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


class FailureResponse(Model):
    """One attempt that failed."""

    failed_at: Moment | None
    attempt: int
    worker: str
    service_version: str | None
    error: Error

    @classmethod
    def of(cls, failed: FailedAttempt, error: Error) -> Self:
        """The attempt, with its error as it may be shown."""
        return cls(
            failed_at=failed.at,
            attempt=failed.attempt,
            worker=failed.failure.worker,
            service_version=failed.failure.version or None,
            error=error,
        )


class EditionResponse(Model):
    """The payload as it was before an edit."""

    version: int
    body: Content
    headers: dict[str, Any] | None
    replaced_at: Moment
    replaced_by: str | None


class RequeueResponse(Model):
    """One requeue of the message, and its outcome."""

    requeued_at: Moment
    requeued_by: str
    queue: str | None = Field(description="Where it was requeued to; null: wherever its routing key leads.")
    outcome: RequeueOutcome = Field(description="`duplicate`: the queue's inbox knew it, and it was not processed again.")
    ended_at: Moment | None


class DeadLetterOperation(Model):
    """What an operation is or was to do with it."""

    id: str
    action: Action
    outcome: Outcome
    reason: str | None = Field(description="Why it was not done; of a message that failed again or is retried, the error.")
    settled_at: Moment | None


class DeadLetterLinks(BaseModel):
    """Related resources. Fields with a default may be missing."""

    self: str
    body: str
    group: str
    chain: str | None = Field(default=None, description="Of the message, if it has an id.")
    operation: str | None = Field(default=None, description="The one that is to do something with it.")


class DeadLetterResponse(DeadLetterSummary):
    """One dead letter with all its details."""

    external: ExternalLinks
    tracking_ids: list[str] = Field(description="The chain that led to it, from its first message to itself.")
    body: Content
    headers: dict[str, Any]
    header_types: Annotated[dict[str, Any], WithJsonSchema(_OF_TEXTS)] = Field(
        description="By JSON pointer, the AMQP type of a header whose type JSON lacks."
    )
    properties: dict[str, Any]
    hlc: str | None = Field(description="Its place in the order of events, a large number.")
    failures: list[FailureResponse] = Field(description="Every attempt that failed, oldest first.")
    editions: list[EditionResponse]
    requeues: list[RequeueResponse] = Field(
        description="Every requeue and its outcome, oldest first, as far as the history goes."
    )
    operation_id: str | None = Field(description="The operation that is to do something with it.")
    operations: list[DeadLetterOperation] = Field(description="Those that had it, the latest first.")
    revealed: bool
    links: Annotated[dict[str, str], ShapedAs(DeadLetterLinks)] = Field(
        description="Relative to where the dead letters are listed."
    )


LONGEST_MESSAGE = 500
"""Most characters of an error's message in a line."""


def line(letter: DeadLetter, masking: Masking) -> DeadLetterSummary:
    """The line of `letter`, whose message and preview are masked already."""
    return DeadLetterSummary(**values(letter, masking))


def values(letter: DeadLetter, masking: Masking) -> dict[str, object]:
    """The fields of that line."""
    return {name: getattr(letter, name) for name in _AS_IN_THE_LIBRARY} | {
        "reason": letter.cause,
        "failure_count": letter.failures,
        "dead_letter_count": letter.deaths,
        "resolution_reason": letter.resolution,
        "root_id": letter.tracking_ids[0] if letter.tracking_ids else None,
        "group_id": letter.fingerprint,
        "error": error_of(letter, masking),
    }


_AS_IN_THE_LIBRARY = DeadLetterSummary.model_fields.keys() & {field.name for field in fields(DeadLetter)}


def error_of(letter: DeadLetter, masking: Masking) -> Error:
    """What failed last."""
    message = HIDDEN if masking.hides_errors and letter.exception_message else letter.exception_message
    return Error(
        type=masking.error_type(letter.exception_type),
        message=message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…",
    )


def content(body: Body, masking: Masking | None) -> Content:
    """What is shown of `body`: masked, or, without a `masking`, everything up to `READ_LIMIT` bytes."""
    kind, text = readable(body, masking)
    return Content(
        content_type=body.content_type,
        size=body.size,
        encoding=kind,
        content=text,
        truncated=body.size > READ_LIMIT,
        masked=masking is not None and (text is None or text != readable(body, None)[1]),
    )


T = TypeVar("T")

LARGEST_COUNT = 1_000_000
MOST_VALUES = 50
"""Values of one field of a filter, of which one has to fit."""

Status = Literal["open", "requeued", "discarded", "any"]


class _OneOrSeveral:
    """The JSON schema of a field that takes one value or several."""

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        [array] = [each for each in schema.get("anyOf", [schema]) if each.get("type") == "array"]
        return {"anyOf": [array["items"], *schema.get("anyOf", [array])]}


Several = Annotated[
    tuple[T, ...],
    Field(min_length=1, max_length=MOST_VALUES),
    BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
    # Without repetitions, so that two filters that mean the same are equal.
    AfterValidator(lambda values: tuple(sorted(set(values)))),
    _OneOrSeveral(),
]
"""One value, or several, of which one has to fit."""


class DeadLetterFilters(Request):
    """Conditions that a dead letter must match, all of them. Without `status` only open ones match; `any` matches every status.

    Of several values of `queue`, `routing_key`, `exception_type` or `status`, one has to fit.
    """

    source: Annotated[
        Source | None,
        Field(description="What dead-lettered it: a `relay` that cannot send it, a failed `worker`, or the `broker`."),
    ] = None
    queue: Annotated[Several[Text] | None, Field(description="The queue where it failed.")] = None
    routing_key: Annotated[Several[Text] | None, Field(description="Its routing key, exactly.")] = None
    exception_type: Annotated[Several[Text] | None, Field(description="The type of the exception, with its module.")] = None
    group_id: Annotated[Text | None, Field(description="The fingerprint of its group, see `outbox_dlq_groups`.")] = None
    status: Annotated[
        Several[Status],
        Field(description="Its status; `open`: neither requeued nor discarded.", json_schema_extra={"default": "open"}),
    ] = ("open",)
    tracking_id: Annotated[Text | None, Field(description="An id of its chain: its own, or of a message that led to it.")] = (
        None
    )
    message_id: Annotated[Text | None, Field(description="Its own id.")] = None
    failed_after: Annotated[Instant | None, Field(description="It failed for good at that time or later.")] = None
    failed_before: Annotated[Instant | None, Field(description="It failed for good before that time.")] = None
    min_failures: Annotated[int | None, Field(ge=1, le=LARGEST_COUNT, description="So many attempts failed, or more.")] = None
    q: Annotated[
        Text | None, Field(min_length=1, description='Words of its error and masked body: words, "phrases", or, -not.')
    ] = None

    def as_filter(self) -> DeadLetterFilter:
        """The filter as the library takes it."""
        wanted = {name: _one_or_several(getattr(self, name)) for name in DeadLetterFilters.model_fields if name != "status"}
        statuses = tuple(DeadLetterStatus(each) for each in self.status if each != "any")
        return DeadLetterFilter(**wanted, status=None if "any" in self.status else _one_or_several(statuses))

    def bound_to(self) -> Mapping[str, Any]:
        """What says which filter this is: two that mean the same are equal, whatever else a request asks for."""
        return {name: value for name in DeadLetterFilters.model_fields if (value := getattr(self, name)) is not None}


def _one_or_several(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


class DeadLetterListFilters(DeadLetterFilters):
    """Which dead letters are listed, and in which order."""

    sort: Annotated[Literal["newest", "oldest"], Field(description="By the time of death, the latest first or last.")] = (
        "newest"
    )


class DeadLetterListParameters(DeadLetterListFilters, Paged):
    """What `GET /dlq` takes."""

    facets: Annotated[bool, Field(description="Whether to count by source, status, queue, exception type and routing key.")] = (
        False
    )


class DeadLetterGroupsParameters(DeadLetterFilters):
    """What `GET /dlq/groups` takes."""

    by: Annotated[
        GroupBy, Field(description="What the dead letters of one group have in common; the fingerprint is that of the error.")
    ] = "fingerprint"
    group_status: Annotated[
        Several[GroupStatus] | None,
        Field(description="Only groups of these statuses, with `by=fingerprint`. Without it, all."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Most groups, the largest first.")] = 50

    @model_validator(mode="after")
    def _has_statuses(self) -> Self:
        if self.group_status is not None and self.by != "fingerprint":
            raise ValueError("group_status needs by=fingerprint: other groups have no status")
        return self
