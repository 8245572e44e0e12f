"""Redis as a Transport: sends messages as entries of streams."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

from redis.exceptions import NoPermissionError, OutOfMemoryError, ReadOnlyError, ResponseError

from outbox.core.message import Message
from outbox.core.outcome import Failure
from outbox.core.urls import ROUTING_KEY_IN_TOPIC, ServerKind, server_address
from outbox.errors import BrokerUnavailableError, ConfigurationError, OutboxError
from outbox.ports import CONFIRMED, UNROUTABLE, NotSent, Refused, SendResult, Unconfirmed
from outbox.transports.redis.entries import entry_of
from outbox.transports.redis.server import RedisOptions, Reply, Session, check_durability, command, text_of

RESERVE = timedelta(milliseconds=200)
"""Time of a batch's timeout that is left for its results: up to a quarter of it."""
SHARE_OF_WAIT = 0.8
"""Share of the time for a batch that its replicas may take, so that the server's answer comes before the timeout."""
StreamOf = Callable[[str], str]
"""Returns the stream for a routing key."""

_CODES = {OutOfMemoryError: "OOM", ReadOnlyError: "READONLY", NoPermissionError: "NOPERM"}
"""Errors from whose texts redis-py removes the code."""


class RedisTransport:
    """Implements `outbox.ports.Transport` on Redis or Valkey. Each batch is one pipeline on a connection of its own.

    `url` is `redis://user:password@host:6379/0?stream=…`, or `rediss://…` with TLS; `valkey://` and `valkeys://` mean the same.
    `stream` names the stream of a message: text, in which `{routing_key}` stands for the message's routing key, or a function
    from routing keys to streams. Default: that of the URL, or else the routing key.

    Raises `ConfigurationError` for an option that is unknown or invalid.
    """

    label = ServerKind.REDIS.value
    """The exchange of the queues that workers fill from streams; see `outbox.transports.stored`."""

    def __init__(self, url: str, *, stream: str | StreamOf | None = None) -> None:
        self.options = RedisOptions.parse(url)
        self.guarantees = self.options.guarantees
        self._stream = self.options.stream if stream is None else stream
        if not callable(self._stream) and (not isinstance(self._stream, str) or not self._stream):
            raise ConfigurationError(
                f"stream must be the name of a stream, in which {ROUTING_KEY_IN_TOPIC} stands for the routing key, or in "
                f"Python a function from routing keys to streams, not {self._stream!r:.100}"
            )
        self._address = server_address(url)
        self._idle: list[Session] = []
        self._is_open = False
        self._abandoned: dict[int, str] = {}
        """Connections that ended without all answers, with the run id of their server."""

    @property
    def destination(self) -> str:
        """The server and the stream, without secrets. Relays with the same text send to the same place."""
        stream = self._stream
        if callable(stream):
            stream = f"of {stream.__module__}.{getattr(stream, '__qualname__', type(stream).__qualname__)}"
        return f"{self._address}, stream {stream}"

    async def open(self) -> None:
        """See `outbox.ports.Transport.open`.

        Raises `TopologyError` if the server may lose messages that it has confirmed, unless the URL allows that.
        """
        self._is_open = True
        while self._idle:
            session = self._idle.pop()
            try:
                await session.check()
            except BrokerUnavailableError:
                continue  # the server may have been restarted while there was nothing to send
            self._give_back(session)
            return
        self._give_back(await self._take())

    async def send(self, messages: Sequence[Message], *, timeout: timedelta) -> Sequence[SendResult]:
        """See `outbox.ports.Transport.send`.

        After a timeout or a cancellation, what the server has not received is not sent. What it has received and not done is
        dropped before the next batch: nothing arrives after a message that is sent later, unless this process ends before.
        """
        self._is_open = True
        results, commands = self._encode(messages)
        replies: list[Reply] = []
        patience = timeout - min(RESERVE, timeout / 4)
        missing = Failure("timeout", f"Redis confirmed nothing more within {patience.total_seconds():g} s")
        if commands:
            try:
                async with asyncio.timeout(patience.total_seconds()):
                    await self._exchange(list(commands.values()), replies, patience)
            except TimeoutError:
                pass
            except OutboxError as error:
                missing = Failure("redis", str(error))
        for index, reply in zip(commands, replies, strict=False):
            results[index] = _result_of(reply)
        return [NotSent(missing) if result is None else result for result in results]

    async def missing_stream(self) -> str | None:
        """Returns the one stream of all messages if it does not exist; None if it does, or need not.

        Raises `BrokerUnavailableError` while the server does not answer.
        """
        name = self._stream
        if callable(name) or ROUTING_KEY_IN_TOPIC in name or self.options.create:
            return None
        session = await self._take()
        try:
            return None if await session.call(command(b"EXISTS", name.encode())) == [1] else name
        finally:
            self._give_back(session)

    async def close(self) -> None:
        """See `outbox.ports.Transport.close`."""
        self._is_open = False
        while self._idle:
            self._idle.pop().end()

    async def _take(self) -> Session:
        """Returns a session that is not in use, or a new one with a server that keeps what it confirms."""
        if self._idle:
            return self._idle.pop()
        session = await Session.start(self.options, name="outbox-relay")
        try:
            check_durability(session, self.options)
        except BaseException:
            session.end()
            raise
        return session

    def _give_back(self, session: Session) -> None:
        if self._is_open and session.is_alive:
            self._idle.append(session)
        else:
            session.end()

    async def _exchange(self, commands: Sequence[bytes], replies: list[Reply], patience: timedelta) -> None:
        """Appends the replies to commands.

        Raises `BrokerUnavailableError` if one is missing, and without any replies if too few replicas have stored the messages.
        """
        session = await self._take()
        run = session.server.get("run_id", "")
        # A connection that was cut off may have sent commands that the server has not run yet. It is killed first, so that they
        # cannot run behind later messages; see docs/decisions/0192.
        # The numbers of connections begin again with each run of a server.
        fenced = [number for number, of in self._abandoned.items() if of == run]
        self._abandoned = dict.fromkeys(fenced, run)
        sent = [command(b"CLIENT", b"KILL", b"ID", b"%d" % number) for number in fenced]
        first, end = len(sent), len(sent) + len(commands)
        sent += commands
        wait = self.options.wait
        if wait:
            milliseconds = max(int(patience.total_seconds() * 1_000 * SHARE_OF_WAIT), 1)
            sent.append(command(b"WAIT", b"%d" % wait, b"%d" % milliseconds))
        answers: list[Reply] = []
        try:
            await session.collect(sent, answers)
        except BaseException:
            if session.id is not None and run:
                self._abandoned[session.id] = run
            raise
        finally:
            # Only with these answers is it certain that the connections have ended. Otherwise the next batch tries again.
            if len(answers) >= first:
                for number in fenced:
                    self._abandoned.pop(number, None)
            if not wait:
                replies += answers[first:end]
        # Without enough replicas nothing is confirmed, although the primary has answered every command.
        if wait:
            replicas = answers[-1]
            if not isinstance(replicas, int) or replicas < wait:
                session.end()
                raise BrokerUnavailableError(f"fewer than {wait} replicas of Redis have stored the messages: {replicas!r:.100}")
            replies += answers[first:end]
        if any(isinstance(_result_of(reply), NotSent) for reply in replies):
            session.end()  # the next `open` looks at the server again
        self._give_back(session)

    def _encode(self, messages: Sequence[Message]) -> tuple[list[SendResult | None], dict[int, bytes]]:
        """Returns the results of the messages that cannot be sent, and the commands of the others by index."""
        results: list[SendResult | None] = [None] * len(messages)
        commands: dict[int, bytes] = {}
        options = self.options
        how = [] if options.create else [b"NOMKSTREAM"]
        if options.maxlen is not None:
            how += [b"MAXLEN", b"~", b"%d" % options.maxlen]
        for index, message in enumerate(messages):
            if message.target_queue is not None:
                results[index] = UNROUTABLE  # the stream would reach all of its groups
                continue
            try:
                commands[index] = command(b"XADD", self._stream_of(message), *how, b"*", *entry_of(message))
            except Exception as error:  # noqa: BLE001  a faulty function of the application must not stop other messages
                results[index] = Refused(Failure("unsendable", text_of(error)))
        return results, commands

    def _stream_of(self, message: Message) -> bytes:
        stream, key = self._stream, message.routing_key
        name = stream(key) if callable(stream) else stream.replace(ROUTING_KEY_IN_TOPIC, key)
        if not isinstance(name, str) or not name:
            raise ValueError(f"{name!r:.100} is not the name of a stream")
        return name.encode()


def _result_of(reply: Reply) -> SendResult:
    if reply is None:
        return UNROUTABLE
    if not isinstance(reply, ResponseError):
        return CONFIRMED
    text = text_of(reply)
    code = _CODES.get(type(reply)) or (word if (word := text.partition(" ")[0]).isupper() else "ERR")
    failure = Failure(f"redis {code}", text)
    if code == "ERR" and "too large" in text:
        return Refused(failure)
    # An answer about the stream: others may be fine.
    if code in ("ERR", "WRONGTYPE") or (code == "NOPERM" and "access" in text):
        return Unconfirmed(failure)
    return NotSent(failure)
