"""What the cases share: making messages, and taking deliveries one by one."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from outbox.core.message import NO_HEADERS, Message
from outbox.core.outcome import Failure
from outbox.core.tracking import new_id
from outbox.ports import CONFIRMED, Broker, Delivery, Intake, Subscription
from tests.contract.harness import EXCHANGE

PATIENCE = timedelta(seconds=30)
"""How long a test waits for what must come."""

A_WHILE = timedelta(milliseconds=300)
"""How long a test watches that something does not come."""

FAILURE = Failure("shop.PaymentError", "the card was declined", "Traceback: pay.py, line 1")
TIMEOUT = timedelta(seconds=10)


def message(
    routing_key: str,
    body: bytes = b"{}",
    *,
    headers: Mapping[str, Any] = NO_HEADERS,
    expiration: timedelta | None = None,
    target_queue: str | None = None,
    **fields: Any,
) -> Message:
    """A message that is caused by another one."""
    id_ = new_id()
    now = datetime.now(UTC)
    return Message(
        id=id_,
        routing_key=routing_key,
        body=body,
        created_at=now,
        tracking_ids=("root", id_),
        content_type="application/json",
        headers=headers,
        expiration=expiration,
        expires_at=now + expiration if expiration is not None else None,
        target_queue=target_queue,
        **fields,
    )


async def send(broker: Broker, *messages: Message) -> None:
    """Sends messages that must be routed."""
    await broker.open()
    assert list(await broker.send(messages, timeout=TIMEOUT)) == [CONFIRMED] * len(messages)


@dataclass(slots=True)
class Taken:
    """The deliveries that came, to be taken one by one."""

    intake: Intake | None = None
    received: int = 0
    _waiting: asyncio.Queue[Delivery] = field(default_factory=asyncio.Queue)

    def receive(self, delivery: Delivery) -> None:
        self.received += 1
        self._waiting.put_nowait(delivery)

    async def next(self, timeout: timedelta = PATIENCE) -> Delivery:
        """The next delivery."""
        async with asyncio.timeout(timeout.total_seconds()):
            return await self._waiting.get()

    async def several(self, count: int) -> Sequence[Delivery]:
        """The next `count` deliveries."""
        return [await self.next() for _ in range(count)]

    async def nothing_more(self, watch: timedelta = A_WHILE) -> None:
        """Nothing is there, and nothing comes for a while."""
        try:
            delivery = await self.next(watch)
        except TimeoutError:
            return
        raise AssertionError(f"there came {delivery.message}")


@asynccontextmanager
async def taking(
    broker: Broker,
    queue: str,
    binding_key: str,
    *,
    prefetch_count: int = 10,
    retry_delays: Sequence[timedelta] = (),
    ordered: bool = False,
    exchange: str = EXCHANGE,
) -> AsyncIterator[Taken]:
    """Subscribes to a queue, creating it if need be."""
    taken = Taken()
    subscription = Subscription(
        queue=queue,
        binding_key=binding_key,
        exchange_name=exchange,
        prefetch_count=prefetch_count,
        retry_delays=tuple(retry_delays),
        ordered=ordered,
    )
    async with broker.subscribe(subscription, taken.receive) as intake:
        taken.intake = intake
        yield taken


async def existing(broker: Broker, queue: str, binding_key: str) -> None:
    """Creates a queue by subscribing to it for a moment."""
    async with taking(broker, queue, binding_key):
        pass
