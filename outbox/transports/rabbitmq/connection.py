"""AMQP connections: one opened from a URL, which reconnects, or one that belongs to the host."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from aiormq.exceptions import AMQPChannelError, AMQPError, ConnectionClosed, ProbableAuthenticationError
from pamqp.constants import REPLY_SUCCESS
from yarl import URL

from outbox.core.urls import redacted, unreadable_file
from outbox.errors import BrokerUnavailableError, UrlError
from outbox.transports.rabbitmq.frame_tap import InterceptedConnection

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection as HostConnection
    from aiormq.abc import AbstractConnection

HEARTBEAT = timedelta(seconds=20)
"""Default heartbeat interval. A silent broker is considered lost after three intervals; a busy event loop may miss two."""

CONNECT_TIMEOUT = timedelta(seconds=10)
"""Longest time to open a connection."""
_CLOSING = timedelta(seconds=3)
_TLS_FILES = ("cafile", "certfile", "keyfile")


class UnresponsiveError(BrokerUnavailableError):
    """The connection looks open but does not answer: discard it."""


class LostError(BrokerUnavailableError):
    """A connection or channel ended during an operation."""


@contextmanager
def translate_connection_errors() -> Iterator[None]:
    """Turns everything that aiormq raises for a lost connection or channel into `LostError`.

    Refusals of the broker (`AMQPChannelError`) pass through, and so does a cancellation from outside, see
    `preserve_cancellation`.
    """
    with preserve_cancellation() as cancelled:
        try:
            yield
        except (AMQPChannelError, BrokerUnavailableError):
            raise
        except asyncio.CancelledError:
            if cancelled():
                raise
            # aiormq cancels its own tasks when a channel closes, and the tasks that await them get `CancelledError`.
            raise LostError("the connection was closed") from None
        # `InvalidStateError`: aiormq rejects one of its futures twice.
        except (AMQPError, OSError, EOFError, RuntimeError, asyncio.InvalidStateError) as error:
            raise _to_lost_error(error) from None
        # aiormq raises a plain `Exception` in places; anything more specific is a bug elsewhere.
        except Exception as error:
            if type(error) is not Exception:
                raise
            raise _to_lost_error(error) from None


@contextmanager
def preserve_cancellation() -> Iterator[Callable[[], bool]]:
    """Turns an error raised in the block into `CancelledError` if the current task was cancelled meanwhile.

    Yields a function that returns whether that happened. A timeout that has expired counts as a cancellation inside its block.
    """
    before = _cancellations()

    def cancelled() -> bool:
        return _cancellations() > before

    try:
        yield cancelled
    except Exception as error:
        # If its connection has ended, aiormq replaces the cancellation of a waiting task by the reason of that end. Without
        # this, the caller would handle an error and go on, and the cancellation would be lost.
        if cancelled():
            raise asyncio.CancelledError from error
        raise


def _cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _to_lost_error(error: Exception) -> LostError:
    return LostError(f"the connection was lost: {redacted(str(error)) or type(error).__name__}")


class Link(Protocol):
    """A connection to the broker that may be lost and opened again."""

    @property
    def current(self) -> "AbstractConnection | None":
        """The connection, if it is open now."""
        ...

    async def open(self) -> "AbstractConnection":
        """Returns the open connection, or opens a new one. Raises `BrokerUnavailableError` within the connect timeout."""
        ...

    def discard(self, connection: "AbstractConnection") -> None:
        """Forgets a connection that does not answer; the next `open` makes another."""
        ...

    async def close(self) -> None:
        """Closes connections that `open` made. Idempotent; takes bounded time even if the broker does not answer."""
        ...


class OwnedConnection:
    """Opens a connection from a URL. `purpose` is its name in the broker's management UI."""

    def __init__(self, url: str, *, purpose: str, connect_timeout: timedelta) -> None:
        host = None
        with suppress(ValueError):
            parsed = URL(url)
            host = parsed.host  # raises as well, for a name such as "xn--a"
        if not host:
            raise UrlError(
                "url has no host and port that can be read: write amqp://user:password@host:5672/vhost, "
                "with special characters percent-encoded"
            )
        if parsed.scheme != "amqps" and (unused := [name for name in _TLS_FILES if name in parsed.query]):
            raise UrlError(f"url has the option {unused[0]}, which needs amqps://")
        if problem := unreadable_file(url, _TLS_FILES):
            raise UrlError(f"url has an option for TLS that cannot be used: {problem}")
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
        """See `Link.open`. Calls while another task connects share its result."""
        if (connection := self.current) is not None:
            return connection
        attempt = self._attempt
        async with self._lock:
            if (connection := self.current) is not None:
                return connection
            # Another task has just tried in vain. If each tried by itself, the last would wait for as many timeouts.
            if self._attempt != attempt and self._failure:
                raise BrokerUnavailableError(self._failure)
            with preserve_cancellation():
                return await self._connect()

    def discard(self, connection: "AbstractConnection") -> None:
        if self._connection is connection:
            self._connection = None
        task = asyncio.create_task(_close_quietly(connection))
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
                # The reader task marks it as ready when it first runs.
                await connection.ready()
        except Exception as error:  # noqa: BLE001 - socket, TLS and AMQP errors of any type mean the same here
            if isinstance(error, TimeoutError):
                reason = f"no answer within {self._timeout.total_seconds():g} s"
            elif isinstance(error, ProbableAuthenticationError):
                reason = f"the broker refused the user or the password ({error})"  # after a colon, masking would hide it
            elif connection is not None and connection.close_reason:
                reason = f"the broker refused: {connection.close_reason}"
            else:
                reason = unreadable_file(str(self._url), _TLS_FILES) or redacted(str(error) or type(error).__name__)
            self._failure = f"no connection to {self._safe_url}: {reason}"
            raise BrokerUnavailableError(self._failure) from None
        self._failure = ""
        return connection


