"""`GET /search`: finds messages, dead letters, chains, queues and components by an id, a name, or words of an error."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol

import asyncpg
from fastapi import Query
from pydantic import Field

from outbox.admin.access import RequestContext, Viewer, area
from outbox.admin.backlog import BacklogView
from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.admin.deliveries import Deliveries
from outbox.admin.message_list import SEARCHED_ROWS, MessageListing
from outbox.admin.models import Model, Request, Text
from outbox.admin.queues import QueuesView
from outbox.chains import chain
from outbox.chains.traces import ChainListReader
from outbox.dead_letters import DeadLetter, DeadLetterFilter
from outbox.errors import OutboxError
from outbox.masking import Body, readable
from outbox.postgres.pool import Connection
from outbox.postgres.queries import query
from outbox.postgres.schema.objects import satellite_names
from outbox.reporting.components import recent_components

MAX_LENGTH = 300
"""Maximum length of the searched text, in characters."""
SHORTEST_VALUE = 3
"""Minimum length of a text that is searched in bodies and errors, in characters."""
_NUMBER = re.compile(r"(outbox-)?([0-9]{1,18})", re.ASCII)

Kind = Literal["message", "delivery", "dead_letter", "chain", "queue", "routing_key", "component"]


class SearchResult(Model):
    """A match."""

    kind: Kind
    id: str = Field(description="Id, number or name, for the endpoint of this kind.")
    title: str
    detail: str = Field(description="State and other details.")
    queue: str | None = Field(description="Queue where the match is, or where it failed.")


class SearchResponse(Model):
    """Matches, exact ids first."""

    items: list[SearchResult]
    incomplete: list[Kind] = Field(description="Kinds that could not be searched: too slow, or unavailable.")


class SearchParameters(Request):
    """Query parameters of `GET /search`."""

    q: Annotated[Text, Field(min_length=1, max_length=MAX_LENGTH, description="Text to search for.")]
    limit: Annotated[int, Field(ge=1, le=20, description="Maximum number of matches of each kind.")] = 5


Searcher = Callable[[RequestContext, str, int], Awaitable[Sequence[SearchResult]]]

search = area("search")


@search.get("/search", operation_id="outbox_search", summary="Search")
async def find(context: Viewer, parameters: Annotated[SearchParameters, Query()]) -> SearchResponse:
    """Searches messages, deliveries, dead letters, chains, queues, routing keys and components for a text.

    Matches are: ids of messages, deliveries, dead letters and chains; parts of the names of queues, handlers, routing keys and
    components; words of dead letters, as in `GET /dlq?q=`; and parts of the errors of the newest 5,000 dead letters.

    Values in bodies, such as an order number, are found in dead letters, and in the newest 5,000 messages of the outbox and of
    queues in PostgreSQL, if the body is at most 16 KiB. Masked values are not found. Values at the paths of
    `OUTBOX_INDEX_KEYS`, or of a consumer's option `index_keys`, are found in the whole history. `incomplete` names the kinds
    that took too long.
    """
    q = parameters.q.strip()
    items: list[SearchResult] = []
    incomplete: list[Kind] = []
    if q:
        # One kind after another: in parallel, one request would use most connections of the admin's pool.
        for kind, search_kind in _SEARCHERS.items():
            try:
                items += (await search_kind(context, q, parameters.limit))[: parameters.limit]
            except (OutboxError, asyncpg.PostgresError, TimeoutError):
                incomplete.append(kind)
    return SearchResponse(items=items, incomplete=incomplete)


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


class _Searchable(Protocol):
    async def one(self, connection: Connection, id_: int, /) -> Mapping[str, Any] | None: ...

    async def containing(self, connection: Connection, text: str, *, most: int) -> Sequence[int]: ...


async def _rows(
    context: RequestContext, connection: Connection, store: _Searchable, q: str, id_: int | None, limit: int
) -> Sequence[Mapping[str, Any]]:
    """Returns the row with that id, then rows whose body contains `q` outside masked values."""
    ids = [] if id_ is None else [id_]
    # The database searches unmasked bodies. It returns more rows than needed, because masking removes some.
    if len(q) >= SHORTEST_VALUE:
        ids += [found for found in await store.containing(connection, q, most=4 * limit) if found != id_]
    rows = []
    for each in ids:
        row = await store.one(connection, each)
        if row is None:
            continue
        if each != id_:
            masking = context.masking.of_message(row["body"], row["headers"])
            if q not in (readable(Body(row["body"], row["content_type"], len(row["body"])), masking)[1] or ""):
                continue
        rows.append(row)
    return rows[:limit]


async def _chain(context: RequestContext, q: str, limit: int) -> Sequence[SearchResult]:
    of_id = []
    if not (_NUMBER.fullmatch(q) or " " in q):
        found = await chain(context.admin.pool, q, max_nodes=_MAX_MESSAGES, table_name=str(context.admin.table), bounded=True)
        if found.found:
            [first, *_] = found.nodes
            # Of a longer chain, the latest facts are not read, and so its state is not known.
            detail = f"more than {_MAX_MESSAGES} messages" if found.truncated else str(found.state).replace("_", " ")
            of_id = [_result("chain", q, first.routing_key or q, detail)]
    async with context.admin.reading("searching for an index key") as connection:
        rows = await ChainListReader(connection, context.admin.table).by_key(q, _MAX_FACTS_OF_KEY)
    of_key: dict[str, SearchResult] = {}  # the chains of messages that have it, those with the latest event first
    for row in rows:
        if row["root_id"] not in of_key and len(of_key) < limit:
            detail = f"a message with {q} was {_FACTS.get(row['fact'], row['fact'])}"
            of_key[row["root_id"]] = _result("chain", row["root_id"], row["routing_key"], detail, row["queue"])
    return [*of_id, *of_key.values()]


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
    """Returns the newest dead letters whose error contains `q` outside masked text."""
    statement = query("dead_letter_list.sql", "error_containing", **satellite_names(context.admin.table.schema))
    async with context.admin.reading("searching for an error") as connection:
        rows = await connection.fetch(statement, q, SEARCHED_ROWS, 4 * limit)
    masking, found = context.masking, list[DeadLetter]()
    for row in rows:
        detail = await context.admin.dead_letters.get(str(row["id"]))
        if detail is not None and len(found) < limit:
            letter = detail.letter
            error = f"{masking.error_type(letter.exception_type)} {masking.error_text(letter.exception_message)}"
            if q.lower() in error.lower():
                found.append(letter)
    return found


_MAX_FACTS_OF_KEY = 200
_MAX_MESSAGES = 100
"""Messages of a chain whose states are read."""
_FACTS: Mapping[str, str] = {"died": "dead-lettered", "duplicate": "processed before"}
_SEARCHERS: dict[Kind, Searcher] = {
    "message": _message,
    "delivery": _delivery,
    "chain": _chain,
    "dead_letter": _dead_letter,
    "queue": _queue,
    "routing_key": _routing_key,
    "component": _component,
}
"""Search functions, in the order of the response."""


def _result(kind: Kind, id_: str, title: str, detail: str, queue: str | None = None) -> SearchResult:
    return SearchResult(kind=kind, id=id_, title=title, detail=detail, queue=queue)


def _contains(q: str, *names: str) -> bool:
    """Returns whether every word of `q` is part of one of the names."""
    text = " ".join(names).lower()
    return all(word in text for word in q.lower().split())
