"""`GET /dlq`, `GET /dlq/{id}` and `GET /dlq/{id}/body`: lists and shows dead letters."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Path, Query, Response
from fastapi import Request as HttpRequest
from pydantic import Field

from outbox.admin.access import Operator, RequestContext, Viewer, area, record, require_reveal
from outbox.admin.admin import Admin
from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.admin.cache import SingleFlightCache, Snapshot, StaleWhileRevalidate
from outbox.admin.dlq.models import (
    Content,
    DeadLetterFilters,
    DeadLetterListParameters,
    DeadLetterOperation,
    DeadLetterPage,
    DeadLetterResponse,
    EditionResponse,
    Facet,
    Facets,
    FailureResponse,
    RequeueResponse,
    Unarchived,
    content,
    outcome_word,
    summary_fields,
    to_summary,
)
from outbox.admin.models import (
    MOST_COUNTED,
    BodyAccess,
    Cursor,
    Error,
    ExternalLinks,
    Request,
    Total,
    cursor_page,
    decode_cursor,
    invalid_cursor,
    to_total,
)
from outbox.admin.problems import Code, Problem, problem_responses
from outbox.core.codec import BODY_STORE, TRACEPARENT, trace_id_of
from outbox.core.outcome import Failure
from outbox.dead_letters import Action, DeadLetterDetail, DeadLetterFilter, Group, GroupBy, ItemOutcome, Position
from outbox.dead_letters.filters import is_letter_id
from outbox.dead_letters.model import FACET_FIELDS, FacetField
from outbox.dead_letters.model import Facets as FacetCounts
from outbox.dead_letters.policies import RequeuePolicies
from outbox.dead_letters.reader import (
    DeadLetterListing,
    GroupMarks,
    GroupNotes,
    LetterOperation,
    Requeue,
    RequeueHistory,
)
from outbox.masking import READ_LIMIT, Body, Masking
from outbox.postgres.archive import PostgresArchive

MAX_FACETED = 50_000
"""Number of dead letters, the latest ones, that facets count."""
FACET_VALUES = 20
"""Values of each field that facets list, the most frequent ones."""


class Letters:
    """Reads dead letters for an admin, in bounded time. Counts of groups and facets are cached for a short time."""

    def __init__(self, admin: Admin) -> None:
        self.masking: Masking = admin.masking
        self.listing = DeadLetterListing(admin.pool, admin.table, masking=admin.masking, reading=admin.reading)
        self.notes = GroupNotes(admin.table)
        self.marks = GroupMarks(admin.table)
        self.policies = RequeuePolicies(admin.pool, admin.table)
        self.history = RequeueHistory(admin.table)
        self._groups = StaleWhileRevalidate[Sequence[Group]]()
        self._facets = StaleWhileRevalidate[FacetCounts]()

    async def groups(self, by: GroupBy, filter_: DeadLetterFilter, limit: int) -> Snapshot[Sequence[Group]]:
        """Returns the largest groups, and when they were counted."""
        return await self._groups.get((by, filter_, limit), lambda: self.listing.groups(by, filter_, limit=limit))

    async def facets(self, filter_: DeadLetterFilter) -> tuple[FacetCounts, datetime]:
        """Counts matches by value of each field, ignoring the filter on that field; and returns when they were counted."""
        filtered = [name for name in FACET_FIELDS if getattr(filter_, name) is not None]
        found = await self._count(filter_, tuple(name for name in FACET_FIELDS if name not in filtered))
        facets, as_of = dict(found.value), found.as_of
        for name in filtered:
            removed: dict[str, Any] = {name: None}
            counts = await self._count(replace(filter_, **removed), (name,))
            facets |= counts.value
            as_of = min(as_of, counts.as_of)
        return facets, as_of

    async def close(self) -> None:
        """Cancels counting."""
        await self._groups.close()
        await self._facets.close()

    async def _count(self, filter_: DeadLetterFilter, fields: tuple[FacetField, ...]) -> Snapshot[FacetCounts]:
        async def count() -> FacetCounts:
            return await self.listing.facets(filter_, fields, limit=FACET_VALUES, most=MAX_FACETED) if fields else {}

        return await self._facets.get((filter_, fields), count)


def masking_of(context: RequestContext, wanted: DeadLetterFilters) -> Masking:
    """Returns the masking for the principal. Raises `forbidden` for a search in error texts that are hidden from it."""
    # Matches would disclose the hidden texts, word by word.
    if context.masking.hides_errors and wanted.q is not None:
        raise Problem(Code.FORBIDDEN, "`q` searches error texts, which only operators may see")
    return context.masking


MAX_AGE = timedelta(seconds=5)
TIMEOUT = timedelta(seconds=10)
PATIENCE = timedelta(milliseconds=120)
"""How long a list waits for the broker."""


@dataclass(frozen=True, slots=True)
class UnarchivedCounts:
    """Dead letters at the broker by queue, or why they could not be counted."""

    queues: Mapping[str, int]
    problem: str | None


class UnarchivedView:
    """Counts dead letters at the broker that no archiver has stored yet. PostgreSQL as the broker has none."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._broker = admin.shared(BrokerView)
        self._counts = SingleFlightCache(self._count, max_age=MAX_AGE, timeout=TIMEOUT)

    async def now(self) -> tuple[Unarchived | None, list[Literal["broker"]]]:
        """Returns the counts, None if unknown; and the systems that did not respond."""
        if self._broker.kind is not BrokerKind.RABBITMQ:
            return None, []
        try:
            found = await self._counts.get(patience=PATIENCE)
        except Exception:  # noqa: BLE001  the list works without the broker, whatever its error
            return None, ["broker"]
        if found.error is not None or found.value.problem is not None:
            return None, ["broker"]
        queues = {queue: count for queue, count in found.value.queues.items() if count}
        return Unarchived(count=sum(queues.values()), queues=queues, as_of=found.as_of), []

    async def close(self) -> None:
        """Cancels counting."""
        await self._counts.close()

    async def _count(self) -> UnarchivedCounts:
        from outbox.transports.rabbitmq.topology import dead_letter_queue

        known = await PostgresArchive(self._admin.pool, self._admin.table).known_queues()
        dead_letters = {dead_letter_queue(queue): queue for queue in known}
        depths = await self._broker.depths(dead_letters)
        queues = {
            dead_letters[seen.name]: (seen.ready or 0) + (seen.unacked or 0)
            for seen in depths.queues
            if seen.name in dead_letters
        }
        return UnarchivedCounts(queues, depths.problem)


