"""Redis as a Source: reads streams through consumer groups. A queue is a group, in each stream that it is bound to."""

import asyncio
import re
import socket
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from itertools import groupby
from operator import itemgetter
from os import getpid
from time import monotonic
from typing import Any
from uuid import uuid4

from redis.exceptions import NoPermissionError, ResponseError

from outbox.core.topics import matches
from outbox.core.urls import ROUTING_KEY_IN_TOPIC, ServerKind, server_address
from outbox.engine.tasks import in_background
from outbox.errors import BrokerUnavailableError, TopologyError
from outbox.ports import Received, Subscription
from outbox.transports.redis.entries import message_of
from outbox.transports.redis.server import RedisOptions, Reply, Session, command, text_of

LONGEST_WAIT = timedelta(seconds=1)
"""Longest wait for new entries in one fetch."""
LOOK_AGAIN = 10.0
"""Seconds between two looks for new streams, for a binding key with wildcards."""
CLEAN_UP_EVERY = 60.0
"""Seconds between two removals: of consumers of dead processes, and if the URL says so, of entries that were read."""
FORGET_AFTER = timedelta(minutes=10)
"""Time without a heartbeat after which a consumer without pending entries is removed."""
MOST_PENDING = 1_000
"""More entries than one consumer has pending in a stream."""
MOST_SLOWNESS = 120.0
"""How many times as long as usual an answer may take at most, in which there is one entry: ten minutes."""
_BUSY_PAUSE = 0.05
_BUSY, _UNKNOWN = 1, 2
_RELEASED = b"86400000"
"""Milliseconds without a heartbeat that an entry is given, so that any consumer claims it."""
_FIRST = b"0-0"

# In a script, because a consumer that reads between the look and the removal would lose what it reads.
_FORGET = b"""
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local of = {}
  for i = 1, #consumer, 2 do of[consumer[i]] = consumer[i + 1] end
  if of.pending == 0 and of.idle >= tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], of.name)
  end
end
"""
# In a script, because a group that is created between the look and the removal would lose what it has not read.
_TRIM = b"""
local least, of_milliseconds, of_number
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local of = {}
  for i = 1, #group, 2 do of[group[i]] = group[i + 1] end
  local id = of['last-delivered-id']
  if of.pending > 0 then id = redis.call('XPENDING', KEYS[1], of.name)[2] end
  local milliseconds, number = string.match(id, '(%d+)-(%d+)')
  milliseconds, number = tonumber(milliseconds), tonumber(number)
  if not least or milliseconds < of_milliseconds or (milliseconds == of_milliseconds and number < of_number) then
    least, of_milliseconds, of_number = id, milliseconds, number
  end
end
if least then redis.call('XTRIM', KEYS[1], 'MINID', '~', least) end
"""
# One consumer at a time holds entries, so they are stored in their order. Another one reads when these are acknowledged.
# Without a read that the consumer knows nothing of: its answer was lost, and its entries come first.
_READ_IN_TURN = b"""
local pending = redis.call('XPENDING', KEYS[1], ARGV[1])
for _, of in ipairs(pending[4] or {}) do
  if of[1] ~= ARGV[2] then return 1 end
  if tonumber(of[2]) ~= tonumber(ARGV[4]) then return 2 end
end
return redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', ARGV[3], 'STREAMS', KEYS[1], '>')
"""

_Token = tuple[bytes, bytes]
"""A stream and the id of an entry."""


class RedisSource:
    """Implements `outbox.ports.Source` on Redis or Valkey.

    `url` is that of `outbox.transports.redis.RedisTransport`, whose streams are read. Raises `ConfigurationError` for an option
    that is unknown or invalid.
    """

    label = ServerKind.REDIS.value

    def __init__(self, url: str) -> None:
        self.options = RedisOptions.parse(url)
        self.guarantees = self.options.guarantees
        self.destination = f"{server_address(url)}, stream {self.options.stream}"

    @asynccontextmanager
    async def read(self, subscription: Subscription) -> AsyncIterator["RedisReader"]:
        """See `outbox.ports.Source.read`. Creates the stream with the group, so that relays have somewhere to send to."""
        reader = RedisReader(self.options, subscription)
        try:
            await reader.start()
            # Ends before the release: a later heartbeat would take the entries back.
            async with in_background(reader.keep()):
                yield reader
        finally:
            await reader.end()

    async def close(self) -> None:
        """See `outbox.ports.Source.close`. Does nothing: each read has its own connections."""


