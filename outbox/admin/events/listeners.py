"""Who listens, and what waits to be sent to them: never more than a client that reads has waiting."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic

HEARTBEAT = timedelta(seconds=15)
"""After so long without an event a comment is sent, so that neither side takes the other for gone."""
MOST_WAITING = 1_000
"""Events that wait for a client; one that is so far behind is dropped, and told to read again when it comes back."""
MOST_TIME = timedelta(minutes=5)
"""A stream ends after this time, and its client comes back: with the name of its last event, and with its credentials."""
_HEARTBEAT = b": still here\n\n"


@dataclass(slots=True, eq=False)
class Listener:
    """One client. `session` is the hash of the session that it came with."""

    principal: str
    session: bytes | None = None
    _waiting: deque[bytes] = field(default_factory=deque)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: bool = False
    _ends_at: float = field(default_factory=lambda: monotonic() + MOST_TIME.total_seconds())

    def tell(self, written: bytes) -> None:
        """Has this sent; ends the stream of a client that is too far behind."""
        if len(self._waiting) >= MOST_WAITING:
            self.end()
        if not self._ended:
            self._waiting.append(written)
            self._woken.set()

    def end(self) -> None:
        """Ends the stream after what is being sent; what waits is not sent any more."""
        self._ended = True
        self._waiting.clear()
        self._woken.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """What is sent, until the stream ends."""
        while not self._ended and (left := self._ends_at - monotonic()) > 0:
            if self._waiting:
                yield self._waiting.popleft()
                continue
            self._woken.clear()
            try:
                async with asyncio.timeout(min(left, HEARTBEAT.total_seconds())):
                    await self._woken.wait()
            except TimeoutError:
                yield _HEARTBEAT