router = area("dlq")


@router.get("/dlq", operation_id="outbox_dlq_list", responses=problem_responses(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH))
async def list_dead_letters(context: Viewer, wanted: Annotated[DeadLetterListParameters, Query()]) -> DeadLetterPage:
    """Lists dead letters, including messages that the relay parked. By default, only open ones.

    Pages do not shift while messages fail and are resolved: each page begins after the last item of the previous one. A message
    that fails again moves to the position of its latest failure. `total` and `facets` are counted on request. Facets may be up
    to a minute old; see `as_of`.
    """
    letters = context.admin.shared(Letters)
    masking = masking_of(context, wanted)
    bound_to = {**wanted.bound_to(), "sort": wanted.sort}
    cursor = decode_cursor(wanted.cursor, bound_to, (str, str))
    position = None if cursor is None else _position(cursor)
    filter_ = wanted.as_filter()
    backwards = cursor is not None and cursor.direction == "previous"
    read, total, facets, (unarchived, degraded) = await asyncio.gather(
        letters.listing.list(
            filter_,
            limit=wanted.limit + 1,
            after=None if backwards else position,
            before=position if backwards else None,
            sort=wanted.sort,
        ),
        _total(letters, filter_, wanted=wanted.total),
        _facets(letters, filter_, masking, wanted=wanted.facets),
        context.admin.shared(UnarchivedView).now(),
    )
    page = cursor_page(
        read[::-1] if backwards else read,
        limit=wanted.limit,
        cursor=cursor,
        bound_to=bound_to,
        keys_of=lambda letter: (letter.failed_at.isoformat(), letter.id),
    )
    return DeadLetterPage(
        items=[to_summary(letter, masking) for letter in page.items],
        next=page.next,
        previous=page.previous,
        total=total,
        facets=facets,
        unarchived=unarchived,
        degraded=degraded,
    )


def _position(cursor: Cursor) -> Position:
    """Decodes the position of a cursor. Raises `invalid_cursor` if it is malformed."""
    at, id_ = cursor.keys
    try:
        failed_at = datetime.fromisoformat(at)
        in_utc = failed_at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise invalid_cursor() from None
    if failed_at.tzinfo is None or not is_letter_id(id_):
        raise invalid_cursor()
    return Position(failed_at=in_utc, id=id_, inclusive=cursor.inclusive)


