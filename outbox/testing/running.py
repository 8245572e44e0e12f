"""Running consumers in a test until there is nothing left to do."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from outbox.engine.consumer import Consumer
from outbox.ports import Broker
from outbox.transports.memory import MemoryBroker
from outbox.worker import Worker

PATIENCE = timedelta(seconds=10)


async def work_off(
    broker: MemoryBroker,
    consumers: Iterable[Consumer],
    *,
    through: Broker | None = None,
    patience: timedelta = PATIENCE,
    **options: Any,
) -> None:
    """Runs a `Worker` of these `consumers` on `broker` until their queues hold nothing that waits, retries included.

    `through` is what the worker sees of the broker, a `CrashingBroker` around it for instance. `options` are the worker's own:
    `retry_delays`, `db_engine_url` and so on. What died is in `broker.dead_letters(queue)`. Raises `AssertionError` if
    something still waits after `patience`, and what the worker raises.
    """
    wanted = tuple(consumers)
    worker = Worker(broker=through or broker, consumers=wanted, enable_metrics=False, **options)
    running = asyncio.create_task(worker.run(handle_signals=False))
    try:
        async with asyncio.timeout(patience.total_seconds()):
            while not running.done():
                await asyncio.sleep(0.001)
                if all(broker.has_consumer(consumer.queue) and broker.is_idle(consumer.queue) for consumer in wanted):
                    break
    except TimeoutError:
        waiting = ", ".join(consumer.queue for consumer in wanted if not broker.is_idle(consumer.queue))
        raise AssertionError(f"after {patience} there is still something to do in {waiting}") from None
    finally:
        worker.stop()
        await running
