"""Chains: which message caused which, and the outcome of each; the whole tree for any id in it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from outbox.chains.model import AttemptOutcome, Beginning, Chain, ChainState, Leg, Node, Try, TryError, Waiting, WaitReason
from outbox.errors import ConfigurationError

if TYPE_CHECKING:
    from outbox.postgres.pool import Connection, Pool

__all__ = [
    "AttemptOutcome",
    "Beginning",
    "Chain",
    "ChainState",
    "Leg",
    "Node",
    "Try",
    "TryError",
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
    """The whole chain that a message belongs to, by the id of any message in it.

    `database` is a pool of asyncpg, a connection that is in no transaction, or a URL. Made of the history, and of what still is
    in the outbox, in queues of the Postgres transport, and among the dead letters; also where there is no history. Changes
    nothing and blocks nothing. Each table is read for a few seconds at most. With `bounded`, of large tables of messages on
    their way only the newest rows are looked at, and `unknown` says so. Raises the driver's errors.
    """
    from outbox.chains.traces import ChainReader
    from outbox.chains.tree import Tree
    from outbox.postgres.schema.objects import outbox_table

    if not isinstance(any_id, str) or not any_id or "\0" in any_id:
        raise ConfigurationError(f"a message id is text, not {any_id!r}")
    async with _connection(database) as connection:
        traces = await ChainReader(connection, outbox_table(table_name), bounded=bounded).traces(any_id, max_nodes)
    return Tree(traces, max_nodes).chain()


async def recent(
    database: "Pool | Connection | str", limit: int = 50, *, table_name: str = "outbox_table"
) -> Sequence[Beginning]:
    """The chains that began last, newest first, as far as the history goes; the first facts of each are counted."""
    from outbox.chains.beginnings import BeginningFilter, beginnings
    from outbox.chains.traces import BeginningsReader, reading
    from outbox.postgres.schema.objects import outbox_table

    async with _connection(database) as connection, reading(connection):
        page = await beginnings(BeginningsReader(connection, outbox_table(table_name)), BeginningFilter(), limit)
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
