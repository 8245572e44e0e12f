"""Gates that the pauses in the database close and open."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Wish = tuple[str, str]
"""The scope and the name of a pause, as in the table."""


@dataclass(slots=True)
class ControlledGate:
    """Implements the Gate port: closed while any of `closed_by` is wanted."""

    closed_by: frozenset[Wish]
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _opened: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._opened.set()

    @property
    def closed(self) -> bool:
        """See `outbox.ports.Gate.closed`."""
        return self._closing.is_set()

    async def opened(self) -> None:
        """See `outbox.ports.Gate.opened`."""
        await self._opened.wait()

    async def closing(self) -> None:
        """See `outbox.ports.Gate.closing`."""
        await self._closing.wait()

    def heed(self, wanted: Iterable[Wish]) -> None:
        """Closes or opens, as `wanted` has it."""
        closed = not self.closed_by.isdisjoint(wanted)
        entered, left = (self._closing, self._opened) if closed else (self._opened, self._closing)
        entered.set()
        left.clear()


class Gates:
    """The gates of one component, and the pauses that hold. While the database is away, what was wanted last stays wanted."""

    def __init__(self, kind: str, name: str, *, now: Callable[[], float]) -> None:
        self._own = frozenset({(kind, ""), (kind, name)})
        self._now = now
        self._gates: dict[str, ControlledGate] = {}
        self._ends: dict[Wish, float | None] = {}

    def of(self, queue: str = "") -> ControlledGate:
        """The gate of a consumer of `queue`; without one, that of the component itself."""
        gate = self._gates.get(queue)
        if gate is None:
            gate = self._gates[queue] = ControlledGate(self._own | {("queue", queue)} if queue else self._own)
            gate.heed(self._ends)
        return gate

    def heed(self, ends: Mapping[Wish, float | None]) -> None:
        """Takes note of the pauses that are wanted, and when, by this process's clock, each of them ends."""
        self._ends = {wish: end for wish, end in ends.items() if end is None or end > self._now()}
        for gate in self._gates.values():
            gate.heed(self._ends)

    @property
    def next_end(self) -> float | None:
        """When the next pause ends by itself, by this process's clock; None if none does."""
        return min((end for end in self._ends.values() if end is not None), default=None)

    def tick(self) -> None:
        """Ends the pauses whose time is over, also while the database is away."""
        self.heed(self._ends)

    def heeded(self, paused: Iterable[str]) -> "Heeded":
        """The pauses that hold and concern a gate, `paused` being the queues at rest, or "" for the component itself."""
        resting = frozenset(paused)
        concerned = {
            wish: {queue for queue, gate in self._gates.items() if wish in gate.closed_by} for wish in sorted(self._ends)
        }
        applied = [wish for wish, queues in concerned.items() if queues and queues <= resting]
        pending = [wish for wish, queues in concerned.items() if queues - resting]
        return Heeded(tuple(applied), tuple(pending))


@dataclass(frozen=True, slots=True)
class Heeded:
    """Pauses that are honoured, and those that wait for what is in hand."""

    applied: tuple[Wish, ...] = ()
    pending: tuple[Wish, ...] = ()
