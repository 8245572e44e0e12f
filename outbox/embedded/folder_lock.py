"""One owner at a time for a data folder."""

import fcntl
import os
from pathlib import Path

from outbox.embedded.errors import DataFolderInUseError


class FolderLock:
    """A lock that the operating system releases when its holder dies, however it dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock; holding it already is fine.

        Raises:
            DataFolderInUseError: another process, which is named, holds it.
        """
        if self._descriptor is not None:
            return
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode().strip() or "unknown"
            os.close(descriptor)
            raise DataFolderInUseError(
                f"process {holder} already runs a PostgreSQL in {self._path.parent}: stop it, or choose another folder"
            ) from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Let the next one in; not holding it is fine."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
