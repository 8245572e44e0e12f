"""AMQP connections that reconnect: one of our own by URL, or one that the host owns."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from aiormq.exceptions import AMQPChannelError, AMQPError, ConnectionClosed, ProbableAuthenticationError
from pamqp.constants import REPLY_SUCCESS
from yarl import URL

from outbox.core.urls import redacted
from outbox.errors import BrokerUnavailableError, UrlError
from outbox.transports.rabbitmq.frame_tap import InterceptedConnection

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection as LentConnection
    from aiormq.abc import AbstractConnection

HEARTBEAT = timedelta(seconds=20)
"""Unless the URL says otherwise. A silent broker is given up after three; a busy event loop may be late by two."""

CONNECT_TIMEOUT = timedelta(seconds=10)
"""How long making a connection may take."""
_CLOSING = timedelta(seconds=3)


class UnresponsiveError(BrokerUnavailableError):
    """The connection looks open and nothing answers: it should be discarded."""


class LostError(BrokerUnavailableError):
    """A connection or channel ended while something was under way on it."""


@contextmanager
def translate_connection_errors() -> Iterator[None]:
    """Turns whatever aiormq raises when a connection or channel is not there any more into `LostError`.

    That includes plain `Exception`, `InvalidStateError` where it rejects one future twice, and `CancelledError` in a task that
    nobody cancelled: aiormq cancels its own tasks when a channel closes, and whoever waits for them is told so. Refusals of
    the broker (`AMQPChannelError`) pass through. A cancellation from outside stays one, see `preserve_cancellation`.
    """
    with preserve_cancellation() as cancelled:
        try:
            yield
        except (AMQPChannelError, BrokerUnavailableError):
            raise
        except asyncio.CancelledError:
            if cancelled():
                raise
            raise LostError("the connection was closed") from None
        except (AMQPError, OSError, EOFError, RuntimeError, asyncio.InvalidStateError) as error:
            raise _lost(error) from None
        except Exception as error:
            if type(error) is not Exception:
                raise
            raise _lost(error) from None


@contextmanager
def preserve_cancellation() -> Iterator[Callable[[], bool]]:
    """An error raised in the block becomes `CancelledError` if the current task was cancelled meanwhile.

    aiormq answers the cancellation of a task that waits for one of its own with the reason for which its connection has ended,
    if it has: who took that for the outcome would go on, and the cancellation would be lost. Yields whether there was one;
    a timeout that is over counts for the blocks within it.
    """
    before = _cancellations()

    def cancelled() -> bool:
        return _cancellations() > before

    try:
        yield cancelled
    except Exception as error:
        if cancelled():
            raise asyncio.CancelledError from error
        raise


def _cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _lost(error: Exception) -> LostError:
    return LostError(f"the connection was lost: {redacted(str(error)) or type(error).__name__}")


class Link(Protocol):
    """One connection to the broker, which may come and go."""

    @property
    def current(self) -> "AbstractConnection | None":
        """The connection if it is open now."""
        ...

    async def open(self) -> "AbstractConnection":
        """The open connection, a new one if need be. Raises `BrokerUnavailableError` within the connect timeout."""
        ...

    def discard(self, connection: "AbstractConnection") -> None:
        """Forgets a connection that does not answer; the next `open` makes another."""
        ...

    async def close(self) -> None:
        """Closes what `open` made. Idempotent, and bounded even if the broker does not answer."""
        ...


class OwnedConnection:
    """A connection of our own, made from a URL. `purpose` is the name that the broker's management shows for it."""

    def __init__(self, url: str, *, purpose: str, connect_timeout: timedelta) -> None:
        host = None
        with suppress(ValueError):
            parsed = URL(url)
            host = parsed.host  # which may be no name either, such as "xn--a"
        if not host:
            raise UrlError(
                "url has no host and port that can be read: write amqp://user:password@host:5672/vhost, "
                "with special characters percent-encoded"
            )
        defaults = {"heartbeat": str(int(HEARTBEAT.total_seconds())), "name": purpose}
        self._url = parsed.update_query({name: value for name, value in defaults.items() if name not in parsed.query})
        self._safe_url = redacted(url)
        self._timeout = connect_timeout
        self._connection: AbstractConnection | None = None
        self._lock = asyncio.Lock()
        self._attempt = 0
        self._failure = ""
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def current(self) -> "AbstractConnection | None":
        connection = self._connection
        return connection if connection is not None and is_open(connection) else None

    async def open(self) -> "AbstractConnection":
        """See `Link.open`. Callers who come while another task connects share what comes of it."""
        if (connection := self.current) is not None:
            return connection
        attempt = self._attempt
        async with self._lock:
            if (connection := self.current) is not None:
                return connection
            if self._attempt != attempt and self._failure:
                raise BrokerUnavailableError(self._failure)
            with preserve_cancellation():
                return await self._connect()

    def discard(self, connection: "AbstractConnection") -> None:
        if self._connection is connection:
            self._connection = None
        task = asyncio.create_task(_close(connection))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        if (connection := self._connection) is not None:
            self.discard(connection)
        if self._closing:
            _, late = await asyncio.wait(self._closing, timeout=_CLOSING.total_seconds())
            for task in late:
                task.cancel()

    async def _connect(self) -> "AbstractConnection":
        self._attempt += 1
        connection: InterceptedConnection | None = None
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                connection = InterceptedConnection(self._url)
                await connection.connect()
                self._connection = connection
                # The first turn of its reader makes it ready.
                await connection.ready()
        except Exception as error:  # noqa: BLE001 - a socket, TLS or AMQP may fail in any way, and it is all the same to us
            if isinstance(error, TimeoutError):
                reason = f"no answer within {self._timeout.total_seconds():g} s"
            elif isinstance(error, ProbableAuthenticationError):
                reason = f"the broker refused the user or the password: {error}"
            elif connection is not None and connection.close_reason:
                reason = f"the broker refused: {connection.close_reason}"
            else:
                reason = redacted(str(error) or type(error).__name__)
            self._failure = f"no connection to {self._safe_url}: {reason}"
            raise BrokerUnavailableError(self._failure) from None
        self._failure = ""
        return connection