class RedisReader:
    """Implements `outbox.ports.Reader` as one consumer of a group."""

    def __init__(self, options: RedisOptions, subscription: Subscription) -> None:
        self._options = options
        self._binding_key = subscription.binding_key
        self._group = subscription.queue.encode()
        self._ordered = subscription.ordered
        self._name = f"{socket.gethostname()}.{getpid()}.{uuid4().hex[:8]}".encode()
        self._streams: list[bytes] = []
        self._pattern = _pattern_of(options, subscription)
        self._sessions: dict[str, Session] = {}
        self._lock = asyncio.Lock()
        self._held: dict[_Token, None] = {}
        """Entries that are pending for this consumer, and not stored yet as far as it knows."""
        self._done: dict[_Token, None] = {}
        """Entries that are to be acknowledged."""
        self._waiting: deque[Received] = deque()
        self._most = MOST_PENDING
        """Most entries of one request, as far as known from what arrived in time."""
        self._slowness = 1.0
        self._lost: set[bytes] = set()
        """Streams from which the server may have given entries to this consumer that did not arrive."""
        self._next: dict[str, float] = {}

    async def start(self) -> None:
        """Connects, and creates the groups that are missing."""
        if self._pattern is None:
            await self._add([self._options.stream.replace(ROUTING_KEY_IN_TOPIC, self._binding_key).encode()])
        else:
            await self._find_streams()
            self._is_due("streams", LOOK_AGAIN)

    async def fetch(self, limit: int) -> Sequence[Received]:
        """See `outbox.ports.Reader.fetch`."""
        if not self._waiting:
            session = await self._session("read")
            if self._done:
                await self._acknowledge_done()
            if self._is_due("streams", LOOK_AGAIN):
                await self._find_streams()
            count = min(limit, self._most)
            session.slowness = self._slowness
            try:
                await self._fill(session, count)
            except BrokerUnavailableError:
                # With large bodies, the answer may have been too long to arrive in time, and would be again.
                if count == 1:
                    self._slowness = min(self._slowness * 2, MOST_SLOWNESS)
                self._most = max(count // 4, 1)
                raise
            self._slowness = max(self._slowness * 0.9, 1.0)
            self._most = min(self._most + self._most // 8 + 1, MOST_PENDING)
        return [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]

    async def _fill(self, session: Session, limit: int) -> None:
        """Reads entries, about `limit` with one request, into `_waiting`."""
        for stream in tuple(self._lost):
            await self._read_own(session, stream, limit)
        if self._is_due("claim", self._options.claim_after / 3):
            await self._claim(session, limit)
        if self._is_due("clean up", CLEAN_UP_EVERY):
            idle = b"%d" % (FORGET_AFTER.total_seconds() * 1_000)
            # Without permission for scripts, dead consumers stay in the group. They do no harm.
            await session.call(*(command(b"EVAL", _FORGET, b"1", stream, self._group, idle) for stream in self._streams))
            if self._options.trim:
                await session.call(*(command(b"EVAL", _TRIM, b"1", stream) for stream in self._streams))
        if not self._waiting:
            await (self._read_in_turn if self._ordered else self._read_new)(session, limit)

    async def acknowledge(self, received: Sequence[Received]) -> None:
        """See `outbox.ports.Reader.acknowledge`. What could not be acknowledged is with the next `fetch`."""
        for each in received:
            token: Any = each.token
            self._held.pop(token, None)
            self._done[token] = None
        await self._acknowledge_done()

    async def keep(self) -> None:
        """Until it is cancelled, shows the group that this consumer still holds its entries, so no other one claims them."""
        while True:
            await asyncio.sleep(self._options.claim_after / 3)
            with suppress(BrokerUnavailableError):
                for stream, tokens in _by_stream(self._held).items():
                    ids = [id_ for _, id_ in tokens]
                    # Claiming its own entries resets their idle time, by which others judge; JUSTID does not count a delivery.
                    await self._control(command(b"XCLAIM", stream, self._group, self._name, b"0", *ids, b"JUSTID"))

    async def end(self) -> None:
        """Lets others claim at once what is pending for this consumer, and ends."""
        try:
            with suppress(BrokerUnavailableError):
                if "read" in self._sessions:
                    await self._release(self._sessions["read"])
        finally:
            for session in self._sessions.values():
                session.end()

    async def _release(self, read: Session) -> None:
        is_over = read.is_alive
        if not is_over:
            # A cancelled read may still wait at the server, which would give entries to a consumer that is removed.
            await self._control(command(b"PING"))
            is_over = self._sessions["control"].server.get("run_id") != read.server.get("run_id")
            if not is_over and read.id is not None:
                is_over = isinstance((await self._control(command(b"CLIENT", b"KILL", b"ID", b"%d" % read.id)))[0], int)
        of = (self._group, self._name)
        for stream in self._streams:
            [pending] = await self._control(
                command(b"XPENDING", stream, self._group, b"-", b"+", b"%d" % MOST_PENDING, self._name)
            )
            if isinstance(pending, list) and pending:
                ids = [entry[0] for entry in pending]
                await self._control(command(b"XCLAIM", stream, *of, b"0", *ids, b"IDLE", _RELEASED, b"JUSTID"))
            # Only without pending entries: DELCONSUMER would remove them from the group, unread.
            elif is_over and pending == []:
                await self._control(command(b"XGROUP", b"DELCONSUMER", stream, *of))

    # --- connections -----------------------------------------------------------------------------------------------------

    async def _session(self, purpose: str) -> Session:
        session = self._sessions.get(purpose)
        if session is None or not session.is_alive:
            session = self._sessions[purpose] = await Session.start(self._options, name="outbox-worker")
            if purpose == "read":
                # The answer to a read may have been lost with the old connection, and its entries are pending for us.
                self._lost.update(self._streams)
        return session

    async def _control(self, *commands: bytes) -> list[Reply]:
        """Sends commands that do not wait for entries, on a connection of their own."""
        async with self._lock:
            return await (await self._session("control")).call(*commands) if commands else []

    def _is_due(self, what: str, every: float) -> bool:
        now = monotonic()
        due = now >= self._next.get(what, 0.0)
        if due:
            self._next[what] = now + every
        return due

    # --- streams ---------------------------------------------------------------------------------------------------------

    async def _find_streams(self) -> None:
        """Adds the streams whose names the binding key matches."""
        if self._pattern is None:
            return
        glob, name_pattern = self._pattern
        cursor, found = b"0", []
        while True:
            [reply] = await self._control(command(b"SCAN", cursor, b"MATCH", glob, b"COUNT", b"1000", b"TYPE", b"stream"))
            if not isinstance(reply, list):
                raise BrokerUnavailableError(f"Redis does not list its streams: {reply!r:.300}")
            cursor, names = reply
            for name in names:
                match = name_pattern.fullmatch(name.decode(errors="replace"))
                if match is not None and matches(self._binding_key, match[1]) and name not in self._streams:
                    found.append(name)
            if cursor == b"0":
                break
        await self._add(dict.fromkeys(found))

    async def _add(self, streams: Iterable[bytes]) -> None:
        streams = list(streams)
        # From the beginning, because messages may have been sent before the first worker came.
        creates = (command(b"XGROUP", b"CREATE", stream, self._group, b"0", b"MKSTREAM") for stream in streams)
        for stream, reply in zip(streams, await self._control(*creates), strict=True):
            if isinstance(reply, ResponseError) and "BUSYGROUP" not in str(reply):
                text = f"Redis does not create the group {self._group.decode()!r} in {stream.decode()!r}: {text_of(reply)}"
                is_lasting = isinstance(reply, NoPermissionError) or str(reply).startswith("WRONGTYPE")
                raise TopologyError(text) if is_lasting else BrokerUnavailableError(text)
            if stream not in self._streams:
                self._streams.append(stream)
                # A consumer that is gone may have left entries there.
                self._next.pop("claim", None)

    # --- entries ---------------------------------------------------------------------------------------------------------

    async def _read_new(self, session: Session, limit: int) -> None:
        if not self._streams:
            await asyncio.sleep(LONGEST_WAIT.total_seconds())
            return
        count = max(limit // len(self._streams), 1)  # Redis counts for each stream
        milliseconds = int(LONGEST_WAIT.total_seconds() * 1_000)
        [reply] = await session.call(
            self._read(count, [b"BLOCK", b"%d" % milliseconds], self._streams, [b">"] * len(self._streams))
        )
        await self._receive(reply)

    async def _read_in_turn(self, session: Session, limit: int) -> None:
        end = monotonic() + LONGEST_WAIT.total_seconds()
        while not self._waiting:
            known = Counter(stream for stream, _ in (*self._held, *self._done))
            for stream in self._streams:
                arguments = (self._group, self._name, b"%d" % limit, b"%d" % known[stream])
                [reply] = await session.call(command(b"EVAL", _READ_IN_TURN, b"1", stream, *arguments))
                if reply == _UNKNOWN:
                    await self._read_own(session, stream, limit)
                elif reply != _BUSY:
                    await self._receive(reply)
            if self._waiting or monotonic() >= end:
                return
            await asyncio.sleep(_BUSY_PAUSE)

    async def _read_own(self, session: Session, stream: bytes, limit: int) -> None:
        """Reads what is pending for this consumer: answers that were lost with a connection."""
        last = _FIRST
        while True:
            [reply] = await session.call(self._read(limit, [], [stream], [last]))
            entries = await self._receive(reply)
            if not entries:
                self._lost.discard(stream)
                return
            last = entries[-1][0]

    def _read(self, count: int, more: Sequence[bytes], streams: Sequence[bytes], after: Sequence[bytes]) -> bytes:
        of = (b"GROUP", self._group, self._name)
        return command(b"XREADGROUP", *of, b"COUNT", b"%d" % count, *more, b"STREAMS", *streams, *after)

    async def _claim(self, session: Session, limit: int) -> None:
        """Takes over entries that their consumers have held for too long without a heartbeat."""
        idle = b"%d" % (self._options.claim_after * 1_000)
        # All at once for an ordered queue: another reader would claim the rest, and might store it first.
        count = b"%d" % (MOST_PENDING if self._ordered else limit)
        for stream in self._streams:
            cursor = _FIRST
            while len(self._waiting) < limit:
                [reply] = await session.call(
                    command(b"XAUTOCLAIM", stream, self._group, self._name, idle, cursor, b"COUNT", count)
                )
                if not isinstance(reply, list):
                    await self._receive(reply)
                    break
                cursor, entries = reply[:2]
                self._take(stream, [entry for entry in entries if entry is not None])
                if cursor == _FIRST:
                    break
            else:
                # The list has more than there is room for: the next fetch goes on.
                self._next.pop("claim", None)

    async def _receive(self, reply: Reply) -> list[Any]:
        """Takes the entries of a reply to XREADGROUP, and returns those of the last stream."""
        if isinstance(reply, ResponseError):
            # Redis 6.2 puts words of its own before an error in a script.
            if "NOGROUP" not in str(reply):
                raise BrokerUnavailableError(f"Redis does not give entries: {text_of(reply)}")
            # The data was deleted while this worker runs.
            await self._add(self._streams)
        entries: list[Any] = []
        if isinstance(reply, list):
            for stream, entries in reply:
                self._take(stream, entries)
        return entries

    def _take(self, stream: bytes, entries: Sequence[Any]) -> None:
        # The routing key of an entry that does not name its own.
        name = stream.decode(errors="replace")
        match = None if self._pattern is None else self._pattern[1].fullmatch(name)
        routing_key = self._binding_key if ROUTING_KEY_IN_TOPIC in self._options.stream else name
        if match is not None:
            routing_key = match[1]
        for id_, fields in entries:
            token = (stream, id_)
            if token in self._held or token in self._done:
                continue
            # None: the entry was deleted, as by trimming.
            message = None if fields is None else message_of(id_, fields, stream=stream, routing_key=routing_key)
            if message is None or not matches(self._binding_key, message.routing_key):
                self._done[token] = None
                continue
            self._held[token] = None
            self._waiting.append(Received(message, token))

    async def _acknowledge_done(self) -> None:
        for stream, tokens in _by_stream(self._done).items():
            [reply] = await self._control(command(b"XACK", stream, self._group, *(id_ for _, id_ in tokens)))
            if isinstance(reply, ResponseError):
                raise BrokerUnavailableError(f"Redis does not acknowledge entries: {text_of(reply)}")
            for token in tokens:
                self._done.pop(token, None)


def _by_stream(tokens: Iterable[_Token]) -> Mapping[bytes, list[_Token]]:
    return {stream: list(of) for stream, of in groupby(sorted(tokens), key=itemgetter(0))}


def _pattern_of(options: RedisOptions, subscription: Subscription) -> "tuple[bytes, re.Pattern[str]] | None":
    """Returns a glob and a pattern for the names of streams, whose first group is the routing key; None for one stream."""
    key = subscription.binding_key
    if ROUTING_KEY_IN_TOPIC not in options.stream or not ("*" in key or "#" in key):
        return None
    escaped = re.sub(r"([\\*?\[\]])", r"\\\1", options.stream)
    glob = escaped.replace(ROUTING_KEY_IN_TOPIC, "*")
    group = re.escape(ROUTING_KEY_IN_TOPIC)
    pattern = re.escape(options.stream).replace(group, "(.*)", 1).replace(group, r"\1")
    return glob.encode(), re.compile(pattern, re.DOTALL)
