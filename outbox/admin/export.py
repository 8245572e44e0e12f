"""`GET /export/…`: lists as CSV or NDJSON files, with the same items as the list endpoints."""

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
"""Largest number of rows in a file."""
PAGE = 200
"""Rows read, and held in memory, at a time."""
PATIENCE = timedelta(minutes=1)
"""How long an export waits for other requests of its principal between two pages, since a partial file is useless."""
SEND_TIMEOUT = timedelta(minutes=1)
"""A client that reads nothing for this long is disconnected."""
LIMIT = "Outbox-Export-Limit"
"""The response header with the largest number of rows in the file."""

Format = Literal["csv", "ndjson"]
_MEDIA_TYPES: Mapping[Format, str] = {"csv": "text/csv; charset=utf-8; header=present", "ndjson": "application/x-ndjson"}


class ExportParameters(Request):
    """Query parameters of every export, in addition to the filters of its list."""

    format: Annotated[
        Format, Field(description="`csv`: a header row, then a row per item; `ndjson`: a JSON object per line.")
    ] = "csv"
    limit: Annotated[
        int, Field(ge=1, le=MOST_ROWS, description="Maximum number of rows. A file with exactly this many may be incomplete.")
    ] = ROWS


class DeadLetterExportParameters(DeadLetterListFilters, ExportParameters):
    """Query parameters of `GET /export/dlq`."""


class MessageExportParameters(MessageListFilters, ExportParameters):
    """Query parameters of `GET /export/messages`."""


class AuditExportParameters(AuditFilters, ExportParameters):
    """Query parameters of `GET /export/audit`."""


class OperationExportParameters(OperationFilters, ExportParameters):
    """Query parameters of `GET /export/operations`."""


class ExportResponse(StreamingResponse):
    """A file that is sent while it is read. An error aborts the connection, so the client notices a partial file."""

    async def stream_response(self, send: Send) -> None:
        """Sends the file. Raises `TimeoutError` if a send exceeds `SEND_TIMEOUT`."""

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(SEND_TIMEOUT.total_seconds()):
                await send(message)

        await super().stream_response(send_in_time)


_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file. If reading fails, the connection is aborted.",
        "content": {
            media_type.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
            for media_type in _MEDIA_TYPES.values()
        },
        "headers": {
            LIMIT: {"description": "The `limit`. A file with that many rows may be incomplete.", "schema": {"type": "integer"}},
            "content-disposition": {"description": "The file name.", "schema": {"type": "string"}},
        },
    }
}

export = area("export")


