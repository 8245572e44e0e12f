"""`GET /dlq/groups` and `PUT /dlq/groups/note`: dead letters by what they have in common, and what people note about them."""

from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator, Field

from outbox.admin.access import Operator, Viewer
from outbox.admin.auditing import record
from outbox.admin.dlq.filters import DeadLetterGroupsParameters
from outbox.admin.dlq.models import DeadLetterGroup, DeadLetterGroups, GroupNoted, Note
from outbox.admin.dlq.reading import Letters, masking_of
from outbox.admin.inputs import LongText, Text
from outbox.admin.models import Request
from outbox.admin.problems import Code, documented
from outbox.admin.routing import area
from outbox.dead_letters import Group, GroupBy
from outbox.dead_letters.reading import LONGEST_GROUP, GroupNote
from outbox.masking import Masking

router = area("dlq")


def _short_enough(group: str) -> str:
    if len(group.encode()) > LONGEST_GROUP:
        raise ValueError(f"at most {LONGEST_GROUP:,} bytes")
    return group


class NoteWanted(Request):
    """A note about a group, or none any more."""

    by: GroupBy
    id: Annotated[Text, AfterValidator(_short_enough)] = Field(description="The group's id, as `outbox_dlq_groups` shows it.")
    note: Annotated[
        LongText | None, Field(max_length=4_000, description="Null, or nothing but spaces: the note is taken away.")
    ]


@router.get("/dlq/groups", operation_id="outbox_dlq_groups", summary="List Groups Of Dead Letters")
async def list_groups(asked: Viewer, wanted: Annotated[DeadLetterGroupsParameters, Query()]) -> DeadLetterGroups:
    """Dead letters that fit the filter, counted by the fingerprint of their error, by queue or by routing key.

    The largest group comes first. Counts are made at most every five seconds, whoever asks, and given while new ones are made,
    for up to a minute: `as_of` says when.
    """
    letters, masking = asked.admin.shared(Letters), masking_of(asked, wanted)
    found = await letters.groups(wanted.by, wanted.as_filter(), wanted.limit + 1)
    shown = found.value[: wanted.limit]
    async with asked.admin.reading("reading notes") as connection:
        notes = await letters.notes.of(connection, wanted.by, [group.id for group in shown])
    return DeadLetterGroups(
        items=[_shown(group, notes.get(group.id), masking if wanted.by == "fingerprint" else None) for group in shown],
        truncated=len(found.value) > wanted.limit,
        as_of=found.as_of,
    )


@router.put(
    "/dlq/groups/note",
    operation_id="outbox_dlq_note",
    summary="Set Note Of Group",
    responses=documented(Code.CROSS_SITE, Code.READ_ONLY),
)
async def set_note(asked: Operator, wanted: NoteWanted) -> GroupNoted:
    """Notes something about a group, for everybody to see, or takes the note away; whether or not it has any letters now."""
    notes = asked.admin.shared(Letters).notes
    text = (wanted.note or "").strip()
    note = None
    async with asked.admin.changing("noting about a group") as connection:
        if text:
            note = await notes.set(connection, wanted.by, wanted.id, text, asked.principal.name)
        else:
            await notes.clear(connection, wanted.by, wanted.id)
        await record(connection, asked, action="dlq.note", target=wanted.id, details={"by": wanted.by, "note": text or None})
    return GroupNoted(by=wanted.by, id=wanted.id, note=_note(note))


def _shown(group: Group, note: GroupNote | None, masking: Masking | None) -> DeadLetterGroup:
    """`masking` where the title is made of an error."""
    same = {name: getattr(group, name) for name in DeadLetterGroup.model_fields if name not in ("sparkline", "note")}
    if masking is not None:
        same["title"] = masking.error_type(group.title)
    return DeadLetterGroup(**same, sparkline=list(group.deaths_by_hour), note=_note(note))


def _note(note: GroupNote | None) -> Note | None:
    return None if note is None else Note.model_validate(note)
