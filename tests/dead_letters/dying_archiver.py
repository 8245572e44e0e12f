"""An archiver that is killed between a commit and its acknowledgement: `dying_archiver.py database broker queue`."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from outbox.archiver import Archiver
from outbox.ports import DeadMessage
from outbox.postgres.archive import PostgresArchive

record = PostgresArchive.record


async def record_and_die(archive: PostgresArchive, dead: Sequence[DeadMessage]) -> None:
    await record(archive, dead)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    PostgresArchive.record = record_and_die  # type: ignore[method-assign, assignment]
    database, broker, queue = sys.argv[1:]
    asyncio.run(Archiver(database, broker=broker, queues=[queue], enable_metrics=False).run())
