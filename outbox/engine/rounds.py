"""One round of the relay: what it takes, what becomes of it, and what there is to tell afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from outbox.core.events import RouteStalled, SendFailed, SentMessage
from outbox.core.message import Way
from outbox.core.outcome import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """What a finished round did. Everything in it is committed.

    `released`: ways on which held messages are to be made due. `ordered`: it had messages with ordering keys, so that others
    may be due now that waited for them. `stalled`: routes that were found to take no messages. `resumed`: those that were
    stalled and take messages again, so that what waits for them is to be made due.
    """

    taken: int
    sent: Sequence[SentMessage] = ()
    failed: Sequence[SendFailed] = ()
    released: Sequence[Way] = ()
    stalled: Sequence[RouteStalled] = ()
    resumed: Sequence[Way] = ()
    ordered: bool = False
    unavailable: Failure | None = None


@dataclass(frozen=True, slots=True)
class StalledRoutes:
    """Routes that were not known to be stalled, and those that no message waits for any more."""

    found: Sequence[RouteStalled] = ()
    gone: Sequence[Way] = ()


class Round(Protocol):
    """Messages that were taken and are on their way."""

    async def finish(self) -> RoundReport:
        """Sends and settles them. Raises `DatabaseUnavailableError` if that could not be committed; nothing is lost then."""
        ...

    async def abandon(self) -> None:
        """Instead of `finish`: gives back what was taken."""
        ...


class Rounds(Protocol):
    """Where rounds come from: by way of a Transport, or within the database."""

    async def start(self, limit: int) -> Round | None:
        """Takes up to `limit` due messages; None if there are none.

        Raises `BrokerUnavailableError` or `DatabaseUnavailableError` while one of them is away: nothing was taken then.
        """
        ...

    async def start_probe(self) -> Round | None:
        """Waits until a stalled route is to be probed, and takes what is sent to find out; None if there is nothing to take.

        Raises as `start` does.
        """
        ...

    async def look_for_stalled(self) -> "StalledRoutes":
        """Learns from the table which routes are stalled. Raises `DatabaseUnavailableError`."""
        ...
