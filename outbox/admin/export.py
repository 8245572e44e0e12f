"""`GET /export/…`: lists as files, CSV or NDJSON, with the items that the lists themselves show."""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from fastapi import Query, Response
from fastapi import Request as HttpRequest
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.types import Message, Send

from outbox.admin.access import Operator, RequestContext, Viewer, area, is_head
from outbox.admin.audit import AuditEntry, AuditFilters, AuditParameters, list_audit
from outbox.admin.dlq.models import DeadLetterListFilters, DeadLetterListParameters, DeadLetterSummary
from outbox.admin.dlq.routes import list_dead_letters
from outbox.admin.limits import Reads
from outbox.admin.messages import MessageListFilters, MessageListParameters, MessageSummary, list_messages
from outbox.admin.models import Page, Request
from outbox.admin.problems import Code, problem_responses
from outbox.admin.repairs.models import OperationResponse
from outbox.admin.repairs.routes import OperationFilters, OperationsParameters, operations

ROWS = 10_000
MOST_ROWS = 100_000
"""Rows of one file."""
PAGE = 200
"""Rows that are read, and held, at a time."""
PATIENCE = timedelta(minutes=1)
"""How long a file waits for other requests of its principal between two pages: broken off, it would be of no use."""
SEND_TIMEOUT = timedelta(minutes=1)
"""A client that takes nothing for so long is dropped."""
LIMIT = "Outbox-Export-Limit"
"""The header that says how many rows the file has at most."""

Format = Literal["csv", "ndjson"]
_MEDIA_TYPES: Mapping[Format, str] = {"csv": "text/csv; charset=utf-8; header=present", "ndjson": "application/x-ndjson"}


class ExportParameters(Request):
    """What every export takes in addition to the filters of its list."""

    format: Annotated[
        Format, Field(description="`csv`: a row of names, then a row for each item; `ndjson`: a JSON object on each line.")
    ] = "csv"
    limit: Annotated[
        int, Field(ge=1, le=MOST_ROWS, description="At most so many items, in rows. A file of exactly so many may be cut.")
    ] = ROWS


class DeadLetterExportParameters(DeadLetterListFilters, ExportParameters):
    """What `GET /export/dlq` takes."""


class MessageExportParameters(MessageListFilters, ExportParameters):
    """What `GET /export/messages` takes."""


class AuditExportParameters(AuditFilters, ExportParameters):
    """What `GET /export/audit` takes."""


class OperationExportParameters(OperationFilters, ExportParameters):
    """What `GET /export/operations` takes."""


class ExportResponse(StreamingResponse):
    """A file that is sent while it is read. What fails breaks the connection, so that no part passes for the whole."""

    async def stream_response(self, send: Send) -> None:
        """Sends the file, unless its client takes nothing any more."""

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(SEND_TIMEOUT.total_seconds()):
                await send(message)

        await super().stream_response(send_in_time)


_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file. If it breaks off, so does the connection.",
        "content": {
            media_type.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
            for media_type in _MEDIA_TYPES.values()
        },
        "headers": {
            LIMIT: {"description": "The limit: a file of exactly so many rows may be cut.", "schema": {"type": "integer"}},
            "content-disposition": {"description": "The name of the file.", "schema": {"type": "string"}},
        },
    }
}

export = area("export")


@export.get(
    "/export/dlq",
    operation_id="outbox_export_dlq",
    summary="Export Dead Letters",
    status_code=200,  # FastAPI looks for it in the class otherwise
    response_class=ExportResponse,
    responses=_FILE,
)
async def export_dead_letters(
    context: Viewer, http: HttpRequest, wanted: Annotated[DeadLetterExportParameters, Query()]
) -> Response:
    """Downloads dead letters, those that `outbox_dlq_list` lists with the same filter, in its order and as masked as there.

    It is read page by page, so that what changes meanwhile may be missing.
    """
    return await _file(
        context,
        http,
        "dlq",
        wanted,
        DeadLetterSummary,
        lambda query: list_dead_letters(context, DeadLetterListParameters(**query)),
    )


@export.get(
    "/export/messages",
    operation_id="outbox_export_messages",
    summary="Export Messages",
    status_code=200,
    response_class=ExportResponse,
    responses={**_FILE, **problem_responses(Code.FILTER_TOO_BROAD)},
)
async def export_messages(context: Viewer, http: HttpRequest, wanted: Annotated[MessageExportParameters, Query()]) -> Response:
    """Downloads messages of the outbox, those that `outbox_messages_list` lists with the same filter, in its order.

    It is read page by page, so that what is sent meanwhile may be missing, or there twice. Each page may search for two
    seconds.
    """
    return await _file(
        context,
        http,
        "messages",
        wanted,
        MessageSummary,
        lambda query: list_messages(context, MessageListParameters(**query)),
    )


