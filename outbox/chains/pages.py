"""Lists recent chains in pages, each with the worst state of its messages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from outbox.chains.model import ChainState, ChainSummary, worst
from outbox.chains.traces import FACTS_PER_CHAIN, ChainListReader, Position, TimeRange, expected_queues, moment, position_of

MAX_CHAINS_READ = 1_000
"""Chains whose facts are read for one page, when filtering by state."""
MAX_ROOTS_READ = 10_000
"""First messages that are read for one page, when filtering by routing key."""
_CHAINS_PER_BATCH = 200
_ROOTS_PER_BATCH = 2_500


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFilter:
    """Filter for chains by start time, routing key and state. `after` is inclusive, `before` exclusive."""

    routing_key: str | None = None
    state: ChainState | None = None
    after: datetime | None = None
    before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPage:
    """Page of chains, newest first, with the positions of the next and previous page; None where the list ends.

    With a filter a page may be short or even empty although the list continues, because the search is bounded.
    """

    items: tuple[ChainSummary, ...]
    next: Position | None
    previous: Position | None


async def read_page(
    reader: ChainListReader, filter_: ChainFilter, limit: int, position: Position | None = None, *, backwards: bool = False
) -> ChainPage:
    """Returns the page after `position`, or before it; without a position the first page. Raises the driver's errors."""
    builder = _PageBuilder(reader, filter_, limit, position, backwards=backwards and position is not None)
    await builder.fill()
    return builder.page()


class _PageBuilder:
    """Reads from a position until the page is full, the list ends, or the read limit is reached."""

    def __init__(
        self, reader: ChainListReader, filter_: ChainFilter, limit: int, position: Position | None, *, backwards: bool
    ) -> None:
        self._reader = reader
        self._filter = filter_
        self._limit = limit
        self._start = self._at = position
        self._backwards = backwards
        self._range = TimeRange(after=filter_.after, before=filter_.before)
        self._found: list[tuple[Position, ChainSummary]] = []
        self._more = True
        self._chains_read = self._roots_read = 0

    async def fill(self) -> None:
        consumers, subscribed = await self._reader.consumers()
        while (
            self._more
            and len(self._found) <= self._limit
            and self._chains_read < MAX_CHAINS_READ
            and self._roots_read < MAX_ROOTS_READ
        ):
            rows = await self._next_rows()
            members = await self._reader.members(rows)
            live: dict[str, list[Mapping[str, Any]]] = {}
            for found in await self._reader.live([row["root_id"] for row in rows]):
                live.setdefault(found["root_id"], []).append(found)
            last_states = [(message, state) for facts in members for (message, _), state in _states(facts, {}).items()]
            resolved = await self._reader.resolved([message for message, state in last_states if state is ChainState.DEAD])
            # Facts older than the first send mean that the message was requeued. If it had been sent before, its chain is
            # listed at that earlier send.
            requeued = [
                row
                for row, facts in zip(rows, members, strict=True)
                if facts and (moment(facts[0]["at"]) or row["at"]) < row["at"]
            ]
            repeated = await self._reader.sent_before(requeued)
            for row, facts in zip(rows, members, strict=True):
                if position_of(row) in repeated:
                    continue
                known = facts[:FACTS_PER_CHAIN]
                states = _states(known, resolved)
                state = worst(_with_live(states, known, consumers, subscribed, live.get(row["root_id"], ())).values())
                if self._filter.state not in (None, state):
                    continue
                summary = ChainSummary(
                    root_id=row["root_id"],
                    routing_key=row["routing_key"],
                    sent_at=row["at"],
                    last_at=max((moment(fact["at"]) or row["at"] for fact in known), default=row["at"]),
                    facts=len(known),
                    dead_letter_count=sum(fact["fact"] == "died" for fact in known),
                    messages=len({fact["message_id"] for fact in known}),
                    state=state,
                    more=len(facts) > FACTS_PER_CHAIN,
                )
                self._found.append((position_of(row), summary))

    def page(self) -> ChainPage:
        """Returns the page. It ends with its last item if that filled it, otherwise with the last row read."""
        found, more, end = self._found, self._more, self._at
        if len(found) > self._limit:
            found, more = found[: self._limit], True
            end = found[-1][0]
        onward = end if more else None
        items = tuple(summary for _, summary in found)
        if self._backwards:
            return ChainPage(items=items[::-1], next=self._way_back(found), previous=onward)
        return ChainPage(items=items, next=onward, previous=None if self._start is None else self._way_back(found))

    def _way_back(self, found: Sequence[tuple[Position, ChainSummary]]) -> Position | None:
        """Position for the page in the opposite direction; if nothing was found, it includes the item at the start."""
        if found:
            return found[0][0]
        # Pages begin behind a position. With the neighbouring hash, the item at the start itself is behind it.
        return self._start and Position(self._start.at, self._start.hash + (1 if self._backwards else -1))

    async def _next_rows(self) -> Sequence[Mapping[str, Any]]:
        """Reads the next batch of first messages, and returns those with the wanted routing key."""
        most = _CHAINS_PER_BATCH if self._filter.state else self._limit + 1 - len(self._found)
        size = most if self._filter.routing_key is None else _ROOTS_PER_BATCH
        if self._backwards and self._at is not None:
            rows = await self._reader.before(self._at, self._range, size)
        else:
            rows = await self._reader.after(self._at, self._range, size)
        fitting = [row for row in rows if self._filter.routing_key in (None, row["routing_key"])]
        self._more = len(rows) == size or len(fitting) > most
        kept = fitting[:most]
        last = kept[-1] if len(fitting) > most else rows[-1] if rows else None
        self._at = self._at if last is None else position_of(last)
        self._chains_read += len(kept)
        self._roots_read += len(rows)
        return kept


