"""The doorbell: wakes sleeping relays and workers when rows come, and costs writers next to nothing while none sleeps.

Sleepers share the *asleep* locks. The table's trigger tries one of them exclusively for an instant, and notifies only if it
cannot have it. Before that it takes a share of the *in-flight* lock until its transaction ends. Who goes to sleep first
takes the asleep locks and then tries the in-flight lock: if no writer has a share, every later one will notify, and a look at
the table finds whatever was committed before. If one has, that writer may not notify, so the lock is tried again, at growing
intervals, until it is free; then the sleeper looks again. No statement waits in line for a lock. See
docs/decisions/0144-sleepers-share-a-lock.md.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from outbox.core.events import WakeMode, WakeModeChanged
from outbox.engine.lifecycle import Pauses
from outbox.errors import DatabaseUnavailableError, SchemaError
from outbox.ports import Observer
from outbox.postgres.pool import DRIVER_ERRORS, Connect, Connection, unavailable_errors
from outbox.postgres.queries import BellName, TableName

REBUILD_PAUSE = timedelta(milliseconds=500)
"""Wait before a lost listening connection is opened again."""
LISTEN_RETRY = timedelta(seconds=30)
"""Wait before LISTEN is tried again where it did not deliver."""
LOOPBACK_TIMEOUT = timedelta(seconds=2)
"""Longest wait for a notification to oneself; without it LISTEN counts as not delivering."""
HEARTBEAT = timedelta(seconds=10)
"""How often the listening connection is asked for an answer: one that was lost in silence is not reported."""
ANSWER_TIMEOUT = timedelta(seconds=3)
"""Longest wait for the server's answer to one of the doorbell's short statements; after that the connection counts as lost."""
SETUP_TIMEOUT = timedelta(seconds=15)
"""Longest wait until a new pair of connections is known to hear, or not."""
_ANSWER = ANSWER_TIMEOUT.total_seconds()
_ONE_ROW = "SELECT 1"
FIRST_LOOK_AT_WRITERS = timedelta(milliseconds=2)
"""How soon a sleeper checks again whether the writers are done that were in flight when it fell asleep."""
LONGEST_BETWEEN_LOOKS = timedelta(seconds=1)
"""The interval doubles up to this, so it bounds how late the commit of such a writer is seen."""

Resolve = Callable[[Connection], Awaitable[BellName | None]]

_FIND_BELL = """
    select n.nspname, c.relname, exists(
        select
        from pg_catalog.pg_trigger t
        join pg_catalog.pg_proc p on p.oid = t.tgfoid
        where t.tgrelid = c.oid and t.tgenabled in ('O', 'A') and pg_catalog.strpos(p.prosrc, 'pg_try_advisory_lock(') > 0
    ) as rings
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.oid = pg_catalog.to_regclass($1)
"""


def bell_of(table: TableName) -> Resolve:
    """Finds the bell of `table`, in the schema in which the connection's search path finds it.

    None if the table's trigger is missing, or of a release before sleepers shared locks: it would never notify them.
    """

    async def resolve(connection: Connection) -> BellName | None:
        async with connection.transaction():  # by which a transaction pooler keeps the statement and its run together
            row = await connection.fetchrow(_FIND_BELL, table.sql)
        if row is None:
            raise SchemaError(
                f"the table {table} does not exist: create it with `outbox migrate` or ensure_outbox_schema_async"
            )
        return BellName.of(row["nspname"], row["relname"]) if row["rings"] else None

    return resolve


async def notifications_arrive(
    ears: Connection,
    hand: Connection,
    channel: str,
    on_notification: Callable[[], None],
    *,
    timeout: timedelta = LOOPBACK_TIMEOUT,
) -> bool:
    """Whether what `hand` notifies arrives at `ears`; behind a transaction pooler it does not.

    From here on `ears` calls `on_notification` for each notification without a payload.
    """
    token = secrets.token_hex(8)
    heard = asyncio.Event()

    def listener(_connection: object, _pid: int, _channel: str, payload: object) -> None:
        if payload == token:
            heard.set()
        elif payload == "":
            on_notification()

    await ears.add_listener(channel, listener)
    await hand.execute("select pg_catalog.pg_notify($1, $2)", channel, token)
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            await heard.wait()
    except TimeoutError:
        await ears.remove_listener(channel, listener)
        return False
    return True


class PostgresDoorbell:
    """Implements the Doorbell port for one table. `run` must be running meanwhile; until it listens, sleepers poll."""

    def __init__(
        self, connect: Connect, resolve: Resolve, *, observer: Observer, poll_interval: timedelta = timedelta(seconds=1)
    ) -> None:
        self._connect = connect
        self._resolve = resolve
        self._observer = observer
        self._poll_interval = poll_interval
        self._naps: set[_Nap] = set()
        self._changing = asyncio.Lock()
        self._lock: _Lock | None = None
        self._mode: WakeMode | None = None

    @asynccontextmanager
    async def asleep(self) -> AsyncIterator["_Nap"]:
        """See `outbox.ports.Doorbell.asleep`."""
        nap = _Nap(self)
        self._naps.add(nap)
        try:
            # Before the sleeper looks once more: a writer that its look misses finds the lock, and notifies.
            await self._take_lock()
            yield nap
        finally:
            self._naps.discard(nap)
            if not self._naps:
                async with self._changing:
                    if self._lock is not None and not self._naps:  # another sleeper may have come meanwhile
                        await self._lock.give_back()

    def ring(self) -> None:
        """See `outbox.ports.Doorbell.ring`."""
        for nap in self._naps:
            nap.rung.set()

    @property
    def longest_nap(self) -> timedelta | None:
        """While nothing rings, sleepers wake this often; None while LISTEN delivers."""
        return None if self._mode is WakeMode.LISTENING else self._poll_interval

    async def run(self) -> None:
        """Listens until cancelled; opens the connections again when they are lost.

        Raises `SchemaError` if the table does not exist.
        """
        while True:
            pause = REBUILD_PAUSE
            try:
                with unavailable_errors("listening"):
                    pause = await self._listen()
            except DatabaseUnavailableError as error:
                self._change_mode(WakeMode.POLLING, "", str(error))
            self.ring()
            await asyncio.sleep(pause.total_seconds())

    async def _listen(self) -> timedelta:
        async with self._connect() as ears, self._connect() as hand:
            lost = asyncio.Event()
            for connection in (ears, hand):
                connection.add_termination_listener(lambda *_: lost.set())
            async with asyncio.timeout(SETUP_TIMEOUT.total_seconds()):
                bell = await self._resolve(ears)
                hears = bell is not None and await notifications_arrive(ears, hand, bell.channel, self.ring)
            if bell is None:
                self._change_mode(
                    WakeMode.POLLING, "", "the table's trigger is missing or of an earlier release: run `outbox migrate`"
                )
                return LISTEN_RETRY
            if not hears:
                self._change_mode(WakeMode.POLLING, bell.channel, "notifications do not arrive (a transaction pooler?)")
                return LISTEN_RETRY
            async with asyncio.TaskGroup() as tasks:
                self._lock = lock = _Lock(ears, hand, bell, tasks, self.ring, lost)
                try:
                    if self._naps:
                        await self._take_lock()
                    self._change_mode(WakeMode.LISTENING, bell.channel, "notifications arrive")
                    # What was published before we listened has woken no sleeper of ours.
                    self.ring()
                    await lock.until_lost()
                finally:
                    self._lock = None
                    lock.abandon()
            # Closing what is lost may take a moment, in which no sleeper shall rely on it.
            self._change_mode(WakeMode.POLLING, bell.channel, "the listening connection was lost")
            self.ring()
        return REBUILD_PAUSE

    async def _take_lock(self) -> None:
        async with self._changing:
            if self._lock is not None:
                await self._lock.take()

    def _change_mode(self, mode: WakeMode, channel: str, reason: str) -> None:
        if mode is not self._mode:
            self._mode = mode
            self._observer.notify(WakeModeChanged(channel=channel, mode=mode, reason=reason))


@dataclass(eq=False, slots=True)
class _Nap:
    """One sleeper; see `outbox.ports.Nap`."""

    bell: PostgresDoorbell
    rung: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, timeout: timedelta) -> None:
        longest = self.bell.longest_nap
        limit = timeout if longest is None else min(timeout, longest)
        try:
            async with asyncio.timeout(max(limit.total_seconds(), 0)):
                await self.rung.wait()
        except TimeoutError:
            pass
        self.rung.clear()  # a ring from here on is for the next look


class _Lock:
    """A bell's locks as sleepers use them, on a connection of its own: the asleep locks are held or not.

    Whatever its connections do not answer in time sets `lost`; then everything is built again, and sleepers poll until it is.
    """

    def __init__(
        self,
        ears: Connection,
        hand: Connection,
        bell: BellName,
        tasks: asyncio.TaskGroup,
        on_writers_done: Callable[[], None],
        lost: asyncio.Event,
    ) -> None:
        self._ears = ears
        self._hand = hand
        self._tasks = tasks
        self._on_writers_done = on_writers_done
        self._lost = lost
        self._using_hand = asyncio.Lock()
        self._held = False
        self._in_doubt = False
        self._abandoned = False
        self._watching: asyncio.Task[None] | None = None
        # As simple queries: one round trip and one transaction each, where a prepared statement takes two. What they find is
        # the number of rows. A lock that is tried is given back within one expression, which nothing interrupts.
        self._no_writer_in_flight = (
            f"select where case when pg_catalog.pg_try_advisory_lock({bell.lock_key}) "
            f"then pg_catalog.pg_advisory_unlock({bell.lock_key}) else false end"
        )
        # Two statements, because the order matters: a writer takes its share, and then tries an asleep lock. This may wait,
        # but only for writers that try one: microseconds.
        asleep = ", ".join(f"pg_catalog.pg_advisory_lock_shared({key})" for key in bell.asleep_keys)
        self._fall_asleep = f"select {asleep}; {self._no_writer_in_flight}"

    async def take(self) -> None:
        """Afterwards every writer that begins to publish notifies; sleepers are woken when those before it are done."""
        if self._abandoned or self._held:
            return
        self._in_doubt = True  # until the answer is here, which a cancellation may come before
        with self._noticing_loss():
            alone = await self._ask_hand(self._fall_asleep) == _ONE_ROW
            self._held, self._in_doubt = True, False
            # The answer may have come together with the news that the connections are lost.
            if not alone and not self._abandoned:
                self._watching = self._tasks.create_task(self._watch_writers())

    async def give_back(self) -> None:
        """Afterwards writers do not notify, unless other processes sleep."""
        self._stop_watching()
        if self._held or self._in_doubt:
            self._held, self._in_doubt = False, True
            with self._noticing_loss():
                await self._ask_hand("select pg_catalog.pg_advisory_unlock_all()")
                self._in_doubt = False

    async def until_lost(self) -> None:
        """Returns when a connection was closed, or does not answer any more."""
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(HEARTBEAT.total_seconds()):
                    await self._lost.wait()
            except TimeoutError:
                # A peer that vanished without closing sends nothing: only a question without an answer shows it.
                with self._noticing_loss():
                    await self._ears.execute("select", timeout=_ANSWER)
                    await self._ask_hand("select")

    def abandon(self) -> None:
        """No sleeper relies on the locks any more. If they are held, the end of the connection's use gives them back."""
        self._abandoned = True
        self._stop_watching()

    async def _watch_writers(self) -> None:
        """Wakes sleepers when none of the writers is left that were in flight when they fell asleep."""
        pauses = Pauses(first=FIRST_LOOK_AT_WRITERS, longest=LONGEST_BETWEEN_LOOKS)
        with self._noticing_loss():
            while True:
                await asyncio.sleep(pauses.next().total_seconds())
                done = await self._ask_hand(self._no_writer_in_flight) == _ONE_ROW
                if self._watching is not asyncio.current_task():
                    return  # the sleeper has risen meanwhile
                if done:
                    self._watching = None
                    self._on_writers_done()
                    return

    def _stop_watching(self) -> None:
        watching, self._watching = self._watching, None
        # In the middle of a statement a cancellation would cost another connection, for the cancel request.
        if watching is not None and not self._using_hand.locked():
            watching.cancel()

    async def _ask_hand(self, question: str) -> str:
        async with self._using_hand:
            return await self._hand.execute(question, timeout=_ANSWER)

    @contextmanager
    def _noticing_loss(self) -> Iterator[None]:
        try:
            yield
        except DRIVER_ERRORS:
            self._lost.set()
