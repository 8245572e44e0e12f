"""A Redis or Valkey server: what its URL says, sessions with it, and whether it may lose what it has confirmed."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from redis.asyncio.connection import Connection, SSLConnection
from redis.exceptions import RedisError, ResponseError

from outbox.core.urls import ROUTING_KEY_IN_TOPIC, boolean_option, number_option, redacted, redis_host, redis_stream
from outbox.errors import BrokerUnavailableError, ConfigurationError, TopologyError
from outbox.ports import Guarantees

CONNECT_TIMEOUT = timedelta(seconds=5)
IDLE_TIME = 1.0
"""Seconds without use after which a session is asked whether it still has a server."""
CLAIM_AFTER = 30
"""Seconds without a heartbeat after which a worker claims the entries of another one. Heartbeats come three times as often."""
OLDEST_VERSION = (6, 2)

Reply: TypeAlias = bytes | int | list[Any] | ResponseError | None
"""What a server answers to one command. An error is a value: it says nothing about the next command."""

_TLS = {
    "ssl_ca_certs",
    "ssl_ca_path",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_password",
    "ssl_cert_reqs",
    "ssl_check_hostname",
}
_OPTIONS = {"stream", "create", "maxlen", "wait", "durability", "claim_after", "trim"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisOptions:
    """What the URL of a server says.

    `stream` is the name of the streams, in which `{routing_key}` stands for that. `create`: a relay creates missing streams.
    `maxlen` is the number of entries that a stream is trimmed to, approximately. `wait` is how many replicas must have a
    message. `lossy`: the server may lose messages that it has confirmed. `claim_after` is the number of seconds without a
    heartbeat after which entries of another worker are claimed. `trim`: workers delete the entries that all groups have read.
    """

    stream: str
    create: bool
    maxlen: int | None
    wait: int
    lossy: bool
    claim_after: int
    trim: bool
    connection: Mapping[str, Any] = field(repr=False)
    tls: bool

    @property
    def guarantees(self) -> Guarantees:
        """With a stream for each routing key, wildcards need streams that relays create; then no message is unroutable."""
        has_patterns = self.create or ROUTING_KEY_IN_TOPIC not in self.stream
        return Guarantees(patterns=has_patterns, unroutable=not self.create, keeps_state=False)

    @classmethod
    def parse(cls, url: str) -> "RedisOptions":
        """Reads a URL. Raises `ConfigurationError`, which contains no secrets."""
        host, port, database = redis_host(url)
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        tls = parts.scheme.lower() in ("rediss", "valkeys")
        if unknown := sorted(given.keys() - _OPTIONS - (_TLS if tls else set())):
            raise ConfigurationError(
                f"broker has the option {unknown[0]!r:.100}, which is not one of {', '.join(sorted(_OPTIONS))}"
                + (f", {', '.join(sorted(_TLS))}" if tls else "; those of TLS need rediss://")
            )
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        connection: dict[str, Any] = {
            "host": host,
            "port": port,
            "db": database,
            "username": unquote(user) or None,
            "password": unquote(password) or None,
            **{name: value for name, value in given.items() if name in _TLS},
        }
        if tls:
            connection["ssl_check_hostname"] = boolean_option(given, "ssl_check_hostname", default=True)
            # Fails at once if a file is missing, rather than when a relay has begun.
            try:
                _TlsConnection(**connection).ssl_context.get()
            except (RedisError, OSError, TypeError, ValueError) as error:
                raise ConfigurationError(f"broker has options of TLS that cannot be used: {text_of(error)}") from None
        if given.get("durability", "lossy") != "lossy":
            raise ConfigurationError("broker has an option durability that is not lossy, its only value")
        return cls(
            stream=redis_stream(url),
            create=boolean_option(given, "create", default=False),
            maxlen=number_option(given, "maxlen", default=0) or None,
            wait=number_option(given, "wait", default=0),
            lossy="durability" in given,
            claim_after=number_option(given, "claim_after", default=CLAIM_AFTER),
            trim=boolean_option(given, "trim", default=False),
            connection=connection,
            tls=tls,
        )


class Session:
    """One connection, used by one task at a time. A command that is not answered ends it: a late answer has nowhere to go.

    `id` is the server's number of the connection. `server` is what the server says of itself in INFO; `config` is its
    configuration of the append-only file. Both are empty if the server does not show them to this user. `slowness` is how many
    times as long as usual `call` waits.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._used = monotonic()
        self.slowness = 1.0
        self.id: int | None = None
        self.server: Mapping[str, str] = {}
        self.config: Mapping[str, str] = {}

    @classmethod
    async def start(cls, options: RedisOptions, *, name: str) -> "Session":
        """Connects to a server that can store and read streams.

        Raises `BrokerUnavailableError` while there is none, and `TopologyError` if it is too old, or a cluster.
        """
        kind: Any = _TlsConnection if options.tls else _PlainConnection  # not all of redis-py has types
        connection = kind(**options.connection, protocol=2, socket_timeout=None, socket_connect_timeout=None)
        session = cls(connection)
        try:
            with translate_connection_errors():
                async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                    await connection.connect()
            _, identity, info, config = await session.call(
                command(b"CLIENT", b"SETNAME", name.encode()),
                command(b"CLIENT", b"ID"),
                command(b"INFO"),
                command(b"CONFIG", b"GET", b"*append*"),
            )
            session.id = identity if isinstance(identity, int) else None
            if isinstance(info, bytes):
                lines = (line.partition(":") for line in info.decode(errors="replace").splitlines())
                session.server = {name: value for name, colon, value in lines if colon}
            if isinstance(config, list):
                texts = [part.decode(errors="replace") for part in config]
                session.config = dict(zip(texts[::2], texts[1::2], strict=True))
            _check_server(session.server)
        except BaseException:
            session.end()
            raise
        return session

    @property
    def is_alive(self) -> bool:
        """Whether no command has failed or was cancelled."""
        return bool(self._connection.is_connected)

    async def call(self, *commands: bytes) -> list[Reply]:
        """Sends commands in a pipeline, and returns their replies, within `CONNECT_TIMEOUT`. Raises as `collect` does."""
        replies: list[Reply] = []
        seconds = CONNECT_TIMEOUT.total_seconds() * self.slowness
        with translate_connection_errors(seconds):
            async with asyncio.timeout(seconds):
                await self.collect(commands, replies)
        return replies

    async def collect(self, commands: Sequence[bytes], replies: list[Reply]) -> None:
        """Sends commands in a pipeline, and appends each reply as it arrives.

        Raises `BrokerUnavailableError` if one is missing. Then, and after a cancellation, the session has ended, and nothing
        is sent any more.
        """
        try:
            with translate_connection_errors():
                await self._connection.exchange(commands, replies)
        except BaseException:
            self._connection.abort()
            raise
        self._used = monotonic()

    async def check(self) -> None:
        """Returns if the server answers, at once if it did just now. Raises `BrokerUnavailableError`; the session has ended."""
        if monotonic() - self._used >= IDLE_TIME:
            await self.call(command(b"PING"))

    def end(self) -> None:
        """Closes the connection."""
        self._connection.abort()


