"""Relays within one database: a single statement claims, routes and settles a batch of outbox rows."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial

import asyncpg

from outbox.core.byte_limits import ByteLimits
from outbox.core.events import SendFailed, SendFailureType, SentMessage
from outbox.core.message import Lane, OrderingPolicy, Way, light_value
from outbox.core.outcome import DONE, DROPPED, Cause, Dead, Failure, Held, RelayOutcome, Retry
from outbox.engine.ordering import OrderingRules
from outbox.engine.rounds import NO_QUEUE, RoundReport, StalledRoutes
from outbox.engine.routes import FIRST_PROBE, LONGEST_PROBE
from outbox.errors import SchemaError
from outbox.postgres.claiming import (
    ALONE_TIMEOUT,
    MOST_LOOKS,
    BatchSizes,
    PriorityScheduler,
    UnkeyedBatch,
    lowest_reached,
    outbox_queries,
)
from outbox.postgres.dead_letter_writer import Storable
from outbox.postgres.history import SentFacts, trace_id_in
from outbox.postgres.index_positions import PRIORITIES, IndexPositions, ScanStart
from outbox.postgres.ordering import LONGEST_IDLE, Lanes, lane_of
from outbox.postgres.pool import DRIVER_ERRORS, Connection, Pool, roll_back_quietly, taken_from, unavailable_errors
from outbox.postgres.queries import TableName, begin_queries
from outbox.retry import RetryPolicy
from outbox.transports.postgres.tables import TransportTables, borrow, cancel_on_timeout

LONGEST_STATEMENT = timedelta(seconds=30)
"""A hand-over that takes longer is cancelled and rolled back."""
BEGIN = begin_queries(idle=LONGEST_IDLE, locks=timedelta(0))["begin_keeping_plans"]
"""Begins a hand-over of rows without ordering keys. Waits for locks have no limit: the whole statement has one."""
_ROW_ERRORS = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.PLPGSQLError,
    asyncpg.InternalServerError,
    asyncpg.OutOfMemoryError,
    asyncpg.QueryCanceledError,
)
"""Errors that a row can cause, itself or through a trigger. Errors about the server's own state are not among them."""
_NOT_OF_THE_HISTORY = (asyncpg.OperatorInterventionError, asyncpg.PostgresConnectionError, asyncpg.TooManyConnectionsError)
"""Errors that a hand-over has without the history as well: it took too long, or its connection was lost or refused."""
_IDENTITY = (
    "select pg_catalog.pg_postmaster_start_time(), datname, oid from pg_catalog.pg_database "
    "where datname = pg_catalog.current_database()"
)
_log = logging.getLogger("outbox")
_ROUTING = ("address", "routes", "routed")
_UNORDERED = (*_ROUTING, "message", "recorded", "delivered", "settled")
_ORDERED = (*_ROUTING, "message_in_line", "recorded", "delivered_in_line", "settled")
_KINDS = {
    "hand_over": ("claim", "measured", "superseded", *_UNORDERED, "shown"),
    "hand_over_fair": ("claim_fair", "measured", "superseded", *_UNORDERED, "shown"),
    "hand_over_lean": ("claim_lean", "measured", "not_superseded", *_UNORDERED, "shown_lean"),
    "hand_over_keyed": ("claim_lanes", "measured", "superseded", *_ORDERED, "shown_in_line"),
    "hand_over_single": ("claim_one", "measured", "superseded", *_UNORDERED, "shown_lean"),
}
"""Steps of each kind of hand-over: names of blocks in `handover.sql`."""
_LONGEST_AGE = timedelta(days=365_000).total_seconds()
_Arguments = tuple[object, ...]


class HandoverState(StrEnum):
    """Result of the hand-over of one outbox row."""

    SENT = "sent"
    HELD = "held"
    DROPPED = "dropped"
    PARKED = "parked"
    TOO_LARGE = "too_large"
    REFUSED = "refused"


_STATES = {state.value: state for state in HandoverState}