async def _total(letters: Letters, filter_: DeadLetterFilter, *, wanted: bool) -> Total | None:
    return to_total(await letters.listing.count(filter_, most=MOST_COUNTED + 1)) if wanted else None


async def _facets(letters: Letters, filter_: DeadLetterFilter, masking: Masking, *, wanted: bool) -> Facets | None:
    if not wanted:
        return None
    found, as_of = await letters.facets(filter_)
    values_of = {}
    for name, counts in found.items():
        # A parked message whose error names no type has the whole error text as its type, which may contain secrets.
        mask = masking.error_type if name == "exception_type" else str
        values_of[name] = [Facet(value=mask(value), count=count) for value, count in counts]
    return Facets(
        **values_of,
        relation="gte" if any(sum(count for _, count in counts) >= MAX_FACETED for counts in found.values()) else "eq",
        as_of=as_of,
    )


LetterId = Annotated[str, Path(alias="id", max_length=100, description="`17`, or `outbox-17` for a parked message.")]


class DetailParameters(Request):
    """Query parameters of `GET /dlq/{id}`."""

    reveal: Annotated[bool, Field(description="Show masked values. Requires the operator role, and is audited.")] = False


@router.get(
    "/dlq/{id}",
    operation_id="outbox_dlq_show",
    summary="Show Dead Letter",
    responses=problem_responses(Code.NOT_FOUND, Code.CROSS_SITE),
)
async def show(
    context: Viewer,
    request: HttpRequest,
    letter_id: LetterId,
    wanted: Annotated[DetailParameters, Query()],
) -> DeadLetterResponse:
    """Shows one dead letter: error, earlier failures, body, headers, payloads before edits, and the outcome of each requeue.

    Values are masked. Operators can reveal them with `reveal=true`, which is audited. JSON is returned as it was written, which
    preserves large numbers. At most 262,144 bytes of a body are returned. Larger JSON is only returned with `reveal=true`,
    because part of a document cannot be masked. `outbox_dlq_body` returns the whole body.
    """
    if wanted.reveal:
        await require_reveal(request)
    letters = context.admin.shared(Letters)
    # A part of an encrypted body cannot be decrypted.
    most_bytes = None if wanted.reveal and context.admin.bodies.encryption is not None else READ_LIMIT + 1
    found = await _found(letters, letter_id, most_bytes=most_bytes)
    if wanted.reveal:
        await _audit(context, "dlq.reveal", letter_id)
    async with context.admin.reading("reading the history of a dead letter") as connection:
        requeues = await letters.history.requeues(connection, found.letter.message_id)
        operations = await letters.history.operations(connection, letter_id)
    return await _to_detail(context.admin, found, requeues, operations, context.masking, revealed=wanted.reveal)


@router.get(
    "/dlq/{id}/body",
    operation_id="outbox_dlq_body",
    summary="Download Body",
    response_class=Response,
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "The body."},
        **problem_responses(Code.NOT_FOUND, Code.CROSS_SITE, Code.CONFLICT),
    },
)
async def download(context: Operator, request: HttpRequest, letter_id: LetterId) -> Response:
    """Downloads the body, unmasked, and decrypted if this service has the key. The download is audited.

    A body that is stored elsewhere is fetched; if that is not possible, the response is `conflict`.
    """
    await require_reveal(request)
    found = await _found(context.admin.shared(Letters), letter_id, most_bytes=None)
    await _audit(context, "dlq.download", letter_id)
    kind = (found.letter.content_type or "").partition(";")[0].strip().lower()
    suffix = ".json" if kind.endswith("json") else ".txt" if kind == "text/plain" else ".bin"
    headers = {
        "content-disposition": f'attachment; filename="dead-letter-{found.letter.id}{suffix}"',
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
    }
    body, error = await context.admin.bodies.read_or_keep(found.body, found.headers, found.letter.message_id)
    if error is not None and BODY_STORE in found.headers:
        raise Problem(Code.CONFLICT, error)
    return Response(body, media_type="application/octet-stream", headers=headers)


