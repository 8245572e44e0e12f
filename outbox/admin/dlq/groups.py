"""`/dlq/groups`: groups of similar failures, with marks, notes and requeue policies of operators."""

from collections.abc import Mapping, Sequence
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
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.dead_letters import DeadLetterFilter, Group, GroupBy
from outbox.dead_letters.filters import as_sequence
from outbox.dead_letters.policies import MOST_PER_HOUR
from outbox.dead_letters.reader import MAX_GROUP_ID_BYTES, GroupMark, GroupNote, GroupStatus
from outbox.masking import Masking
from outbox.postgres.pool import Connection
from outbox.reporting.components import recent_components

VERSIONS_OF_LATEST = 200
"""Number of dead letters, the latest ones, whose versions a list of groups shows for each group."""
VERSIONS_OF_LATEST_IN_DETAIL = 10_000
"""The same for a single group."""
LARGEST_MUTED = 100_000
"""Maximum value of `muted_above`."""

router = area("dlq")


def _short_enough(group: str) -> str:
    if len(group.encode()) > MAX_GROUP_ID_BYTES:
        raise ValueError(f"must be at most {MAX_GROUP_ID_BYTES:,} bytes")
    return group


class GroupNoteRequest(Request):
    """The new note of a group, or its removal."""

    by: GroupBy
    id: Annotated[Text, AfterValidator(_short_enough)] = Field(description="Id, as `outbox_dlq_groups` returns it.")
    note: Annotated[LongText | None, Field(max_length=4_000, description="New note. Null or blank text removes the note.")]
    version: Annotated[int, Field(ge=0, lt=2**31)] | None = Field(
        default=None, description="Version of the note that this one replaces. 0: there is none. Null: replace any."
    )


