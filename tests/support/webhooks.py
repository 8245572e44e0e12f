"""A webhook that records its requests."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

KEY = os.urandom(24)
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"


@dataclass
class Receiver:
    """A webhook that records requests and returns a configurable status."""

    url: str = ""
    status: int = 204
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    holds: asyncio.Event | None = None

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies, parsed."""
        return [json.loads(body) for _, body in self.requests]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handles one request per connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        sent = dict(line.split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
        self.requests.append(({name.lower(): value for name, value in sent.items()}, body))
        if self.holds is not None:
            await self.holds.wait()
        writer.write(f"HTTP/1.1 {self.status} -\r\nlocation: http://127.0.0.1:9/\r\nconnection: close\r\n\r\n".encode())
        writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Runs a webhook during the block."""
    receiver = Receiver()
    async with await asyncio.start_server(receiver.answer, "127.0.0.1", 0) as server:
        receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hooks/T0/secret-path"
        yield receiver
