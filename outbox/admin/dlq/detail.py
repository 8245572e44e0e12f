"""`GET /dlq/{id}` and `GET /dlq/{id}/body`: one dead letter with everything that is known of it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Path, Query, Response
from fastapi import Request as HttpRequest
from pydantic import Field

from outbox.admin.access import Asked, Operator, Viewer, require_reveal
from outbox.admin.auditing import record
from outbox.admin.dlq.lines import values
from outbox.admin.dlq.models import DeadLetterShown, EditionShown, FailureShown, LifeShown, OperationShown
from outbox.admin.dlq.reading import Letters
from outbox.admin.dlq.shown import content
from outbox.admin.models import Request
from outbox.admin.outcomes import outcome_word
from outbox.admin.problems import Code, Problem, documented
from outbox.admin.routing import area
from outbox.core.failures import FailedAttempt
from outbox.dead_letters import Action, DeadLetterDetail, Edition, ItemOutcome
from outbox.dead_letters.reading import Life, OperationOn
from outbox.masking import READ_LIMIT, Body, Masking

router = area("dlq")

LetterId = Annotated[
    str, Path(alias="id", max_length=100, description="`17`, or `outbox-17` for a message that the relay parked.")
]


class DetailParameters(Request):
    """How it is shown."""

    reveal: Annotated[bool, Field(description="Unmasked; for operators, and written down in the audit.")] = False


@router.get(
    "/dlq/{id}",
    operation_id="outbox_dlq_show",
    summary="Show Dead Letter",
    responses=documented(Code.NOT_FOUND, Code.CROSS_SITE),
)
async def show(
    asked: Viewer,
    request: HttpRequest,
    letter_id: LetterId,
    wanted: Annotated[DetailParameters, Query()],
) -> DeadLetterShown:
    """One dead letter: its error and every failure before it, body, headers, what edits replaced, what came of each requeue.

    Masked, or, for operators with `reveal=true`, as it is; who revealed what is in the audit before it is answered. JSON is
    shown as it was written, so that large numbers stay what they are. Of a body the first 262,144 bytes are shown; of JSON that
    is larger nothing unless it is revealed, for what is cut cannot be masked. `outbox_dlq_body` has the whole.
    """
    if wanted.reveal:
        await require_reveal(request)
    letters = asked.admin.shared(Letters)
    found = await _found(letters, letter_id, most_bytes=READ_LIMIT + 1)
    if wanted.reveal:
        await _write_down(asked, "dlq.reveal", letter_id)
    async with asked.admin.reading("reading what became of a dead letter") as connection:
        lives = await letters.afterlife.lives(connection, found.letter.message_id)
        operations = await letters.afterlife.operations(connection, letter_id)
    return _shown(found, lives, operations, asked.masking, revealed=wanted.reveal)


@router.get(
    "/dlq/{id}/body",
    operation_id="outbox_dlq_body",
    summary="Download Body",
    response_class=Response,
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "The body."},
        **documented(Code.NOT_FOUND, Code.CROSS_SITE),
    },
)
async def download(asked: Operator, request: HttpRequest, letter_id: LetterId) -> Response:
    """The body as it is, to be saved; who downloaded it is in the audit before it is answered."""
    await require_reveal(request)
    found = await _found(asked.admin.shared(Letters), letter_id, most_bytes=None)
    await _write_down(asked, "dlq.download", letter_id)
    headers = {
        "content-disposition": f'attachment; filename="dead-letter-{found.letter.id}{_ending(found.letter.content_type)}"',
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
    }
    return Response(found.body, media_type="application/octet-stream", headers=headers)


async def _found(letters: Letters, id_: str, *, most_bytes: int | None) -> DeadLetterDetail:
    found = await letters.listing.get(id_, most_bytes=most_bytes)
    if found is None:
        raise Problem(Code.NOT_FOUND, "no dead letter has that id: it may have been requeued, purged or pruned")
    return found


async def _write_down(asked: Asked, action: str, id_: str) -> None:
    """In a transaction of its own, so that nothing is shown of which nobody could learn who saw it."""
    async with asked.admin.changing("writing down who sees a payload") as connection:
        await record(connection, asked, action=action, target=id_)


def _ending(content_type: str | None) -> str:
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind.endswith("json"):
        return ".json"
    return ".txt" if kind == "text/plain" else ".bin"


def _shown(
    found: DeadLetterDetail, lives: Sequence[Life], operations: Sequence[OperationOn], masking: Masking, *, revealed: bool
) -> DeadLetterShown:
    letter = found.letter
    masking = masking.of_message(found.body, found.headers, found.properties)
    for edition in found.editions:
        masking = masking.of_message(edition.body, edition.headers)
    mask = None if revealed else masking
    last = FailedAttempt(at=letter.failed_at, attempt=letter.attempt, failure=found.failure)
    busy = next((operation.id for operation in operations if operation.outcome == "pending"), None)
    return DeadLetterShown(
        **values(letter, masking) | {"error": _failure(last, mask)},
        tracking_ids=list(letter.tracking_ids),
        body=content(Body(found.body, letter.content_type, letter.size), mask),
        headers=_mapping(found.headers, mask),
        header_types=_mapping(found.header_types, None),
        properties=_mapping(found.properties, mask),
        hlc=None if found.hlc is None else str(found.hlc),
        trail=[_failure(failed, mask) for failed in found.trail],
        editions=[_edition(edition, mask) for edition in found.editions],
        lives=[LifeShown.model_validate(life) for life in lives],
        operation_id=busy,
        operations=[_operation(operation, mask) for operation in operations],
        revealed=revealed,
        links=_links(found, busy),
    )


def _failure(failed: FailedAttempt, mask: Masking | None) -> FailureShown:
    failure = failed.failure if mask is None else mask.failure(failed.failure)
    return FailureShown(
        at=failed.at,
        attempt=failed.attempt,
        type=failure.type,
        message=failure.message,
        traceback=failure.traceback,
        worker=failure.worker,
    )


def _operation(operation: OperationOn, mask: Masking | None) -> OperationShown:
    """What it did; the reason may quote the error of what it sent again."""
    action, detail = Action(operation.action), operation.detail
    return OperationShown(
        id=operation.id,
        action=action,
        outcome=outcome_word(action, ItemOutcome(operation.outcome)),
        detail=detail if detail is None or mask is None else mask.masked_text(detail),
        settled_at=operation.settled_at,
    )


def _edition(edition: Edition, mask: Masking | None) -> EditionShown:
    return EditionShown(
        version=edition.version,
        body=content(Body(edition.body, edition.content_type, edition.size), mask),
        headers=None if edition.headers is None else _mapping(edition.headers, mask),
        replaced_at=edition.replaced_at,
        replaced_by=edition.replaced_by,
    )


def _mapping(mapping: Mapping[str, Any], mask: Masking | None) -> dict[str, Any]:
    masked = dict(mapping) if mask is None else mask.masked(mapping)
    # A path may mask the whole.
    return masked if isinstance(masked, dict) else {}


def _links(found: DeadLetterDetail, operation: str | None) -> dict[str, str]:
    letter = found.letter
    links = {"self": f"dlq/{letter.id}", "body": f"dlq/{letter.id}/body", "group": f"dlq?group_id={letter.fingerprint}"}
    if letter.tracking_ids:
        links["chain"] = f"chains/{quote(letter.tracking_ids[-1], safe='')}"
    if operation is not None:
        links["operation"] = f"operations/{operation}"
    return links
