"""`/dlq/groups`: what failed alike, with notes and marks of operators."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal, Self

from fastapi import Path, Query
from pydantic import AfterValidator, Field, model_validator

from outbox.admin.access import Operator, RequestContext, Viewer, area, record
from outbox.admin.dlq.models import (
    DeadLetterGroup,
    DeadLetterGroups,
    DeadLetterGroupsParameters,
    GroupMarkResponse,
    GroupNoteResponse,
    GroupVersionResponse,
    Note,
    RequeuePolicyResponse,
)
from outbox.admin.dlq.routes import Letters, masking_of
from outbox.admin.models import LongText, Request, Text
from outbox.admin.problems import Code, Problem, documented
from outbox.dead_letters import DeadLetterFilter, Group, GroupBy
from outbox.dead_letters.filters import as_sequence
from outbox.dead_letters.policies import MOST_PER_HOUR
from outbox.dead_letters.reader import MAX_GROUP_ID_BYTES, GroupMark, GroupNote, GroupStatus
from outbox.masking import Masking
from outbox.postgres.pool import Connection
from outbox.reporting.components import recent_components

LATEST = 200
"""Dead letters of each group in a list of which the versions are shown."""
LATEST_OF_ONE = 10_000
LARGEST_MUTED = 100_000
"""Open dead letters up to which a group can be muted."""

router = area("dlq")


def _short_enough(group: str) -> str:
    if len(group.encode()) > MAX_GROUP_ID_BYTES:
        raise ValueError(f"at most {MAX_GROUP_ID_BYTES:,} bytes")
    return group


class GroupNoteRequest(Request):
    """A note about a group, or none any more."""

    by: GroupBy
    id: Annotated[Text, AfterValidator(_short_enough)] = Field(description="The group's id, as `outbox_dlq_groups` shows it.")
    note: Annotated[
        LongText | None, Field(max_length=4_000, description="Null, or nothing but spaces: the note is taken away.")
    ]


class GroupMarkRequest(Request):
    """What a group of failures with a common fingerprint is marked as."""

    id: Annotated[Text, Field(min_length=1), AfterValidator(_short_enough)] = Field(
        description="The group's id, as `outbox_dlq_groups` shows it."
    )
    status: Literal["open", "fixed", "muted"] = Field(description="`open` takes the mark away.")
    fixed_in: Annotated[Text, Field(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="With `fixed`, the release that the fix is part of: failures in releases that failed before do not reopen "
        "the group.",
    )
    muted_above: Annotated[int, Field(ge=1, le=LARGEST_MUTED)] | None = Field(
        default=None, description="With `muted`, and required: the group is reopened when more than so many are open."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.fixed_in is not None and self.status != "fixed":
            raise ValueError("fixed_in is for the status fixed")
        if (self.muted_above is not None) != (self.status == "muted"):
            raise ValueError("muted_above is for the status muted, which needs it")
        return self


class RequeuePolicyRequest(Request):
    """Whether, and how fast, dead letters of a group are requeued by themselves."""

    id: Annotated[Text, Field(min_length=1), AfterValidator(_short_enough)] = Field(
        description="The group's id, as `outbox_dlq_groups` shows it."
    )
    per_hour: Annotated[int, Field(ge=1, le=MOST_PER_HOUR)] | None = Field(description="At most so many an hour; null: none.")


@router.get("/dlq/groups", operation_id="outbox_dlq_groups", summary="List Groups Of Dead Letters")
async def list_groups(context: Viewer, wanted: Annotated[DeadLetterGroupsParameters, Query()]) -> DeadLetterGroups:
    """Counts the dead letters that match the filter, by the fingerprint of their error, by queue or by routing key.

    The largest group comes first. Groups are counted at most every five seconds; the previous counts are returned meanwhile,
    for up to a minute: `as_of` says when. Marks and notes are as they are now. A group is `reopened` if it failed again after
    it was marked as fixed, or if more dead letters are open than it was muted for.
    """
    letters, masking = context.admin.shared(Letters), masking_of(context, wanted)
    filter_ = wanted.as_filter()
    async with context.admin.reading("reading marks") as connection:
        marks = await letters.marks.all(connection) if wanted.by == "fingerprint" else {}
    if wanted.group_status is not None:
        filter_ = _of_status(filter_, marks, wanted.group_status)
    found = await letters.groups(wanted.by, filter_, wanted.limit + 1)
    async with context.admin.reading("reading what is known of groups") as connection:
        items = await _described(context, connection, found.value[: wanted.limit], marks, masking, most=LATEST)
    return DeadLetterGroups(items=items, truncated=len(found.value) > wanted.limit, as_of=found.as_of)


@router.get(
    "/dlq/groups/{id}",
    operation_id="outbox_dlq_group",
    summary="Show Group Of Dead Letters",
    responses=documented(Code.NOT_FOUND),
)
async def show_group(
    context: Viewer, group_id: Annotated[str, Path(alias="id", max_length=MAX_GROUP_ID_BYTES, description="Its fingerprint.")]
) -> DeadLetterGroup:
    """Shows a group of failures with a common fingerprint, of every status, with the versions of its latest 10,000.

    Its dead letters are those of `outbox_dlq_list` with `group_id`; `sample_id` is one of them, with a traceback.
    """
    letters = context.admin.shared(Letters)
    found = await letters.groups("fingerprint", DeadLetterFilter(group_id=group_id), 1)
    if not found.value:
        raise Problem(Code.NOT_FOUND, "there is no group of that id, or none of its dead letters is left")
    async with context.admin.reading("reading a group") as connection:
        marks = await letters.marks.all(connection)
        [group] = await _described(context, connection, found.value, marks, context.masking, most=LATEST_OF_ONE)
    return group


@router.put(
    "/dlq/groups/status",
    operation_id="outbox_dlq_mark",
    summary="Mark A Group",
    responses=documented(Code.CROSS_SITE, Code.READ_ONLY),
)
async def set_status(context: Operator, wanted: GroupMarkRequest) -> GroupMarkResponse:
    """Marks a group as fixed or muted, or takes its mark away. The group need not have dead letters now.

    What fails later reopens it: nothing needs to watch. A muted group does not count in the verdict.
    """
    marks = context.admin.shared(Letters).marks
    async with context.admin.changing("marking a group") as connection:
        await marks.set(
            connection,
            wanted.id,
            GroupStatus(wanted.status),
            fixed_in=wanted.fixed_in,
            muted_above=wanted.muted_above,
            marked_by=context.principal.name,
        )
        details = wanted.model_dump(exclude={"id"}, exclude_none=True)
        await record(connection, context, action="dlq.mark", target=wanted.id, details=details)
        mark = (await marks.all(connection)).get(wanted.id)
    return GroupMarkResponse.of(mark)


@router.put(
    "/dlq/groups/policy",
    operation_id="outbox_dlq_policy",
    summary="Set The Requeue Policy Of A Group",
    responses=documented(Code.CROSS_SITE, Code.READ_ONLY),
)
async def set_policy(context: Operator, wanted: RequeuePolicyRequest) -> RequeuePolicyResponse:
    """Lets maintenance requeue the open dead letters of a group by itself: once an hour, the oldest `per_hour`.

    Each time the first one goes ahead, and the others follow when it was handled. The policy stops itself when a message fails
    again, or when its operation is cancelled; setting it again lets it go on. A `per_hour` of null takes it away.
    """
    policies = context.admin.shared(Letters).policies
    async with context.admin.changing("setting a requeue policy") as connection:
        await policies.set(connection, wanted.id, wanted.per_hour, set_by=context.principal.name)
        await record(connection, context, action="dlq.policy", target=wanted.id, details={"per_hour": wanted.per_hour})
        policy = (await policies.all(connection)).get(wanted.id)
    return RequeuePolicyResponse.of(policy)


@router.put(
    "/dlq/groups/note",
    operation_id="outbox_dlq_note",
    summary="Set The Note Of A Group",
    responses=documented(Code.CROSS_SITE, Code.READ_ONLY),
)
async def set_note(context: Operator, wanted: GroupNoteRequest) -> GroupNoteResponse:
    """Sets or removes the note of a group, which every viewer sees. The group need not have dead letters now."""
    notes = context.admin.shared(Letters).notes
    text = (wanted.note or "").strip()
    note = None
    async with context.admin.changing("noting about a group") as connection:
        if text:
            note = await notes.set(connection, wanted.by, wanted.id, text, context.principal.name)
        else:
            await notes.clear(connection, wanted.by, wanted.id)
        await record(connection, context, action="dlq.note", target=wanted.id, details={"by": wanted.by, "note": text or None})
    return GroupNoteResponse(by=wanted.by, id=wanted.id, note=_note(note))


def _note(note: GroupNote | None) -> Note | None:
    return None if note is None else Note.model_validate(note)


def _of_status(filter_: DeadLetterFilter, marks: Mapping[str, GroupMark], wanted: Iterable[GroupStatus]) -> DeadLetterFilter:
    """`filter_`, of groups that have one of the statuses now. Those without a mark are open."""
    fitting = tuple(sorted(group for group, mark in marks.items() if mark.status in wanted))
    if GroupStatus.OPEN in wanted:
        return replace(filter_, without_groups=tuple(sorted(marks.keys() - set(fitting))))
    if filter_.group_id is not None:
        fitting = tuple(group for group in fitting if group in as_sequence(filter_.group_id))
    # No fingerprint is empty: with none that fits, nothing is found.
    return replace(filter_, group_id=fitting or ("",))


async def _described(
    context: RequestContext,
    connection: Connection,
    groups: Sequence[Group],
    marks: Mapping[str, GroupMark],
    masking: Masking,
    *,
    most: int,
) -> list[DeadLetterGroup]:
    """The groups with what is known of each beyond the counts."""
    letters = context.admin.shared(Letters)
    if not groups:
        return []
    by, ids = groups[0].by, [group.id for group in groups]
    notes = await letters.notes.of(connection, by, ids)
    is_error = by == "fingerprint"
    versions = await letters.marks.versions(connection, ids, most=most) if is_error else {}
    policies = await letters.policies.all(connection) if is_error else {}
    handlers = await _handlers(connection, context.admin.table.schema) if is_error else {}
    return [
        DeadLetterGroup(
            by=by,
            id=group.id,
            title=masking.error_type(group.title) if is_error else group.title,
            status=(marks[group.id].status if group.id in marks else GroupStatus.OPEN) if is_error else None,
            mark=GroupMarkResponse.of(marks.get(group.id)) if group.id in marks else None,
            requeue_policy=RequeuePolicyResponse.of(policies[group.id]) if group.id in policies else None,
            queue=group.queue if is_error else None,
            handlers=sorted(handlers.get(group.queue, ())),
            versions=[GroupVersionResponse.model_validate(each) for each in versions.get(group.id, ())],
            count=group.count,
            open_count=group.open,
            first_seen_at=group.first_seen,
            last_seen_at=group.last_seen,
            last_requeued_at=group.last_requeued_at,
            count_since_requeue=group.since_requeue,
            sample_id=group.sample_id,
            hourly_counts=list(group.deaths_by_hour),
            note=_note(notes.get(group.id)),
        )
        for group in groups
    ]


async def _handlers(connection: Connection, schema: str | None) -> Mapping[str, set[str]]:
    """The qualified names of the callbacks of each queue, as workers reported them."""
    handlers: dict[str, set[str]] = {}
    for component in await recent_components(connection, schema=schema):
        for consumer in component.consumers:
            if isinstance(consumer, Mapping) and isinstance(name := consumer.get("handler"), str) and name:
                handlers.setdefault(str(consumer.get("queue")), set()).add(name)
    return handlers