@export.get(
    "/export/audit",
    operation_id="outbox_export_audit",
    summary="Export Audit",
    status_code=200,
    response_class=ExportResponse,
    responses=_FILE,
)
async def export_audit(context: Operator, http: HttpRequest, wanted: Annotated[AuditExportParameters, Query()]) -> Response:
    """Downloads entries of the audit log, those that `outbox_audit_list` lists with the same filter, newest first."""
    return await _file(context, http, "audit", wanted, AuditEntry, lambda query: list_audit(context, AuditParameters(**query)))


@export.get(
    "/export/operations",
    operation_id="outbox_export_operations",
    summary="Export Operations",
    status_code=200,
    response_class=ExportResponse,
    responses=_FILE,
)
async def export_operations(
    context: Viewer, http: HttpRequest, wanted: Annotated[OperationExportParameters, Query()]
) -> Response:
    """Downloads operations, those that `outbox_operations_list` lists, newest first, each with its progress."""
    return await _file(
        context,
        http,
        "operations",
        wanted,
        OperationResponse,
        lambda query: operations(OperationsParameters(**query), context),
    )


Read = Callable[[Mapping[str, Any]], Awaitable[Page[Any]]]
"""Reads one page of a list, with the parameters that the list takes."""
Encode = Callable[[Sequence[BaseModel]], bytes]


async def _file(
    context: RequestContext, http: HttpRequest, name: str, wanted: ExportParameters, model: type[BaseModel], read: Read
) -> Response:
    """The file of the list `name`, whose items are `model`s. Its first page is read before, so that a problem is answered."""
    filters = wanted.model_dump(exclude=set(ExportParameters.model_fields))

    async def read_page(left: int, cursor: str | None) -> Page[Any]:
        return await read({**filters, "limit": min(left, PAGE), "cursor": cursor})

    async def read_on(left: int, cursor: str) -> Page[Any]:
        # The request's own turn among the reads of its principal is over once it is being answered.
        async with context.admin.shared(Reads).turn(context.principal.name, PATIENCE):
            return await read_page(left, cursor)

    first = await read_page(wanted.limit, None)
    headers = {
        "content-disposition": f'attachment; filename="{name}-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.{wanted.format}"',
        "content-security-policy": "default-src 'none'; sandbox",
        LIMIT: str(wanted.limit),
    }
    beginning, encode = b"", _ndjson
    if wanted.format == "csv":
        columns = list(_columns(model))
        # The names are our own, and need no quotes.
        beginning, encode = f"{','.join(map('.'.join, columns))}\r\n".encode(), partial(_csv, columns)
    chunks = _chunks(beginning, None if is_head(http) else first, wanted.limit, read_on, encode)
    return ExportResponse(chunks, headers=headers, media_type=_MEDIA_TYPES[wanted.format])


async def _chunks(
    beginning: bytes, page: Page[Any] | None, left: int, read: Callable[[int, str], Awaitable[Page[Any]]], encode: Encode
) -> AsyncIterator[bytes]:
    """The file from its beginning on. Nothing of a page is held any more while the next one is read."""
    yield beginning
    while page is not None:
        yield encode(page.items)
        left, cursor = left - len(page.items), page.next
        page = None
        if cursor is not None and left > 0:
            page = await read(left, cursor)


# --- NDJSON --------------------------------------------------------------------------------------------------------------

# Control characters, line breaks that only some readers know, and what shows text backwards.
_CODES = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ESCAPED = {code: f"\\u{code:04x}" for code in _CODES if chr(code) not in "\t\n\r"}
"""What a terminal or an editor would obey, in the notation of JSON."""


def _ndjson(items: Sequence[BaseModel]) -> bytes:
    # JSON has these characters within texts only, where the escaped ones mean the same.
    return "".join(f"{item.model_dump_json().translate(_ESCAPED)}\n" for item in items).encode()


# --- CSV -----------------------------------------------------------------------------------------------------------------

_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠]")  # noqa: RUF001  full-width ones are formulas to some spreadsheets, too
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)


def _columns(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of the fields, with those of the objects that a field has, or has where it is not null: `error`, `type`."""
    for name, field in model.model_fields.items():
        kinds = get_args(field.annotation) if get_origin(field.annotation) in (Union, UnionType) else (field.annotation,)
        nested = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        yield from _columns(nested[0], (*path, name)) if nested else [(*path, name)]


def _csv(columns: Sequence[tuple[str, ...]], items: Iterable[BaseModel]) -> bytes:
    """A row for each item, as RFC 4180 has it."""
    written = io.StringIO()
    writer = csv.writer(written)
    for item in items:
        fields = item.model_dump(mode="json")
        writer.writerow([_cell(reduce(lambda found, name: found and found[name], column, fields)) for column in columns])
    return written.getvalue().encode()


def _cell(value: Any) -> str:
    """The value as text. What a spreadsheet would run as a formula has a single quote before it, as OWASP recommends."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    return text.translate(_ESCAPED)
