"""The doorbell: wakes sleeping relays and workers when rows arrive, and costs writers almost nothing while none sleeps.

Sleepers share the *asleep* locks. The table's trigger takes a share of the *in-flight* lock until its transaction ends, then
tries one asleep lock exclusively for an instant, and notifies only if that fails. A relay or worker that goes to sleep takes
the asleep locks first, then tries the in-flight lock. If no writer has a share, every later writer notifies, and one more look
at the table finds all earlier commits. If a writer has one, it may not notify, so the sleeper tries the lock at growing
intervals until it is free, and then looks again. No statement waits for a lock. See
docs/decisions/0144-sleepers-share-a-lock.md.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from outbox.core.events import WakeMode, WakeModeChanged
from outbox.engine.lifecycle import Pauses, pause_before_next
from outbox.errors import DatabaseUnavailableError, SchemaError
from outbox.ports import Observer
from outbox.postgres.pool import DRIVER_ERRORS, Connect, Connection, unavailable_errors
from outbox.postgres.queries import BellName, TableName

REBUILD_PAUSE = timedelta(milliseconds=500)
"""Pause before a lost listening connection is opened again."""
LISTEN_RETRY = timedelta(seconds=30)
"""Pause before LISTEN is tried again where it did not work."""
LOOPBACK_TIMEOUT = timedelta(seconds=2)
"""Longest wait for the test notification. Without it, LISTEN counts as not working."""
HEARTBEAT = timedelta(seconds=10)
"""Pause between two checks of the listening connection. Nothing else reports one that was lost silently."""
ANSWER_TIMEOUT = timedelta(seconds=3)
"""Longest wait for one of the doorbell's short statements; after that the connection counts as lost."""
SETUP_TIMEOUT = timedelta(seconds=15)
"""Longest time to find out whether notifications arrive on a new connection."""
_ANSWER = ANSWER_TIMEOUT.total_seconds()
_ONE_ROW = "SELECT 1"
FIRST_LOOK_AT_WRITERS = timedelta(milliseconds=2)
"""First pause before a sleeper checks whether writers that were in flight when it fell asleep have ended."""
LONGEST_BETWEEN_LOOKS = timedelta(seconds=1)
"""Longest such pause; they double up to this. It limits how late the commit of such a writer is noticed."""

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
    """Returns a function that finds the bell of `table`, through the search path of its connection.

    It returns None if the table's trigger is missing, or is of a release before sleepers shared locks and would never notify.
    """

    async def resolve(connection: Connection) -> BellName | None:
        async with connection.transaction():  # a transaction pooler must prepare and run it on one server
            row = await connection.fetchrow(_FIND_BELL, table.sql)
        if row is None:
            raise SchemaError(
                f"the table {table} does not exist: create it with `outbox migrate` or ensure_outbox_schema_async"
            )
        return BellName.of(row["nspname"], row["relname"]) if row["rings"] else None

    return resolve


async def notifications_arrive(
    listening: Connection,
    commands: Connection,
    channel: str,
    on_notification: Callable[[], None],
    *,
    timeout: timedelta = LOOPBACK_TIMEOUT,
) -> bool:
    """Whether a notification from `commands` arrives at `listening`; behind a transaction pooler it does not.

    From then on `on_notification` is called for each notification without a payload.
    """
    token = secrets.token_hex(8)
    heard = asyncio.Event()

    def listener(_connection: object, _pid: int, _channel: str, payload: object) -> None:
        if payload == token:
            heard.set()
        elif payload == "":
            on_notification()

    await listening.add_listener(channel, listener)
    await commands.execute("select pg_catalog.pg_notify($1, $2)", channel, token)
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            await heard.wait()
    except TimeoutError:
        await listening.remove_listener(channel, listener)
        return False
    return True


class PostgresDoorbell:
    """Implements `outbox.ports.Doorbell` for one table while `run` is running. Until it listens, sleepers poll."""

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
            # Before the sleeper looks once more, so that a writer whose commit this look misses finds the lock and notifies.
            await self._acquire_lock()
            yield nap
        finally:
            self._naps.discard(nap)
            if not self._naps:
                async with self._changing:
                    if self._lock is not None and not self._naps:  # another sleeper may have come meanwhile
                        await self._lock.release()

    def ring(self) -> None:
        """See `outbox.ports.Doorbell.ring`."""
        for nap in self._naps:
            nap.rung.set()

    @property
    def longest_nap(self) -> timedelta | None:
        """Longest sleep without a ring; None while LISTEN works."""
        return None if self._mode is WakeMode.LISTENING else self._poll_interval

    async def run(self) -> None:
        """Listens until cancelled. Opens lost connections again. Polls while the table does not exist."""
        while True:
            pause = REBUILD_PAUSE
            try:
                with unavailable_errors("listening"):
                    pause = await self._listen()
            except (DatabaseUnavailableError, SchemaError) as error:
                self._change_mode(WakeMode.POLLING, "", str(error))
            self.ring()
            await asyncio.sleep(pause.total_seconds())

    async def _listen(self) -> timedelta:
        async with self._connect() as listening:
            lost = asyncio.Event()
            listening.add_termination_listener(lambda *_: lost.set())
            async with asyncio.timeout(SETUP_TIMEOUT.total_seconds()):
                bell = await self._resolve(listening)
                notified = bell is not None and await self._hears(listening, bell.channel)
            if bell is None:
                self._change_mode(
                    WakeMode.POLLING, "", "the table's trigger is missing or of an earlier release: run `outbox migrate`"
                )
                return LISTEN_RETRY
            if not notified:
                self._change_mode(WakeMode.POLLING, bell.channel, "notifications do not arrive (a transaction pooler?)")
                return LISTEN_RETRY
            async with asyncio.TaskGroup() as tasks:
                self._lock = lock = _Lock(listening, bell, tasks, self.ring, lost)
                try:
                    # They fell asleep while the doorbell polled, and hold no lock yet.
                    if self._naps:
                        await self._acquire_lock()
                    self._change_mode(WakeMode.LISTENING, bell.channel, "notifications arrive")
                    # Commits before LISTEN have not woken any sleeper of this process.
                    self.ring()
                    await lock.until_lost()
                finally:
                    self._lock = None
                    lock.abandon()
            # Before the lost connection is closed, which may take a moment: sleepers must not rely on them meanwhile.
            self._change_mode(WakeMode.POLLING, bell.channel, "the listening connection was lost")
            self.ring()
        return REBUILD_PAUSE

    async def _hears(self, listening: Connection, channel: str) -> bool:
        # From another connection: behind a pooler, a connection may hear its own notification by chance, which proves nothing.
        async with self._connect() as other:
            return await notifications_arrive(listening, other, channel, self.ring)

    async def _acquire_lock(self) -> None:
        async with self._changing:
            if self._lock is not None:
                await self._lock.acquire()

    def _change_mode(self, mode: WakeMode, channel: str, reason: str) -> None:
        if mode is not self._mode:
            self._mode = mode
            self._observer.notify(WakeModeChanged(channel=channel, mode=mode, reason=reason))