class _Abortable:
    """Adds to a connection of redis-py that it can end at once, with all that is not sent yet."""

    async def exchange(self: Any, commands: Sequence[bytes], replies: list[Reply]) -> None:
        if self._writer is None:
            raise ConnectionResetError("the connection is closed")
        # Not `writelines`: in Python 3.12 and 3.13 it raises AttributeError if the connection was just lost.
        self._writer.write(b"".join(commands))
        await self._writer.drain()
        for _ in commands:
            try:
                # The connection must stay as it is: redis-py would close it only after sending what is buffered.
                replies.append(await self.read_response(disconnect_on_error=False))
            except ResponseError as error:
                replies.append(error)

    def abort(self: Any) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._close()


class _PlainConnection(_Abortable, Connection):
    pass


class _TlsConnection(_Abortable, SSLConnection):
    pass


def command(*parts: bytes) -> bytes:
    """Encodes a command for the wire."""
    # Of our own, because redis-py takes as long for it as for everything else together.
    return b"*%d\r\n%b" % (len(parts), b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]))


@contextmanager
def translate_connection_errors(seconds: float | None = None) -> Iterator[None]:
    """Turns errors of the connection, and answers that are missing after so many seconds, into `BrokerUnavailableError`."""
    try:
        yield
    except TimeoutError:
        within = CONNECT_TIMEOUT.total_seconds() if seconds is None else seconds
        raise BrokerUnavailableError(f"Redis does not answer within {within:g} s") from None
    except (RedisError, OSError) as error:
        raise BrokerUnavailableError(f"Redis is unavailable: {text_of(error)}") from error


def text_of(error: BaseException) -> str:
    """Returns the text of an error, without secrets."""
    return redacted(str(error)) or type(error).__name__


def check_durability(session: Session, options: RedisOptions) -> None:
    """Returns if the server keeps what it has confirmed, as far as `options` ask for that.

    Raises `TopologyError` if it may lose messages, and `BrokerUnavailableError` while too few replicas are connected.
    """
    server, config = session.server, session.config
    if options.wait and "connected_slaves" in server and int(server["connected_slaves"]) < options.wait:
        # Looked for before sending: each batch that fails only after it was stored is stored again.
        raise BrokerUnavailableError(f"Redis has {server['connected_slaves']} of the {options.wait} replicas of ?wait=")
    if options.lossy:
        return
    if server.get("maxmemory", "0") != "0" and server.get("maxmemory_policy", "").startswith("allkeys"):
        raise TopologyError(
            f"Redis deletes streams when its memory is full (maxmemory-policy {server['maxmemory_policy']}): set "
            f"maxmemory-policy to noeviction. {_ADVICE}"
        )
    if options.wait:
        return
    if not config:
        raise TopologyError(f"Redis does not show its configuration to this user, so it may lose messages. {_ADVICE}")
    wrong = [f"{name} is {config.get(name)}" for name, value in _DURABLE.items() if config.get(name) != value]
    if wrong:
        right = " and ".join(f"{name} {value}" for name, value in _DURABLE.items())
        raise TopologyError(f"Redis may lose messages that it has confirmed: {', '.join(wrong)}. Set {right}. {_ADVICE}")


_DURABLE = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}
_ADVICE = "Or add ?wait=1 to the URL, to wait for a replica, or ?durability=lossy if messages may be lost"


def _check_server(server: Mapping[str, str]) -> None:
    version = tuple(int(part) for part in server.get("redis_version", "6.2").split(".")[:2])
    if version < OLDEST_VERSION:
        raise TopologyError(f"Redis {server['redis_version']} is too old: use 6.2 or newer, or Valkey")
    if server.get("cluster_enabled") == "1":
        raise TopologyError("Redis Cluster is not supported: use a server with replicas")
    if server.get("loading") == "1":
        raise BrokerUnavailableError("Redis is loading its data")
    if server.get("role") == "slave":
        raise BrokerUnavailableError("Redis is a replica, which accepts no messages: name the primary")
