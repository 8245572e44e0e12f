"""A TCP proxy between a client and a server that simulates network faults."""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine
from enum import Enum
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

T = TypeVar("T")

_CHUNK = 65_536
_DEFAULT_PORTS = {"amqp": 5672, "amqps": 5671, "postgresql": 5432, "postgres": 5432, "http": 80}


class Towards(Enum):
    """A direction of traffic."""

    SERVER = "server"
    CLIENT = "client"


class Proxy:
    """Forwards connections to the server that `target` names; `url` is the target's with the proxy's address.

    It runs in its own thread, so tests may block and call its methods from any thread. Methods return when they took effect.
    """

    def __init__(self, target: str) -> None:
        address = urlsplit(target)
        self._host = address.hostname or "127.0.0.1"
        self._port = address.port or _DEFAULT_PORTS[address.scheme.partition("+")[0]]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._refusing = False
        self._delay = 0.0
        self._swallowing: set[Towards] = set()
        self._rates: dict[Towards, float] = {}
        self._free_at: dict[Towards, float] = {}
        self.forwarded: dict[Towards, int] = dict.fromkeys(Towards, 0)
        """How many bytes went in each direction."""
        self.parts: dict[Towards, int] = dict.fromkeys(Towards, 0)
        """How many parts they came in: a client that waits for each response sends one part per round trip."""
        self._open: dict[Towards, asyncio.Event] = {}
        self._paused: list[asyncio.Event] = []
        self._links: set[_Link] = set()
        self._server: asyncio.Server = self._call(self._listen())
        self.port: int = self._server.sockets[0].getsockname()[1]
        credentials = address.netloc.rpartition("@")[0]
        self.url = urlunsplit(address._replace(netloc=f"{credentials}{'@' if credentials else ''}127.0.0.1:{self.port}"))

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._links)

    def pause(self, *directions: Towards) -> None:
        """Hold bytes back, in the given directions or in both, until `resume()`; connections stay open."""
        self._call(self._set_open(directions or tuple(Towards), flowing=False))

    def resume(self) -> None:
        """Forward again what was held back and what follows."""
        self._swallowing.clear()
        self._call(self._set_open(tuple(Towards), flowing=True))

    def spare_new(self) -> None:
        """After `pause()`: new connections are forwarded, and those that are open now stay as they are until `resume()`."""
        self._call(self._renew_gates())

    def delay(self, seconds: float) -> None:
        """Delay each direction by so many seconds, like a distant server."""
        self._delay = seconds

    def swallow(self, *directions: Towards) -> None:
        """Discard bytes, by default the server's: requests are executed, but their responses never arrive."""
        self._swallowing.update(directions or (Towards.CLIENT,))

    def limit(self, bytes_per_second: float, *directions: Towards) -> None:
        """Limit the rate, by default of the server's bytes, over all connections together."""
        for direction in directions or (Towards.CLIENT,):
            self._rates[direction] = bytes_per_second

    def cut(self) -> int:
        """Reset every open connection on both sides; how many there were. New ones are accepted."""
        return self._call(self._cut())

    def refuse(self) -> None:
        """Reset every open connection, and each new one at once, until `accept()`."""
        self._refusing = True
        self.cut()

    def accept(self) -> None:
        """Undo `refuse()`."""
        self._refusing = False

    def redirect(self, target: str) -> None:
        """Reset every open connection, and lead new ones to the server that `target` names, as a failover does."""
        address = urlsplit(target)
        self._host = address.hostname or "127.0.0.1"
        self._port = address.port or _DEFAULT_PORTS[address.scheme.partition("+")[0]]
        self.cut()

    def close(self) -> None:
        """End the proxy and its connections."""
        if self._loop.is_closed():
            return
        self._call(self._shut_down())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _listen(self) -> asyncio.Server:
        await self._renew_gates()
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            _reset(writer)
            return
        try:
            server_reader, server_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            _reset(writer)
            return
        link, gates = _Link(writer, server_writer), dict(self._open)
        self._links.add(link)
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._forward(reader, server_writer, Towards.SERVER, gates))
                directions.create_task(self._forward(server_reader, writer, Towards.CLIENT, gates))
        except* OSError:
            link.reset()
        finally:
            self._links.discard(link)
            await link.close()

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        towards: Towards,
        gates: dict[Towards, asyncio.Event],
    ) -> None:
        while chunk := await reader.read(_CHUNK):
            await gates[towards].wait()
            await self._wait_for_room(towards, len(chunk))
            if self._delay:
                await asyncio.sleep(self._delay)
            if towards not in self._swallowing:
                self.forwarded[towards] += len(chunk)
                self.parts[towards] += 1
                writer.write(chunk)
                await writer.drain()
        await gates[towards].wait()
        if writer.can_write_eof() and towards not in self._swallowing:
            writer.write_eof()

    async def _wait_for_room(self, towards: Towards, size: int) -> None:
        if (rate := self._rates.get(towards)) is not None:
            now = self._loop.time()
            self._free_at[towards] = max(self._free_at.get(towards, now), now) + size / rate
            await asyncio.sleep(self._free_at[towards] - now)

    async def _renew_gates(self) -> None:
        self._paused += self._open.values()
        for direction in Towards:
            self._open[direction] = asyncio.Event()
            self._open[direction].set()

    async def _set_open(self, directions: tuple[Towards, ...], *, flowing: bool) -> None:
        while flowing and self._paused:
            self._paused.pop().set()
        for direction in directions:
            if flowing:
                self._open[direction].set()
            else:
                self._open[direction].clear()

    async def _cut(self) -> int:
        links = list(self._links)
        for link in links:
            link.reset()
        self._links.clear()
        return len(links)

    async def _shut_down(self) -> None:
        self._refusing = True
        self._server.close()
        await self._set_open(tuple(Towards), flowing=True)
        await self._cut()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            await asyncio.wait(tasks, timeout=5)


class _Link:
    """The two sockets of one forwarded connection."""

    def __init__(self, *writers: asyncio.StreamWriter) -> None:
        self._writers = writers

    def reset(self) -> None:
        for writer in self._writers:
            _reset(writer)

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        for writer in self._writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset (RST) instead of an orderly end: what a crash or a firewall does."""
    with contextlib.suppress(OSError):
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
