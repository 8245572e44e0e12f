"""Ports to brokers: a Transport to send through, a Broker to consume from, and their results."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from outbox.core.failures import FailedAttempt
from outbox.core.message import Message
from outbox.core.outcome import DeliveryOutcome, Failure


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One queue, the binding key that fills it, and how its messages are to be delivered.

    `prefetch_count` bounds the deliveries in hand, handlers running and not. `retry_delays` are the delays that the consumer
    may ask for, so that a broker can prepare them. `ordered`: deliveries with one ordering key arrive in the order in which
    they were sent, all at one worker or each only after the one before it is settled; whoever receives them handles them so.
    """

    queue: str
    binding_key: str
    exchange_name: str
    prefetch_count: int
    retry_delays: tuple[timedelta, ...]
    ordered: bool = False


class Delivery(Protocol):
    """One message in hand, to be settled exactly once."""

    @property
    def message(self) -> Message:
        """The message, with its original routing key. Raises `MalformedMessageError` if its headers cannot be read."""
        ...

    @property
    def incoming(self) -> object:
        """What a handler's `message` parameter receives: the transport's own object, with aio-pika's read attributes."""
        ...

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1. Raises `MalformedMessageError` if that cannot be read."""
        ...

    @property
    def crashes(self) -> int:
        """How many earlier deliveries of it ended with the death of the worker that held it, guilty or not."""
        ...

    @property
    def blamed(self) -> bool:
        """Whether a worker died while this message ran alone (after `isolate`)."""
        ...

    @property
    def gone(self) -> bool:
        """Whether it is known to be no longer ours. What had arrived after it by the same road is gone with it, then."""
        ...

    async def note_failed(self, failed: FailedAttempt) -> None:
        """An attempt failed, and the next one follows with the message in hand: `attempt` is one more from now on.

        The failure goes with the message when it is settled. Whether it outlives this worker is the broker's business. Raises
        `StaleDeliveryError` if the delivery is no longer ours.
        """
        ...

    async def isolate(self) -> bool:
        """Records durably that the message now runs alone.

        True: run it. False: a marked copy was queued in its place and this delivery is settled; the copy comes by itself.
        """
        ...

    async def settle(self, outcome: DeliveryOutcome) -> None:
        """Makes `outcome` durable, and only then lets go of the message.

        Done: gone. Retry: comes back to this queue only, after the delay, with `attempt + 1`, id, properties and headers
        kept. Dead: in the queue's dead letters, with the failure. Returned: delivered again as it was, nothing spent.
        Postponed: comes back to this queue only, after the delay, as it was. Raises
        `StaleDeliveryError` if the delivery is no longer ours; then nothing was changed. Raises `BrokerUnavailableError` if the
        broker cannot record it now; then the delivery is still in hand, to be settled again.
        """
        ...


class Intake(Protocol):
    """A subscription that is running."""

    async def stop(self) -> None:
        """No `receive` call follows. What is in hand can still be settled until the subscription's block is left."""
        ...


Receive = Callable[[Delivery], None]


class Broker(Transport, Protocol):
    """A Transport that can also be consumed from."""

    def subscribe(self, subscription: Subscription, receive: Receive) -> AbstractAsyncContextManager[Intake]:
        """Within the block, `receive` is called for each delivery, never with more in hand than `prefetch_count`.

        Needs no `open` before; `close` is called after the last block was left.
        Entering creates what is missing (queue, binding, delays, dead letters) and returns when messages can arrive; it raises
        `BrokerUnavailableError` while the broker is away and `TopologyError` when something is missing that may not be created.
        Inside, lost connections are repaired without anyone's help. Leaving it gives unsettled deliveries back.
        """
        ...

    async def count_dead_letters(self, queue: str) -> int:
        """How many dead letters `queue` has. Raises `BrokerUnavailableError` if nobody can say now."""
        ...

    async def has_queue(self, queue: str) -> bool:
        """Whether a message with that `target_queue` has somewhere to go. Raises `BrokerUnavailableError` likewise."""
        ...
