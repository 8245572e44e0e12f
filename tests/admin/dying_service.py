"""A service that is killed in the middle of a change: after everything is written, and right before the commit."""

import asyncio
import os
import signal
import sys

from outbox.admin import Admin
from outbox.admin.repairs.once import IdempotencyLock
from tests.admin.support import client_of, serving


async def die(self: IdempotencyLock, *given: object) -> None:
    """Kills the process instead of storing the response."""
    os.kill(os.getpid(), signal.SIGKILL)


async def main(database: str, id_: str, key: str) -> None:
    """Requests a requeue, during which the process is killed."""
    IdempotencyLock.store = die  # type: ignore[method-assign, assignment]
    async with serving(Admin(database)) as app, client_of(app) as client:
        await client.post("/requeue", json={"selector": {"ids": [id_]}}, headers={"idempotency-key": key})


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