class BorrowedConnection:
    """Uses an aio-pika connection that belongs to the host. Never closes or reopens it."""

    def __init__(self, connection: "HostConnection") -> None:
        self._connection = connection

    @property
    def current(self) -> "AbstractConnection | None":
        transport = self._connection.transport
        if transport is None or not is_open(transport.connection):
            return None
        return transport.connection

    async def open(self) -> "AbstractConnection":
        if (connection := self.current) is None:
            raise BrokerUnavailableError("the given RabbitMQ connection is closed; a robust connection reopens itself")
        return connection

    def discard(self, connection: "AbstractConnection") -> None:
        """Does nothing: the host and its heartbeats decide when the connection is lost."""

    async def close(self) -> None:
        """Does nothing: the connection stays open."""


def is_open(connection: "AbstractConnection") -> bool:
    """Whether frames can be written to and read from the connection."""
    return connection.is_opened


def is_blocked(connection: "AbstractConnection") -> bool:
    """Whether the broker has blocked publishing on the connection because of a memory or disk alarm."""
    # aiormq has no property for it, but `ready()` waits while the connection is blocked. One step of it shows whether it waits.
    waiting = connection.ready()
    try:
        waiting.send(None)
    except StopIteration:
        return False
    waiting.close()
    return True


def broker_version(connection: "AbstractConnection") -> tuple[int, int]:
    """The broker's major and minor version; (0, 0) if it does not announce one."""
    text = (connection.server_properties or {}).get("version")
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    parts = str(text or "").split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit() else (0, 0)


async def _close_quietly(connection: "AbstractConnection") -> None:
    with suppress(BrokerUnavailableError, TimeoutError):
        async with asyncio.timeout(_CLOSING.total_seconds()):
            with translate_connection_errors():
                # With a reason: without one, aiormq cancels the tasks that wait for an answer.
                await connection.close(ConnectionClosed(REPLY_SUCCESS, "closed by this side"))
