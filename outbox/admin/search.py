"""`GET /search`: whatever an operator has, wherever it is: an id, a number, a queue, a routing key, the words of an error."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol

import asyncpg
from fastapi import Query
from pydantic import Field

from outbox.admin.access import RequestContext, Viewer, area
from outbox.admin.backlog import BacklogView
from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.admin.deliveries import Deliveries
from outbox.admin.models import Model, Request, Text
from outbox.admin.queues import QueuesView
from outbox.admin.store import SEARCHED_ROWS, MessageListing
from outbox.chains import chain
from outbox.chains.traces import BeginningsReader
from outbox.dead_letters import DeadLetter, DeadLetterFilter
from outbox.errors import OutboxError
from outbox.masking import Body, readable
from outbox.postgres.pool import Connection
from outbox.postgres.queries import query
from outbox.postgres.schema.objects import satellite_names
from outbox.reporting.components import recent_components

LONGEST = 300
"""Most characters that are searched for."""
SHORTEST_VALUE = 3
"""Characters of the shortest text that is searched for in bodies."""
_NUMBER = re.compile(r"(outbox-)?([0-9]{1,18})", re.ASCII)

Kind = Literal["message", "delivery", "dead_letter", "chain", "queue", "routing_key", "component"]


class SearchResult(Model):
    """Something that fits, and how to ask for it."""

    kind: Kind
    id: str = Field(description="What its own endpoint takes: an id, a number, or a name.")
    title: str
    detail: str = Field(description="Its state, and what sets it apart.")
    queue: str | None = Field(description="The queue that it is in, or failed in.")


class SearchResponse(Model):
    """What fits, exact ids first."""

    items: list[SearchResult]
    incomplete: list[Kind] = Field(description="What could not be looked for in time, or while something is unavailable.")


class SearchParameters(Request):
    """What `GET /search` takes."""

    q: Annotated[Text, Field(min_length=1, max_length=LONGEST, description="What is looked for.")]
    limit: Annotated[int, Field(ge=1, le=20, description="At most so many of a kind.")] = 5


Look = Callable[[RequestContext, str, int], Awaitable[Sequence[SearchResult]]]

search = area("search")


@search.get("/search", operation_id="outbox_search", summary="Search")
async def find(context: Viewer, parameters: Annotated[SearchParameters, Query()]) -> SearchResponse:
    """Searches everything by one text: numbers of messages, deliveries and dead letters; ids of messages and chains; parts of
    the names of queues, handlers, routing keys and components; words of dead letters, as `GET /dlq?q=` does,
    and parts of the errors of the newest 5,000.

    Ids are looked for in the outbox, in queues of the database, in the history and among dead letters. Values in bodies, such
    as the number of an order, are found among dead letters, and in the newest 5,000 messages of the outbox and of queues of the
    database with bodies up to 16 KiB; what is masked is not found. Values at the paths of `OUTBOX_INDEX_KEYS`, or of the option
    `index_keys` of a consumer, are found in the whole history. A kind that takes too long is named in `incomplete`.
    """
    q = parameters.q.strip()
    items: list[SearchResult] = []
    incomplete: list[Kind] = []
    if q:
        async for kind, found in _looks(context, q, parameters.limit):
            if found is None:
                incomplete.append(kind)
            else:
                items += found
    return SearchResponse(items=items, incomplete=incomplete)


async def _looks(context: RequestContext, q: str, limit: int) -> AsyncIterator[tuple[Kind, Sequence[SearchResult] | None]]:
    # One after another: side by side, one request would take most connections of the admin.
    for kind, look in _LOOKS.items():
        try:
            yield kind, (await look(context, q, limit))[:limit]
        except (OutboxError, asyncpg.PostgresError, TimeoutError):
            yield kind, None


async def _message(context: RequestContext, q: str, limit: int) -> Sequence[SearchResult]:
    listing, number = MessageListing(context.admin.table), _NUMBER.fullmatch(q)
    async with context.admin.reading("searching for a message") as connection:
        rows = await _rows(context, connection, listing, q, number and int(number[2]), limit)
    return [_result("message", str(row["id"]), row["routing_key"], row["state"]) for row in rows]


async def _delivery(context: RequestContext, q: str, limit: int) -> Sequence[SearchResult]:
    if context.admin.shared(BrokerView).kind is not BrokerKind.POSTGRESQL:
        return ()
    deliveries, number = Deliveries(context.admin.table), _NUMBER.fullmatch(q)
    async with context.admin.reading("searching for a delivery") as connection:
        id_ = int(number[2]) if number and not number[1] else None
        rows = await _rows(context, connection, deliveries, q, id_, limit)
    return [
        _result("delivery", str(row["id"]), row["routing_key"], row["state"].replace("_", " "), row["queue"]) for row in rows
    ]


class _Searched(Protocol):
    async def one(self, connection: Connection, id_: int, /) -> Mapping[str, Any] | None: ...

    async def containing(self, connection: Connection, text: str, *, most: int) -> Sequence[int]: ...


async def _rows(
    context: RequestContext, connection: Connection, store: _Searched, q: str, id_: int | None, limit: int
) -> Sequence[Mapping[str, Any]]:
    """The row of that id, then those that have `q` in what is shown of their bodies: what is masked is not found."""
    ids = [] if id_ is None else [id_]
    if len(q) >= SHORTEST_VALUE:
        ids += [found for found in await store.containing(connection, q, most=4 * limit) if found != id_]
    rows = []
    for each in ids:
        row = await store.one(connection, each)
        if row is not None and (each == id_ or _shows(context, row, q)):
            rows.append(row)
    return rows[:limit]


def _shows(context: RequestContext, row: Mapping[str, Any], q: str) -> bool:
    masking = context.masking.of_message(row["body"], row["headers"])
    return q in (readable(Body(row["body"], row["content_type"], len(row["body"])), masking)[1] or "")


async def _chain(context: RequestContext, q: str, limit: int) -> Sequence[SearchResult]:
    return [*await _chain_of_id(context, q), *await _chains_of_key(context, q, limit)]


async def _chains_of_key(context: RequestContext, q: str, limit: int) -> Sequence[SearchResult]:
    """The chains of messages that have the index key, those first to whose messages something happened last."""
    async with context.admin.reading("searching for an index key") as connection:
        rows = await BeginningsReader(connection, context.admin.table).by_key(q, _FACTS_OF_KEY)
    found: dict[str, SearchResult] = {}
    for row in rows:
        if row["root_id"] not in found and len(found) < limit:
            what = f"a message with {q} was {_FACTS.get(row['fact'], row['fact'])}"
            found[row["root_id"]] = _result("chain", row["root_id"], row["routing_key"], what, row["queue"])
    return list(found.values())


async def _chain_of_id(context: RequestContext, q: str) -> Sequence[SearchResult]:
    if _NUMBER.fullmatch(q) or " " in q:
        return ()
    found = await chain(context.admin.pool, q, max_nodes=1, table_name=str(context.admin.table), bounded=True)
    if not found.found:
        return ()
    [first, *_] = found.nodes
    return [_result("chain", q, first.routing_key or q, str(found.state).replace("_", " "))]


async def _queue(context: RequestContext, q: str, limit: int) -> Sequence[SearchResult]:
    del limit
    listed, _ = (await context.admin.shared(QueuesView).now()).value
    return [
        _result("queue", queue.name, queue.name, f"{queue.state.replace('_', ' ')} {', '.join(queue.handlers)}".strip())
        for queue in listed.items
        if _contains(q, queue.name, *queue.handlers)
    ]


async def _routing_key(context: RequestContext, q: str, limit: int) -> Sequence[SearchResult]:
    del limit
    figures = await context.admin.shared(BacklogView).figures()
    keys = {} if figures is None else figures.value.counts.routing_keys
    return [
        _result("routing_key", key, key, f"{sum(count.value for count in states.values()):,} in the outbox")
        for key, states in sorted(keys.items())
        if _contains(q, key)
    ]


async def _component(context: RequestContext, q: str, limit: int) -> Sequence[SearchResult]:
    del limit
    async with context.admin.reading("searching for a component") as connection:
        known = await recent_components(connection, schema=context.admin.table.schema)
    return [
        _result("component", each.id, each.name, f"{each.kind}, {each.condition}")
        for each in known
        if _contains(q, each.name, each.host)
    ]


async def _dead_letter(context: RequestContext, q: str, limit: int) -> Sequence[SearchResult]:
    dead_letters = context.admin.dead_letters
    letters = []
    if (number := _NUMBER.fullmatch(q)) and (detail := await dead_letters.get(q)) is not None:
        letters = [detail.letter]
    if number is None or not number[1]:
        found = await dead_letters.list(DeadLetterFilter(q=q), limit=limit)
        letters += [letter for letter in found if letter.id != q]
    if len(letters) < limit and len(q) >= SHORTEST_VALUE:
        known = {letter.id for letter in letters}
        letters += [letter for letter in await _with_error(context, q, limit) if letter.id not in known]
    masking = context.masking
    return [
        _result(
            "dead_letter",
            letter.id,
            masking.error_type(letter.exception_type) or letter.routing_key,
            f"{letter.status}: {masking.error_text(letter.exception_message)}"[:200],
            letter.queue or None,
        )
        for letter in letters
    ]


async def _with_error(context: RequestContext, q: str, limit: int) -> Sequence[DeadLetter]:
    """The newest whose error, as it is shown, has `q` in it."""
    statement = query("letters.sql", "error_containing", **satellite_names(context.admin.table.schema))
    async with context.admin.reading("searching for an error") as connection:
        rows = await connection.fetch(statement, q, SEARCHED_ROWS, 4 * limit)
    masking, found = context.masking, list[DeadLetter]()
    for row in rows:
        detail = await context.admin.dead_letters.get(str(row["id"]))
        if detail is not None and len(found) < limit:
            letter = detail.letter
            shown = f"{masking.error_type(letter.exception_type)} {masking.error_text(letter.exception_message)}"
            if q.lower() in shown.lower():
                found.append(letter)
    return found


_FACTS_OF_KEY = 200
_FACTS: Mapping[str, str] = {"died": "dead-lettered", "duplicate": "processed before"}
_LOOKS: dict[Kind, Look] = {
    "message": _message,
    "delivery": _delivery,
    "chain": _chain,
    "dead_letter": _dead_letter,
    "queue": _queue,
    "routing_key": _routing_key,
    "component": _component,
}
"""In the order in which they are shown."""


def _result(kind: Kind, id_: str, title: str, detail: str, queue: str | None = None) -> SearchResult:
    return SearchResult(kind=kind, id=id_, title=title, detail=detail, queue=queue)


def _contains(q: str, *names: str) -> bool:
    """Whether every word of `q` is a part of any of the names."""
    text = " ".join(names).lower()
    return all(word in text for word in q.lower().split())
