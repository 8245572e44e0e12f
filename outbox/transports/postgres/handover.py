"""Handing over: when the queues are in the outbox's own database, one statement takes, sends and settles a batch."""

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
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
from outbox.postgres.deaths import Storable
from outbox.postgres.history import SentFacts
from outbox.postgres.index_positions import PRIORITIES, IndexPositions, ScanStart
from outbox.postgres.ordering import Lanes, lane_of
from outbox.postgres.pool import DRIVER_ERRORS, Connection, Pool, roll_back_quietly, taken_from, unavailable_errors
from outbox.postgres.queries import TableName
from outbox.retry import RetryPolicy
from outbox.transports.postgres.tables import Statements, TransportTables, borrowed, cancelling

LONGEST_STATEMENT = timedelta(seconds=30)
"""After this a hand-over is cancelled; nothing has happened then."""
_ROW_ERRORS = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.PLPGSQLError,
    asyncpg.InternalServerError,
    asyncpg.OutOfMemoryError,
    asyncpg.QueryCanceledError,
)
"""What the server, or a trigger, says of a row, or when one takes too much; not what the server says of itself."""
_log = logging.getLogger("outbox")
_ROUTING = ("address", "routes", "routed")
_UNORDERED = (*_ROUTING, "message", "told", "delivered", "settled")
_ORDERED = (*_ROUTING, "message_in_line", "told", "delivered_in_line", "settled")
_KINDS = {
    "hand_over": ("claim", "measured", "superseded", *_UNORDERED, "shown"),
    "hand_over_fair": ("claim_fair", "measured", "superseded", *_UNORDERED, "shown"),
    "hand_over_lean": ("claim_lean", "measured", "not_superseded", *_UNORDERED, "shown_lean"),
    "hand_over_keyed": ("claim_lanes", "measured", "superseded", *_ORDERED, "shown_in_line"),
    "hand_over_single": ("claim_one", "measured", "superseded", *_UNORDERED, "shown_lean"),
}
"""The steps of each kind of hand-over, which are blocks of `handover.sql`."""
_LONGEST_AGE = timedelta(days=365_000).total_seconds()
_Arguments = tuple[object, ...]


class HandedState(StrEnum):
    """What became of a row of the outbox."""

    SENT = "sent"
    HELD = "held"
    DROPPED = "dropped"
    PARKED = "parked"
    TOO_LARGE = "too_large"
    REFUSED = "refused"


_STATES = {state.value: state for state in HandedState}


