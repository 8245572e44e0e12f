"""`GET /messages` and `GET /messages/{id}`."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated

import asyncpg
from fastapi import Path, Query, Request

from outbox.admin.access import RequestContext, Viewer, require_reveal
from outbox.admin.audit_log import record
from outbox.admin.backlog.models import counted_states
from outbox.admin.backlog.view import BacklogView
from outbox.admin.messages.models import Message, MessageListParameters, MessagePage, MessageSummary, line_of, read
from outbox.admin.models import MOST_COUNTED, counted, cursor_page, decode_cursor, invalid_cursor
from outbox.admin.problems import Code, Problem, documented
from outbox.admin.routing import area
from outbox.admin.store.messages import MessageListing, order_of
from outbox.postgres.pool import Connection

messages = area("messages")

SEARCH_TIMEOUT = timedelta(seconds=2)
"""How long a filter may search that no index answers."""

_ID = re.compile(r"(?:outbox-)?([0-9]{1,19})", re.ASCII)


@messages.get(
    "/messages",
    operation_id="outbox_messages_list",
    responses=documented(Code.INVALID_CURSOR, Code.CURSOR_MISMATCH, Code.FILTER_TOO_BROAD),
)
async def list_messages(context: Viewer, parameters: Annotated[MessageListParameters, Query()]) -> MessagePage:
    """Lists messages that are in the outbox, or kept there after sending.

    Pending, scheduled and retrying ones are in the order of their due time; held ones by routing key; blocked ones, and those
    of one `ordering_key`, in sending order; parked and sent ones, and all together, newest first. A filter that would search
    for longer than two seconds is refused: `state`, `ordering_key`, and for held ones `routing_key`, have an index.
    """
    admin, filter_, bound_to = context.admin, parameters.as_filter(), parameters.bound_to()
    order, listing = order_of(filter_), MessageListing(context.admin.table)
    cursor = decode_cursor(parameters.cursor, bound_to, order.kinds)
    async with _searching(context, "listing messages", cursor is not None) as connection:
        rows = await listing.page(
            connection,
            filter_,
            limit=parameters.limit + 1,
            place=cursor.place if cursor else None,
            back=cursor is not None and cursor.direction == "previous",
            inclusive=cursor is not None and cursor.inclusive,
        )
        total = await listing.count(connection, filter_, most=MOST_COUNTED + 1) if parameters.total else None
    page = cursor_page(rows, limit=parameters.limit, cursor=cursor, bound_to=bound_to, place=order.place)
    return MessagePage(
        items=[MessageSummary(**line_of(row, context.masking)) for row in page.items],
        next=page.next,
        previous=page.previous,
        total=None if total is None else counted(total),
        **counted_states(await admin.shared(BacklogView).figures()),
    )


@messages.get("/messages/{id}", operation_id="outbox_messages_show", responses=documented(Code.NOT_FOUND, Code.CROSS_SITE))
async def show_message(
    context: Viewer,
    request: Request,
    id_: Annotated[str, Path(alias="id", max_length=100, description="The number of its row; `outbox-17` means 17.")],
    *,
    reveal: Annotated[bool, Query(description="Show what is masked. For operators, and written to the audit.")] = False,
) -> Message:
    """Shows one message in the outbox, why it waits, and what happens next."""
    number = _ID.fullmatch(id_)
    if number is None or int(number[1]) >= 2**63:
        raise _gone(id_)
    if reveal:
        await require_reveal(request)
        return await _revealed(context, int(number[1]), id_)
    async with context.admin.reading("reading a message") as connection:
        found = await read(context.admin, connection, int(number[1]), context.masking, reveal=False)
    if found is None:
        raise _gone(id_)
    return found


async def _revealed(context: RequestContext, row_id: int, id_: str) -> Message:
    async with context.admin.changing("revealing a message") as connection:
        found = await read(context.admin, connection, row_id, context.masking, reveal=True)
        if found is None:
            raise _gone(id_)
        await record(connection, context, action="messages.reveal", target=f"outbox-{row_id}")
    return found


@asynccontextmanager
async def _searching(context: RequestContext, doing: str, has_cursor: bool) -> AsyncIterator[Connection]:
    """A connection whose statements end before they have read for long. What a cursor says may be anything."""
    async with context.admin.reading(doing) as connection:
        await connection.execute(f"set local statement_timeout = {SEARCH_TIMEOUT / timedelta(milliseconds=1):.0f}")
        try:
            yield connection
        except asyncpg.QueryCanceledError:
            raise Problem(
                Code.FILTER_TOO_BROAD,
                f"nothing was found within {SEARCH_TIMEOUT.total_seconds():g} s: name a state, the ordering key, or less time",
            ) from None
        except asyncpg.DataError:
            if not has_cursor:
                raise
            raise invalid_cursor() from None


def _gone(id_: str) -> Problem:
    return Problem(
        Code.NOT_FOUND,
        f"there is no row {id_[:100]!r} in the outbox, or not any more: what was sent is deleted. The chain may know it: "
        "GET /chains/{tracking_id}, with the id of the message or of any other of its chain",
    )