@dataclass(eq=False, slots=True)
class _Nap:
    """Implements `outbox.ports.Nap` for one sleeper."""

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
        self.rung.clear()  # a later ring is for the next look


class _Lock:
    """Takes and releases the asleep locks of a bell, on the connection that listens.

    Sets `lost` if it does not answer in time. Then it is replaced, and sleepers poll meanwhile.
    """

    def __init__(
        self,
        connection: Connection,
        bell: BellName,
        tasks: asyncio.TaskGroup,
        on_writers_done: Callable[[], None],
        lost: asyncio.Event,
    ) -> None:
        self._connection = connection
        self._tasks = tasks
        self._on_writers_done = on_writers_done
        self._lost = lost
        self._statement_lock = asyncio.Lock()
        self._is_held = False
        self._in_doubt = False
        self._abandoned = False
        self._watching: asyncio.Task[None] | None = None
        # Simple queries take one round trip and one transaction; a prepared statement takes two. They return their result as
        # the number of rows. A lock is tried and released within one expression, which nothing can interrupt.
        self._no_writer_in_flight = (
            f"select where case when pg_catalog.pg_try_advisory_lock({bell.lock_key}) "
            f"then pg_catalog.pg_advisory_unlock({bell.lock_key}) else false end"
        )
        # Two statements, because the order matters: a writer takes its share first, and then tries an asleep lock. Taking the
        # asleep locks may wait, but only for writers that are trying one, which takes microseconds.
        asleep = ", ".join(f"pg_catalog.pg_advisory_lock_shared({key})" for key in bell.asleep_keys)
        self._fall_asleep = f"select {asleep}; {self._no_writer_in_flight}"

    async def acquire(self) -> None:
        """Takes the locks: writers that publish later notify. Wakes sleepers when the writers before them have ended."""
        if self._abandoned or self._is_held:
            return
        self._in_doubt = True  # until the answer arrives; the task may be cancelled before
        with self._report_loss():
            alone = await self._execute(self._fall_asleep) == _ONE_ROW
            self._is_held, self._in_doubt = True, False
            # The connection may have been lost while the answer arrived.
            if not alone and not self._abandoned:
                self._watching = self._tasks.create_task(self._watch_writers())

    async def release(self) -> None:
        """Releases the locks: writers do not notify unless other processes sleep."""
        self._stop_watching()
        if self._is_held or self._in_doubt:
            self._is_held, self._in_doubt = False, True
            with self._report_loss():
                # All at once, because after a statement without an answer it is not known which of them are held.
                await self._execute("select pg_catalog.pg_advisory_unlock_all()")
                self._in_doubt = False

    async def until_lost(self) -> None:
        """Returns when the connection was closed or does not answer."""
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(pause_before_next(HEARTBEAT)):
                    await self._lost.wait()
            except TimeoutError:
                # A server that vanished without closing the connection sends nothing. Only an unanswered statement shows it.
                with self._report_loss():
                    await self._execute("select")

    def abandon(self) -> None:
        """Stops using the locks. The connection releases them when it is closed or returned to its pool."""
        self._abandoned = True
        self._stop_watching()

    async def _watch_writers(self) -> None:
        """Wakes sleepers when all writers that were in flight when they fell asleep have ended."""
        pauses = Pauses(first=FIRST_LOOK_AT_WRITERS, longest=LONGEST_BETWEEN_LOOKS)
        with self._report_loss():
            while True:
                await asyncio.sleep(pauses.next().total_seconds())
                done = await self._execute(self._no_writer_in_flight) == _ONE_ROW
                if self._watching is not asyncio.current_task():
                    return  # the locks were released meanwhile
                if done:
                    self._watching = None
                    self._on_writers_done()
                    return

    def _stop_watching(self) -> None:
        watching, self._watching = self._watching, None
        # Cancelling a running statement would open another connection, for the cancel request.
        if watching is not None and not self._statement_lock.locked():
            watching.cancel()

    async def _execute(self, statement: str) -> str:
        async with self._statement_lock:
            return await self._connection.execute(statement, timeout=_ANSWER)

    @contextmanager
    def _report_loss(self) -> Iterator[None]:
        try:
            yield
        except DRIVER_ERRORS:
            self._lost.set()
