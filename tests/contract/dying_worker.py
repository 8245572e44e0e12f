"""A worker that is killed with one message in flight: `dying_worker.py transport url queue binding_key how`.

The transport is rabbitmq, or in PostgreSQL the exchange.
"""

import asyncio
import os
import signal
import sys

from tests.contract.harness import EXCHANGE, Harness, PostgresHarness, RabbitHarness
from tests.contract.support import taking
from tests.support import RabbitAdmin


async def main(transport: str, url: str, queue: str, binding_key: str, how: str) -> None:
    in_rabbitmq = transport == "rabbitmq"
    harness: Harness = RabbitHarness(url, RabbitAdmin("", url)) if in_rabbitmq else PostgresHarness(url, transport)
    async with taking(harness.broker(), queue, binding_key, exchange=EXCHANGE if in_rabbitmq else transport) as taken:
        delivery = await taken.next()
        if how == "isolated" and not await delivery.isolate():
            delivery = await taken.next()
            assert await delivery.isolate()
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
