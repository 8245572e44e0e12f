"""Lists recent chains page by page, each with the worst state in its history."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from outbox.chains.model import Beginning, ChainState, worst
from outbox.chains.traces import FACTS_OF_EACH, BeginningsReader, Place, Span, expecting, moment, place_of

MOST_LOOKED_AT = 1_000
"""Chains of which a page under a filter by state looks at the facts."""
MOST_BEGINNINGS = 10_000
"""First messages that a page under a filter by routing key looks at."""
_CHAINS_AT_ONCE = 200
_BEGINNINGS_AT_ONCE = 2_500


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginningFilter:
    """Which chains are meant, by when they began, routing key and state. `after` is included, `before` is not."""

    routing_key: str | None = None
    state: ChainState | None = None
    after: datetime | None = None
    before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginnings:
    """A page, the newest chain first, and the places that lead on; None where the list ends.

    Under a filter a page may have fewer than were asked for, or none, though the list goes on: looking is bounded.
    """

    items: tuple[Beginning, ...]
    next: Place | None
    previous: Place | None


async def beginnings(
    reader: BeginningsReader, wanted: BeginningFilter, limit: int, place: Place | None = None, *, backwards: bool = False
) -> Beginnings:
    """The page behind `place`, or before it; without a place the first one. Raises the driver's errors."""
    walk = _Walk(reader, wanted, limit, place, backwards=backwards and place is not None)
    await walk.go()
    return walk.page()


class _Walk:
    """From a place on, until a page is full, the list ends, or enough was looked at."""

    def __init__(
        self, reader: BeginningsReader, wanted: BeginningFilter, limit: int, place: Place | None, *, backwards: bool
    ) -> None:
        self._reader = reader
        self._wanted = wanted
        self._limit = limit
        self._start = self._at = place
        self._backwards = backwards
        self._span = Span(after=wanted.after, before=wanted.before)
        self._found: list[tuple[Place, Beginning]] = []
        self._more = True
        self._looked_at = self._begun = 0

    async def go(self) -> None:
        consumers, subscribed = await self._reader.consumers()
        while (
            self._more
            and len(self._found) <= self._limit
            and self._looked_at < MOST_LOOKED_AT
            and self._begun < MOST_BEGINNINGS
        ):
            rows = await self._next_rows()
            members = await self._reader.members(rows)
            live: dict[str, list[Mapping[str, Any]]] = {}
            for found in await self._reader.live([row["root_id"] for row in rows]):
                live.setdefault(found["root_id"], []).append(found)
            left_in = [(message, state) for facts in members for (message, _), state in _states(facts, {}).items()]
            resolved = await self._reader.resolved([message for message, state in left_in if state is ChainState.DEAD])
            # Of a message that was requeued something was recorded before it was sent: its chain may have begun then.
            requeued = [
                row
                for row, facts in zip(rows, members, strict=True)
                if facts and (moment(facts[0]["at"]) or row["at"]) < row["at"]
            ]
            second = await self._reader.second(requeued)
            for row, facts in zip(rows, members, strict=True):
                if place_of(row) in second:
                    continue
                known = facts[:FACTS_OF_EACH]
                states = _states(known, resolved)
                state = worst(_with_live(states, known, consumers, subscribed, live.get(row["root_id"], ())).values())
                if self._wanted.state not in (None, state):
                    continue
                beginning = Beginning(
                    root_id=row["root_id"],
                    routing_key=row["routing_key"],
                    sent_at=row["at"],
                    last_at=max((moment(fact["at"]) or row["at"] for fact in known), default=row["at"]),
                    facts=len(known),
                    deaths=sum(fact["fact"] == "died" for fact in known),
                    messages=len({fact["message_id"] for fact in known}),
                    state=state,
                    more=len(facts) > FACTS_OF_EACH,
                )
                self._found.append((place_of(row), beginning))

    def page(self) -> Beginnings:
        """What was found, and where it goes on: behind what was looked at last, or what fitted last."""
        found, more, end = self._found, self._more, self._at
        if len(found) > self._limit:
            found, more = found[: self._limit], True
            end = found[-1][0]
        onward = end if more else None
        items = tuple(beginning for _, beginning in found)
        if self._backwards:
            return Beginnings(items=items[::-1], next=self._way_back(found), previous=onward)
        return Beginnings(items=items, next=onward, previous=None if self._start is None else self._way_back(found))

    def _way_back(self, found: Sequence[tuple[Place, Beginning]]) -> Place | None:
        """To what lies behind this page, seen in the direction of the walk; with where that began, if nothing was found."""
        if found:
            return found[0][0]
        return self._start and Place(self._start.at, self._start.hash + (1 if self._backwards else -1))

    async def _next_rows(self) -> Sequence[Mapping[str, Any]]:
        """The next beginnings that may fit, no more than are looked at in one go."""
        most = _CHAINS_AT_ONCE if self._wanted.state else self._limit + 1 - len(self._found)
        size = most if self._wanted.routing_key is None else _BEGINNINGS_AT_ONCE
        if self._backwards and self._at is not None:
            rows = await self._reader.before(self._at, self._span, size)
        else:
            rows = await self._reader.behind(self._at, self._span, size)
        fitting = [row for row in rows if self._wanted.routing_key in (None, row["routing_key"])]
        self._more = len(rows) == size or len(fitting) > most
        kept = fitting[:most]
        last = kept[-1] if len(fitting) > most else rows[-1] if rows else None
        self._at = self._at if last is None else place_of(last)
        self._looked_at += len(kept)
        self._begun += len(rows)
        return kept


def _states(
    facts: Sequence[Mapping[str, Any]], resolved: Mapping[tuple[str, str], str]
) -> Mapping[tuple[str, str | None], ChainState]:
    """The state that each message was left in, by queue; by no queue those that were only sent."""
    states: dict[tuple[str, str | None], ChainState] = {}
    for fact in facts[:FACTS_OF_EACH]:
        states[fact["message_id"], fact["queue"]] = _LEFT_IN[fact["fact"]]
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
    """Adds the messages that are in flight: a row of the outbox is nowhere else, a delivery is in its queue."""
    found = dict(states)
    seen: set[str] = set()
    for fact in facts:
        message = fact["message_id"]
        # Sent to RabbitMQ, and nothing since: it must be in its queues. What was requeued before goes to one queue alone.
        if message not in seen and fact["fact"] == "sent":
            for queue in expecting(consumers, subscribed, fact["routing_key"], fact["at"]):
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
    unsent = {message: state for message, state in rows.items() if state is not ChainState.SENT}
    return {key: state for key, state in found.items() if key[0] not in unsent} | {
        (message, None): state for message, state in unsent.items()
    }


_LEFT_IN = {
    "sent": ChainState.SENT,
    "processed": ChainState.PROCESSED,
    "duplicate": ChainState.PROCESSED,
    "retried": ChainState.RETRYING,
    "died": ChainState.DEAD,
    "requeued": ChainState.REQUEUED,
}