class GroupMarkRequest(Request):
    """The new mark of a group by fingerprint."""

    id: Annotated[Text, Field(min_length=1), AfterValidator(_short_enough)] = Field(
        description="Id, as `outbox_dlq_groups` returns it."
    )
    status: Literal["open", "fixed", "muted"] = Field(description="New status. `open` removes the mark.")
    fixed_in: Annotated[Text, Field(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="Only with `fixed`: the release that contains the fix. Failures in releases that failed before the mark do "
        "not reopen the group.",
    )
    muted_above: Annotated[int, Field(ge=1, le=LARGEST_MUTED)] | None = Field(
        default=None,
        description="Required with `muted`: the group reopens when more than this number of its dead letters are open.",
    )

    @model_validator(mode="after")
    def _require_matching_status(self) -> Self:
        if self.fixed_in is not None and self.status != "fixed":
            raise ValueError("fixed_in requires the status fixed")
        if (self.muted_above is not None) != (self.status == "muted"):
            raise ValueError("give muted_above with the status muted, and only then")
        return self


class RequeuePolicyRequest(Request):
    """The new requeue policy of a group."""

    id: Annotated[Text, Field(min_length=1), AfterValidator(_short_enough)] = Field(
        description="Id, as `outbox_dlq_groups` returns it."
    )
    per_hour: Annotated[int, Field(ge=1, le=MOST_PER_HOUR)] | None = Field(
        description="Maximum number per hour. Null removes the policy."
    )


@router.get("/dlq/groups", operation_id="outbox_dlq_groups", summary="List Groups Of Dead Letters")
async def list_groups(context: Viewer, wanted: Annotated[DeadLetterGroupsParameters, Query()]) -> DeadLetterGroups:
    """Lists groups of the dead letters that match the filter, by the fingerprint of their error, by queue or by routing key.

    The largest group comes first. Groups are counted at most every five seconds. While they are being counted, the response has
    the previous counts, up to a minute old; see `as_of`. Marks and notes are current. A group is `reopened` if it failed again
    after it was marked as fixed, or if more of its dead letters are open than `muted_above`.
    """
    letters, masking = context.admin.shared(Letters), masking_of(context, wanted)
    filter_ = wanted.as_filter()
    async with context.admin.reading("reading marks") as connection:
        marks = await letters.marks.all(connection) if wanted.by == "fingerprint" else {}
    if wanted.group_status is not None:
        # Restricted to the groups that have one of the statuses now. Groups without a mark are open.
        matching = {group for group, mark in marks.items() if mark.status in wanted.group_status}
        if GroupStatus.OPEN in wanted.group_status:
            # Most open groups have no mark, so they can only be selected by excluding the others.
            filter_ = replace(filter_, without_groups=tuple(sorted(marks.keys() - matching)))
        else:
            if filter_.group_id is not None:
                matching &= set(as_sequence(filter_.group_id))
            # An empty tuple would mean no condition. No fingerprint is empty, so `("",)` matches nothing.
            filter_ = replace(filter_, group_id=tuple(sorted(matching)) or ("",))
    # Between the two blocks, because counting uses another connection, and one request must not hold two.
    found = await letters.groups(wanted.by, filter_, wanted.limit + 1)
    async with context.admin.reading("reading details of groups") as connection:
        items = await _with_details(context, connection, found.value[: wanted.limit], marks, masking, most=VERSIONS_OF_LATEST)
    return DeadLetterGroups(items=items, truncated=len(found.value) > wanted.limit, as_of=found.as_of)


@router.get(
    "/dlq/groups/{id}",
    operation_id="outbox_dlq_group",
    summary="Show Group Of Dead Letters",
    responses=problem_responses(Code.NOT_FOUND),
)
async def show_group(
    context: Viewer,
    group_id: Annotated[str, Path(alias="id", max_length=MAX_GROUP_ID_BYTES, description="Fingerprint of the group.")],
) -> DeadLetterGroup:
    """Shows a group by fingerprint, with dead letters of every status. `versions` are those of its latest 10,000 dead letters.

    To list its dead letters, use `outbox_dlq_list` with `group_id`. `sample_id` is one of them, with a traceback.
    """
    letters = context.admin.shared(Letters)
    found = await letters.groups("fingerprint", DeadLetterFilter(group_id=group_id), 1)
    if not found.value:
        raise Problem(Code.NOT_FOUND, "there is no group with this id, or all of its dead letters were deleted")
    async with context.admin.reading("reading a group") as connection:
        marks = await letters.marks.all(connection)
        [group] = await _with_details(
            context, connection, found.value, marks, context.masking, most=VERSIONS_OF_LATEST_IN_DETAIL
        )
    return group


@router.put(
    "/dlq/groups/status",
    operation_id="outbox_dlq_mark",
    summary="Mark A Group",
    responses=problem_responses(Code.CROSS_SITE, Code.READ_ONLY),
)
async def set_status(context: Operator, wanted: GroupMarkRequest) -> GroupMarkResponse:
    """Marks a group as fixed or muted, or removes its mark. The group need not have dead letters at this time.

    Later failures reopen the group automatically. The verdict ignores muted groups.
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
    responses=problem_responses(Code.CROSS_SITE, Code.READ_ONLY),
)
async def set_policy(context: Operator, wanted: RequeuePolicyRequest) -> RequeuePolicyResponse:
    """Lets maintenance requeue open dead letters of a group automatically: each hour, the `per_hour` oldest ones.

    Each time, one message is requeued first as a canary; the others follow after it was handled. The policy stops when a
    message fails again, or when its operation is cancelled. Set it again to continue. `per_hour: null` removes the policy.
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
    responses=problem_responses(Code.CROSS_SITE, Code.READ_ONLY, Code.VERSION_CONFLICT),
)
async def set_note(context: Operator, wanted: GroupNoteRequest) -> GroupNoteResponse:
    """Sets or removes the note of a group. All viewers see it. The group need not have dead letters at this time.

    With a `version`, a note that another operator has changed since is not replaced: the response is `version_conflict`, with
    the `note` that the group has now, and its `version`.
    """
    notes = context.admin.shared(Letters).notes
    text = (wanted.note or "").strip()
    async with context.admin.changing("setting the note of a group") as connection:
        note = await notes.set(connection, wanted.by, wanted.id, text, context.principal.name, version=wanted.version)
        # A note that has the wanted text already was set by this request, whose response was lost.
        if wanted.version is not None and text != (note.text if note else ""):
            what = f"{note.noted_by} changed the note" if note else "the note was removed"
            raise Problem(
                Code.VERSION_CONFLICT,
                f"{what} in the meantime: read it, and send its version to replace it",
                version=note.version if note else 0,
                note=_note(note),
            )
        await record(connection, context, action="dlq.note", target=wanted.id, details={"by": wanted.by, "note": text or None})
    return GroupNoteResponse(by=wanted.by, id=wanted.id, note=_note(note))


def _note(note: GroupNote | None) -> Note | None:
    return None if note is None else Note.model_validate(note)


async def _with_details(
    context: RequestContext,
    connection: Connection,
    groups: Sequence[Group],
    marks: Mapping[str, GroupMark],
    masking: Masking,
    *,
    most: int,
) -> list[DeadLetterGroup]:
    """Adds marks, notes, policies, versions and handlers to groups."""
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
            hourly_counts=list(group.hourly_counts),
            note=_note(notes.get(group.id)),
        )
        for group in groups
    ]


async def _handlers(connection: Connection, schema: str | None) -> Mapping[str, set[str]]:
    """Returns the qualified names of the handlers of each queue, as workers reported them."""
    handlers: dict[str, set[str]] = {}
    for component in await recent_components(connection, schema=schema):
        for consumer in component.consumers:
            if isinstance(name := consumer.get("handler"), str) and name:
                handlers.setdefault(str(consumer.get("queue")), set()).add(name)
    return handlers