@light_value()
class HandedMessage:
    """One row that was due: its state, its age, whether it had been held before, and whether it has an ordering key.

    `scheduled` is how long after its creation it was due.
    """

    row_id: int
    id: str
    routing_key: str
    state: HandoverState
    was_held: bool
    age: timedelta
    ordered: bool = False
    queue: str | None = None
    """Its target queue; None if it goes to every queue that is bound for it."""
    refused: Retry | Dead | None = None
    """What happens next, if the database could not take it."""
    scheduled: timedelta = timedelta(0)
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class HandoverResult:
    """Result of one committed hand-over. `messages` are in the order in which they were due."""

    messages: Sequence[HandedMessage]

    def __len__(self) -> int:
        return len(self.messages)


class PostgresHandover:
    """Moves due rows of `table` to the queues bound to `exchange_name`, in the same database.

    Sent rows are deleted, or kept with `sent_at` if `keep_sent`. Unroutable rows are held, or, with `drop_unroutable`,
    treated as sent. `default_expiration` applies to rows without an expiration. Any number of hand-overs may run at once.
    `scan_start` is where claims start to read; it is shared with the task that looks for the next due row.

    A hand-over that takes longer than `longest_statement` is rolled back, and smaller ones follow. To find a row that the
    database cannot take, batches are halved. Such a row is retried as `retry` says and finally parked; all other rows are
    moved. `byte_limits` limits the size of a batch and of a single message.
    """

    def __init__(
        self,
        pool: Pool,
        table: TableName,
        *,
        exchange_name: str,
        keep_sent: bool,
        default_expiration: timedelta | None = None,
        drop_unroutable: bool = False,
        ordering: OrderingRules = OrderingRules(),  # noqa: B008  a frozen value
        facts: SentFacts | None = None,
        scan_start: ScanStart | None = None,
        byte_limits: ByteLimits = ByteLimits(),  # noqa: B008  a frozen value
        retry: RetryPolicy | None = None,
        longest_statement: timedelta = LONGEST_STATEMENT,
    ) -> None:
        self._pool = pool
        self._retry = retry
        self._longest_statement = longest_statement
        # Passed with every statement, because a given pool may have no timeout.
        self._timeout = longest_statement.total_seconds()
        self._sizes = BatchSizes(byte_limits.batch)
        self.max_body_bytes = byte_limits.body
        self._tables = TransportTables(table)
        self._exchange_name = exchange_name
        self._keep_sent = keep_sent
        self._default_expiration = default_expiration
        self._drop_unroutable = drop_unroutable
        self._facts = facts
        self._sql = handover_queries(self._tables)
        self._sql_with_history = self._sql if facts is None else handover_queries(self._tables, facts.history)
        self._row_sql = outbox_queries(table, longest_send=ALONE_TIMEOUT)
        self._scheduler = PriorityScheduler()
        self._lanes = Lanes(table, ordering)
        self._positions = IndexPositions(scan_start or ScanStart(PRIORITIES), self._lanes.scan_start)

    async def check(self) -> None:
        """Raises `SchemaError` if a table of the transport is missing, `DatabaseUnavailableError` if the database is away."""
        with unavailable_errors("looking for the tables of the Postgres transport"):
            await require_tables(self._pool, self._tables)

    async def hand_over(
        self, limit: int, *, probe_delays: Mapping[str, timedelta] | None = None, first_probe: timedelta = FIRST_PROBE
    ) -> HandoverResult:
        """Hands over up to `limit` due rows in one atomic statement.

        Each message is either in every queue bound for it and gone from the outbox, or unchanged. Unroutable rows are held:
        one row per routing key is due again after its entry in `probe_delays`, or else after `first_probe`; the others wait
        until they are released. A hand-over that takes too long moves nothing, and the next one is smaller. Raises
        `DatabaseUnavailableError`; the outcome is unknown then, and calling again is safe.
        """
        rows = self._sizes.rows(limit)
        delays = probe_delays or {}
        arguments = (
            self._keep_sent,
            self._drop_unroutable,
            list(delays.keys()),
            list(delays.values()),
            first_probe,
            self._default_expiration,
        )
        without_history = _Statements(self._sql, arguments)
        handed: list[HandedMessage] = []
        with unavailable_errors(f"handing over from {self._tables.outbox}", limit=self._longest_statement):
            try:
                if (facts := self._facts) is None or not facts.wanted:
                    await self._hand_over_by_priority(without_history, rows, handed)
                else:
                    try:
                        await self._hand_over_by_priority(
                            _Statements(self._sql_with_history, arguments, facts.component), rows, handed
                        )
                    except _NOT_OF_THE_HISTORY:
                        raise
                    except asyncpg.PostgresError as error:
                        # Sending matters more than the history of it: try once more without.
                        before = len(handed)
                        await self._hand_over_by_priority(without_history, rows, handed)
                        facts.lost(len(handed) - before, error)
                self._sizes.record_success()
            except asyncpg.QueryCanceledError:
                if not handed:
                    await self._require_unlocked(without_history)
                # Not an outage: the server confirmed that it rolled the statement back.
                self._sizes.record_timeout(rows)
                _log.warning(
                    "handing over %d messages from %s took too long and was rolled back; using smaller batches for a while",
                    rows,
                    self._tables.outbox,
                )
            except DRIVER_ERRORS:
                # If a part was committed, report it. The rest is still due, and the next hand-over takes it.
                if not handed:
                    raise
        return HandoverResult(handed)

    async def _require_unlocked(self, statements: "_Statements") -> None:
        """Raises `asyncpg.LockNotAvailableError` if another session has locked a table: smaller batches would wait as long."""
        async with borrow(self._pool) as connection:
            try:
                await connection.execute(self._row_sql["begin"], timeout=self._timeout)
                # The limit for locks has to end first, also where the user's `statement_timeout` is shorter.
                await connection.execute("set local statement_timeout = 0", timeout=self._timeout)
                no_row = self._arguments(statements, -1)
                await connection.fetch(statements.sql["hand_over_single"], *no_row, timeout=LONGEST_STATEMENT.total_seconds())
            finally:
                await roll_back_quietly(connection)

    async def _hand_over_by_priority(self, statements: "_Statements", limit: int, handed: list[HandedMessage]) -> None:
        await self._scheduler.share(
            limit,
            unkeyed=partial(self._hand_over_unkeyed, statements, handed),
            keyed=partial(self._hand_over_lanes, statements, handed),
        )

    async def _hand_over_unkeyed(
        self, statements: "_Statements", handed: list[HandedMessage], limit: int, *, fair: bool, lean: bool
    ) -> UnkeyedBatch[HandedMessage]:
        """Hands over rows without ordering keys in one statement; see `outbox.postgres.claiming.ClaimUnkeyed`.

        Halves the batch if the database cannot take a row of it, until that row is alone.
        """
        try:
            if lean:
                rows = await self._unkeyed_rows(statements, "hand_over_lean", limit, *self._positions.cursor)
                return UnkeyedBatch(self._collect(rows, handed))
            start = self._positions.start()
            rows = await self._unkeyed_rows(statements, "hand_over_fair" if fair else "hand_over", limit, start.argument)
            self._positions.record_claim(start, rows)
            return UnkeyedBatch(self._collect(rows, handed), lowest_reached(rows), plain=not rows[0]["deduplicated"])
        except _ROW_ERRORS as error:
            if not self._should_isolate_row(error, statements, limit):
                raise
            if limit > 1:
                return await self._hand_over_unkeyed(statements, handed, limit // 2, fair=fair, lean=False)
            single = await self._hand_over_single(statements, error, fair=fair)
            handed += single
            # Without such a row the tables are locked. A hand-over of rows with keys, which waits less, finds that out.
            return UnkeyedBatch(single, keyed_after=None if single else 0, full=bool(single))

    def _should_isolate_row(self, error: asyncpg.PostgresError, statements: "_Statements", limit: int) -> bool:
        """Whether `error` is a reason to look for the row that caused it."""
        # A statement that was too slow is retried with fewer rows; a single row then gets much more time.
        if isinstance(error, asyncpg.QueryCanceledError):
            return limit == 1 and self._sizes.is_reduced
        # While the history is written, the error may come from there: `hand_over` first tries without it.
        return statements.component is None

    async def _unkeyed_rows(
        self, statements: "_Statements", name: str, limit: int, *start: Sequence[float]
    ) -> Sequence[asyncpg.Record]:
        """Runs the hand-over `name`, which starts reading at `start`, commits, and returns its rows."""
        async with self._transaction(BEGIN) as connection:
            return await self._fetch(connection, statements.sql[name], limit, *self._arguments(statements, limit), *start)

    @asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[Connection]:
        """Runs the block in a transaction that the statement `begin` begins, on a connection of its own."""
        async with borrow(self._pool) as connection:
            try:
                await connection.execute(begin, timeout=self._timeout)
                yield connection
                await connection.execute("commit", timeout=self._timeout)
            except BaseException:
                await roll_back_quietly(connection)
                raise

    def _arguments(self, statements: "_Statements", limit: int) -> _Arguments:
        """Arguments of every kind of hand-over. For `hand_over_single`, `limit` is the id of the row."""
        bounds = (self._sizes.max_bytes, statements.component, self.max_body_bytes)
        return (self._exchange_name, limit, *statements.arguments, *bounds)

    async def _fetch(self, connection: Connection, statement: str, limit: int, *arguments: object) -> Sequence[asyncpg.Record]:
        """Runs `statement` within the current transaction, with the time limit for `limit` rows."""
        async with cancel_on_timeout(connection):
            timeout = self._time_limit(limit).total_seconds()
            return await connection.fetch(statement, *arguments, timeout=timeout)

    def _time_limit(self, limit: int) -> timedelta:
        return self._sizes.timeout(limit, self._longest_statement)

    async def _hand_over_single(
        self, statements: "_Statements", error: asyncpg.PostgresError, *, fair: bool
    ) -> Sequence[HandedMessage]:
        """Hands over the next due row alone, after a batch with it failed with `error`."""
        async with self._transaction(self._row_sql["begin"]) as connection:
            found = await connection.fetch(self._row_sql["claim_unread"], fair, timeout=self._timeout)
            return await self._hand_over_or_refuse(connection, statements, found, error)

    async def _hand_over_or_refuse(
        self,
        connection: Connection,
        statements: "_Statements",
        rows: Sequence[asyncpg.Record],
        error: asyncpg.PostgresError,
        *,
        ordered: bool = False,
    ) -> list[HandedMessage]:
        """Hands over the one row that this transaction has locked, or records why that is not possible."""
        if not rows:
            return []
        [row] = rows
        was_cancelled = isinstance(error, asyncpg.QueryCanceledError)
        await connection.execute("savepoint single", timeout=self._timeout)
        try:
            if was_cancelled:
                # By the user's `statement_timeout` perhaps, or while another session had locked the tables of the queues. Here
                # waits for locks have a limit of their own, so that only a row that is slow itself takes too long once more.
                limit = self._time_limit(1) * 0.9  # the server's, so that the transaction can go on
                await connection.execute(
                    f"set local statement_timeout = {limit // timedelta(milliseconds=1)}", timeout=self._timeout
                )
            # Another relay may have claimed the row that caused the error meanwhile. This one may be a different row.
            arguments = self._arguments(statements, row["id"])
            handed = await self._fetch(connection, statements.sql["hand_over_single"], 1, *arguments)
            return [_to_message(each, ordered=ordered) for each in handed if each["row_id"] is not None]
        except asyncpg.QueryCanceledError:
            if not was_cancelled:
                raise  # `cancel_on_timeout` has ended the transaction; smaller hand-overs follow
        except _ROW_ERRORS as own_error:
            error = own_error
        await connection.execute("rollback to savepoint single", timeout=self._timeout)
        return [await self._refuse(connection, row, error, ordered=ordered)]

    async def _refuse(
        self, connection: Connection, row: asyncpg.Record, error: asyncpg.PostgresError, *, ordered: bool
    ) -> HandedMessage:
        failure = Failure(type(error).__name__, str(error))
        outcome: Retry | Dead
        if self._retry is None or isinstance(error, asyncpg.QueryCanceledError):
            # No retry for a row that takes too long alone: each one would delay all other rows for as long.
            outcome = Dead(Cause.REFUSED, failure)
        else:
            outcome = self._retry.decide(failure, attempt=row["attempts"] + 1, now=datetime.now(UTC), expires_at=None)
        text = Storable(connection.get_settings().server_encoding).text(str(failure))
        if isinstance(outcome, Retry):
            await connection.execute(self._row_sql["retry"], [row["id"]], [text], [outcome.delay], timeout=self._timeout)
        else:
            await connection.execute(self._row_sql["park"], [row["id"]], [text], timeout=self._timeout)
        return HandedMessage(
            row_id=row["id"],
            id=str(row["id"]),
            routing_key="",
            state=HandoverState.REFUSED,
            was_held=False,
            age=timedelta(0),
            ordered=ordered,
            refused=outcome,
        )

    def _collect(self, rows: Sequence[asyncpg.Record], handed: list[HandedMessage]) -> Sequence[HandedMessage]:
        """Adds the messages of `rows` to `handed` and returns them. The next lean hand-over starts after the last one."""
        last = rows[-1]
        if last["row_id"] is None:
            return ()
        self._positions.advance(last, last["row_id"])
        messages = [_to_message(row) for row in rows]
        handed += messages
        return messages

    async def _hand_over_lanes(
        self, statements: "_Statements", handed: list[HandedMessage], limit: int
    ) -> Sequence[HandedMessage]:
        """Hands over the first rows of some lanes in one transaction; halves the batch if the database cannot take a row."""
        async with borrow(self._pool) as connection:
            try:
                rows = await self._lane_rows(connection, statements, limit)
                messages: list[HandedMessage] | None = [_to_message(row, ordered=True) for row in rows]
            except _ROW_ERRORS as error:
                await roll_back_quietly(connection)
                if not self._should_isolate_row(error, statements, limit):
                    raise
                messages = None if limit > 1 else await self._hand_over_single_head(connection, statements, error)
            except BaseException:
                await roll_back_quietly(connection)
                raise
        # Outside of the block, so that the connection is back before the next attempt borrows one.
        if messages is None:
            return await self._hand_over_lanes(statements, handed, limit // 2)
        handed += messages
        return messages

    async def _hand_over_single_head(
        self, connection: Connection, statements: "_Statements", error: asyncpg.PostgresError
    ) -> list[HandedMessage]:
        """Hands over the first row of one lane. If that fails, the rows behind it wait or go on, as the lane's policy says."""
        try:
            await connection.execute(self._lanes.sql["begin"], timeout=self._timeout)
            runs = await self._lanes.take(connection, 1)
            rows = () if runs is None else await self._lanes.claim_head_unread(connection, runs)
            messages = await self._hand_over_or_refuse(connection, statements, rows, error, ordered=True)
            if lanes := [lane_of(row) for row in rows]:
                await self._lanes.release(connection, lanes)
            await connection.execute("commit", timeout=self._timeout)
            return messages
        except BaseException:
            await roll_back_quietly(connection)
            raise

    async def _lane_rows(self, connection: Connection, statements: "_Statements", limit: int) -> Sequence[asyncpg.Record]:
        """Hands over the first rows of some lanes, commits, and returns the results."""
        for look in range(MOST_LOOKS):
            await self._lanes.mark_waiting(connection)
            await connection.execute(self._lanes.sql["begin_keeping_plans"], timeout=self._timeout)
            runs = await self._lanes.take(connection, limit)
            rows: Sequence[asyncpg.Record] = ()
            # Rows of a few lanes can hide all others from the scan. The last look takes what there is, so that this ends.
            if runs is None or (self._lanes.crowded and look < MOST_LOOKS - 1):
                await connection.execute("rollback", timeout=self._timeout)
            else:
                rows = await self._fetch(
                    connection,
                    statements.sql["hand_over_keyed"],
                    limit,
                    *self._arguments(statements, limit),
                    *(runs.numbers, runs.policies, runs.longest),
                )
                policies = dict(zip(runs.numbers, runs.policies, strict=True))
                if blocked := [Lane(number, OrderingPolicy(policies[number])) for number in rows[0]["blocked"]]:
                    await self._lanes.release(connection, blocked)
                await connection.execute("commit", timeout=self._timeout)
                rows = [row for row in rows if row["row_id"] is not None]
            if rows or not self._lanes.has_waiting:
                return rows
        return ()


@dataclass(frozen=True, slots=True)
class _Statements:
    """Statements of one hand-over, the arguments common to them, and the component to name in the history, if it is written."""

    sql: Mapping[str, str]
    arguments: _Arguments
    component: str | None = None


def handover_queries(tables: TransportTables, history: str | None = None) -> Mapping[str, str]:
    """Returns the statement of each kind of hand-over. They also write to the table `history`, if given.

    `hand_over_lean` skips rows with dedup keys. `hand_over_single` takes the id of a row in place of the limit.
    """
    steps = {
        **tables.queries("routing.sql"),
        **tables.queries("handover.sql", history=history or "", trace_id=trace_id_in("headers")),
    }
    if history is None:
        steps["recorded"] = steps["unrecorded"]
    statements = {}
    for kind, names in _KINDS.items():
        *first, last = (steps[name] for name in names)
        statements[kind] = "with " + ",\n".join(first) + "\n" + last
    return statements


def too_large(limit: int) -> Failure:
    """The failure of a message with more than `limit` bytes. The text is the one that `handover.sql` stores."""
    return Failure("too large", f"the message has more than the {limit} bytes of max_body_bytes")


MOST_KEYS = 1_000
"""Most held routing keys whose probe intervals are kept in memory. Further keys start with `LONGEST_PROBE`."""
_OUTCOMES: dict[HandoverState, RelayOutcome] = {
    HandoverState.SENT: DONE,
    HandoverState.DROPPED: DROPPED,
    HandoverState.HELD: Held(),
    HandoverState.PARKED: Dead(Cause.REFUSED, NO_QUEUE),
}
_TYPES = {
    HandoverState.TOO_LARGE: SendFailureType.REFUSED,
    HandoverState.REFUSED: SendFailureType.REFUSED,
}


class HandoverRounds:
    """Implements `outbox.engine.rounds.Rounds` with hand-overs. A round is committed when `start` returns it."""

    def __init__(self, handover: PostgresHandover, *, exchange_name: str) -> None:
        self._handover = handover
        self._exchange_name = exchange_name
        self._intervals: OrderedDict[str, timedelta] = OrderedDict()

    async def connect(self) -> None:
        """See `outbox.engine.rounds.Rounds.connect`."""

    async def start(self, limit: int) -> "FinishedRound | None":
        """See `outbox.engine.rounds.Rounds.start`."""
        longer = {key: min(interval * 2, LONGEST_PROBE) for key, interval in self._intervals.items()}
        first = FIRST_PROBE if len(longer) < MOST_KEYS else LONGEST_PROBE
        handed = await self._handover.hand_over(limit, probe_delays=longer, first_probe=first)
        if not handed.messages:
            return None
        sent: list[SentMessage] = []
        failed: list[SendFailed] = []
        released: dict[Way, None] = {}
        for message in handed.messages:
            key = message.routing_key
            if message.state is HandoverState.SENT:
                sent.append(
                    SentMessage(message.id, key, message.age, scheduled=message.scheduled, traceparent=message.traceparent)
                )
                # Other held rows may wait for this success. Intervals are kept by routing key only, so for messages with a
                # target queue `was_held` alone shows it.
                interval = self._intervals.pop(key, None) if message.queue is None else None
                if interval is not None or message.was_held:
                    released[Way(key, message.queue)] = None
                continue
            failed.append(self._to_send_failed(message))
            if message.state is HandoverState.HELD and message.queue is None:
                # Only the probe doubles the interval. Rows that are held for the first time say nothing new about the key.
                interval = self._intervals.get(key)
                if message.was_held and interval is not None:
                    interval = min(interval * 2, LONGEST_PROBE)
                self._intervals[key] = interval or first
                if len(self._intervals) > MOST_KEYS:
                    self._intervals.popitem(last=False)
        return FinishedRound(
            RoundReport(
                taken=len(handed),
                sent=sent,
                failed=failed,
                released=tuple(released),
                ordered=any(message.ordered for message in handed.messages),
            )
        )

    async def start_probe(self) -> None:
        """See `outbox.engine.rounds.Rounds.start_probe`. Never returns: within one database no route stalls."""
        await asyncio.get_running_loop().create_future()

    async def find_stalled(self) -> StalledRoutes:
        """See `outbox.engine.rounds.Rounds.find_stalled`."""
        return StalledRoutes()

    def _to_send_failed(self, message: HandedMessage) -> SendFailed:
        outcome: RelayOutcome
        if message.refused is not None:
            outcome = message.refused
        elif message.state is HandoverState.TOO_LARGE:
            outcome = Dead(Cause.REFUSED, too_large(self._handover.max_body_bytes))
        elif message.state is HandoverState.HELD and message.queue is None and not message.was_held:
            # Only the first held message of a key is reported with an interval: it is the probe that the others wait for.
            outcome = Held(None if message.routing_key in self._intervals else FIRST_PROBE)
        else:
            outcome = _OUTCOMES[message.state]
        return SendFailed(
            exchange_name=self._exchange_name,
            message_id=message.id,
            routing_key=message.routing_key,
            type=_TYPES.get(message.state, SendFailureType.UNROUTABLE),
            failure=outcome.failure if isinstance(outcome, Retry | Dead) else NO_QUEUE,
            outcome=outcome,
            was_held=message.was_held,
        )


@dataclass(frozen=True, slots=True)
class FinishedRound:
    """A round that is committed already, and only has to be reported."""

    report: RoundReport

    async def finish(self) -> RoundReport:
        """See `outbox.engine.rounds.Round.finish`."""
        return self.report

    async def abandon(self) -> None:
        """See `outbox.engine.rounds.Round.abandon`. Nothing is left to give back."""


async def same_database(one: Pool, other: Pool) -> bool:
    """Whether both pools connect to the same database. Raises `DatabaseUnavailableError`."""
    if one is other:
        return True
    # Names and addresses prove nothing: a proxy or a DNS alias may lead to the same database. No two servers were started in
    # the same microsecond, copies of one included. One connection after the other: if relays that start together each held
    # one and waited for another, none would get it from a pooler with few sessions.
    found: list[tuple[object, ...]] = []
    with unavailable_errors("comparing the outbox's database with the broker's"):
        for pool in (one, other, one):  # the server may be restarted meanwhile
            async with taken_from(pool) as connection, connection.transaction():
                found += map(tuple, await connection.fetch(_IDENTITY))
    return found[1] in (found[0], found[2])


async def require_tables(pool: Pool, tables: TransportTables) -> None:
    """Raises `SchemaError` that names the first missing table of the transport."""
    names = (tables.delivery, tables.subscription, tables.dead_letter)
    for name in names:
        if await pool.fetchval("select pg_catalog.to_regclass($1) is null", name.sql):
            raise SchemaError(f"the table {name} does not exist: create it with `outbox migrate` or ensure_outbox_schema_async")


def _to_message(row: asyncpg.Record, *, ordered: bool = False) -> HandedMessage:
    return HandedMessage(
        row_id=row["row_id"],
        id=row["message_id"],
        routing_key=row["routing_key"],
        state=_STATES[row["state"]],
        was_held=row["was_held"],
        age=timedelta(seconds=min(max(row["age_seconds"], 0.0), _LONGEST_AGE)),
        ordered=ordered,
        queue=row["target_queue"],
        scheduled=timedelta(seconds=min(max(row["scheduled_seconds"] or 0.0, 0.0), _LONGEST_AGE)),
        traceparent=row["traceparent"],
    )