def _states(
    facts: Sequence[Mapping[str, Any]], resolved: Mapping[tuple[str, str], str]
) -> Mapping[tuple[str, str | None], ChainState]:
    """Last recorded state of each message, by queue; the queue is None for messages that were only sent."""
    states: dict[tuple[str, str | None], ChainState] = {}
    for fact in facts[:FACTS_PER_CHAIN]:
        states[fact["message_id"], fact["queue"]] = _STATE_AFTER[fact["fact"]]
    # That a message was sent says nothing more once its queues are known.
    handled = {message for message, queue in states if queue is not None}
    return {
        (message, queue): ChainState(resolved[message, queue or ""])
        if state is ChainState.DEAD and (message, queue or "") in resolved
        else state
        for (message, queue), state in states.items()
        if queue is not None or message not in handled
    }


def _with_live(
    states: Mapping[tuple[str, str | None], ChainState],
    facts: Sequence[Mapping[str, Any]],
    consumers: Sequence[Mapping[str, Any]],
    subscribed: frozenset[str],
    live: Iterable[Mapping[str, Any]],
) -> Mapping[tuple[str, str | None], ChainState]:
    """Adds the current states of messages in the outbox, in queues of the database, and waiting in RabbitMQ."""
    found = dict(states)
    seen: set[str] = set()
    for fact in facts:
        message = fact["message_id"]
        # Sent to RabbitMQ without a later fact: the message waits in its queues. If a requeue came first, it went to one
        # queue only, which is not known here.
        if message not in seen and fact["fact"] == "sent":
            for queue in expected_queues(consumers, subscribed, fact["routing_key"], fact["at"]):
                found.pop((message, None), None)
                found.setdefault((message, queue), ChainState.QUEUED)
        seen.add(message)
    rows: dict[str, ChainState] = {}
    for each in live:
        if "queue" in each:
            found.pop((each["message_id"], None), None)
            found[each["message_id"], each["queue"]] = ChainState(each["state"])
        else:
            rows[each["message_id"]] = ChainState(each["state"])
    # A message in the outbox table is not in any queue yet, so its row replaces all other states.
    unsent = {message: state for message, state in rows.items() if state is not ChainState.SENT}
    return {key: state for key, state in found.items() if key[0] not in unsent} | {
        (message, None): state for message, state in unsent.items()
    }


_STATE_AFTER = {
    "sent": ChainState.SENT,
    "processed": ChainState.PROCESSED,
    "duplicate": ChainState.PROCESSED,
    "retried": ChainState.RETRYING,
    "died": ChainState.DEAD,
    "requeued": ChainState.REQUEUED,
}
