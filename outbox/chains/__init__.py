"""Chains: which message caused which, and the outcome of each. Finds the whole tree by any message id in it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from outbox.chains.model import (
    Attempt,
    AttemptError,
    AttemptOutcome,
    Chain,
    ChainState,
    ChainSummary,
    Delivery,
    Node,
    Waiting,
    WaitReason,
)
from outbox.errors import ConfigurationError

if TYPE_CHECKING:
    from outbox.postgres.pool import Connection, Pool

__all__ = [
    "Attempt",
    "AttemptError",
    "AttemptOutcome",
    "Chain",
    "ChainState",
    "ChainSummary",
    "Delivery",
    "Node",
    "WaitReason",
    "Waiting",
    "chain",
    "recent",
]

MOST_NODES = 2_000


async def chain(
    database: "Pool | Connection | str",
    any_id: str,
    *,
    max_nodes: int = MOST_NODES,
    table_name: str = "outbox_table",
    bounded: bool = False,
) -> Chain:
    """Returns the whole chain of a message, by the id of any message in it.

    `database` is an asyncpg pool, an asyncpg connection outside a transaction, or a URL. The chain is read from the history,
    the outbox, the queues of the Postgres transport, and the dead letters; it works without history, too. Changes and blocks
    nothing, and reads each table for a few seconds at most. With `bounded`, only the newest rows of large outbox and delivery
    tables are read, and `unknown` says so. Raises the driver's errors.
    """
    from outbox.chains.traces import ChainReader
    from outbox.chains.tree import Tree
    from outbox.postgres.schema.objects import outbox_table

    if not isinstance(any_id, str) or not any_id or "\0" in any_id:
        raise ConfigurationError(f"a message id is a non-empty string without NUL, not {any_id!r}")
    async with _connection(database) as connection:
        traces = await ChainReader(connection, outbox_table(table_name), bounded=bounded).traces(any_id, max_nodes)
    return Tree(traces, max_nodes).chain()


async def recent(
    database: "Pool | Connection | str", limit: int = 50, *, table_name: str = "outbox_table"
) -> Sequence[ChainSummary]:
    """Returns the most recent chains of the history, newest first; only the first facts of each are counted."""
    from outbox.chains.pages import ChainFilter, read_page
    from outbox.chains.traces import ChainListReader, read_only_transaction
    from outbox.postgres.schema.objects import outbox_table

    async with _connection(database) as connection, read_only_transaction(connection):
        page = await read_page(ChainListReader(connection, outbox_table(table_name)), ChainFilter(), limit)
    return page.items


@asynccontextmanager
async def _connection(database: "Pool | Connection | str") -> AsyncIterator["Connection"]:
    from outbox.postgres.pool import connect_to, taken_from

    if isinstance(database, str):
        async with connect_to(database, application_name="outbox chain")() as connection:
            yield connection
    elif hasattr(database, "acquire"):
        async with taken_from(cast("Pool", database)) as connection:
            yield connection
    else:
        yield database
