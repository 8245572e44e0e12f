"""What the commands ask of dead letters, wherever they are: the database, or a service in front of it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from outbox.dead_letters import (
    Action,
    Canary,
    DeadLetter,
    DeadLetterDetail,
    DeadLetterFilter,
    Destination,
    Edit,
    Group,
    GroupBy,
    ItemOutcome,
    Operation,
    OperationItem,
    Plan,
    Repaired,
    Selector,
)
from outbox.dead_letters.model import Sort


class Letters(Protocol):
    """Reads and repairs. The methods promise what those of `DeadLetters` do."""

    look_again: timedelta
    """How long to wait before an operation that somebody else does is looked at again."""

    counts_to: int | None
    """How far `count` counts; None: to the end."""

    async def list(self, filter_: DeadLetterFilter, *, limit: int, sort: Sort) -> Sequence[DeadLetter]:
        """Up to `limit` that fit."""
        ...

    async def count(self, filter_: DeadLetterFilter) -> int:
        """How many fit."""
        ...

    async def groups(self, by: GroupBy, filter_: DeadLetterFilter, *, limit: int) -> Sequence[Group]:
        """Those that fit, counted by what they have in common."""
        ...

    async def show(self, id_: str, *, reveal: bool) -> DeadLetterDetail | None:
        """The whole of one, masked unless it is to be revealed; None if there is none."""
        ...

    async def body(self, id_: str) -> bytes | None:
        """The body of one as it is; None if there is none."""
        ...

    async def plan(
        self, action: Action, selector: Selector, *, destination: Destination | None, force: bool, max_items: int | None
    ) -> Plan:
        """What would be done now."""
        ...

    async def requeue(
        self,
        selector: Selector,
        *,
        destination: Destination | None,
        edit: Edit | None,
        rate: float | None,
        canary: Canary | None,
        stop_ratio: float | None,
        reason: str | None,
        by: str | None,
        force: bool,
        max_items: int | None,
    ) -> Repaired | Operation:
        """Sends them again."""
        ...

    async def discard(
        self, selector: Selector, *, reason: str | None, by: str | None, max_items: int | None
    ) -> Repaired | Operation:
        """Puts them aside."""
        ...

    async def restore(
        self, selector: Selector, *, reason: str | None, by: str | None, max_items: int | None
    ) -> Repaired | Operation:
        """Opens discarded ones again."""
        ...

    async def purge(
        self, selector: Selector, *, reason: str | None, by: str | None, force: bool, max_items: int | None
    ) -> Repaired | Operation:
        """Deletes them for good."""
        ...

    async def operation(self, number: int) -> Operation | None:
        """The operation of that number; None if there is none."""
        ...

    async def operations(self, *, going_on: bool, limit: int) -> Sequence[Operation]:
        """Operations, the newest first."""
        ...

    async def operation_items(self, number: int, *, outcome: ItemOutcome | None, limit: int) -> Sequence[OperationItem]:
        """What came of the letters of an operation."""
        ...

    async def pause(self, number: int) -> Operation:
        """Holds an operation."""
        ...

    async def resume(self, number: int) -> Operation:
        """Goes on with a paused one."""
        ...

    async def cancel(self, number: int) -> Operation:
        """Ends one."""
        ...

    async def advance(self, number: int) -> int:
        """Does a batch of an operation here, if it can be done here; how many letters that were."""
        ...
