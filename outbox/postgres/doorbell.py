"""The doorbell: wakes whoever sleeps on a table when rows come, and costs writers nothing while nobody sleeps.

The table's trigger tries the shared advisory lock of the bell and notifies only if it cannot have it. A sleeper holds the
exclusive one, or stands in line for it, which is as good: PostgreSQL refuses a shared lock to newcomers while somebody waits
for the exclusive one. A writer that had its share before is what the sleeper waits for; when the lock is granted to it,
that writer has committed, and the sleeper looks again. See docs/decisions/0002-doorbell.md.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from outbox.errors import DatabaseUnavailableError, SchemaError
from outbox.events import WakeMode, WakeModeChanged
from outbox.ports import Observer
from outbox.postgres.names import BellName, TableName
from outbox.postgres.pool import DRIVER_ERRORS, Connect, Connection, unavailable_errors

REBUILD_PAUSE = timedelta(milliseconds=500)
"""Wait before a lost listening connection is opened again."""
LISTEN_RETRY = timedelta(seconds=30)
"""Wait before LISTEN is tried again where it did not deliver."""
LOOPBACK_TIMEOUT = timedelta(seconds=2)
"""Longest wait for a notification to oneself; without it LISTEN counts as not delivering."""
HEARTBEAT = timedelta(seconds=10)
"""How often the listening connection is asked for a sign of life: one that was lost in silence is not told of."""
ANSWER_TIMEOUT = timedelta(seconds=3)
"""Longest wait for the server's answer to one of the doorbell's short statements; after that the connection counts as lost."""
SETUP_TIMEOUT = timedelta(seconds=15)
"""Longest wait until a new pair of connections is known to hear, or not."""
_ANSWER = ANSWER_TIMEOUT.total_seconds()
_LONGEST_LINE = timedelta(days=1)
_QUEUE_CHECKS = 20

Resolve = Callable[[Connection], Awaitable[BellName]]


def bell_of(table: TableName) -> Resolve:
    """Finds the bell of `table`, in the schema in which the connection's search path finds it."""

    async def resolve(connection: Connection) -> BellName:
        async with connection.transaction():  # by which a transaction pooler keeps the statement and its run together
            row = await connection.fetchrow(
                "select n.nspname, c.relname from pg_catalog.pg_class c "
                "join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = pg_catalog.to_regclass($1)",
                table.sql,
            )
        if row is None:
            raise SchemaError(
                f"the table {table} does not exist: create it with `outbox migrate` or ensure_outbox_schema_async"
            )
        return BellName.of(row["nspname"], row["relname"])

    return resolve


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
            await self._take_lock()
            yield nap
        finally:
            self._naps.discard(nap)
            if not self._naps:
                await self._give_back_lock()

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
                hears = await self._hears(ears, hand, bell)
            if not hears:
                self._change_mode(WakeMode.POLLING, bell.channel, "notifications do not arrive (a transaction pooler?)")
                return LISTEN_RETRY
            async with asyncio.TaskGroup() as tasks:
                self._lock = lock = _Lock(ears, hand, bell.lock_key, tasks, self.ring, lost)
                self._change_mode(WakeMode.LISTENING, bell.channel, "notifications arrive")
                self.ring()
                try:
                    await lock.until_lost()
                finally:
                    self._lock = None
                    lock.abandon()
            # Closing what is lost may take a moment, in which nobody shall rely on it.
            self._change_mode(WakeMode.POLLING, bell.channel, "the listening connection was lost")
            self.ring()
        return REBUILD_PAUSE

    async def _hears(self, ears: Connection, hand: Connection, bell: BellName) -> bool:
        """Whether what another connection notifies arrives here; behind a transaction pooler it does not."""
        token = secrets.token_hex(8)
        heard = asyncio.Event()

        def listener(_connection: object, _pid: int, _channel: str, payload: object) -> None:
            if payload == token:
                heard.set()
            elif payload == "":
                self.ring()

        await ears.add_listener(bell.channel, listener)
        await hand.execute("select pg_catalog.pg_notify($1, $2)", bell.channel, token)
        try:
            async with asyncio.timeout(LOOPBACK_TIMEOUT.total_seconds()):
                await heard.wait()
        except TimeoutError:
            return False
        return True

    async def _take_lock(self) -> None:
        async with self._changing:
            if self._lock is not None:
                await self._lock.take()

    async def _give_back_lock(self) -> None:
        async with self._changing:
            if self._lock is not None and not self._naps:
                await self._lock.give_back()

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