async def _found(letters: Letters, id_: str, *, most_bytes: int | None) -> DeadLetterDetail:
    found = await letters.listing.get(id_, most_bytes=most_bytes)
    if found is None:
        raise Problem(Code.NOT_FOUND, "there is no dead letter with this id: it may have been requeued, purged or pruned")
    return found


async def _audit(context: RequestContext, action: str, id_: str) -> None:
    # Committed before the response is built: no payload is disclosed without its audit entry.
    async with context.admin.changing("auditing access to a payload") as connection:
        await record(connection, context, action=action, target=id_)


async def _to_detail(
    admin: Admin,
    found: DeadLetterDetail,
    requeues: Sequence[Requeue],
    operations: Sequence[LetterOperation],
    masking: Masking,
    *,
    revealed: bool,
) -> DeadLetterResponse:
    letter = found.letter
    masking = masking.of_message(found.body, found.headers, found.properties)
    for edition in found.editions:
        masking = masking.of_message(edition.body, edition.headers)
    mask = None if revealed else masking
    pending_in = next((operation.id for operation in operations if operation.outcome == "pending"), None)
    links = {"self": f"dlq/{letter.id}", "body": f"dlq/{letter.id}/body", "group": f"dlq?group_id={letter.fingerprint}"}
    if letter.tracking_ids:
        links["chain"] = f"chains/{quote(letter.tracking_ids[-1], safe='')}"
    if pending_in is not None:
        links["operation"] = f"operations/{pending_in}"
    trace_id = trace_id_of(found.headers.get(TRACEPARENT))
    return DeadLetterResponse(
        **summary_fields(letter, masking) | {"error": _error(found.failure, mask)},
        trace_id=trace_id,
        external=ExternalLinks(
            **admin.external(
                trace_id=trace_id,
                message_id=letter.message_id,
                root_id=letter.tracking_ids[0] if letter.tracking_ids else letter.message_id,
                queue=letter.queue,
                routing_key=letter.routing_key,
            )
        ),
        tracking_ids=list(letter.tracking_ids),
        body=await _content(admin, Body(found.body, letter.content_type, letter.size), found.headers, letter.message_id, mask),
        headers=_mapping(found.headers, mask),
        header_types=_mapping(found.header_types, None),
        properties=_mapping(found.properties, mask),
        hlc=None if found.hlc is None else str(found.hlc),
        failures=[FailureResponse.of(failed, _error(failed.failure, mask)) for failed in found.failed_attempts],
        editions=[
            EditionResponse(
                version=edition.version,
                body=await _content(
                    admin,
                    Body(edition.body, edition.content_type, edition.size),
                    edition.headers,
                    letter.message_id,
                    mask,
                ),
                headers=None if edition.headers is None else _mapping(edition.headers, mask),
                replaced_at=edition.replaced_at,
                replaced_by=edition.replaced_by,
            )
            for edition in found.editions
        ],
        requeues=[RequeueResponse.model_validate(each) for each in requeues],
        operation_id=pending_in,
        operations=[
            DeadLetterOperation(
                id=operation.id,
                action=Action(operation.action),
                outcome=outcome_word(Action(operation.action), ItemOutcome(operation.outcome)),
                # It may quote the error of the requeued message.
                reason=operation.detail and (operation.detail if mask is None else mask.masked_text(operation.detail)),
                settled_at=operation.settled_at,
            )
            for operation in operations
        ],
        revealed=revealed,
        links=links,
    )


async def _content(
    admin: Admin, body: Body, headers: Mapping[str, Any] | None, message_id: str | None, mask: Masking | None
) -> Content:
    """Converts a body for display; without `mask` as its publisher gave it, if this service can read it."""
    if mask is not None:
        return content(body, mask, BodyAccess.of(admin.bodies, headers))
    plain, error = await admin.bodies.read_or_keep(body.beginning, headers, message_id)
    shown = body if plain is body.beginning else Body(plain, body.content_type, len(plain))
    return content(shown, None, BodyAccess.of(admin.bodies, headers, error))


def _error(failure: Failure, mask: Masking | None) -> Error:
    shown = failure if mask is None else mask.failure(failure)
    return Error(type=shown.type, message=shown.message, traceback=shown.traceback)


def _mapping(mapping: Mapping[str, Any], mask: Masking | None) -> dict[str, Any]:
    masked = dict(mapping) if mask is None else mask.masked(mapping)
    # A masked path may match the whole mapping, which is then a string.
    return masked if isinstance(masked, dict) else {}