@light_value()
class HandedMessage:
    """One row that was due: what became of it, how old it was, and whether it had been held before; `ordered` by a key.

    `scheduled` is how long after its creation it was due.
    """

    row_id: int
    id: str
    routing_key: str
    state: HandedState
    was_held: bool
    age: timedelta
    ordered: bool = False
    queue: str | None = None
    """The one that it is for alone."""
    refused: Retry | Dead | None = None
    """What becomes of it, if the database could not take it."""
    scheduled: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What one hand-over did, committed; `messages` are in the order in which they were due."""

    messages: Sequence[HandedMessage]

    def __len__(self) -> int:
        return len(self.messages)

    def having(self, state: HandedState) -> list[HandedMessage]:
        """The messages that ended in `state`."""
        return [message for message in self.messages if message.state is state]


class PostgresHandover:
    """Moves due rows of `table` to the queues bound to `exchange_name`, in the same database.

    Sent rows are deleted, or kept with `sent_at` if `keep_sent`. Rows that no queue wants are held, or, with
    `drop_unroutable`, treated as sent. `default_expiration` is that of rows without one. Any number of hand-overs may run at
    once. `scan_start` is where they begin to read, shared with the task that looks for what is due next.

    What takes longer than `longest_statement` is undone, and smaller hand-overs follow. A row that the database cannot take is
    found by halves: it backs off as `retry` says, at last it is parked, and the others go on. `byte_limits` says how much is
    moved at once, and what is too large to be moved.
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
        self._statements = Statements(pool)
        self._retry = retry
        self._longest_statement = longest_statement
        self._sizes = BatchSizes(byte_limits.batch)
        self.max_body_bytes = byte_limits.body
        self._tables = TransportTables(table)
        self._exchange_name = exchange_name
        self._keep_sent = keep_sent
        self._default_expiration = default_expiration
        self._drop_unroutable = drop_unroutable
        self._facts = facts
        self._sql = handover_queries(self._tables)
        self._told_sql = self._sql if facts is None else handover_queries(self._tables, facts.history)
        self._row_sql = outbox_queries(table, longest_send=ALONE_TIMEOUT)
        self._scheduler = PriorityScheduler()
        self._lanes = Lanes(table, ordering)
        self._positions = IndexPositions(scan_start or ScanStart(PRIORITIES), self._lanes.scan_start)

    async def check(self) -> None:
        """Raises `SchemaError` if a table of the transport is missing, and `DatabaseUnavailableError`."""
        with unavailable_errors("looking for the tables of the Postgres transport"):
            await require_tables(self._pool, self._tables)

    async def hand_over(
        self, limit: int, *, probe_delays: Mapping[str, timedelta] | None = None, first_probe: timedelta = FIRST_PROBE
    ) -> HandedOver:
        """Hands over up to `limit` due rows, in one statement and atomically.

        A message is in every queue that wants it and gone from the outbox, or nothing happened to it. Unroutable rows are held:
        one of each routing key is due again after its entry in `probe_delays`, else after `first_probe`, the others when they
        are released. One that takes too long hands over nothing, and the next one is smaller. Raises
        `DatabaseUnavailableError`; whether it happened is unknown then, and asking again is safe.
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
        handed: list[HandedMessage] = []
        with unavailable_errors(f"handing over from {self._tables.outbox}", limit=LONGEST_STATEMENT):
            try:
                if (facts := self._facts) is None or not facts.wanted:
                    await self._hand_over_in_turn(_Statements(self._sql, arguments), rows, handed)
                else:
                    try:
                        await self._hand_over_in_turn(_Statements(self._told_sql, arguments, facts.component), rows, handed)
                    except asyncpg.QueryCanceledError:
                        raise
                    except asyncpg.PostgresError as error:
                        # Rather without its history than not at all.
                        before = len(handed)
                        await self._hand_over_in_turn(_Statements(self._sql, arguments), rows, handed)
                        facts.lost(len(handed) - before, error)
                self._sizes.in_time()
            except asyncpg.QueryCanceledError:
                # The database is there, and nothing of the statement happened.
                self._sizes.too_slow(rows)
                _log.warning(
                    "handing over %d messages from %s took too long and was undone: fewer are handed over at once for a while",
                    rows,
                    self._tables.outbox,
                )
            except DRIVER_ERRORS:
                if not handed:  # otherwise a part is committed, and the rest is tried again
                    raise
        return HandedOver(handed)

    async def _hand_over_in_turn(self, statements: "_Statements", limit: int, handed: list[HandedMessage]) -> None:
        await self._scheduler.share(
            limit,
            unkeyed=partial(self._hand_over_unkeyed, statements, handed),
            keyed=partial(self._hand_over_lanes, statements, handed),
        )

    async def _hand_over_unkeyed(
        self, statements: "_Statements", handed: list[HandedMessage], limit: int, *, fair: bool, lean: bool
    ) -> UnkeyedBatch[HandedMessage]:
        """Rows without ordering keys, in one statement; see `outbox.postgres.claiming.ClaimUnkeyed`.

        If one of them cannot be taken, half of them, and at last that one alone.
        """
        try:
            if lean:
                rows = await self._unkeyed_rows(statements, "hand_over_lean", limit, *self._positions.cursor)
                return UnkeyedBatch(self._noted(rows, handed))
            start = self._positions.start()
            rows = await self._unkeyed_rows(statements, "hand_over_fair" if fair else "hand_over", limit, start.argument)
            self._positions.record_claim(start, rows)
            return UnkeyedBatch(self._noted(rows, handed), lowest_reached(rows), plain=not rows[0]["deduplicated"])
        except _ROW_ERRORS as error:
            if not self._blames_rows(error, statements, limit):
                raise
            if limit > 1:
                return await self._hand_over_unkeyed(statements, handed, limit // 2, fair=fair, lean=False)
            single = await self._hand_over_single(statements, error, fair=fair)
            handed += single
            return UnkeyedBatch(single, full=True)

    def _blames_rows(self, error: asyncpg.PostgresError, statements: "_Statements", limit: int) -> bool:
        """Whether rows are looked at one by one after `error`. Before that the history is left out, which may be to blame, too.

        A statement that took too long is made smaller first, and then has much more time.
        """
        if isinstance(error, asyncpg.QueryCanceledError):
            return limit == 1 and self._sizes.alone
        return statements.component is None

    async def _unkeyed_rows(
        self, statements: "_Statements", name: str, limit: int, *places: Sequence[float]
    ) -> Sequence[asyncpg.Record]:
        """What the hand-over of that name shows, which begins at `places`."""
        arguments = (*self._arguments(statements, limit), *places)
        return await self._statements.fetch(statements.sql[name], *arguments, timeout=self._time_limit(limit))

    def _arguments(self, statements: "_Statements", limit: int) -> _Arguments:
        """What every kind of hand-over takes, of up to `limit` rows; or, for the single one, of the row with that id."""
        bounds = (self._sizes.max_bytes, statements.component, self.max_body_bytes)
        return (self._exchange_name, limit, *statements.arguments, *bounds)

    async def _fetch(self, connection: Connection, statement: str, limit: int, *arguments: object) -> Sequence[asyncpg.Record]:
        """In a transaction, for so many rows."""
        async with cancelling(connection):
            timeout = self._time_limit(limit).total_seconds()
            return await connection.fetch(statement, *arguments, timeout=timeout)

    def _time_limit(self, limit: int) -> timedelta:
        return self._sizes.timeout(limit, self._longest_statement)

    async def _hand_over_single(
        self, statements: "_Statements", error: asyncpg.PostgresError, *, fair: bool
    ) -> Sequence[HandedMessage]:
        """The row that is first in line, of which several or one could not be handed over because of `error`."""
        sql, seconds = self._row_sql, self._longest_statement.total_seconds()
        async with borrowed(self._pool) as connection:
            try:
                await connection.execute(sql["begin"], timeout=seconds)
                found = await connection.fetch(sql["claim_unread"], fair, timeout=seconds)
                messages = await self._taken_or_refused(connection, statements, found, error)
                await connection.execute("commit", timeout=seconds)
                return messages
            except BaseException:
                await roll_back_quietly(connection)
                raise

    async def _taken_or_refused(
        self,
        connection: Connection,
        statements: "_Statements",
        rows: Sequence[asyncpg.Record],
        error: asyncpg.PostgresError,
        *,
        ordered: bool = False,
    ) -> list[HandedMessage]:
        """Hands over the one row that this transaction has locked, or writes down why that is not possible."""
        if not rows:
            return []
        [row] = rows
        if not isinstance(error, asyncpg.QueryCanceledError):
            # Another relay may have taken the row that could not be: then this one can.
            await connection.execute("savepoint single")
            try:
                arguments = self._arguments(statements, row["id"])
                handed = await self._fetch(connection, statements.sql["hand_over_single"], 1, *arguments)
                return [_handed(each, ordered=ordered) for each in handed if each["row_id"] is not None]
            except asyncpg.QueryCanceledError:
                raise  # the transaction is over, and smaller hand-overs follow
            except _ROW_ERRORS as its_own:
                await connection.execute("rollback to savepoint single")
                error = its_own
        return [await self._refused(connection, row, error, ordered=ordered)]

    async def _refused(
        self, connection: Connection, row: asyncpg.Record, error: asyncpg.PostgresError, *, ordered: bool
    ) -> HandedMessage:
        failure = Failure(type(error).__name__, str(error))
        outcome: Retry | Dead
        if self._retry is None or isinstance(error, asyncpg.QueryCanceledError):
            # What took too long alone is not tried again by itself: it would hold up the others for as long each time.
            outcome = Dead(Cause.REFUSED, failure)
        else:
            outcome = self._retry.decide(failure, attempt=row["attempts"] + 1, now=datetime.now(UTC), expires_at=None)
        text = Storable(connection.get_settings().server_encoding).text(str(failure))
        if isinstance(outcome, Retry):
            await connection.execute(self._row_sql["retry"], [row["id"]], [text], [outcome.delay])
        else:
            await connection.execute(self._row_sql["park"], [row["id"]], [text])
        return HandedMessage(
            row_id=row["id"],
            id=str(row["id"]),
            routing_key="",
            state=HandedState.REFUSED,
            was_held=False,
            age=timedelta(0),
            ordered=ordered,
            refused=outcome,
        )

    def _noted(self, rows: Sequence[asyncpg.Record], handed: list[HandedMessage]) -> Sequence[HandedMessage]:
        """The messages of the rows, which are added to `handed`; the last one is where a lean hand-over goes on."""
        last = rows[-1]
        if last["row_id"] is None:
            return ()
        self._positions.advance(last, last["row_id"])
        messages = [_handed(row) for row in rows]
        handed += messages
        return messages

    async def _hand_over_lanes(
        self, statements: "_Statements", handed: list[HandedMessage], limit: int
    ) -> Sequence[HandedMessage]:
        """The first rows of some lanes, in one transaction; fewer of them if one cannot be taken."""
        async with borrowed(self._pool) as connection:
            try:
                rows = await self._lane_rows(connection, statements, limit)
                messages = [_handed(row, ordered=True) for row in rows]
            except _ROW_ERRORS as error:
                await roll_back_quietly(connection)
                if not self._blames_rows(error, statements, limit):
                    raise
                messages = [] if limit > 1 else await self._hand_over_single_head(connection, statements, error)
                halved = limit > 1
            except BaseException:
                await roll_back_quietly(connection)
                raise
            else:
                halved = False
        if halved:
            return await self._hand_over_lanes(statements, handed, limit // 2)
        handed += messages
        return messages

    async def _hand_over_single_head(
        self, connection: Connection, statements: "_Statements", error: asyncpg.PostgresError
    ) -> list[HandedMessage]:
        """The first row of one lane; if it cannot be taken it is an obstacle for those behind it, as their policy says."""
        try:
            await connection.execute(self._lanes.sql["begin"])
            runs = await self._lanes.take(connection, 1)
            rows = () if runs is None else await self._lanes.claim_head_unread(connection, runs)
            messages = await self._taken_or_refused(connection, statements, rows, error, ordered=True)
            if lanes := [lane_of(row) for row in rows]:
                await self._lanes.release(connection, lanes)
            await connection.execute("commit")
            return messages
        except BaseException:
            await roll_back_quietly(connection)
            raise

    async def _lane_rows(self, connection: Connection, statements: "_Statements", limit: int) -> Sequence[asyncpg.Record]:
        """What became of the first rows of some lanes, committed. Clears the view of lanes, if necessary, before each look."""
        timeout = self._longest_statement.total_seconds()
        for look in range(MOST_LOOKS):
            await self._lanes.make_way(connection)
            await connection.execute(self._lanes.sql["begin"], timeout=timeout)
            runs = await self._lanes.take(connection, limit)
            rows: Sequence[asyncpg.Record] = ()
            # With few lanes in view it looks again, but not for ever: the last look takes what there is.
            if runs is None or (self._lanes.crowded and look < MOST_LOOKS - 1):
                await connection.execute("rollback", timeout=timeout)
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
                await connection.execute("commit", timeout=timeout)
                rows = [row for row in rows if row["row_id"] is not None]
            if rows or not self._lanes.obstructed:
                return rows
        return ()


@dataclass(frozen=True, slots=True)
class _Statements:
    """The statements of one hand-over, the arguments that all of them take, and whom the history names, if it is told."""

    sql: Mapping[str, str]
    arguments: _Arguments
    component: str | None = None


def handover_queries(tables: TransportTables, history: str | None = None) -> Mapping[str, str]:
    """The statement of each kind of hand-over; all tell the table `history`, if given.

    The lean one leaves rows with dedup keys alone, and looks for nothing else. The single one takes an id, not a limit.
    """
    steps = {**tables.queries("routing.sql"), **tables.queries("handover.sql", history=history or "")}
    if history is None:
        steps["told"] = steps["untold"]
    statements = {}
    for kind, names in _KINDS.items():
        *first, last = (steps[name] for name in names)
        statements[kind] = "with " + ",\n".join(first) + "\n" + last
    return statements


def too_large(limit: int) -> Failure:
    """Why a message is parked that has more bytes than that, as `handover.sql` writes it down."""
    return Failure("too large", f"the message has more than the {limit} bytes of max_body_bytes")


MOST_KEYS = 1_000
"""Held routing keys whose probe intervals are remembered. Once there are as many, others probe at `LONGEST_PROBE` at once."""
_OUTCOMES: dict[HandedState, RelayOutcome] = {
    HandedState.SENT: DONE,
    HandedState.DROPPED: DROPPED,
    HandedState.HELD: Held(),
    HandedState.PARKED: Dead(Cause.REFUSED, NO_QUEUE),
}
_TYPES = {
    HandedState.TOO_LARGE: SendFailureType.REFUSED,
    HandedState.REFUSED: SendFailureType.REFUSED,
}


class HandoverRounds:
    """Implements Rounds with a hand-over. By the time a round is returned it is committed."""

    def __init__(self, handover: PostgresHandover, *, exchange_name: str) -> None:
        self._handover = handover
        self._exchange_name = exchange_name
        self._intervals: OrderedDict[str, timedelta] = OrderedDict()

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
            if message.state is HandedState.SENT:
                sent.append(SentMessage(message.id, key, message.age, scheduled=message.scheduled))
                # Whether others wait for the success of this one. Of those for one queue alone only they themselves know.
                interval = self._intervals.pop(key, None) if message.queue is None else None
                if interval is not None or message.was_held:
                    released[Way(key, message.queue)] = None
                continue
            failed.append(self._failed(message))
            if message.state is HandedState.HELD and message.queue is None:
                # The interval doubles when the key's probe came back.
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
        """See `outbox.engine.rounds.Rounds.start_probe`. No route stalls within one database."""
        await asyncio.get_running_loop().create_future()

    async def look_for_stalled(self) -> StalledRoutes:
        """See `outbox.engine.rounds.Rounds.look_for_stalled`."""
        return StalledRoutes()

    def _failed(self, message: HandedMessage) -> SendFailed:
        outcome: RelayOutcome
        if message.refused is not None:
            outcome = message.refused
        elif message.state is HandedState.TOO_LARGE:
            outcome = Dead(Cause.REFUSED, too_large(self._handover.max_body_bytes))
        elif message.state is HandedState.HELD and message.queue is None and not message.was_held:
            # The first of its key that is found so is reported with an interval; the others wait for that one, silently.
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
    """A round with nothing left to do but to tell of it."""

    report: RoundReport

    async def finish(self) -> RoundReport:
        """See `outbox.engine.rounds.Round.finish`."""
        return self.report

    async def abandon(self) -> None:
        """See `outbox.engine.rounds.Round.abandon`; there is nothing left to give back."""


async def same_database(one: Pool, other: Pool) -> bool:
    """Whether both pools lead to one database, under whatever names and through whatever proxies.

    Takes a random advisory lock through one and looks whether it is taken through the other: such locks belong to one
    database of one running server, and need no permission. Raises `DatabaseUnavailableError`.
    """
    if one is other:
        return True
    key, free = secrets.randbits(63), True
    with unavailable_errors("comparing the outbox's database with the broker's"):
        async with AsyncExitStack() as held:
            for pool in (one, other):
                connection = await held.enter_async_context(taken_from(pool))
                await held.enter_async_context(connection.transaction())
                free = await connection.fetchval("select pg_catalog.pg_try_advisory_xact_lock($1)", key)
            return not free


async def require_tables(pool: Pool, tables: TransportTables) -> None:
    """Raises `SchemaError`, naming the first table of the transport that is missing."""
    names = (tables.delivery, tables.subscription, tables.dead_letter)
    for name in names:
        if await pool.fetchval("select pg_catalog.to_regclass($1) is null", name.sql):
            raise SchemaError(f"the table {name} does not exist: create it with `outbox migrate` or ensure_outbox_schema_async")


def _handed(row: asyncpg.Record, *, ordered: bool = False) -> HandedMessage:
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
    )
