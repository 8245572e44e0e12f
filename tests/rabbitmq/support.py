"""Shared helpers of the RabbitMQ transport's tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from outbox.core.events import Event
from outbox.core.message import NO_HEADERS, Message
from outbox.core.outcome import Failure
from outbox.core.tracking import new_id
from outbox.ports import CONFIRMED, Delivery, Intake, SendResult, Subscription
from outbox.transports.rabbitmq import RabbitBroker
from outbox.transports.rabbitmq.delivery import RabbitDelivery

EXCHANGE = "shop"
TIMEOUT = timedelta(seconds=10)
FAILURE = Failure("shop.PaymentError", "the card was declined", "Traceback: pay.py, line 1")


class Recorder:
    """An observer that records events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def notify(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        """Returns the events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]


def message(
    routing_key: str = "order.placed", body: bytes = b"{}", *, headers: Mapping[str, Any] = NO_HEADERS, **fields: Any
) -> Message:
    """A message as the relay would send it."""
    id_ = fields.pop("id", None) or new_id()
    return Message(
        id=id_,
        routing_key=routing_key,
        body=body,
        created_at=fields.pop("created_at", datetime.now(UTC)),
        tracking_ids=fields.pop("tracking_ids", (id_,)),
        content_type=fields.pop("content_type", "application/json"),
        headers=headers,
        **fields,
    )


async def send(broker: RabbitBroker, *messages: Message, timeout: timedelta = TIMEOUT) -> Sequence[SendResult]:
    """Sends messages and returns their results."""
    return await broker.send(messages, timeout=timeout)


async def deliver(broker: RabbitBroker, *messages: Message) -> None:
    """Sends messages that must arrive somewhere."""
    assert list(await send(broker, *messages)) == [CONFIRMED] * len(messages)


@dataclass(slots=True)
class Inbox:
    """Collects deliveries, to be read one by one."""

    intake: Intake | None = None
    received: int = 0
    _waiting: asyncio.Queue[RabbitDelivery] = field(default_factory=asyncio.Queue)

    def receive(self, delivery: Delivery) -> None:
        assert isinstance(delivery, RabbitDelivery)
        self.received += 1
        self._waiting.put_nowait(delivery)

    async def next(self, seconds: float = 30) -> RabbitDelivery:
        """Returns the next delivery."""
        async with asyncio.timeout(seconds):
            return await self._waiting.get()

    async def nothing_more(self, seconds: float = 0.3) -> None:
        """Asserts that no delivery arrives for a while."""
        try:
            delivery = await self.next(seconds)
        except TimeoutError:
            return
        raise AssertionError(f"there came {delivery.arrival}")


@asynccontextmanager
async def consuming(
    broker: RabbitBroker,
    queue: str = "mail",
    binding_key: str = "order.*",
    *,
    prefetch_count: int = 10,
    retry_delays: Sequence[timedelta] = (),
    ordered: bool = False,
) -> AsyncIterator[Inbox]:
    """Subscribes to a queue, and creates it if necessary."""
    inbox = Inbox()
    subscription = Subscription(
        queue=queue,
        binding_key=binding_key,
        exchange_name=EXCHANGE,
        prefetch_count=prefetch_count,
        retry_delays=tuple(retry_delays),
        ordered=ordered,
    )
    async with broker.subscribe(subscription, inbox.receive) as intake:
        inbox.intake = intake
        yield inbox


async def bound(broker: RabbitBroker, queue: str = "mail", binding_key: str = "order.*") -> None:
    """Creates a queue by subscribing to it briefly."""
    async with consuming(broker, queue, binding_key):
        pass


MakeBroker = Callable[..., RabbitBroker]
