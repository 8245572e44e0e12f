"""Runs one operation in small batches, and prints a line after each, until it ends or is killed: `python -m … url number`."""

import asyncio
import sys

from outbox.dead_letters import OperationsRunner
from outbox.dead_letters.changes import subscribed_queues
from outbox.postgres.pool import open_pool
from outbox.postgres.queries import TableName


async def run(url: str, number: int) -> None:
    """One batch after another."""
    pool, table = await open_pool(url, size=2, application_name="tests"), TableName("outbox_table")
    runner = OperationsRunner(pool, table, subscribed_queues(pool, table), batch=10)
    while await runner.run_once(number):
        print("batch", flush=True)
    await pool.close()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2])))
