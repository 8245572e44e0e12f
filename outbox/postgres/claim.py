"""A claim on rows of the outbox table: the transaction that holds their locks, and settles them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Self, assert_never

import asyncpg

from outbox.core.message import Lane, PendingMessage
from outbox.core.outcome import Dead, Done, Failure, Held, RelayOutcome, Retry, Returned, Stalled
from outbox.postgres.ordering import Lanes
from outbox.postgres.pool import (
    COMMAND_TIMEOUT,
    Connection,
    Pool,
    PooledConnection,
    give_back,
    roll_back_quietly,
    unavailable_errors,
)
from outbox.postgres.sent_facts import SentFacts, identities

_TIMEOUT = COMMAND_TIMEOUT.total_seconds()


class PostgresClaim:
    """Implements the Claim port: a transaction that holds the rows' locks. `blocked` are lanes in which rows wait for them."""

    def __init__(
        self,
        pool: Pool,
        connection: PooledConnection,
        sql: Mapping[str, str],
        messages: Sequence[PendingMessage],
        *,
        lanes: Lanes,
        facts: SentFacts | None,
        blocked: Sequence[Lane],
        keep_sent: bool,
    ) -> None:
        self.messages = messages
        self._lanes = lanes
        self._facts = facts
        self._blocked = blocked
        self._pool = pool
        self._connection = connection
        self._sql = sql
        self._keep_sent = keep_sent
        self._keeps_any_text = connection.get_settings().server_encoding in ("UTF8", "SQL_ASCII")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self._commit()
            else:
                await roll_back_quietly(self._connection)
        finally:
            await give_back(self._pool, self._connection)

    async def _commit(self) -> None:
        with unavailable_errors("ending a claim"):
            try:
                await self._connection.execute("commit", timeout=_TIMEOUT)
            except BaseException:
                await roll_back_quietly(self._connection)
                raise

    async def settle(self, outcomes: Sequence[RelayOutcome]) -> None:
        """See `outbox.ports.Claim.settle`."""
        settled = _Settled(self._storable)
        for pending, outcome in zip(self.messages, outcomes, strict=True):
            settled.add(pending, outcome)
        with unavailable_errors("settling a claim"):
            await self._write(settled, self._connection)

    async def _write(self, settled: "_Settled", connection: Connection) -> None:
        if settled.done:
            await self._let_go(settled.done, connection)
        if settled.dropped:
            await connection.execute(self._sql[self._end], settled.dropped, timeout=_TIMEOUT)
        if settled.replaceable:  # first, so that none of them backs off or is parked, with its key's other rows behind it
            await connection.execute(self._sql["supersede"], settled.replaceable, timeout=_TIMEOUT)
        if settled.stalled:
            await connection.execute(self._sql["stall"], settled.stalled, timeout=_TIMEOUT)
        for name, changes in (("retry", settled.retried), ("park", settled.parked), ("hold", settled.held)):
            if changes:
                await connection.execute(self._sql[name], *zip(*changes, strict=True), timeout=_TIMEOUT)
        if self._blocked:
            await self._lanes.release(connection, self._blocked)

    @property
    def _end(self) -> str:
        return "keep" if self._keep_sent else "delete"

    async def _let_go(self, sent: Sequence[PendingMessage], connection: Connection) -> None:
        """What was sent leaves, whether or not the history can be told: hence the savepoint."""
        ids = [pending.row_id for pending in sent]
        if self._facts is not None and self._facts.wanted:
            await connection.execute("savepoint sent", timeout=_TIMEOUT)
            told = (*identities([pending.message for pending in sent]), self._facts.component)
            try:
                await connection.execute(self._facts.sql[f"{self._end}_told"], ids, *told, timeout=_TIMEOUT)
            except asyncpg.PostgresError as error:
                await connection.execute("rollback to savepoint sent", timeout=_TIMEOUT)
                self._facts.lost(len(sent), error)
            else:
                return
        await connection.execute(self._sql[self._end], ids, timeout=_TIMEOUT)

    def _storable(self, failure: Failure) -> str:
        """The failure as text that the database can hold: without NUL, without halves of pairs, in its encoding."""
        text = str(failure).replace("\0", "\N{SYMBOL FOR NULL}")
        encoding = "utf-8" if self._keeps_any_text else "ascii"
        return text.encode(encoding, "backslashreplace").decode(encoding)


@dataclass(slots=True)
class _Settled:
    """The outcomes of one claim, gathered by the statement that records them."""

    storable: Callable[[Failure], str]
    done: list[PendingMessage] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    retried: list[tuple[int, str, timedelta]] = field(default_factory=list)
    parked: list[tuple[int, str]] = field(default_factory=list)
    held: list[tuple[int, timedelta | None]] = field(default_factory=list)
    replaceable: list[int] = field(default_factory=list)
    """What comes back unsent, and may have been replaced meanwhile."""
    stalled: list[int] = field(default_factory=list)

    def add(self, pending: PendingMessage, outcome: RelayOutcome) -> None:
        row_id = pending.row_id
        if pending.deduplicated and not isinstance(outcome, Done):
            self.replaceable.append(row_id)
        match outcome:
            case Done(dropped=False):
                self.done.append(pending)
            case Done():
                self.dropped.append(row_id)
            case Retry(delay, failure):
                self.retried.append((row_id, self.storable(failure), delay))
            case Dead(_, failure):
                self.parked.append((row_id, self.storable(failure)))
            case Held(probe_after):
                self.held.append((row_id, probe_after))
            case Stalled():
                self.stalled.append(row_id)
            case Returned():
                pass
            case _:
                assert_never(outcome)
