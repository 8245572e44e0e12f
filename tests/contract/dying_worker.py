"""A worker that is killed with one message in flight: `dying_worker.py transport url queue binding_key how`."""

import asyncio
import os
import signal
import sys

from tests.contract.harness import Harness, PostgresHarness, RabbitHarness
from tests.contract.support import taking
from tests.support import RabbitAdmin


async def main(transport: str, url: str, queue: str, binding_key: str, how: str) -> None:
    harness: Harness = PostgresHarness(url) if transport == "postgres" else RabbitHarness(url, RabbitAdmin("", url))
    async with taking(harness.broker(), queue, binding_key) as taken:
        delivery = await taken.next()
        if how == "isolated" and not await delivery.isolate():
            delivery = await taken.next()
            assert await delivery.isolate()
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
