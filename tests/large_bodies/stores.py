"""Stores for tests: one in memory, whose objects can be made older, lost and changed, and that can be away."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime, timedelta

from outbox.errors import BodyStoreUnavailableError, StoredBodyError
from outbox.large_bodies import StoredObject


class MemoryStore:
    """Implements `outbox.large_bodies.BodyStore`. `away`: how many of the next calls fail."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, datetime]] = {}
        self.away = 0

    def age(self, by: timedelta) -> None:
        """Makes all objects older."""
        self.objects = {name: (content, at - by) for name, (content, at) in self.objects.items()}

    async def put(self, name: str, content: bytes) -> None:
        """See `BodyStore.put`."""
        self._answer()
        self.objects[name] = (content, datetime.now(UTC))

    async def get(self, name: str) -> bytes:
        """See `BodyStore.get`."""
        self._answer()
        if name not in self.objects:
            raise StoredBodyError(f"there is no body {name}")
        return self.objects[name][0]

    async def delete(self, name: str) -> None:
        """See `BodyStore.delete`."""
        self._answer()
        self.objects.pop(name, None)

    async def list(self) -> AsyncGenerator[StoredObject, None]:
        """See `BodyStore.list`."""
        for name in sorted(self.objects):
            yield StoredObject(name, self.objects[name][1])

    def opened(self) -> AbstractAsyncContextManager[object]:
        """See `BodyStore.opened`."""
        return nullcontext()

    def _answer(self) -> None:
        if self.away:
            self.away -= 1
            raise BodyStoreUnavailableError("the store is away")
