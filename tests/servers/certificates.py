"""TLS for tests: certificates of an authority of their own, and TLS in front of a server that knows none."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import trustme


class Certificates:
    """An authority that no one else trusts, and what it signed for a server on this machine and for a client."""

    def __init__(self, folder: Path) -> None:
        """The files are in `folder` once `renew` has written them."""
        self.authority = folder / "authority.pem"
        self.server, self.server_key = folder / "server.pem", folder / "server.key"
        self.client, self.client_key = folder / "client.pem", folder / "client.key"
        self._folder = folder

    def renew(self) -> None:
        """Writes the files; those of an earlier authority are worth nothing any more."""
        self._folder.mkdir(exist_ok=True)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.authority)
        for issued, certificate, key in (
            (authority.issue_cert("127.0.0.1"), self.server, self.server_key),
            (authority.issue_cert("outbox", common_name="outbox"), self.client, self.client_key),
        ):
            issued.cert_chain_pems[0].write_to_path(certificate)
            issued.private_key_pem.write_to_path(key)
        # Servers run as other users; the driver of PostgreSQL refuses a key that others can read.
        self.server_key.chmod(0o644)
        self.client_key.chmod(0o600)

    def options(self, authority: str, certificate: str, key: str) -> str:
        """The query of a client's URL, with its names of the three files."""
        files: Mapping[str, Path] = {authority: self.authority, certificate: self.client, key: self.client_key}
        return urlencode({name: str(path) for name, path in files.items()}, safe="/")


async def _chunk(reader: asyncio.StreamReader) -> bytes:
    return await reader.read(1 << 16)


@asynccontextmanager
async def over_tls(
    port: int,
    certificates: Certificates,
    *,
    ask: bool = False,
    read: Callable[[asyncio.StreamReader], Awaitable[bytes]] = _chunk,
) -> AsyncIterator[int]:
    """Makes a server on this machine that knows no TLS reachable over it, at the port that is yielded.

    `ask`: clients need a certificate. `read` reads what the server sends, and may change it; nothing is the end.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates.authority))
    context.load_cert_chain(certificates.server, certificates.server_key)
    context.verify_mode = ssl.CERT_REQUIRED if ask else ssl.CERT_NONE

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, to_server = await asyncio.open_connection("127.0.0.1", port)
        directions = [asyncio.create_task(_passed_on(*way)) for way in ((_chunk, reader, to_server), (read, behind, writer))]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            to_server.close()
            writer.close()

    # A handshake that fails is the client's to report.
    async with await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def _passed_on(
    read: Callable[[asyncio.StreamReader], Awaitable[bytes]], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    with contextlib.suppress(OSError, EOFError):
        while data := await read(reader):
            writer.write(data)
            await writer.drain()
