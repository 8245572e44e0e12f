"""A worker in a process of its own, to be killed or frozen: `dying_worker.py url queue binding_key prefetch lease_seconds`.

Prints a line for each message that it receives, and never finishes any.
"""

import asyncio
import sys
from datetime import timedelta

from outbox.ports import Delivery, Subscription
from tests.contract.harness import EXCHANGE
from tests.postgres_transport.support import new_broker


async def main(url: str, queue: str, binding_key: str, prefetch_count: str, lease_seconds: str) -> None:
    subscription = Subscription(
        queue=queue,
        binding_key=binding_key,
        exchange_name=EXCHANGE,
        prefetch_count=int(prefetch_count),
        retry_delays=(),
    )
    broker = new_broker(url, lease=timedelta(seconds=float(lease_seconds)))

    def receive(delivery: Delivery) -> None:
        print(delivery.message.body.decode(), flush=True)

    async with broker.subscribe(subscription, receive):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
