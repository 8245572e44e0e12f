"""Transports: what messages are sent through, and what becomes of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from outbox.core.message import Message
from outbox.core.outcome import Failure


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker has the message safely in every queue that wants it."""


@dataclass(frozen=True, slots=True)
class Unroutable:
    """The broker knows no queue for the message, and says so."""


@dataclass(frozen=True, slots=True)
class Refused:
    """This message cannot be sent as it is: nacked, too large, malformed. Its neighbours are not concerned.

    `by_queue`: it was a queue that refused it, which may be full, so that others on the same route may be refused, too.
    """

    failure: Failure
    by_queue: bool = False


@dataclass(frozen=True, slots=True)
class NotSent:
    """The broker was away, blocked or too slow; whether it has the message is unknown. The message is not to blame."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """The broker answers, and has not confirmed this message: a queue on its route takes none. It may have arrived."""

    failure: Failure


SendResult = Confirmed | Unroutable | Refused | NotSent | Unconfirmed

CONFIRMED = Confirmed()
UNROUTABLE = Unroutable()


class Transport(Protocol):
    """Takes messages to where consumers find them."""

    async def open(self) -> None:
        """Afterwards messages can be sent; returns at once if that is so already.

        Raises `BrokerUnavailableError` while the broker is away (call again later), and `TopologyError` when a resource is
        missing that may not be declared.
        """
        ...

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """Sends all `messages` in a pipeline and returns one result for each, in order, within `timeout`.

        Never raises for what a message or the broker did; that is in the results. A message whose result is `NotSent` may
        have arrived. After a timeout or a cancellation no late answer can be taken for another message's.
        """
        ...

    async def close(self) -> None:
        """Gives back everything that `open` took; what was handed in from outside stays open. Idempotent."""
        ...