class _Lock:
    """The exclusive advisory lock of a bell, on a connection of its own: free, asked for, or held.

    Whatever its connections do not answer in time sets `lost`; then everything is built anew, and sleepers poll until it is.
    """

    def __init__(
        self,
        ears: Connection,
        hand: Connection,
        key: int,
        tasks: asyncio.TaskGroup,
        on_granted: Callable[[], None],
        lost: asyncio.Event,
    ) -> None:
        self._ears = ears
        self._hand = hand
        self._key = key
        self._tasks = tasks
        self._on_granted = on_granted
        self._lost = lost
        self._asking_ears = asyncio.Lock()
        self._held = False
        self._in_doubt = False
        self._wanted = False
        self._abandoned = False
        self._waiting: asyncio.Task[None] | None = None

    async def take(self) -> None:
        """Afterwards no writer that begins to publish gets its share: the lock is held, or we stand in line for it."""
        self._wanted = True
        if self._abandoned or self._held or self._waiting is not None:
            return
        self._in_doubt = True  # until the answer is here, which a cancellation may come before
        with self._noticing_loss():
            self._held = bool(
                await self._hand.fetchval("select pg_catalog.pg_try_advisory_lock($1)", self._key, timeout=_ANSWER)
            )
            self._in_doubt = False
            # The answer may have come together with the news that the connections are lost.
            if not self._held and not self._abandoned:
                self._waiting = self._tasks.create_task(self._await_lock())
                await self._stand_in_line()

    async def give_back(self) -> None:
        """Afterwards writers get their shares again; at the latest when the lock that we stand in line for is granted."""
        self._wanted = False
        if self._waiting is None and (self._held or self._in_doubt):
            self._held, self._in_doubt = False, True
            with self._noticing_loss():
                await self._hand.execute("select pg_catalog.pg_advisory_unlock_all()", timeout=_ANSWER)
                self._in_doubt = False

    async def until_lost(self) -> None:
        """Returns when a connection was closed, or does not answer any more."""
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(HEARTBEAT.total_seconds()):
                    await self._lost.wait()
            except TimeoutError:
                with self._noticing_loss():
                    await self._ask_ears("select true")

    def abandon(self) -> None:
        """Nobody waits for the lock any more. If it is held, the end of the connection's use gives it back."""
        self._abandoned = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def _await_lock(self) -> None:
        try:
            with self._noticing_loss():
                await self._hand.execute(
                    "select pg_catalog.pg_advisory_lock($1)", self._key, timeout=_LONGEST_LINE.total_seconds()
                )
                self._held = True
        finally:
            self._waiting = None
        if self._held and self._wanted:
            self._on_granted()
        elif self._held:
            await self.give_back()

    async def _stand_in_line(self) -> None:
        """Returns when the server has put our request in line, which takes no longer than its round trip."""
        pid = self._hand.get_server_pid()
        for _ in range(_QUEUE_CHECKS):
            in_line = await self._ask_ears(
                "select exists(select from pg_catalog.pg_locks where pid = $1 and locktype = 'advisory')", pid
            )
            if in_line or self._waiting is None:
                return

    async def _ask_ears(self, question: str, *arguments: object) -> object:
        async with self._asking_ears:
            return await self._ears.fetchval(question, *arguments, timeout=_ANSWER)

    @contextmanager
    def _noticing_loss(self) -> Iterator[None]:
        try:
            yield
        except DRIVER_ERRORS:
            self._lost.set()