@export.get(
    "/export/dlq",
    operation_id="outbox_export_dlq",
    summary="Export Dead Letters",
    status_code=200,  # otherwise FastAPI reads it from the response class
    response_class=ExportResponse,
    responses=_FILE,
)
async def export_dead_letters(
    context: Viewer, http: HttpRequest, parameters: Annotated[DeadLetterExportParameters, Query()]
) -> Response:
    """Downloads the dead letters that `outbox_dlq_list` lists with the same filter, in the same order, masked.

    Reads page by page: dead letters that change during the download may be missing.
    """
    return await _file(
        context,
        http,
        "dlq",
        parameters,
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
async def export_messages(
    context: Viewer, http: HttpRequest, parameters: Annotated[MessageExportParameters, Query()]
) -> Response:
    """Downloads the messages that `outbox_messages_list` lists with the same filter, in the same order.

    Reads page by page: messages that are sent during the download may be missing or appear twice. Each page may take two
    seconds to find.
    """
    return await _file(
        context,
        http,
        "messages",
        parameters,
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
async def export_audit(context: Operator, http: HttpRequest, parameters: Annotated[AuditExportParameters, Query()]) -> Response:
    """Downloads the audit log entries that `outbox_audit_list` lists with the same filter, newest first."""
    return await _file(
        context, http, "audit", parameters, AuditEntry, lambda query: list_audit(context, AuditParameters(**query))
    )


@export.get(
    "/export/operations",
    operation_id="outbox_export_operations",
    summary="Export Operations",
    status_code=200,
    response_class=ExportResponse,
    responses=_FILE,
)
async def export_operations(
    context: Viewer, http: HttpRequest, parameters: Annotated[OperationExportParameters, Query()]
) -> Response:
    """Downloads the operations that `outbox_operations_list` lists with the same filter, newest first, with progress."""
    return await _file(
        context,
        http,
        "operations",
        parameters,
        OperationResponse,
        lambda query: operations(OperationsParameters(**query), context),
    )


Read = Callable[[Mapping[str, Any]], Awaitable[Page[Any]]]
"""Reads one page of a list, given the list's query parameters."""
Encode = Callable[[Sequence[BaseModel]], bytes]


async def _file(
    context: RequestContext, http: HttpRequest, name: str, parameters: ExportParameters, model: type[BaseModel], read: Read
) -> Response:
    """Returns the file of the list `name`, whose items are of type `model`."""
    filters = parameters.model_dump(exclude=set(ExportParameters.model_fields))

    async def read_page(left: int, cursor: str | None) -> Page[Any]:
        return await read({**filters, "limit": min(left, PAGE), "cursor": cursor})

    async def read_on(left: int, cursor: str) -> Page[Any]:
        # The request's first slot is released already: the authentication dependency ends before the body is sent.
        async with context.admin.shared(Reads).slot(context.principal.name, PATIENCE):
            return await read_page(left, cursor)

    # Read before the response starts, so that an error becomes a problem response.
    first = await read_page(parameters.limit, None)
    headers = {
        "content-disposition": f'attachment; filename="{name}-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.{parameters.format}"',
        # The file has texts of any origin. Opened in a browser, it must not run as a page of this site.
        "content-security-policy": "default-src 'none'; sandbox",
        LIMIT: str(parameters.limit),
    }
    header, encode = b"", _ndjson
    if parameters.format == "csv":
        columns = list(_columns(model))
        # Field names contain no character that needs quotes.
        header, encode = f"{','.join(map('.'.join, columns))}\r\n".encode(), partial(_csv, columns)
    chunks = _chunks(header, None if is_head(http) else first, parameters.limit, read_on, encode)
    return ExportResponse(chunks, headers=headers, media_type=_MEDIA_TYPES[parameters.format])


async def _chunks(
    header: bytes, page: Page[Any] | None, left: int, read: Callable[[int, str], Awaitable[Page[Any]]], encode: Encode
) -> AsyncIterator[bytes]:
    """Yields the file in chunks."""
    yield header
    while page is not None:
        yield encode(page.items)
        left, cursor = left - len(page.items), page.next
        # Frees the page before the next one is read, to hold one page in memory.
        page = None
        if cursor is not None and left > 0:
            page = await read(left, cursor)


# --- NDJSON --------------------------------------------------------------------------------------------------------------

# Control characters, line separators that only some readers know, and bidirectional overrides.
_CODES = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ESCAPED = {code: f"\\u{code:04x}" for code in _CODES if chr(code) not in "\t\n\r"}
"""JSON escapes of characters that a terminal or an editor would interpret."""


def _ndjson(items: Sequence[BaseModel]) -> bytes:
    # In JSON these characters occur in strings only, where an escape means the same.
    return "".join(f"{item.model_dump_json().translate(_ESCAPED)}\n" for item in items).encode()


# --- CSV -----------------------------------------------------------------------------------------------------------------

_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠]")  # noqa: RUF001  some spreadsheets run full-width ones too
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)


def _columns(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields the path of each field, including fields of nested objects: (`error`, `type`)."""
    for name, field in model.model_fields.items():
        kinds = get_args(field.annotation) if get_origin(field.annotation) in (Union, UnionType) else (field.annotation,)
        nested = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        yield from _columns(nested[0], (*path, name)) if nested else [(*path, name)]


def _csv(columns: Sequence[tuple[str, ...]], items: Iterable[BaseModel]) -> bytes:
    """Encodes a row per item, as in RFC 4180."""
    written = io.StringIO()
    writer = csv.writer(written)
    for item in items:
        fields, cells = item.model_dump(mode="json"), []
        for column in columns:
            value = reduce(lambda found, name: found and found[name], column, fields)
            text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            # A single quote before a formula, as OWASP recommends.
            is_formula = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
            cells.append((f"'{text}" if is_formula else text).translate(_ESCAPED))
        writer.writerow(cells)
    return written.getvalue().encode()
