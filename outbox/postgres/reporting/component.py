"""Who reports, and how."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import uuid4

from outbox.postgres.reporting.facts import CAPACITY

TICK = timedelta(milliseconds=500)
"""How long facts wait for others, to be written together."""
LOOK_EVERY = timedelta(seconds=5)
"""How often pauses are looked at and the database's time is asked for, where each change of a pause is notified."""
POLL_EVERY = timedelta(seconds=1)
"""How often pauses are looked at where nothing is notified."""
ADD_UP_EVERY = timedelta(seconds=10)


class ComponentKind(StrEnum):
    """What reports."""

    RELAY = "relay"
    WORKER = "worker"
    ARCHIVER = "archiver"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Who reports. `consumers` is what a worker runs, as JSON can hold it."""

    kind: ComponentKind
    name: str
    consumers: Sequence[Mapping[str, Any]] = ()
    id: str = field(default_factory=lambda: str(uuid4()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportingSettings:
    """`history`: whether facts are written; `heartbeat`: how often a sign of life is.

    `borrows`: whether the connection is others' as well, and is to be given back after each round.
    """

    history: bool = True
    borrows: bool = False
    heartbeat: timedelta = timedelta(seconds=5)
    tick: timedelta = TICK
    look_every: timedelta = LOOK_EVERY
    poll_every: timedelta = POLL_EVERY
    add_up_every: timedelta = ADD_UP_EVERY
    capacity: int = CAPACITY