class BorrowedConnection:
    """An aio-pika connection that belongs to the host: used while it is open, never closed, repaired by its owner."""

    def __init__(self, connection: "LentConnection") -> None:
        self._lent = connection

    @property
    def current(self) -> "AbstractConnection | None":
        transport = self._lent.transport
        if transport is None or not is_open(transport.connection):
            return None
        return transport.connection

    async def open(self) -> "AbstractConnection":
        if (connection := self.current) is None:
            raise BrokerUnavailableError("the given RabbitMQ connection is closed; a robust one reopens itself")
        return connection

    def discard(self, connection: "AbstractConnection") -> None:
        """Its owner and its heartbeats decide about it."""

    async def close(self) -> None:
        """It stays open."""


def is_open(connection: "AbstractConnection") -> bool:
    """Whether frames can still be written to it and read from it."""
    return connection.is_opened


def is_blocked(connection: "AbstractConnection") -> bool:
    """Whether the broker has announced that it reads no more publications: a memory or disk alarm.

    aiormq shows it by making `ready()` wait, so that one step of it gives the answer.
    """
    waiting = connection.ready()
    try:
        waiting.send(None)
    except StopIteration:
        return False
    waiting.close()
    return True


def broker_version(connection: "AbstractConnection") -> tuple[int, int]:
    """Major and minor version, as the broker introduced itself; (0, 0) for one that did not."""
    text = (connection.server_properties or {}).get("version")
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    parts = str(text or "").split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit() else (0, 0)


async def _close(connection: "AbstractConnection") -> None:
    with suppress(BrokerUnavailableError, TimeoutError):
        async with asyncio.timeout(_CLOSING.total_seconds()):
            with translate_connection_errors():
                # Named, because aiormq would otherwise cancel the tasks that wait for an answer.
                await connection.close(ConnectionClosed(REPLY_SUCCESS, "closed by this side"))
